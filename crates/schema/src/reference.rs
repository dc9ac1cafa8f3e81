//! `$ref`: references within the same schema. Other documents are never fetched.

use std::borrow::Cow;

use switchboard_text::percent;
use switchboard_wire::tree::Json;

/// Returns the target of a reference; `None` if it is outside this schema, or of an unsupported
/// form.
pub(crate) fn resolve<'a>(root: &'a Json<'a>, reference: &str) -> Option<&'a Json<'a>> {
    let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    if !address.is_empty() {
        let own = root.get("$id")?.as_text()?;
        if own.trim_end_matches('#') != address {
            return None;
        }
    }
    let fragment = percent::decode(fragment)?;
    if fragment.is_empty() {
        return Some(root);
    }
    let mut at = root;
    for step in fragment.strip_prefix('/')?.split('/') {
        let step = if step.contains('~') {
            Cow::Owned(step.replace("~1", "/").replace("~0", "~"))
        } else {
            Cow::Borrowed(step)
        };
        at = match at {
            Json::Object(object) => object.get(&step)?,
            Json::Array(elements) => elements.get(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(at)
}

/// Returns the last part of a reference, which is often a name.
pub(crate) fn name(reference: &str) -> &str {
    reference.rsplit(['/', '#']).next().unwrap_or_default()
}

/// Returns `true` if a part of the schema has its own `$id`. References in it would be relative to
/// that, which this crate does not support.
pub(crate) fn is_rebased(root: &Json<'_>) -> bool {
    fn inside(value: &Json<'_>) -> bool {
        match value {
            Json::Object(object) => object.iter().any(|(name, value)| {
                let address = value.as_text().filter(|_| **name == *"$id");
                address.is_some_and(|text| !text.starts_with('#')) || inside(value)
            }),
            Json::Array(elements) => elements.iter().any(inside),
            _ => false,
        }
    }
    match root {
        Json::Object(object) => object.iter().any(|(_, value)| inside(value)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use switchboard_wire::Raw;

    use super::*;

    #[test]
    fn references_are_resolved() {
        let raw = Raw::parse(r#"{"$id":"http://x/y","$defs":{"a/b":1,"c~d":[2,3],"e%f":4,"":5}}"#)
            .unwrap();
        let root = Json::read(&raw);
        let number = |reference: &str| match resolve(&root, reference) {
            Some(Json::Number(number)) => number.parse::<u32>().ok(),
            _ => None,
        };
        for (reference, expected) in [
            ("#/$defs/a~1b", Some(1)),
            ("#/%24defs/c~0d/1", Some(3)),
            ("#/$defs/e%25f", Some(4)),
            ("#/$defs/", Some(5)),
            ("http://x/y#/$defs/a~1b", Some(1)),
            ("http://other/#/$defs/a~1b", None),
            ("other.json", None),
            ("#/$defs/c~0d/9", None),
            ("#/%2", None),
            ("#/$defs/%+5", None),
            ("#/%ff", None),
            ("#anchor", None),
        ] {
            assert_eq!(number(reference), expected, "{reference}");
        }
        assert_eq!(resolve(&root, "#"), Some(&root));
        assert_eq!(resolve(&root, ""), Some(&root));
    }
}
