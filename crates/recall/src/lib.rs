//! Finding the right memory among many: by its words, by what it means, by what it is about, and by when.
//!
//! A [`Library`] holds what is needed to find memories, not the memories: words brought to their stems, vectors,
//! scopes, times, and which entities each of them mentions. It is made of the store, follows every change in
//! microseconds, and can be made anew at any time. It does no input or output and knows no clock.
//!
//! A filter is part of the search. What does not pass it is not looked at: it lends no score to its
//! neighbours, opens no way through the graph, and does not even count when words are weighed by how rare
//! they are.
//!
//! ```
//! use switchboard_recall::{Channels, Document, Filter, Library, Query};
//!
//! let mut library = Library::default();
//! library.add(&Document {
//!     row: 1,
//!     scope: [Some("home"), None, None, None],
//!     kind: "semantic",
//!     content: "Anna keeps the spare keys at her sister's",
//!     importance: 0.5,
//!     valid_from: None,
//!     valid_until: None,
//!     learned_at: 0,
//!     learned_until: None,
//!     mentions: &[],
//! });
//! let query = Query {
//!     text: "where is the spare key?",
//!     meaning: None,
//!     filter: Filter { scope: [Some("home"), None, None, None], ..Filter::default() },
//!     limit: 10,
//!     channels: Channels::default(),
//! };
//! assert_eq!(library.recall(&query)[0].row, 1);
//! ```

#![allow(
    clippy::cast_precision_loss,
    reason = "scores compare, and need no more digits than they have"
)]

mod alike;
mod columns;
mod dates;
mod document;
pub mod extract;
mod graph;
mod lexical;
mod lexicon;
mod library;
pub mod limits;
mod query;
mod recall;
mod room;
mod scopes;
mod vectors;
mod words;

pub use document::Document;
pub use library::Library;
pub use query::{Channels, Filter, Hit, Query};
pub use scopes::Scope;
