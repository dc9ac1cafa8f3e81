//! [`Pins`]: the definitions of one server that were agreed to.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use switchboard_wire::{Raw, tree::Json};

use crate::{
    By, Fingerprint, Held, ItemKind, LeftOut, Offer, Pin, Places, Policy, Severity, Verdict,
    Verdicts, Why,
    definition::{Scheme, fingerprint, fingerprint_of},
    limits, scan,
};

/// Why a decision of a person could not be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecisionError {
    /// There is nothing to decide.
    #[error("the tool {tool:?} is not held")]
    NotHeld {
        /// Which one was asked for.
        tool: String,
    },
    /// The definition is not the one that the person looked at.
    #[error("the tool {tool:?} has changed since you looked at it")]
    Changed {
        /// Which tool.
        tool: String,
        /// What the person decided about.
        seen: Fingerprint,
        /// What is held.
        now: Fingerprint,
    },
}

impl DecisionError {
    /// Advice for the user, apart from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::NotHeld { .. } => "`switchboard trust` shows what is held back".into(),
            Self::Changed { .. } => "look at what it says now, then decide again".into(),
        })
    }
}

/// Which definitions of one server's tools somebody agreed to, and which are held back.
///
/// They belong to a server *as it is configured*: its identity is what starts it or where it is.
/// When a person changes that, another server answers, and its pins are new.
#[derive(Clone, Debug, PartialEq)]
pub struct Pins {
    pub(crate) server: String,
    /// The hash of the identity: a command or an address may hold secrets.
    pub(crate) identity: Fingerprint,
    pub(crate) loss: Option<Loss>,
    /// Whether only tools and instructions have been judged so far, as programs did that knew no other
    /// kinds.
    pub(crate) tools_only: bool,
    /// By key: see [`ItemKind::key`].
    pub(crate) records: BTreeMap<Arc<str>, Record>,
}

/// Why first sight cannot be told from return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Loss {
    /// The pins before these could not be read.
    Damaged,
    /// There were more than [`limits::PINS`] items, and the oldest were forgotten.
    Full,
}

/// What is known of one tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approved: Option<Approval>,
    /// The definitions that a person said no to, the latest last: each as it was judged, and word for word if that is
    /// another fingerprint because it names a place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) rejected: Vec<Fingerprint>,
    /// Since when the server does not offer it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vanished_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<Pending>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approval {
    pub(crate) fingerprint: Fingerprint,
    #[serde(default = "Scheme::first")]
    pub(crate) scheme: Scheme,
    pub(crate) by: By,
    pub(crate) at_ms: u64,
    pub(crate) definition: Option<Raw>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pending {
    pub(crate) why: Why,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) since_ms: u64,
    pub(crate) definition: Option<Raw>,
}

impl Pins {
    /// The pins of a server that has none yet. Only the hash of the identity is kept.
    pub fn new(server: impl Into<String>, identity: &str) -> Self {
        Self {
            server: server.into(),
            identity: Fingerprint::of(identity.as_bytes()),
            loss: None,
            tools_only: false,
            records: BTreeMap::new(),
        }
    }

    /// The pins of a server whose file cannot be read. Whatever the policy, every tool is held until
    /// it is approved; [`approve_all`](Self::approve_all) ends that.
    pub fn damaged(server: impl Into<String>, identity: &str) -> Self {
        Self {
            loss: Some(Loss::Damaged),
            ..Self::new(server, identity)
        }
    }

