//! [`Pins`]: the approved definitions of one server.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
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

/// The reason why a decision could not be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecisionError {
    /// The tool is not held.
    #[error("`{tool}` is not held")]
    NotHeld {
        /// The tool of the decision.
        tool: String,
    },
    /// The definition has changed since the approver saw it.
    #[error("`{tool}` has changed since you reviewed it")]
    Changed {
        /// The tool.
        tool: String,
        /// The fingerprint that the approver saw.
        seen: Fingerprint,
        /// The fingerprint that is held now.
        now: Fingerprint,
    },
}

impl DecisionError {
    /// A hint for the user, separate from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::NotHeld { .. } => "`switchboard trust` lists the held definitions".into(),
            Self::Changed { .. } => "review the current definition, then decide again".into(),
        })
    }
}

/// The approved and the held definitions of one server.
///
/// They belong to a server *as configured*: its identity is its command or its address. If the user
/// changes that, it is another server, and its pins are new.
#[derive(Clone, Debug, PartialEq)]
pub struct Pins {
    pub(crate) server: String,
    /// Hash of the identity, since a command or an address may contain secrets.
    pub(crate) identity: Fingerprint,
    pub(crate) loss: Option<Loss>,
    /// Only tools and instructions have been judged so far, by programs that knew no other kinds.
    pub(crate) tools_only: bool,
    /// Records by key: see [`ItemKind::key`].
    pub(crate) records: BTreeMap<Arc<str>, Record>,
}

/// The reason why a new item cannot be distinguished from one that returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Loss {
    /// The previous pins could not be read.
    Damaged,
    /// There were more than [`limits::PINS`] items, and the oldest were forgotten.
    Full,
}

