//! Queries and their results.

use std::sync::Arc;

use crate::{document::Field, segment::Entry};

/// A query.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The query in the user's words.
    pub text: &'a str,
    /// The most tools to find.
    pub limit: usize,
    /// The tools to consider.
    pub filter: Filter<'a>,
    /// Explain each hit.
    pub explain: bool,
}

/// The tools to consider in a search.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    /// Only tools of this server.
    pub server: Option<&'a str>,
    /// Only tools that declare themselves read-only.
    pub read_only: bool,
    /// Only tools without suspicious text.
    pub trusted: bool,
}

impl Filter<'_> {
    pub(crate) fn admits_server(&self, server: &str) -> bool {
        self.server.is_none_or(|only| only == server)
    }

    pub(crate) fn admits(&self, tool: &Entry) -> bool {
        (tool.read_only || !self.read_only) && (tool.trusted || !self.trusted)
    }
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The server of the tool.
    pub server: Arc<str>,
    /// The name of the tool at its server.
    pub name: Arc<str>,
    /// The score, from 0 to 1.
    pub score: f32,
    /// The explanation, if it was requested.
    pub why: Option<Why>,
}

/// The explanation of a hit: the score of each search method.
#[derive(Debug, Clone, PartialEq)]
pub struct Why {
    /// The score by words, from 0 to 1.
    pub words: f32,
    /// The score by meaning, from 0 to 1, if there are vectors.
    pub meaning: Option<f32>,
    /// The score by calls after earlier queries, from 0 to 1.
    pub learnt: f32,
    /// The matching words, best first.
    pub matches: Vec<Match>,
}

/// A matching word of the query, with its fields and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// The word of the query.
    pub word: String,
    /// The stem that was found: the word's own, or that of a synonym.
    pub stem: String,
    /// The fields that contain it.
    pub fields: Vec<Field>,
    /// Its contribution to the score.
    pub score: f32,
}
