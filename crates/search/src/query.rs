//! What is asked, and what comes back.

use std::sync::Arc;

use crate::{document::Field, segment::Entry};

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// In the words of whoever asks.
    pub text: &'a str,
    /// How many tools at most.
    pub limit: usize,
    /// Among which tools.
    pub filter: Filter<'a>,
    /// Whether to tell why each was found.
    pub explain: bool,
}

/// Which tools are looked at, at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filter<'a> {
    /// Only those of this server.
    pub server: Option<&'a str>,
    /// Only those that say they change nothing.
    pub read_only: bool,
    /// Only those in which nothing suspicious was found.
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
    /// Whose it is.
    pub server: Arc<str>,
    /// What its server calls it.
    pub name: Arc<str>,
    /// How well it fits, from 0 to 1.
    pub score: f32,
    /// Why it was found, if that was asked for.
    pub why: Option<Why>,
}

/// Why a tool was found: what each way of searching says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Why {
    /// By its words, from 0 to 1.
    pub words: f32,
    /// By its meaning, from 0 to 1, if vectors are there.
    pub meaning: Option<f32>,
    /// By what was called after earlier questions, from 0 to 1.
    pub learnt: f32,
    /// The words that speak for it, the best first.
    pub matches: Vec<Match>,
}

/// What speaks for a tool: a word of the query, where it stands, and what that is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// The word of the query.
    pub word: String,
    /// The stem that was found: the word's own, or that of another word for the same thing.
    pub stem: String,
    /// Where it stands.
    pub fields: Vec<Field>,
    /// What it adds to the score.
    pub score: f32,
}
