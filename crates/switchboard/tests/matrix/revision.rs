//! The revisions of the protocol and the transports, as the tests name them.

use std::fmt;

/// A revision of the protocol; the oldest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Revision {
    Nov2024,
    Mar2025,
    Jun2025,
    Nov2025,
    Jul2026,
}

impl Revision {
    pub(crate) const ALL: [Self; 5] = [
        Self::Nov2024,
        Self::Mar2025,
        Self::Jun2025,
        Self::Nov2025,
        Self::Jul2026,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Nov2024 => "2024-11-05",
            Self::Mar2025 => "2025-03-26",
            Self::Jun2025 => "2025-06-18",
            Self::Nov2025 => "2025-11-25",
            Self::Jul2026 => "2026-07-28",
        }
    }

    /// Tests if the revision has no sessions, so that each request is self-contained.
    pub(crate) fn is_modern(self) -> bool {
        self == Self::Jul2026
    }

    /// The transports that the revision has.
    pub(crate) const fn ways(self) -> &'static [Way] {
        match self {
            Self::Nov2024 => &[Way::Pipe, Way::Sse],
            Self::Mar2025 | Self::Jun2025 | Self::Nov2025 => &[Way::Pipe, Way::Http, Way::Sse],
            Self::Jul2026 => &[Way::Pipe, Way::Http],
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Standard input and output.
    Pipe,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE, the transport of 2024-11-05, which some programs still speak.
    Sse,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pipe => "pipe",
            Self::Http => "HTTP",
            Self::Sse => "HTTP+SSE",
        })
    }
}

/// One side: its revision and its transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Side {
    pub(crate) revision: Revision,
    pub(crate) way: Way,
}

impl Side {
    /// All possible sides.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Revision::ALL.into_iter().flat_map(|revision| {
            let ways = revision.ways().iter();
            ways.map(move |way| Self {
                revision,
                way: *way,
            })
        })
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {}", self.revision, self.way)
    }
}
