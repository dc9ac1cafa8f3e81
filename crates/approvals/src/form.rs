//! Questions to a person: the parameters of `elicitation/create`, ready to be shown and answered.
//!
//! The schemas are those of the revisions 2025-06-18 to 2026-07-28: flat, with texts, numbers, flags and
//! choices. Any other schema gives a form without fields and with the reason, to be answered in JSON. Nothing
//! is ever fetched, and the server's text is data.

mod address;
mod check;
mod field;
mod format;
mod read;

use serde::Serialize;
use switchboard_wire::Raw;

pub use self::address::Address;
pub use self::field::{Choice, Field, Format, Kind};

use switchboard_redact::words::secret;

/// The most fields of a form. No serious form has more.
pub const FIELDS: usize = 200;

/// The most options of one choice.
pub const OPTIONS: usize = 2_000;

/// The longest text of a server that is shown, in bytes.
pub const SHOWN_BYTES: usize = 8 * 1024;

/// The part of a schema without fields that is scanned for secrets, in bytes.
const SCHEMA_BYTES: usize = 256 * 1024;

/// A question of a server to the user.
#[derive(Clone, Debug)]
pub struct Form {
    /// The server's message.
    pub message: String,
    /// The way in which it is answered.
    pub mode: Mode,
    /// The original schema, if there is content to fill in.
    schema: Option<Raw>,
}

/// The way in which a question is answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum Mode {
    /// The user fills in fields.
    Form {
        /// The fields, in the order of the schema.
        fields: Vec<Field>,
    },
    /// The user writes JSON, because the schema is not that of a form.
    Raw {
        /// The reason why there are no fields.
        why: String,
    },
    /// The user opens an address in a browser.
    Url(Address),
    /// The question can only be declined.
    Refused {
        /// The reason.
        why: String,
    },
}

/// An error in an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// JSON pointer to the value, such as `/age`; empty for the whole answer.
    pub path: String,
    /// The problem.
    pub message: String,
}

impl Form {
    /// Parses the parameters of `elicitation/create`.
    ///
    /// ```
    /// use switchboard_approvals::form::Form;
    /// use switchboard_wire::Raw;
    ///
    /// let form = Form::read(&Raw::parse(
    ///     r#"{"message":"Who are you?","requestedSchema":{"type":"object","properties":{
    ///         "mail":{"type":"string","format":"email"},
    ///         "age":{"type":"integer","minimum":0,"default":30}},"required":["mail"]}}"#,
    /// )?);
    /// assert_eq!(form.fields().len(), 2);
    /// let answer = form.check(Some(&Raw::parse(r#"{"mail":"a@example.org"}"#)?)).unwrap();
    /// assert_eq!(answer.as_str(), r#"{"mail":"a@example.org","age":30}"#);
    /// let problems = form.check(Some(&Raw::parse(r#"{"mail":"a"}"#)?)).unwrap_err();
    /// assert_eq!(problems[0].path, "/mail");
    /// # Ok::<(), switchboard_wire::RawError>(())
    /// ```
    pub fn read(params: &Raw) -> Self {
        read::form(params)
    }

    /// The fields; empty unless it is a form.
    pub fn fields(&self) -> &[Field] {
        match &self.mode {
            Mode::Form { fields } => fields,
            _ => &[],
        }
    }

    /// Returns `true` if the user should open an address.
    pub fn is_url(&self) -> bool {
        matches!(self.mode, Mode::Url(_))
    }

    /// The complete host of the address to open.
    pub fn host(&self) -> Option<&str> {
        match &self.mode {
            Mode::Url(address) => Some(&address.host),
            _ => None,
        }
    }

    /// Validates an answer. Returns it with defaults for missing fields, or all errors. An address is
    /// accepted without content, which gives an empty object.
    pub fn check(&self, content: Option<&Raw>) -> Result<Raw, Vec<FieldError>> {
        check::check(self, content)
    }

    /// Warnings for the user before answering.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(word) = secret(&self.message) {
            warnings.push(format!("the message mentions a secret: `{word}`"));
        }
        match &self.mode {
            Mode::Form { fields } => {
                let secret = fields.iter().filter(|field| field.is_secret());
                warnings.extend(secret.map(|field| {
                    format!(
                        "the field `{}` seems to ask for a password or key",
                        field.name
                    )
                }));
            }
            Mode::Raw { why } => {
                warnings.push(format!("the form cannot be shown: {why}"));
                let schema = self.schema.as_ref().map(Raw::as_str).unwrap_or_default();
                if secret(&schema[..schema.floor_char_boundary(SCHEMA_BYTES)]).is_some() {
                    warnings.push("the form seems to ask for a password or key".to_owned());
                }
            }
            Mode::Url(address) => warnings.extend(address.warnings()),
            Mode::Refused { why } => warnings.push(why.clone()),
        }
        warnings
    }
}
