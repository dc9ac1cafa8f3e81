//! The pins of all servers, on disk.
//!
//! Pins are read when their server sends its offers, and written before any of these are shown. They are not
//! cached in memory; only the held items are, and those are few.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use switchboard_catalog::{Held, Kind, Offers};
use switchboard_client::Raw;
use switchboard_config::{Home, Server, Transport, Trust as Wanted};
use switchboard_trust::{
    DecisionError, Fingerprint, ItemKind, LeftOut, Offer, Pins, Places, Policy, Verdict, folder,
};
use switchboard_wire::with_hint;

use crate::{identity::identity, keyed_locks::KeyedLocks, state_dir::StateDir};

/// The pins of all servers. The methods read and write files, so call them on threads that may block.
#[derive(Debug)]
pub(crate) struct PinStore {
    home: Arc<Home>,
    dir: PathBuf,
    /// Held per server while its pins are read, changed and written.
    turns: KeyedLocks,
}

/// The approver's decision about held items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Approves one definition, or all that are held.
    Approve(Option<Seen>),
    /// Rejects one definition.
    Reject(Seen),
    /// Approves the definitions that are still held as the approver saw them.
    ApproveThese(Vec<Seen>),
    /// Rejects several definitions.
    RejectThese(Vec<Seen>),
}

impl Decision {
    /// The word for the decision in the audit log.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Approve(_) | Self::ApproveThese(_) => "approved",
            Self::Reject(_) | Self::RejectThese(_) => "rejected",
        }
    }
}

/// A tool, and the definition that the approver saw, if known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The key of the definition.
    pub tool: String,
    /// The fingerprint that was shown to the approver.
    pub fingerprint: Option<Fingerprint>,
}

/// The reason why a decision had no effect.
#[derive(Debug, thiserror::Error)]
pub enum Undecided {
    /// The item cannot be decided.
    #[error(transparent)]
    Decision(#[from] DecisionError),
    /// The pins cannot be written.
    #[error("cannot save the decision, so nothing has changed: {0}")]
    File(#[from] switchboard_trust::PinsError),
}

impl Undecided {
    /// Advice for the user, apart from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Decision(error) => error.hint(),
            Self::File(error) => error.hint(),
        }
    }
}

impl PinStore {
    pub(crate) fn new(home: Arc<Home>) -> Self {
        Self {
            dir: home.trust(),
            home,
            turns: KeyedLocks::default(),
        }
    }

    /// The pins of a server, empty if it was never seen.
    pub(crate) fn read(&self, name: &str, server: &Server) -> Pins {
        open(&self.dir, name, &identity(server))
    }

    /// Judges these offers, and returns the items to hold back.
    pub(crate) fn judge(&self, name: &str, server: &Server, offers: &Offers) -> Held {
        let turn = self.turns.of(name);
        let _turn = turn.lock();
        let mut pins = open(&self.dir, name, &identity(server));
        let judged = judged(server, offers);
        let before = pins.clone();
        let offered = || {
            let items = judged.iter();
            items.map(|(kind, definition)| Offer {
                kind: *kind,
                definition,
            })
        };
        let places = places(name, server, &offers.directories, &self.home);
        let policy = policy(server.trust);
        let mut verdicts = pins.judge_at(&places, policy, offered(), now());
        let apart = offers.apart.iter().map(|(kind, definition)| Offer {
            kind: item_kind(*kind),
            definition,
        });
        let apart = pins.hold_apart(&before, &places, policy, apart, now());
        // A definition that is held apart is first dropped, and then held again.
        let changed = if apart.is_empty() {
            verdicts.changed
        } else {
            pins != before
        };
        if changed && let Err(error) = folder::write(&self.dir, &pins) {
            tracing::error!(server = name, error = %with_hint(&error, error.hint()), "Cannot save the approved definitions; new ones are held.");
            // If the first sight is not recorded, every start would count as the first sight.
            if server.trust == Wanted::First {
                pins = before;
                verdicts = pins.judge_at(&places, Policy::Ask, offered(), now());
            }
        }
        let held = judged.iter().zip(&verdicts.items);
        let held = held.filter(|(_, verdict)| is_withheld(**verdict));
        let items: BTreeSet<String> = held
            .filter_map(|((kind, raw), _)| key_of(*kind, raw))
            .collect();
        Held {
            all: server.trust == Wanted::Ask && pins.approved().next().is_none(),
            items,
            apart,
        }
    }

