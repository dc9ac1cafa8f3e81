//! The fields of a form.

use serde::Serialize;
use switchboard_wire::Raw;

use switchboard_redact::words::secret;

/// A field of a form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Field {
    /// Its name in the answer.
    pub name: String,
    /// Its name for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The values that it accepts.
    #[serde(flatten)]
    pub kind: Kind,
    /// `true` if it must be answered.
    pub required: bool,
    /// The value if it is not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Raw>,
}

/// The values that a field accepts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Kind {
    /// A text.
    Text {
        /// The format of the text.
        #[serde(skip_serializing_if = "Option::is_none")]
        format: Option<Format>,
        /// The fewest characters.
        #[serde(skip_serializing_if = "Option::is_none")]
        min: Option<u64>,
        /// The most characters.
        #[serde(skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
        /// A regular expression of JavaScript that it must match.
        #[serde(skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
    },
    /// A number.
    Number {
        /// `true` if it must be a whole number.
        integer: bool,
        /// The least value.
        #[serde(skip_serializing_if = "Option::is_none")]
        min: Option<f64>,
        /// The greatest value.
        #[serde(skip_serializing_if = "Option::is_none")]
        max: Option<f64>,
    },
    /// A flag: yes or no.
    Flag,
    /// One of several options.
    Choice {
        /// The options.
        options: Vec<Choice>,
    },
    /// Any of several options.
    Choices {
        /// The options.
        options: Vec<Choice>,
        /// The fewest options.
        #[serde(skip_serializing_if = "Option::is_none")]
        min: Option<u64>,
        /// The most options.
        #[serde(skip_serializing_if = "Option::is_none")]
        max: Option<u64>,
    },
}

/// An option of a choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The value that is sent.
    pub value: String,
    /// The text that is shown.
    pub title: String,
}

/// The format of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// An email address.
    Email,
    /// An absolute URI.
    Uri,
    /// A date, `2026-12-31`.
    Date,
    /// A date and time, `2026-12-31T23:59:59Z`.
    DateTime,
    /// An unknown format, which is not checked.
    #[serde(untagged)]
    Other(String),
}

impl Field {
    /// Tests if it seems to ask for a secret.
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
