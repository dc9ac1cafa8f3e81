//! Fifty calls at once, each with four hundred notifications: those of each call arrive complete, in order
//! and before its response.

use std::collections::HashMap;

use serde_json::json;

use crate::{
    client::{Client, Reason, Sent, Setup, call_of, check, with_progress},
    features::logged_number,
    revision::{Revision, Side, Way},
    rig::{NAME, Upstream, home, through},
};

const CALLS: u64 = 50;
const COUNT: u64 = 200;

/// One client for each way of telling streams apart.
const CLIENTS: [Side; 3] = [
    Side {
        revision: Revision::Nov2025,
        way: Way::Pipe,
    },
    Side {
        revision: Revision::Nov2025,
        way: Way::Http,
    },
    Side {
        revision: Revision::Jul2026,
        way: Way::Http,
    },
];

#[test]
fn older_server_on_a_pipe_keeps_order() {
    in_order(Revision::Nov2025, Way::Pipe);
}

#[test]
fn newer_server_on_a_pipe_keeps_order() {
    in_order(Revision::Jul2026, Way::Pipe);
}

#[test]
fn older_server_over_http_keeps_order() {
    in_order(Revision::Nov2025, Way::Http);
}

#[test]
fn newer_server_over_http_keeps_order() {
    in_order(Revision::Jul2026, Way::Http);
}

fn in_order(revision: Revision, way: Way) {
    let server = Side { revision, way };
    let upstream = Upstream::start(server, &[]);
    let home = home(&upstream);
    let serve = home.serve();
    serve.until_known(NAME);
    for side in CLIENTS {
        let setup = Setup {
            log_level: Some("debug"),
            ..Setup::able(side)
        };
        let judged = Client::open(&through(&serve), server, setup).and_then(|mut client| {
            let sent = flood(&mut client)?;
            judge(&client, &sent)
        });
        judged.unwrap_or_else(|reason| panic!("{side} in front of {server}: {reason}"));
    }
    serve.stop();
}

/// Makes all calls at once, and waits for all responses.
fn flood(client: &mut Client) -> Result<Vec<Sent>, Reason> {
    let mut all = Vec::new();
    for call in 0..CALLS {
        let params = call_of("test_both_burst", json!({ "count": COUNT }));
        let token = json!(format!("call-{call}"));
        all.push(client.send("tools/call", with_progress(params, &token))?);
    }
    for sent in &all {
        let answer = client.wait(sent)?;
        check!(answer["result"]["isError"].is_null(), "{answer}");
        check!(answer["result"].is_object(), "{answer}");
    }
    Ok(all)
}

fn judge(client: &Client, all: &[Sent]) -> Result<(), Reason> {
    // The progress of each call, by its token and, if it has a stream of its own, by that.
    let mut progress: HashMap<String, u64> = HashMap::new();
    let mut logged: HashMap<u64, u64> = HashMap::new();
    let mut answered = 0;
    let has_streams = client.way() == Way::Http;
    let tells_logs = client.server.way == Way::Http;
    let streams: HashMap<_, _> = all.iter().map(|sent| (sent.stream, sent)).collect();
    let calls: HashMap<_, _> = all
        .iter()
        .enumerate()
        .map(|(call, sent)| (sent.id.to_string(), format!("call-{call}")))
        .collect();
    for seen in &client.seen {
        if seen.is_notification("notifications/progress") {
            let params = seen.params();
            let token = params["progressToken"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            if has_streams {
                let sent = streams
                    .get(&seen.stream)
                    .ok_or("progress on a stream of no call")?;
                let owner = &calls[&sent.id.to_string()];
                check!(
                    token == *owner,
                    "progress of {token} on the stream of {owner}"
                );
            }
            let last = progress.entry(token.clone()).or_default();
            let next = params["progress"].as_u64().unwrap_or_default();
            check!(next == *last + 1, "{token}: {next} came after {last}");
            *last = next;
        } else if seen.is_notification("notifications/message") && has_streams && tells_logs {
            check!(
                streams.contains_key(&seen.stream),
                "a message on a stream of no call"
            );
            let last = logged.entry(seen.stream).or_default();
            let next = logged_number(seen.params()).unwrap_or_default();
            check!(next == *last + 1, "message {next} came after {last}");
            *last = next;
        } else if let Some(call) = seen.answers().and_then(|id| calls.get(&id)) {
            let reports = progress.get(call).copied().unwrap_or_default();
            check!(
                reports == COUNT,
                "{call} was answered after {reports} of {COUNT} reports"
            );
            if has_streams && tells_logs {
                let messages = logged.get(&seen.stream).copied().unwrap_or_default();
                check!(messages == COUNT, "{call}: {messages} of {COUNT} messages");
            }
            answered += 1;
        }
    }
    check!(answered == CALLS, "{answered} answers");
    if !has_streams && tells_logs {
        let messages = client.seen.iter();
        let messages = messages.filter(|seen| seen.is_notification("notifications/message"));
        let count = messages.count() as u64;
        check!(
            count == CALLS * COUNT,
            "{count} of {} messages",
            CALLS * COUNT
        );
    }
    Ok(())
}
