//! Parsing of rules: a line of text, or an object.

use serde_json::{Map, Value};

use switchboard_text::glob::Glob;

use super::Kind;
use super::condition::Condition;
use super::error::RuleError;
use super::hints::Hints;
use super::limits::{CONDITIONS, RULE_BYTES};
use super::rule::{Action, Rule};

const KEYS: [&str; 9] = [
    "action",
    "kind",
    "server",
    "tool",
    "client",
    "arguments",
    "annotations",
    "expires",
    "reason",
];
const HINTS: [&str; 4] = ["readOnly", "destructive", "idempotent", "openWorld"];
const KINDS: [&str; 5] = [
    "tool_call",
    "resources",
    "prompts",
    "sampling",
    "elicitation",
];
const ACTIONS: [&str; 3] = ["deny", "ask", "allow"];

impl Rule {
    /// Parses a rule of the configuration: a text in the short form, or an object.
    pub fn parse(value: &Value) -> Result<Self, RuleError> {
        match value {
            Value::String(text) => Self::parse_text(text),
            Value::Object(members) => {
                // Measured in its serialized form, to bound the work of later readers.
                let length = value.to_string().len();
                if length > RULE_BYTES {
                    return Err(RuleError::TooLong(length));
                }
                from_object(members)
            }
            _ => Err(RuleError::NotARule),
        }
    }

    /// Parses a typed rule: the short form `ACTION [KIND] SERVER:TOOL [@CLIENT]`, or JSON.
    ///
    /// A name with white space, `:` or a leading `@` is written in double quotes, as in JSON. A word that is
    /// the name of a kind is parsed as one: all tools of a server called `sampling` are `sampling:*`.
    ///
    /// ```
    /// use switchboard_approvals::rules::Rule;
    ///
    /// let rule = Rule::parse_text(r#"ask "my files":delete_* @claude*"#)?;
    /// assert_eq!(rule.to_string(), r#"ask "my files":delete_* @claude*"#);
    /// assert_eq!(Rule::parse_text("deny files")?.to_string(), "deny files:*");
    /// # Ok::<(), switchboard_approvals::rules::RuleError>(())
    /// ```
    pub fn parse_text(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        if text.len() > RULE_BYTES {
            return Err(RuleError::TooLong(text.len()));
        }
        if text.starts_with('{') {
            let value: Value = serde_json::from_str(text)
                .map_err(|error| RuleError::NotJson(error.to_string()))?;
            return match value {
                Value::Object(members) => from_object(&members),
                _ => Err(RuleError::NotARule),
            };
        }
        short(text)
    }
}

fn short(text: &str) -> Result<Rule, RuleError> {
    let wrong = |why| RuleError::Short {
        text: text.to_owned(),
        why,
    };
    let words = words(text).ok_or_else(|| wrong("a quote is not closed"))?;
    let mut words = words.into_iter().peekable();
    let first = words.next().ok_or(RuleError::Empty)?;
    let mut rule = Rule::any(action(&first.text())?);
    let kind = |word: &Word| word.bare().and_then(|word| kind(&word));
    if let Some(found) = words.peek().and_then(kind) {
        rule.kind = Some(found);
        words.next();
    }
    let mut named = false;
    if let Some(word) = words.next_if(|word| !word.starts_with('@')) {
        let (server, tool) = word.split(':');
        rule.server = glob("server", &server)?;
        rule.tool = tool.map_or_else(|| Ok(Glob::any()), |tool| glob("tool", &tool))?;
        named = true;
    }
    if let Some(word) = words.next_if(|word| word.starts_with('@')) {
        rule.client = glob("client", &word.text()[1..])?;
        named = true;
    }
    if words.peek().is_some() {
        return Err(wrong("it is followed by more text"));
    }
    // A single word would be a rule about everything, and is more likely an incomplete rule.
    if !named && matches!(rule.kind, None | Some(Kind::ToolCall)) {
        return Err(wrong("it names no tools (write `*` for all)"));
    }
    Ok(rule.without_plain_kind())
}

/// Characters, and `true` for those in quotes.
struct Word(Vec<(char, bool)>);

impl Word {
    fn text(&self) -> String {
        self.0.iter().map(|(c, _)| c).collect()
    }

    /// The text of a word without quotes.
    fn bare(&self) -> Option<String> {
        self.0
            .iter()
            .all(|(_, quoted)| !quoted)
            .then(|| self.text())
    }

    fn starts_with(&self, c: char) -> bool {
        self.0.first() == Some(&(c, false))
    }

    /// The texts before and after the first occurrence of this character outside quotes.
    fn split(&self, at: char) -> (String, Option<String>) {
        let text = |part: &[(char, bool)]| part.iter().map(|(c, _)| c).collect();
        match self.0.iter().position(|c| *c == (at, false)) {
            Some(n) => (text(&self.0[..n]), Some(text(&self.0[n + 1..]))),
            None => (self.text(), None),
        }
    }
}

