//! The probe: servers of both eras, as in the wild, and how each is handled.

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
fn server_that_exits_on_probe_gets_initialize() {
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

    // It exited later, for another reason: it is not probed again.
    rig.down(DownKind::Closed);
    rig.event(Event::Restart);
    rig.up();
    assert_eq!(rig.last_sent().method(), "initialize");
}

#[test]
fn server_that_exits_on_both_requests_backs_off() {
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
fn unreachable_server_is_not_taken_for_older_one() {
    let mut rig = Rig::new();
    rig.up();
    rig.down(DownKind::Unreachable);
    assert_eq!((rig.state(), rig.machine.era()), ("backoff", None));
}

#[test]
fn exit_on_a_requested_probe_backs_off() {
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
fn empty_success_or_plain_error_means_older_server() {
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
fn silent_server_gets_initialize_after_the_probe_timeout() {
    let mut rig = Rig::new();
    rig.up();
    rig.pass(Duration::from_secs(2));
    assert_eq!(rig.methods(), ["server/discover", "initialize"]);
    rig.answer_last(LEGACY);
    assert_eq!(session(&rig), Some(Revision::V2025_11_25));
}

#[test]
fn late_answer_to_the_probe_wins() {
    let mut rig = Rig::new();
    rig.up();
    let probe = rig.last_sent().id();
    rig.pass(Duration::from_secs(3));
    let initialize = rig.last_sent().id();
    rig.answer(probe, MODERN);
    assert_eq!(session(&rig), Some(Revision::LATEST));
    assert_eq!(rig.machine.era(), Some(Era::Modern));

    // Its response to `initialize` no longer matters.
    rig.answer(initialize, NAMES_MODERN);
    assert_eq!(rig.state(), "ready");
    let call = rig.call(0);
    rig.answer(call, r#""result":{}"#);
    assert_eq!(rig.replies(call).len(), 1);
}

#[test]
fn late_uninformative_probe_answer_changes_nothing() {
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
fn busy_transport_does_not_undo_the_probe() {
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
fn modern_server_that_rejects_initialize_is_probed() {
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
fn endless_version_negotiation_is_given_up() {
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
fn no_common_version_fails_until_a_restart() {
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
fn only_missing_credentials_fail_the_connection() {
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
    // On an established connection, the status fails only that call.
    let mut rig = Rig::modern();
    let call = rig.call(0);
    fail(&mut rig, 401);
    assert_eq!(rig.state(), "ready");
    assert!(matches!(rig.error(call), CallError::RequestFailed(_)));
}

#[test]
fn pinned_older_revision_is_offered_without_a_probe() {
    let mut settings = Settings::new(Raw::empty_object());
    settings.newest = Revision::V2025_06_18;
    let mut rig = Rig::with(settings);
    rig.up();
    let offer = rig.last_sent().outgoing.frame.clone();
    assert!(std::str::from_utf8(&offer).unwrap().contains("2025-06-18"));
    // It names two revisions, of which the newer one must not be used.
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
