//! A JSON value as schemas see it: numbers keep their digits, of two members of one name the last
//! counts.

use memchr::memchr2;
use switchboard_wire::Raw;

use crate::limits::DEPTH;

/// One JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// As it is spelled: no number is too large to be read.
    Number(Box<str>),
    Text(Box<str>),
    Array(Vec<Value>),
    Object(Object),
}

/// Members in their order, and a way to find them by name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object {
    members: Vec<(Box<str>, Value)>,
    /// The places of the members, sorted by name.
    by_name: Vec<u32>,
}

/// The value is nested too deeply, or too long, to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooDeep;

impl Value {
    pub(crate) fn read(raw: &Raw) -> Result<Self, TooDeep> {
        let text = raw.as_str();
        let mut reader = Reader { text, at: 0 };
        reader.value(0)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.as_object()?.get(name)
    }

    pub(crate) fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    pub(crate) fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// One spelling for all values that a schema holds for equal: `1` and `1.0` are, the order of
    /// members does not count.
    pub(crate) fn canonical(&self) -> String {
        let mut out = String::new();
        self.write_canonical(&mut out);
        out
    }

    fn write_canonical(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(number) => crate::number::Decimal::read(number).write_canonical(out),
            Self::Text(text) => write_sized(out, text),
            Self::Array(elements) => {
                out.push('[');
                for element in elements {
                    element.write_canonical(out);
                    out.push(',');
                }
                out.push(']');
            }
            Self::Object(object) => {
                out.push('{');
                for place in &object.by_name {
                    let (name, value) = &object.members[*place as usize];
                    write_sized(out, name);
                    value.write_canonical(out);
                }
                out.push('}');
            }
        }
    }
}

/// With its length in front, a text cannot be taken for anything else.
fn write_sized(out: &mut String, text: &str) {
    out.push_str(&text.len().to_string());
    out.push('"');
    out.push_str(text);
}

impl Object {
    fn new(mut members: Vec<(Box<str>, Value)>) -> Self {
        let mut by_name = sorted(&members);
        let twice = by_name
            .windows(2)
            .any(|pair| members[pair[0] as usize].0 == members[pair[1] as usize].0);
        if twice {
            let mut last = vec![true; members.len()];
            for pair in by_name.windows(2) {
                if members[pair[0] as usize].0 == members[pair[1] as usize].0 {
                    last[pair[0] as usize] = false;
                }
            }
            let mut last = last.into_iter();
            members.retain(|_| last.next().unwrap_or(true));
            by_name = sorted(&members);
        }
        Self { members, by_name }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let name_at = |place: &u32| &*self.members[*place as usize].0;
        let found = self
            .by_name
            .binary_search_by(|place| name_at(place).cmp(name))
            .ok()?;
        Some(&self.members[self.by_name[found] as usize].1)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.members.iter().map(|(name, value)| (&**name, value))
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }
}

/// The places of members, by name and then by place.
fn sorted(members: &[(Box<str>, Value)]) -> Vec<u32> {
    let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
    let mut places: Vec<u32> = (0..count).collect();
    places.sort_by(|a, b| members[*a as usize].0.cmp(&members[*b as usize].0));
    places
}

