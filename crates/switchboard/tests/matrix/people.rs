//! The user answers questions of a server inside a call if its client cannot: in every pair of revisions.

use std::{collections::VecDeque, sync::Mutex, thread};

use serde_json::{Value, json};
use switchboard_test_support::{Serve, until};

use crate::{
    client::{Client, Reason, Setup, call_of, check, text_of},
    revision::{Revision, Side, Way},
    rig::{NAME, Upstream, home_with, through},
};

/// At least one client of each revision, and of each transport.
const CLIENTS: [Side; 7] = [
    side(Revision::Nov2024, Way::Sse),
    side(Revision::Mar2025, Way::Http),
    side(Revision::Jun2025, Way::Http),
    side(Revision::Jun2025, Way::Pipe),
    side(Revision::Nov2025, Way::Http),
    side(Revision::Jul2026, Way::Http),
    side(Revision::Jul2026, Way::Pipe),
];

const fn side(revision: Revision, way: Way) -> Side {
    Side { revision, way }
}

#[test]
fn user_answers_in_every_pair_of_revisions() {
    let queue: Mutex<VecDeque<_>> = Mutex::new(Side::all().collect());
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(server) = { queue.lock().unwrap().pop_front() } {
                    let found = in_front_of(server);
                    failures.lock().unwrap().extend(found);
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn in_front_of(server: Side) -> Vec<String> {
    let upstream = Upstream::start(server, &[]);
    // In its own view, a server of 2026-07-28 sees the client's capabilities and asks for nothing else,
    // unless the route sends every question to the user.
    let route = if server.revision == Revision::Jul2026 {
        "human"
    } else {
        "auto"
    };
    let approvals = json!({ "notify": "off", "route": route });
    let home = home_with(&upstream, json!({ "approvals": approvals }));
    let serve = home.serve();
    serve.until_known(NAME);
    let mut failures = Vec::new();
    for client in CLIENTS {
        if let Err(reason) = asked(&serve, client, server) {
            failures.push(format!("client {client}, server {server}: {reason}"));
        }
    }
    serve.stop();
    failures
}

fn asked(serve: &Serve<'_>, client: Side, server: Side) -> Result<(), Reason> {
    let mut client = Client::open(&through(serve), server, Setup::mute(client))?;
    let call = call_of("test_sampling", json!({ "prompt": "Say something." }));
    let text = answered(
        serve,
        &mut client,
        &call,
        json!({ "text": "A person says so." }),
    )?;
    check!(text.contains("A person says so."), "sampling: {text}");
    if server.revision >= Revision::Jun2025 {
        let call = call_of("test_elicitation", json!({ "message": "Who goes there?" }));
        let content = json!({ "username": "ada", "email": "ada@example.org" });
        let filled = json!({ "action": "accept", "content": content });
        let text = answered(serve, &mut client, &call, filled)?;
        check!(
            text.contains("accept") && text.contains("ada@example.org"),
            "elicitation: {text}"
        );
        let text = answered(serve, &mut client, &call, json!({ "action": "decline" }))?;
        check!(text.contains("decline"), "elicitation: {text}");
    }
    check!(client.asked.is_empty(), "it was asked {:?}", client.asked);
    Ok(())
}

/// Makes a call, answers it as the user, and returns the text of the result.
fn answered(
    serve: &Serve<'_>,
    client: &mut Client,
    call: &Value,
    answer: Value,
) -> Result<String, Reason> {
    let sent = client.send("tools/call", call.clone())?;
    let mut http = serve.http();
    let id = until("somebody is asked", || {
        let list = http.get("/api/v1/approvals?status=pending").json();
        list["approvals"][0]["id"].as_str().map(str::to_owned)
    });
    if client.is_modern() {
        // The client is not kept waiting: it gets its response before the user answers.
        let away = client.wait(&sent)?;
        let required = &away["result"];
        check!(required["resultType"] == "input_required", "{away}");
        check!(required["requestState"].is_string(), "{away}");
        check!(required["inputRequests"].is_null(), "{away}");
    }
    let path = format!("/api/v1/approvals/{id}/respond");
    let decided = http.ask("POST", &path, &[], answer.to_string().as_bytes());
    check!(decided.status == 200, "{}", decided.text());
    let mut last = client.wait(&sent)?;
    for _ in 0..5 {
        if last["result"]["resultType"] != "input_required" {
            break;
        }
        let mut again = call.clone();
        again["requestState"] = last["result"]["requestState"].clone();
        last = client.ask("tools/call", again)?;
    }
    match text_of(&last["result"]) {
        Some(text) if last["result"]["isError"] != true => Ok(text.to_owned()),
        _ => Err(last.to_string()),
    }
}
