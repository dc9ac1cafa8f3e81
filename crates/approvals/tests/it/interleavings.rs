//! All events that can happen to requests, in any order: each request ends once, is delivered at most once,
//! and causes at most one completion of a model.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use proptest::prelude::*;
use switchboard_approvals::{Action, Input, Kind, Status, Usage};
use switchboard_wire::Raw;

use crate::world::{Seen, World, ask};

#[derive(Clone, Debug)]
enum Move {
    Raise(Kind, u8),
    Leave(u8),
    Decide(u8, Action),
    /// The disk has finished its first write, or has failed.
    Write(bool),
    /// A write is reported as failed, but has succeeded (`Lie`), or may still succeed later (`GiveUp`, then
    /// `Late`).
    Lie,
    GiveUp,
    Late,
    /// The disk loses everything.
    Lose,
    Stop,
    Generate(bool),
    Pass(u64),
    Crash,
    Review(bool),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let kind = prop_oneof![
        3 => Just(Kind::Sampling),
        2 => Just(Kind::ToolCall),
        1 => Just(Kind::Elicitation),
    ];
    let action = prop_oneof![
        3 => Just(Action::Approve),
        1 => Just(Action::Reject),
        1 => Just(Action::Respond),
        1 => Just(Action::Accept),
        1 => Just(Action::Decline),
        1 => Just(Action::Cancel),
    ];
    let one = prop_oneof![
        4 => (kind, 0..3u8).prop_map(|(kind, key)| Move::Raise(kind, key)),
        2 => (0..8u8).prop_map(Move::Leave),
        6 => (0..6u8, action).prop_map(|(which, action)| Move::Decide(which, action)),
        10 => prop::bool::weighted(0.9).prop_map(Move::Write),
        3 => any::<bool>().prop_map(Move::Generate),
        2 => prop_oneof![Just(1), Just(10_000), Just(31_000), Just(300_000), Just(700_000)].prop_map(Move::Pass),
        1 => Just(Move::Crash),
        1 => any::<bool>().prop_map(Move::Review),
        2 => Just(Move::Lie),
        2 => Just(Move::GiveUp),
        2 => Just(Move::Late),
        1 => prop_oneof![3 => Just(Move::Crash), 1 => Just(Move::Lose), 1 => Just(Move::Stop)],
    ];
    prop::collection::vec(one, 1..120)
}

fn usage() -> Usage {
    Usage {
        model: "m".into(),
        input_tokens: None,
        output_tokens: None,
        cost: None,
        seconds: 0.0,
    }
}