    /// Judges the definitions that the server offers now, those of all kinds.
    pub fn judge<'a>(
        &mut self,
        policy: Policy,
        offers: impl IntoIterator<Item = impl Into<Offer<'a>>>,
        at_ms: u64,
    ) -> Verdicts {
        self.judge_at(&Places::default(), policy, offers, at_ms)
    }

    /// The same of a server that runs at these places, which its descriptions may name.
    pub fn judge_at<'a>(
        &mut self,
        places: &Places,
        policy: Policy,
        offers: impl IntoIterator<Item = impl Into<Offer<'a>>>,
        at_ms: u64,
    ) -> Verdicts {
        let mut changed = self.tools_only;
        let mut seen = HashSet::new();
        let mut counts: HashMap<ItemKind, usize> = HashMap::new();
        let sight = Sight {
            places,
            policy,
            loss: self.loss,
            // A known server that offers more now is looked at more closely.
            is_late: !self.records.is_empty(),
            // It has shown everything of other kinds, if a person let it show anything.
            was_shown: self.tools_only && self.records.values().any(|it| it.approved.is_some()),
            at_ms,
        };
        let mut items = Vec::new();
        for offer in offers {
            let Offer { kind, definition } = offer.into();
            let count = counts.entry(kind).or_default();
            *count += 1;
            if *count > limits::TOOLS {
                items.push(Verdict::LeftOut(LeftOut::TooMany));
                continue;
            }
            let value = Json::read(definition);
            let key: Arc<str> = match kind.read_key(&value) {
                Ok(key) => key.into(),
                Err(reason) => {
                    items.push(Verdict::LeftOut(reason));
                    continue;
                }
            };
            if !seen.insert(Arc::clone(&key)) {
                items.push(Verdict::LeftOut(LeftOut::Twice));
                continue;
            }
            let judged = self.judge_one(&sight, kind, key, definition, &value);
            changed |= judged.1;
            items.push(judged.0);
        }
        self.tools_only = false;
        changed |= self.miss(&seen, at_ms);
        if changed {
            self.keep_within_limits();
        }
        Verdicts { items, changed }
    }

    /// Approves a tool as it was held at the last judgement. With the fingerprint of what the person
    /// looked at, nothing else is approved.
    pub fn approve(
        &mut self,
        tool: &str,
        seen: Option<Fingerprint>,
        at_ms: u64,
    ) -> Result<(), DecisionError> {
        let kind = ItemKind::of_key(tool);
        self.held_as(tool, seen)?.approve_held(kind, at_ms);
        Ok(())
    }

    /// Says no to a tool as it was held at the last judgement. It stays held, and nobody is asked
    /// about it again until it changes.
    pub fn reject(&mut self, tool: &str, seen: Option<Fingerprint>) -> Result<(), DecisionError> {
        let kind = ItemKind::of_key(tool);
        self.held_as(tool, seen)?.reject_held(kind);
        Ok(())
    }

    /// Approves all tools that a person is asked about, and returns which those were. What was
    /// rejected stays so. Pins that replaced damaged ones go by the policy from now on.
    pub fn approve_all(&mut self, at_ms: u64) -> Vec<String> {
        self.loss = None;
        let mut approved = Vec::new();
        for (key, record) in &mut self.records {
            let held = record.held.as_ref();
            if held.is_some_and(|held| held.why != Why::Rejected) {
                record.approve_held(ItemKind::of_key(key), at_ms);
                approved.push(key.to_string());
            }
        }
        approved
    }

    /// The server's name.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Whether these are the pins of a server of this identity. If they are not, the configuration was
    /// changed, and new pins are due.
    pub fn is_of(&self, identity: &str) -> bool {
        self.identity == Fingerprint::of(identity.as_bytes())
    }

    /// The tools that were held at the last judgement, by name; those that were rejected too.
    pub fn held(&self) -> impl Iterator<Item = Held> {
        self.records.iter().filter_map(|(tool, record)| {
            let held = record.held.as_ref()?;
            let approved = record.approved.as_ref();
            Some(Held {
                kind: ItemKind::of_key(tool),
                tool: tool.clone(),
                why: held.why,
                definition: held.definition.clone(),
                approved: approved.and_then(|approved| approved.definition.clone()),
                fingerprint: held.fingerprint,
                since_ms: held.since_ms,
            })
        })
    }

    /// The definitions that somebody agreed to, by name; those of vanished tools too.
    pub fn approved(&self) -> impl Iterator<Item = Pin> {
        self.records.iter().filter_map(|(tool, record)| {
            let approved = record.approved.as_ref()?;
            Some(Pin {
                kind: ItemKind::of_key(tool),
                tool: tool.clone(),
                fingerprint: approved.fingerprint,
                definition: approved.definition.clone(),
                by: approved.by,
                at_ms: approved.at_ms,
                vanished_ms: record.vanished_ms,
            })
        })
    }

    /// What a person should know about the pins as a whole.
    pub fn note(&self) -> Option<&'static str> {
        match self.loss? {
            Loss::Damaged => Some(
                "the record of which definitions were approved could not be read, so every one is \
                 held until you approve it",
            ),
            Loss::Full => Some(
                "the server has offered more definitions than are remembered, so one that looks new \
                 is held until you approve it",
            ),
        }
    }

    /// Judges one definition; and whether its record is another than before.
    fn judge_one(
        &mut self,
        sight: &Sight<'_>,
        kind: ItemKind,
        key: Arc<str>,
        definition: &Raw,
        value: &Json<'_>,
    ) -> (Verdict, bool) {
        let fingerprint = fingerprint_of(Scheme::NOW, kind, value, sight.places);
        let record = self.records.entry(key).or_default();
        let renewed = record.renew(sight.places, kind, definition, value, fingerprint);
        let returned = record.vanished_ms.take().is_some() || renewed;
        match decide(sight, kind, record, fingerprint, (definition, value)) {
            Decision::Approved => {
                let moved = record.follow(kind, definition, fingerprint);
                let changed = record.held.take().is_some() || returned || moved;
                (Verdict::Approved, changed)
            }
            Decision::Approve(by) => {
                record.approve(kind, fingerprint, kept(definition), by, sight.at_ms);
                (Verdict::Approved, true)
            }
            Decision::Hold(why) => {
                let held = record.held.as_ref();
                if held.is_some_and(|held| held.fingerprint == fingerprint && held.why == why) {
                    return (Verdict::Held(why), returned);
                }
                record.held = Some(Pending {
                    why,
                    fingerprint,
                    since_ms: sight.at_ms,
                    definition: kept(definition),
                });
                (Verdict::Held(why), true)
            }
        }
    }

    /// Notes which tools are not offered any more; whether there are any that were before.
    fn miss(&mut self, seen: &HashSet<Arc<str>>, at_ms: u64) -> bool {
        let mut changed = false;
        self.records.retain(|tool, record| {
            if seen.contains(tool) {
                return true;
            }
            changed |= record.held.take().is_some() || record.vanished_ms.is_none();
            record.vanished_ms.get_or_insert(at_ms);
            // Of a tool that was only ever held there is nothing to remember.
            record.approved.is_some() || !record.rejected.is_empty()
        });
        changed
    }

    fn keep_within_limits(&mut self) {
        let is_resource = |key: &str| ItemKind::of_key(key) == ItemKind::Resource;
        // One that returns is judged as new, and new resources are shown if nothing speaks against it.
        self.forget_vanished(limits::RESOURCES, is_resource);
        if self.forget_vanished(limits::PINS, |key| !is_resource(key)) > 0 {
            self.loss.get_or_insert(Loss::Full);
        }
        let mut bytes: usize = self.records.values().map(Record::definition_bytes).sum();
        if bytes <= limits::DEFINITIONS_BYTES {
            return;
        }
        let gone = self.vanished(|_| true);
        let rest: Vec<_> = self.records.keys().rev().cloned().collect();
        // What a person is to decide about goes last.
        for (drop_held, tool) in (gone
            .into_iter()
            .chain(rest.iter().cloned())
            .map(|tool| (false, tool)))
        .chain(rest.iter().cloned().map(|tool| (true, tool)))
        {
            if bytes <= limits::DEFINITIONS_BYTES {
                break;
            }
            if let Some(record) = self.records.get_mut(&tool) {
                bytes -= record.drop_definition(drop_held);
            }
        }
    }

    /// Forgets those of these records that vanished first, until there are at most so many; how many
    /// were forgotten.
    fn forget_vanished(&mut self, most: usize, which: impl Fn(&str) -> bool) -> usize {
        let count = self.records.keys().filter(|key| which(key)).count();
        let excess = count.saturating_sub(most);
        if excess == 0 {
            return 0;
        }
        let mut gone = self.vanished(which);
        gone.truncate(excess);
        for key in &gone {
            self.records.remove(key);
        }
        gone.len()
    }

    /// Those of these items that the server does not offer any more, the first to vanish first; what
    /// a person rejected last.
    fn vanished(&self, which: impl Fn(&str) -> bool) -> Vec<Arc<str>> {
        let records = self.records.iter().filter(|(key, _)| which(key));
        let mut vanished: Vec<_> = records
            .filter_map(|(key, record)| {
                let is_rejected = !record.rejected.is_empty();
                Some((is_rejected, record.vanished_ms?, Arc::clone(key)))
            })
            .collect();
        vanished.sort_unstable();
        vanished.into_iter().map(|(_, _, key)| key).collect()
    }

    /// The record of a tool that is held, if it is held as the person saw it.
    fn held_as(
        &mut self,
        tool: &str,
        seen: Option<Fingerprint>,
    ) -> Result<&mut Record, DecisionError> {
        let record = self.records.get_mut(tool);
        let held = record.and_then(|record| Some((record.held.as_ref()?.fingerprint, record)));
        let Some((now, record)) = held else {
            let tool = tool.chars().take(limits::NAME_BYTES).collect();
            return Err(DecisionError::NotHeld { tool });
        };
        match seen {
            Some(seen) if seen != now => Err(DecisionError::Changed {
                tool: tool.to_owned(),
                seen,
                now,
            }),
            _ => Ok(record),
        }
    }
}

