//! The rules that allow or deny calls, or require approval for them.
//!
//! Rules come from the configuration, and from decisions that an approver chose to have remembered. Both
//! count the same:
//!
//! 1. A deny that matches always wins.
//! 2. Between ask and allow, the more specific rule wins. These are compared in this order, each only
//!    if all before it are equal:
//!    1. a remembered decision for exactly these arguments;
//!    2. the number of conditions on arguments that name one value (`equals`, or a pattern without
//!       wildcards);
//!    3. the number of conditions on arguments;
//!    4. the tool: an exact name before a pattern, a pattern by its literal characters;
//!    5. the server, in the same way;
//!    6. the number of annotations that are required;
//!    7. the client, in the same way;
//!    8. the scope: a remembered decision before the configuration, and among those one for a session
//!       before one for a project before one for always.
//! 3. If they are still equal, ask wins.
//! 4. If no rule matches, the [`Guard`] of the server decides, together with the annotations of the tool to
//!    the extent that they are [believed](Hints::believed). Reading a resource or getting a prompt changes
//!    nothing. Sampling and elicitation then require approval: they are questions to a person to begin with.
//!
//! A rule without a kind applies to tools. If it applies to all tools of a server (`deny files:*`), it also
//! applies to all of its resources and prompts, unless it has conditions on arguments; a deny then covers the
//! questions of the server as well.
//!
//! A remembered allow is bound to the server that it was given for: it [has no effect](Rules::is_inert) for
//! another server with the same name.
//!
//! A rule that cannot be judged (arguments that are not an object, are too large, or have a duplicate member
//! where the rule looks; names and URIs that are too long) denies, because uncertainty must not let a call
//! pass.
//!
//! ```
//! use switchboard_approvals::rules::{Action, Case, Guard, Rule, Rules};
//!
//! let configured = vec![Rule::parse_text("ask files:*")?, Rule::parse_text("allow files:read_*")?];
//! let rules = Rules::new(configured, [("mail".to_owned(), Guard::Destructive)], Guard::Never)?;
//! let judge = |server, tool| rules.judge(&Case::tool_call(server, tool), 0).action;
//! assert_eq!(judge("files", "read_file"), Action::Allow);
//! assert_eq!(judge("files", "move_file"), Action::Ask);
//! assert_eq!(judge("mail", "send"), Action::Ask);
//! assert_eq!(judge("clock", "now"), Action::Allow);
//! # Ok::<(), switchboard_approvals::rules::RuleError>(())
//! ```

mod address;
mod condition;
mod decode;
mod error;
mod expand;
mod guard;
mod hints;
pub mod limits;
mod look;
mod number;
mod parse;
mod pattern;
mod pieces;
mod readers;
mod reading;
mod remembered;
mod rule;
mod same;
mod spelling;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use switchboard_text::glob::Glob;
use switchboard_wire::Raw;

pub use self::error::RuleError;
pub use self::guard::Guard;
pub use self::hints::{Believed, Hints};
pub use self::remembered::{Remembered, Scope};
pub use self::rule::{Action, Rule};
pub use crate::json::digest;

use self::error::ArgumentsError;
use self::limits::RULES;
use self::look::Look;
use self::rule::Specificity;
use crate::record::Session;

/// The kind of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A client calls a tool.
    ToolCall,
    /// A client reads a resource, subscribes to it, or asks for completions of its URI.
    #[serde(rename = "resources")]
    Resource,
    /// A client gets a prompt, or asks for completions of its arguments.
    #[serde(rename = "prompts")]
    Prompt,
    /// A server requests a completion from a model.
    Sampling,
    /// A server asks the user a question.
    Elicitation,
}

/// A call or question to be judged.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    /// Its kind.
    pub kind: Kind,
    /// The server that has the tool, or that asks.
    pub server: &'a str,
    /// The tool or prompt, by the server's name for it, or the URI of the resource. For a question it is the
    /// tool whose call is in flight, or empty if that is not known: then a rule that denies or asks applies
    /// regardless of the tool that it names.
    pub tool: &'a str,
    /// The name that the owner has given to the tool. Rules of the configuration match both names.
    pub new_name: Option<Cow<'a, str>>,
    /// The name of the client. For a question it is empty if the client is not known: then a rule that denies
    /// or asks applies regardless of the client that it names, and so does a decision for any session or
    /// project. A rule that allows does not.
    pub client: &'a str,
    /// The session of the client.
    pub session: Session,
    /// The project that the client works on.
    pub project: Option<&'a str>,
    /// The arguments of the call, or the parameters of the question.
    pub arguments: Option<&'a Raw>,
    /// The server's annotations of the tool.
    pub annotations: Hints,
    /// The owner's annotations of the tool, which are believed.
    pub overridden: Hints,
    /// The guard of the caller. The stricter one of it and the server's counts.
    pub guard: Guard,
}

