//! Invariants of pins after any sequence of events.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use switchboard_trust::{Fingerprint, Pins, Policy, Verdict, Why, fingerprint};
use switchboard_wire::Raw;

use crate::tool;

/// Few names and texts, so that they collide often. The last text contains an invisible character.
const NAMES: [&str; 3] = ["a", "b", "c"];
const TEXTS: [&str; 4] = ["one", "two", "three", "fo\u{200b}ur"];

#[derive(Clone, Debug)]
enum Step {
    Judge(Policy, Vec<(usize, usize)>),
    Approve(usize, Option<usize>),
    Reject(usize, Option<usize>),
    ApproveAll,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let policy = prop_oneof![
        4 => Just(Policy::First),
        2 => Just(Policy::Ask),
        1 => Just(Policy::Always),
    ];
    let tools = prop::collection::vec((0..NAMES.len(), 0..TEXTS.len()), 0..5);
    let seen = || prop::option::of(0..TEXTS.len());
    prop_oneof![
        5 => (policy, tools).prop_map(|(policy, tools)| Step::Judge(policy, tools)),
        2 => (0..NAMES.len(), seen()).prop_map(|(name, seen)| Step::Approve(name, seen)),
        2 => (0..NAMES.len(), seen()).prop_map(|(name, seen)| Step::Reject(name, seen)),
        1 => Just(Step::ApproveAll),
        2 => Just(Step::Restart),
    ]
}

fn of(name: usize, text: usize) -> Fingerprint {
    fingerprint(&tool(NAMES[name], TEXTS[text]))
}

/// A simple model of the decisions, kept beside the pins.
#[derive(Default)]
struct Account {
    /// The last approved definition of each tool.
    agreed: HashMap<usize, Fingerprint>,
    refused: HashMap<usize, HashSet<Fingerprint>>,
    /// The held definition of each tool at the last judgement.
    held: HashMap<usize, Fingerprint>,
}

impl Account {
    fn agree(&mut self, name: usize, to: Fingerprint) {
        self.agreed.insert(name, to);
        self.refused.entry(name).or_default().remove(&to);
        self.held.remove(&name);
    }

    /// The expected reason for holding a tool; `None` if it is approved.
    fn expect(&mut self, damaged: bool, policy: Policy, name: usize, text: usize) -> Option<Why> {
        let now = of(name, text);
        let agreed = self.agreed.get(&name).copied();
        let refused = self.refused.entry(name).or_default().contains(&now);
        match (agreed, policy) {
            (Some(agreed), _) if agreed == now => None,
            (Some(_), Policy::Always) => None,
            (None, Policy::Always) if !damaged => None,
            _ if refused => Some(Why::Rejected),
            (Some(_), _) => Some(Why::Changed),
            (None, Policy::First) if !damaged && text == 3 => Some(Why::Hidden),
            (None, Policy::First) if !damaged => None,
            _ => Some(Why::New),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Only pinned or approved definitions pass, and a restart changes nothing.
    #[test]
    fn only_approved_definitions_pass(
        mut damaged: bool,
        steps in prop::collection::vec(step(), 1..30),
    ) {
        let mut pins = if damaged {
            Pins::damaged("s", "i")
        } else {
            Pins::new("s", "i")
        };
        let mut account = Account::default();
        for (at, step) in steps.into_iter().enumerate() {
            let at = at as u64;
            match step {
                Step::Judge(policy, mut offered) => {
                    let mut names = HashSet::new();
                    offered.retain(|(name, _)| names.insert(*name));
                    let tools: Vec<Raw> = offered
                        .iter()
                        .map(|(name, text)| tool(NAMES[*name], TEXTS[*text]))
                        .collect();
                    let before = pins.clone();
                    let verdicts = pins.judge(policy, &tools, at);
                    prop_assert_eq!(verdicts.changed, before != pins);
                    account.held.clear();
                    for ((name, text), verdict) in offered.into_iter().zip(&verdicts.items) {
                        let expected = account.expect(damaged, policy, name, text);
                        prop_assert_eq!(*verdict, expected.map_or(Verdict::Approved, Verdict::Held));
                        match expected {
                            None => account.agree(name, of(name, text)),
                            Some(_) => { account.held.insert(name, of(name, text)); }
                        }
                    }
                    prop_assert!(!pins.judge(policy, &tools, at + 1).changed);
                }
                Step::Approve(name, seen) => {
                    let seen = seen.map(|text| of(name, text));
                    let held = account.held.get(&name).copied();
                    let fits = held.is_some_and(|held| seen.is_none_or(|seen| seen == held));
                    prop_assert_eq!(pins.approve(NAMES[name], seen, at).is_ok(), fits);
                    if let Some(held) = held.filter(|_| fits) {
                        account.agree(name, held);
                    }
                }
                Step::Reject(name, seen) => {
                    let seen = seen.map(|text| of(name, text));
                    let held = account.held.get(&name).copied();
                    let fits = held.is_some_and(|held| seen.is_none_or(|seen| seen == held));
                    prop_assert_eq!(pins.reject(NAMES[name], seen).is_ok(), fits);
                    if let Some(held) = held.filter(|_| fits) {
                        account.refused.entry(name).or_default().insert(held);
                    }
                }
                Step::ApproveAll => {
                    let pending: Vec<_> = account
                        .held
                        .iter()
                        .filter(|(name, held)| {
                            !account.refused.get(*name).is_some_and(|no| no.contains(*held))
                        })
                        .map(|(name, held)| (*name, *held))
                        .collect();
                    prop_assert_eq!(pins.approve_all(at).len(), pending.len());
                    for (name, held) in pending {
                        account.agree(name, held);
                    }
                    damaged = false;
                }
                Step::Restart => {
                    let again = Pins::decode(&pins.encode()).unwrap();
                    prop_assert_eq!(&again, &pins);
                    pins = again;
                }
            }
            let held: HashMap<_, _> = pins
                .held()
                .map(|held| (held.tool.to_string(), held.fingerprint))
                .collect();
            let expected: HashMap<_, _> = account
                .held
                .iter()
                .map(|(name, held)| (NAMES[*name].to_owned(), *held))
                .collect();
            prop_assert_eq!(held, expected);
        }
    }
}
