//! Finds the right memory among many: by its words, its meaning, the entities it mentions, and its time.
//!
//! A [`Library`] holds the data needed to find memories, but not the memories themselves: stemmed words,
//! vectors, scopes, times, and the entities that each memory mentions. It is built from the store, follows
//! every change in microseconds, and can be rebuilt at any time. It does no input or output and has no
//! clock.
//!
//! A filter is part of the search. Memories that do not pass it are ignored completely: they lend no score
//! to their neighbours, open no path through the graph, and do not affect the rarity of words.
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