/// The record of one tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approved: Option<Approval>,
    /// Fingerprints of rejected definitions, the latest last: each as judged, and in addition word for
    /// word if that differs because the definition names a place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) rejected: Vec<Fingerprint>,
    /// The time at which the server stopped offering it.
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
    /// Creates the pins of a new server. Only a hash of the identity is kept.
    pub fn new(server: impl Into<String>, identity: &str) -> Self {
        Self {
            server: server.into(),
            identity: Fingerprint::of(identity.as_bytes()),
            loss: None,
            tools_only: false,
            records: BTreeMap::new(),
        }
    }

    /// Creates the pins of a server whose file cannot be read. With every policy, each tool is held
    /// until it is approved; [`approve_all`](Self::approve_all) ends that.
    pub fn damaged(server: impl Into<String>, identity: &str) -> Self {
        Self {
            loss: Some(Loss::Damaged),
            ..Self::new(server, identity)
        }
    }

    /// Judges the definitions of all kinds that the server offers now.
    pub fn judge<'a>(
        &mut self,
        policy: Policy,
        offers: impl IntoIterator<Item = impl Into<Offer<'a>>>,
        at_ms: u64,
    ) -> Verdicts {
        self.judge_at(&Places::default(), policy, offers, at_ms)
    }

    /// Judges definitions as [`judge`](Self::judge) does, for a server that runs at these places,
    /// which its descriptions may name.
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
            // Additions of a known server are checked more strictly.
            is_late: !self.records.is_empty(),
            // If anything of the server was approved, its items of other kinds were already shown.
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

    /// Holds definitions that other processes of the server have of the items that were just judged, unless they are
    /// approved. The items themselves stay approved. `before` are the pins before that judgement. Returns the keys of
    /// these items.
    pub fn hold_apart<'a>(
        &mut self,
        before: &Self,
        places: &Places,
        policy: Policy,
        offers: impl IntoIterator<Item = Offer<'a>>,
        at_ms: u64,
    ) -> BTreeSet<String> {
        let sight = Sight {
            places,
            policy,
            loss: self.loss,
            is_late: true,
            was_shown: false,
            at_ms,
        };
        let mut keys = BTreeSet::new();
        for Offer { kind, definition } in offers {
            let value = Json::read(definition);
            let Ok(key) = kind.read_key(&value) else {
                continue;
            };
            let Some(record) = self.records.get_mut(&*key) else {
                continue;
            };
            // A definition that is held for all of the server is decided first.
            let is_listed_held = record.held.is_some() && !keys.contains(&*key);
            if is_listed_held || record.approved.is_none() {
                continue;
            }
            let fingerprint = fingerprint_of(Scheme::NOW, kind, &value, places);
            let judged = decide(&sight, kind, record, fingerprint, (definition, &value));
            let Decision::Hold(why) = judged else {
                continue;
            };
            let known = record.held.as_ref();
            if known.is_none_or(|known| known.why == Why::Rejected) {
                let is_it = |held: &&Pending| held.fingerprint == fingerprint && held.why == why;
                let earlier = before.records.get(&*key);
                let earlier = earlier.and_then(|record| record.held.as_ref().filter(is_it));
                record.held = Some(earlier.cloned().unwrap_or_else(|| Pending {
                    why,
                    fingerprint,
                    since_ms: at_ms,
                    definition: kept(definition),
                }));
            }
            keys.insert(key);
        }
        if !keys.is_empty() {
            self.keep_within_limits();
        }
        keys
    }

    /// Approves a tool as held at the last judgement. `seen` is the fingerprint that the approver saw:
    /// if the definition has changed since, it is not approved.
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

    /// Rejects a tool as held at the last judgement. It stays held, and the user is not asked again
    /// until it changes.
    pub fn reject(&mut self, tool: &str, seen: Option<Fingerprint>) -> Result<(), DecisionError> {
        let kind = ItemKind::of_key(tool);
        self.held_as(tool, seen)?.reject_held(kind);
        Ok(())
    }

    /// Approves all tools that wait for a decision, and returns their names. Rejected tools stay
    /// rejected. Pins that replaced damaged ones follow the policy from now on.
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

    /// Tests if these pins belong to a server with this identity. If not, the configuration has
    /// changed and the server needs new pins.
    pub fn is_of(&self, identity: &str) -> bool {
        self.identity == Fingerprint::of(identity.as_bytes())
    }

    /// The tools that were held at the last judgement, by name, including rejected ones.
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

    /// The approved definitions, by name, including those of vanished tools.
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

    /// A note for the user about the pins as a whole.
    pub fn note(&self) -> Option<&'static str> {
        match self.loss? {
            Loss::Damaged => Some(
                "the record of approved definitions cannot be read, so every definition is held until \
                 you approve it",
            ),
            Loss::Full => Some(
                "the server has offered more definitions than can be remembered, so definitions that \
                 seem new are held until you approve them",
            ),
        }
    }

    /// Judges one definition. The second value is `true` if its record has changed.
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

    /// Records which tools are no longer offered. Returns `true` if this changed any record.
    fn miss(&mut self, seen: &HashSet<Arc<str>>, at_ms: u64) -> bool {
        let mut changed = false;
        self.records.retain(|tool, record| {
            if seen.contains(tool) {
                return true;
            }
            changed |= record.held.take().is_some() || record.vanished_ms.is_none();
            record.vanished_ms.get_or_insert(at_ms);
            // A tool that was only ever held has nothing to remember.
            record.approved.is_some() || !record.rejected.is_empty()
        });
        changed
    }

    fn keep_within_limits(&mut self) {
        let is_resource = |key: &str| ItemKind::of_key(key) == ItemKind::Resource;
        // One that returns is judged as new, and new resources are shown unless they are suspicious.
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
        // Definitions that wait for a decision are dropped last.
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

    /// Forgets the first of these records that vanished, until at most `most` are left. Returns the
    /// number of forgotten records.
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

    /// The keys of these items that the server no longer offers, in the order in which they vanished,
    /// but with rejected ones last.
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

    /// The record of a held tool, if it is held as the approver saw it.
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
    /// Updates fingerprints of older schemes that match this definition. Returns `true` if there were
    /// any.
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
                // The old scheme may not have covered all of it; the new one does.
                approved.definition = kept(definition);
                renewed = true;
            } else if approved.scheme == Scheme::Second
                && let Some(known) = &approved.definition
            {
                // The difference may have become noise only with the new scheme.
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

    /// Tests if this is exactly the approved text, in which the places of the server may be outdated.
    fn is_word_for_word(&self, exact: Fingerprint, kind: ItemKind) -> bool {
        let approved = self.approved.as_ref();
        let known = approved.and_then(|approved| approved.definition.as_ref());
        known.is_some_and(|known| exact_of(kind, known) == exact)
    }

    /// Tests if differences that do not count as changes, such as a list in another order, now read
    /// like an attack.
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

    /// Stores the approved definition in its current spelling, if it names other places than before,
    /// because it is judged word for word when the server moves again. Returns `true` if it was
    /// stored.
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

    /// Drops the text of the approved definition, or of the held one. Returns its length in bytes.
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
    /// It matches the approved definition.
    Approved,
    /// It becomes the approved definition.
    Approve(By),
    Hold(Why),
}

/// The parameters of a judgement.
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
    // Prompts and resources that were shown before their kinds were judged count as seen.
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
        // If a known server adds suspicious text later, that is not first sight.
        Some(Severity::Warn) if sight.is_late && !was_shown => Decision::Hold(Why::New),
        Some(Severity::Warn | Severity::Note) | None => Decision::Approve(By::First),
    }
}

/// The fingerprint of a definition in which the places of a server count like any other text.
fn exact_of(kind: ItemKind, definition: &Raw) -> Fingerprint {
    fingerprint(Offer { kind, definition })
}

/// The text of a definition to keep: a copy, so that no larger buffer stays in memory.
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

    /// Pins of a program that did not ignore noise yet.
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
    fn pins_of_older_schemes_stay_valid() {
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
