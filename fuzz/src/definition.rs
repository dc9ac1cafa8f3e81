//! Definitions of tools, prompts and resources: fingerprints, diffs, scans and verdicts.

use switchboard_trust::{
    ItemKind, Offer, Others, Pins, Policy, Verdict, diff, fingerprint, limits, scan,
};
use switchboard_wire::Raw;

const KINDS: [ItemKind; 4] = [
    ItemKind::Tool,
    ItemKind::Prompt,
    ItemKind::Resource,
    ItemKind::Template,
];

/// Two definitions, separated by a NUL, have different fingerprints exactly if there is a difference to show.
/// A scan is deterministic. Pins approve a definition that they have approved before, also after a round trip
/// through their file.
pub fn definition(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let mut next = || Raw::parse(parts.next().unwrap_or_default().to_vec());
    let Ok(one) = next() else { return };
    let other = next().unwrap_or_else(|_| one.clone());
    let mut others = Others::default();
    others.add("mail", ["send_mail", "read"]);
    let findings = scan(&one, &others);
    assert_eq!(scan(&one, &others), findings);
    assert!(findings.len() <= limits::FINDINGS);
    for kind in KINDS {
        let [one, other] = [&one, &other].map(|definition| Offer { kind, definition });
        let same = fingerprint(one) == fingerprint(other);
        assert_eq!(diff(one, other).changes.is_empty(), same);
        judge(one, other, same);
    }
}

fn judge(one: Offer<'_>, other: Offer<'_>, same: bool) {
    let mut pins = Pins::new("s", "i");
    let first = pins.judge(Policy::Always, [one], 1).items;
    let again = pins.judge(Policy::First, [one], 2);
    assert_eq!(again.items, first);
    assert!(!again.changed);
    let Ok(mut pins) = Pins::decode(&pins.encode()) else {
        unreachable!("what is written is read");
    };
    if first == [Verdict::Approved] {
        let now = pins.judge(Policy::Ask, [other], 3).items;
        assert_eq!(now == [Verdict::Approved], same);
    }
}
