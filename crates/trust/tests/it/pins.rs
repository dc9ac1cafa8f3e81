//! Approved, held, rejected and remembered definitions.

use switchboard_trust::{
    By, DecisionError, Held, ItemKind, LeftOut, Offer, Pins, Places, Policy, Verdict, Why,
    fingerprint, limits,
};
use switchboard_wire::Raw;

use crate::tool;

const APPROVED: Verdict = Verdict::Approved;

fn pins() -> Pins {
    Pins::new("math", "math-server")
}

fn judge(pins: &mut Pins, policy: Policy, tools: &[Raw]) -> Vec<Verdict> {
    pins.judge(policy, tools, 1).items
}

fn held(pins: &Pins) -> Vec<Held> {
    pins.held().collect()
}

#[test]
fn first_sight_is_approved_and_changes_held() {
    let mut pins = pins();
    let (old, new) = (tool("add", "Adds."), tool("add", "Adds, and more."));
    let first = pins.judge(Policy::First, std::slice::from_ref(&old), 10);
    assert_eq!((first.items, first.changed), (vec![APPROVED], true));
    let again = pins.judge(Policy::First, std::slice::from_ref(&old), 11);
    assert_eq!((again.items, again.changed), (vec![APPROVED], false));

    let changed = pins.judge(Policy::First, std::slice::from_ref(&new), 12);
    assert_eq!(changed.items, [Verdict::Held(Why::Changed)]);
    assert!(changed.changed);
    assert_eq!(changed.approved(std::slice::from_ref(&new)).count(), 0);
    let what = &held(&pins)[0];
    assert_eq!(what.approved.as_ref(), Some(&old));
    assert_eq!(what.definition.as_ref(), Some(&new));
    assert_eq!((what.fingerprint, what.since_ms), (fingerprint(&new), 12));
    // Holding it again changes nothing.
    assert!(
        !pins
            .judge(Policy::First, std::slice::from_ref(&new), 13)
            .changed
    );
    assert_eq!(held(&pins)[0].since_ms, 12);

    // A return to the approved definition needs no decision.
    assert_eq!(judge(&mut pins, Policy::First, &[old]), [APPROVED]);
    assert!(held(&pins).is_empty());
}

#[test]
fn approved_change_becomes_the_pin() {
    let mut pins = pins();
    let (old, new) = (tool("add", "Adds."), tool("add", "Adds, and more."));
    judge(&mut pins, Policy::First, std::slice::from_ref(&old));
    judge(&mut pins, Policy::First, std::slice::from_ref(&new));
    pins.approve("add", Some(fingerprint(&new)), 20).unwrap();
    assert_eq!(judge(&mut pins, Policy::First, &[new]), [APPROVED]);
    let pin = pins.approved().next().unwrap();
    assert_eq!((pin.by, pin.at_ms), (By::Person, 20));
    // The old definition is no longer approved.
    assert_eq!(
        judge(&mut pins, Policy::First, &[old]),
        [Verdict::Held(Why::Changed)]
    );
}

#[test]
fn ask_holds_everything_and_always_holds_nothing() {
    let (one, two) = (tool("add", "Adds."), tool("add", "Adds, and more."));
    let mut asking = pins();
    assert_eq!(
        judge(&mut asking, Policy::Ask, std::slice::from_ref(&one)),
        [Verdict::Held(Why::New)]
    );
    asking.approve("add", None, 1).unwrap();
    assert_eq!(
        judge(&mut asking, Policy::Ask, std::slice::from_ref(&one)),
        [APPROVED]
    );
    assert_eq!(
        judge(&mut asking, Policy::Ask, std::slice::from_ref(&two)),
        [Verdict::Held(Why::Changed)]
    );

    let mut trusting = pins();
    for tool in [&one, &two] {
        assert_eq!(
            judge(&mut trusting, Policy::Always, std::slice::from_ref(tool)),
            [APPROVED]
        );
        assert_eq!(
            trusting.approved().next().unwrap().fingerprint,
            fingerprint(tool)
        );
    }
    // When the policy becomes stricter, the pins are those of the last judgement.
    assert_eq!(
        judge(&mut trusting, Policy::First, std::slice::from_ref(&one)),
        [Verdict::Held(Why::Changed)]
    );
    assert_eq!(judge(&mut trusting, Policy::Ask, &[two]), [APPROVED]);
}

