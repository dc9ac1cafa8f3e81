//! Parsing and encoding of Model Context Protocol (MCP) messages.
//!
//! The crate is a set of pure functions and small values: it opens no socket, reads no clock and
//! spawns no task. It guarantees that **nothing is lost**: a message is an envelope (id, method,
//! the few members a router must read) around the bytes that arrived. Unknown members, the spelling
//! of numbers and the order of keys are preserved.
//!
#![doc = include_str!("../README.md")]

pub mod encode;
mod envelope;
mod error_object;
mod frame;
pub mod header;
mod id;
pub mod limits;
pub mod meta;
pub mod method;
mod name;
mod raw;
mod revision;
mod scan;
mod sse;
mod text;
pub mod tree;

pub use envelope::{EnvelopeError, Frame, Message, Notification, Outcome, Request, Response};
pub use error_object::{ErrorObject, code};
pub use frame::{FrameTooLarge, Splitter, put_line};
pub use id::Id;
pub use name::Name;
pub use raw::{Raw, RawError, is_alike};
pub use revision::{Elicitation, Era, Facts, Revision};
pub use sse::{SseEvent, SseField, SseParser, SseTooLarge};
pub use text::{EXCERPT_CHARS, excerpt, is_formatting, visible, with_hint};
