//! Finding the right tool among many.
//!
//! A [`Segment`] is made of the tools of one server, once: names taken apart, words brought to their stems.
//! An [`Index`] holds the segments of all servers and never changes; when one server does,
//! [`Index::with`] makes the next one. [`Index::search`] brings together what the words of a query say
//! (BM25F, with other words for the same thing), what it means in the vectors of a model, if there are any
//! ([`Vectors`]), and which tools served questions like it before ([`Learnt`]).
//!
//! Everything lives in memory. There is no file that could be damaged, and nothing to be repaired: an index
//! is made of the catalogue in less time than one could be read. Of the ways to search so many small texts
//! by words, this is also the fastest: some microseconds, where an embedded database takes milliseconds.
//!
//! ```
//! use std::sync::Arc;
//! use switchboard_search::{Filter, Index, Language, Learnt, Query, Segment, Tool};
//! use switchboard_wire::Raw;
//!
//! let language = Language::built_in();
//! let definition = Raw::parse(r#"{"name":"readFile","description":"Reads a file from disk"}"#)?;
//! let tool = Tool { name: "readFile", definition: &definition, trusted: true };
//! let segment = Segment::new("files", &language, [tool]);
//! let index = Index::default().with("files", Some(Arc::new(segment)));
//!
//! let query = Query { text: "load the contents of a document", limit: 5, filter: Filter::default(), explain: false };
//! let found = index.search(&language, &Learnt::default(), None, &query);
//! assert_eq!(&*found.hits[0].name, "readFile");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![allow(
    clippy::cast_precision_loss,
    reason = "scores compare, and need no more digits than they have"
)]

mod document;
mod glossary;
mod index;
mod language;
mod learnt;
mod query;
mod search;
mod segment;
mod stem;
mod synonyms;
mod vectors;
pub mod words;

pub use document::Field;
pub use index::Index;
pub use language::Language;
pub use learnt::{BadLessons, Learnt};
pub use query::{Filter, Hit, Match, Query, Why};
pub use search::{Found, WORDS_BESIDE_SENTENCES, WORDS_BESIDE_TABLE};
pub use segment::{Segment, Tool};
pub use vectors::{Cache, Meaning, Vectors};
