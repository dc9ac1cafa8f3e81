//! The rules in force: for calls, and for the questions that servers ask.

use std::{io, path::Path, sync::Arc};

use switchboard_approvals::{
    Arguments, Kind, Record, Scope, Status,
    rules::{self, Action, Case, Guard, Hints, Remembered, Rule, Rules, Verdict},
};
use switchboard_client::Raw;
use switchboard_config::{Config, Guard as Wanted};
use switchboard_files::{Links, write_private};
use switchboard_outbound::identity::identity_hash;
use switchboard_wire::with_hint;

use super::time_of;

/// The largest file of remembered decisions that is read.
const REMEMBERED_BYTES: u64 = 16 * 1024 * 1024;

/// All rules that are in force. Immutable: each change makes a new policy.
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Rules,
    /// Kinds of requests that need not be judged: for calls, because no rule denies or asks about
    /// them; for questions, because no rule is about them.
    quiet: Vec<rules::Kind>,
    /// Reason why the rules cannot be used. Every call is denied while there is one.
    fault: Option<Arc<str>>,
}

impl Policy {
    /// The rules of a configuration, and the remembered decisions.
    pub(crate) fn new(config: &Config, remembered: Vec<Remembered>) -> Self {
        let (rules, fault) = match read(config) {
            Ok(rules) => (rules, None),
            Err(problem) => {
                tracing::error!(%problem, "The rules are invalid, so the gateway denies every call.");
                (Rules::default(), Some(problem.into()))
            }
        };
        let mut policy = Self {
            rules,
            quiet: Vec::new(),
            fault,
        };
        for one in remembered {
            policy.remember(one);
        }
        policy.settle()
    }

    /// The rules of a configuration, and the remembered decisions in the store.
    pub(crate) fn remembering(
        config: &Config,
        stored: &[switchboard_store::Rule],
        now: u64,
    ) -> Self {
        let remembered = stored.iter().filter_map(|rule| {
            let read = serde_json::from_str(&rule.body);
            read.inspect_err(|error| {
                tracing::error!(%error, rule = %rule.id, "Cannot parse a remembered decision.");
            })
            .ok()
        });
        let mut policy = Self::new(config, remembered.collect());
        policy.rules.forget_expired(now);
        let remembered = policy.rules.remembered().iter();
        let unbound = remembered.filter(|one| one.identity.is_none() && policy.rules.is_inert(one));
        let count = unbound.count();
        if count > 0 {
            tracing::warn!(
                count,
                "Some remembered approvals have no effect, because they do not identify their server; `switchboard approvals rules` lists them."
            );
        }
        policy.settle()
    }

    /// The remembered denials that a store does not have. The gateway replaces a damaged store by an empty one, and
    /// must not allow what the user has denied.
    pub(super) fn lost(&self, stored: &[switchboard_store::Rule]) -> Vec<Remembered> {
        let is_lost = |one: &&Remembered| {
            one.rule.action() == Action::Deny && stored.iter().all(|rule| *rule.id != *one.id)
        };
        let denials = self.lasting().into_iter().filter(is_lost);
        denials.cloned().collect()
    }

    /// Adds decisions that a store has lost, except for expired ones.
    pub(super) fn restore(mut self, lost: &[Remembered], now: u64) -> Self {
        for one in lost {
            self.remember(one.clone());
        }
        self.rules.forget_expired(now);
        self.settle()
    }

    /// The same decisions under another configuration.
    pub(crate) fn under(&self, config: &Config) -> Self {
        Self::new(config, self.rules.remembered().to_vec())
    }

    /// Adds a decision that the approver wants remembered.
    pub(crate) fn with_decision(&self, record: &Record, now: u64) -> Self {
        let mut policy = self.clone();
        policy.rules.forget_expired(now);
        if let Some(decision) = remembered_of(record, now) {
            policy.remember(decision);
        }
        policy.settle()
    }

    /// Removes a remembered decision.
    #[must_use]
    pub fn without(&self, id: &str) -> Self {
        let mut policy = self.clone();
        policy.rules.forget(id);
        policy.settle()
    }

