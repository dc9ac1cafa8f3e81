//! JSON text that can be cut between its elements.

use serde::de::IgnoredAny;

use crate::limits::JSON_DEPTH;

/// Tests if a text is one JSON array or object, nested at most [`JSON_DEPTH`] deep.
pub(crate) fn is_json(text: &str) -> bool {
    if !text.trim_ascii_start().starts_with(['[', '{']) {
        return false;
    }
    let mut scan = Scan::default();
    for byte in text.bytes() {
        scan.step(byte);
        if scan.depth() > JSON_DEPTH {
            return false;
        }
    }
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Tests if two JSON texts differ only in white space.
pub(crate) fn same(a: &str, b: &str) -> bool {
    let mut a = Dense::new(a);
    let mut b = Dense::new(b);
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (x, y) if x == y => {}
            _ => return false,
        }
    }
}

/// Scans a JSON text byte by byte.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// The open brackets, each with the number of commas seen in it.
    open: Vec<(u8, usize)>,
    text: bool,
    escaped: bool,
}

impl Scan {
    pub(crate) fn run(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.step(*byte);
        }
    }

    /// Takes one byte. Returns `true` if it is a comma between two elements or members.
    pub(crate) fn step(&mut self, byte: u8) -> bool {
        if self.text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.text = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.text = true,
            // Text that is nested deeper is not treated as JSON, and must not take memory here.
            b'[' | b'{' if self.open.len() <= JSON_DEPTH => self.open.push((byte, 0)),
            b']' | b'}' => {
                self.open.pop();
            }
            b',' => {
                if let Some((_, commas)) = self.open.last_mut() {
                    *commas += 1;
                }
                return true;
            }
            _ => {}
        }
        false
    }

    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }
}

/// The beginning of a JSON text, closed so that it is valid JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// The text up to the cut, with its brackets closed.
    pub(crate) text: String,
    /// If the cut is between elements of an array: the number of elements shown, and the total.
    pub(crate) elements: Option<(usize, usize)>,
}

/// The text before a cut, as JSON; `None` if the cut is within an element.
pub(crate) fn beginning(text: &str, cut: usize) -> Option<Beginning> {
    let mut scan = Scan::default();
    scan.run(&text.as_bytes()[..cut]);
    let before = text[..cut].trim_ascii_end().strip_suffix(',')?;
    if scan.text {
        return None;
    }
    let mut shown = before.to_owned();
    for (bracket, _) in scan.open.iter().rev() {
        shown.push(if *bracket == b'[' { ']' } else { '}' });
    }
    let elements = match scan.open.last() {
        Some((b'[', commas)) => {
            let commas = *commas;
            Some((commas, commas + rest_of_array(scan, &text[cut..])))
        }
        _ => None,
    };
    Some(Beginning {
        text: shown,
        elements,
    })
}

/// The number of elements of the innermost array from here on.
fn rest_of_array(mut scan: Scan, rest: &str) -> usize {
    let depth = scan.depth();
    let before = scan.open.last().map_or(0, |(_, commas)| *commas);
    let mut commas = before;
    for byte in rest.bytes() {
        scan.step(byte);
        match scan.depth() {
            now if now < depth => break,
            now if now == depth => commas = scan.open.last().map_or(commas, |(_, commas)| *commas),
            _ => {}
        }
    }
    commas - before + 1
}

/// The bytes of a JSON text without the white space between tokens.
struct Dense<'a> {
    bytes: std::slice::Iter<'a, u8>,
    scan: Scan,
}

impl<'a> Dense<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            bytes: text.as_bytes().iter(),
            scan: Scan::default(),
        }
    }
}

impl Iterator for Dense<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.next()?;
            let within = self.scan.text;
            self.scan.step(byte);
            if within || !byte.is_ascii_whitespace() {
                return Some(byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_is_json() {
        for (text, expected) in [
            (r#"{"a":[1,"]"]}"#, true),
            (" [1]\n", true),
            ("[1", false),
            ("[1] and more", false),
            ("1", false),
            ("\"text\"", false),
            ("[INFO] started", false),
        ] {
            assert_eq!(is_json(text), expected, "{text}");
        }
        let deep = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_json(&deep(100)));
        assert!(!is_json(&deep(1_000_000)));
    }

    #[test]
    fn white_space_between_tokens_is_ignored() {
        assert!(same(r#"{"a b": [1, 2]}"#, "{\"a b\":[\n1,2]\n}"));
        assert!(!same(r#"{"a b":1}"#, r#"{"ab":1}"#));
        assert!(!same("[1]", "[1,2]"));
    }

    #[test]
    fn beginnings_are_valid_json() {
        let text = r#"{"n":1,"rows":[{"a":"x, y"},{"a":[3,4]}, {"a":5}],"end":[1,2]}"#;
        let cut = text.find(r#"{"a":5}"#).unwrap();
        assert_eq!(
            beginning(text, cut).unwrap(),
            Beginning {
                text: r#"{"n":1,"rows":[{"a":"x, y"},{"a":[3,4]}]}"#.to_owned(),
                elements: Some((2, 3)),
            }
        );
        let cut = text.find(r#""end""#).unwrap();
        let beginning_ = beginning(text, cut).unwrap();
        assert!(beginning_.text.ends_with(r#"{"a":5}]}"#) && beginning_.elements.is_none());
        assert_eq!(beginning(text, text.find("y\"").unwrap()), None);
    }
}