    /// Applies an approver's decision, and returns the items that it decided.
    pub(crate) fn decide(
        &self,
        name: &str,
        server: &Server,
        decision: &Decision,
    ) -> Result<Vec<String>, Undecided> {
        let turn = self.turns.of(name);
        let _turn = turn.lock();
        let mut pins = open(&self.dir, name, &identity(server));
        let decided = match decision {
            Decision::Approve(Some(seen)) => {
                pins.approve(&seen.tool, seen.fingerprint, now())?;
                vec![seen.tool.clone()]
            }
            Decision::Approve(None) => pins.approve_all(now()),
            Decision::Reject(seen) => {
                pins.reject(&seen.tool, seen.fingerprint)?;
                vec![seen.tool.clone()]
            }
            Decision::ApproveThese(all) => {
                let now = now();
                let each = |seen: &Seen| pins.approve(&seen.tool, seen.fingerprint, now);
                unchanged(name, all, each)
            }
            Decision::RejectThese(all) => {
                let each = |seen: &Seen| pins.reject(&seen.tool, seen.fingerprint);
                unchanged(name, all, each)
            }
        };
        folder::write(&self.dir, &pins)?;
        Ok(decided)
    }

    /// Removes the pins of a server that is no longer configured.
    pub(crate) fn remove(&self, name: &str) {
        let turn = self.turns.of(name);
        let _turn = turn.lock();
        if let Err(error) = folder::remove(&self.dir, name) {
            tracing::warn!(server = name, error = %with_hint(&error, error.hint()), "Cannot remove the record of approved definitions.");
        }
    }
}

/// Decides each item, and returns the ones that could be decided. An item that has changed since the approver
/// saw it stays held, and is put to the approver again.
fn unchanged(
    name: &str,
    all: &[Seen],
    mut decide: impl FnMut(&Seen) -> Result<(), DecisionError>,
) -> Vec<String> {
    let mut decided = Vec::new();
    for seen in all {
        match decide(seen) {
            Ok(()) => decided.push(seen.tool.clone()),
            Err(error) => {
                tracing::warn!(server = name, error = %with_hint(&error, error.hint()), "Cannot apply a decision about a tool.");
            }
        }
    }
    decided
}

fn open(dir: &Path, name: &str, identity: &str) -> Pins {
    match folder::load(dir, name) {
        Ok(Some(pins)) if pins.is_of(identity) => pins,
        // The user has configured another server under this name.
        Ok(_) => Pins::new(name, identity),
        Err(error) => {
            tracing::error!(server = name, error = %with_hint(&error, error.hint()), "Cannot read the approved definitions; every definition is held until it is approved.");
            Pins::damaged(name, identity)
        }
    }
}

/// The directories that a server's definitions may name: those of a local process. For other servers none are
/// known.
fn places(name: &str, server: &Server, of_callers: &[String], home: &Home) -> Places {
    let Transport::Command(line) = &server.transport else {
        return Places::default();
    };
    let own = || StateDir::Shared.path(name, server, home);
    let working = line.directory(home).unwrap_or_else(own);
    let working = of_callers.iter().map(Path::new).chain([&*working]);
    let user = std::env::home_dir();
    Places::new(working, user.as_deref(), Some(&std::env::temp_dir()))
}

fn policy(wanted: Wanted) -> Policy {
    match wanted {
        Wanted::First => Policy::First,
        Wanted::Ask => Policy::Ask,
        Wanted::Always => Policy::Always,
    }
}

/// The kind of an item in terms of pins.
pub const fn item_kind(kind: Kind) -> ItemKind {
    match kind {
        Kind::Tool => ItemKind::Tool,
        Kind::Prompt => ItemKind::Prompt,
        Kind::Resource => ItemKind::Resource,
        Kind::Template => ItemKind::Template,
    }
}

/// The definitions to judge: those of all lists, and the server's instructions. The instructions come first,
/// so that no other definition can take their key.
fn judged(server: &Server, offers: &Offers) -> Vec<(ItemKind, Raw)> {
    let item = |kind: ItemKind, text: &str| {
        let name = Raw::string(&kind.key(""));
        let raw = Raw::object([("name", name), ("description", Raw::string(text))]);
        (kind, raw)
    };
    let mut judged = Vec::new();
    if let Some(text) = &offers.instructions {
        judged.push(item(ItemKind::Instructions, text));
    }
    for kind in Kind::ALL {
        let list = offers.list(kind).iter();
        judged.extend(list.map(|raw| (item_kind(kind), raw.clone())));
    }
    if judged.is_empty() && server.trust == Wanted::Ask {
        judged.push(item(ItemKind::Server, "prompts and resources"));
    }
    judged
}

/// The key of a held definition. A tool with a reserved name has the key that it tried to take.
fn key_of(kind: ItemKind, definition: &Raw) -> Option<String> {
    let member = match kind {
        ItemKind::Resource => "uri",
        ItemKind::Template => "uriTemplate",
        _ => "name",
    };
    let name = definition.member(member)?.to_text()?;
    Some(kind.key(&name).into_owned())
}

/// Tests if an item must not be shown. Of duplicates, the first is shown, and an item without a name is in no
/// catalogue.
fn is_withheld(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Approved | Verdict::LeftOut(LeftOut::Twice | LeftOut::Unnamed) => false,
        Verdict::Held(_)
        | Verdict::LeftOut(LeftOut::LongName | LeftOut::TooMany | LeftOut::Reserved) => true,
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