    /// Decisions that outlive this run of the gateway.
    pub(super) fn lasting(&self) -> Vec<&Remembered> {
        let remembered = self.rules.remembered().iter();
        remembered
            .filter(|one| !matches!(one.scope, rules::Scope::Session(_)))
            .collect()
    }

    /// The rules, configured and remembered.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns `true` if no request of this kind needs to be judged.
    pub(crate) fn is_quiet(&self, kind: rules::Kind) -> bool {
        self.quiet.contains(&kind)
    }

    /// Tests if a request of this kind to or from this server may be denied or asked about.
    pub(crate) fn holds_back(&self, kind: rules::Kind, server: &str) -> bool {
        !self.is_quiet(kind) && (self.fault.is_some() || self.rules.holds_back(kind, server))
    }

    /// Judges a request.
    pub fn judge(&self, case: &Case<'_>, now: u64) -> Verdict {
        match &self.fault {
            None => self.rules.judge(case, now),
            Some(fault) => Verdict {
                action: Action::Deny,
                rule: None,
                why: format!("the rules are invalid: {fault}"),
                reason: Some("the rules are invalid".to_owned()),
            },
        }
    }

    fn remember(&mut self, decision: Remembered) {
        if let Err(error) = self.rules.remember(decision) {
            tracing::warn!(error = %with_hint(&error, error.hint()), "Cannot remember a decision.");
        }
    }

    fn settle(mut self) -> Self {
        use rules::Kind::{Elicitation, Prompt, Resource, Sampling, ToolCall};
        let is_quiet = |kind: &rules::Kind| {
            self.fault.is_none()
                && match kind {
                    ToolCall | Resource | Prompt => self.rules.asks_nothing(*kind),
                    Sampling | Elicitation => self.rules.says_nothing_of(*kind),
                }
        };
        // Tools come first, since they are looked up most.
        self.quiet = [ToolCall, Resource, Prompt, Sampling, Elicitation]
            .into_iter()
            .filter(is_quiet)
            .collect();
        self
    }
}

/// Reads the remembered decisions from this file. A file that cannot be read is logged; the store
/// has the decisions, too.
pub(super) fn read_file(file: &Path) -> Vec<Remembered> {
    let text = match switchboard_files::read(file, REMEMBERED_BYTES, Links::Refuse) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::error!(%error, file = %file.display(), "Cannot read the remembered decisions.");
            return Vec::new();
        }
    };
    serde_json::from_slice(&text).unwrap_or_else(|error| {
        tracing::error!(%error, file = %file.display(), "Cannot read the remembered decisions.");
        Vec::new()
    })
}

pub(super) fn write_file(file: &Path, policy: &Policy) {
    // Plain data always serializes.
    let text = serde_json::to_vec_pretty(&policy.lasting()).unwrap_or_default();
    if let Err(error) = write_private(file, &text) {
        tracing::error!(%error, file = %file.display(), "Cannot save the remembered decisions for the next start.");
    }
}

fn read(config: &Config) -> Result<Rules, String> {
    let written = config.approvals.rules.iter().enumerate();
    let rules: Result<Vec<_>, _> = written
        .map(|(n, rule)| {
            Rule::parse(rule).map_err(|error| {
                let error = with_hint(&error, error.hint());
                format!("approvals.rules, number {}: {error}", n + 1)
            })
        })
        .collect();
    let guards = config.servers.iter().filter_map(|(name, server)| {
        let guard = server.approve?;
        Some((name.clone(), guard_of(guard)))
    });
    let identities = config
        .servers
        .iter()
        .map(|(name, server)| (name.clone(), identity_hash(server)));
    Rules::new(rules?, guards, guard_of(config.approvals.tools))
        .map(|rules| rules.with_identities(identities))
        .map_err(|error| with_hint(&error, error.hint()))
}