impl Record {
    /// Brings fingerprints of older schemes up to date, if they are of this definition. Whether there were any.
    fn renew(
        &mut self,
        places: &Places,
        kind: ItemKind,
        definition: &Raw,
        value: &Json<'_>,
        now: Fingerprint,
    ) -> bool {
        let approved = self.approved.as_mut();
        let approved = approved.filter(|it| it.scheme != Scheme::NOW);
        if approved.is_none() && self.held.is_none() && self.rejected.is_empty() {
            return false;
        }
        let by = |scheme, value: &Json<'_>| fingerprint_of(scheme, kind, value, places);
        let before = [Scheme::First, Scheme::Second].map(|scheme| by(scheme, value));
        let mut renewed = false;
        if let Some(approved) = approved {
            if approved.fingerprint == by(approved.scheme, value) {
                // The pin may not have covered all of it, and covers it from now on.
                approved.definition = kept(definition);
                renewed = true;
            } else if approved.scheme == Scheme::Second
                && let Some(known) = &approved.definition
            {
                // It may differ in what did not count as noise then.
                let known = Json::read(known);
                renewed = by(Scheme::Second, &known) == approved.fingerprint
                    && by(Scheme::NOW, &known) == now;
            }
            if renewed {
                approved.fingerprint = now;
                approved.scheme = Scheme::NOW;
            }
        }
        if let Some(held) = &mut self.held
            && before.contains(&held.fingerprint)
        {
            held.fingerprint = now;
            renewed = true;
        }
        if self.rejected.iter().any(|old| before.contains(old)) {
            self.rejected.retain(|old| !before.contains(old));
            self.remember_rejection(&[now, exact_of(kind, definition)]);
            renewed = true;
        }
        renewed
    }

