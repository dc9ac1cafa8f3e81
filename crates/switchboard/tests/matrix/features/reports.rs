//! Notifications during a call, and its cancellation.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    client::{Arrival, Client, PATIENCE, Reason, Sent, Setup, call_of, check, with_progress},
    revision::{Revision, Way},
};

const MESSAGE: &str = "notifications/message";
const PROGRESS: &str = "notifications/progress";

/// The arrivals between a request and its response.
struct Heard {
    sent: Sent,
    from: usize,
    answer: usize,
}

fn run(client: &mut Client, params: Value) -> Result<Heard, Reason> {
    let from = client.now();
    let sent = client.send("tools/call", params)?;
    let answer = client.wait(&sent)?;
    check!(
        answer["result"]["isError"] != true && answer.get("error").is_none(),
        "{answer}"
    );
    let id = sent.id.to_string();
    let answered = |arrival: &Arrival| arrival.answers().as_ref() == Some(&id);
    let answer = client.until(from, "the answer", answered)?;
    Ok(Heard { sent, from, answer })
}

impl Heard {
    /// The notifications of this method, all of which must have come on the stream of the request.
    fn notes<'a>(&self, client: &'a Client, method: &str) -> Result<Vec<&'a Value>, Reason> {
        let mut notes = Vec::new();
        for arrival in &client.seen[self.from..self.answer] {
            if arrival.is_notification(method) {
                let (own, came) = (self.sent.stream, arrival.stream);
                check!(
                    own == came,
                    "{method} came on stream {came} in place of {own}"
                );
                notes.push(arrival.params());
            }
        }
        Ok(notes)
    }
}

fn number(note: &Value) -> u64 {
    let number = note["progress"].as_f64().unwrap_or(-1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small"
    )]
    let number = number as u64;
    number
}

/// Complete, in order, before the response, under the client's own token; and nothing without a token.
pub(super) fn progress(client: &mut Client) -> Result<(), Reason> {
    for token in [json!("a token"), json!(4711)] {
        let params = call_of("test_progress_burst", json!({ "count": 20 }));
        let heard = run(client, with_progress(params, &token))?;
        let notes = heard.notes(client, PROGRESS)?;
        let numbers: Vec<_> = notes.iter().map(|note| number(note)).collect();
        check!(notes.len() == 20, "{} of 20: {numbers:?}", notes.len());
        check!(
            numbers.is_sorted_by(|one, next| one < next),
            "out of order: {numbers:?}"
        );
        let own = notes.iter().all(|note| note["progressToken"] == token);
        check!(own, "another token than {token}: {notes:?}");
    }
    let heard = run(
        client,
        call_of("test_progress_burst", json!({ "count": 5 })),
    )?;
    let unasked = heard.notes(client, PROGRESS)?;
    check!(unasked.is_empty(), "progress without a token: {unasked:?}");
    Ok(())
}

/// The number of a log message in a burst.
pub(crate) fn logged_number(note: &Value) -> Option<u64> {
    note["data"].as_u64()
}

/// A client with this log level.
fn hearing(client: &Client, level: &'static str) -> Result<Client, Reason> {
    let mut setup = Setup::able(client.setup.side);
    setup.log_level = Some(level);
    client.another(setup)
}

/// Complete, in order, before the response.
pub(super) fn logging(client: &mut Client) -> Result<(), Reason> {
    let mut hearing = hearing(client, "debug")?;
    let heard = run(
        &mut hearing,
        call_of("test_log_burst", json!({ "count": 20 })),
    )?;
    let notes = heard.notes(&hearing, MESSAGE)?;
    let numbers: Vec<_> = notes
        .iter()
        .filter_map(|note| logged_number(note))
        .collect();
    check!(numbers.len() == 20, "{} of 20: {notes:?}", numbers.len());
    check!(
        numbers.is_sorted_by(|one, next| one < next),
        "out of order: {numbers:?}"
    );
    Ok(())
}

