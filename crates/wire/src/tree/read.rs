//! The parser that reads trees.

use std::borrow::Cow;

use super::{Json, Text};
use crate::limits::TREE_DEPTH;

/// Walks over a text that is known to be JSON, and stays within bounds even if it is not.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// Number of values that may still be read.
    pub(super) nodes: usize,
    pub(super) whole: bool,
    pub(super) exact: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn value(&mut self, depth: usize) -> Json<'a> {
        let next = self.peek();
        if self.nodes == 0 {
            self.whole = false;
            self.at = self.text.len();
            return Json::Unread("".into());
        }
        self.nodes -= 1;
        match next {
            Some(b'{' | b'[') if depth >= TREE_DEPTH => {
                self.whole = false;
                Json::Unread(self.skip().into())
            }
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Json::Text(self.string()),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => self.number(),
        }
    }

    /// Skips white space and returns the next byte.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn from(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Json<'a> {
        self.at += word.len();
        value
    }

    fn number(&mut self) -> Json<'a> {
        let start = self.at;
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        // At least one byte, so that reading ends even if the text is not JSON.
        self.at += rest.iter().take_while(is_part).count().max(1);
        Json::Number(Cow::Borrowed(self.from(start)))
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
        Json::Object(members.into())
    }

    /// Skips an array or object of any depth and returns its text.
    fn skip(&mut self) -> &'a str {
        let start = self.at;
        let mut open = 0_usize;
        while let Some(next) = self.peek() {
            match next {
                b'"' => {
                    self.inside();
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open = open.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                break;
            }
        }
        self.from(start)
    }

    fn string(&mut self) -> Text<'a> {
        let (inside, is_plain) = self.inside();
        if is_plain {
            return inside.into();
        }
        let text = Text::unescape(inside);
        self.exact &= text.halves.is_empty();
        text
    }

    /// Skips a string. Returns the text between its quotes, and `true` if there is no escape in it.
    fn inside(&mut self) -> (&'a str, bool) {
        let bytes = self.text.as_bytes();
        let start = self.at + 1;
        let (mut end, mut is_plain) = (start, true);
        loop {
            let rest = bytes.get(end..).unwrap_or_default();
            end += memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            if bytes.get(end) != Some(&b'\\') {
                break;
            }
            (end, is_plain) = (end + 2, false);
        }
        self.at = end + 1;
        (self.text.get(start..end).unwrap_or_default(), is_plain)
    }
}
