//! A single rule: its parts, the cases that it applies to, and its specificity.

use std::fmt;
use std::sync::OnceLock;

use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use switchboard_text::glob::{Glob, Narrowness};
use switchboard_wire::Raw;

use super::condition::Condition;
use super::error::ArgumentsError;
use super::hints::Hints;
use super::limits::MATCHED_BYTES;
use super::look::Look;
use super::pattern::PathPattern;
use super::reading::Reading;
use super::{Case, Kind};

/// The action of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The call is refused.
    Deny,
    /// A person decides.
    Ask,
    /// The call proceeds.
    Allow,
}

/// A rule that allows or denies calls, or requires approval for them.
///
/// Its `Display` is the short form, `ask files:delete_*`, which can be parsed again; parts that the short
/// form lacks are added in words. Serialized, it is the object of the configuration.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(crate) action: Action,
    /// `None` if it was not written.
    pub(crate) kind: Option<Kind>,
    pub(crate) server: Glob,
    pub(crate) tool: Glob,
    pub(crate) client: Glob,
    pub(crate) arguments: Vec<Condition>,
    pub(crate) annotations: Hints,
    /// Time at which it expires, in milliseconds since 1970.
    pub(crate) expires: Option<u64>,
    pub(crate) reason: Option<String>,
    /// The pattern of `tool` for URIs, built when it is first needed.
    pub(crate) uri: OnceLock<Box<PathPattern>>,
}

/// The specificity of a rule; the first field counts most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Specificity {
    pub(crate) exact_arguments: bool,
    pub(crate) exact_conditions: usize,
    pub(crate) conditions: usize,
    pub(crate) tool: Narrowness,
    pub(crate) server: Narrowness,
    pub(crate) annotations: usize,
    pub(crate) client: Narrowness,
    pub(crate) scope: u8,
}

impl Rule {
    /// A rule about everything that clients request from servers.
    pub(crate) fn any(action: Action) -> Self {
        Self {
            action,
            kind: None,
            server: Glob::any(),
            tool: Glob::any(),
            client: Glob::any(),
            arguments: Vec::new(),
            annotations: Hints::default(),
            expires: None,
            reason: None,
            uri: OnceLock::new(),
        }
    }

    /// A rule about exactly the kind, server and tool of a case, taken literally. It applies to any client,
    /// since the names of clients change with their versions.
    pub fn about(action: Action, case: &Case<'_>) -> Self {
        Self {
            kind: Some(case.kind),
            server: Glob::literal(case.server),
            tool: Glob::literal(case.tool),
            ..Self::any(action)
        }
        .without_plain_kind()
    }

    /// Removes the kind if it is the default.
    pub(crate) fn without_plain_kind(mut self) -> Self {
        if self.kind == Some(Kind::ToolCall) && !self.is_wide() {
            self.kind = None;
        }
        self
    }

    /// Tests if it applies to everything of a server, unless it has a kind.
    fn is_wide(&self) -> bool {
        self.tool.is_any() && self.arguments.is_empty()
    }

    /// Sets the time at which it expires, in milliseconds since 1970.
    #[must_use]
    pub fn until(mut self, expires: Option<u64>) -> Self {
        self.expires = expires;
        self
    }

    /// The action.
    pub fn action(&self) -> Action {
        self.action
    }

    /// Tests if it may apply to requests of this kind.
    pub fn covers(&self, kind: Kind) -> bool {
        if let Some(own) = self.kind {
            return own == kind;
        }
        match kind {
            Kind::ToolCall => true,
            Kind::Resource | Kind::Prompt => self.is_wide(),
            // Allowing all tools does not mean that a server may ask a model.
            Kind::Sampling | Kind::Elicitation => {
                self.is_wide() && self.action == Action::Deny && self.annotations.count() == 0
            }
        }
    }

    /// Tests if it applies to the tool, prompt or resource of a case.
    fn is_named(&self, look: &Look<'_, '_>) -> Result<bool, ArgumentsError> {
        let case = look.case;
        if self.tool.is_any() {
            return Ok(true);
        }
        if case.tool.is_empty() && matches!(case.kind, Kind::Sampling | Kind::Elicitation) {
            // The question may belong to any call.
            return Ok(self.action != Action::Allow);
        }
        if case.tool.len() > MATCHED_BYTES {
            return Err(ArgumentsError::NameTooLong);
        }
        if case.kind != Kind::Resource {
            let new_name = case.new_name.as_deref();
            let new_name = new_name.filter(|_| case.kind != Kind::Prompt);
            let by_new_name = new_name.is_some_and(|name| self.tool.matches(name));
            return Ok(self.tool.matches(case.tool) || by_new_name);
        }
        let uri = self
            .uri
            .get_or_init(|| Box::new(PathPattern::new(&self.tool)));
        match self.action {
            Action::Deny | Action::Ask => uri.may_match(case.tool, &look.texts),
            Action::Allow => uri.surely_matches(case.tool, &look.texts),
        }
    }

    /// Tests if it applies to a tool or prompt with this name.
    pub(crate) fn names(&self, tool: &str) -> bool {
        self.tool.is_any() || self.tool.matches(tool)
    }

    /// The tool, prompt or resource that it applies to, if it is only one.
    pub fn name(&self) -> Option<String> {
        self.tool.is_exact().then(|| self.tool.head())
    }

    /// Time at which it expires, in milliseconds since 1970.
    pub fn expires(&self) -> Option<u64> {
        self.expires
    }

    /// An example of a client that it applies to.
    pub fn client_for_example(&self) -> String {
        self.client.to_string().replace('*', "").replace('?', "x")
    }

