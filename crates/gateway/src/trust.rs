//! Which tools somebody has approved: the ledgers of all servers, on disk.
//!
//! A ledger is read when its server says what it offers, and written before any of that is shown. None is
//! kept in memory: what is held back is, and that is little.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use sha2::{Digest as _, Sha256};
use switchboard_catalog::{Held, Offers};
use switchboard_client::Raw;
use switchboard_config::{Server, Transport, Trust as Wanted};
use switchboard_trust::{DecisionError, Fingerprint, Ledger, LeftOut, Policy, Verdict, folder};

/// What a server wants models to know is judged like a tool, under a name that no tool has.
pub(crate) const INSTRUCTIONS: &str = "(instructions)";

/// Stands for a server that has nothing else to be approved.
const WHOLE_SERVER: &str = "(server)";

/// The ledgers of all servers. Its methods read and write files: they are for threads that may wait.
#[derive(Debug)]
pub(crate) struct Ledgers {
    /// Held while a ledger is read, changed and written.
    dir: Mutex<PathBuf>,
}

/// What a person says of tools that are held back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Approve(Option<Seen>),
    Reject(Seen),
    /// Those of these that are still held as they were seen.
    ApproveThese(Vec<Seen>),
    RejectThese(Vec<Seen>),
}

impl Decision {
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Approve(_) | Self::ApproveThese(_) => "approved",
            Self::Reject(_) | Self::RejectThese(_) => "rejected",
        }
    }
}

