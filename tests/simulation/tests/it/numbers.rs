//! The numbers of the design, each at its limit.

use std::time::Duration;

use switchboard_machine::{
    Action, CallError, DownKind, ErrorKind, Event, Extend, SendOutcome, Settings, State,
};
use switchboard_wire::{Raw, limits};

use crate::rig::{LEGACY, Rig, ms};

const RESULT: &str = r#""result":{}"#;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Hands in a response, and returns the counter that it increments: late or unknown.
fn counts_as(rig: &mut Rig, id: u64) -> &'static str {
    let before = rig.counters.values();
    rig.answer(id, RESULT);
    let after = rig.counters.values();
    match (after.late - before.late, after.unknown - before.unknown) {
        (1, 0) => "late",
        (0, 1) => "unknown",
        other => panic!("{other:?}"),
    }
}

#[test]
fn tombstone_lives_for_75_seconds() {
    let mut rig = Rig::modern();
    let id = rig.call(0);
    rig.event(Event::CallerGone { id });
    rig.pass_almost(seconds(75));
    assert_eq!(counts_as(&mut rig, id), "late");
    assert_eq!(rig.machine.tombstones(), 1);
    rig.pass(ms(1));
    assert_eq!(rig.machine.tombstones(), 1, "it is swept later");
    assert_eq!(
        counts_as(&mut rig, id),
        "unknown",
        "and yet no look-up finds it"
    );
}

#[test]
fn tombstones_are_swept_every_60_seconds() {
    let mut rig = Rig::modern();
    let id = rig.call(0);
    rig.event(Event::CallerGone { id });
    let buried = rig.now;
    assert_eq!(rig.machine.next_timeout(), Some(buried + seconds(60)));
    rig.pass(seconds(60));
    assert_eq!(rig.machine.tombstones(), 1);
    assert_eq!(rig.machine.next_timeout(), Some(buried + seconds(120)));
    rig.pass(seconds(60));
    assert_eq!(rig.machine.tombstones(), 0);
    assert_eq!(rig.machine.next_timeout(), None);
}

#[test]
fn handshake_has_10_seconds_from_the_spawn() {
    for up_after in [0, 5, 9] {
        let mut rig = Rig::new();
        rig.pass(seconds(up_after));
        rig.up();
        rig.pass_almost(seconds(10 - up_after));
        assert_eq!(rig.state(), "initializing");
        rig.pass(ms(1));
        assert_eq!(rig.state(), "backoff");
        assert!(
            rig.actions
                .iter()
                .any(|action| matches!(action, Action::Close { epoch: 1 }))
        );
    }
    let mut never_up = Rig::new();
    never_up.pass(seconds(10));
    assert_eq!(never_up.state(), "backoff");
}

#[test]
fn probe_has_2_seconds() {
    let mut rig = Rig::new();
    rig.pass(seconds(3));
    rig.up();
    rig.pass_almost(seconds(2));
    assert_eq!(rig.methods(), ["server/discover"]);
    rig.pass(ms(1));
    assert_eq!(rig.methods(), ["server/discover", "initialize"]);
}

#[test]
fn call_has_30_seconds_including_waits_and_retries() {
    let mut rig = Rig::new();
    let called = rig.now;
    let id = rig.call(0);
    rig.pass(seconds(9));
    rig.busy(2);
    rig.connect_modern_slowly();
    rig.pass_almost(called + seconds(30) - rig.now);
    assert!(rig.replies(id).is_empty());
    rig.pass(ms(1));
    let error = CallError::Timeout {
        after: seconds(30),
        sent: true,
        reason: None,
    };
    assert_eq!(rig.error(id), error);
    assert_eq!(rig.error(id).kind(), ErrorKind::Timeout);
    assert_eq!(rig.last_sent().method(), "cancel");
}

impl Rig {
    /// Connects with a transport that accepts the handshake only after a while.
    fn connect_modern_slowly(&mut self) {
        self.up();
        self.pass(ms(50));
        self.answer_last(crate::rig::MODERN);
        assert_eq!(self.state(), "ready");
    }
}

#[test]
fn progress_extends_a_deadline_up_to_a_cap() {
    let mut rig = Rig::modern();
    let id = rig.call_with(0, |call| {
        call.timeout = Some(seconds(10));
        call.progress = true;
        call.extend = Some(Extend {
            by: seconds(10),
            cap: seconds(25),
        });
    });
    let called = rig.now;
    for _ in 0..2 {
        rig.pass(seconds(9));
        rig.frame(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id}}}}}"#
        ));
    }
    assert_eq!(
        rig.machine.next_timeout(),
        Some(called + seconds(25)),
        "not 28"
    );
    rig.pass(seconds(6));
    assert!(rig.replies(id).is_empty());
    rig.pass(seconds(1));
    assert_eq!(rig.error(id).kind(), ErrorKind::Timeout);

    // A call that did not request an extension is not extended.
    let plain = rig.call_with(0, |call| {
        call.timeout = Some(seconds(10));
        call.progress = true;
    });
    rig.pass(seconds(9));
    rig.frame(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{plain}}}}}"#
    ));
    rig.pass(seconds(1));
    assert_eq!(rig.error(plain).kind(), ErrorKind::Timeout);
}

