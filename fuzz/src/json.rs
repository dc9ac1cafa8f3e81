//! A reference JSON parser: slow, plain, and written from RFC 8259 alone.

use serde_json::{Map, Value};
use switchboard_wire::limits;

/// One value and its position.
pub(crate) struct Node<'a> {
    /// Offset of its first byte in the parsed text.
    pub(crate) start: usize,
    /// Its text, without surrounding white space.
    pub(crate) text: &'a str,
    pub(crate) kind: Kind<'a>,
}

pub(crate) enum Kind<'a> {
    Null,
    Bool(bool),
    Number,
    String {
        /// `None` if an escape names a lone surrogate: the grammar allows it, but a Rust string cannot hold
        /// it.
        text: Option<String>,
        lossy: String,
    },
    Array(Vec<Node<'a>>),
    Object(Vec<(Key, Node<'a>)>),
}

/// The name of a member, as in [`Kind::String`].
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) text: Option<String>,
    pub(crate) lossy: String,
}

/// The reason that there is no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The text is not JSON.
    Invalid,
    /// The text is valid up to the point where it nests too deeply, and was not read further.
    Deep,
}

pub(crate) fn parse(text: &str) -> Result<Node<'_>, Fault> {
    let mut reader = Reader { text, at: 0 };
    reader.space();
    let node = reader.value(0)?;
    reader.space();
    if reader.at == text.len() {
        Ok(node)
    } else {
        Err(Fault::Invalid)
    }
}

impl Node<'_> {
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    /// The value of a string.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::String { text, .. } => text.as_deref(),
            _ => None,
        }
    }

    /// The value of a string, with a replacement character for every lone surrogate.
    pub(crate) fn as_lossy_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::String { lossy, .. } => Some(lossy),
            _ => None,
        }
    }

    /// All members of this name, compared lossily; none if this is not an object.
    pub(crate) fn all(&self, name: &str) -> Vec<&Self> {
        let Kind::Object(members) = &self.kind else {
            return Vec::new();
        };
        let named = members.iter().filter(|(own, _)| own.lossy == name);
        named.map(|(_, value)| value).collect()
    }

    /// Tests if this is an object with a lone surrogate in a member name, which no Rust string can hold.
    pub(crate) fn has_unreadable_name(&self) -> bool {
        matches!(&self.kind, Kind::Object(members) if members.iter().any(|(name, _)| name.text.is_none()))
    }

    /// The value as `serde_json` should read it; `None` if it contains a number or string that it cannot
    /// hold.
    pub(crate) fn to_value(&self) -> Option<Value> {
        Some(match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            // `serde_json` may judge the value of a number, but not its extent.
            Kind::Number => serde_json::from_str(self.text).ok()?,
            Kind::String { text, .. } => Value::String(text.clone()?),
            Kind::Array(elements) => {
                let values: Option<Vec<Value>> = elements.iter().map(Self::to_value).collect();
                Value::Array(values?)
            }
            Kind::Object(members) => {
                let mut map = Map::new();
                for (name, value) in members {
                    map.insert(name.text.clone()?, value.to_value()?);
                }
                Value::Object(map)
            }
        })
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Node<'a>, Fault> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{' | b'[') if depth == limits::DEPTH => return Err(Fault::Deep),
            Some(b'{') => self.object(depth + 1)?,
            Some(b'[') => self.array(depth + 1)?,
            Some(b'"') => {
                let units = self.string()?;
                Kind::String {
                    text: String::from_utf16(&units).ok(),
                    lossy: String::from_utf16_lossy(&units),
                }
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ if self.take("null") => Kind::Null,
            _ if self.take("true") => Kind::Bool(true),
            _ if self.take("false") => Kind::Bool(false),
            _ => return Err(Fault::Invalid),
        };
        let text = &self.text[start..self.at];
        Ok(Node { start, text, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Kind<'a>, Fault> {
        let mut members = Vec::new();
        self.expect("{")?;
        self.space();
        if self.take("}") {
            return Ok(Kind::Object(members));
        }
        loop {
            self.space();
            let units = self.string()?;
            let name = Key {
                text: String::from_utf16(&units).ok(),
                lossy: String::from_utf16_lossy(&units),
            };
            self.space();
            self.expect(":")?;
            self.space();
            members.push((name, self.value(depth)?));
            self.space();
            if self.take("}") {
                return Ok(Kind::Object(members));
            }
            self.expect(",")?;
        }
    }

    fn array(&mut self, depth: usize) -> Result<Kind<'a>, Fault> {
        let mut elements = Vec::new();
        self.expect("[")?;
        self.space();
        if self.take("]") {
            return Ok(Kind::Array(elements));
        }
        loop {
            self.space();
            elements.push(self.value(depth)?);
            self.space();
            if self.take("]") {
                return Ok(Kind::Array(elements));
            }
            self.expect(",")?;
        }
    }

    fn number(&mut self) -> Result<Kind<'a>, Fault> {
        self.take("-");
        if !self.take("0") {
            self.digits()?;
        }
        if self.take(".") {
            self.digits()?;
        }
        if self.take("e") || self.take("E") {
            let _ = self.take("+") || self.take("-");
            self.digits()?;
        }
        Ok(Kind::Number)
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start {
            Ok(())
        } else {
            Err(Fault::Invalid)
        }
    }

    /// Reads a string as UTF-16 code units; a lone surrogate is a unit like any other.
    fn string(&mut self) -> Result<Vec<u16>, Fault> {
        let mut units = Vec::new();
        self.expect("\"")?;
        loop {
            let rest = &self.text[self.at..];
            let char = rest.chars().next().ok_or(Fault::Invalid)?;
            self.at += char.len_utf8();
            match char {
                '"' => return Ok(units),
                '\\' => units.push(self.escape()?),
                '\0'..'\u{20}' => return Err(Fault::Invalid),
                _ => units.extend_from_slice(char.encode_utf16(&mut [0; 2])),
            }
        }
    }

    fn escape(&mut self) -> Result<u16, Fault> {
        let escape = self.peek().ok_or(Fault::Invalid)?;
        self.at += 1;
        Ok(match escape {
            b'"' | b'\\' | b'/' => escape.into(),
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => 0x0a,
            b'r' => 0x0d,
            b't' => 0x09,
            b'u' => {
                let digits = self.text.get(self.at..self.at + 4).ok_or(Fault::Invalid)?;
                if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    return Err(Fault::Invalid);
                }
                self.at += 4;
                u16::from_str_radix(digits, 16).map_err(|_| Fault::Invalid)?
            }
            _ => return Err(Fault::Invalid),
        })
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect(&mut self, word: &str) -> Result<(), Fault> {
        if self.take(word) {
            Ok(())
        } else {
            Err(Fault::Invalid)
        }
    }
}
