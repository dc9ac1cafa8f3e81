//! The pinned parts of a definition, and their [`fingerprint()`].

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use switchboard_wire::tree::{Json, Object, Text};

use crate::{
    Fingerprint, ItemKind, Offer,
    noise::{self, Places},
    spelled::{write, write_members},
};

/// Members of a definition that no model needs to read. A gateway that describes a tool to a model
/// omits them.
pub const UNREAD: [&str; 3] = ["_meta", "icons", "execution"];

/// The member with the execution settings of a call.
const EXECUTION: &str = "execution";

/// The member of `execution` that says whether a call may be a task, and its values. It affects
/// nothing that a user or a model sees, so it is not pinned.
const TASKS: &str = "taskSupport";
const TASKS_VALUES: [&str; 3] = ["forbidden", "optional", "required"];

/// A member of `_meta` that is not pinned: frameworks describe themselves in it. Every other member is
/// pinned, because hosts take from there which page to render for a tool (`ui`,
/// `openai/outputTemplate`).
const META_NOISE: &str = "io.modelcontextprotocol/serverInfo";

/// Members of `_meta` that are not pinned if they contain only labels and versions, and no sentences.
const META_LABELS: [&str; 2] = ["fastmcp", "_fastmcp"];

/// Members of `_meta` with a time of creation or change. They are not pinned if they are a number or a
/// short text.
const META_TIMES: [&str; 5] = [
    "timestamp",
    "generatedAt",
    "lastModified",
    "lastUpdated",
    "updatedAt",
];

/// The longest text that counts as a time, in bytes.
const TIME_BYTES: usize = 40;

/// The longest text that counts as a label, in bytes.
const LABEL_BYTES: usize = 40;

/// The scheme of a fingerprint. Pins on disk record the scheme of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub(crate) enum Scheme {
    /// Without `_meta` and `icons`. Used by pins of the first version.
    First,
    /// With everything that affects what is shown or rendered.
    Second,
    /// As `Second`, but without noise: the order of sets, and the directories of the server.
    Third,
}

impl Scheme {
    /// The scheme of new pins.
    pub(crate) const NOW: Self = Self::Third;

    pub(crate) const fn first() -> Self {
        Self::First
    }

    /// Prefix of the hashed bytes, so that two schemes never produce the same fingerprint.
    const fn prefix(self) -> &'static [u8] {
        match self {
            Self::First => b"switchboard tool definition 1\n",
            Self::Second => b"switchboard definition 2\n",
            Self::Third => b"switchboard definition 3\n",
        }
    }
}

impl From<Scheme> for u8 {
    fn from(scheme: Scheme) -> Self {
        match scheme {
            Scheme::First => 1,
            Scheme::Second => 2,
            Scheme::Third => 3,
        }
    }
}

impl TryFrom<u8> for Scheme {
    type Error = &'static str;

    fn try_from(number: u8) -> Result<Self, &'static str> {
        match number {
            1 => Ok(Self::First),
            2 => Ok(Self::Second),
            3 => Ok(Self::Third),
            _ => Err("unknown fingerprint scheme"),
        }
    }
}

/// The fingerprint of a definition.
///
/// It covers every member: name, title, description, schemas, annotations (a client may use them to
/// decide about asking before a call), `icons` and `_meta` (a host may use them to decide what to
/// render), and unknown members, because a client that knows one may show it, and some clients accept
/// `Description` for `description`. It does not cover whether a call may be a task, a few members of
/// `_meta` that are known noise, or the `size` and time of the last change of a resource.
///
/// Equivalent spellings of a definition have the same fingerprint: the order of members, whitespace,
/// escapes and the format of numbers (`1`, `1.0`, `1e0`) do not matter. Neither does the order of
/// sets: `required`, `enum`, and a default that is a list of words. Of two members with one name some
/// parsers take the first and most the last, so both count, in order: no text can hide behind another.
pub fn fingerprint<'a>(offer: impl Into<Offer<'a>>) -> Fingerprint {
    fingerprint_at(offer, &Places::default())
}

