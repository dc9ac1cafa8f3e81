//! [`Name`]: a string to search for in JSON without parsing it.

use std::sync::{LazyLock, OnceLock};

use memchr::{
    memchr, memchr2_iter,
    memmem::{self, Finder},
};

/// The name of a member, or a string value, prepared for searches in many texts.
///
/// ```
/// use switchboard_wire::{Name, Raw};
///
/// static TASK_ID: Name = Name::new("taskId");
/// assert!(Raw::parse(r#"{"task":{"taskId":"1"}}"#)?.may_name(&TASK_ID));
/// assert!(Raw::parse(r#"{"task":{"task\u0049d":"1"}}"#)?.may_name(&TASK_ID));
/// assert!(!Raw::parse(r#"{"text":"one\ntaskId"}"#)?.may_name(&TASK_ID));
/// # Ok::<(), switchboard_wire::RawError>(())
/// ```
#[derive(Debug)]
pub struct Name {
    text: &'static str,
    matching: Matching,
    quoted: OnceLock<Finder<'static>>,
}

/// The strings that a [`Name`] matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matching {
    Exact,
    Prefix,
    /// The name in any letter case. Holds the index of the letter to search for.
    AnyCase(usize),
}

impl Name {
    /// Creates a name, which must consist of printable ASCII without quotes and backslashes.
    pub const fn new(name: &'static str) -> Self {
        Self {
            text: name,
            matching: Matching::Exact,
            quoted: OnceLock::new(),
        }
    }

    /// Creates a name that matches every string that begins with `name`.
    pub const fn prefix(name: &'static str) -> Self {
        Self {
            text: name,
            matching: Matching::Prefix,
            quoted: OnceLock::new(),
        }
    }

    /// Creates a name that matches every spelling that equals `name` to a parser that ignores letter case.
    /// The name must contain a `q` or a `g`. The search looks for that letter, because it is rare in most
    /// texts.
    ///
    /// ```
    /// use switchboard_wire::{Name, Raw};
    ///
    /// static QUERY: Name = Name::any_case("query");
    /// assert!(Raw::parse(r#"{"Query":1}"#)?.may_name(&QUERY));
    /// assert!(!Raw::parse(r#"{"text":"a query"}"#)?.may_name(&QUERY));
    /// # Ok::<(), switchboard_wire::RawError>(())
    /// ```
    pub const fn any_case(name: &'static str) -> Self {
        let text = name.as_bytes();
        let mut at = 0;
        // Neither letter has an upper-case form outside of ASCII.
        while !matches!(text[at], b'q' | b'g') {
            at += 1;
        }
        Self {
            text: name,
            matching: Matching::AnyCase(at),
            quoted: OnceLock::new(),
        }
    }

    /// Returns the name itself.
    pub const fn as_str(&self) -> &'static str {
        self.text
    }

    /// Tests if the string may occur in `json`. `false` is certain.
    pub(crate) fn may_be_in(&self, json: &[u8]) -> bool {
        if let Matching::AnyCase(at) = self.matching {
            return self.is_alike_in(json, at) || may_spell_letters(json);
        }
        let quoted = self.quoted.get_or_init(|| {
            let end = match self.matching {
                Matching::Prefix => "",
                Matching::Exact | Matching::AnyCase(_) => "\"",
            };
            let quoted = format!("\"{}{end}", self.text);
            Finder::new(&quoted).into_owned()
        });
        quoted.find(json).is_some() || self.may_be_escaped_in(json)
    }

    /// Tests if the string occurs in `json` in any letter case, without escapes. The search looks for the
    /// letter at `at`.
    fn is_alike_in(&self, json: &[u8], at: usize) -> bool {
        let (before, after) = self.text.as_bytes().split_at(at);
        let letter = after[0];
        memchr2_iter(letter, letter.to_ascii_uppercase(), json).any(|found| {
            let (mut left, mut right) = json.split_at(found);
            after.iter().all(|letter| strip_first(&mut right, *letter))
                && right.first() == Some(&b'"')
                && before
                    .iter()
                    .rev()
                    .all(|letter| strip_last(&mut left, *letter))
                && left.last() == Some(&b'"')
        })
    }

    /// Tests if an escape in `json` may spell a character of the name: printable ASCII is escaped as
    /// `\u00xx`, or `\/`. The most common escapes, `\n` and `\"`, cannot.
    fn may_be_escaped_in(&self, json: &[u8]) -> bool {
        static ASCII: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\\u00"));
        let Some(first) = memchr(b'\\', json) else {
            return false;
        };
        let json = &json[first..];
        ASCII.find(json).is_some()
            || self.text.contains('/') && memmem::find(json, b"\\/").is_some()
    }
}

/// Returns the non-ASCII letter that equals this one to a parser that ignores letter case, or nothing.
const fn variant(letter: u8) -> &'static [u8] {
    match letter.to_ascii_lowercase() {
        b'i' => "\u{131}".as_bytes(),
        b'k' => "\u{212A}".as_bytes(),
        b's' => "\u{17F}".as_bytes(),
        _ => b"",
    }
}