#[test]
fn unseen_change_is_not_approved() {
    let mut pins = pins();
    let (seen, meanwhile) = (tool("add", "Adds."), tool("add", "Sends."));
    judge(&mut pins, Policy::Ask, std::slice::from_ref(&seen));
    judge(&mut pins, Policy::Ask, std::slice::from_ref(&meanwhile));
    let changed = DecisionError::Changed {
        tool: "add".into(),
        seen: fingerprint(&seen),
        now: fingerprint(&meanwhile),
    };
    let looked_at = Some(fingerprint(&seen));
    assert_eq!(pins.approve("add", looked_at, 1), Err(changed.clone()));
    assert_eq!(pins.reject("add", looked_at), Err(changed));
    assert!(held(&pins)[0].is_pending());
    for nothing in ["subtract", ""] {
        let error = pins.approve(nothing, None, 1).unwrap_err();
        assert!(matches!(error, DecisionError::NotHeld { .. }), "{error}");
    }
}

#[test]
fn rejection_applies_to_exactly_that_definition() {
    let mut pins = pins();
    let (old, bad, worse) = (tool("a", "x"), tool("a", "y"), tool("a", "z"));
    judge(&mut pins, Policy::First, std::slice::from_ref(&old));
    judge(&mut pins, Policy::First, std::slice::from_ref(&bad));
    pins.reject("a", Some(fingerprint(&bad))).unwrap();
    assert!(!held(&pins)[0].is_pending());
    assert_eq!(pins.approve_all(1).len(), 0);

    let one = std::slice::from_ref::<Raw>;
    let rejected = [Verdict::Held(Why::Rejected)];
    assert_eq!(judge(&mut pins, Policy::First, one(&bad)), rejected);
    assert_eq!(
        judge(&mut pins, Policy::First, one(&worse)),
        [Verdict::Held(Why::Changed)]
    );
    // It is remembered despite other changes and absences.
    assert_eq!(judge(&mut pins, Policy::First, one(&bad)), rejected);
    judge(&mut pins, Policy::First, &[]);
    assert_eq!(judge(&mut pins, Policy::First, one(&bad)), rejected);
    assert_eq!(judge(&mut pins, Policy::First, one(&old)), [APPROVED]);

    judge(&mut pins, Policy::First, one(&bad));
    pins.approve("a", None, 1).unwrap();
    assert_eq!(judge(&mut pins, Policy::First, one(&bad)), [APPROVED]);
}

#[test]
fn never_approved_tool_stays_rejected() {
    let mut pins = pins();
    let bad = [tool("a", "x")];
    judge(&mut pins, Policy::Ask, &bad);
    pins.reject("a", None).unwrap();
    judge(&mut pins, Policy::First, &[]);
    assert_eq!(
        judge(&mut pins, Policy::First, &bad),
        [Verdict::Held(Why::Rejected)]
    );
}

#[test]
fn vanished_tool_returns_with_its_pin() {
    let mut pins = pins();
    judge(&mut pins, Policy::First, &[tool("a", "x"), tool("b", "x")]);
    let gone = pins.judge(Policy::First, &[tool("b", "x")], 5);
    assert!(gone.changed);
    assert!(!pins.judge(Policy::First, &[tool("b", "x")], 6).changed);
    assert_eq!(pins.approved().next().unwrap().vanished_ms, Some(5));
    assert_eq!(
        judge(&mut pins, Policy::First, &[tool("a", "y"), tool("b", "x")]),
        [Verdict::Held(Why::Changed), APPROVED]
    );
    assert_eq!(pins.approved().next().unwrap().vanished_ms, None);
}

#[test]
fn vanished_tool_is_no_longer_held() {
    let mut pins = pins();
    judge(&mut pins, Policy::Ask, &[tool("a", "x")]);
    assert!(pins.judge(Policy::Ask, &[], 2).changed);
    assert!(held(&pins).is_empty());
    assert_eq!(pins, Pins::new("math", "math-server"));
}

