//! Each server on its own.

use serde_json::{Value, json};
use switchboard_test_support::until;

use crate::{
    client::{Answer, Client},
    offers::{Offers, first_difference},
    place::{Gateway, Place},
    table::{all_installed, installed},
};

/// A test for each of these servers, under its name.
macro_rules! servers {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(&stringify!($name).replace('_', "-"));
        })*

        #[test]
        fn every_server_has_a_test() {
            let tests = [$(stringify!($name)),*];
            let tests: Vec<_> = tests.iter().map(|test| test.replace('_', "-")).collect();
            assert_eq!(tests, crate::table::names());
        }
    };
}

servers! {
    alchemy arxiv atlassian awsdocs blender calculator chart chrome_devtools clickhouse context7
    duckduckgo dynamodb elasticsearch everything excel fetch figma filesystem git gitlab jupyter kubectl kubernetes
    markitdown memory mobile mongodb motherduck n8n obsidian playwright redis sequential_thinking sqlite time
    wikipedia word
}

/// The fewest servers for a meaningful run: if more are skipped, a registry must be out of reach.
const ENOUGH: usize = 25;

#[test]
fn enough_servers_are_installed() {
    if let Some(servers) = all_installed() {
        let count = servers.len();
        assert!(count >= ENOUGH, "only {count} servers are installed");
    }
}

/// The offers of a server, and its response to a call.
struct Seen {
    offers: Offers,
    answer: Answer,
}

fn check(name: &str) {
    let Some(server) = installed(name) else {
        return;
    };
    let place = Place::new();
    let work = place.work();
    place.configure(&json!({ name: server.entry(&work) }));
    let (tool, arguments) = server.call(&work);
    let exposed = format!("{name}__{tool}");
    let look = |client: &mut Client, tool: &str| Seen {
        offers: Offers::of(client),
        answer: client.call(tool, &arguments),
    };
    let mut problems = Vec::new();

    let gateway = place.serve("here");
    until_learnt(&gateway, name);
    let through = look(&mut gateway.client(name), tool);
    let mut client = place.stdio("here");
    let mixed = look(&mut client, &exposed);
    client.leave();
    problems.extend(note("at first", place.held()));
    gateway.stop();

    let mut client = place.start(&server);
    let direct = look(&mut client, tool);
    client.kill();
    place.assert_nobody();
    assert!(!direct.offers.tools().is_empty(), "no tools");

    let at = format!("at /mcp/s/{name}");
    problems.extend(note(&at, through.offers.differences(&direct.offers)));
    problems.extend(note(&at, differs(&through.answer, &direct.answer)));
    let (own, refused) = mixed.offers.of_server(name, &direct.offers);
    problems.extend(note("in the direct view", refused));
    problems.extend(note("in the direct view", own.differences(&direct.offers)));
    problems.extend(note(
        "in the direct view",
        differs(&mixed.answer, &direct.answer),
    ));

    let gateway = place.serve("elsewhere");
    let mut client = gateway.client(name);
    let answer = client.call(tool, &arguments);
    problems.extend(note("after a restart", differs(&answer, &direct.answer)));
    settle(&mut client, tool, &arguments, &direct.offers);
    let offers = Offers::of(&mut client);
    problems.extend(note("after a restart", offers.differences(&direct.offers)));
    problems.extend(note("after a restart", place.held()));
    gateway.stop();

    // Now the directory of the server is another one, and so is the client's.
    place.move_home();
    let mut client = place.stdio("project");
    let answer = client.call(&exposed, &arguments);
    problems.extend(note("elsewhere", differs(&answer, &direct.answer)));
    settle(&mut client, &exposed, &arguments, &mixed.offers);
    problems.extend(note("elsewhere", place.held()));
    client.leave();
    place.assert_nobody();

    assert!(problems.is_empty(), "{name}:\n{}", problems.join("\n"));
}

#[track_caller]
fn until_learnt(gateway: &Gateway<'_>, name: &str) {
    until(&format!("{name} is learnt"), || {
        let servers = gateway.servers();
        let server = servers.iter().find(|server| server["name"] == name)?;
        assert_ne!(server["state"], "parked", "{server}");
        gateway.has_learnt(server).then_some(())
    });
}

/// Waits until every list of the running server has been judged: no request passes before that.
fn settle(client: &mut Client, tool: &str, arguments: &Value, offers: &Offers) {
    let call = json!({ "name": tool, "arguments": arguments });
    until_taken(client, "tools/call", &call);
    if let Some(prompt) = offers.prompts().first() {
        until_taken(client, "prompts/get", &json!({ "name": prompt["name"] }));
    }
    for uri in offers.uris() {
        until_taken(client, "resources/read", &json!({ "uri": uri }));
    }
}

/// Repeats a request until the server, and not the gateway, decides on it.
fn until_taken(client: &mut Client, method: &str, params: &Value) {
    until(&format!("{method} reaches the server"), || {
        let answer = client.request(method, params);
        let is_early = answer.is_err_and(|error| error["data"].get("retryAfterMs").is_some());
        (!is_early).then_some(())
    });
}

fn differs(answer: &Answer, direct: &Answer) -> Vec<String> {
    let whole = |answer: &Answer| match answer {
        Ok(result) => json!({ "result": result }),
        Err(error) => json!({ "error": error }),
    };
    let (answer, direct) = (whole(answer), whole(direct));
    let difference = (answer != direct).then(|| first_difference(&answer, &direct));
    let difference = difference.map(|place| format!("the answer differs: {place}"));
    difference.into_iter().collect()
}

fn note(when: &str, problems: Vec<String>) -> impl Iterator<Item = String> {
    problems
        .into_iter()
        .map(move |problem| format!("{when}: {problem}"))
}
