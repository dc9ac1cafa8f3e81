//! Memories as the tools give them, and as people read them.

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
    /// How well it fits what was asked.
    pub(super) score: Option<f64>,
    #[serde(default)]
    pub(super) channels: Channels,
    /// All its versions, the oldest first.
    #[serde(default)]
    pub(super) history: Vec<Remembered>,
}

/// The ways in which it was found.
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
            ("words", self.lexical),
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
    /// Its scope in a few words, as the options are called.
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

    /// When it is true, if that is bounded.
    pub(super) fn valid(&self) -> Option<String> {
        match (self.valid_from.as_deref(), self.valid_until.as_deref()) {
            (None, None) => None,
            (Some(from), None) => Some(format!("from {}", moment(from))),
            (None, Some(until)) => Some(format!("until {}", moment(until))),
            (Some(from), Some(until)) => Some(format!("{} – {}", moment(from), moment(until))),
        }
    }

    /// When it was learned, to the day.
    pub(super) fn day(&self) -> String {
        let day = self.learned_at.split('T').next().unwrap_or_default();
        visible_line(day)
    }
}

/// A time as it came, without a fraction of a second and without what is midnight.
pub(super) fn moment(time: &str) -> String {
    let time = match time.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => time.to_owned(),
    };
    visible_line(time.strip_suffix("T00:00:00Z").unwrap_or(&time))
}

/// A text under a heading: indented, and cut if it is long.
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

/// A line under a heading, folded if there is no room for it.
pub(super) fn indented(line: &str) -> String {
    print::fitted(&io::stdout(), &format!("      {line}"), 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_short_as_they_can_be() {
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
    fn a_long_text_is_cut() {
        assert_eq!(excerpt("a\nb\u{202e}\n"), "      a\n      b⟨U+202E⟩\n");
        let long = excerpt(&"ä".repeat(2_000));
        assert_eq!(long.matches('ä').count(), 1_000);
        assert!(long.ends_with("\n      …\n"));
        let lines = excerpt(&"x\n".repeat(9));
        assert_eq!(lines.lines().count(), 9);
        assert!(lines.ends_with("      …\n"));
    }
}