    /// Whether this is the text that was approved. The places of the server may be others than they were then.
    fn is_word_for_word(&self, exact: Fingerprint, kind: ItemKind) -> bool {
        let approved = self.approved.as_ref();
        let known = approved.and_then(|approved| approved.definition.as_ref());
        known.is_some_and(|known| exact_of(kind, known) == exact)
    }

    /// Whether words that do not count as changed, such as a list in another order, now read like an attack.
    fn reads_worse(&self, kind: ItemKind, definition: &Raw, value: &Json<'_>) -> bool {
        let approved = self.approved.as_ref();
        let Some(known) = approved.and_then(|approved| approved.definition.as_ref()) else {
            return false;
        };
        if known == definition {
            return false;
        }
        let now = scan::worst(kind, value).filter(|now| *now >= Severity::Danger);
        now.is_some() && now > scan::worst(kind, &Json::read(known))
    }

    /// Keeps the approved definition as the server spells it now, if it names other places than before. It is judged
    /// word for word when the server has been moved again. Whether it was kept.
    fn follow(&mut self, kind: ItemKind, definition: &Raw, now: Fingerprint) -> bool {
        let approved = self.approved.as_mut();
        let Some(approved) = approved.filter(|it| it.fingerprint == now) else {
            return false;
        };
        let moved = approved.definition.as_ref().is_some_and(|known| {
            known != definition && exact_of(kind, known) != exact_of(kind, definition)
        });
        if moved {
            approved.definition = kept(definition);
        }
        moved
    }

