//! [`scan`]: what is suspicious about a definition.

use serde::Serialize;
use switchboard_wire::Raw;

use crate::{fields, json::Value, show};

mod unseen;

/// Something suspicious about a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind of thing it is.
    pub kind: Kind,
    /// How bad that is.
    pub severity: Severity,
    /// Where it is: `description`, `parameters.path.description`.
    pub field: String,
    /// The text around it, cut, with characters that nobody sees written as ⟨U+200B⟩.
    pub excerpt: String,
    /// What it means, in one sentence for a person.
    pub says: String,
}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// A person should read the text before they agree to it.
    Warn,
    /// A model reads what no person can see.
    Hidden,
}

/// What kind of thing a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// Characters that are not shown.
    Invisible,
    /// Marks that turn the direction of the text.
    Direction,
    /// Control characters and the sequences by which a terminal is steered.
    Control,
    /// Characters that mean what two sides agreed on.
    PrivateUse,
}

/// What other servers there are, and their tools: a definition that speaks of them reaches beyond its
/// own server.
#[derive(Clone, Debug, Default)]
pub struct Others {
    names: Vec<String>,
}

impl Others {
    /// Adds another server and what its tools are called.
    pub fn add<'a>(&mut self, server: &str, tools: impl IntoIterator<Item = &'a str>) {
        self.names.push(server.to_owned());
        self.names.extend(tools.into_iter().map(str::to_owned));
    }
}

/// What is suspicious about a definition, the worst first.
pub fn scan(definition: &Raw, _others: &Others) -> Vec<Finding> {
    let value = Value::read(definition);
    let mut findings = Vec::new();
    fields::each(&value, &mut |field, _, text| {
        for found in unseen::find(text) {
            findings.push(Finding {
                kind: found.kind,
                severity: found.severity,
                field: field.name(),
                excerpt: show::excerpt(&text.text, found.at),
                says: format!("{} ({} of them)", found.says, found.count),
            });
        }
    });
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// Whether there is text in it that nobody can see.
pub(crate) fn has_hidden(value: &Value<'_>) -> bool {
    let mut hidden = false;
    fields::each(value, &mut |_, _, text| {
        hidden = hidden || unseen::is_hidden(text);
    });
    hidden
}
