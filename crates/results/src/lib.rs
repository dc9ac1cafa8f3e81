//! Cuts tool results to a size that an agent can read.
//!
//! A tool may return more than an agent can read. [`fit`] cuts such a result at a natural border,
//! between paragraphs, lines or JSON elements, and adds a last line that says what is missing and how
//! to read on. Nothing is lost: the whole result is [`Kept`] in a [`Store`] for a while, and can be
//! read in pages.
//!
//! Servers choose the content of their results, so no result is trusted: all work is bounded by the
//! length of the result, and no input makes this crate panic. The crate does not depend on an async
//! runtime. The methods of [`Store`] block on disk I/O, so call them where blocking is allowed.

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