/// Removes a letter, in any case, from the beginning of a text. Returns `false` if another one is there.
fn strip_first(text: &mut &[u8], letter: u8) -> bool {
    let rest = match text.split_first() {
        Some((first, rest)) if first.eq_ignore_ascii_case(&letter) => Some(rest),
        _ => text.strip_prefix(variant(letter)),
    };
    let stripped = rest.filter(|rest| rest.len() < text.len());
    *text = stripped.unwrap_or(text);
    stripped.is_some()
}

/// Removes a letter, in any case, from the end of a text. Returns `false` if another one is there.
fn strip_last(text: &mut &[u8], letter: u8) -> bool {
    let rest = match text.split_last() {
        Some((last, rest)) if last.eq_ignore_ascii_case(&letter) => Some(rest),
        _ => text.strip_suffix(variant(letter)),
    };
    let stripped = rest.filter(|rest| rest.len() < text.len());
    *text = stripped.unwrap_or(text);
    stripped.is_some()
}

/// Tests if an escape in `json` may spell an ASCII letter, or its [variant].
fn may_spell_letters(json: &[u8]) -> bool {
    static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\\u"));
    let Some(first) = memchr(b'\\', json) else {
        return false;
    };
    let json = &json[first..];
    let mut escapes = ESCAPE.find_iter(json);
    escapes.any(|at| matches!(json.get(at + 2..at + 4), Some(b"00" | b"01" | b"21")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names_are_found() {
        static TASK: Name = Name::new("taskId");
        static VERSION: Name = Name::new("a/version");
        static RESOURCE: Name = Name::prefix("resource");
        for (name, json, expected) in [
            (&TASK, r#"{"taskId":1}"#, true),
            (&TASK, r#"{"task\u0049d":1}"#, true),
            (&TASK, r#"{"\u0074askId":1}"#, true),
            (&TASK, r#"{"a":"taskId"}"#, true),
            (&TASK, r#"{"a":"\"taskId is","b":"\n\/\\\t"}"#, false),
            (&TASK, r#"{"a":"\u4f60\ud83d\ude00"}"#, false),
            (&TASK, "{}", false),
            (&VERSION, r#"{"a/version":1}"#, true),
            (&VERSION, r#"{"a\/version":1}"#, true),
            (&VERSION, r#"{"a\u002Fversion":1}"#, true),
            (&VERSION, r#"{"a":"\n"}"#, false),
            (&RESOURCE, r#"{"type":"resource_link"}"#, true),
            (&RESOURCE, r#"{"type":"re\u0073ource"}"#, true),
            (&RESOURCE, r#"{"a":"resourceful"}"#, true),
            (&RESOURCE, r#"{"a":"a resource"}"#, false),
        ] {
            assert_eq!(name.may_be_in(json.as_bytes()), expected, "{json}");
        }
    }

    #[test]
    fn names_are_found_in_any_letter_case() {
        static REQUESTS: Name = Name::any_case("inputRequests");
        static TOKEN: Name = Name::any_case("progressToken");
        for (name, json, expected) in [
            (&REQUESTS, r#"{"inputRequests":1}"#, true),
            (&REQUESTS, r#"{"a":"q","InputREQUESTS" : 1}"#, true),
            (&REQUESTS, "{\"\u{131}nputReque\u{17F}t\u{17F}\":1}", true),
            (&REQUESTS, r#"{"inputReque\u017fts":1}"#, true),
            (&REQUESTS, r#"{"input\u0052equests":1}"#, true),
            (&REQUESTS, r#"{"inputRequest":1}"#, false),
            (&REQUESTS, r#"{"myInputRequests":1}"#, false),
            (
                &REQUESTS,
                r#"{"text":"inputRequests\n\u4f60 queue"}"#,
                false,
            ),
            (&REQUESTS, "q", false),
            (&REQUESTS, "", false),
            (&TOKEN, r#"{"ProgressToken":1}"#, true),
            (&TOKEN, "{\"progressTo\u{212A}en\":1}", true),
            (&TOKEN, r#"{"progressTo\u212aen":1}"#, true),
            (&TOKEN, r#"{"a":"progress"}"#, false),
        ] {
            assert_eq!(name.may_be_in(json.as_bytes()), expected, "{json}");
        }
    }

    proptest::proptest! {
        /// A value that contains the name is always found.
        #[test]
        fn no_spelling_is_missed(escaped: [bool; 6], upper: bool, before in "[ -~]{0,40}") {
            static NAME: Name = Name::new("tas/Id");
            let spelled = NAME.as_str().chars().zip(escaped);
            let key: String = spelled
                .map(|(character, escape)| match (character, escape, upper) {
                    (_, false, _) => character.to_string(),
                    ('/', true, true) => "\\/".to_owned(),
                    (_, true, true) => format!("\\u{:04X}", character as u32),
                    (_, true, false) => format!("\\u{:04x}", character as u32),
                })
                .collect();
            let before = serde_json::to_string(&before).unwrap();
            let json = format!(r#"{{"a":{before},"{key}":1}}"#);
            let value: serde_json::Value = serde_json::from_str(&json).unwrap();
            proptest::prop_assert!(value.get(NAME.as_str()).is_some());
            proptest::prop_assert!(NAME.may_be_in(json.as_bytes()));
        }
    }
}