#[test]
fn flooding_the_pins_launders_nothing() {
    let mut pins = pins();
    judge(&mut pins, Policy::First, &[tool("victim", "good")]);
    assert_eq!(pins.note(), None);
    let flood = |round: usize| -> Vec<Raw> {
        let names = 0..limits::TOOLS;
        names
            .map(|n| tool(&format!("junk-{round}-{n}"), ""))
            .collect()
    };
    for round in 0..limits::PINS / limits::TOOLS {
        assert!(
            pins.judge(Policy::First, &flood(round), 2 + round as u64)
                .all_approved()
        );
    }
    assert_eq!(pins.approved().count(), limits::PINS);
    assert!(pins.approved().all(|pin| &*pin.tool != "victim"));
    assert!(pins.note().is_some());
    // Its pin is gone, and new tools are no longer approved on first sight.
    let evil = [tool("victim", "evil")];
    assert_eq!(
        judge(&mut pins, Policy::First, &evil),
        [Verdict::Held(Why::New)]
    );
    assert_eq!(judge(&mut pins.clone(), Policy::Always, &evil), [APPROVED]);
    assert_eq!(pins.approve_all(9).len(), 1);
    assert_eq!(pins.note(), None);
    assert_eq!(
        judge(&mut pins, Policy::First, &[tool("fresh", "")]),
        [APPROVED]
    );
}

