//! Questions of servers: the time limit of an answer, who is asked, and which question an answer belongs to.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use switchboard_test_support::{Home, Serve, until, with};

use super::{MODERN, MODERN_PIPE, OLDER, OLDER_PIPE, at_work, in_front, open, with_gateway};
use crate::{
    client::{Client, Person, Reason, Sent, Setup, call_of, check, text_of},
    features::counted,
    revision::Side,
    rig::{NAME, Upstream, clients_answer, through, through_direct},
    state::refused,
};

/// The time limit of the server; the person takes longer.
const SERVER_MS: u64 = 1500;
const PERSON: Duration = Duration::from_millis(2500);

fn question() -> Value {
    call_of("test_elicitation", json!({ "message": "Who goes there?" }))
}

/// The CPU time of a process, which the system counts in hundredths of a second.
fn cpu_time(pid: i32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    // The state comes first, the user time twelfth, the system time thirteenth.
    let times = rest.split_whitespace().skip(11).take(2);
    let ticks: u64 = times.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}

/// Each of these clients is asked, takes its time, and still gets the result.
fn may_think(server: Side, clients: &[Side]) {
    let upstream = Upstream::start(server, &[]);
    let entry = with(upstream.entry(), json!({ "requestTimeoutMs": SERVER_MS }));
    let home = Home::new(json!({ NAME: entry }));
    in_front(server, &home, |serve| {
        for side in clients {
            let mut client = open(serve, server, *side)?;
            client.person = Person::Slow(PERSON);
            let before = cpu_time(serve.pid());
            let result = client.result("tools/call", question())?;
            let text = text_of(&result).unwrap_or_default();
            check!(text.contains("octo"), "{side}: {result}");
            // Waiting costs no CPU time.
            let worked = cpu_time(serve.pid()).saturating_sub(before);
            check!(worked < PERSON / 5, "{side}: {worked:?} of CPU time");
        }
        Ok(())
    });
}

#[test]
fn time_for_an_answer_does_not_count() {
    let older = [OLDER, OLDER_PIPE];
    let all = [OLDER, MODERN, MODERN_PIPE];
    thread::scope(|scope| {
        for (server, clients) in [
            (MODERN, &older[..]),
            (MODERN_PIPE, &older),
            (OLDER, &all),
            (OLDER_PIPE, &all),
        ] {
            scope.spawn(move || may_think(server, clients));
        }
    });
}

#[test]
fn consent_to_a_page_answers_no_form() {
    for server in [OLDER, OLDER_PIPE] {
        with_gateway(server, json!({}), |serve| {
            let mut client = open(serve, server, MODERN)?;
            let call = call_of("test_url_then_form", json!({}));
            let page = client.ask("tools/call", call.clone())?["result"].clone();
            let asked = page["inputRequests"].to_string();
            check!(asked.contains(r#""mode":"url""#), "no page: {page}");
            let retry = client.retry(&call, &page);

            let form = client.ask("tools/call", retry)?["result"].clone();
            let asked = form["inputRequests"].to_string();
            check!(asked.contains("Delete everything?"), "not asked: {form}");
            let retry = client.retry(&call, &form);

            let answer = client.ask("tools/call", retry)?;
            let text = text_of(&answer["result"]).unwrap_or_default();
            check!(text.contains(r#"{"sure":true}"#), "not answered: {answer}");
            Ok(())
        });
    }
}

/// Runs a call whose server asks a client without capabilities, while another client has a call in flight.
fn while_another_works(
    serve: &Serve<'_>,
    mute: Side,
    act: impl FnOnce(&mut Client, &Sent, &mut Client, &Sent) -> Result<Value, Reason>,
) -> Result<(), Reason> {
    let mut able = open(serve, OLDER_PIPE, OLDER)?;
    let mut mute = Client::open(&through(serve), OLDER_PIPE, Setup::mute(mute))?;
    let waiting = at_work(&mut able)?;
    let asking = mute.send("tools/call", question())?;
    let answer = act(&mut able, &waiting, &mut mute, &asking);
    // Everything that was sent to either of them has arrived before this.
    able.call("test_simple_text", json!({}))?;
    mute.call("test_simple_text", json!({}))?;
    for client in [&able, &mute] {
        check!(client.asked.is_empty(), "it was asked {:?}", client.asked);
    }
    let answer = answer?;
    let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
    check!(failed, "the question was answered: {answer}");
    Ok(())
}

#[test]
fn question_goes_to_no_other_caller() {
    with_gateway(OLDER_PIPE, clients_answer(), |serve| {
        while_another_works(serve, OLDER, |able, waiting, mute, asking| {
            let answer = mute.wait(asking);
            able.cancel(waiting)?;
            answer
        })
    });
}

#[test]
fn question_of_the_remaining_call_goes_nowhere() {
    with_gateway(OLDER_PIPE, clients_answer(), |serve| {
        while_another_works(serve, MODERN, |able, waiting, mute, asking| {
            // The call that asks has reached the server before the other one ends.
            let calls = counted(able, "tools/call")?;
            until("the server has all calls", || {
                (counted(able, "tools/call").ok()? > calls).then_some(())
            });
            able.cancel(waiting)?;
            let since = Instant::now();
            let answer = mute.wait(asking);
            let took = since.elapsed();
            // Otherwise the gateway would wait for ten seconds.
            check!(took < Duration::from_secs(8), "it took {took:?}");
            answer
        })
    });
}

#[test]
fn state_does_not_fit_another_server() {
    for way in [OLDER, OLDER_PIPE] {
        let [one, other] = [(); 2].map(|()| Upstream::start(way, &[]));
        let home = Home::new(json!({ "a": one.entry(), "b": other.entry() }));
        let serve = home.serve();
        serve.until_known("a");
        serve.until_known("b");
        let judged = || -> Result<(), Reason> {
            let place = through_direct(&serve);
            let mut client = Client::open(&place, way, Setup::able(MODERN))?;
            let mut call = question();
            call["name"] = json!("a__test_elicitation");
            let required = client.ask("tools/call", call.clone())?["result"].clone();
            check!(
                required["requestState"].is_string(),
                "not asked: {required}"
            );
            let mut retry = client.retry(&call, &required);
            retry["name"] = json!("b__test_elicitation");
            refused(&mut client, retry.clone(), "another server")?;
            retry["name"] = call["name"].clone();
            let answer = client.ask("tools/call", retry)?;
            let text = text_of(&answer["result"]).unwrap_or_default();
            check!(text.contains("octo"), "it was disturbed: {answer}");
            Ok(())
        };
        judged().unwrap_or_else(|reason| panic!("in front of {way}: {reason}"));
        serve.stop();
    }
}
