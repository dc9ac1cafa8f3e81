//! Parses JSON with comments into a tree with positions.
//!
//! Comments are `// …` and `/* … */`; a comma may follow the last item. Everything else is standard
//! JSON. Length and depth are bounded, and an invalid text is a problem with a position, never a panic.
//! Parsing continues after a missing comma and a duplicate key, so that they are reported together with
//! the other problems.

use std::borrow::Cow;

use crate::diagnostic::{Problems, place};

/// The longest text, in bytes.
pub(crate) const TEXT_MAX: usize = 4 * 1024 * 1024;

/// The deepest nesting of objects and lists.
pub(crate) const DEPTH_MAX: usize = 64;

/// The most characters of a name or value in a message.
const QUOTE_MAX: usize = 40;

/// A value and its position.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    /// Offset of the first byte.
    pub(crate) start: usize,
    /// Offset after the last byte.
    pub(crate) end: usize,
    pub(crate) value: Json<'a>,
}

#[derive(Debug)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    /// The number in its original spelling.
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Object(Vec<Member<'a>>),
}

/// A key and its value.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    pub(crate) key: Cow<'a, str>,
    /// Offset of the key's opening quote.
    pub(crate) at: usize,
    pub(crate) node: Node<'a>,
}

impl<'a> Node<'a> {
    /// The members, if this is an object.
    pub(crate) fn members(&self) -> Option<&[Member<'a>]> {
        match &self.value {
            Json::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The member with this key, if this is an object that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Member<'a>> {
        self.members()?.iter().find(|member| member.key == key)
    }

    /// The kind of value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Json::Null => "null",
            Json::Bool(_) => "true or false",
            Json::Number(_) => "a number",
            Json::Text(_) => "a string",
            Json::List(_) => "a list",
            Json::Object(_) => "an object",
        }
    }
}

/// The text is not JSON; the problem has been added.
#[derive(Debug)]
pub(crate) struct Broken;

/// Parses a text. Whitespace and comments alone are `None`.
pub(crate) fn read<'a>(text: &'a str, problems: &mut Problems) -> Result<Option<Node<'a>>, Broken> {
    if text.len() > TEXT_MAX {
        problems.add_with_hint(
            0,
            format!("the file is larger than {TEXT_MAX} bytes"),
            "make it smaller",
        );
        return Err(Broken);
    }
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
        problems,
    };
    if reader.peek_trivia()?.is_none() {
        return Ok(None);
    }
    let node = reader.value()?;
    match reader.peek_trivia()? {
        None => Ok(Some(node)),
        Some(found) => Err(reader.unexpected(found, "expected the end of the file")),
    }
}

/// The offset after whitespace and comments. The error is the offset of a comment that is not closed.
pub(crate) fn skip_trivia(text: &str, mut at: usize) -> Result<usize, usize> {
    let bytes = text.as_bytes();
    if at == 0 && text.starts_with('\u{feff}') {
        at = '\u{feff}'.len_utf8();
    }
    loop {
        match bytes.get(at) {
            Some(b' ' | b'\t' | b'\r' | b'\n') => at += 1,
            Some(b'/') => match bytes.get(at + 1) {
                Some(b'/') => {
                    at = text[at..]
                        .find(['\r', '\n'])
                        .map_or(text.len(), |line| at + line);
                }
                Some(b'*') => {
                    at = text[at + 2..]
                        .find("*/")
                        .map(|length| at + 2 + length + 2)
                        .ok_or(at)?;
                }
                _ => return Ok(at),
            },
            _ => return Ok(at),
        }
    }
}

