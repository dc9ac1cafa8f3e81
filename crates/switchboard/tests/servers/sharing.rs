//! Servers that keep state, or work in one directory: each client sees its own.

use std::{thread, time::Instant};

use serde_json::{Value, json};
use switchboard_test_support::{tools::program, until};

use crate::{
    client::Client,
    place::{Gateway, Place},
    table::{Installed, needed},
};

const CLIENTS: usize = 5;
/// The answers that each client checks.
const ANSWERS: usize = 48;
/// The pages that each client visits.
const PAGES: usize = 4;
const PROJECTS: [&str; CLIENTS] = ["shop", "blog", "site", "docs", "game"];

#[test]
fn browser_shows_each_client_its_own_page() {
    let Some(server) = needed("playwright") else {
        return;
    };
    let chromium = program("chromium");
    let args = [
        "--headless",
        "--isolated",
        "--no-sandbox",
        "--executable-path",
        chromium.to_str().unwrap(),
    ];
    let place = Place::new();
    place.configure(&json!({ "playwright": entry(&server, &args) }));
    let mut group = Group::meet(&place, ["here"; CLIENTS], "playwright__browser_snapshot");

    let use_browser = |client: &mut Client, tool: &str, arguments: &Value| {
        let tool = format!("playwright__browser_{tool}");
        text(&client.call(&tool, arguments).unwrap())
    };
    let began = Instant::now();
    let mut mixed_up = Vec::new();
    for page in 0..PAGES {
        let title = |number: usize| format!("page {page} of client {number}");
        group.ask(|number, client| {
            let title = title(number);
            let url = format!("data:text/html,<title>{title}</title><h1>{title}</h1>");
            use_browser(client, "navigate", &json!({ "url": url }))
        });
        for _ in 0..ANSWERS / PAGES {
            let states = group.ask(|_, client| use_browser(client, "snapshot", &json!({})));
            let states = states.into_iter().enumerate();
            mixed_up.extend(states.filter(|(number, state)| {
                let title = title(*number);
                let name = format!("Page Title: {title}\n");
                let content = format!("heading \"{title}\"");
                !state.contains(&name) || !state.contains(&content)
            }));
        }
    }
    report(ANSWERS, "states of a browser", mixed_up.len(), began);
    assert_eq!(mixed_up, []);
    let reason = "playwright-mcp keeps a browser with its pages in its process";
    group.assert_instances("playwright", "client", reason);
    group.leave();
}

#[test]
fn thoughts_of_each_client_are_counted_separately() {
    let Some(server) = needed("sequential-thinking") else {
        return;
    };
    let place = Place::new();
    place.configure(&json!({ "thinking": entry(&server, &[]) }));
    let mut group = Group::meet(&place, ["here"; CLIENTS], THINK);
    let began = Instant::now();
    let mixed_up = think(&mut group);
    report(ANSWERS, "counts of thoughts", mixed_up.len(), began);
    assert_eq!(mixed_up, []);
    let reason = "mcp-server-sequential-thinking keeps the thoughts so far in its process";
    group.assert_instances("thinking", "client", reason);
    group.leave();
}

/// Shows that the test above can fail.
#[test]
fn thoughts_are_mixed_up_in_one_process() {
    let Some(server) = needed("sequential-thinking") else {
        return;
    };
    let place = Place::new();
    let mut entry = entry(&server, &[]);
    entry["share"] = json!("all");
    place.configure(&json!({ "thinking": entry }));
    let mut group = Group::meet(&place, ["here"; CLIENTS], THINK);
    let began = Instant::now();
    let mixed_up = think(&mut group);
    report(
        ANSWERS,
        "counts of thoughts in one process",
        mixed_up.len(),
        began,
    );
    assert_ne!(mixed_up, []);
    group.leave();
}

const THINK: &str = "thinking__sequentialthinking";

/// Lets all clients think. Returns the answers that do not count the thoughts of their client alone.
fn think(group: &mut Group<'_>) -> Vec<(usize, Value)> {
    let mut mixed_up = Vec::new();
    for thought in 1..=ANSWERS {
        let total = |number: usize| ANSWERS + number;
        let answers = group.ask(|number, client| {
            let arguments = json!({
                "thought": format!("thought {thought} of client {number}"),
                "thoughtNumber": thought,
                "totalThoughts": total(number),
                "nextThoughtNeeded": true,
            });
            client.call(THINK, &arguments).unwrap()["structuredContent"].take()
        });
        let answers = answers.into_iter().enumerate();
        mixed_up.extend(answers.filter(|(number, answer)| {
            answer["thoughtHistoryLength"] != thought || answer["totalThoughts"] != total(*number)
        }));
    }
    mixed_up
}

#[test]
fn git_works_in_the_repository_of_each_client() {
    const LOG: &str = "git__git_log";
    let Some(server) = needed("git") else {
        return;
    };
    let place = Place::new();
    place.configure(&json!({ "git": entry(&server, &["--repository", "${project}"]) }));
    let mut group = Group::meet_in_projects(&place, LOG);
    let root = place.path("");
    let look = |tool: &str, client: &mut Client, project: &str| {
        let arguments = json!({ "repo_path": root.join(project) });
        client.call(tool, &arguments).unwrap()
    };
    let began = Instant::now();
    group.ask(|number, client| {
        let (own, other) = own_and_other(number);
        let log = text(&look(LOG, client, own));
        assert!(log.contains(&format!("Message: commit of {own}")), "{log}");
        assert_eq!(log.matches("Message: ").count(), 1, "{log}");
        let status = text(&look("git__git_status", client, own));
        assert!(status.contains(&format!("branch-of-{own}")), "{status}");
        assert_refused(&look(LOG, client, other), "outside the allowed repository");
    });
    // Each has looked three times, and an answer about another repository fails the test.
    report(3, "answers about repositories", 0, began);
    group.assert_instances("git", "project", "its entry contains ${project}");
    group.leave();
}