#[test]
fn unjudgeable_tools_are_left_out() {
    let mut pins = pins();
    let parse = |json: &'static str| Raw::parse(json).unwrap();
    let tools = [
        parse("1"),
        parse("{}"),
        parse(r#"{"name":1}"#),
        parse(r#"{"name":"a","name":"a"}"#),
        parse(r#"{"name":"\ud800"}"#),
        tool(&"n".repeat(limits::NAME_BYTES + 1), ""),
        tool("a", "the first one counts"),
        tool("a", "the second one does not"),
    ];
    let unnamed = Verdict::LeftOut(LeftOut::Unnamed);
    for policy in [Policy::First, Policy::Always] {
        assert_eq!(
            judge(&mut pins, policy, &tools),
            [
                unnamed,
                unnamed,
                unnamed,
                unnamed,
                unnamed,
                Verdict::LeftOut(LeftOut::LongName),
                APPROVED,
                Verdict::LeftOut(LeftOut::Twice),
            ]
        );
    }
    let swapped = [tools[7].clone(), tools[6].clone()];
    assert_eq!(
        judge(&mut pins, Policy::First, &swapped),
        [
            Verdict::Held(Why::Changed),
            Verdict::LeftOut(LeftOut::Twice)
        ]
    );
    let many: Vec<_> = (0..=limits::TOOLS)
        .map(|n| tool(&n.to_string(), ""))
        .collect();
    let verdicts = judge(&mut pins, Policy::First, &many);
    assert_eq!(verdicts.last(), Some(&Verdict::LeftOut(LeftOut::TooMany)));
}

#[test]
fn damaged_pins_hold_everything_under_any_policy() {
    let tools = [tool("a", "x"), tool("b", "x")];
    for policy in [Policy::First, Policy::Ask, Policy::Always] {
        let mut pins = Pins::damaged("math", "math-server");
        assert!(pins.is_of("math-server"));
        assert!(pins.note().unwrap().contains("cannot be read"));
        let held = [Verdict::Held(Why::New); 2];
        assert_eq!(judge(&mut pins, policy, &tools), held);
        pins.approve("a", None, 1).unwrap();
        let one = [APPROVED, Verdict::Held(Why::New)];
        assert_eq!(judge(&mut pins, policy, &tools), one);
        let mut pins = Pins::decode(&pins.encode()).unwrap();
        assert_eq!(judge(&mut pins, policy, &tools), one);
        assert_eq!(pins.approve_all(1).len(), 1);
        assert_eq!(pins.note(), None);
    }
}

#[test]
fn changed_configuration_is_noticed_and_secrets_are_dropped() {
    let pins = Pins::new("math", "math-server --key hunter2");
    assert!(pins.is_of("math-server --key hunter2"));
    assert!(!pins.is_of("math-server --key hunter3"));
    assert!(!String::from_utf8(pins.encode()).unwrap().contains("hunter"));
}

#[test]
fn large_definitions_keep_only_their_fingerprint() {
    let mut pins = pins();
    let large = tool("a", &"x".repeat(limits::DEFINITION_BYTES));
    // First sight would hold it: it is too long to be scanned.
    judge(&mut pins, Policy::Always, std::slice::from_ref(&large));
    assert_eq!(pins.approved().next().unwrap().definition, None);
    assert_eq!(judge(&mut pins, Policy::First, &[large]), [APPROVED]);
    let larger = tool("a", &"y".repeat(limits::DEFINITION_BYTES));
    assert_eq!(
        judge(&mut pins, Policy::First, std::slice::from_ref(&larger)),
        [Verdict::Held(Why::Changed)]
    );
    let what = &held(&pins)[0];
    assert_eq!((&what.definition, &what.approved), (&None, &None));
    assert!(what.diff().is_none());
    pins.approve("a", Some(fingerprint(&larger)), 1).unwrap();
    assert_eq!(judge(&mut pins, Policy::First, &[larger]), [APPROVED]);
}

#[test]
fn total_text_of_definitions_is_bounded() {
    let mut pins = pins();
    let big = "x".repeat(limits::DEFINITION_BYTES / 2);
    let gone: Vec<_> = (0..40).map(|n| tool(&format!("a{n:02}"), &big)).collect();
    judge(&mut pins, Policy::Always, &gone);
    let here: Vec<_> = (0..40).map(|n| tool(&format!("b{n:02}"), &big)).collect();
    judge(&mut pins, Policy::Always, &here);
    let kept = |prefix: char| {
        let pins = pins.approved().filter(|pin| pin.tool.starts_with(prefix));
        pins.filter(|pin| pin.definition.is_some()).count()
    };
    // Offered tools keep their texts, as many as fit.
    assert_eq!(kept('b'), 40);
    assert_eq!(kept('a'), 23);
    assert!(pins.encode().len() < limits::PINS_BYTES);
    assert_eq!(judge(&mut pins, Policy::First, &gone[..1]), [APPROVED]);
}

/// Judges the list, and definitions of other processes.
fn judge_apart(pins: &mut Pins, policy: Policy, listed: &Raw, others: &[&Raw], at: u64) -> usize {
    let before = pins.clone();
    pins.judge(policy, std::slice::from_ref(listed), at);
    let offers = others.iter().map(|definition| Offer {
        kind: ItemKind::Tool,
        definition,
    });
    let held = pins.hold_apart(&before, &Places::default(), policy, offers, at);
    assert!(held.iter().all(|key| key == "add"));
    held.len()
}

#[test]
fn definition_of_another_process_is_held_apart() {
    let (mut pins, first) = (pins(), Policy::First);
    let [old, new, third] = ["Adds.", "Adds, and more.", "?"].map(|text| tool("add", text));
    judge(&mut pins, first, std::slice::from_ref(&old));
    assert_eq!(judge_apart(&mut pins, first, &old, &[&old], 10), 0);
    assert!(held(&pins).is_empty());
    for at in [11, 12] {
        assert_eq!(judge_apart(&mut pins, first, &old, &[&new, &third], at), 1);
        let waiting = &held(&pins)[0];
        assert_eq!(waiting.definition.as_ref(), Some(&new));
        assert_eq!((waiting.why, waiting.since_ms), (Why::Changed, 11));
    }
    // The rejected one makes room for the next.
    pins.reject("add", Some(fingerprint(&new))).unwrap();
    assert_eq!(judge_apart(&mut pins, first, &old, &[&new], 13), 1);
    assert_eq!(held(&pins)[0].why, Why::Rejected);
    assert_eq!(judge_apart(&mut pins, first, &old, &[&new, &third], 14), 1);
    assert_eq!(held(&pins)[0].definition.as_ref(), Some(&third));
    // A definition that is held for all processes is decided first.
    let fourth = tool("add", "Subtracts.");
    assert_eq!(judge_apart(&mut pins, first, &fourth, &[&third], 15), 0);
    assert_eq!(held(&pins)[0].definition.as_ref(), Some(&fourth));
    assert_eq!(judge_apart(&mut pins, Policy::Always, &old, &[&new], 16), 0);
    assert_eq!(judge_apart(&mut pins, first, &old, &[], 17), 0);
    assert!(held(&pins).is_empty());
}