/// Splits a text into words; `None` if a quote is not closed.
fn words(text: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<(char, bool)>> = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '"' {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            let quoted = values.next()?.ok()?;
            let current = word.get_or_insert_default();
            current.extend(quoted.chars().map(|c| (c, true)));
            rest = rest.get(values.byte_offset()..)?;
            continue;
        }
        if c.is_whitespace() {
            words.extend(word.take().map(Word));
        } else {
            word.get_or_insert_default().push((c, false));
        }
        rest = &rest[c.len_utf8()..];
    }
    words.extend(word.take().map(Word));
    Some(words)
}

fn from_object(members: &Map<String, Value>) -> Result<Rule, RuleError> {
    let action = members.get("action").ok_or(RuleError::NoAction)?;
    let mut rule = Rule::any(self::action(text("action", action)?)?);
    for (key, value) in members {
        match key.as_str() {
            "action" => {}
            "kind" => {
                let found = text("kind", value)?;
                let found = kind(found).ok_or_else(|| RuleError::unknown("kind", found, &KINDS))?;
                rule.kind = Some(found);
            }
            "server" => rule.server = glob("server", text("server", value)?)?,
            "tool" => rule.tool = glob("tool", text("tool", value)?)?,
            "client" => rule.client = glob("client", text("client", value)?)?,
            "arguments" => rule.arguments = conditions(value)?,
            "annotations" => rule.annotations = hints(value)?,
            "expires" => rule.expires = Some(instant(text("expires", value)?)?),
            "reason" => rule.reason = Some(text("reason", value)?.to_owned()),
            other => return Err(RuleError::unknown("key", other, &KEYS)),
        }
    }
    Ok(rule.without_plain_kind())
}

fn conditions(value: &Value) -> Result<Vec<Condition>, RuleError> {
    let conditions = object("arguments", value)?;
    if conditions.len() > CONDITIONS {
        return Err(RuleError::TooManyConditions(conditions.len()));
    }
    let conditions = conditions.iter();
    conditions
        .map(|(path, test)| Condition::parse(path, test))
        .collect()
}

fn hints(value: &Value) -> Result<Hints, RuleError> {
    let mut hints = Hints::default();
    for (key, value) in object("annotations", value)? {
        let hint = match key.as_str() {
            "readOnly" => &mut hints.read_only,
            "destructive" => &mut hints.destructive,
            "idempotent" => &mut hints.idempotent,
            "openWorld" => &mut hints.open_world,
            other => return Err(RuleError::unknown("annotation", other, &HINTS)),
        };
        *hint = Some(value.as_bool().ok_or_else(|| RuleError::Value {
            key: format!("annotations.{key}"),
            expected: "true or false",
        })?);
    }
    Ok(hints)
}

fn instant(text: &str) -> Result<u64, RuleError> {
    let instant: Option<jiff::Timestamp> = text.parse().ok();
    let ms = instant.map(|instant| u64::try_from(instant.as_millisecond()).unwrap_or(0));
    ms.ok_or_else(|| RuleError::Value {
        key: "expires".to_owned(),
        expected: "a date and time such as 2026-12-31T23:59:59Z",
    })
}

fn action(word: &str) -> Result<Action, RuleError> {
    match word {
        "deny" => Ok(Action::Deny),
        "ask" => Ok(Action::Ask),
        "allow" => Ok(Action::Allow),
        other => Err(RuleError::unknown("action", other, &ACTIONS)),
    }
}

fn kind(word: &str) -> Option<Kind> {
    match word {
        "tool_call" => Some(Kind::ToolCall),
        "resources" => Some(Kind::Resource),
        "prompts" => Some(Kind::Prompt),
        "sampling" => Some(Kind::Sampling),
        "elicitation" => Some(Kind::Elicitation),
        _ => None,
    }
}

fn text<'v>(key: &str, value: &'v Value) -> Result<&'v str, RuleError> {
    value.as_str().ok_or_else(|| RuleError::Value {
        key: key.to_owned(),
        expected: "a string",
    })
}

fn object<'v>(key: &str, value: &'v Value) -> Result<&'v Map<String, Value>, RuleError> {
    value.as_object().ok_or_else(|| RuleError::Value {
        key: key.to_owned(),
        expected: "an object",
    })
}

/// Parses a pattern. An empty one is a mistake, since it would match nothing that exists.
fn glob(key: &str, text: &str) -> Result<Glob, RuleError> {
    let glob = Glob::parse(text).filter(|_| !text.is_empty());
    glob.ok_or_else(|| RuleError::Value {
        key: key.to_owned(),
        expected: "a name or a pattern such as `delete_*`",
    })
}