#[test]
fn backoff_doubles_up_to_30_seconds_and_resets() {
    let delays = |rig: &mut Rig, expected: &[u64]| {
        for base in expected {
            let actions = rig.down(DownKind::Unreachable);
            let delay = actions.iter().find_map(|action| match action {
                Action::State(State::Backoff { delay, .. }) => Some(*delay),
                _ => None,
            });
            let (delay, base) = (delay.unwrap(), seconds(*base));
            assert!(
                delay >= base * 8 / 10 && delay <= base * 12 / 10,
                "{delay:?} for {base:?}"
            );
            rig.pass_almost(delay);
            assert_eq!(rig.state(), "backoff");
            rig.pass(ms(1));
            assert_eq!(rig.state(), "starting");
        }
    };
    let mut rig = Rig::new();
    delays(&mut rig, &[1, 2, 4, 8, 16, 30, 30, 30]);
    rig.connect_modern();
    delays(&mut rig, &[1, 2]);
}

#[test]
fn busy_frame_is_offered_3_times() {
    let mut rig = Rig::modern();
    rig.busy(4);
    let id = rig.call(0);
    rig.pass(ms(30));
    assert_eq!(rig.offers_of(id).len(), 3);
    let error = rig.error(id);
    assert_eq!(error, CallError::Backpressure { attempts: 3 });
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert_eq!(error.to_string(), "transport busy after 3 attempts");
    assert_eq!(
        rig.outcomes.pop_front(),
        Some(SendOutcome::Busy),
        "the fourth was not used"
    );
}

#[test]
fn frame_over_the_limit_ends_the_connection() {
    assert_eq!(limits::FRAME_BYTES, 16 * 1024 * 1024);
    let mut rig = Rig::modern();
    let id = rig.call(0);
    let epoch = rig.epoch;
    let limit = limits::FRAME_BYTES;
    let actions = rig.event(Event::FrameTooLarge { epoch, limit });
    assert!(
        actions
            .iter()
            .any(|action| matches!(action, Action::Close { epoch: 1 }))
    );
    assert!(
        !actions
            .iter()
            .any(|action| matches!(action, Action::Arm { .. })),
        "no arm after the close"
    );
    assert_eq!(rig.state(), "backoff");
    assert_eq!(rig.error(id).kind(), ErrorKind::Transport);
    assert_eq!(rig.counters.oversized.get(), 1);
}

#[test]
fn call_1025_is_refused_at_once() {
    let mut rig = Rig::modern();
    let calls: Vec<u64> = (0..1_024).map(|lane| rig.call(lane)).collect();
    let refused = rig.call(0);
    assert_eq!(rig.error(refused), CallError::Backpressure { attempts: 0 });
    rig.answer(calls[7], RESULT);
    let taken = rig.call(0);
    assert!(rig.replies(taken).is_empty());
    assert_eq!(rig.machine.in_flight(), 1_024);
}

#[test]
fn stop_takes_under_100_ms_in_every_state() {
    type Begin = fn() -> Rig;
    let begin: [(&str, Begin); 6] = [
        ("starting", Rig::new),
        ("initializing", || {
            let mut rig = Rig::new();
            rig.up();
            rig
        }),
        ("ready", Rig::modern),
        ("backoff", || {
            let mut rig = Rig::modern();
            rig.down(DownKind::Closed);
            rig
        }),
        ("failed", || {
            let mut rig = Rig::modern();
            rig.down(DownKind::Permanent);
            rig
        }),
        ("ready", Rig::legacy),
    ];
    for (state, begin) in begin {
        let mut rig = begin();
        assert_eq!(rig.state(), state);
        rig.event(Event::Stop);
        rig.pass(ms(100));
        assert!(matches!(rig.actions.last(), Some(Action::Exit)), "{state}");
        assert_eq!(rig.machine.next_timeout(), None);
    }
    // The end of the transport ends it at once.
    let mut rig = Rig::modern();
    rig.event(Event::Stop);
    assert!(matches!(
        rig.down(DownKind::Closed).as_slice(),
        [Action::Exit]
    ));
}

#[test]
fn up_to_64_early_messages_are_held() {
    let mut rig = Rig::new();
    rig.up();
    for number in 0..70 {
        rig.frame(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"s":{number}}}}}"#
        ));
    }
    assert_eq!(rig.counters.dropped.get(), 6);
    rig.answer_last(r#""error":{"code":-32601,"message":"what?"}"#);
    let actions = rig.answer_last(LEGACY);
    let delivered = actions
        .iter()
        .filter(|action| matches!(action, Action::Deliver(_)))
        .count();
    assert_eq!(delivered, 64);
}

#[test]
fn defaults_match_the_design() {
    let settings = Settings::new(Raw::empty_object());
    assert_eq!(settings.request_timeout, seconds(30));
    assert_eq!(settings.handshake_timeout, seconds(10));
    assert_eq!(
        (settings.backoff_base, settings.backoff_max),
        (seconds(1), seconds(30))
    );
    assert_eq!(
        (settings.send_attempts, settings.send_retry_delay),
        (3, ms(10))
    );
    assert_eq!(
        (settings.tombstone_ttl(), settings.sweep_interval),
        (seconds(75), seconds(60))
    );
    assert_eq!(settings.in_flight_max, 1_024);
    assert!(settings.close_linger <= ms(100));
}
