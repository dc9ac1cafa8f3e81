//! The properties that the design requires, one each. Virtual time, no sleeps.

use std::time::Duration;

use proptest::prelude::*;
use switchboard_machine::{
    Action, CallError, Down, DownKind, Event, Extend, Inbound, Reply, RequestFailure, SendOutcome,
    Settings, Stopped,
};
use switchboard_wire::{Outcome, Raw};

use crate::rig::{Rig, ms};

/// The number in a reply, if the server answered.
fn number(reply: &Result<Reply, CallError>) -> Option<u64> {
    match reply {
        Ok(Reply::Answered(response)) => match &response.outcome {
            Outcome::Result(result) => result.member("n")?.read().ok(),
            Outcome::Error(_) => None,
        },
        _ => None,
    }
}

proptest! {
    #[test]
    fn one_reply_per_call_under_any_reordering(
        count in 1_usize..50,
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..10), 0..150),
    ) {
        let mut rig = Rig::modern();
        let calls: Vec<u64> = (0..count).map(|lane| rig.call(lane as u64)).collect();
        let answer = |rig: &mut Rig, id: u64| {
            rig.answer(id, &format!(r#""result":{{"n":{id}}}"#));
        };
        // In any order, some twice, and some without a request.
        for (index, kind) in picks {
            match kind {
                0 => answer(&mut rig, 1_000_000 + index.index(1_000) as u64),
                _ => answer(&mut rig, calls[index.index(count)]),
            }
        }
        for id in &calls {
            answer(&mut rig, *id);
        }
        for id in calls {
            let replies: Vec<_> = rig.replies(id).into_iter().map(number).collect();
            prop_assert_eq!(replies, [Some(id)]);
        }
        prop_assert_eq!(rig.machine.next_timeout(), None);
    }

    #[test]
    fn no_timer_remains(
        calls in prop::collection::vec((0_u64..3, 0_u64..60, 0_usize..4, 0_u8..5), 1..20),
        wait in 0_u64..40,
    ) {
        let mut rig = Rig::legacy();
        for (lane, timeout, busy, end) in calls {
            rig.busy(busy);
            let id = rig.call_with(lane, |call| {
                call.timeout = Some(ms(timeout));
                call.progress = true;
                call.extend = Some(Extend { by: ms(50), cap: ms(200) });
            });
            rig.pass(ms(wait));
            match end {
                0 => {
                    rig.answer(id, r#""result":{}"#);
                }
                1 => {
                    rig.event(Event::CallerGone { id });
                }
                2 => {
                    rig.event(Event::Cancel { id, reason: None });
                }
                3 => {
                    rig.frame(format!(
                        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id}}}}}"#
                    ));
                }
                _ => {}
            }
        }
        rig.outcomes.clear();
        // The longest extension, then a tombstone and the sweep that removes it.
        rig.pass(Duration::from_secs(1 + 75 + 60));
        prop_assert_eq!(rig.machine.next_timeout(), None);
        prop_assert_eq!(rig.machine.tombstones(), 0);
        prop_assert!(rig.machine.is_idle());
    }

    #[test]
    fn no_double_reply_on_stop_while_retrying(
        calls in prop::collection::vec(0_u64..3, 1..6),
        busy in 0_usize..20,
        micros in 0_u64..45_000,
    ) {
        let mut rig = Rig::modern();
        rig.busy(busy);
        let calls: Vec<u64> = calls.into_iter().map(|lane| rig.call(lane)).collect();
        rig.pass(Duration::from_micros(micros));
        let actions = rig.event(Event::Stop);
        prop_assert!(matches!(actions.first(), Some(Action::Stopped(Stopped::Ok))));
        let quiet_from = rig.actions.len();
        rig.pass(ms(100));
        for id in calls {
            prop_assert_eq!(rig.replies(id).len(), 1);
        }
        prop_assert!(matches!(rig.actions[quiet_from..], [Action::Exit]));
        prop_assert!(rig.machine.is_idle());
    }

    #[test]
    fn frame_is_offered_at_most_three_times(busy in 0_usize..6, calls_before in 0_u64..3) {
        let mut rig = Rig::modern();
        for lane in 0..calls_before {
            rig.call(lane);
        }
        rig.busy(busy);
        let id = rig.call(9);
        rig.pass(ms(100));
        let offers = rig.offers_of(id);
        prop_assert_eq!(offers.len(), (busy + 1).min(3));
        for pair in offers.windows(2) {
            let delay = pair[1] - pair[0];
            prop_assert!((ms(5)..=ms(15)).contains(&delay), "{:?}", delay);
        }
        if busy < 3 {
            prop_assert!(rig.replies(id).is_empty());
        } else {
            let error = rig.error(id);
            prop_assert_eq!(&error, &CallError::Backpressure { attempts: 3 });
            prop_assert_eq!(error.to_string(), "transport busy after 3 attempts");
        }
    }

    #[test]
    fn tombstones_are_bounded(max in 1_usize..8, ends in prop::collection::vec((0_u8..3, 0_u64..20), 1..60)) {
        let mut settings = Settings::new(Raw::empty_object());
        settings.tombstones_max = max;
        let mut rig = Rig::with(settings);
        rig.connect_modern();
        for (end, seconds) in ends {
            let id = rig.call_with(0, |call| call.timeout = Some(ms(10)));
            match end {
                0 => {
                    rig.event(Event::CallerGone { id });
                }
                1 => {
                    rig.event(Event::Cancel { id, reason: None });
                }
                _ => rig.pass(ms(10)),
            }
            prop_assert!((1..=max).contains(&rig.machine.tombstones()));
            let late = rig.counters.late.get();
            rig.answer(id, r#""result":{}"#);
            prop_assert_eq!(rig.counters.late.get(), late + 1, "the latest is remembered");
            rig.pass(Duration::from_secs(seconds));
            prop_assert!(rig.machine.tombstones() <= max);
        }
        rig.pass(Duration::from_secs(75 + 60));
        prop_assert_eq!(rig.machine.tombstones(), 0);
    }

    #[test]
    fn stale_epochs_have_no_effect(
        reconnects in 1_u64..4,
        phase in 0_u8..5,
        events in prop::collection::vec((0_u64..6, 0_u8..6), 1..20),
    ) {
        let mut rig = Rig::modern();
        for _ in 0..reconnects {
            rig.down(DownKind::Closed);
            rig.event(Event::Restart);
            rig.connect_modern();
        }
        let call = rig.call(0);
        match phase {
            0 => {}
            1 => {
                rig.down(DownKind::Unreachable);
            }
            2 => {
                rig.down(DownKind::Permanent);
            }
            3 => {
                rig.down(DownKind::Unreachable);
                rig.event(Event::Restart);
            }
            _ => {
                rig.down(DownKind::Unreachable);
                rig.event(Event::Restart);
                rig.up();
            }
        }
        for (which, kind) in events {
            // Any transport but the current one: an earlier one, or one not yet opened.
            let epoch = if which < rig.epoch { which } else { rig.epoch + 1 };
            let event = match kind {
                0 => Event::TransportUp { epoch },
                1 => Event::TransportDown {
                    epoch,
                    down: Down { kind: DownKind::Permanent, message: "stale".into(), said: None },
                },
                2 => Event::FrameTooLarge { epoch, limit: 1 },
                3 => Event::RequestFailed {
                    epoch,
                    id: call,
                    failure: RequestFailure { status: Some(401), message: "stale".into(), said: None, sent: true, challenged: false },
                },
                4 => Event::Frame { epoch, frame: "garbage".into(), via: None },
                _ => Event::Frame {
                    epoch,
                    frame: format!(r#"{{"jsonrpc":"2.0","id":{call},"result":{{}}}}"#).into(),
                    via: Some(call),
                },
            };
            let before = (rig.machine.next_timeout(), rig.machine.in_flight(), rig.counters.values());
            let actions = rig.event(event);
            prop_assert!(actions.is_empty(), "{:?}", actions);
            let mut counted = before.2;
            counted.stale += 1;
            let after = (rig.machine.next_timeout(), rig.machine.in_flight(), rig.counters.values());
            prop_assert_eq!(after, (before.0, before.1, counted), "only the counter moves");
        }
    }

    #[test]
    fn log_message_reaches_the_call_of_its_stream(
        calls in prop::collection::vec((any::<bool>(), any::<bool>(), any::<bool>()), 0..5),
        via in prop::option::of(0_usize..6),
        modern in any::<bool>(),
    ) {
        let mut rig = if modern { Rig::modern() } else { Rig::legacy() };
        let mut under_way = Vec::new();
        let mut ids = Vec::new();
        for (logs, listens, answered) in calls {
            let id = rig.call_with(0, |call| {
                call.logs = logs;
                if listens {
                    call.method = "subscriptions/listen".into();
                }
            });
            ids.push(id);
            if answered {
                rig.answer(id, r#""result":{}"#);
            } else {
                under_way.push((id, logs, listens));
            }
        }
        // One past the end stands for an unknown stream.
        let via = via.map(|at| ids.get(at).copied().unwrap_or(u64::MAX));
        let mut works = under_way.iter().filter(|(_, _, listens)| !listens);
        let mine = match via {
            Some(via) => under_way.iter().find(|(id, ..)| *id == via),
            None => works.next().filter(|_| works.next().is_none()),
        };
        let actions = rig.frame_via(
            via,
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}"#,
        );
        match (mine, actions.as_slice()) {
            (Some((mine, true, _)), [Action::Log { id, params, is_named }, Action::Arm { .. }]) => {
                let told = (*id, params.as_str(), *is_named);
                prop_assert_eq!(told, (*mine, r#"{"data":1}"#, via.is_some()));
            }
            (
                None | Some((_, false, _)),
                [Action::Deliver(Inbound::Notification { via: told, .. }), Action::Arm { .. }],
            ) => prop_assert_eq!(*told, via),
            (mine, actions) => prop_assert!(false, "{:?} gets {:?}", mine, actions),
        }
    }

    #[test]
    fn every_caller_gets_a_reply_after_stop(
        phase in 0_u8..6,
        calls in prop::collection::vec((0_u64..4, any::<bool>(), 0_u8..3), 1..30),
        later in 0_u64..60,
    ) {
        let mut rig = match phase {
            0..=2 => Rig::new(),
            _ => Rig::legacy(),
        };
        match phase {
            1 => {
                rig.up();
            }
            2 | 3 => {
                rig.down(DownKind::Unreachable);
            }
            4 => {
                rig.down(DownKind::Permanent);
            }
            _ => {}
        }
        let mut ids = Vec::new();
        for (lane, notify, outcome) in calls {
            rig.outcomes.push_back([SendOutcome::Accepted, SendOutcome::Busy, SendOutcome::Closed][usize::from(outcome)]);
            ids.push(rig.call_with(lane, |call| {
                if notify {
                    call.kind = switchboard_machine::CallKind::Notification;
                }
            }));
        }
        rig.outcomes.clear();
        rig.pass(ms(later));
        let waiting: Vec<u64> = ids.iter().copied().filter(|id| rig.replies(*id).is_empty()).collect();
        rig.event(Event::Stop);
        for id in waiting {
            let stopped = matches!(rig.error(id), CallError::Shutdown { .. });
            prop_assert!(stopped);
        }
        let too_late = rig.call(0);
        prop_assert_eq!(rig.error(too_late), CallError::Shutdown { sent: false });
        prop_assert!(matches!(
            rig.event(Event::Stop).as_slice(),
            [Action::Stopped(Stopped::AlreadyClosing)]
        ));
        rig.pass(ms(100));
        for id in ids {
            prop_assert_eq!(rig.replies(id).len(), 1);
        }
        let exits = rig.actions.iter().filter(|action| matches!(action, Action::Exit)).count();
        prop_assert_eq!(exits, 1);
        prop_assert!(rig.machine.is_idle());
    }
}
