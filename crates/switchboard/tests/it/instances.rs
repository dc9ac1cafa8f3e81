//! Instances of a server on the command line: the tree in `list` and `status`, their logs and restarts, and the choice
//! that `add` explains.

use std::fs;

use serde_json::json;
use switchboard_test_support::until;

use crate::support::{Client, Gateway, Place, json};

/// The clients, with the project of each.
const CLIENTS: [(&str, &str); 2] = [("claude-code", "shop"), ("codex", "blog")];

/// A server with a process for each client, and one with a process for each project.
pub(crate) fn config(place: &Place) -> String {
    let [command, args @ ..] = place.echo();
    let entry = |share: &str| json!({ "command": command, "args": args, "share": share });
    let config = json!({
        "listen": "127.0.0.1:0",
        "memory": { "enabled": false },
        "mcpServers": { "own": entry("client"), "shared": entry("project") },
    });
    config.to_string()
}

/// Two clients that have used both servers of the running gateway.
pub(crate) fn clients(place: &Place) -> [Client; 2] {
    until("both are known", || {
        let listed = json(place, &["list", "--json"]);
        let servers = listed["servers"].as_array().unwrap();
        servers.iter().all(|server| server["tools"] == 2)
    });
    CLIENTS.map(|(name, project)| {
        let dir = place.path().join(project);
        fs::create_dir(&dir).unwrap();
        let mut command = place.command(&["stdio"]);
        command.current_dir(dir);
        let mut client = Client::start(command, name);
        for server in ["own", "shared"] {
            client.call(&format!("{server}__say"), &json!({}));
        }
        client
    })
}

/// Starts a gateway with clients that have used its servers.
fn used(place: &Place) -> (Gateway, [Client; 2]) {
    place.write_config(&config(place));
    let gateway = Gateway::start(place, &[]);
    (gateway, clients(place))
}

/// The instances of a server, as numbers.
fn numbers(place: &Place, server: &str) -> Vec<u64> {
    let listed = json(place, &["list", "--json"]);
    let servers = listed["servers"].as_array().unwrap().iter();
    let server = servers.clone().find(|listed| listed["name"] == server);
    let instances = server.unwrap()["instances"].as_array();
    let instances = instances.into_iter().flatten();
    instances
        .map(|instance| instance["number"].as_u64().unwrap())
        .collect()
}

/// The starts that the log of a server or an instance has.
fn starts(place: &Place, name: &str) -> usize {
    let done = place.run(&["logs", name]);
    assert_eq!(done.code, Some(0), "{done:?}");
    done.out.matches("] echo is here\n").count()
}

#[test]
fn instances_are_shown_under_their_server() {
    let place = Place::new();
    let (_gateway, clients) = used(&place);
    let tree = "\
NAME        STATE  TOOLS  KIND     TARGET
own         ready  2      command  python3 DIR/echo.py
  own/1     ready                  claude-code in DIR/shop
  own/2     ready                  codex in DIR/blog
shared      ready  2      command  python3 DIR/echo.py
  shared/1  ready                  in DIR/shop
  shared/2  ready                  in DIR/blog
";
    place.check(&["list"], 0, tree, "");
    let status = place.run(&["status"]);
    assert!(status.out.ends_with(&format!("\n\n{tree}")), "{status:?}");
    // A client that leaves takes its own instance along; that of its project stays.
    let [_first, second] = clients;
    second.leave();
    until("its instance has ended", || numbers(&place, "own") == [1]);
    assert_eq!(numbers(&place, "shared"), [1, 2]);
}