#[test]
fn files_of_other_projects_cannot_be_read() {
    const READ: &str = "filesystem__read_text_file";
    let Some(server) = needed("filesystem") else {
        return;
    };
    let place = Place::new();
    place.configure(&json!({ "filesystem": entry(&server, &["${project}"]) }));
    let mut group = Group::meet_in_projects(&place, READ);
    let root = place.path("");
    let look = |tool: &str, client: &mut Client, path: &str| {
        let arguments = json!({ "path": root.join(path) });
        client.call(tool, &arguments).unwrap()
    };
    let began = Instant::now();
    group.ask(|number, client| {
        let (own, other) = own_and_other(number);
        let list = text(&look("filesystem__list_directory", client, own));
        assert_eq!(list, format!("[DIR] .git\n[FILE] {own}.txt"));
        let notes = text(&look(READ, client, &format!("{own}/{own}.txt")));
        assert_eq!(notes, format!("notes of {own}\n"));
        let foreign = look(READ, client, &format!("{other}/{other}.txt"));
        assert_refused(&foreign, "outside allowed directories");
    });
    report(3, "answers about files", 0, began);
    group.assert_instances("filesystem", "project", "its entry contains ${project}");
    group.leave();
}

/// The project of a client, and that of the next one.
fn own_and_other(number: usize) -> (&'static str, &'static str) {
    (PROJECTS[number], PROJECTS[(number + 1) % CLIENTS])
}

/// The entry of a server with these arguments.
fn entry(server: &Installed, args: &[&str]) -> Value {
    json!({ "command": server.program(), "args": args })
}

/// The text of a result that is no error.
#[track_caller]
fn text(result: &Value) -> String {
    assert_ne!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[track_caller]
fn assert_refused(result: &Value, why: &str) {
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.to_string().contains(why), "{result}");
}

/// Prints what was checked, for the summary of `./test servers`.
fn report(answers: usize, what: &str, mixed_up: usize, began: Instant) {
    let checked = CLIENTS * answers;
    let took = began.elapsed();
    eprintln!(
        "checked: {checked} {what} for {CLIENTS} clients at once, {mixed_up} mixed up, in {took:.1?}"
    );
}

/// Clients of one gateway, on pipes and over HTTP in turn.
struct Group<'a> {
    place: &'a Place,
    gateway: Gateway<'a>,
    clients: Vec<Client>,
}

impl<'a> Group<'a> {
    /// Starts the gateway, and a client in each of these directories. Returns when they all see this tool.
    fn meet(place: &'a Place, directories: [&str; CLIENTS], tool: &str) -> Self {
        let gateway = place.serve("elsewhere");
        let mut clients = Vec::new();
        for (number, directory) in directories.iter().enumerate() {
            let mut client = match number % 2 {
                0 => place.stdio(directory),
                _ => gateway.client_in(directory),
            };
            until(&format!("client {number} sees {tool}"), || {
                let tools = client.request("tools/list", &json!({})).unwrap();
                let mut tools = tools["tools"].as_array().unwrap().iter();
                tools.any(|listed| listed["name"] == tool)
            });
            clients.push(client);
        }
        Self {
            place,
            gateway,
            clients,
        }
    }

    /// The same, with a repository for each client.
    fn meet_in_projects(place: &'a Place, tool: &str) -> Self {
        for project in PROJECTS {
            place.repository(project);
        }
        Self::meet(place, PROJECTS, tool)
    }

    /// Lets all clients work at the same time, and returns when all are done.
    fn ask<T: Send>(&mut self, work: impl Fn(usize, &mut Client) -> T + Sync) -> Vec<T> {
        let work = &work;
        thread::scope(|scope| {
            let clients = self.clients.iter_mut().enumerate();
            let threads: Vec<_> = clients
                .map(|(number, client)| scope.spawn(move || work(number, client)))
                .collect();
            let ended = threads.into_iter().map(|thread| thread.join().unwrap());
            ended.collect()
        })
    }

    /// Checks the decision of the gateway, and that each client has an instance.
    #[track_caller]
    fn assert_instances(&self, name: &str, sharing: &str, reason: &str) {
        let server = self.gateway.server(name);
        assert_eq!(server["sharing"], sharing, "{server}");
        assert_eq!(server["sharingReason"], reason, "{server}");
        let instances = server["instances"].as_array().unwrap();
        assert_eq!(instances.len(), CLIENTS, "{server}");
    }

    /// Ends all, and checks that no definition is held and no process is left.
    #[track_caller]
    fn leave(self) {
        let held = self.place.held();
        assert!(held.is_empty(), "{}", held.join("\n"));
        for client in self.clients {
            client.leave();
        }
        self.gateway.stop();
    }
}
