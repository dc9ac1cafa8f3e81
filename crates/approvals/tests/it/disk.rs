//! A disk that fails, hangs, or says something else than the broker thinks.

use switchboard_approvals::{
    Action, Input, Kind, Outcome, Refusal,
    broker::{Change, KEEP},
};

use crate::world::{Seen, World, ask};

fn delivered(world: &World) -> Vec<&Outcome> {
    let delivered = world.seen.iter().filter_map(|(_, seen)| match seen {
        Seen::Delivered(_, outcome) => Some(outcome),
        _ => None,
    });
    delivered.collect()
}

/// The next write fails.
fn fail(world: &mut World) {
    let record = world.writing.remove(0);
    world.write(&record, false);
}

/// The next write works.
fn works(world: &mut World) {
    let record = world.writing.remove(0);
    world.write(&record, true);
}

#[test]
fn a_decision_is_not_refused_because_the_disk_has_failed_for_a_while() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    world.slow_disk = true;
    world.input(Input::Leave(1));
    for second in 1..=100 {
        fail(&mut world);
        world.pass(second * 1_000);
    }
    world.decide(9, &id, Action::Approve);
    works(&mut world);
    assert!(
        matches!(
            &world.seen.last().unwrap().1,
            Seen::Replied(9, Err(Refusal::Late(_)))
        ),
        "{:?}",
        world.seen
    );
    assert_eq!(world.disk[&id].status.as_str(), "withdrawn");
    assert_eq!(world.broker.wake(), None);
}

#[test]
fn a_kept_answer_is_not_given_when_its_time_is_over_though_that_is_not_written() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    world.crash();
    world.decide(9, &id, Action::Approve);
    world.slow_disk = true;
    world.pass(KEEP);
    fail(&mut world);
    world.slow_disk = false;
    let again = world.raise(2, ask(Kind::ToolCall, "k"));
    assert!(delivered(&world).is_empty(), "{:?}", world.seen);
    assert_eq!(world.disk[&again].status.as_str(), "pending");
}

#[test]
fn who_takes_a_question_over_brings_its_own_rules() {
    let mut world = World::new();
    let mut old = ask(Kind::ToolCall, "k");
    old.rule = Some("old".into());
    old.allowed_by = Some("old".into());
    let id = world.raise(1, old);
    world.crash();
    let mut new = ask(Kind::ToolCall, "k");
    new.rule = Some("new".into());
    new.session = 7;
    new.project = Some("p".into());
    world.raise(2, new.clone());
    let record = &world.disk[&id];
    assert_eq!(record.status.as_str(), "pending");
    assert_eq!(record.ask, new);
    assert!(
        world
            .seen
            .contains(&(0, Seen::Told(Change::Resumed, "pending")))
    );
}
