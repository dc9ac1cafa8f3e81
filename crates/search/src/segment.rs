//! [`Segment`]: the searchable tools of one server. Immutable.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use switchboard_wire::Raw;

use crate::{
    document::{Document, Field},
    language::Language,
    words,
};

pub(crate) const FIELDS: usize = Field::ALL.len();

/// A tool to index.
#[derive(Debug, Clone, Copy)]
pub struct Tool<'a> {
    /// The name of the tool in its server's view.
    pub name: &'a str,
    /// The definition that clients see.
    pub definition: &'a Raw,
    /// No suspicious text was found in the definition.
    pub trusted: bool,
}

/// The searchable tools of one server.
#[derive(Debug)]
pub struct Segment {
    server: Arc<str>,
    tools: Vec<Entry>,
    by_name: HashMap<Arc<str>, u32>,
    terms: HashMap<Box<str>, Places>,
    postings: Vec<Posting>,
    /// The number of words of each field, over all tools.
    totals: [u64; FIELDS],
    /// The tools have been scanned for suspicious text.
    scrutinised: AtomicBool,
}

/// The postings of a word, and the number of tools with it.
#[derive(Debug, Clone, Copy)]
struct Places {
    start: u32,
    end: u32,
    tools: u32,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    pub(crate) read_only: bool,
    pub(crate) trusted: bool,
    /// The number of words of each field.
    pub(crate) lengths: [u16; FIELDS],
}

/// The number of occurrences of a word in one field of a tool. Postings of one tool are adjacent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) tool: u32,
    pub(crate) field: u8,
    pub(crate) count: u8,
}

impl Segment {
    /// Indexes the tools of a server.
    pub fn new<'a>(
        server: &str,
        language: &Language,
        tools: impl IntoIterator<Item = Tool<'a>>,
    ) -> Self {
        let mut found: HashMap<String, Vec<Posting>> = HashMap::new();
        let mut entries = Vec::new();
        let mut totals = [0; FIELDS];
        for (at, tool) in (0..).zip(tools) {
            let document = Document::read(server, tool.name, tool.definition);
            let mut lengths = [0_u16; FIELDS];
            let mut counts: HashMap<(String, u8), u8> = HashMap::new();
            for (field, text) in &document.texts {
                let terms = match field {
                    Field::Name | Field::Server | Field::Title => language.name_terms(text),
                    _ => words::terms(text),
                };
                let length = &mut lengths[*field as usize];
                *length = length.saturating_add(u16::try_from(terms.len()).unwrap_or(u16::MAX));
                for term in terms {
                    let count = counts.entry((term.stem, *field as u8)).or_default();
                    *count = count.saturating_add(1);
                }
            }
            for (total, length) in totals.iter_mut().zip(lengths) {
                *total += u64::from(length);
            }
            for ((stem, field), count) in counts {
                found.entry(stem).or_default().push(Posting {
                    tool: at,
                    field,
                    count,
                });
            }
            entries.push(Entry {
                name: tool.name.into(),
                read_only: document.read_only,
                trusted: tool.trusted,
                lengths,
            });
        }
        let mut postings = Vec::with_capacity(found.values().map(Vec::len).sum());
        let mut terms = HashMap::with_capacity(found.len());
        for (stem, mut list) in found {
            list.sort_unstable_by_key(|place| (place.tool, place.field));
            let tools = list.chunk_by(|one, other| one.tool == other.tool).count();
            let start = index_of(postings.len());
            postings.extend(list);
            let places = Places {
                start,
                end: index_of(postings.len()),
                tools: index_of(tools),
            };
            terms.insert(stem.into_boxed_str(), places);
        }
        Self {
            server: server.into(),
            by_name: (0..)
                .zip(&entries)
                .map(|(at, entry)| (Arc::clone(&entry.name), at))
                .collect(),
            tools: entries,
            terms,
            postings,
            totals,
            scrutinised: AtomicBool::new(false),
        }
    }

    /// Returns `true` if the tools have been scanned for suspicious text.
    pub fn is_scrutinised(&self) -> bool {
        self.scrutinised.load(Relaxed)
    }

    /// Marks the tools as scanned.
    pub fn set_scrutinised(&self) {
        self.scrutinised.store(true, Relaxed);
    }

    /// The server's name.
    pub fn server(&self) -> &Arc<str> {
        &self.server
    }

    pub(crate) fn tools(&self) -> &[Entry] {
        &self.tools
    }

    pub(crate) fn totals(&self) -> &[u64; FIELDS] {
        &self.totals
    }

    /// All stems, with the number of tools that have each.
    pub(crate) fn terms(&self) -> impl Iterator<Item = (&str, usize)> {
        let terms = self.terms.iter();
        terms.map(|(stem, places)| (&**stem, places.tools as usize))
    }

    /// The tool with this name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).map(|at| *at as usize)
    }

    /// Tells if no suspicious text was found in a tool's definition; `None` if there is no such tool.
    pub fn is_trusted(&self, name: &str) -> Option<bool> {
        let at = self.find(name)?;
        self.tools.get(at).map(|tool| tool.trusted)
    }

    /// The postings of a stem in one tool.
    pub(crate) fn places(&self, stem: &str, tool: u32) -> &[Posting] {
        let places = self.postings(stem);
        let start = places.partition_point(|place| place.tool < tool);
        let end = places.partition_point(|place| place.tool <= tool);
        &places[start..end]
    }

    /// The postings of a stem.
    pub(crate) fn postings(&self, stem: &str) -> &[Posting] {
        let Some(places) = self.terms.get(stem) else {
            return &[];
        };
        let places = places.start as usize..places.end as usize;
        self.postings.get(places).unwrap_or_default()
    }
}

/// A position in 32 bits. There are far fewer tools than would not fit.
pub(crate) fn index_of(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
