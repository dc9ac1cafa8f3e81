//! Memories as the tools return them, and as text.

use std::io;

use serde::Deserialize;
use switchboard_terminal::print;
use switchboard_terminal::visible::{visible, visible_line};
use switchboard_wire::Raw;

/// One memory, or one version of it.
#[derive(Debug, Deserialize)]
pub(super) struct Remembered {
    pub(super) id: String,
    pub(super) content: String,
    pub(super) memory_type: String,
    #[serde(default)]
    pub(super) importance: f64,
    pub(super) learned_at: String,
    pub(super) learned_until: Option<String>,
    pub(super) valid_from: Option<String>,
    pub(super) valid_until: Option<String>,
    #[serde(default)]
    pub(super) version: u64,
    #[serde(default)]
    pub(super) entities: Vec<String>,
    namespace: Option<String>,
    user_id: Option<String>,
    agent_id: Option<String>,
    run_id: Option<String>,
    pub(super) metadata: Option<Raw>,
    pub(super) reason: Option<String>,
    pub(super) superseded_by: Option<String>,
    /// Relevance to the query.
    pub(super) score: Option<f64>,
    #[serde(default)]
    pub(super) channels: Channels,
    /// All versions, oldest first.
    #[serde(default)]
    pub(super) history: Vec<Remembered>,
}

/// The channels through which a memory was found.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Channels {
    lexical: Option<f64>,
    vector: Option<f64>,
    graph: Option<f64>,
    context: Option<f64>,
}

impl Channels {
    pub(super) fn in_words(&self) -> String {
        let ways = [
            ("keyword", self.lexical),
            ("meaning", self.vector),
            ("relations", self.graph),
            ("context", self.context),
        ];
        let found = ways
            .iter()
            .filter_map(|(name, score)| Some(format!("{name} {:.2}", (*score)?)));
        found.collect::<Vec<_>>().join(", ")
    }
}

impl Remembered {
    /// Its scope in a few words, named like the options.
    pub(super) fn scope(&self) -> String {
        let parts = [
            ("namespace", &self.namespace),
            ("user", &self.user_id),
            ("agent", &self.agent_id),
            ("run", &self.run_id),
        ];
        let named = parts
            .iter()
            .filter_map(|(name, part)| Some(format!("{name} {}", visible_line(part.as_ref()?))));
        named.collect::<Vec<_>>().join(", ")
    }

    /// The time during which it is true, if bounded.
    pub(super) fn valid(&self) -> Option<String> {
        match (self.valid_from.as_deref(), self.valid_until.as_deref()) {
            (None, None) => None,
            (Some(from), None) => Some(format!("from {}", moment(from))),
            (None, Some(until)) => Some(format!("until {}", moment(until))),
            (Some(from), Some(until)) => Some(format!("{} – {}", moment(from), moment(until))),
        }
    }

    /// The day on which it was learned.
    pub(super) fn day(&self) -> String {
        let day = self.learned_at.split('T').next().unwrap_or_default();
        visible_line(day)
    }
}

/// A time as received, without fractions of a second and without midnight.
pub(super) fn moment(time: &str) -> String {
    let time = match time.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => time.to_owned(),
    };
    visible_line(time.strip_suffix("T00:00:00Z").unwrap_or(&time))
}

/// A text under a heading: indented, and truncated if long.
pub(super) fn excerpt(content: &str) -> String {
    const LINES: usize = 8;
    const CHARS: usize = 1_000;
    let cut = content
        .char_indices()
        .nth(CHARS)
        .map_or(content.len(), |(at, _)| at);
    let mut is_cut = cut < content.len();
    let mut text = String::new();
    for (number, line) in visible(content[..cut].trim()).lines().enumerate() {
        if number == LINES {
            is_cut = true;
            break;
        }
        text.push_str(&indented(line));
        text.push('\n');
    }
    if is_cut {
        text.push_str(&indented("…\n"));
    }
    text
}

/// A line under a heading, wrapped if it does not fit.
pub(super) fn indented(line: &str) -> String {
    print::fitted(&io::stdout(), &format!("      {line}"), 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shortened() {
        for (time, expected) in [
            ("2026-07-28T00:00:00Z", "2026-07-28"),
            ("2026-07-28T12:30:00Z", "2026-07-28T12:30:00Z"),
            ("2026-07-28T12:30:00.123456Z", "2026-07-28T12:30:00Z"),
            ("\u{1b}[2J", "⟨U+001B⟩[2J"),
        ] {
            assert_eq!(moment(time), expected);
        }
    }

    #[test]
    fn long_text_is_truncated() {
        assert_eq!(excerpt("a\nb\u{202e}\n"), "      a\n      b⟨U+202E⟩\n");
        let long = excerpt(&"ä".repeat(2_000));
        assert_eq!(long.matches('ä').count(), 1_000);
        assert!(long.ends_with("\n      …\n"));
        let lines = excerpt(&"x\n".repeat(9));
        assert_eq!(lines.lines().count(), 9);
        assert!(lines.ends_with("      …\n"));
    }
}
