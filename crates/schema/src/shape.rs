//! A schema on several lines, with descriptions.

use switchboard_wire::{Raw, tree::Json};

use crate::kind::{Detail, Kinds, Member};
use crate::limits::DESCRIPTION_CHARACTERS;
use crate::outline::{Outline, cut, outline};
use crate::schema::read;
use crate::text;

/// Lists the parameters of a schema, one per line, each with the beginning of its description, in at
/// most `budget` bytes. A caller whose arguments did not fit is shown this text.
///
/// If they exceed the budget, descriptions are shortened, then left out, and then the last
/// parameters are left out.
///
/// ```
/// use switchboard_schema::shape;
/// use switchboard_wire::Raw;
///
/// let schema = Raw::parse(
///     r#"{"properties":{
///             "limit":{"type":"integer","minimum":1,"default":10},
///             "path":{"type":"string","description":"The file to read"}},
///         "required":["path"]}"#,
/// )?;
/// assert_eq!(
///     shape(&schema, 200).text,
///     "path: string — The file to read\nlimit?: integer = 10 (at least 1)"
/// );
/// # Ok::<(), switchboard_wire::RawError>(())
/// ```
pub fn shape(schema: &Raw, budget: usize) -> Outline {
    let Ok(root) = read(schema) else {
        return outline(schema, budget);
    };
    let mut lines = Vec::new();
    for described in [DESCRIPTION_CHARACTERS, DESCRIPTION_CHARACTERS / 2, 0] {
        let mut kinds = Kinds::new(&root, Detail::full());
        let Some(members) = kinds.members(&root) else {
            return outline(schema, budget);
        };
        let mut writer = Lines {
            kinds,
            described,
            out: Vec::new(),
        };
        writer.members(&members, 0);
        lines = writer.out;
        let size: usize = lines.iter().map(|line| line.len() + 1).sum();
        if size <= budget + 1 {
            return cut(&lines, "\n", budget, writer.kinds.is_whole());
        }
    }
    cut(&lines, "\n", budget, false)
}

/// The deepest nesting of objects that get their own lines.
const OPENED: usize = 3;

struct Lines<'a> {
    kinds: Kinds<'a>,
    /// The most characters of a description that are shown.
    described: usize,
    out: Vec<String>,
}

impl<'a> Lines<'a> {
    fn members(&mut self, members: &[Member<'a>], depth: usize) {
        for member in members {
            let indent = "  ".repeat(depth);
            let words = self.words(member.schema);
            let opened = match depth {
                0..OPENED => self.kinds.opened(member.schema),
                _ => None,
            };
            let Some((inner, suffix)) = opened else {
                self.out.push(format!("{indent}{member}{words}"));
                continue;
            };
            let optional = if member.required { "" } else { "?" };
            let name = text::name(member.name);
            self.out
                .push(format!("{indent}{name}{optional}: {{{words}"));
            self.members(&inner, depth + 1);
            self.out.push(format!("{indent}}}{suffix}"));
        }
    }

    /// Returns the bounds and the description of a member.
    fn words(&self, schema: &Json<'_>) -> String {
        let mut out = bounds(schema).map_or_else(String::new, |bounds| format!(" ({bounds})"));
        let description = schema.get("description").and_then(Json::as_text);
        if let Some(description) = description.filter(|_| self.described > 0) {
            let description = text::cut(description, self.described);
            if !description.is_empty() {
                out.push_str(" — ");
                out.push_str(&description);
            }
        }
        out
    }
}

/// Returns the bounds of a number, or the format of a text.
fn bounds(schema: &Json<'_>) -> Option<String> {
    let number = |name| match schema.get(name) {
        Some(Json::Number(number)) => Some(text::cut(number, 24)),
        _ => None,
    };
    match (number("minimum"), number("maximum")) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => {
            let format = schema.get("format").and_then(Json::as_text)?;
            Some(text::cut(format, 24))
        }
    }
}
