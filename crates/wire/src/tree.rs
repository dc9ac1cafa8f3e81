//! JSON as a tree that loses nothing: numbers stay as they are spelled, members of one name stay two.
//!
//! Arguments decide whether somebody is asked, so nothing in them may be read differently here than
//! a server reads it. What is too large or too deep is not read at all, and said to be so.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::{Raw, is_alike};

/// How deep a tree is read. A frame may be somewhat deeper, arguments that make sense are not.
pub const DEPTH: usize = 100;

/// One value.
#[derive(Debug, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// As it is spelled.
    Number(&'a str),
    /// A string, unescaped.
    Text(Cow<'a, str>),
    /// The elements.
    Array(Vec<Json<'a>>),
    /// In their order, those of one name too.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
    /// Too deep, or one too many.
    Unread,
}

/// A tree and how far it can be relied on.
#[derive(Debug)]
pub struct Tree<'a> {
    /// The tree.
    pub value: Json<'a>,
    /// Whether nothing was left out.
    pub whole: bool,
    /// Whether every text is what was sent: half a surrogate pair is read as U+FFFD.
    pub exact: bool,
}

/// A member whose name stands twice in one object: readers disagree on which one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Twice(pub String);

impl<'a> Tree<'a> {
    /// Reads at most this many values.
    pub fn read(raw: &'a Raw, nodes: usize) -> Self {
        Self::read_text(raw.as_str(), nodes)
    }

    /// Reads a text that is known to be JSON.
    pub fn read_text(text: &'a str, nodes: usize) -> Self {
        let mut reader = Reader {
            text,
            at: 0,
            nodes,
            whole: true,
            exact: true,
        };
        let value = reader.value(0);
        Self {
            value,
            whole: reader.whole,
            exact: reader.exact,
        }
    }
}

impl<'a> Json<'a> {
    /// The one member of this name. One that differs in its case only is the same to some readers.
    pub fn member(&self, name: &str) -> Result<Option<&Json<'a>>, Twice> {
        let Self::Object(members) = self else {
            return Ok(None);
        };
        let mut found = members.iter().filter(|(key, _)| is_alike(key, name));
        match (found.next(), found.next()) {
            (None, _) => Ok(None),
            (Some((key, value)), None) if key == name => Ok(Some(value)),
            (Some(_), _) => Err(Twice(name.to_owned())),
        }
    }

    /// The member of this name, the last one if there are several.
    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        let Self::Object(members) = self else {
            return None;
        };
        let found = members.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| value)
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// One spelling for all that mean the same: members sorted, `1.0` as `1`.
    pub fn canonical(&self) -> Result<String, Twice> {
        let mut out = String::new();
        self.write_canonical(&mut out)?;
        Ok(out)
    }

    fn write_canonical(&self, out: &mut String) -> Result<(), Twice> {
        match self {
            Self::Null | Self::Unread => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(spelled) => out.push_str(&canonical_number(spelled)),
            // Writing to a string has no way to fail.
            Self::Text(text) => drop(write!(out, "{}", Raw::string(text))),
            Self::Array(elements) => {
                out.push('[');
                for element in elements {
                    element.write_canonical(out)?;
                    out.push(',');
                }
                out.push(']');
            }
            Self::Object(members) => {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by(|one, other| one.0.cmp(&other.0));
                if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                    return Err(Twice(pair[0].0.clone().into_owned()));
                }
                out.push('{');
                for (name, value) in sorted {
                    // Writing to a string has no way to fail.
                    let _ = write!(out, "{}:", Raw::string(name));
                    value.write_canonical(out)?;
                    out.push(',');
                }
                out.push('}');
            }
        }
        Ok(())
    }
}

/// A number by its digits and where they stand, so that `1`, `1.0` and `10e-1` are one.
pub fn canonical_number(spelled: &str) -> String {
    let (sign, text) = match spelled.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", spelled),
    };
    let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let kept = digits.trim_end_matches('0');
    let significant = kept.trim_start_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    let Ok(power) = power.parse::<i64>() else {
        // An exponent beyond all bounds is compared as it is spelled.
        return format!("{sign}{significant}e{power}");
    };
    let moved = i64::try_from(digits.len() - kept.len()).unwrap_or(0)
        - i64::try_from(fraction.len()).unwrap_or(0);
    format!("{sign}{significant}e{}", power.saturating_add(moved))
}

/// Walks over a text that is known to be JSON, and stays within it even if it is not.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    nodes: usize,
    whole: bool,
    exact: bool,
}

