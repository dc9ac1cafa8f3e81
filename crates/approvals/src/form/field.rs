//! The fields of a form.

use serde::Serialize;
use switchboard_wire::Raw;

use switchboard_redact::words::secret;

/// One thing that is asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Field {
    /// What it is called in the answer.
    pub name: String,
    /// What it is called for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it takes.
    #[serde(flatten)]
    pub kind: Kind,
    /// Whether it has to be answered.
    pub required: bool,
    /// What it is if it is not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Raw>,
}

/// What a field takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Kind {
    /// A text.
    Text {
        /// How it is written.
        #[serde(skip_serializing_if = "Option::is_none")]
        format: Option<Format>,
        /// The fewest characters.
        #[serde(skip_serializing_if = "Option::is_none")]
        min: Option<u64>,
        /// The most characters.
        #[serde(skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
        /// A regular expression that it has to match, as JavaScript has them.
        #[serde(skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
    },
    /// A number.
    Number {
        /// Whether it has to be a whole one.
        integer: bool,
        /// The least.
        #[serde(skip_serializing_if = "Option::is_none")]
        min: Option<f64>,
        /// The greatest.
        #[serde(skip_serializing_if = "Option::is_none")]
        max: Option<f64>,
    },
    /// Yes or no.
    Flag,
    /// One of several.
    Choice {
        /// Which.
        options: Vec<Choice>,
    },
    /// Some of several.
    Choices {
        /// Which.
        options: Vec<Choice>,
        /// The fewest.
        #[serde(skip_serializing_if = "Option::is_none")]
        min: Option<u64>,
        /// The most.
        #[serde(skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
    },
}

/// An option of a choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// What is sent.
    pub value: String,
    /// What is shown.
    pub title: String,
}

/// How a text is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// An address of mail.
    Email,
    /// An absolute URI.
    Uri,
    /// A day, `2026-12-31`.
    Date,
    /// An instant, `2026-12-31T23:59:59Z`.
    DateTime,
    /// One that is not known here, and not checked.
    #[serde(untagged)]
    Other(String),
}

impl Field {
    /// Whether it seems to ask for a secret.
    pub fn is_secret(&self) -> bool {
        let other = match &self.kind {
            Kind::Text {
                format: Some(Format::Other(format)),
                ..
            } => Some(format.as_str()),
            _ => None,
        };
        let said = [
            Some(self.name.as_str()),
            self.title.as_deref(),
            self.description.as_deref(),
            other,
        ];
        said.into_iter()
            .flatten()
            .any(|text| secret(text).is_some())
    }
}
