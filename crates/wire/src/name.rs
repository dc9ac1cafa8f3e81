//! [`Name`]: a string to look for in JSON without parsing it.

use std::sync::{LazyLock, OnceLock};

use memchr::{
    memchr,
    memmem::{self, Finder},
};

/// The name of a member, or a string value, prepared for the search in many texts.
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
    name: &'static str,
    is_prefix: bool,
    quoted: OnceLock<Finder<'static>>,
}

impl Name {
    /// Prepares `name`, which consists of printable ASCII without quotes and backslashes.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            is_prefix: false,
            quoted: OnceLock::new(),
        }
    }

    /// The same for every string that begins with `name`.
    pub const fn prefix(name: &'static str) -> Self {
        Self {
            name,
            is_prefix: true,
            quoted: OnceLock::new(),
        }
    }

    /// The name itself.
    pub const fn as_str(&self) -> &'static str {
        self.name
    }

    /// Tests if the string may occur in `json`. `false` is certain.
    pub(crate) fn may_be_in(&self, json: &[u8]) -> bool {
        let quoted = self.quoted.get_or_init(|| {
            let end = if self.is_prefix { "" } else { "\"" };
            let quoted = format!("\"{}{end}", self.name);
            Finder::new(&quoted).into_owned()
        });
        quoted.find(json).is_some() || self.may_be_escaped_in(json)
    }

    /// Tests if an escape in `json` may spell a character of the name: printable ASCII is `\u00xx`, or
    /// `\/`. The escapes that texts are full of, `\n` and `\"`, cannot.
    fn may_be_escaped_in(&self, json: &[u8]) -> bool {
        static ASCII: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\\u00"));
        let Some(first) = memchr(b'\\', json) else {
            return false;
        };
        let json = &json[first..];
        ASCII.find(json).is_some()
            || self.name.contains('/') && memmem::find(json, b"\\/").is_some()
    }
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

    proptest::proptest! {
        /// A value that names it is never taken for one that does not.
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
