//! The protocol revisions and their differences, as data.

use std::fmt;

/// A protocol revision. Revisions are ordered by age, the oldest first.
///
/// ```
/// use switchboard_wire::{Era, Revision};
///
/// let revision = Revision::parse("2025-03-26").unwrap();
/// assert!(revision.facts().batches);
/// assert_eq!(revision.facts().era, Era::Legacy);
/// assert!(revision < Revision::LATEST);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // The variants are named after their dates.
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// The two generations of the protocol: a session that opens with a handshake, or self-contained
/// requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` opens a session; the server may send requests.
    Legacy,
    /// Every request is self-contained; the server asks for input in its results.
    Modern,
}

/// The elicitation that a server may request from the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Elicitation {
    /// No elicitation.
    None,
    /// A form to fill in.
    Form,
    /// A form to fill in, or a URL to open.
    FormAndUrl,
}

/// The features of one revision that others may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // This is a table of features.
pub struct Facts {
    /// The name of the revision on the wire.
    pub date: &'static str,
    /// The generation that the revision belongs to.
    pub era: Era,
    /// A frame may be an array of messages.
    pub batches: bool,
    /// HTTP requests name the revision in a header.
    pub version_header: bool,
    /// A single HTTP endpoint accepts POST and responds with JSON or an event stream. (If not:
    /// HTTP+SSE.)
    pub streamable_http: bool,
    /// HTTP has sessions, a stream opened with GET, and resumption by event id.
    pub http_sessions: bool,
    /// An event stream may open with an empty event that carries an id.
    pub priming_events: bool,
    /// Content may be audio.
    pub audio: bool,
    /// Tools have output schemas, and results have structured content.
    pub structured_content: bool,
    /// Structured content may be any JSON value, not only an object.
    pub any_structured_content: bool,
    /// Content may be a link to a resource.
    pub resource_links: bool,
    /// The elicitation that a server may request.
    pub elicitation: Elicitation,
    /// Sampling requests may carry tools.
    pub sampling_tools: bool,
    /// Completion requests carry the arguments that are already known.
    pub completion_context: bool,
    /// Tools, prompts and resources may have icons.
    pub icons: bool,
    /// Tasks are part of the core protocol. (In 2026-07-28 they are an extension.)
    pub core_tasks: bool,
    /// Either side may `ping`.
    pub ping: bool,
    /// The log level is set once per session. (If not: with each request.)
    pub session_log_level: bool,
    /// Results state for how long they may be cached.
    pub cache_hints: bool,
}

impl Revision {
    /// All revisions, the oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The newest revision that opens with `initialize`.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// Returns the revision with this name.
    pub fn parse(date: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == date)
    }

    /// Returns the name of the revision on the wire.
    pub const fn as_str(self) -> &'static str {
        self.facts().date
    }

    /// Returns the generation that the revision belongs to.
    pub const fn era(self) -> Era {
        self.facts().era
    }

    /// Returns the features of the revision.
    pub const fn facts(self) -> &'static Facts {
        match self {
            Self::V2024_11_05 => &V2024_11_05,
            Self::V2025_03_26 => &V2025_03_26,
            Self::V2025_06_18 => &V2025_06_18,
            Self::V2025_11_25 => &V2025_11_25,
            Self::V2026_07_28 => &V2026_07_28,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const V2024_11_05: Facts = Facts {
    date: "2024-11-05",
    era: Era::Legacy,
    batches: false,
    version_header: false,
    streamable_http: false,
    http_sessions: false,
    priming_events: false,
    audio: false,
    structured_content: false,
    any_structured_content: false,
    resource_links: false,
    elicitation: Elicitation::None,
    sampling_tools: false,
    completion_context: false,
    icons: false,
    core_tasks: false,
    ping: true,
    session_log_level: true,
    cache_hints: false,
};

const V2025_03_26: Facts = Facts {
    date: "2025-03-26",
    batches: true,
    streamable_http: true,
    http_sessions: true,
    audio: true,
    ..V2024_11_05
};

const V2025_06_18: Facts = Facts {
    date: "2025-06-18",
    batches: false,
    version_header: true,
    structured_content: true,
    resource_links: true,
    elicitation: Elicitation::Form,
    completion_context: true,
    ..V2025_03_26
};

const V2025_11_25: Facts = Facts {
    date: "2025-11-25",
    priming_events: true,
    elicitation: Elicitation::FormAndUrl,
    sampling_tools: true,
    icons: true,
    core_tasks: true,
    ..V2025_06_18
};

const V2026_07_28: Facts = Facts {
    date: "2026-07-28",
    era: Era::Modern,
    http_sessions: false,
    priming_events: false,
    any_structured_content: true,
    core_tasks: false,
    ping: false,
    session_log_level: false,
    cache_hints: true,
    ..V2025_11_25
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_and_sort_by_age() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        assert!(Revision::ALL.is_sorted_by_key(|revision| revision.as_str()));
        assert!(Revision::ALL.is_sorted());
        assert_eq!(Revision::parse("2025-01-01"), None);
    }

    #[test]
    fn batches_belong_to_one_revision() {
        let with: Vec<_> = Revision::ALL
            .into_iter()
            .filter(|r| r.facts().batches)
            .collect();
        assert_eq!(with, [Revision::V2025_03_26]);
    }
}