/// Reads text that is known to be JSON, so it looks at no more than it has to. On anything else it
/// gives up.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Value, TooDeep> {
        if depth > DEPTH {
            return Err(TooDeep);
        }
        match self.next().ok_or(TooDeep)? {
            b'{' => {
                let mut members = Vec::new();
                while self.more(b'}')? {
                    let name = self.string()?;
                    self.take(b':')?;
                    members.push((name, self.value(depth + 1)?));
                }
                Ok(Value::Object(Object::new(members)))
            }
            b'[' => {
                let mut elements = Vec::new();
                while self.more(b']')? {
                    elements.push(self.value(depth + 1)?);
                }
                Ok(Value::Array(elements))
            }
            b'"' => {
                self.at -= 1;
                Ok(Value::Text(self.string()?))
            }
            first => {
                let start = self.at - 1;
                let rest = &self.text.as_bytes()[self.at..];
                let end =
                    |byte: &u8| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace();
                self.at += rest.iter().position(end).unwrap_or(rest.len());
                Ok(match first {
                    b't' => Value::Bool(true),
                    b'f' => Value::Bool(false),
                    b'n' => Value::Null,
                    _ => Value::Number(self.text.get(start..self.at).ok_or(TooDeep)?.into()),
                })
            }
        }
    }

    /// The next byte that is no white space, taken.
    fn next(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.at += 1;
        Some(bytes[self.at - 1])
    }

    fn take(&mut self, byte: u8) -> Result<(), TooDeep> {
        let found = self.next() == Some(byte);
        found.then_some(()).ok_or(TooDeep)
    }

    /// Whether another element comes before `end`; what stands between elements is taken.
    fn more(&mut self, end: u8) -> Result<bool, TooDeep> {
        match self.next() {
            Some(byte) if byte == end => return Ok(false),
            Some(b',') => {}
            Some(_) => self.at -= 1,
            None => return Err(TooDeep),
        }
        Ok(true)
    }

    fn string(&mut self) -> Result<Box<str>, TooDeep> {
        self.take(b'"')?;
        let start = self.at;
        let mut unescaped: Option<String> = None;
        let mut from = start;
        loop {
            let rest = self.text.as_bytes().get(self.at..).ok_or(TooDeep)?;
            self.at += memchr2(b'"', b'\\', rest).ok_or(TooDeep)?;
            let plain = self.text.get(from..self.at).ok_or(TooDeep)?;
            if self.text.as_bytes()[self.at] == b'"' {
                self.at += 1;
                return Ok(match unescaped {
                    None => plain.into(),
                    Some(mut text) => {
                        text.push_str(plain);
                        text.into()
                    }
                });
            }
            let escaped = self.escape()?;
            let text = unescaped.get_or_insert_with(String::new);
            text.push_str(plain);
            text.push(escaped);
            from = self.at;
        }
    }

    /// The character of the escape that stands here. Half a surrogate pair is U+FFFD.
    fn escape(&mut self) -> Result<char, TooDeep> {
        let kind = *self.text.as_bytes().get(self.at + 1).ok_or(TooDeep)?;
        self.at += 2;
        Ok(match kind {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let first = self.unit(self.at).ok_or(TooDeep)?;
                self.at += 4;
                let second = match first {
                    0xD800..0xDC00 if self.text[self.at..].starts_with("\\u") => {
                        self.unit(self.at + 2)
                    }
                    _ => None,
                };
                match (first, second) {
                    (0xD800..0xDC00, Some(low @ 0xDC00..0xE000)) => {
                        self.at += 6;
                        let code = 0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00);
                        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
                    }
                    _ => char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER),
                }
            }
            other => char::from(other),
        })
    }

    fn unit(&self, at: usize) -> Option<u32> {
        u32::from_str_radix(self.text.get(at..at + 4)?, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Value {
        Value::read(&Raw::parse(text.to_owned()).unwrap()).unwrap()
    }

    fn plain(value: &Value) -> serde_json::Value {
        match value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(number) => serde_json::from_str(number).unwrap(),
            Value::Text(text) => (&**text).into(),
            Value::Array(elements) => elements.iter().map(plain).collect(),
            Value::Object(object) => object
                .iter()
                .map(|(name, value)| (name.to_owned(), plain(value)))
                .collect(),
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            "\\PC{0,8}|[\"\\\\\n\t\u{1}é😀]{0,6}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::vec(("[a-c\"\\\\é]{0,3}", inner), 0..6)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_what_others_read(json in any_json(), spaced: bool) {
            let text = if spaced {
                serde_json::to_string_pretty(&json).unwrap()
            } else {
                json.to_string()
            };
            let others: serde_json::Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(plain(&read(&text)), others);
        }
    }

    #[test]
    fn the_last_of_two_members_counts() {
        let value = read(r#"{"a":1,"b":2,"\u0061":3,"a":4}"#);
        assert_eq!(value.get("a"), Some(&Value::Number("4".into())));
        assert_eq!(value.as_object().unwrap().len(), 2);
    }

    #[test]
    fn halves_of_characters_are_replaced() {
        let value = read(r#"["\ud83d\ude00","\ud83d","\ude00x","\ud83d\u0041"]"#);
        let texts: Vec<_> = value
            .as_array()
            .unwrap()
            .iter()
            .map(|v| v.as_text())
            .collect();
        let expected = ["😀", "\u{fffd}", "\u{fffd}x", "\u{fffd}A"].map(Some);
        assert_eq!(texts, expected);
    }

    #[test]
    fn equal_values_have_one_spelling() {
        let same = |a: &str, b: &str| read(a).canonical() == read(b).canonical();
        assert!(same("1", "1.0"));
        assert!(same("-0", "0.0e7"));
        assert!(same("120e-1", "12"));
        assert!(same(r#"{"a":1,"b":[2]}"#, r#"{"b":[2.0],"a":1e0}"#));
        assert!(!same("1", r#""1""#));
        assert!(!same("[[1],2]", "[[1,2]]"));
        assert!(!same(r#"["a","b"]"#, r#"["a,\"b"]"#));
        assert!(!same("12345678901234567890123", "12345678901234567890124"));
        assert!(!same(r#"{"a":null}"#, "{}"));
    }

    #[test]
    fn what_is_too_deep_is_refused() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(Value::read(&Raw::parse(deep).unwrap()), Err(TooDeep));
        assert!(matches!(
            read(&format!("{}{}", "[".repeat(90), "]".repeat(90))),
            Value::Array(_)
        ));
    }
}