/// The result of judging a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The action.
    pub action: Action,
    /// The rule or guard that decided; `None` if none did.
    pub rule: Option<RuleRef>,
    /// Explanation for people, in one sentence.
    pub why: String,
    /// The part of it that does not reveal the rule: the reason that the rule gives, or why it cannot be evaluated.
    pub reason: Option<String>,
}

impl Verdict {
    /// The explanation of a denial for agents: without the rule, which may name what an override hides from them.
    pub fn denial(&self) -> String {
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}"));
        format!("denied by a rule{}", reason.unwrap_or_default())
    }
}

/// A reference to a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleRef {
    /// `config-1`, the ID of a remembered decision, `server-files`, `profile` or `default`.
    pub id: String,
    /// The rule in its short form, with its reason.
    pub text: String,
}

/// The result of matching a rule against a recorded case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The rule matches.
    Yes,
    /// The rule does not match.
    No,
    /// The record does not tell.
    Unsure,
}

/// The source of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// `approvals.rules` or `approvals.tools`.
    Config,
    /// `approve` of a server.
    Server,
    /// A remembered decision.
    Remembered,
}

/// A rule of any source, for a list.
#[derive(Clone, Debug)]
pub struct Listed<'r> {
    /// Its ID, as in [`RuleRef`].
    pub id: String,
    /// The rule. The rule of a guard applies only if no other matches.
    pub rule: Rule,
    /// Its source.
    pub source: Source,
    /// The decision, if it is a remembered one.
    pub remembered: Option<&'r Remembered>,
    /// `true` if it is a decision about another server, which has no effect.
    pub is_inert: bool,
}

/// All rules and guards. The module documentation describes their precedence.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    configured: Vec<Rule>,
    remembered: Vec<Remembered>,
    guards: BTreeMap<String, Guard>,
    default: Guard,
    /// Fingerprints of the configured servers.
    identities: BTreeMap<String, String>,
}

impl<'a> Case<'a> {
    /// A call of a tool about which nothing else is known.
    pub fn tool_call(server: &'a str, tool: &'a str) -> Self {
        Self {
            kind: Kind::ToolCall,
            server,
            tool,
            new_name: None,
            client: "",
            session: Session::default(),
            project: None,
            arguments: None,
            annotations: Hints::default(),
            overridden: Hints::default(),
            guard: Guard::Never,
        }
    }

    /// Tests if it is a question of a server whose caller is not known.
    fn has_unknown_caller(&self) -> bool {
        self.client.is_empty() && matches!(self.kind, Kind::Sampling | Kind::Elicitation)
    }
}

impl Rules {
    /// Creates the rules of the configuration, with the guards of the servers that have one, and the default
    /// guard of the others.
    pub fn new(
        configured: Vec<Rule>,
        guards: impl IntoIterator<Item = (String, Guard)>,
        default: Guard,
    ) -> Result<Self, RuleError> {
        if configured.len() > RULES {
            return Err(RuleError::TooMany(configured.len()));
        }
        Ok(Self {
            configured,
            remembered: Vec::new(),
            guards: guards.into_iter().collect(),
            default,
            identities: BTreeMap::new(),
        })
    }

    /// Sets the fingerprints of the servers, to which remembered decisions are bound.
    #[must_use]
    pub fn with_identities(
        mut self,
        identities: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        self.identities = identities.into_iter().collect();
        self
    }

    /// Returns `true` if a remembered decision has no effect because it was made about another server.
    ///
    /// A remembered deny or ask is bound to the name of the server alone, since refusing too much is safe.
    pub fn is_inert(&self, decision: &Remembered) -> bool {
        if decision.rule.action != Action::Allow {
            return false;
        }
        let mut servers = self.identities.keys();
        !servers.any(|name| decision.rule.server.matches(name) && self.is_bound(decision, name))
    }

    /// Tests if a remembered decision applies to the server that now has this name.
    fn is_bound(&self, decision: &Remembered, server: &str) -> bool {
        let identity = self.identities.get(server);
        decision.rule.action != Action::Allow
            || (identity.is_some() && identity == decision.identity.as_ref())
    }

    /// A copy of these rules with one more, to preview its effect.
    #[must_use]
    pub fn with(&self, rule: Rule) -> Self {
        let mut rules = self.clone();
        rules.configured.push(rule);
        rules
    }