    fn approve(
        &mut self,
        kind: ItemKind,
        fingerprint: Fingerprint,
        definition: Option<Raw>,
        by: By,
        at_ms: u64,
    ) {
        self.held = None;
        let exact = definition.as_ref().map(|known| exact_of(kind, known));
        self.rejected
            .retain(|rejected| *rejected != fingerprint && Some(*rejected) != exact);
        self.approved = Some(Approval {
            fingerprint,
            scheme: Scheme::NOW,
            by,
            at_ms,
            definition,
        });
    }

    fn approve_held(&mut self, kind: ItemKind, at_ms: u64) {
        if let Some(held) = self.held.take() {
            self.approve(kind, held.fingerprint, held.definition, By::Person, at_ms);
        }
    }

    fn reject_held(&mut self, kind: ItemKind) {
        let Some(held) = &mut self.held else {
            return;
        };
        held.why = Why::Rejected;
        let exact = held.definition.as_ref().map(|known| exact_of(kind, known));
        let fingerprint = held.fingerprint;
        self.remember_rejection(&[fingerprint, exact.unwrap_or(fingerprint)]);
    }

    /// Remembers the fingerprints of a rejected definition as the latest ones.
    fn remember_rejection(&mut self, fingerprints: &[Fingerprint; 2]) {
        self.rejected.retain(|old| !fingerprints.contains(old));
        self.rejected.extend(fingerprints);
        self.rejected.dedup();
        let excess = self.rejected.len().saturating_sub(limits::REJECTIONS);
        self.rejected.drain(..excess);
    }

    fn definition_bytes(&self) -> usize {
        let approved = self.approved.as_ref().and_then(|it| it.definition.as_ref());
        let held = self.held.as_ref().and_then(|it| it.definition.as_ref());
        let texts = approved.into_iter().chain(held);
        texts.map(|text| text.as_bytes().len()).sum()
    }

    /// Forgets the text of the approved definition, or of the held one; how many bytes that were.
    fn drop_definition(&mut self, drop_held: bool) -> usize {
        let dropped = if drop_held {
            self.held.as_mut().and_then(|held| held.definition.take())
        } else {
            let approved = self.approved.as_mut();
            approved.and_then(|approved| approved.definition.take())
        };
        dropped.map_or(0, |text| text.as_bytes().len())
    }
}

enum Decision {
    /// It is the approved definition.
    Approved,
    /// It becomes the approved definition.
    Approve(By),
    Hold(Why),
}

/// What a judgement goes by.
struct Sight<'p> {
    places: &'p Places,
    policy: Policy,
    loss: Option<Loss>,
    is_late: bool,
    was_shown: bool,
    at_ms: u64,
}