/// Formats a name or value for a message: quoted, on one line, shortened, and without what looks like a secret that
/// was pasted in the wrong place.
pub(crate) fn quote(text: &str) -> String {
    let text = switchboard_redact::redact_text(text);
    match text.char_indices().nth(QUOTE_MAX) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

struct Reader<'a, 'p> {
    text: &'a str,
    at: usize,
    depth: usize,
    problems: &'p mut Problems,
}

impl<'a> Reader<'a, '_> {
    fn value(&mut self) -> Result<Node<'a>, Broken> {
        let Some(first) = self.peek_trivia()? else {
            return Err(self.fail(self.at, "expected a value, but the file ends"));
        };
        let start = self.at;
        let value = match first {
            b'{' => self.nested(Self::object)?,
            b'[' => self.nested(Self::list)?,
            b'"' => Json::Text(self.string()?),
            b'-' | b'0'..=b'9' => self.number()?,
            b'a'..=b'z' | b'A'..=b'Z' => self.word()?,
            found => return Err(self.unexpected(found, "expected a value")),
        };
        Ok(Node {
            start,
            end: self.at,
            value,
        })
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<Json<'a>, Broken>,
    ) -> Result<Json<'a>, Broken> {
        if self.depth == DEPTH_MAX {
            return Err(self.fail(
                self.at,
                format!("objects and lists are nested more than {DEPTH_MAX} levels deep"),
            ));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Json<'a>, Broken> {
        let open = self.at - 1;
        let mut members = Vec::new();
        loop {
            match self.peek_trivia()? {
                Some(b'"') => {}
                Some(b'}') => break,
                Some(found) => {
                    return Err(self.unexpected(found, "expected a key in double quotes"));
                }
                None => return Err(self.fail(open, "this object is not closed: a } is missing")),
            }
            let at = self.at;
            let key = self.string()?;
            match self.peek_trivia()? {
                Some(b':') => self.at += 1,
                Some(found) => return Err(self.unexpected(found, "expected a : after the key")),
                None => return Err(self.fail(open, "this object is not closed: a } is missing")),
            }
            let node = self.value()?;
            self.comma(b'}', &node)?;
            members.push(Member { key, at, node });
        }
        self.at += 1;
        self.repeated(&members);
        Ok(Json::Object(members))
    }

    fn list(&mut self) -> Result<Json<'a>, Broken> {
        let open = self.at - 1;
        let mut items = Vec::new();
        loop {
            match self.peek_trivia()? {
                Some(b']') => break,
                Some(_) => {}
                None => return Err(self.fail(open, "this list is not closed: a ] is missing")),
            }
            let node = self.value()?;
            self.comma(b']', &node)?;
            items.push(node);
        }
        self.at += 1;
        Ok(Json::List(items))
    }

    /// Consumes the comma after an item. If it is missing and another item follows, adds a problem and
    /// continues.
    fn comma(&mut self, close: u8, item: &Node<'_>) -> Result<(), Broken> {
        match self.peek_trivia()? {
            Some(b',') => self.at += 1,
            Some(b'"' | b'{' | b'[' | b'-' | b'0'..=b'9' | b'a'..=b'z') => {
                self.problems.add(item.end, "a comma is missing here");
            }
            Some(found) if found != close => {
                let expected = format!("expected a comma or {}", char::from(close));
                return Err(self.unexpected(found, &expected));
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    /// Reports duplicate keys of an object.
    fn repeated(&mut self, members: &[Member<'_>]) {
        // Sorting keeps this fast even for an object as large as the file.
        let mut keys: Vec<_> = members
            .iter()
            .map(|member| (member.key.as_ref(), member.at))
            .collect();
        keys.sort_unstable();
        for pair in keys.windows(2) {
            let [(key, first), (other, at)] = pair else {
                continue;
            };
            if key != other {
                continue;
            }
            // A position costs a scan of the text, which is too expensive for problems that are only
            // counted.
            if !self.problems.has_room() {
                self.problems.one_more();
                continue;
            }
            let (line, column) = place(self.text, *first);
            self.problems.add_with_hint(
                *at,
                format!("duplicate key {}", quote(key)),
                format!("the first one is at {line}:{column}; remove one of them"),
            );
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Broken> {
        let open = self.at;
        self.at += 1;
        let mut decoded: Option<String> = None;
        let mut from = self.at;
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let Some(length) = rest
                .iter()
                .position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')
            else {
                return Err(self.fail(open, "this string is not closed: a \" is missing"));
            };
            let found = rest[length];
            self.at += length;
            match found {
                b'"' => {
                    let tail = &self.text[from..self.at];
                    self.at += 1;
                    return Ok(match decoded {
                        Some(text) => Cow::Owned(text + tail),
                        None => Cow::Borrowed(tail),
                    });
                }
                b'\\' => {
                    let text = decoded.get_or_insert_default();
                    text.push_str(&self.text[from..self.at]);
                    let character = self.escape()?;
                    decoded.get_or_insert_default().push(character);
                    from = self.at;
                }
                b'\n' | b'\r' => {
                    return Err(self.fail(
                        open,
                        "this string does not end on its line: a \" is missing",
                    ));
                }
                other => {
                    return Err(self.fail(
                        self.at,
                        format!("write this character as \\u{other:04x} in a string"),
                    ));
                }
            }
        }
    }

    /// Parses an escape sequence, starting at its backslash.
    fn escape(&mut self) -> Result<char, Broken> {
        let start = self.at;
        let kind = self.text.as_bytes().get(start + 1).copied();
        self.at += 2;
        Ok(match kind {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.four_digits(start)?;
                let mut units = vec![first];
                if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u") {
                    self.at += 2;
                    units.push(self.four_digits(start)?);
                }
                let Some(Ok(character)) = char::decode_utf16(units.iter().copied()).next() else {
                    let (message, hint) = ("this is half of a surrogate pair", "write both halves");
                    self.problems.add_with_hint(start, message, hint);
                    return Err(Broken);
                };
                character
            }
            _ => {
                let (message, hint) = ("unknown escape in a string", "write \\\\ for a backslash");
                self.problems.add_with_hint(start, message, hint);
                return Err(Broken);
            }
        })
    }

    fn four_digits(&mut self, escape: usize) -> Result<u16, Broken> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u16::from_str_radix(digits, 16).ok());
        self.at += 4;
        digits.ok_or_else(|| self.fail(escape, "\\u must have four hexadecimal digits"))
    }

    fn number(&mut self) -> Result<Json<'a>, Broken> {
        let start = self.at;
        let length = self.text.as_bytes()[start..]
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
            .unwrap_or(self.text.len() - start);
        self.at += length;
        let text = &self.text[start..self.at];
        if is_number(text) {
            Ok(Json::Number(text))
        } else {
            Err(self.fail(start, format!("{} is not a number", quote(text))))
        }
    }

    fn word(&mut self) -> Result<Json<'a>, Broken> {
        let start = self.at;
        let length = self.text.as_bytes()[start..]
            .iter()
            .position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')))
            .unwrap_or(self.text.len() - start);
        self.at += length;
        let word = &self.text[start..self.at];
        match word {
            "true" => return Ok(Json::Bool(true)),
            "false" => return Ok(Json::Bool(false)),
            "null" => return Ok(Json::Null),
            _ => {}
        }
        let (message, hint) = match word.to_ascii_lowercase().as_str() {
            lower @ ("true" | "false" | "null") => {
                (format!("{word:?} is not a value"), format!("write {lower}"))
            }
            // It may be a password without its quotes, so it is not shown.
            _ => (
                "expected a value, not a bare word".to_owned(),
                "put strings in double quotes".to_owned(),
            ),
        };
        self.problems.add_with_hint(start, message, hint);
        Err(Broken)
    }

    /// The first byte after whitespace and comments; `None` at the end of the text.
    fn peek_trivia(&mut self) -> Result<Option<u8>, Broken> {
        match skip_trivia(self.text, self.at) {
            Ok(at) => {
                self.at = at;
                Ok(self.text.as_bytes().get(at).copied())
            }
            Err(comment) => Err(self.fail(comment, "this comment is not closed: a */ is missing")),
        }
    }

    fn fail(&mut self, at: usize, message: impl Into<String>) -> Broken {
        self.problems.add(at, message);
        Broken
    }

    /// Reports a character that is not allowed here.
    fn unexpected(&mut self, found: u8, expected: &str) -> Broken {
        let at = self.at;
        let found = if found.is_ascii_graphic() {
            char::from(found).to_string()
        } else {
            let character = self.text[at..].chars().next().unwrap_or_default();
            format!("character U+{:04X}", u32::from(character))
        };
        let message = format!("{expected}, not {found}");
        match found.as_str() {
            "'" => self
                .problems
                .add_with_hint(at, message, "put strings in double quotes"),
            "#" => self
                .problems
                .add_with_hint(at, message, "start comments with //"),
            _ => self.problems.add(at, message),
        }
        Broken
    }
}

/// Tests if a text of digits, signs, points and `e` is a JSON number.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent
            .is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}