    /// The explanation for callers that it refuses.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Returns `true` if it has conditions on arguments.
    pub fn looks_at_arguments(&self) -> bool {
        !self.arguments.is_empty()
    }

    /// Tests if it applies to the client of a case. A question without a known client may be that of a client
    /// that the rule names.
    fn is_about_client(&self, case: &Case<'_>) -> bool {
        if case.has_unknown_caller() {
            return self.client.is_any() || self.action != Action::Allow;
        }
        self.client.matches_in_any_case(case.client)
    }

    /// Tests if everything but the arguments matches.
    pub(crate) fn is_about(&self, look: &Look<'_, '_>, now: u64) -> Result<bool, ArgumentsError> {
        let case = look.case;
        let may_be = self.covers(case.kind)
            && self.expires.is_none_or(|expires| now < expires)
            && self.server.matches(case.server)
            && self.is_about_client(case)
            && self.annotations.hold(look.believed());
        if may_be {
            self.is_named(look)
        } else {
            Ok(false)
        }
    }

    /// Tests if it applies. A condition that certainly does not hold settles it; otherwise a condition that
    /// cannot be judged is an error.
    pub(crate) fn applies(&self, look: &Look<'_, '_>, now: u64) -> Result<bool, ArgumentsError> {
        if !self.is_about(look, now)? {
            return Ok(false);
        }
        if self.arguments.is_empty() {
            return Ok(true);
        }
        let arguments = look.arguments()?;
        let reading = match self.action {
            Action::Deny | Action::Ask => Reading::Generous,
            Action::Allow => Reading::Strict,
        };
        let mut fault = None;
        for condition in &self.arguments {
            match condition.holds(arguments, reading, &look.texts) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(found) => fault = Some(found),
            }
        }
        fault.map_or(Ok(true), Err)
    }

    pub(crate) fn specificity(&self) -> Specificity {
        let exact = self
            .arguments
            .iter()
            .filter(|condition| condition.is_exact());
        Specificity {
            exact_arguments: false,
            exact_conditions: exact.count(),
            conditions: self.arguments.len(),
            tool: self.tool.narrowness(),
            server: self.server.narrowness(),
            annotations: self.annotations.count(),
            client: self.client.narrowness(),
            scope: 0,
        }
    }
}

impl Action {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.action.fmt(f)?;
        if let Some(kind) = self.kind {
            write!(f, " {kind}")?;
        }
        if self.server.is_any() && self.tool.is_any() {
            f.write_str(" *")?;
        } else {
            write!(f, " {}:{}", word(&self.server), word(&self.tool))?;
        }
        if !self.client.is_any() {
            write!(f, " @{}", word(&self.client))?;
        }
        let conditions = self.arguments.iter();
        let mut more: Vec<String> = conditions.map(in_words).collect();
        let hints = &self.annotations;
        for (hint, yes, no) in [
            (hints.read_only, "read-only", "not read-only"),
            (hints.destructive, "destructive", "not destructive"),
            (hints.idempotent, "idempotent", "not idempotent"),
            (hints.open_world, "open-world", "not open-world"),
        ] {
            more.extend(hint.map(|hint| if hint { yes } else { no }.to_owned()));
        }
        if !more.is_empty() {
            write!(f, " where {}", more.join(", "))?;
        }
        match self.expires.and_then(instant) {
            Some(expires) => write!(f, " until {expires}"),
            None => Ok(()),
        }
    }
}

/// A condition in words.
fn in_words(condition: &Condition) -> String {
    match &condition.source {
        Value::Object(members) => {
            let tests = members
                .iter()
                .map(|(test, value)| format!("{test} {value}"));
            format!(
                "{} {}",
                condition.path,
                tests.collect::<Vec<_>>().join(" and ")
            )
        }
        other => format!("{} is {other}", condition.path),
    }
}

/// A pattern as one word of the short form.
fn word(glob: &Glob) -> String {
    let text = glob.to_string();
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | ':');
    if text.is_empty() || text.starts_with('@') || text.contains(odd) {
        return Raw::string(&text).to_string();
    }
    text
}

pub(crate) fn instant(ms: u64) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("action", &self.action)?;
        if let Some(kind) = self.kind {
            map.serialize_entry("kind", &kind)?;
        }
        for (key, glob) in [
            ("server", &self.server),
            ("tool", &self.tool),
            ("client", &self.client),
        ] {
            if !glob.is_any() {
                map.serialize_entry(key, &glob.to_string())?;
            }
        }
        if !self.arguments.is_empty() {
            let conditions = self.arguments.iter();
            let conditions = conditions.map(|one| (one.path.clone(), one.source.clone()));
            map.serialize_entry("arguments", &Value::Object(conditions.collect()))?;
        }
        if self.annotations.count() > 0 {
            map.serialize_entry("annotations", &self.annotations)?;
        }
        if let Some(expires) = self.expires.and_then(instant) {
            map.serialize_entry("expires", &expires.to_string())?;
        }
        if let Some(reason) = &self.reason {
            map.serialize_entry("reason", reason)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::parse(&value).map_err(D::Error::custom)
    }
}

/// Two rules are equal if they are written the same.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        let conditions = |rule: &Self| -> Vec<(String, Value)> {
            let conditions = rule.arguments.iter();
            conditions
                .map(|one| (one.path.clone(), one.source.clone()))
                .collect()
        };
        (self.action, self.kind, self.annotations, self.expires)
            == (other.action, other.kind, other.annotations, other.expires)
            && (&self.server, &self.tool, &self.client)
                == (&other.server, &other.tool, &other.client)
            && self.reason == other.reason
            && conditions(self) == conditions(other)
    }
}