impl<'a> Reader<'a> {
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn value(&mut self, depth: usize) -> Json<'a> {
        let next = self.peek();
        if self.nodes == 0 {
            self.whole = false;
            self.at = self.text.len();
            return Json::Unread;
        }
        self.nodes -= 1;
        match next {
            Some(b'{' | b'[') if depth >= DEPTH => {
                self.whole = false;
                self.skip();
                Json::Unread
            }
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Json::Text(self.string()),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let end =
                    rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
                let spelled = &rest[..end.unwrap_or(rest.len())];
                // At least one byte, so that what is no JSON after all has an end.
                self.at += spelled.len().max(1);
                Json::Number(spelled)
            }
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Json<'a> {
        self.at += word.len();
        value
    }

    fn array(&mut self, depth: usize) -> Json<'a> {
        let mut elements = Vec::new();
        self.at += 1;
        loop {
            match self.peek() {
                Some(b']') => break self.at += 1,
                Some(b',') => self.at += 1,
                Some(_) => elements.push(self.value(depth + 1)),
                None => break,
            }
        }
        Json::Array(elements)
    }

    fn object(&mut self, depth: usize) -> Json<'a> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'}') => break self.at += 1,
                Some(b'"') => {
                    let name = self.string();
                    if self.peek() == Some(b':') {
                        self.at += 1;
                    }
                    let value = self.value(depth + 1);
                    members.push((name, value));
                }
                Some(_) => self.at += 1,
                None => break,
            }
        }
        Json::Object(members)
    }

    /// Over a whole array or object.
    fn skip(&mut self) {
        let mut open = 0_usize;
        while let Some(next) = self.peek() {
            match next {
                b'"' => {
                    self.bounds();
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open = open.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return;
            }
        }
    }

    /// Over a string: what stands between its quotes, and whether anything in it is escaped.
    fn bounds(&mut self) -> (&'a str, bool) {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut end = start;
        let mut escaped = false;
        loop {
            match bytes.get(end) {
                Some(b'"') | None => break,
                Some(b'\\') => {
                    escaped = true;
                    end += 2;
                }
                Some(_) => end += 1,
            }
        }
        self.at = end + 1;
        (self.text.get(start..end).unwrap_or_default(), escaped)
    }

    fn string(&mut self) -> Cow<'a, str> {
        let (inner, escaped) = self.bounds();
        if escaped {
            Cow::Owned(self.unescaped(inner))
        } else {
            Cow::Borrowed(inner)
        }
    }

    fn unescaped(&mut self, inner: &str) -> String {
        let mut out = String::with_capacity(inner.len());
        let mut rest = inner;
        while let Some((before, after)) = rest.split_once('\\') {
            out.push_str(before);
            let mut chars = after.chars();
            match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('b') => out.push('\u{8}'),
                Some('f') => out.push('\u{c}'),
                Some('u') => {
                    let (c, taken) = surrogates(after);
                    self.exact &= c.is_some();
                    out.push(c.unwrap_or('\u{fffd}'));
                    rest = after.get(taken..).unwrap_or_default();
                    continue;
                }
                Some(other) => out.push(other),
                None => {}
            }
            rest = chars.as_str();
        }
        out.push_str(rest);
        out
    }
}

/// The character that `uXXXX` or `uXXXX\uXXXX` spells, and how many bytes it took.
fn surrogates(text: &str) -> (Option<char>, usize) {
    let unit = |at: usize| u32::from_str_radix(text.get(at..at + 4)?, 16).ok();
    match unit(1) {
        Some(high @ 0xD800..0xDC00) => {
            let low = unit(7).filter(|_| text.get(5..7) == Some("\\u"));
            match low {
                Some(low @ 0xDC00..0xE000) => {
                    let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                    (char::from_u32(code), 11)
                }
                _ => (None, 5),
            }
        }
        Some(code) => (char::from_u32(code), 5),
        None => (None, 5),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn one_meaning_one_canonical_text() {
        let canonical = |text: &str| {
            let raw = raw(text);
            Tree::read(&raw, 100).value.canonical()
        };
        for (one, other) in [
            (
                r#"{"a":1,"b":[true,null]}"#,
                r#" { "b" : [ true , null ], "\u0061" : 1.0 } "#,
            ),
            ("100", "1e2"),
            ("-0.0", "0"),
            ("0.10", "1e-1"),
            (r#""\ud83d\ude00\/\n""#, "\"😀/\\u000a\""),
        ] {
            assert_eq!(canonical(one), canonical(other), "{one}");
        }
        for (one, other) in [("1", "-1"), ("1", "10"), ("1", "\"1\""), ("[[]]", "[]")] {
            assert_ne!(canonical(one), canonical(other), "{one}");
        }
        assert_eq!(canonical(r#"{"a":1,"a":2}"#), Err(Twice("a".to_owned())));
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let deep = raw(&format!("[{}{},7]", "[".repeat(5000), "]".repeat(5000)));
        let tree = Tree::read(&deep, 1000);
        assert!(!tree.whole);
        let Json::Array(elements) = tree.value else {
            panic!("an array")
        };
        assert_eq!(elements.last(), Some(&Json::Number("7")));
        let wide = raw(&format!("[{}1]", "1,".repeat(5000)));
        assert!(!Tree::read(&wide, 1000).whole);
    }

    fn plain(value: &Json<'_>) -> serde_json::Value {
        match value {
            Json::Null | Json::Unread => serde_json::Value::Null,
            Json::Bool(value) => (*value).into(),
            Json::Number(spelled) => serde_json::from_str(spelled).unwrap(),
            Json::Text(text) => text.as_ref().into(),
            Json::Array(elements) => elements.iter().map(plain).collect(),
            Json::Object(members) => {
                let members = members
                    .iter()
                    .map(|(k, v)| (k.clone().into_owned(), plain(v)));
                serde_json::Value::Object(members.collect())
            }
        }
    }

    proptest! {
        #[test]
        fn reads_what_serde_reads(text in "[\\[\\]{}:,\"\\\\a-cu0-9 .e-]{0,24}") {
            let tree = Tree::read_text(&text, 1000);
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
                prop_assert_eq!(plain(&tree.value), value);
            }
        }

        #[test]
        fn strings_are_unescaped(text in any::<String>()) {
            let raw = Raw::string(&text);
            prop_assert_eq!(Tree::read(&raw, 2).value, Json::Text(text.into()));
        }
    }
}
