//! The results as a page.

use std::fmt::Write;

use crate::{
    features,
    revision::{Revision, Side},
};

/// The result of one feature in one pair.
#[derive(Debug)]
pub(crate) struct Mark {
    pub(crate) feature: &'static str,
    pub(crate) client: Side,
    pub(crate) server: Side,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Works,
    Cannot(&'static str),
    Fails(String),
}

const HEAD: &str = "\
# Protocol revisions

Clients and servers of every protocol revision work with each other through Switchboard. The tests in
`crates/switchboard/tests/matrix` generate this page. They try each feature with a client of each revision
and a server of each revision, over every transport that both sides have (pipes, Streamable HTTP, HTTP+SSE).

A column is the revision of the client. A cell has five marks, for servers of 2024-11-05, 2025-03-26,
2025-06-18, 2025-11-25 and 2026-07-28, or one mark if all five are the same. ✓ means that the feature works. A
letter means that it cannot exist; the list below the table says why. ✓ with a letter means that it works
where it can exist.
";

/// Renders the page.
pub(crate) fn page(marks: &[Mark]) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    let mut rows = String::new();
    for feature in features::ALL {
        let _ = write!(rows, "| {} |", feature.name);
        for client in Revision::ALL {
            let of_pair = |server| {
                let of_it = marks.iter().filter(move |mark| {
                    mark.feature == feature.name
                        && mark.client.revision == client
                        && mark.server.revision == server
                });
                of_it.map(|mark| &mark.outcome)
            };
            let cell: Vec<_> = Revision::ALL
                .iter()
                .map(|server| sign(of_pair(*server), &mut reasons))
                .collect();
            let are_one = cell.iter().all(|sign| *sign == cell[0]);
            let cell = if are_one {
                cell[0].clone()
            } else {
                cell.join(" ")
            };
            let _ = write!(rows, " {cell} |");
        }
        rows.push('\n');
    }
    let columns = Revision::ALL.map(Revision::as_str).join(" | ");
    let lines = ["---"; 6].join(" | ");
    let mut page = format!("{HEAD}\n| | {columns} |\n| {lines} |\n{rows}\n");
    for (index, reason) in reasons.iter().enumerate() {
        let _ = writeln!(page, "* {}: {reason}", letter(index));
    }
    page
}

/// The sign for the results over all transports of one pair.
fn sign<'a>(outcomes: impl Iterator<Item = &'a Outcome>, reasons: &mut Vec<&str>) -> String {
    let (mut works, mut letters) = (false, Vec::new());
    for outcome in outcomes {
        match outcome {
            Outcome::Works => works = true,
            Outcome::Fails(_) => return "✗".to_owned(),
            Outcome::Cannot(reason) => {
                let known = reasons.iter().position(|known| known == reason);
                let index = known.unwrap_or_else(|| {
                    reasons.push(reason);
                    reasons.len() - 1
                });
                letters.push(letter(index));
            }
        }
    }
    letters.sort_unstable();
    letters.dedup();
    let letters: String = letters.into_iter().collect();
    if works {
        format!("✓{letters}")
    } else {
        letters
    }
}

fn letter(index: usize) -> char {
    (b'a'..=b'z').nth(index).map_or('?', char::from)
}
