//! Secrets in text, found and replaced.
//!
//! There are two ways to know a secret. [`redact`] and [`redact_text`] know its form: a key as its
//! issuer spells it, a private key, a password after its name. [`Secrets`] knows its value, because
//! the configuration holds it. The first is a guess for values from elsewhere; the second is exact.
//!
//! The crate is pure: it opens no file, reads no clock and spawns no task. Everything takes time in
//! proportion to the text, and nothing can fail: a log entry is written whatever arrives.

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