    /// Remembers a decision; replaces one with the same ID.
    pub fn remember(&mut self, decision: Remembered) -> Result<(), RuleError> {
        self.forget(&decision.id);
        if self.remembered.len() >= RULES {
            // A decision for a session makes room first, since its session may have ended long ago.
            let of_session = |one: &Remembered| matches!(one.scope, Scope::Session(_));
            if let Some(oldest) = self.remembered.iter().position(of_session) {
                self.remembered.remove(oldest);
            }
        }
        if self.remembered.len() >= RULES {
            return Err(RuleError::TooMany(self.remembered.len() + 1));
        }
        self.remembered.push(decision);
        Ok(())
    }

    /// Forgets a decision; `None` if there is none with this ID.
    pub fn forget(&mut self, id: &str) -> Option<Remembered> {
        let at = self.remembered.iter().position(|one| one.id == id)?;
        Some(self.remembered.remove(at))
    }

    /// Forgets expired decisions, and returns them.
    pub fn forget_expired(&mut self, now: u64) -> Vec<Remembered> {
        let over = |one: &mut Remembered| one.rule.expires.is_some_and(|expires| expires <= now);
        self.remembered.extract_if(.., over).collect()
    }

    /// The remembered decisions, in the order in which they were made.
    pub fn remembered(&self) -> &[Remembered] {
        &self.remembered
    }

    /// Returns `true` if every request of this kind is allowed, so that none has to be judged.
    pub fn asks_nothing(&self, kind: Kind) -> bool {
        let holds_back = |rule: &Rule| {
            rule.covers(kind) && (rule.action != Action::Allow || rule.looks_at_arguments())
        };
        let never = |guard: &Guard| *guard == Guard::Never;
        never(&self.default)
            && self.guards.values().all(never)
            && !self.configured.iter().any(holds_back)
            && !self.remembered.iter().any(|one| holds_back(&one.rule))
    }

    /// Returns `true` if no rule applies to this kind.
    pub fn says_nothing_of(&self, kind: Kind) -> bool {
        let remembered = self.remembered.iter().map(|one| &one.rule);
        let mut rules = self.configured.iter().chain(remembered);
        !rules.any(|rule| rule.covers(kind))
    }

    /// Tests if a rule may deny, or require approval for, a request of this kind to or from this server.
    pub fn holds_back(&self, kind: Kind, server: &str) -> bool {
        let remembered = self.remembered.iter().map(|one| &one.rule);
        let mut rules = self.configured.iter().chain(remembered);
        rules.any(|rule| {
            rule.action != Action::Allow && rule.covers(kind) && rule.server.matches(server)
        })
    }

    /// Judges a case at a point in time, in milliseconds since 1970.
    pub fn judge(&self, case: &Case<'_>, now: u64) -> Verdict {
        let look = Look::new(case);
        let mut best: Option<(Specificity, Entry<'_>)> = None;
        let mut fault: Option<(Entry<'_>, ArgumentsError)> = None;
        for entry in self.entries() {
            let applies = entry.applies(&look, now);
            if let Entry::Remembered(one) = &entry
                && applies != Ok(false)
                && !self.is_bound(one, case.server)
            {
                continue;
            }
            match applies {
                Ok(false) => {}
                Ok(true) if entry.rule().action == Action::Deny => return entry.verdict(),
                Ok(true) => {
                    let specificity = entry.specificity();
                    let wins = best.as_ref().is_none_or(|(rank, other)| {
                        let asks = |entry: &Entry<'_>| entry.rule().action == Action::Ask;
                        (specificity, asks(&entry)) > (*rank, asks(other))
                    });
                    if wins {
                        best = Some((specificity, entry));
                    }
                }
                Err(found) => {
                    fault.get_or_insert((entry, found));
                }
            }
        }
        match (fault, best) {
            (Some((entry, fault)), _) => Verdict {
                action: Action::Deny,
                why: format!("the rule `{}` cannot be evaluated: {fault}", entry.rule()),
                reason: Some(fault.for_agents()),
                rule: Some(entry.reference()),
            },
            (None, Some((_, entry))) => entry.verdict(),
            (None, None) => self.unruled(&look),
        }
    }

    /// Lists the rules of the configuration, the remembered decisions, and the guards.
    pub fn list(&self) -> Vec<Listed<'_>> {
        let mut listed: Vec<_> = self
            .entries()
            .map(|entry| {
                let (source, remembered) = match &entry {
                    Entry::Configured(..) => (Source::Config, None),
                    Entry::Remembered(one) => (Source::Remembered, Some(*one)),
                };
                Listed {
                    id: entry.reference().id,
                    rule: entry.rule().clone(),
                    source,
                    remembered,
                    is_inert: remembered.is_some_and(|one| self.is_inert(one)),
                }
            })
            .collect();
        let guards = self.guards.iter().filter_map(|(server, guard)| {
            Some(Listed {
                id: format!("server-{server}"),
                rule: guard.rule(Glob::literal(server))?,
                source: Source::Server,
                remembered: None,
                is_inert: false,
            })
        });
        let default = self.default.rule(Glob::any()).map(|rule| Listed {
            id: "default".to_owned(),
            rule,
            source: Source::Config,
            remembered: None,
            is_inert: false,
        });
        listed.extend(guards.chain(default));
        listed
    }

    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let configured = self.configured.iter().enumerate();
        let configured = configured.map(|(n, rule)| Entry::Configured(n, rule));
        configured.chain(self.remembered.iter().map(Entry::Remembered))
    }