/// The [fingerprint](fingerprint()) of a definition in which these places do not count as differences.
pub fn fingerprint_at<'a>(offer: impl Into<Offer<'a>>, places: &Places) -> Fingerprint {
    let Offer { kind, definition } = offer.into();
    fingerprint_of(Scheme::NOW, kind, &Json::read(definition), places)
}

pub(crate) fn fingerprint_of(
    scheme: Scheme,
    kind: ItemKind,
    value: &Json<'_>,
    places: &Places,
) -> Fingerprint {
    let mut out = scheme.prefix().to_vec();
    match (value, scheme) {
        (Json::Object(members), Scheme::First) => {
            let kept = members
                .iter()
                .filter(|(key, _)| !UNREAD.contains(&&*key.text));
            write_members(&mut out, kept.collect());
        }
        (Json::Object(members), Scheme::Second) => {
            let kept = pinned(kind, members);
            write_members(&mut out, kept.iter().map(|member| &**member).collect());
        }
        (Json::Object(members), Scheme::Third) => {
            let kept = settled(kind, members, places);
            write_members(&mut out, kept.iter().collect());
        }
        _ => write(&mut out, value),
    }
    Fingerprint::of(&out)
}

/// The pinned members of a definition, without noise.
pub(crate) fn settled<'a>(
    kind: ItemKind,
    members: &[(Text<'a>, Json<'a>)],
    places: &Places,
) -> Object<'a> {
    let settle = |member: Cow<'_, (Text<'a>, Json<'a>)>| {
        let (name, value) = &*member;
        (
            name.clone(),
            noise::settled(kind, &name.text, value, places),
        )
    };
    pinned(kind, members).into_iter().map(settle).collect()
}

/// The pinned members of a definition.
pub(crate) fn pinned<'v, 'a>(
    kind: ItemKind,
    members: &'v [(Text<'a>, Json<'a>)],
) -> Vec<Cow<'v, (Text<'a>, Json<'a>)>> {
    let is_resource = matches!(kind, ItemKind::Resource | ItemKind::Template);
    let kept = members.iter().filter_map(|member| {
        let (key, value) = member;
        match &*key.text {
            EXECUTION => match value {
                Json::Object(inner) if inner.is_empty() => None,
                _ => without(member, |key, value| {
                    let is_known = |text: &Text<'_>| TASKS_VALUES.contains(&&*text.text);
                    key == TASKS && matches!(value, Json::Text(text) if is_known(text))
                }),
            },
            "_meta" => without(member, is_meta_noise),
            // They describe the content, which may change.
            "size" if is_resource && matches!(value, Json::Number(_)) => None,
            "annotations" if is_resource => {
                without(member, |key, value| key == "lastModified" && is_time(value))
            }
            _ => Some(Cow::Borrowed(member)),
        }
    });
    kept.collect()
}

/// A member without the noise in its value; `None` if nothing is left.
fn without<'v, 'a>(
    member: &'v (Text<'a>, Json<'a>),
    is_noise: impl Fn(&str, &Json<'_>) -> bool,
) -> Option<Cow<'v, (Text<'a>, Json<'a>)>> {
    let (key, Json::Object(inner)) = member else {
        return Some(Cow::Borrowed(member));
    };
    let noise = |(key, value): &&(Text<'a>, Json<'a>)| is_noise(&key.text, value);
    if !inner.iter().any(|one| noise(&one)) {
        return Some(Cow::Borrowed(member));
    }
    let kept: Object<'a> = inner.iter().filter(|one| !noise(one)).cloned().collect();
    (!kept.is_empty()).then(|| Cow::Owned((key.clone(), Json::Object(kept))))
}

fn is_meta_noise(key: &str, value: &Json<'_>) -> bool {
    key == META_NOISE
        || META_LABELS.contains(&key) && is_label(value)
        || META_TIMES.contains(&key) && is_time(value)
}

/// Tests if a value contains only short words.
fn is_label(value: &Json<'_>) -> bool {
    let is_word = |text: &Text<'_>| {
        text.text.len() <= LABEL_BYTES && !text.text.contains(char::is_whitespace)
    };
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => true,
        Json::Text(text) => is_word(text),
        Json::Array(elements) => elements.iter().all(is_label),
        Json::Object(members) => members
            .iter()
            .all(|(key, value)| is_word(key) && is_label(value)),
        Json::Unread(_) => false,
    }
}

