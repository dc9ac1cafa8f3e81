//! The command line, and the protocol revisions as data.

use std::{io, time::Duration};

/// A protocol revision. The order is that of their dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl Revision {
    pub(crate) const MODERN: Self = Self::V2026_07_28;
    const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Transport {
    Stdio,
    Http,
    Sse,
}

/// What the server was told.
pub(crate) struct Options {
    /// The revisions that it speaks, oldest first.
    pub(crate) revisions: Vec<Revision>,
    pub(crate) transport: Transport,
    pub(crate) port: u16,
    /// Lists of tools come in pages of ten.
    pub(crate) paged: bool,
    pub(crate) ttl: Duration,
    pub(crate) scope: &'static str,
}

impl Options {
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> io::Result<Self> {
        let mut options = Self {
            revisions: Revision::ALL.to_vec(),
            transport: Transport::Stdio,
            port: 0,
            paged: false,
            ttl: Duration::ZERO,
            scope: "private",
        };
        while let Some(arg) = args.next() {
            if arg == "--paged" {
                options.paged = true;
                continue;
            }
            let value = args.next().ok_or_else(|| wrong(&arg))?;
            match &*arg {
                "--revisions" => options.revisions = revisions(&value)?,
                "--transport" => options.transport = transport(&value)?,
                "--port" => options.port = value.parse().map_err(|_| wrong(&value))?,
                "--ttl" => {
                    options.ttl = Duration::from_millis(value.parse().map_err(|_| wrong(&value))?);
                }
                "--scope" => {
                    options.scope = match &*value {
                        "public" => "public",
                        "private" => "private",
                        _ => return Err(wrong(&value)),
                    }
                }
                _ => return Err(wrong(&arg)),
            }
        }
        Ok(options)
    }

    /// The newest of the revisions with a handshake, if it speaks any.
    pub(crate) fn newest_legacy(&self) -> Option<Revision> {
        let legacy = |revision: &&Revision| **revision < Revision::MODERN;
        self.revisions.iter().rev().find(legacy).copied()
    }

    pub(crate) fn modern(&self) -> bool {
        self.revisions.contains(&Revision::MODERN)
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.revisions.iter().map(|known| known.name()).collect()
    }
}

fn revisions(word: &str) -> io::Result<Vec<Revision>> {
    match word {
        "both" => Ok(Revision::ALL.to_vec()),
        "legacy" => Ok(Revision::ALL[..4].to_vec()),
        date => Ok(vec![Revision::parse(date).ok_or_else(|| wrong(date))?]),
    }
}

fn transport(word: &str) -> io::Result<Transport> {
    match word {
        "stdio" => Ok(Transport::Stdio),
        "http" => Ok(Transport::Http),
        "sse" => Ok(Transport::Sse),
        other => Err(wrong(other)),
    }
}

fn wrong(word: &str) -> io::Error {
    io::Error::other(format!("cannot make sense of {word:?}"))
}