/// A closed request stays closed, with the same status.
fn check_disk(world: &World, ends: &mut HashMap<Arc<str>, Status>) -> Result<(), TestCaseError> {
    for record in world.disk.values() {
        if record.status.is_open() {
            prop_assert!(!ends.contains_key(&record.id), "{} was over", record.id);
        } else {
            let end = ends.entry(Arc::clone(&record.id)).or_insert(record.status);
            prop_assert_eq!(*end, record.status, "{} came to a second end", record.id);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn every_request_comes_to_one_end(moves in moves()) {
        let mut world = World::new();
        world.slow_disk = true;
        world.may_conflict = true;
        let mut stopped: Option<u64> = None;
        let mut ids: Vec<Arc<str>> = Vec::new();
        let mut ends = HashMap::new();
        let mut generated: HashMap<Arc<str>, u32> = HashMap::new();
        let mut asker = 0;
        // The askers that wait, except for those lost by leaving or by a crash.
        let mut waiting = BTreeSet::new();
        let mut decider = 1_000;
        let mut deciders = Vec::new();
        for one in moves {
            let calls = world.generating.len();
            let mut ran = None;
            match one {
                Move::Raise(kind, key) => {
                    asker += 1;
                    waiting.insert(asker);
                    let id = world.raise(asker, ask(kind, &key.to_string()));
                    ids.push(id);
                }
                Move::Leave(back) => {
                    let leaves = u64::from(back);
                    if leaves < asker {
                        waiting.remove(&(asker - leaves));
                        world.input(Input::Leave(asker - leaves));
                    }
                }
                Move::Decide(back, action) => {
                    decider += 1;
                    if let Some(at) = ids.len().checked_sub(1 + usize::from(back)) {
                        if stopped.is_none() {
                            deciders.push(decider);
                        }
                        let id = ids[at].clone();
                        world.decide(decider, &id, action);
                    }
                }
                Move::Write(works) => {
                    if !world.writing.is_empty() {
                        let record = world.writing.remove(0);
                        world.write(&record, works);
                    }
                }
                Move::Lie | Move::GiveUp => {
                    if !world.writing.is_empty() {
                        let record = world.writing.remove(0);
                        let lies = matches!(one, Move::Lie) && world.put(&record);
                        if !lies {
                            world.late.push(Arc::clone(&record));
                        }
                        world.write(&record, false);
                        if lies && record.version == 1 {
                            // The driver looks up a new request: nothing else would find it.
                            world.input(Input::Found(record));
                        }
                    }
                }
                Move::Late => {
                    if !world.late.is_empty() {
                        let record = world.late.remove(0);
                        if world.put(&record) {
                            world.input(Input::Found(record));
                        }
                    }
                }
                Move::Lose => world.disk.clear(),
                Move::Stop => {
                    world.input(Input::Stop);
                    // Approvers get no replies any more.
                    deciders.clear();
                    stopped.get_or_insert(world.now);
                }
                Move::Generate(works) => {
                    if !world.generating.is_empty() {
                        let id = world.generating.remove(0);
                        let answer = Raw::parse(r#"{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}"#).unwrap();
                        let result = if works { Ok((answer, usage())) } else { Err("no".into()) };
                        world.input(Input::Generated { id: id.clone(), result });
                        ran = Some(());
                    }
                }
                Move::Pass(time) => {
                    let until = world.now + time;
                    world.pass(until);
                }
                Move::Crash => {
                    // The write in progress may have reached the disk.
                    if world.now.is_multiple_of(2) && !world.writing.is_empty() {
                        let record = world.writing.remove(0);
                        world.put(&record);
                    }
                    // Approvers that waited for a reply are lost with it.
                    deciders.clear();
                    world.crash();
                    waiting.clear();
                    stopped = None;
                }
                Move::Review(review) => world.broker.set_generation(true, review),
            }
            if ran.is_none() {
                for id in world.generating.iter().skip(calls) {
                    *generated.entry(Arc::clone(id)).or_default() += 1;
                }
            }
            check_disk(&world, &mut ends)?;
            if let Some(at) = stopped {
                let writes = world.writing.iter().map(|record| &**record);
                let later = writes.filter(|record| record.delivered.is_some_and(|when| when > at));
                prop_assert_eq!(later.count(), 0, "handed over to nobody");
            }
            let open = world.broker.records().filter(|record| record.status.waits());
            prop_assert_eq!(world.broker.waiting(), open.count());
        }
        world.late.clear();
        // In the end the disk works and nothing else happens: every request closes.
        world.slow_disk = false;
        if stopped.is_some() {
            world.crash();
            waiting.clear();
        }
        for record in std::mem::take(&mut world.writing) {
            world.write(&record, true);
        }
        for _ in 0..3 {
            for id in std::mem::take(&mut world.generating) {
                let result = Err("no".into());
                world.input(Input::Generated { id, result });
            }
            let until = world.now + 10_000_000;
            world.pass(until);
        }
        check_disk(&world, &mut ends)?;
        for record in world.disk.values() {
            prop_assert!(!record.is_live(), "{} never ends: {:?}", record.id, record.status);
        }
        prop_assert_eq!(world.broker.records().count(), 0);
        prop_assert_eq!(world.broker.waiting(), 0);
        prop_assert_eq!(world.broker.wake(), None);
        for (id, calls) in generated {
            prop_assert!(calls <= 1, "{id} asked the model {calls} times");
        }
        let mut answered: HashMap<u64, u32> = HashMap::new();
        for (_, seen) in &world.seen {
            match seen {
                Seen::Delivered(who, _) | Seen::Replied(who, _) => {
                    *answered.entry(*who).or_default() += 1;
                }
                Seen::Told(..) | Seen::Generated => {}
            }
        }
        for who in deciders {
            prop_assert!(answered.contains_key(&who), "{who} never heard what became of it");
        }
        for who in waiting {
            prop_assert!(answered.contains_key(&who), "{who} was never answered");
        }
        for (who, times) in answered {
            prop_assert!(times <= 1, "{who} was answered {times} times");
        }
        for (id, times) in &world.delivered {
            prop_assert!(*times <= 1, "{id} was handed over {times} times");
        }
    }
}