#[test]
fn log_of_an_instance_has_its_lines_only() {
    let place = Place::new();
    let (gateway, clients) = used(&place);
    let of = |name: &str| {
        let done = place.run(&["logs", name]);
        assert_eq!((done.code, &*done.err), (Some(0), ""), "{name}");
        let lines = done.out.lines().map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    for id in ["own/1", "own/2"] {
        until("its call is logged", || {
            of(id).iter().any(|line| line.ends_with("called say"))
        });
    }
    let all = of("own");
    for number in [1, 2] {
        let mark = format!("Z [{number}] ");
        let its: Vec<_> = all.iter().filter(|line| line.contains(&mark)).collect();
        let lines = of(&format!("own/{number}"));
        assert_eq!(lines.iter().collect::<Vec<_>>(), its, "{all:#?}");
        for expected in ["echo is here", "called say"] {
            let count = lines.iter().filter(|line| line.ends_with(expected)).count();
            assert_eq!(count, 1, "{lines:#?}");
        }
        let last = place.run(&["logs", &format!("own/{number}"), "-n", "1"]);
        assert_eq!(last.out.trim_end(), lines[lines.len() - 1]);
    }
    // The instance from which the gateway fetched the lists has no number.
    assert!(all[0].contains("Z [switchboard] "), "{all:#?}");
    place.check(
        &["logs", "own/99"],
        1,
        "",
        "error: server `own` has no instance 99\nhint: `switchboard list` shows the instances\n",
    );
    let before = of("own/1");
    drop((clients, gateway));

    // The same from the file; the end of the client may have added to it.
    let lines = of("own/1");
    assert!(lines.starts_with(&before), "{lines:#?}");
    let json = json(&place, &["logs", "own/1", "--json"]);
    assert_eq!(json["lines"], json!(lines));
    assert_eq!(of("own/99"), [""; 0]);
    place.check(
        &["logs", "own/x"],
        2,
        "",
        "error: `x` is not the number of an instance\nhint: `switchboard list` shows the instances as NAME/NUMBER\n",
    );
    place.check(
        &["logs", "none/1"],
        1,
        "",
        "error: there is no server `none`\nhint: `switchboard list` shows the names\n",
    );
}

#[test]
fn one_instance_is_restarted() {
    let place = Place::new();
    let (gateway, [mut first, second]) = used(&place);
    for id in ["own/1", "own/2"] {
        until("its start is logged", || starts(&place, id) == 1);
    }
    place.check(&["restart", "own/1"], 0, "", "restarted `own/1`\n");
    until("it has started again", || starts(&place, "own/1") == 2);
    assert_eq!(starts(&place, "own/2"), 1);
    assert_eq!(numbers(&place, "own"), [1, 2]);
    place.check(
        &["restart", "own/x"],
        2,
        "",
        "error: `x` is not the number of an instance\nhint: `switchboard list` shows the instances as NAME/NUMBER\n",
    );
    place.check(
        &["restart", "own/99"],
        1,
        "",
        "error: server `own` has no instance 99\nhint: `switchboard list` shows the instances\n",
    );
    place.check(
        &["restart", "none/1"],
        1,
        "",
        "error: there is no server `none`\nhint: `switchboard list` shows the names\n",
    );
    place.check(
        &["restart", "own"],
        0,
        "",
        "stopped the instances of `own`; each starts again when it is used\n",
    );
    assert_eq!(numbers(&place, "own"), [0; 0]);
    first.call("own__say", &json!({}));
    assert_eq!(numbers(&place, "own"), [3]);
    drop((first, second, gateway));
    place.check(
        &["restart", "own/1"],
        3,
        "",
        "error: no gateway is running for DIR/home/switchboard.json\nhint: start one with `switchboard serve`\n",
    );
}

#[test]
fn tools_are_listed_in_the_current_project() {
    let place = Place::new();
    let [command, args @ ..] = place.echo();
    let entry = json!({ "command": command, "args": args, "env": { "ROOT": "${project}" } });
    let config = json!({ "memory": { "enabled": false }, "mcpServers": { "git": entry } });
    place.write_config(&config.to_string());
    let _gateway = Gateway::start(&place, &[]);
    let dir = place.path().join("shop");
    fs::create_dir(&dir).unwrap();
    let mut command = place.command(&["tools", "git"]);
    let listed = command.current_dir(dir).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("git:say"), "{listed}");
}

#[test]
fn add_explains_who_shares_an_instance() {
    let place = Place::new();
    for (name, args, because) in [
        (
            "browser",
            &["--", "npx", "-y", "@playwright/mcp@latest"][..],
            Some(
                "@playwright/mcp keeps a browser with its pages in its process, so each client gets",
            ),
        ),
        (
            "git",
            &["--", "git-mcp", "--repository", "${project}"],
            Some("its entry contains ${project}, so each directory that clients work in gets"),
        ),
        (
            "docs",
            &["https://example.com/mcp?repo=${project.name}"],
            Some("its entry contains ${project.name}, so each directory that clients work in gets"),
        ),
        (
            "notes",
            &["--env", "WHO=${client}", "--", "notes-mcp", "${project}"],
            Some("its entry contains ${client}, so each client gets"),
        ),
        ("plain", &["--", "plain-mcp"], None),
        ("chosen", &["--share", "all", "--", "playwright-mcp"], None),
    ] {
        let said = because.map(|because| {
            format!("hint: {because} an instance of its own; --share sets another way\n")
        });
        let said = format!("added `{name}`\n{}", said.unwrap_or_default());
        place.check(&[&["add", name], args].concat(), 0, "", &said);
    }
    let files = [
        "--",
        "npx",
        "-y",
        "@modelcontextprotocol/server-filesystem@1",
        "/data",
    ];
    place.check(
        &[&["add", "files", "--share", "project"][..], &files].concat(),
        0,
        "",
        "added `files`\nhint: the server works in the roots of its client, or else in its project, instead of the directories in its entry\n",
    );
    place.check(
        &[&["add", "shared"][..], &files].concat(),
        0,
        "",
        "added `shared`\n",
    );
    place.check(
        &["add", "typo", "--", "git-mcp", "${projct}"],
        2,
        "",
        "error: cannot add the server `typo`: unknown reference \"${projct}\"\nhint: did you mean ${project}?\n",
    );
}
