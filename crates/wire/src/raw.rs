//! [`Raw`]: one JSON value, exactly as it was spelled.

use std::{borrow::Cow, fmt, ops::Range};

use bytes::{Bytes, BytesMut};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{Name, scan, tree::escape};

/// One JSON value, exactly as it was spelled: a shared slice of the frame it arrived in.
///
/// Cloning increments a reference count. A `Raw` is valid JSON by construction.
///
/// ```
/// use switchboard_wire::Raw;
///
/// let params = Raw::parse(r#"{"name":"add", "n": 1.50, "_meta":{"a":1}}"#)?;
/// let stamped = params.with_member("_meta", &Raw::parse(r#"{"b":2}"#)?)?;
/// assert_eq!(stamped.as_str(), r#"{"name":"add", "n": 1.50, "_meta":{"b":2}}"#);
/// # Ok::<(), switchboard_wire::RawError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Raw(Bytes);

/// The reason why bytes are not a [`Raw`], or why a [`Raw`] does not fit an operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RawError {
    /// The text is not one JSON value.
    #[error("not valid JSON")]
    NotJson(#[source] serde_json::Error),
    /// The value is not an object; only objects have members to set.
    #[error("expected a JSON object")]
    NotAnObject,
    /// Two members have the same name. Parsers disagree on which one counts, so neither is trusted.
    #[error("the member {0:?} appears more than once")]
    DuplicateMember(String),
}

