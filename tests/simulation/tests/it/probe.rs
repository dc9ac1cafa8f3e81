//! The probe: servers of both eras, as they are in the wild, and what is made of each.

use std::time::Duration;

use switchboard_machine::{Action, CallError, DownKind, Event, RequestFailure, Settings, State};
use switchboard_wire::{Era, Raw, Revision};

use crate::rig::{LEGACY, MODERN, Rig};

const WHAT: &str = r#""error":{"code":-32601,"message":"what?"}"#;
const NAMES_MODERN: &str =
    r#""error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}"#;
const NAMES_STRANGE: &str =
    r#""error":{"code":-32022,"message":"no","data":{"supported":["2030-01-01"]}}"#;

fn session(rig: &Rig) -> Option<Revision> {
    rig.actions.iter().rev().find_map(|action| match action {
        Action::State(State::Ready(session)) => Some(session.revision),
        _ => None,
    })
}

fn fail(rig: &mut Rig, status: u16) -> Vec<Action> {
    let (epoch, id) = (rig.epoch, rig.last_sent().id());
    let failure = RequestFailure {
        status: Some(status),
        message: "no".into(),
        said: None,
        sent: true,
        challenged: false,
    };
    rig.event(Event::RequestFailed { epoch, id, failure })
}

#[test]
fn a_server_that_exits_on_the_probe_is_reopened_at_once_asked_the_old_way_and_remembered() {
    let mut rig = Rig::new();
    rig.up();
    let before = rig.now;
    let actions = rig.down(DownKind::Closed);
    assert!(
        actions
            .iter()
            .any(|action| matches!(action, Action::Open { epoch: 2 }))
    );
    assert_eq!((rig.state(), rig.now), ("starting", before));
    rig.up();
    rig.answer_last(LEGACY);
    assert_eq!(session(&rig), Some(Revision::V2025_11_25));
    assert_eq!(rig.machine.era(), Some(Era::Legacy));
    assert_eq!(
        rig.methods(),
        ["server/discover", "initialize", "notifications/initialized"]
    );

    // It left later, for another reason: it is not probed again.
    rig.down(DownKind::Closed);
    rig.event(Event::Restart);
    rig.up();
    assert_eq!(rig.last_sent().method(), "initialize");
}

#[test]
fn a_server_that_exits_on_both_questions_is_given_time() {
    let mut rig = Rig::new();
    rig.up();
    rig.down(DownKind::Closed);
    rig.up();
    let actions = rig.down(DownKind::Closed);
    assert!(
        !actions
            .iter()
            .any(|action| matches!(action, Action::Open { .. }))
    );
    assert_eq!((rig.state(), rig.machine.era()), ("backoff", None));
}

#[test]
fn a_server_that_cannot_be_reached_is_not_taken_for_an_older_one() {
    let mut rig = Rig::new();
    rig.up();
    rig.down(DownKind::Unreachable);
    assert_eq!((rig.state(), rig.machine.era()), ("backoff", None));
}

#[test]
fn a_server_that_exits_on_the_probe_it_asked_for_is_given_time() {
    let mut settings = Settings::new(Raw::empty_object());
    settings.era = Some(Era::Legacy);
    let mut rig = Rig::with(settings);
    rig.up();
    rig.answer_last(NAMES_MODERN);
    assert_eq!(rig.methods(), ["initialize", "server/discover"]);
    rig.down(DownKind::Closed);
    assert_eq!(rig.state(), "backoff");
}

#[test]
fn an_empty_success_and_every_plain_error_are_an_older_servers_way_to_say_what() {
    for answer in [r#""result":{}"#, r#""result":null"#, r#""result":[]"#, WHAT] {
        let mut rig = Rig::new();
        rig.up();
        rig.answer_last(answer);
        assert_eq!(rig.methods(), ["server/discover", "initialize"], "{answer}");
        rig.answer_last(LEGACY);
        assert_eq!(session(&rig), Some(Revision::V2025_11_25));
    }
}

#[test]
fn a_silent_server_is_asked_the_old_way_after_the_probe_timeout() {
    let mut rig = Rig::new();
    rig.up();
    rig.pass(Duration::from_secs(2));
    assert_eq!(rig.methods(), ["server/discover", "initialize"]);
    rig.answer_last(LEGACY);
    assert_eq!(session(&rig), Some(Revision::V2025_11_25));
}

