//! Formats memories as Markdown.

use std::fmt::Write;

use switchboard_store::memory::Version;

use crate::{scope, times};

/// Writes one memory as a list item, with its metadata.
pub(crate) fn write(version: &Version, to: &mut String) {
    // Writing to a string cannot fail.
    let _ = writeln!(to, "- {}", on_one_line(&version.content));
    let mut facts = vec![format!("{}", version.kind)];
    if let Some(from) = version.valid_from {
        facts.push(format!("from {}", times::day(from)));
    }
    if let Some(until) = version.valid_until {
        facts.push(format!("until {}", times::day(until)));
    }
    facts.push(format!("learned {}", times::day(version.learned_at)));
    for (name, part) in scope::PARTS.into_iter().zip(scope::parts(&version.scope)) {
        if let Some(part) = part {
            facts.push(format!("{name} {}", on_one_line(part)));
        }
    }
    let names: Vec<_> = version
        .mentions
        .iter()
        .map(|of| on_one_line(&of.name))
        .collect();
    if !names.is_empty() {
        facts.push(format!("about {}", names.join(", ")));
    }
    if let Some(reason) = &version.reason {
        facts.push(format!("no longer true: {}", on_one_line(reason)));
    }
    let _ = writeln!(
        to,
        "  <sub>{} · `{}`</sub>",
        facts.join(" · "),
        on_one_line(&version.id)
    );
}

/// Puts a text on one line, so that it cannot begin a heading, list or quotation. Also escapes
/// markup, and removes control characters, so that it cannot command a terminal.
pub(crate) fn on_one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ").replace('<', "&lt;");
    line.chars().filter(|c| !c.is_control()).collect()
}