impl Raw {
    /// Checks that `text` is one JSON value and keeps it, without the white space around it.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, RawError> {
        let text = text.into();
        let value: &RawValue = serde_json::from_slice(&text).map_err(RawError::NotJson)?;
        Ok(Self::part_of(&text, value))
    }

    /// Serializes a value as JSON.
    pub fn from_value<T: Serialize + ?Sized>(value: &T) -> Result<Self, RawError> {
        serde_json::to_vec(value)
            .map(|text| Self(text.into()))
            .map_err(RawError::NotJson)
    }

    /// The empty object, `{}`.
    pub fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// The value `null`.
    pub fn null() -> Self {
        Self(Bytes::from_static(b"null"))
    }

    /// A string, escaped as JSON requires.
    pub fn string(text: &str) -> Self {
        let mut out = Vec::with_capacity(text.len() + 2);
        write_string(&mut out, text);
        Self(out.into())
    }

    /// An unsigned number.
    pub fn number(number: u64) -> Self {
        Self(number.to_string().into_bytes().into())
    }

    /// An object with these members, in this order. The names must differ.
    pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, Self)>) -> Self {
        let mut out = vec![b'{'];
        for (name, value) in members {
            if out.len() > 1 {
                out.push(b',');
            }
            write_string(&mut out, name);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
        out.push(b'}');
        Self(out.into())
    }

    /// Returns the JSON text as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the JSON text as bytes that share the memory of this value.
    pub fn bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// Returns the JSON text. Checks the UTF-8 again, so prefer [`as_bytes`](Self::as_bytes) on a hot path.
    pub fn as_str(&self) -> &str {
        // Every constructor has passed the bytes through a UTF-8 check, so the default is never used.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Deserializes the value into a type that may borrow from it.
    pub fn read<'de, T: Deserialize<'de>>(&'de self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0)
    }

    /// Deserializes the value into an owned type. An unpaired surrogate, which JSON can spell and a Rust
    /// string cannot hold, is read as U+FFFD: programs that cut a string within an emoji send them.
    pub fn read_owned<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0).or_else(|error| match whole_surrogates(self.as_str()) {
            Some(repaired) => serde_json::from_str(&repaired),
            None => Err(error),
        })
    }

    /// Replaces every unpaired surrogate with U+FFFD, for parsers that reject such text. The length stays the
    /// same. `None` if there is no unpaired surrogate.
    ///
    /// ```
    /// use switchboard_wire::Raw;
    ///
    /// let cut = Raw::parse(r#"["\ud83d","\ud83d\ude00"]"#)?;
    /// let whole = cut.whole_surrogates().unwrap();
    /// assert_eq!(whole.as_str(), r#"["\ufffd","\ud83d\ude00"]"#);
    /// assert_eq!(whole.whole_surrogates(), None);
    /// # Ok::<(), switchboard_wire::RawError>(())
    /// ```
    pub fn whole_surrogates(&self) -> Option<Self> {
        whole_surrogates(self.as_str()).map(|whole| Self(whole.into()))
    }

    /// Returns `true` if this is an object.
    pub fn is_object(&self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// Returns the member with this name; `None` if this is not an object or has no such member. Of two
    /// members with the same name the last one counts, as in JavaScript.
    pub fn member(&self, name: &str) -> Option<Self> {
        let (value, _) = self.find(name).ok()?;
        value.map(|value| Self(self.0.slice(value)))
    }

    /// Tests if this value, or one within it, may have a member with this name or be this string, without
    /// parsing. `false` is certain, even if the name is spelled with escapes; for `true`, check with
    /// [`member`](Self::member).
    pub fn may_name(&self, name: &Name) -> bool {
        name.may_be_in(&self.0)
    }

    /// Returns the member with the first of these names, provided that none of the names occurs twice or in
    /// another letter case: some parsers ignore the case, and would read the other member. Distinguishes at
    /// most 32 names.
    ///
    /// ```
    /// use switchboard_wire::Raw;
    ///
    /// let names = ["name", "arguments"];
    /// let call = Raw::parse(r#"{"name":"read","Name":"delete"}"#)?;
    /// assert!(call.distinct_member(&names).is_err());
    /// # Ok::<(), switchboard_wire::RawError>(())
    /// ```
    pub fn distinct_member(&self, names: &[&str]) -> Result<Option<Self>, RawError> {
        let duplicate = |name: &str| Err(RawError::DuplicateMember(name.to_owned()));
        match scan::find_distinct(&self.0, names) {
            Some(Ok(found)) => return Ok(found.map(|value| Self(self.0.slice(value)))),
            Some(Err(key)) => return duplicate(&String::from_utf8_lossy(key)),
            None => {}
        }
        let Some(members) = self.members() else {
            return Ok(None);
        };
        for name in names {
            let mut alike = members.iter().filter(|(key, _)| is_alike(key, name));
            if let (Some((key, _)), second) = (alike.next(), alike.next())
                && (key != name || second.is_some())
            {
                return duplicate(key);
            }
        }
        let first = members
            .into_iter()
            .find(|(key, _)| Some(&&**key) == names.first());
        Ok(first.map(|(_, value)| value))
    }

    /// Returns the members of an object in order; `None` if this is not an object.
    pub fn members(&self) -> Option<Vec<(String, Self)>> {
        let Members(members) = self.read().ok()?;
        Some(
            members
                .into_iter()
                .map(|(name, value)| (name.0.into_owned(), Self::part_of(&self.0, value)))
                .collect(),
        )
    }

    /// Returns the elements of an array; `None` if this is not an array.
    pub fn elements(&self) -> Option<Vec<Self>> {
        let elements: Vec<&RawValue> = self.read().ok()?;
        Some(
            elements
                .into_iter()
                .map(|value| Self::part_of(&self.0, value))
                .collect(),
        )
    }

    /// Returns the unescaped text of a string; `None` if this is not a string.
    pub fn to_text(&self) -> Option<String> {
        self.read_owned().ok()
    }

    /// Returns this object with one member replaced, or added at the end. All other bytes stay the same.
    pub fn with_member(&self, name: &str, value: &Self) -> Result<Self, RawError> {
        if !self.is_object() {
            return Err(RawError::NotAnObject);
        }
        let (found, count) = self.find(name).map_err(RawError::NotJson)?;
        if count > 1 {
            return Err(RawError::DuplicateMember(name.to_owned()));
        }
        let Some(found) = found else {
            return self.with_new_member(name, value);
        };
        let mut out = BytesMut::with_capacity(self.0.len() + value.0.len());
        out.extend_from_slice(&self.0[..found.start]);
        out.extend_from_slice(&value.0);
        out.extend_from_slice(&self.0[found.end..]);
        Ok(Self(out.freeze()))
    }

    /// Returns this object with two members replaced, or added at the end, by the values that `edit` makes of the
    /// present ones. All other bytes stay the same. Cheaper than two calls of [`with_member`](Self::with_member),
    /// because the object is searched and copied once.
    ///
    /// ```
    /// use switchboard_wire::{Raw, RawError};
    ///
    /// let call = Raw::parse(r#"{"name":"a","arguments":{}}"#)?;
    /// let edited = call.with_members(["name", "arguments"], |[_, arguments]| {
    ///     let arguments = arguments.unwrap_or_else(Raw::empty_object);
    ///     Ok::<_, RawError>([Raw::string("b"), arguments.with_member("c", &Raw::from(true))?])
    /// })?;
    /// assert_eq!(edited.as_str(), r#"{"name":"b","arguments":{"c":true}}"#);
    /// # Ok::<(), RawError>(())
    /// ```
    pub fn with_members<E: From<RawError>>(
        &self,
        names: [&str; 2],
        edit: impl FnOnce([Option<Self>; 2]) -> Result<[Self; 2], E>,
    ) -> Result<Self, E> {
        if !self.is_object() {
            return Err(RawError::NotAnObject.into());
        }
        let Some(found) = scan::find_two(&self.0, names) else {
            // Unusual, such as a name with escapes or a member twice.
            let values = edit(names.map(|name| self.member(name)))?;
            let mut edited = self.clone();
            for (name, value) in names.into_iter().zip(&values) {
                edited = edited.with_member(name, value)?;
            }
            return Ok(edited);
        };
        let part = |found: &Option<Range<usize>>| Some(Self(self.0.slice(found.clone()?)));
        let values = edit(found.each_ref().map(part))?;
        let mut edits: [_; 2] = std::array::from_fn(|n| (&found[n], names[n], &values[n]));
        // Members that are added come last.
        edits.sort_unstable_by_key(|(found, ..)| found.as_ref().map_or(usize::MAX, |at| at.start));
        let added: usize = edits
            .iter()
            .map(|(_, name, value)| name.len() + value.0.len() + 4)
            .sum();
        let mut out = Vec::with_capacity(self.0.len() + added);
        let mut from = 0;
        for (found, _, value) in &edits {
            if let Some(at) = found {
                out.extend_from_slice(&self.0[from..at.start]);
                out.extend_from_slice(&value.0);
                from = at.end;
            }
        }
        let rest = &self.0[from..self.0.len() - 1];
        if found.iter().all(Option::is_some) {
            out.extend_from_slice(rest);
        } else {
            out.extend_from_slice(rest.trim_ascii_end());
        }
        for (found, name, value) in &edits {
            if found.is_none() {
                put_member(&mut out, name, value);
            }
        }
        out.push(b'}');
        Ok(Self(out.into()))
    }

    /// Returns this object with one member added at the end. For a name that it is known not to have: it is not
    /// searched.
    ///
    /// ```
    /// use switchboard_wire::Raw;
    ///
    /// let raw = Raw::parse(r#"{"a": 1}"#)?;
    /// assert_eq!(raw.with_new_member("b", &raw)?.as_str(), r#"{"a": 1,"b":{"a": 1}}"#);
    /// # Ok::<(), switchboard_wire::RawError>(())
    /// ```
    pub fn with_new_member(&self, name: &str, value: &Self) -> Result<Self, RawError> {
        if !self.is_object() {
            return Err(RawError::NotAnObject);
        }
        let mut out = Vec::with_capacity(self.0.len() + name.len() + value.0.len() + 4);
        out.extend_from_slice(self.0[..self.0.len() - 1].trim_ascii_end());
        put_member(&mut out, name, value);
        out.push(b'}');
        Ok(Self(out.into()))
    }

    /// Returns this object without the members with these names. The others keep their spelling and order. A
    /// value that is not an object is returned unchanged.
    ///
    /// ```
    /// use switchboard_wire::Raw;
    ///
    /// let raw = Raw::parse(r#"{"a": 1.0, "b": 2, "c":[]}"#)?;
    /// assert_eq!(raw.without(&["b", "x"]).as_str(), r#"{"a": 1.0,"c":[]}"#);
    /// # Ok::<(), switchboard_wire::RawError>(())
    /// ```
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        let Some(kept) = scan::others(&self.0, names) else {
            let members = self.members();
            return members.map_or_else(
                || self.clone(),
                |members| {
                    let kept = members.iter().filter(|(name, _)| !names.contains(&&**name));
                    Self::object(kept.map(|(name, value)| (&**name, value.clone())))
                },
            );
        };
        let mut out = BytesMut::with_capacity(self.0.len());
        out.extend_from_slice(b"{");
        for (n, member) in kept.into_iter().enumerate() {
            if n > 0 {
                out.extend_from_slice(b",");
            }
            out.extend_from_slice(&self.0[member]);
        }
        out.extend_from_slice(b"}");
        Self(out.freeze())
    }

    /// An array of these elements.
    pub fn array(elements: impl IntoIterator<Item = Self>) -> Self {
        let mut out = vec![b'['];
        for (n, element) in elements.into_iter().enumerate() {
            if n > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&element.0);
        }
        out.push(b']');
        Self(out.into())
    }

    /// Copies the value into its own buffer, so that it does not keep a larger one in memory.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// Returns the slice of `text` that `value` was read from.
    pub(crate) fn slice_of(text: &Bytes, value: &str) -> Self {
        Self(text.slice_ref(value.as_bytes()))
    }

    /// Returns the slice of `text` that `value` was read from.
    pub(crate) fn part_of(text: &Bytes, value: &RawValue) -> Self {
        Self::slice_of(text, value.get())
    }

    /// Finds the value of the member with this name, and the number of members with that name.
    fn find(&self, name: &str) -> Result<(Option<Range<usize>>, usize), serde_json::Error> {
        match scan::find(&self.0, name) {
            Some(found) => Ok(found),
            None => self.find_carefully(name),
        }
    }

    fn find_carefully(
        &self,
        name: &str,
    ) -> Result<(Option<Range<usize>>, usize), serde_json::Error> {
        let Members(members) = self.read()?;
        let mut found = None;
        let mut count = 0;
        for (key, value) in members {
            if key.0 == name {
                let start = offset_in(&self.0, value.get());
                found = Some(start..start + value.get().len());
                count += 1;
            }
        }
        Ok((found, count))
    }
}

