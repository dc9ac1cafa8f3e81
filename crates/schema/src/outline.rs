//! A schema as the signature that a person would write for it.

use switchboard_wire::{Raw, tree::Json};

use crate::kind::{Detail, Kinds};
use crate::schema::read;

/// A schema in few bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Text within the budget, without control characters.
    pub text: String,
    /// `true` if every parameter and every type is included. Descriptions and bounds of numbers do
    /// not count.
    pub whole: bool,
}

/// The mark for omitted parts.
pub(crate) const MORE: &str = "…";

/// Lists the parameters of a schema, the required ones first, in at most `budget` bytes:
///
/// `path: string, limit?: integer = 10, mode?: "r"|"w", filter?: {from: string, to?: string}`
///
/// If they exceed the budget, the inner parts of objects are left out first, then the last
/// parameters.
///
/// ```
/// use switchboard_schema::outline;
/// use switchboard_wire::Raw;
///
/// let schema = Raw::parse(
///     r#"{"properties":{"tags":{"type":"array","items":{"type":"string"}},"id":{"type":"integer"}},
///         "required":["id"]}"#,
/// )?;
/// assert_eq!(outline(&schema, 100).text, "id: integer, tags?: string[]");
/// assert_eq!(outline(&schema, 20).text, "id: integer, …");
/// # Ok::<(), switchboard_wire::RawError>(())
/// ```
pub fn outline(schema: &Raw, budget: usize) -> Outline {
    let Ok(schema) = read(schema) else {
        return cut(&["any".to_owned()], ", ", budget, false);
    };
    let mut last = None;
    for detail in [Detail::full(), Detail::flat()] {
        let mut kinds = Kinds::new(&schema, detail);
        let parts = match kinds.members(&schema) {
            Some(members) => members.iter().map(ToString::to_string).collect(),
            None => other(&mut kinds, &schema),
        };
        let whole = kinds.is_whole();
        let size: usize = parts.iter().map(|part| part.len() + 2).sum();
        if size <= budget + 2 {
            return cut(&parts, ", ", budget, whole);
        }
        last = Some(parts);
    }
    cut(&last.unwrap_or_default(), ", ", budget, false)
}

/// Describes the type of a part of a schema in a few words.
pub(crate) fn kind(root: &Json<'_>, schema: &Json<'_>) -> String {
    Kinds::new(root, Detail::brief()).kind(schema).text
}

/// Describes a schema that names no parameters.
fn other<'a>(kinds: &mut Kinds<'a>, schema: &'a Json<'a>) -> Vec<String> {
    let kind = kinds.kind(schema).text;
    // An unspecified object has no known parameters.
    if matches!(&*kind, "any" | "object") {
        return Vec::new();
    }
    vec![kind]
}

/// Joins as many parts as fit into the budget.
pub(crate) fn cut(parts: &[String], between: &str, budget: usize, whole: bool) -> Outline {
    let all = parts.join(between);
    if all.len() <= budget {
        return Outline { text: all, whole };
    }
    let mut text = String::new();
    for part in parts {
        let first = if text.is_empty() { "" } else { between };
        if text.len() + first.len() + part.len() + between.len() + MORE.len() > budget {
            break;
        }
        text.push_str(first);
        text.push_str(part);
    }
    if !text.is_empty() {
        text.push_str(between);
    }
    if text.len() + MORE.len() <= budget {
        text.push_str(MORE);
    }
    Outline { text, whole: false }
}