/// Messages below the level are not sent, and a modern client without a level gets none.
pub(super) fn log_level(client: &mut Client) -> Result<(), Reason> {
    let mut deaf = hearing(client, "emergency")?;
    let heard = run(&mut deaf, call_of("test_log_burst", json!({ "count": 5 })))?;
    let notes = heard.notes(&deaf, MESSAGE)?;
    check!(notes.is_empty(), "below the level: {notes:?}");
    if client.is_modern() {
        let heard = run(client, call_of("test_log_burst", json!({ "count": 5 })))?;
        let notes = heard.notes(client, MESSAGE)?;
        check!(notes.is_empty(), "not asked for: {notes:?}");
    }
    // The level of one client is not the level of all.
    let mut hearing = hearing(client, "debug")?;
    let heard = run(
        &mut hearing,
        call_of("test_log_burst", json!({ "count": 5 })),
    )?;
    let notes = heard.notes(&hearing, MESSAGE)?;
    check!(notes.len() == 5, "{} of 5: {notes:?}", notes.len());
    Ok(())
}

/// Progress and log messages arrive in the order in which they were sent, interleaved.
pub(super) fn both(client: &mut Client) -> Result<(), Reason> {
    let mut hearing = hearing(client, "debug")?;
    let params = call_of("test_both_burst", json!({ "count": 20 }));
    let heard = run(&mut hearing, with_progress(params, &json!("both")))?;
    let kinds: Vec<_> = hearing.seen[heard.from..heard.answer]
        .iter()
        .filter_map(Arrival::method)
        .filter(|method| [MESSAGE, PROGRESS].contains(method))
        .collect();
    let alternate = kinds.windows(2).all(|pair| pair[0] != pair[1]);
    check!(alternate, "not one after the other: {kinds:?}");
    let progress = heard.notes(&hearing, PROGRESS)?;
    let messages = heard.notes(&hearing, MESSAGE)?;
    check!(
        progress.len() == 20 && messages.len() == 20,
        "{} and {} of 20",
        progress.len(),
        messages.len()
    );
    Ok(())
}

/// The server is notified, and an older client gets no response.
pub(super) fn cancellation(client: &mut Client) -> Result<(), Reason> {
    let before = cancelled(client)?;
    let sent = begin_wait(client)?;
    client.cancel(&sent)?;
    until_cancelled(client, before + 1)?;
    if client.way() != Way::Http && client.revision() < Revision::Jul2026 {
        client.result("ping", json!({}))?;
        check!(
            client.answer_to(&sent).is_none(),
            "a withdrawn request was answered"
        );
    }
    Ok(())
}

/// The number of waits that were cancelled at the server.
fn cancelled(client: &mut Client) -> Result<u64, Reason> {
    let text = client.text("test_cancelled_count", json!({}))?;
    text.trim()
        .parse()
        .map_err(|_| format!("no number: {text}"))
}

/// Starts a wait, and returns when the server has received it. No other client may call anything meanwhile.
fn begin_wait(client: &mut Client) -> Result<Sent, Reason> {
    let before = counted(client, "tools/call")?;
    let sent = client.send("tools/call", call_of("test_wait_cancel", json!({})))?;
    let until = Instant::now() + PATIENCE;
    for own in 1.. {
        if counted(client, "tools/call")? > before + own {
            return Ok(sent);
        }
        check!(Instant::now() < until, "the wait did not reach the server");
    }
    Ok(sent)
}

/// Waits until this many waits were cancelled at the server, and no more.
fn until_cancelled(client: &mut Client, wanted: u64) -> Result<(), Reason> {
    let until = Instant::now() + PATIENCE;
    loop {
        let count = cancelled(client)?;
        check!(
            count <= wanted,
            "{count} waits in place of {wanted} were cancelled"
        );
        if count == wanted {
            return Ok(());
        }
        check!(
            Instant::now() < until,
            "the server was not told of the withdrawal"
        );
        // Polls at a moderate pace.
        thread::sleep(Duration::from_millis(2));
    }
}

/// The number of requests with this method that the server received, including the call that reads it.
pub(crate) fn counted(client: &mut Client, method: &str) -> Result<u64, Reason> {
    let counts = client.told_by("test_method_counts")?;
    Ok(counts[method].as_u64().unwrap_or_default())
}
