//! Servers that crash, without effects that their clients would have to handle.

use serde_json::{Value, json};
use switchboard_test_support::{Serve, until};

use crate::{
    client::{Client, Reason, Setup, check},
    features::{UPDATED, WATCHED, counted, listen, logged_number},
    revision::{
        Revision::{self, Jul2026, Nov2025},
        Side, Way,
    },
    rig::{NAME, Upstream, home, through},
};

fn side(revision: Revision, way: Way) -> Side {
    Side { revision, way }
}

/// Runs `act` with a gateway in front of a server.
#[track_caller]
fn with_gateway(
    server: Side,
    more: &[&str],
    act: impl FnOnce(&Serve<'_>, Upstream) -> Result<(), Reason>,
) {
    let upstream = Upstream::start(server, more);
    let home = home(&upstream);
    let serve = home.serve();
    serve.until_known(NAME);
    let judged = act(&serve, upstream);
    judged.unwrap_or_else(|reason| panic!("in front of {server}: {reason}"));
    serve.stop();
}

fn open(serve: &Serve<'_>, client: Side, server: Side) -> Result<Client, Reason> {
    let setup = Setup {
        log_level: Some("info"),
        ..Setup::able(client)
    };
    Client::open(&through(serve), server, setup)
}

/// Subscribes to the watched resource.
fn watch(client: &mut Client) -> Result<(), Reason> {
    if client.is_modern() {
        listen(client, json!({ "resourceSubscriptions": [WATCHED] }))?;
    } else {
        client.result("resources/subscribe", json!({ "uri": WATCHED }))?;
    }
    Ok(())
}

/// Makes the server report changes of the resource until the client receives one.
fn hears(client: &mut Client, other: &mut Client) {
    let from = client.now();
    until("the update arrives", || {
        other.call("test_update_watched", json!({})).ok()?;
        // A response to the client itself comes after everything that was sent before it.
        client.text("test_simple_text", json!({})).ok()?;
        let mut since = client.seen[from..].iter();
        since
            .any(|seen| seen.is_notification(UPDATED))
            .then_some(())
    });
}

const WATCHERS: [Side; 4] = [
    Side {
        revision: Nov2025,
        way: Way::Http,
    },
    Side {
        revision: Nov2025,
        way: Way::Pipe,
    },
    Side {
        revision: Jul2026,
        way: Way::Http,
    },
    Side {
        revision: Jul2026,
        way: Way::Pipe,
    },
];

fn crash(client: &mut Client) -> Result<(), Reason> {
    let answer = client.ask(
        "tools/call",
        json!({ "name": "test_crash", "arguments": {} }),
    )?;
    let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
    check!(failed, "it did not crash: {answer}");
    // The next call waits until the server is ready again.
    until("the server is back", || {
        client.text("test_simple_text", json!({})).ok()
    });
    Ok(())
}

/// The numbers of the messages of a small burst.
fn logged(client: &mut Client) -> Result<Vec<u64>, Reason> {
    let from = client.now();
    client.call("test_log_burst", json!({ "count": 3 }))?;
    let seen = client.seen[from..].iter();
    let notes = seen.filter(|seen| seen.is_notification("notifications/message"));
    Ok(notes
        .filter_map(|seen| logged_number(seen.params()))
        .collect())
}

fn survives_a_crash(revision: Revision) {
    let server = side(revision, Way::Pipe);
    with_gateway(server, &[], |serve, _| {
        let mut killer = open(serve, side(Nov2025, Way::Http), server)?;
        let mut watchers = Vec::new();
        for watcher in WATCHERS {
            let mut watcher = open(serve, watcher, server)?;
            watch(&mut watcher)?;
            hears(&mut watcher, &mut killer);
            watchers.push(watcher);
        }
        crash(&mut killer)?;
        for watcher in &mut watchers {
            hears(watcher, &mut killer);
            let logged = logged(watcher)?;
            check!(logged == [1, 2, 3], "of three messages came {logged:?}");
        }
        Ok(())
    });
}

#[test]
fn clients_do_not_notice_older_server_crash() {
    survives_a_crash(Nov2025);
}

#[test]
fn clients_do_not_notice_newer_server_crash() {
    survives_a_crash(Jul2026);
}

/// The number of subscriptions that the server received, in either form.
fn subscribed(client: &mut Client) -> Result<(u64, u64), Reason> {
    let subscribe = counted(client, "resources/subscribe")?;
    let listen = counted(client, "subscriptions/listen")?;
    Ok((subscribe, listen))
}

fn subscribes_once(revision: Revision) {
    for way in [Way::Pipe, Way::Http] {
        let server = side(revision, way);
        with_gateway(server, &[], |serve, _| {
            let mut witness = open(serve, side(Nov2025, Way::Http), server)?;
            let mut watchers = Vec::new();
            let mut first = None;
            for watcher in WATCHERS.iter().chain(&WATCHERS) {
                let mut watcher = open(serve, *watcher, server)?;
                watch(&mut watcher)?;
                hears(&mut watcher, &mut witness);
                let counts = subscribed(&mut witness)?;
                let wanted = *first.get_or_insert(counts);
                check!(
                    counts == wanted,
                    "{counts:?} subscriptions after {wanted:?}"
                );
                watchers.push(watcher);
            }
            for watcher in &mut watchers {
                hears(watcher, &mut witness);
            }
            Ok(())
        });
    }
}

#[test]
fn older_server_gets_one_subscription_for_all_clients() {
    subscribes_once(Nov2025);
}

#[test]
fn newer_server_gets_one_stream_for_all_clients() {
    subscribes_once(Jul2026);
}

#[test]
fn lists_are_served_while_the_server_is_down() {
    for revision in [Nov2025, Jul2026] {
        let server = side(revision, Way::Http);
        with_gateway(server, &[], |serve, upstream| {
            let mut clients = Vec::new();
            for client in WATCHERS {
                clients.push(open(serve, client, server)?);
            }
            drop(upstream);
            let lists = [
                ("tools/list", "tools"),
                ("prompts/list", "prompts"),
                ("resources/list", "resources"),
                ("resources/templates/list", "resourceTemplates"),
            ];
            for client in &mut clients {
                for (method, member) in lists {
                    let result = client.result(method, json!({}))?;
                    let length = result[member].as_array().map_or(0, Vec::len);
                    check!(length > 0, "{}: {method}: {result}", client.setup.side);
                }
            }
            Ok(())
        });
    }
}

/// The number of requests that reached the server while the clients made each five times.
fn asked(ttl: &str, scope: &str) -> Value {
    let server = side(Jul2026, Way::Http);
    let mut found = json!({});
    with_gateway(server, &["--ttl", ttl, "--scope", scope], |serve, _| {
        let mut witness = open(serve, side(Jul2026, Way::Http), server)?;
        let requests = [
            ("resources/read", json!({ "uri": "test://static-text" })),
            ("tools/list", json!({})),
        ];
        for (method, params) in requests {
            let before = counted(&mut witness, method)?;
            for client in WATCHERS.iter().chain(&[side(Jul2026, Way::Http)]) {
                let mut client = open(serve, *client, server)?;
                let result = client.result(method, params.clone())?;
                check!(result.is_object(), "{result}");
            }
            found[method] = json!(counted(&mut witness, method)? - before);
        }
        Ok(())
    });
    found
}

#[test]
fn cacheable_results_are_requested_once() {
    assert_eq!(
        asked("60000", "public"),
        json!({ "resources/read": 1, "tools/list": 0 })
    );
}

#[test]
fn uncacheable_results_are_read_each_time() {
    let asked = asked("0", "private");
    assert_eq!(asked["resources/read"], 5);
}