    /// The guard of a server, and its ID.
    fn guard(&self, server: &str) -> (String, Guard) {
        match self.guards.get(server) {
            Some(guard) => (format!("server-{server}"), *guard),
            None => ("default".to_owned(), self.default),
        }
    }

    /// The verdict if no rule matches.
    fn unruled(&self, look: &Look<'_, '_>) -> Verdict {
        let case = look.case;
        let why = match case.kind {
            Kind::ToolCall | Kind::Resource | Kind::Prompt => {
                let (id, guard) = self.guard(case.server);
                if case.guard > guard {
                    return case.guard.verdict("profile".to_owned(), look);
                }
                return guard.verdict(id, look);
            }
            Kind::Sampling => "the server asks for a model's answer, and no rule allows it",
            Kind::Elicitation => "the server asks the user a question, and no rule answers it",
        };
        Verdict {
            action: Action::Ask,
            rule: None,
            why: why.to_owned(),
            reason: None,
        }
    }
}

/// Tests if a rule would have matched a recorded case. Values that were redacted before they were recorded
/// leave it unsure.
pub fn matches(rule: &Rule, case: &Case<'_>, now: u64) -> Match {
    let look = Look::new(case);
    match rule.is_about(&look, now) {
        Ok(true) => {}
        Ok(false) => return Match::No,
        Err(_) => return Match::Unsure,
    }
    if !rule.looks_at_arguments() {
        return Match::Yes;
    }
    let told = case
        .arguments
        .filter(|arguments| !switchboard_redact::is_marked(arguments));
    if told.is_none() {
        return Match::Unsure;
    }
    match rule.applies(&look, now) {
        Ok(true) => Match::Yes,
        Ok(false) => Match::No,
        Err(_) => Match::Unsure,
    }
}

/// A rule of the configuration or of a remembered decision.
enum Entry<'r> {
    Configured(usize, &'r Rule),
    Remembered(&'r Remembered),
}

impl<'r> Entry<'r> {
    fn rule(&self) -> &'r Rule {
        match self {
            Self::Configured(_, rule) => rule,
            Self::Remembered(remembered) => &remembered.rule,
        }
    }

    fn applies(&self, look: &Look<'_, '_>, now: u64) -> Result<bool, ArgumentsError> {
        match self {
            Self::Configured(_, rule) => rule.applies(look, now),
            Self::Remembered(remembered) => remembered.applies(look, now),
        }
    }

    fn specificity(&self) -> Specificity {
        match self {
            Self::Configured(_, rule) => rule.specificity(),
            Self::Remembered(remembered) => remembered.specificity(),
        }
    }

    fn reference(&self) -> RuleRef {
        let id = match self {
            Self::Configured(n, _) => format!("config-{}", n + 1),
            Self::Remembered(remembered) => remembered.id.clone(),
        };
        let rule = self.rule();
        let text = match &rule.reason {
            Some(reason) => format!("{rule} ({reason})"),
            None => rule.to_string(),
        };
        RuleRef { id, text }
    }

    fn verdict(&self) -> Verdict {
        let rule = self.rule();
        let why = match rule.action {
            Action::Deny => format!("denied by the rule `{rule}`"),
            Action::Ask => format!("the rule `{rule}` requires approval"),
            Action::Allow => format!("allowed by the rule `{rule}`"),
        };
        let reason = rule.reason.as_ref().map(|reason| format!(": {reason}"));
        Verdict {
            action: rule.action,
            why: format!("{why}{}", reason.unwrap_or_default()),
            reason: rule.reason.clone(),
            rule: Some(self.reference()),
        }
    }
}

impl Kind {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolCall => "tool_call",
            Self::Resource => "resources",
            Self::Prompt => "prompts",
            Self::Sampling => "sampling",
            Self::Elicitation => "elicitation",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
