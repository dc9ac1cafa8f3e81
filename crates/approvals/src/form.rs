//! Questions to a person: what a server asks by `elicitation/create`, ready to be shown and answered.
//!
//! The schemas are those of the revisions 2025-06-18 to 2026-07-28: flat, of texts, numbers, flags and
//! choices. A schema that is anything else makes a form without fields that says why, to be answered
//! in JSON. Nothing is ever fetched, and what a server says is data.

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

/// The most fields of a form. A person who is asked for more is not asked in earnest.
pub const FIELDS: usize = 200;

/// The most options of one choice.
pub const OPTIONS: usize = 2_000;

/// How much of what a server says is shown at a time, in bytes.
pub const SHOWN_BYTES: usize = 8 * 1024;

/// How much of a schema that is no form is looked through for secrets, in bytes.
const SCHEMA_BYTES: usize = 256 * 1024;

/// What a server asks a person.
#[derive(Clone, Debug)]
pub struct Form {
    /// What the server says.
    pub message: String,
    /// What it asks for.
    pub mode: Mode,
    /// The schema as it came, if it is to be filled in.
    schema: Option<Raw>,
}

/// How a question is answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum Mode {
    /// The person fills in fields.
    Form {
        /// In the order of the schema.
        fields: Vec<Field>,
    },
    /// The person writes JSON: the schema is none of a form.
    Raw {
        /// Why there are no fields.
        why: String,
    },
    /// The person opens an address in a browser.
    Url(Address),
    /// The question cannot be answered but with a no.
    Refused {
        /// Why.
        why: String,
    },
}

/// Something in an answer that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// Where, as a JSON pointer: `/age`; nothing if it is the whole.
    pub path: String,
    /// What is wrong there.
    pub message: String,
}

impl Form {
    /// Reads the parameters of `elicitation/create`.
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

    /// The fields; none unless it is a form.
    pub fn fields(&self) -> &[Field] {
        match &self.mode {
            Mode::Form { fields } => fields,
            _ => &[],
        }
    }

    /// Whether an address is to be opened.
    pub fn is_url(&self) -> bool {
        matches!(self.mode, Mode::Url(_))
    }

    /// The whole host of the address that is to be opened.
    pub fn host(&self) -> Option<&str> {
        match &self.mode {
            Mode::Url(address) => Some(&address.host),
            _ => None,
        }
    }

    /// The answer as it may be sent, with defaults where nothing was answered; or all that does not
    /// fit. An address is agreed to without any content, which gives an empty object.
    pub fn check(&self, content: Option<&Raw>) -> Result<Raw, Vec<FieldError>> {
        check::check(self, content)
    }

    /// What a person should know before answering.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(word) = secret(&self.message) {
            warnings.push(format!("the message speaks of something secret: `{word}`"));
        }
        match &self.mode {
            Mode::Form { fields } => {
                let secret = fields.iter().filter(|field| field.is_secret());
                warnings.extend(secret.map(|field| {
                    format!(
                        "asks for something that looks like a password: field `{}`",
                        field.name
                    )
                }));
            }
            Mode::Raw { why } => {
                warnings.push(format!("the form cannot be shown: {why}"));
                let schema = self.schema.as_ref().map(Raw::as_str).unwrap_or_default();
                if secret(&schema[..schema.floor_char_boundary(SCHEMA_BYTES)]).is_some() {
                    warnings.push("asks for something that looks like a password".to_owned());
                }
            }
            Mode::Url(address) => warnings.extend(address.warnings()),
            Mode::Refused { why } => warnings.push(why.clone()),
        }
        warnings
    }
}