/// A tool, and which definition of it the person has looked at, if that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) tool: String,
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// Why a decision came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Undecided {
    #[error(transparent)]
    Decision(#[from] DecisionError),
    #[error("the decision could not be written down, so nothing has changed: {0}")]
    File(#[from] switchboard_trust::LedgerError),
}

impl Ledgers {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self {
            dir: Mutex::new(dir),
        }
    }

    /// The ledger of a server, empty if it was never seen.
    pub(crate) fn read(&self, name: &str, server: &Server) -> Ledger {
        open(&self.lock(), name, &identity(server))
    }

    /// Says what of these offers is to be held back.
    pub(crate) fn judge(&self, name: &str, server: &Server, offers: &Offers) -> Held {
        let dir = self.lock();
        let mut ledger = open(&dir, name, &identity(server));
        let judged = judged(server, offers);
        let before = ledger.clone();
        let mut verdicts = ledger.judge(policy(server.trust), &judged, now());
        if verdicts.changed
            && let Err(error) = folder::write(&dir, &ledger)
        {
            tracing::error!(server = name, %error, "Cannot keep which tools are approved, so none is that was not.");
            // First sight that nobody remembers would be first sight for ever.
            if server.trust == Wanted::First {
                ledger = before;
                verdicts = ledger.judge(Policy::Ask, &judged, now());
            }
        }
        let held = judged.iter().zip(&verdicts.tools);
        let held = held.filter(|(_, verdict)| is_withheld(**verdict));
        let mut tools: BTreeSet<String> = held
            .filter_map(|(tool, _)| tool.member("name")?.to_text())
            .collect();
        let named = |tool: &Raw| tool.member("name").and_then(|name| name.to_text());
        if offers
            .tools
            .iter()
            .any(|tool| named(tool).as_deref() == Some(INSTRUCTIONS))
        {
            // A tool that goes by this name is up to no good.
            tools.insert(INSTRUCTIONS.to_owned());
        }
        Held {
            all: server.trust == Wanted::Ask && ledger.pins().next().is_none(),
            tools,
        }
    }

    /// Carries out what a person has decided.
    pub(crate) fn decide(
        &self,
        name: &str,
        server: &Server,
        decision: &Decision,
    ) -> Result<(), Undecided> {
        let dir = self.lock();
        let mut ledger = open(&dir, name, &identity(server));
        match decision {
            Decision::Approve(Some(seen)) => ledger.approve(&seen.tool, seen.fingerprint, now())?,
            Decision::Approve(None) => {
                ledger.approve_all(now());
            }
            Decision::Reject(seen) => ledger.reject(&seen.tool, seen.fingerprint)?,
            Decision::ApproveThese(all) => {
                let now = now();
                let each = |seen: &Seen| ledger.approve(&seen.tool, seen.fingerprint, now);
                note_changed(name, all.iter().map(each));
            }
            Decision::RejectThese(all) => {
                let each = |seen: &Seen| ledger.reject(&seen.tool, seen.fingerprint);
                note_changed(name, all.iter().map(each));
            }
        }
        Ok(folder::write(&dir, &ledger)?)
    }

    /// The server is no longer configured.
    pub(crate) fn remove(&self, name: &str) {
        if let Err(error) = folder::remove(&self.lock(), name) {
            tracing::warn!(server = name, %error, "Cannot remove which tools were approved.");
        }
    }

    fn lock(&self) -> MutexGuard<'_, PathBuf> {
        self.dir.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What has changed since it was looked at stays held, and is put to a person anew.
fn note_changed(name: &str, decided: impl Iterator<Item = Result<(), DecisionError>>) {
    for error in decided.filter_map(Result::err) {
        tracing::warn!(server = name, %error, "A decision about a tool came to nothing.");
    }
}

fn open(dir: &std::path::Path, name: &str, identity: &str) -> Ledger {
    match folder::load(dir, name) {
        Ok(Some(ledger)) if ledger.is_of(identity) => ledger,
        // The user has put another server under this name.
        Ok(_) => Ledger::new(name, identity),
        Err(error) => {
            tracing::error!(server = name, %error, "Every tool is held back until it is approved.");
            Ledger::damaged(name, identity)
        }
    }
}

fn policy(wanted: Wanted) -> Policy {
    match wanted {
        Wanted::First => Policy::First,
        Wanted::Ask => Policy::Ask,
        Wanted::Always => Policy::Always,
    }
}

/// What is judged of a server's offers: its tools, and what it says of itself. That comes first, so that no
/// tool can take its place.
fn judged(server: &Server, offers: &Offers) -> Vec<Raw> {
    let item = |name: &str, text: &str| {
        Raw::object([
            ("name", Raw::string(name)),
            ("description", Raw::string(text)),
        ])
    };
    let mut judged = Vec::with_capacity(offers.tools.len() + 1);
    if let Some(text) = &offers.instructions {
        judged.push(item(INSTRUCTIONS, text));
    } else if server.trust == Wanted::Ask && offers.tools.is_empty() {
        judged.push(item(WHOLE_SERVER, "prompts and resources"));
    }
    judged.extend(offers.tools.iter().cloned());
    judged
}

/// Whether a tool is not to be shown. One that came twice is shown as it came first.
fn is_withheld(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Approved | Verdict::LeftOut(LeftOut::Twice | LeftOut::Unnamed) => false,
        Verdict::Held(_) | Verdict::LeftOut(LeftOut::LongName | LeftOut::TooMany) => true,
    }
}

/// What makes a server the one that was approved: what is started or reached. Keys and tokens are renewed
/// and make no other server of it.
fn identity(server: &Server) -> String {
    let parts: Vec<&str> = match &server.transport {
        Transport::BuiltIn => vec!["built-in"],
        Transport::Command(line) => std::iter::once("command")
            .chain([line.command.as_str()])
            .chain(line.args.iter().map(String::as_str))
            .collect(),
        Transport::Remote(remote) => vec!["remote", &remote.url],
        Transport::Container(container) => std::iter::once("container")
            .chain([container.image.as_str()])
            .chain(container.args.iter().map(String::as_str))
            .collect(),
    };
    // As JSON, so that no two lists are spelled alike.
    serde_json::to_string(&parts).unwrap_or_default()
}

/// A fingerprint of what makes a server the one that was approved.
pub(crate) fn identity_hash(server: &Server) -> String {
    crate::seal::hex(&Sha256::digest(identity(server)))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
