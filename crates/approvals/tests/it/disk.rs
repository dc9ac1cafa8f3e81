//! A disk that fails, hangs, or differs from the state that the broker expects.

use switchboard_approvals::{
    Action, Ask, DecisionError, Input, Kind, Outcome,
    broker::{Change, KEEP},
};

use crate::world::{Seen, World, ask, owners};

fn delivered(world: &World) -> Vec<&Outcome> {
    let delivered = world.seen.iter().filter_map(|(_, seen)| match seen {
        Seen::Delivered(_, outcome) => Some(outcome),
        _ => None,
    });
    delivered.collect()
}

/// Lets the next write fail.
fn fail(world: &mut World) {
    let record = world.writing.remove(0);
    world.write(&record, false);
}

/// Lets the next write succeed.
fn works(world: &mut World) {
    let record = world.writing.remove(0);
    world.write(&record, true);
}

#[test]
fn decision_waits_until_the_disk_recovers() {
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
            Seen::Replied(9, Err(DecisionError::Late(_)))
        ),
        "{:?}",
        world.seen
    );
    assert_eq!(world.disk[&id].status.as_str(), "withdrawn");
    assert_eq!(world.broker.wake(), None);
}

#[test]
fn expired_answer_is_not_delivered_despite_failed_write() {
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
fn new_asker_replaces_rules_and_scope() {
    let mut world = World::new();
    // Without a model the rule cannot approve it.
    world.broker.set_generation(false, false);
    let mut old = ask(Kind::Sampling, "k");
    old.rule = Some("old".into());
    old.allowed_by = Some("old".into());
    let id = world.raise(1, old);
    world.crash();
    world.broker.set_generation(false, false);
    let mut new = ask(Kind::Sampling, "k");
    new.rule = Some("new".into());
    new.session = owners(7);
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

/// A request for a completion that a rule allows.
fn allowed() -> Ask {
    let mut ask = ask(Kind::Sampling, "k");
    ask.allowed_by = Some("sampling".into());
    ask
}

#[test]
fn rule_decides_without_a_reply() {
    let mut world = World::new();
    let id = world.raise(1, allowed());
    let seen: Vec<_> = world.seen.iter().map(|(_, seen)| seen).collect();
    assert_eq!(
        seen,
        [
            &Seen::Told(Change::Created, "pending"),
            &Seen::Told(Change::Decided, "generating"),
            &Seen::Generated,
        ]
    );
    let decided = world.disk[&id].decided.as_ref().unwrap();
    assert_eq!(&*decided.by, "rule: sampling");
}

#[test]
fn rule_decides_again_after_a_failed_write() {
    let mut world = World::new();
    world.slow_disk = true;
    let id = world.raise(1, allowed());
    works(&mut world);
    fail(&mut world);
    assert_eq!(world.disk[&id].status.as_str(), "pending");
    world.slow_disk = false;
    world.pass(1_000);
    assert_eq!(world.disk[&id].status.as_str(), "generating");
}

#[test]
fn rule_decides_for_a_new_asker() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::Sampling, "k"));
    world.crash();
    world.raise(2, allowed());
    assert_eq!(world.disk[&id].status.as_str(), "generating");
}

#[test]
fn rule_decides_nothing_while_the_gateway_stops() {
    let mut world = World::new();
    world.slow_disk = true;
    let id = world.raise(1, allowed());
    world.input(Input::Stop);
    works(&mut world);
    assert!(world.writing.is_empty());
    assert_eq!(world.disk[&id].status.as_str(), "pending");
}

/// Lets the next write succeed, and reports it as failed.
fn lie(world: &mut World) {
    world.may_conflict = true;
    let record = world.writing.remove(0);
    assert!(world.put(&record));
    world.write(&record, false);
}

#[test]
fn decision_stored_despite_reported_failure_counts() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    world.slow_disk = true;
    world.decide(8, &id, Action::Approve);
    lie(&mut world);
    assert!(delivered(&world).is_empty());
    world.slow_disk = false;
    world.decide(9, &id, Action::Reject);
    assert_eq!(delivered(&world), [&Outcome::Answer(None)]);
    let Seen::Replied(9, Err(DecisionError::Late(winner))) = &world.seen.last().unwrap().1 else {
        panic!("{:?}", world.seen);
    };
    assert_eq!(&*winner.decided.as_ref().unwrap().by, "p8");
    assert_eq!(world.broker.records().count(), 0);
}

