//! Notifications of one call do not reach the callers of another.

use serde_json::json;
use switchboard_test_support::Serve;

use super::{MODERN, MODERN_PIPE, OLDER, OLDER_PIPE, at_work, open, with_gateway};
use crate::{
    client::{Client, Reason, Setup, check},
    features::logged_number,
    revision::Side,
    rig::through,
};

const MESSAGE: &str = "notifications/message";
const PROGRESS: &str = "notifications/progress";

/// The number of progress notifications of a call of the other client.
const REPORTS: usize = 7;
/// More than the highest internal token of any connection in a test when the victim calls.
const GUESSES: u64 = 100;

fn stays_with_its_call(server: Side) {
    with_gateway(server, json!({}), |serve| {
        let mut victim = open(serve, server, OLDER)?;
        let mut other = open(serve, server, OLDER)?;
        let waiting = at_work(&mut victim)?;
        let from = other.now();
        for token in 0..GUESSES {
            let params = format!(
                r#"{{"name":"test_progress_burst","arguments":{{"count":{REPORTS}}},"_meta":{{"progress\u0054oken":{token}}}}}"#
            );
            let sent = other.send_text("tools/call", &params, Vec::new())?;
            let answer = other.wait(&sent)?;
            check!(answer["result"].is_object(), "{answer}");
        }
        victim.result("ping", json!({}))?;
        victim.cancel(&waiting)?;
        let told = victim.seen.iter();
        let told = told.filter(|seen| seen.is_notification(PROGRESS)).count();
        check!(told == 1, "{told} reports in place of one");

        // The gateway recognizes the token, although its key is spelled with an escape.
        let told = other.seen[from..].iter();
        let told = told.filter(|seen| seen.is_notification(PROGRESS));
        let told: Vec<_> = told
            .filter_map(|seen| seen.params()["progressToken"].as_u64())
            .collect();
        let wanted = (0..GUESSES).flat_map(|token| [token; REPORTS]);
        check!(told.iter().copied().eq(wanted), "told of {told:?}");
        Ok(())
    });
}

#[test]
fn progress_stays_with_its_call() {
    for server in [OLDER_PIPE, MODERN_PIPE] {
        stays_with_its_call(server);
    }
}

/// A client that wants all log messages.
fn keen(serve: &Serve<'_>, is_stranger: bool) -> Result<Client, Reason> {
    let mut place = through(serve);
    if is_stranger {
        place.token = None;
    }
    let setup = Setup {
        log_level: Some("debug"),
        ..Setup::able(OLDER)
    };
    Client::open(&place, OLDER_PIPE, setup)
}

fn messages(client: &Client) -> Vec<u64> {
    let seen = client.seen.iter();
    let messages = seen.filter(|seen| seen.is_notification(MESSAGE));
    let numbers = messages.filter_map(|seen| logged_number(seen.params()));
    numbers.collect()
}

/// Makes the server log, and waits until each client has received something that was sent after it.
fn log(keen: &mut Client, others: &mut [&mut Client]) -> Result<(), Reason> {
    let from: Vec<_> = others.iter().map(|other| other.now()).collect();
    keen.call("test_log_burst", json!({ "count": 3 }))?;
    keen.call("test_trigger_tool_change", json!({}))?;
    for (other, from) in others.iter_mut().zip(from) {
        if !other.is_modern() {
            other.until_told(from, "notifications/tools/list_changed")?;
        }
        other.result("tools/list", json!({}))?;
    }
    Ok(())
}

#[test]
fn log_messages_reach_only_the_caller() {
    let config = json!({ "auth": { "mcp": "none" } });
    with_gateway(OLDER_PIPE, config, |serve| {
        let mut caller = keen(serve, false)?;
        let mut older = open(serve, OLDER_PIPE, OLDER)?;
        let mut modern = open(serve, OLDER_PIPE, MODERN)?;
        // A client that asked for log messages, but is not the caller.
        let mut stranger = keen(serve, true)?;

        // First one call, to which every message belongs; then several, so that it is not clear to which;
        // then one of each client.
        log(&mut caller, &mut [&mut older, &mut modern, &mut stranger])?;
        let heard = messages(&caller);
        check!(heard == [1, 2, 3], "who called heard {heard:?}");
        let own = at_work(&mut caller)?;
        log(&mut caller, &mut [&mut older, &mut modern, &mut stranger])?;
        caller.cancel(&own)?;
        let calls = [at_work(&mut older)?, at_work(&mut modern)?];
        log(&mut caller, &mut [&mut older, &mut modern, &mut stranger])?;
        for (client, call) in [&mut older, &mut modern].into_iter().zip(&calls) {
            client.cancel(call)?;
        }
        for (who, client) in [("older", older), ("modern", modern), ("stranger", stranger)] {
            let heard = messages(&client);
            check!(heard.is_empty(), "{who} heard {heard:?}");
        }
        Ok(())
    });
}
