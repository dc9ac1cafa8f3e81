//! Finds secrets in text and replaces them.
//!
//! There are two ways to recognise a secret. [`redact`] and [`redact_text`] go by its form: a key
//! as its issuer spells it, a private key, a password after its name. [`Secrets`] goes by its
//! value, which the configuration holds. The first is a heuristic for values from elsewhere; the
//! second is exact.
//!
//! The crate is pure: it opens no file, reads no clock and spawns no task. All functions take time
//! in proportion to the text, and none can fail, so that a log entry can be written for any input.

mod decode;
mod forms;
mod index;
mod issued;
mod known;
mod named;
mod numbers;
mod patterns;
mod place;
mod plain;
mod text;
mod value;
mod view;
pub mod words;

pub use known::{Secret, Secrets, TooMany};
pub use patterns::REDACTED;
pub use place::{
    Authority, Source, address, arguments, authority, header, is_credential, literal, origin,
    reference, variable,
};
pub use text::redact_text;
pub use value::{is_marked, redact};