/// The guard that a setting stands for.
pub(crate) const fn guard_of(wanted: Wanted) -> Guard {
    match wanted {
        Wanted::Rules => Guard::Never,
        Wanted::Destructive => Guard::Destructive,
        Wanted::Writes => Guard::Writes,
        Wanted::All => Guard::All,
    }
}

/// The annotations of a tool. They are the server's claims and cannot be relied upon.
pub fn hints(definition: Option<&Raw>) -> Hints {
    let said = definition.and_then(|tool| tool.member("annotations"));
    said.as_ref().map(hints_in).unwrap_or_default()
}

/// The hints in an object of annotations.
pub(crate) fn hints_in(annotations: &Raw) -> Hints {
    let hint = |name: &str| annotations.member(name)?.read().ok();
    Hints {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
    }
}

/// The rule kind for an approval kind; `None` if rules do not apply to it.
pub const fn kind_of(kind: Kind) -> Option<rules::Kind> {
    match kind {
        Kind::ToolCall => Some(rules::Kind::ToolCall),
        Kind::Resource => Some(rules::Kind::Resource),
        Kind::Prompt => Some(rules::Kind::Prompt),
        Kind::Sampling => Some(rules::Kind::Sampling),
        Kind::Elicitation => Some(rules::Kind::Elicitation),
        Kind::Trust => None,
    }
}

/// The stored form of a decision, if it is remembered beyond this run of the gateway.
pub(super) fn remembered(record: &Record, now: u64) -> Option<switchboard_store::Rule> {
    let decision = remembered_of(record, now)?;
    (!matches!(decision.scope, rules::Scope::Session(_))).then(|| stored(&decision))
}

/// The stored form of a remembered decision.
pub(super) fn stored(decision: &Remembered) -> switchboard_store::Rule {
    switchboard_store::Rule {
        id: decision.id.as_str().into(),
        created: time_of(decision.created_at),
        expires: decision.rule.expires().map(time_of),
        // Plain data always serializes.
        body: serde_json::to_string(decision).unwrap_or_default().into(),
    }
}

/// The arguments that rules match, taken from a recorded request.
pub fn arguments_of(kind: Kind, request: &Raw) -> Option<Raw> {
    match kind {
        Kind::ToolCall | Kind::Prompt => request.member("arguments"),
        Kind::Resource => Some(Raw::object([("uri", request.member("uri")?)])),
        Kind::Sampling | Kind::Elicitation | Kind::Trust => Some(request.clone()),
    }
}

fn remembered_of(record: &Record, now: u64) -> Option<Remembered> {
    let decided = record.decided.as_ref()?;
    let wanted = decided.remember.as_ref()?;
    let action = match record.status {
        Status::Approved | Status::Generating => Action::Allow,
        Status::Rejected => Action::Deny,
        _ => return None,
    };
    // The approver agreed to the edited request, so that is the one to remember.
    let (request, _) = record.effective_request();
    let arguments = arguments_of(record.ask.kind, &request);
    let case = Case {
        kind: kind_of(record.ask.kind)?,
        tool: record.ask.tool.as_deref().unwrap_or_default(),
        ..Case::tool_call(&record.ask.server, "")
    };
    let seconds = wanted.expires_in_seconds;
    let expires = seconds.map(|seconds| now.saturating_add(seconds.saturating_mul(1_000)));
    let scope = match wanted.scope {
        Scope::Session => rules::Scope::Session(record.ask.session),
        Scope::Project => rules::Scope::Project(record.ask.project.as_deref()?.to_owned()),
        Scope::Always => rules::Scope::Always,
    };
    let exactly = (wanted.arguments == Arguments::Exact).then(|| match &arguments {
        Some(arguments) => rules::digest(arguments),
        None => rules::digest(&Raw::empty_object()),
    });
    Some(Remembered {
        id: format!("r-{}", record.id),
        rule: Rule::about(action, &case).until(expires),
        scope,
        exactly,
        identity: record.ask.identity.as_deref().map(str::to_owned),
        created_at: now,
        by: decided.by.to_string(),
    })
}
