//! The search for the right tool among many.
//!
//! A [`Segment`] is made of the tools of one server, once: names are split and words are stemmed.
//! An [`Index`] holds the segments of all servers and is immutable; when one server changes,
//! [`Index::with`] makes a new one. [`Index::search`] combines the words of a query (BM25F, with
//! synonyms), its meaning in the vectors of a model, if there are any ([`Vectors`]), and the tools
//! that were called after similar queries ([`Learnt`]).
//!
//! Everything is kept in memory. There is no file that could be damaged or need repair: building an
//! index from the catalog takes less time than reading one would. It is also the fastest way to
//! search thousands of small texts by words: it takes microseconds, where an embedded database
//! takes milliseconds.
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
//! let text = "load the contents of a document";
//! let query = Query { text, limit: 5, filter: Filter::default(), explain: false };
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
