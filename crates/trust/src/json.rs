//! A definition read as a tree, so that nothing of what a client may read gets lost.
//!
//! A general reader would keep one of two members of one name, round numbers and refuse half a
//! surrogate pair; each is a place to hide a text in. Here all members stay, in their order, numbers
//! stay as they are spelled, and halves are remembered.
//!
//! The text is a [`Raw`], which is valid JSON by construction, so no error is told. What is deeper
//! than a typed reader would follow stays text, so that nobody's stack ends before the nesting does.

use std::borrow::Cow;

use switchboard_wire::{Raw, limits::DEPTH};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    /// As it is spelled.
    Number(&'a str),
    Text(Text<'a>),
    List(Vec<Self>),
    /// All members in their order, those of one name too.
    Object(Vec<(Text<'a>, Self)>),
    /// An array or object that is nested too deep to be read.
    Deep {
        /// As it is spelled.
        spelled: &'a str,
        /// All of it as if it were one string, for who looks for words.
        text: Text<'a>,
    },
}

/// A string, unescaped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text<'a> {
    /// The text. Half a surrogate pair is U+FFFD in it.
    pub(crate) text: Cow<'a, str>,
    /// Where those halves are, and which. Empty but for texts that somebody broke.
    pub(crate) halves: Vec<(usize, u16)>,
}

impl<'a> Value<'a> {
    /// Reads a definition.
    pub(crate) fn read(raw: &'a Raw) -> Self {
        let mut reader = Reader {
            text: raw.as_str(),
            at: 0,
        };
        reader.value(0)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Value<'a> {
        self.space();
        let start = self.at;
        match self.peek() {
            Some(b'"') => Value::Text(self.string()),
            Some(b'{' | b'[') if depth >= DEPTH => {
                self.skip();
                let spelled = self.from(start);
                Value::Deep {
                    spelled,
                    text: unescape(spelled),
                }
            }
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'-' | b'0'..=b'9') => {
                while let Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9') = self.peek() {
                    self.at += 1;
                }
                Value::Number(self.from(start))
            }
            _ => self.word("null", Value::Null),
        }
    }

    fn object(&mut self, depth: usize) -> Value<'a> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            self.space();
            match self.peek() {
                Some(b'"') => {
                    let key = self.string();
                    self.space();
                    self.at += 1;
                    let value = self.value(depth + 1);
                    members.push((key, value));
                }
                Some(b',') => self.at += 1,
                _ => break,
            }
        }
        self.at += 1;
        Value::Object(members)
    }

    fn list(&mut self, depth: usize) -> Value<'a> {
        let mut elements = Vec::new();
        self.at += 1;
        loop {
            self.space();
            match self.peek() {
                None | Some(b']') => break,
                Some(b',') => self.at += 1,
                Some(_) => elements.push(self.value(depth + 1)),
            }
        }
        self.at += 1;
        Value::List(elements)
    }

    /// Goes past an array or object of any depth.
    fn skip(&mut self) {
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string_end();
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                break;
            }
        }
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Value<'a> {
        self.at += word.len();
        value
    }

    fn string(&mut self) -> Text<'a> {
        let start = self.at + 1;
        let plain = self.string_end();
        let inner = self.text.get(start..self.at - 1).unwrap_or_default();
        if plain {
            return Text {
                text: Cow::Borrowed(inner),
                halves: Vec::new(),
            };
        }
        unescape(inner)
    }

    /// Goes past a string; whether it has no escape.
    fn string_end(&mut self) -> bool {
        let mut plain = true;
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => {
                    plain = false;
                    self.at += 1;
                }
                _ => {}
            }
        }
        plain
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn from(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }
}

fn unescape<'a>(spelled: &str) -> Text<'a> {
    let mut text = String::with_capacity(spelled.len());
    let mut halves = Vec::new();
    let mut rest = spelled;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(escape) = rest.chars().next() else {
            break;
        };
        rest = &rest[escape.len_utf8()..];
        match escape {
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'u' => {
                let unit = unit(rest);
                rest = rest.get(4..).unwrap_or_default();
                let next = rest.strip_prefix("\\u").map(self::unit);
                let pair = [unit, next.unwrap_or_default()];
                let mut whole = char::decode_utf16(pair);
                if let Some(Ok(c)) = whole.next() {
                    text.push(c);
                    if c.len_utf16() == 2 {
                        rest = rest.get(6..).unwrap_or_default();
                    }
                } else {
                    halves.push((text.len(), unit));
                    text.push(char::REPLACEMENT_CHARACTER);
                }
            }
            other => text.push(other),
        }
    }
    text.push_str(rest);
    Text {
        text: Cow::Owned(text),
        halves,
    }
}

/// The four hexadecimal digits at the start.
fn unit(digits: &str) -> u16 {
    let digits = digits.get(..4).unwrap_or_default();
    u16::from_str_radix(digits, 16).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> (String, Vec<(usize, u16)>) {
        let raw = Raw::parse(json.to_owned()).unwrap();
        let Value::Text(text) = Value::read(&raw) else {
            panic!("{json}");
        };
        (text.text.into_owned(), text.halves)
    }

    #[test]
    fn escapes_are_read_and_halves_remembered() {
        assert_eq!(
            text(r#""a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00!""#).0,
            "a\"\\/\u{8}\u{c}\n\r\té😀!"
        );
        assert_eq!(
            text(r#""a\ud83dx\ude00""#),
            ("a\u{fffd}x\u{fffd}".into(), vec![(1, 0xD83D), (5, 0xDE00)])
        );
        assert_eq!(
            text(r#""\ud83d\ud83d\ude00""#),
            ("\u{fffd}😀".into(), vec![(0, 0xD83D)])
        );
        assert_eq!(text(r#""\ud83d\u0041""#).0, "\u{fffd}A");
    }

    #[test]
    fn everything_stays() {
        let raw = Raw::parse(r#" { "a" : [1.50, -0, true,false,null, {} , [] ] , "a":1e400 } "#);
        let raw = raw.unwrap();
        let value = Value::read(&raw);
        let Value::Object(members) = &value else {
            panic!();
        };
        assert_eq!(members[1].1, Value::Number("1e400"));
        let Value::List(list) = &members[0].1 else {
            panic!();
        };
        assert_eq!(
            list[..],
            [
                Value::Number("1.50"),
                Value::Number("-0"),
                Value::Bool(true),
                Value::Bool(false),
                Value::Null,
                Value::Object(vec![]),
                Value::List(vec![])
            ]
        );
    }

    #[test]
    fn no_depth_is_too_deep() {
        let depth = 200_000;
        let json = format!(
            r#"{{"a":{}"]}}\""{},"b":1}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        let raw = Raw::parse(json).unwrap();
        let Value::Object(members) = Value::read(&raw) else {
            panic!();
        };
        assert_eq!(members[1].1, Value::Number("1"));
    }
}