/// Adds a member to an object that lacks its closing brace.
fn put_member(out: &mut Vec<u8>, name: &str, value: &Raw) {
    if out.len() > 1 {
        out.push(b',');
    }
    write_string(out, name);
    out.push(b':');
    out.extend_from_slice(&value.0);
}

/// Tests if two names are equal to a parser that ignores letter case, as some parsers do.
pub fn is_alike(one: &str, other: &str) -> bool {
    // Both conversions are needed: the Kelvin sign is another capital of `k`.
    let folded = |name: &str| name.to_lowercase().to_uppercase();
    one == other
        || one.eq_ignore_ascii_case(other)
        || (!(one.is_ascii() && other.is_ascii()) && folded(one) == folded(other))
}

impl From<bool> for Raw {
    fn from(value: bool) -> Self {
        Self(Bytes::from_static(if value { b"true" } else { b"false" }))
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Raw {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue =
            serde_json::from_slice(&self.0).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(Bytes::from(
            Box::<str>::from(value).into_string().into_bytes(),
        )))
    }
}

pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    // Writing a string to a vector cannot fail: there is no I/O and no map key.
    let _ = serde_json::to_writer(out, text);
}

/// Returns the offset in `text` at which the borrowed `value` starts.
pub(crate) fn offset_in(text: &[u8], value: &str) -> usize {
    value.as_ptr() as usize - text.as_ptr() as usize
}

