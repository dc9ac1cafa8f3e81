//! Asking a human: the broker, its rules, and the forms that a person fills in.

pub mod form;
mod json;
pub mod redact;
pub mod rules;
mod words;