#[test]
fn a_late_answer_to_the_probe_wins() {
    let mut rig = Rig::new();
    rig.up();
    let probe = rig.last_sent().id();
    rig.pass(Duration::from_secs(3));
    let initialize = rig.last_sent().id();
    rig.answer(probe, MODERN);
    assert_eq!(session(&rig), Some(Revision::LATEST));
    assert_eq!(rig.machine.era(), Some(Era::Modern));

    // What it says to `initialize` is of no interest any more.
    rig.answer(initialize, NAMES_MODERN);
    assert_eq!(rig.state(), "ready");
    let call = rig.call(0);
    rig.answer(call, r#""result":{}"#);
    assert_eq!(rig.replies(call).len(), 1);
}

#[test]
fn a_late_answer_to_the_probe_that_says_nothing_new_changes_nothing() {
    let mut rig = Rig::new();
    rig.up();
    let probe = rig.last_sent().id();
    rig.pass(Duration::from_secs(3));
    rig.answer(probe, WHAT);
    assert_eq!(rig.methods(), ["server/discover", "initialize"]);
    rig.answer_last(LEGACY);
    assert_eq!(session(&rig), Some(Revision::V2025_11_25));
}

#[test]
fn the_probe_that_won_is_not_undone_by_a_busy_transport() {
    let mut rig = Rig::new();
    rig.up();
    let probe = rig.last_sent().id();
    rig.busy(1);
    rig.pass(Duration::from_secs(2));
    rig.answer(probe, MODERN);
    let call = rig.call(0);
    rig.busy(9);
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.state(), "ready");
    assert!(rig.replies(call).is_empty());
    assert_eq!(
        rig.methods(),
        ["server/discover", "initialize", "tools/call"]
    );
}

#[test]
fn a_modern_only_server_that_rejects_initialize_naming_its_versions_is_probed() {
    let mut settings = Settings::new(Raw::empty_object());
    settings.era = Some(Era::Legacy);
    let mut rig = Rig::with(settings);
    rig.up();
    rig.answer_last(NAMES_MODERN);
    rig.answer_last(MODERN);
    assert_eq!(rig.methods(), ["initialize", "server/discover"]);
    assert_eq!(session(&rig), Some(Revision::LATEST));
    assert_eq!(
        rig.machine.era(),
        Some(Era::Modern),
        "what was believed is corrected"
    );
}

#[test]
fn a_server_that_sends_us_in_circles_is_given_up() {
    let mut settings = Settings::new(Raw::empty_object());
    settings.era = Some(Era::Legacy);
    let mut rig = Rig::with(settings);
    rig.up();
    for _ in 0..2 {
        rig.answer_last(NAMES_MODERN);
        rig.answer_last(WHAT);
    }
    assert_eq!(rig.sent.len(), 4);
    assert_eq!(rig.state(), "backoff");
}

#[test]
fn without_a_common_version_the_connection_fails_until_a_restart() {
    let strange = r#""result":{"protocolVersion":"1999-01-01","capabilities":{}}"#;
    for (first, second) in [
        (NAMES_STRANGE, None),
        (WHAT, Some(strange)),
        (WHAT, Some(NAMES_STRANGE)),
    ] {
        let mut rig = Rig::new();
        let waiting = rig.call(0);
        rig.up();
        rig.answer_last(first);
        if let Some(second) = second {
            rig.answer_last(second);
        }
        assert_eq!(rig.state(), "failed");
        assert!(matches!(rig.error(waiting), CallError::Failed { .. }));
        let refused = rig.call(0);
        assert!(
            matches!(rig.error(refused), CallError::Failed { .. }),
            "at once"
        );
        assert_eq!(rig.machine.next_timeout(), None, "it waits for nothing");
        rig.pass(Duration::from_hours(1));
        assert_eq!(rig.state(), "failed");

        rig.event(Event::Restart);
        assert_eq!(rig.state(), "starting");
        rig.connect_modern();
    }
}

#[test]
fn missing_credentials_fail_the_connection_and_other_statuses_do_not() {
    for status in [401, 403] {
        let mut rig = Rig::new();
        let waiting = rig.call(0);
        rig.up();
        fail(&mut rig, status);
        assert_eq!(rig.state(), "failed", "{status}");
        assert!(matches!(rig.error(waiting), CallError::Failed { .. }));
    }
    for status in [400, 404, 405, 500] {
        let mut rig = Rig::new();
        rig.up();
        fail(&mut rig, status);
        assert_eq!(rig.methods(), ["server/discover", "initialize"], "{status}");
        fail(&mut rig, status);
        assert_eq!(rig.state(), "backoff", "{status}");
    }
    // Of a call on a connection that stands, it is that call's trouble alone.
    let mut rig = Rig::modern();
    let call = rig.call(0);
    fail(&mut rig, 401);
    assert_eq!(rig.state(), "ready");
    assert!(matches!(rig.error(call), CallError::RequestFailed(_)));
}

#[test]
fn a_pinned_older_revision_is_offered_without_a_probe_and_nothing_newer_is_taken() {
    let mut settings = Settings::new(Raw::empty_object());
    settings.newest = Revision::V2025_06_18;
    let mut rig = Rig::with(settings);
    rig.up();
    let offer = rig.last_sent().outgoing.frame.clone();
    assert!(std::str::from_utf8(&offer).unwrap().contains("2025-06-18"));
    // Of the two it names, the newer one is not to be used.
    rig.answer_last(r#""error":{"code":-32602,"message":"no","data":{"supported":["2025-11-25","2024-11-05"]}}"#);
    let offer = rig.last_sent().outgoing.frame.clone();
    assert!(std::str::from_utf8(&offer).unwrap().contains("2024-11-05"));
    rig.answer_last(LEGACY);
    assert_eq!(
        rig.state(),
        "failed",
        "it answered with 2025-11-25 all the same"
    );
}
