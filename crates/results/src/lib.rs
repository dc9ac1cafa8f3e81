//! Results of tools that fit.
//!
//! A tool may answer with more than an agent can read. [`fit`] cuts such a result at a sensible border,
//! between paragraphs, lines or elements of JSON, and says in a last line what is missing and how to
//! read on. Nothing is lost: the whole result is [`Kept`] in a [`Store`] for a while, and read piece by
//! piece.
//!
//! Servers choose what they answer, so no result is trusted: all work is bounded by its length, and no
//! input makes this crate panic. Nothing here knows a runtime; the functions of [`Store`] wait for the
//! disk, so they are called where waiting is allowed.

mod border;
mod budget;
mod file;
mod fit;
mod id;
mod index;
mod json;
mod kept;
pub mod limits;
mod note;
mod part;
mod shrink;
mod store;
mod tokens;

pub use budget::Budget;
pub use fit::{Cut, Fit, Structured, fit};
pub use id::ResultId;
pub use kept::{Kept, Page};
pub use note::Reader;
pub use store::{Limits, Store, StoreError};
pub use tokens::estimate_tokens;
