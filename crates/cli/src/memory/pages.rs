//! A file of JSON lines, split into pages for the memory server.
//!
//! The versions of one memory go into one page, in their order: the server takes a second line with the same
//! ID for the next version only within one call. In an export with history, versions of other memories stand
//! between them.

use std::collections::HashMap;

use serde::Deserialize;

/// The most lines of a page.
const LINES: usize = 1_000;
/// The most bytes of a page, as sent.
const BYTES: usize = 4 * 1024 * 1024;
/// The most bytes of the versions of one memory, as sent: a message has at most 16 MiB.
const UNIT_BYTES: usize = 14 * 1024 * 1024;

/// The number of a line in the file, and its text.
type Line<'a> = (u64, &'a str);

/// Lines that must stay together.
#[derive(Debug, Default)]
struct Unit<'a> {
    lines: Vec<Line<'a>>,
    /// Its size when sent, in bytes.
    bytes: usize,
}

/// A page to send.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) text: String,
    /// The line number in the file of each of its lines.
    pub(super) numbers: Vec<u64>,
}

/// The pages of a file.
#[derive(Debug)]
pub(super) struct Pages<'a> {
    units: std::iter::Peekable<std::vec::IntoIter<Unit<'a>>>,
    /// Total number of lines.
    pub(super) lines: u64,
    /// The numbers of lines that are too long to be sent.
    pub(super) too_long: Vec<u64>,
}

impl<'a> Pages<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let mut units: Vec<Unit<'a>> = Vec::new();
        let mut by_id: HashMap<String, usize> = HashMap::new();
        let mut lines = 0;
        for line in (1..).zip(text.lines()) {
            if line.1.trim().is_empty() {
                continue;
            }
            lines += 1;
            let unit = match memory_id(line.1) {
                Some(id) => *by_id.entry(id).or_insert(units.len()),
                None => units.len(),
            };
            if unit == units.len() {
                units.push(Unit::default());
            }
            units[unit].bytes += sent_bytes(line.1);
            units[unit].lines.push(line);
        }
        let is_too_long = |unit: &Unit<'_>| unit.bytes > UNIT_BYTES;
        let too_long = units.iter().filter(|unit| is_too_long(unit));
        let too_long = too_long.flat_map(|unit| unit.lines.iter().map(|(number, _)| *number));
        let too_long = too_long.collect();
        units.retain(|unit| !is_too_long(unit));
        Self {
            units: units.into_iter().peekable(),
            lines,
            too_long,
        }
    }
}

impl Iterator for Pages<'_> {
    type Item = Page;

    fn next(&mut self) -> Option<Page> {
        let mut page = Page::default();
        let mut bytes = 0;
        while let Some(unit) = self.units.next_if(|unit| {
            page.numbers.is_empty()
                || (page.numbers.len() + unit.lines.len() <= LINES && bytes + unit.bytes <= BYTES)
        }) {
            bytes += unit.bytes;
            for (number, line) in unit.lines {
                page.numbers.push(number);
                page.text.push_str(line);
                page.text.push('\n');
            }
        }
        (!page.numbers.is_empty()).then_some(page)
    }
}

/// The ID of a memory, if the line has one. The memory server judges everything else.
fn memory_id(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Head {
        r#type: String,
        id: String,
    }
    let head: Head = serde_json::from_str(line).ok()?;
    (head.r#type == "memory").then_some(head.id)
}

/// The bytes of a line inside a JSON string.
fn sent_bytes(line: &str) -> usize {
    let escaped = line.bytes().map(|byte| match byte {
        b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    });
    escaped.sum::<usize>() + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(id: &str, content: &str) -> String {
        format!(r#"{{"type":"memory","id":"{id}","content":"{content}"}}"#)
    }

    #[test]
    fn versions_of_one_memory_stay_together() {
        let mut lines = vec![
            memory("a", "first"),
            r#"{"type":"entity","name":"a"}"#.to_owned(),
        ];
        lines.extend((0..2_500).map(|number| memory(&number.to_string(), "x")));
        lines.push(String::new());
        lines.push(memory("a", "second"));
        lines.push("no JSON".to_owned());
        let text = lines.join("\n");
        let pages = Pages::of(&text);
        assert_eq!(pages.lines, 2_504);
        let pages: Vec<Page> = pages.collect();
        let sizes: Vec<_> = pages.iter().map(|page| page.numbers.len()).collect();
        assert_eq!(sizes, [1_000, 1_000, 504]);
        assert_eq!(pages[0].numbers[..4], [1, 2_504, 2, 3]);
        let first: Vec<_> = pages[0].text.lines().take(3).collect();
        assert_eq!(first, [&*lines[0], &*lines[2_503], &*lines[1]]);
        assert_eq!(pages[2].numbers.last(), Some(&2_505));
        assert!(pages[2].text.ends_with("no JSON\n"));
    }

    #[test]
    fn page_size_is_bounded() {
        let long = "y".repeat(1_500_000);
        let text = format!(
            "{}\n{}\n{}",
            memory("a", &long),
            memory("b", &long),
            memory("c", &long)
        );
        let sizes: Vec<_> = Pages::of(&text).map(|page| page.numbers.len()).collect();
        assert_eq!(sizes, [2, 1]);
        // A memory larger than a page is sent alone; one larger than a message is not sent at all.
        let versions = [&*memory("a", &long); 4].join("\n");
        let text = format!("{}\n{versions}", memory("b", "x"));
        let sizes: Vec<_> = Pages::of(&text).map(|page| page.numbers.len()).collect();
        assert_eq!(sizes, [1, 4]);
        let versions = [&*memory("a", &long); 10].join("\n");
        let mut pages = Pages::of(&versions);
        assert_eq!(pages.too_long, (1..=10).collect::<Vec<_>>());
        assert_eq!(pages.next(), None);
    }

    #[test]
    fn sent_size_is_an_upper_bound() {
        for line in ["plain", r#"{"a":"b\\c"}"#, "\u{1}\u{1f}\t", "ü🙂"] {
            let sent = serde_json::to_string(&format!("{line}\n")).unwrap();
            assert!(sent.len() - 2 <= sent_bytes(line), "{line:?}");
        }
    }
}