/// Replaces every unpaired surrogate in JSON text. `None` if there is none.
fn whole_surrogates(json: &str) -> Option<String> {
    let mut repaired = None;
    let mut at = 0;
    while let Some(found) = json[at..].find('\\') {
        at += found;
        let (character, length) = escape(&json[at..]);
        let end = at + length;
        if character.is_err() {
            let out = repaired.get_or_insert_with(|| json.to_owned());
            out.replace_range(at..end, "\\ufffd");
        }
        at = end;
    }
    repaired
}

/// The name of a member. An unpaired surrogate in it is read as U+FFFD, so that it does not hide the other
/// members: most parsers accept such names.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_bytes<E>(self, name: &'de [u8]) -> Result<Self::Value, E> {
                Ok(Key(
                    std::str::from_utf8(name).map_or_else(|_| lossy(name), Cow::Borrowed)
                ))
            }

            fn visit_bytes<E>(self, name: &[u8]) -> Result<Self::Value, E> {
                Ok(Key(lossy(name)))
            }
        }
        deserializer.deserialize_bytes(Read)
    }
}

/// Converts bytes to text, with U+FFFD in place of each unpaired surrogate.
fn lossy(name: &[u8]) -> Cow<'static, str> {
    let mut text = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&first, after)) = rest.split_first() {
        if let [0xED, 0xA0..=0xBF, _, after @ ..] = rest {
            text.extend_from_slice("\u{FFFD}".as_bytes());
            rest = after;
        } else {
            text.push(first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&text).into_owned().into()
}

struct Members<'a>(Vec<(Key<'a>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_removed_in_any_spelling() {
        let without =
            |json: &'static str| Raw::parse(json).unwrap().without(&["a", "b"]).to_string();
        assert_eq!(
            without(r#"{ "a" : 1 , "c" : [1, 2] , "b":{} }"#),
            r#"{"c" : [1, 2]}"#
        );
        assert_eq!(
            without(r#"{"\u0061":1,"c":12345678901234567890123}"#),
            r#"{"c":12345678901234567890123}"#
        );
        assert_eq!(without(r#"{"a":1,"a":2}"#), "{}");
        assert_eq!(without("[1]"), "[1]");
        assert_eq!(without("{}"), "{}");
    }

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    /// Most parsers accept such a name, and read the other members.
    #[test]
    fn unpaired_surrogate_in_a_name_hides_no_member() {
        let object = raw(r#"{"a\ud800":1,"\udc00b":2,"\ud83d\ude00":3,"c":4}"#);
        let members = object.members().unwrap();
        let names: Vec<_> = members.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a\u{FFFD}", "\u{FFFD}b", "\u{1F600}", "c"]);
        assert_eq!(object.member("c").unwrap().as_str(), "4");
        assert_eq!(object.without(&["c"]).member("c"), None);
        let with = object.with_member("c", &raw("5")).unwrap();
        assert_eq!(with.member("c").unwrap().as_str(), "5");
        assert!(with.as_str().starts_with(r#"{"a\ud800":1,"#));
    }

    #[test]
    fn setting_a_member_keeps_all_other_bytes() {
        let set = |object: &str| {
            raw(object)
                .with_member("_meta", &raw("1"))
                .unwrap()
                .as_str()
                .to_owned()
        };
        assert_eq!(set("{}"), r#"{"_meta":1}"#);
        assert_eq!(set("{ }"), r#"{"_meta":1}"#);
        assert_eq!(set(r#"{"a" : 1e400 }"#), r#"{"a" : 1e400,"_meta":1}"#);
        assert_eq!(
            set(r#"{"_meta" : {"x":[]}, "b":2}"#),
            r#"{"_meta" : 1, "b":2}"#
        );
        assert_eq!(set(r#"{"\u005fmeta":0}"#), r#"{"\u005fmeta":1}"#);
        assert_eq!(
            set(r#"{"a":{"_meta":0}}"#),
            r#"{"a":{"_meta":0},"_meta":1}"#
        );
    }

    proptest::proptest! {
        /// Compares the two ways to find a member.
        #[test]
        fn scan_and_parser_find_the_same_member(
            members in proptest::collection::vec((0_usize..6, 0_usize..7), 0..6),
            spaced: bool,
        ) {
            let keys = ["a", "name", "_meta", "n\\u0061me", "\u{e9}", "na\\\"me"];
            let values = ["1", "-0.5e3", r#""x\"}""#, "null", r#"{"name":[1,{}]}"#, "[]", "\"\\ud800\""];
            let space = if spaced { " \t" } else { "" };
            let body: Vec<_> = members
                .iter()
                .map(|(key, value)| format!("{space}\"{}\"{space}:{space}{}{space}", keys[*key], values[*value]))
                .collect();
            let object = raw(&format!("{{{}}}", body.join(",")));
            for name in ["a", "name", "_meta", "\u{e9}", "na\"me", "other"] {
                let careful = object.find_carefully(name).unwrap();
                proptest::prop_assert_eq!(object.find(name).unwrap(), careful);
            }
        }
    }

    #[test]
    fn duplicate_members_are_rejected_when_set() {
        let twice = raw(r#"{"a":1,"a":2}"#);
        assert!(matches!(
            twice.with_member("a", &raw("3")),
            Err(RawError::DuplicateMember(name)) if name == "a"
        ));
        assert_eq!(twice.member("a").unwrap().as_str(), "2");
        assert!(matches!(
            raw("[1]").with_member("a", &raw("3")),
            Err(RawError::NotAnObject)
        ));
    }

    #[test]
    fn surrounding_white_space_is_removed() {
        assert_eq!(raw(" \n [1, 2] ").as_str(), "[1, 2]");
        assert!(Raw::parse("1 2").is_err());
        assert!(Raw::parse(b"\"\xff\"".as_slice()).is_err());
    }

    #[test]
    fn unpaired_surrogate_is_read_as_a_replacement() {
        let read = |text: &str| raw(text).read_owned::<Vec<String>>().unwrap();
        assert_eq!(
            read(r#"["cut \ud83d", "\ude00!"]"#),
            ["cut \u{fffd}", "\u{fffd}!"]
        );
        assert_eq!(
            read(r#"["\ud83d\ude00", "\\ud83d\ud83d"]"#),
            ["😀", "\\ud83d\u{fffd}"]
        );
        assert_eq!(raw(r#""\uDBFF""#).to_text().unwrap(), "\u{fffd}");
        assert!(raw("1").read_owned::<String>().is_err());
    }

    #[test]
    fn spelling_survives_a_serde_round_trip() {
        let value = raw(r#"{"n": 12345678901234567890123, "e": 1e400}"#);
        let again: Raw = serde_json::from_slice(&serde_json::to_vec(&value).unwrap()).unwrap();
        assert_eq!(again, value);
    }
}