fn decide(
    sight: &Sight<'_>,
    kind: ItemKind,
    record: &Record,
    fingerprint: Fingerprint,
    (definition, value): (&Raw, &Json<'_>),
) -> Decision {
    let Sight { policy, loss, .. } = *sight;
    let approved = record.approved.as_ref().map(|it| it.fingerprint);
    if approved == Some(fingerprint) {
        let is_worse = policy != Policy::Always && record.reads_worse(kind, definition, value);
        return if is_worse {
            Decision::Hold(Why::Changed)
        } else {
            Decision::Approved
        };
    }
    let exact = fingerprint_of(Scheme::NOW, kind, value, &Places::default());
    if record.is_word_for_word(exact, kind) {
        return Decision::Approved;
    }
    if policy == Policy::Always && (loss != Some(Loss::Damaged) || approved.is_some()) {
        return Decision::Approve(By::Always);
    }
    if record.rejected.contains(&fingerprint) || record.rejected.contains(&exact) {
        return Decision::Hold(Why::Rejected);
    }
    if approved.is_some() {
        return Decision::Hold(Why::Changed);
    }
    // Prompts and resources that were shown before their kinds were judged count as seen first then.
    let was_shown = sight.was_shown
        && matches!(
            kind,
            ItemKind::Prompt | ItemKind::Resource | ItemKind::Template
        );
    if (policy != Policy::First || loss.is_some()) && !was_shown {
        return Decision::Hold(Why::New);
    }
    match scan::worst(kind, value) {
        Some(Severity::Hidden) => Decision::Hold(Why::Hidden),
        Some(Severity::Danger) => Decision::Hold(Why::Dangerous),
        // A server that changes what it offers, and offers that, is not seen for the first time.
        Some(Severity::Warn) if sight.is_late && !was_shown => Decision::Hold(Why::New),
        Some(Severity::Warn | Severity::Note) | None => Decision::Approve(By::First),
    }
}

/// The fingerprint of a definition in which the places of a server count as any other text.
fn exact_of(kind: ItemKind, definition: &Raw) -> Fingerprint {
    fingerprint(Offer { kind, definition })
}

/// What is kept of a definition: a copy that keeps no larger buffer in memory.
fn kept(definition: &Raw) -> Option<Raw> {
    (definition.as_bytes().len() <= limits::DEFINITION_BYTES).then(|| definition.detached())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(fields: &str) -> Raw {
        let default = Raw::object([("default", Raw::string(fields))]);
        let properties = Raw::object([("fields", default)]);
        let schema = Raw::object([("properties", properties)]);
        Raw::object([("name", Raw::string("search")), ("inputSchema", schema)])
    }

    /// Pins that a program wrote that knew no noise.
    fn old(approved: &Raw, rejected: &Raw) -> Pins {
        let mut pins = Pins::new("s", "i");
        let by = |raw: &Raw| {
            let value = Json::read(raw);
            fingerprint_of(Scheme::Second, ItemKind::Tool, &value, &Places::default())
        };
        let record = Record {
            approved: Some(Approval {
                fingerprint: by(approved),
                scheme: Scheme::Second,
                by: By::Person,
                at_ms: 1,
                definition: kept(approved),
            }),
            rejected: vec![by(rejected)],
            ..Record::default()
        };
        pins.records.insert("search".into(), record);
        pins
    }

    #[test]
    fn pins_of_older_schemes_stay_good() {
        let (known, other) = (tool("a,b,c"), tool("a,b,d"));
        let verdict = |pins: &mut Pins, tool: &Raw| {
            let verdicts = pins.judge(Policy::First, std::slice::from_ref(tool), 2);
            verdicts.items[0]
        };
        for now in [&known, &tool("c,a,b")] {
            let mut pins = old(&known, &other);
            assert_eq!(verdict(&mut pins, now), Verdict::Approved, "{now}");
            let approved = pins.records["search"].approved.as_ref().unwrap();
            assert_eq!(approved.scheme, Scheme::NOW);
            assert_eq!(approved.definition.as_ref(), Some(&known));
            assert_eq!(verdict(&mut pins, &known), Verdict::Approved);
        }
        let mut pins = old(&known, &other);
        let rejected = Verdict::Held(Why::Rejected);
        assert_eq!(verdict(&mut pins, &other), rejected);
        assert_eq!(verdict(&mut pins, &tool("d,b,a")), rejected);
        assert_eq!(
            verdict(&mut pins, &tool("a,b,e")),
            Verdict::Held(Why::Changed)
        );
    }
}
