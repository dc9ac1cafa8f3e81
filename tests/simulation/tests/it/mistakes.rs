//! Machines with a bug are caught, with a short schedule.

use std::collections::VecDeque;

use switchboard_machine::{Action, Event};
use switchboard_simulation::{
    Campaign, Coverage, Invariant, Progress, Step, Subject,
    broken::{
        ActsOnStale, AnswersTwice, ArmsClosed, ForgetsDeadline, ForgetsStream, LogsLate, Mistake,
        Overtakes, SendsAgain, With,
    },
    run, schedule, shrink, try_run,
};

/// Asserts that the bug is found, shrunk to at most `steps_max` steps, and reproduced from the schedule
/// alone.
fn caught<S: Subject>(invariants: &[Invariant], steps_max: usize) {
    let campaign = Campaign {
        first_seed: 0,
        schedules: 20_000,
        threads: 2,
    };
    let outcome = campaign.run::<S>(&Progress::default());
    let failure = outcome.failure.expect("the mistake is not found");
    let (shrunk, schedule) = (&failure.shrunk, &failure.shrunk.schedule);
    assert!(
        invariants.contains(&shrunk.broken.invariant),
        "{}\n{schedule}",
        shrunk.broken
    );
    assert!(schedule.steps.len() <= steps_max, "not small:\n{schedule}");
    assert!(schedule.steps.len() <= failure.schedule.steps.len());

    let first = try_run::<S>(&failure.schedule, &mut Coverage::default()).unwrap_err();
    assert_eq!(
        first.invariant, shrunk.broken.invariant,
        "it shrank to another failure"
    );

    let read = schedule.to_string().parse().unwrap();
    let again = run::<S>(&read, &mut Coverage::default()).unwrap_err();
    assert_eq!(again, shrunk.broken, "the text is not the schedule");
    for at in 0..schedule.steps.len() {
        let mut fewer = schedule.clone();
        fewer.steps.remove(at);
        let other = try_run::<S>(&fewer, &mut Coverage::default());
        let same = other.is_err_and(|other| other.invariant == again.invariant);
        assert!(!same, "step {at} has no part in it:\n{schedule}");
    }
}

#[test]
fn second_reply_on_stop_is_caught() {
    // Connect, be busy, call, stop.
    caught::<With<AnswersTwice>>(&[Invariant::OneReply], 5);
}

#[test]
fn acting_on_a_stale_epoch_is_caught() {
    caught::<With<ActsOnStale>>(&[Invariant::StaleActs, Invariant::Counted], 3);
}

#[test]
fn lost_stream_is_caught() {
    // Connect, ask on a stream, and a stale event, which takes two steps.
    caught::<With<ForgetsStream>>(&[Invariant::Delivery], 7);
}

#[test]
fn log_message_after_the_response_is_caught() {
    // Connect, call, and both in one frame.
    caught::<With<LogsLate>>(&[Invariant::Delivery], 8);
}

#[test]
fn lost_deadline_is_caught() {
    caught::<With<ForgetsDeadline>>(&[Invariant::Timers, Invariant::Deadline], 3);
}

#[test]
fn fourth_send_is_caught() {
    caught::<With<SendsAgain>>(&[Invariant::SendCount, Invariant::SendPlace], 7);
}

#[test]
fn frame_that_overtakes_is_caught() {
    caught::<With<Overtakes>>(&[Invariant::LaneOrder], 6);
}

#[test]
fn arm_after_a_close_is_caught() {
    caught::<With<ArmsClosed>>(&[Invariant::Arm, Invariant::StopQuiet], 2);
}

#[test]
fn panic_is_a_failure_like_any_other() {
    #[derive(Default)]
    struct Panics;
    impl Mistake for Panics {
        fn event(&mut self, event: Event, _out: &mut VecDeque<Action>) -> Event {
            assert!(!matches!(event, Event::Restart), "no restarts here");
            event
        }
    }
    let with_restart = (0..1_000)
        .map(schedule)
        .find(|schedule| schedule.steps.contains(&Step::Restart));
    let shrunk = shrink::<With<Panics>>(&with_restart.unwrap()).unwrap();
    assert_eq!(shrunk.broken.invariant, Invariant::Panic);
    assert_eq!(shrunk.broken.detail, "no restarts here");
    assert_eq!(shrunk.schedule.steps, [Step::Restart]);
}