#[test]
fn model_runs_once_after_a_conflict() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::Sampling, "k"));
    world.slow_disk = true;
    world.decide(8, &id, Action::Approve);
    lie(&mut world);
    world.slow_disk = false;
    assert!(world.generating.is_empty());
    world.decide(9, &id, Action::Approve);
    assert_eq!(world.generating.len(), 1);
    assert_eq!(world.disk[&id].status.as_str(), "generating");
}

#[test]
fn model_runs_for_orphans_after_a_conflict() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::Sampling, "k"));
    world.crash();
    world.slow_disk = true;
    world.decide(8, &id, Action::Approve);
    lie(&mut world);
    world.slow_disk = false;
    world.decide(9, &id, Action::Approve);
    assert_eq!(world.generating.len(), 1);
    assert_eq!(world.disk[&id].status.as_str(), "generating");
}

#[test]
fn request_lost_by_the_disk_is_given_up() {
    let mut world = World::new();
    world.may_conflict = true;
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    world.disk.clear();
    world.decide(9, &id, Action::Approve);
    assert!(matches!(delivered(&world)[..], [Outcome::Unavailable(_)]));
    assert!(matches!(
        world.seen.last().unwrap().1,
        Seen::Replied(9, Err(DecisionError::Unavailable(_)))
    ));
    assert_eq!(world.broker.wake(), None);
    assert_eq!(world.broker.records().count(), 0);
}

#[test]
fn request_stored_too_late_is_withdrawn() {
    let mut world = World::new();
    world.slow_disk = true;
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    let record = world.writing.remove(0);
    world.write(&record, false);
    world.slow_disk = false;
    assert!(world.put(&record));
    world.input(Input::Found(record));
    assert_eq!(world.disk[&id].status.as_str(), "withdrawn");
    assert_eq!(world.broker.records().count(), 0);
}

#[test]
fn decision_stored_late_reaches_the_asker() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    world.slow_disk = true;
    world.decide(9, &id, Action::Approve);
    let record = world.writing.remove(0);
    world.write(&record, false);
    assert!(world.put(&record));
    world.input(Input::Found(record));
    assert_eq!(delivered(&world), [&Outcome::Answer(None)]);
    assert_eq!(world.broker.records().count(), 0);
}

#[test]
fn failed_write_does_not_delay_the_deadline() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::Sampling, "k"));
    world.decide(9, &id, Action::Approve);
    world.slow_disk = true;
    world.input(Input::Generated {
        id,
        result: Err("no".into()),
    });
    fail(&mut world);
    assert!(delivered(&world).is_empty());
    world.now = 300_000;
    world.input(Input::Tick);
    fail(&mut world);
    assert!(matches!(delivered(&world)[..], [Outcome::Unavailable(_)]));
}

#[test]
fn decision_during_shutdown_is_kept() {
    let mut world = World::new();
    let id = world.raise(1, ask(Kind::ToolCall, "k"));
    let model = world.raise(2, ask(Kind::Sampling, "m"));
    let last = world.raise(3, ask(Kind::ToolCall, "l"));
    world.decide(8, &model, Action::Approve);
    world.slow_disk = true;
    world.decide(7, &last, Action::Approve);
    world.input(Input::Stop);
    // The delivery that was being stored still happens.
    works(&mut world);
    world.slow_disk = false;
    let last = delivered(&world);
    assert_eq!(last.len(), 3, "{last:?}");
    assert!(matches!(last[0], Outcome::Unavailable(_)));
    assert!(matches!(last[1], Outcome::Unavailable(_)));
    assert_eq!(last[2], &Outcome::Answer(None));
    world.decide(9, &id, Action::Approve);
    world.input(Input::Generated {
        id: model.clone(),
        result: Err("no".into()),
    });
    let record = &world.disk[&id];
    assert!(record.delivered.is_none() && record.kept.is_some());
    assert!(world.disk[&model].delivered.is_none());
    world.raise(4, ask(Kind::ToolCall, "k"));
    assert!(matches!(
        world.seen.last().unwrap().1,
        Seen::Delivered(4, Outcome::Unavailable(_))
    ));
    world.crash();
    world.raise(5, ask(Kind::ToolCall, "k"));
    assert_eq!(delivered(&world).last(), Some(&&Outcome::Answer(None)));
}