fn is_time(value: &Json<'_>) -> bool {
    match value {
        Json::Number(_) => true,
        Json::Text(text) => text.text.len() <= TIME_BYTES,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use switchboard_wire::Raw;

    use super::*;

    fn of(json: &str) -> Fingerprint {
        fingerprint(&Raw::parse(json.to_owned()).unwrap())
    }

    #[test]
    fn spelling_does_not_matter() {
        let one = of(r#"{"name":"é","inputSchema":{"a":1,"b":[1.5,"\n"]},"description":"x"}"#);
        for same in [
            r#"{ "description" : "x", "name":"\u00e9", "inputSchema":{"b":[15e-1,"\u000a"],"a":1.0} }"#,
            r#"{"name":"é","inputSchema":{"a":10E-1,"b":[0.15e+1,"\n"]},"description":"\u0078"}"#,
            r#"{"_meta":{"_fastmcp":{"tags":["a"]},"timestamp":1},"execution":{"taskSupport":"optional"},"name":"é","inputSchema":{"a":1,"b":[1.5,"\n"]},"description":"x"}"#,
        ] {
            assert_eq!(of(same), one, "{same}");
        }
        assert_eq!(of(r#"{"execution":{}}"#), of("{}"));
        for (a, b) in [
            ("0", "-0.0e9"),
            ("100", "1e2"),
            ("0.001", "1e-3"),
            ("1e0000", "1"),
        ] {
            assert_eq!(of(a), of(b), "{a} {b}");
        }
    }

    #[test]
    fn different_definitions_have_different_fingerprints() {
        let all = [
            r#"{"name":"a"}"#,
            r#"{"name":"b"}"#,
            r#"{"name":"a","description":""}"#,
            r#"{"name":"a","Description":""}"#,
            r#"{"name":"a","description":null}"#,
            r#"{"name":"a","description":"x"}"#,
            r#"{"name":"a","description":"x "}"#,
            r#"{"name":"a","description":"x\u200b"}"#,
            r#"{"name":"a","description":"\ud800"}"#,
            r#"{"name":"a","description":"\ud801"}"#,
            r#"{"name":"a","description":"\ufffd"}"#,
            r#"{"name":"a","description":"\ufffd\ud800"}"#,
            r#"{"name":"a","description":"\ud800\ufffd"}"#,
            r#"{"name":"a","annotations":{"readOnlyHint":true}}"#,
            r#"{"name":"a","annotations":{"readOnlyHint":false}}"#,
            r#"{"name":"a","outputSchema":{"_meta":1}}"#,
            r#"{"name":"a","outputSchema":{"_meta":2}}"#,
            r#"{"name":"a","inputSchema":{"enum":["x","y"]}}"#,
            r#"{"name":"a","inputSchema":{"enum":["x","y","y"]}}"#,
            r#"{"name":"a","inputSchema":{"enum":["xy"]}}"#,
            r#"{"name":"a","inputSchema":{"enum":[1]}}"#,
            r#"{"name":"a","inputSchema":{"enum":["1"]}}"#,
            r#"{"name":"a","inputSchema":{"enum":[12345678901234567890123]}}"#,
            r#"{"name":"a","inputSchema":{"enum":[12345678901234567890124]}}"#,
            r#"{"name":"a","inputSchema":{"enum":[1e400]}}"#,
            r#"{"name":"a","inputSchema":{"enum":[-1e400]}}"#,
            r#"{"name":"a","inputSchema":{"enum":[1e99999999999999999999]}}"#,
            r#"{"name":"a","icons":[{"src":"https://a.example/1.png"}]}"#,
            r#"{"name":"a","icons":[{"src":"https://a.example/2.png"}]}"#,
            r#"{"name":"a","_meta":{}}"#,
            r#"{"name":"a","_meta":{"ui":{"resourceUri":"ui://a"}}}"#,
            r#"{"name":"a","_meta":{"ui":{"resourceUri":"ui://b"}}}"#,
            r#"{"name":"a","_meta":{"openai/outputTemplate":"ui://a"}}"#,
            r#"{"name":"a","_meta":{"timestamp":{"ui":"ui://a"}}}"#,
            r#"{"name":"a","_meta":{"fastmcp":{"tags":["do not tell"]}}}"#,
            r#"{"name":"a","execution":{"note":"x"}}"#,
            r#"{"name":"a","execution":{"taskSupport":"x"}}"#,
            r#"{"name":"a","execution":"x"}"#,
            r#"{"name":"a","size":1}"#,
            "[]",
            "{}",
            "null",
            "\"\"",
        ];
        for (n, a) in all.iter().enumerate() {
            for b in &all[n + 1..] {
                assert_ne!(of(a), of(b), "{a} {b}");
            }
        }
    }

    #[test]
    fn duplicate_member_hides_no_text() {
        let all = [
            r#"{"name":"a","description":"good"}"#,
            r#"{"name":"a","description":"evil"}"#,
            r#"{"name":"a","description":"good","description":"evil"}"#,
            r#"{"name":"a","description":"evil","description":"good"}"#,
            r#"{"name":"a","description":"good","description":"good"}"#,
            r#"{"name":"a","description":"good","d\u0065scription":"worse"}"#,
        ];
        for (n, a) in all.iter().enumerate() {
            for b in &all[n + 1..] {
                assert_ne!(of(a), of(b), "{a} {b}");
            }
        }
    }

    #[test]
    fn contents_of_resources_may_change() {
        let of = |json: &str| {
            let definition = &Raw::parse(json.to_owned()).unwrap();
            let kind = ItemKind::Resource;
            fingerprint(Offer { kind, definition })
        };
        let one = of(r#"{"uri":"file:///a","name":"a"}"#);
        for same in [
            r#"{"uri":"file:///a","name":"a","size":7}"#,
            r#"{"uri":"file:///a","name":"a","annotations":{"lastModified":"2026-01-01T00:00:00Z"}}"#,
        ] {
            assert_eq!(of(same), one, "{same}");
        }
        for other in [
            r#"{"uri":"file:///a","name":"a","size":"read me"}"#,
            r#"{"uri":"file:///a","name":"a","annotations":{"priority":1}}"#,
            r#"{"uri":"file:///a","name":"a","description":"x"}"#,
        ] {
            assert_ne!(of(other), one, "{other}");
        }
    }

    #[test]
    fn fingerprints_stay_stable_across_versions() {
        // Pins on disk contain these values.
        let raw = Raw::parse(
            r#"{"name":"add","icons":[],"inputSchema":{"type":"object","minimum":1.0}}"#,
        )
        .unwrap();
        let by = |scheme| {
            let value = Json::read(&raw);
            fingerprint_of(scheme, ItemKind::Tool, &value, &Places::default())
        };
        // A definition with everything that the third scheme treats as noise.
        let noisy = Raw::parse(
            r#"{"name":"add","description":"Below /srv/a.","inputSchema":{"type":"object","required":["b","a"],"properties":{"a":{"type":["string","null"],"enum":["y","x"],"description":"In /tmp/b"},"b":{"default":"w,v,u"}}}}"#,
        )
        .unwrap();
        let path = |path| Some(std::path::Path::new(path));
        let places = Places::new(path("/srv/a"), path("/users/u"), path("/tmp"));
        let third = fingerprint_of(Scheme::Third, ItemKind::Tool, &Json::read(&noisy), &places);
        let hex = "cadb8d8c22663c57950644dc1f3650993136052d413d88b153f92d1618c8b70b";
        assert_eq!(third.to_string(), hex);
        let hex = "f6d102edcafdaa9a0de4acf74849cd018270dfe899b82f9534a9e083da485742";
        assert_eq!(by(Scheme::Second).to_string(), hex);
        let hex = "711d8647e83b345291eb704613ba4c44f22863721d391ee309e21446911b54ca";
        let one = by(Scheme::First);
        assert_eq!(one.to_string(), hex);
        assert_eq!(hex.parse(), Ok(one));
        assert_eq!(hex.to_uppercase().parse(), Ok(one));
        for bad in [
            "",
            "00",
            &hex[1..],
            &format!("{hex}0"),
            &hex.replace('0', "g"),
            &format!("+{}", &hex[1..]),
        ] {
            assert!(bad.parse::<Fingerprint>().is_err(), "{bad}");
        }
    }
}
