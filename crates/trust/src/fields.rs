//! The texts of a definition and their fields.
//!
//! A field has a readable name: `description`, `parameters.path.description`, `output.size.title`.
//! `inputSchema.properties` is named `parameters`, `outputSchema.properties` is named `output`, and
//! nested `properties` are omitted.

use switchboard_wire::tree::{Json, Text};

use crate::show;

/// The depth to which a field is named. Deeper fields have the name of the one that contains them.
const NAMED_DEPTH: usize = 12;

/// The most characters of a key in a name.
const KEY_CHARACTERS: usize = 60;

/// The member with pictures, which are addresses or bytes.
const PICTURES: &str = "icons";

/// The role of a text in a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A word chosen by the server: the name of the tool or of a parameter.
    Name,
    /// Any other text.
    Value,
}

/// Visits each text of a definition, with its field and role.
pub(crate) fn each<'v>(value: &'v Json<'v>, show: &mut dyn FnMut(&Field<'v>, Role, &Text<'_>)) {
    let Json::Object(members) = value else {
        walk(value, &mut Field::default(), show);
        return;
    };
    let mut field = Field::default();
    for (key, value) in members.iter() {
        if key.text == PICTURES {
            continue;
        }
        field.0.push(&key.text);
        if let ("name", Json::Text(name)) = (&*key.text, value) {
            show(&field, Role::Name, name);
            field.0.pop();
            continue;
        }
        show(&field, Role::Name, key);
        walk(value, &mut field, show);
        field.0.pop();
    }
}

/// The position of a value: the keys that lead to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field<'v>(Vec<&'v str>);

impl<'v> Field<'v> {
    pub(crate) fn push(&mut self, key: &'v str) {
        self.0.push(key);
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }

    /// Tests if it is the name of the tool, prompt or resource itself.
    pub(crate) fn is_item_name(&self) -> bool {
        self.0.as_slice() == ["name"]
    }

    /// Tests if it is the name, title or URI of a resource or a template.
    pub(crate) fn is_item_name_or_uri(&self) -> bool {
        matches!(
            self.0.as_slice(),
            ["name" | "title" | "uri" | "uriTemplate"]
        )
    }

    /// Tests if it is a text about the item as a whole.
    pub(crate) fn is_head(&self) -> bool {
        matches!(
            self.0.as_slice(),
            ["description" | "title"] | ["annotations", "title"]
        )
    }

    /// Tests if its value is a keyword of JSON Schema, or a name that also occurs elsewhere.
    pub(crate) fn is_keyword(&self) -> bool {
        matches!(
            self.0.last(),
            Some(&("type" | "format" | "pattern" | "required" | "$ref" | "$schema" | "$id"))
        )
    }

    /// The readable name.
    pub(crate) fn name(&self) -> String {
        let (head, rest) = match self.0.as_slice() {
            ["inputSchema", "properties", rest @ ..] => ("parameters", rest),
            ["outputSchema", "properties", rest @ ..] => ("output", rest),
            [first, rest @ ..] => (*first, rest),
            [] => ("definition", &[][..]),
        };
        let mut name = cut(head);
        // The keyword is omitted before a name. A parameter may have the same name as the keyword.
        let mut is_name = matches!(head, "parameters" | "output");
        for (n, key) in rest.iter().enumerate().take(NAMED_DEPTH) {
            if *key == "properties" && !is_name && n + 1 < rest.len() {
                is_name = true;
                continue;
            }
            is_name = false;
            name.push('.');
            name.push_str(&cut(key));
        }
        name
    }
}

fn walk<'v>(
    value: &'v Json<'v>,
    field: &mut Field<'v>,
    show: &mut dyn FnMut(&Field<'v>, Role, &Text<'_>),
) {
    match value {
        Json::Text(text) => show(field, Role::Value, text),
        // The scan treats all of it as one text.
        Json::Unread(spelled) => show(field, Role::Value, &Text::unescape(spelled)),
        Json::Array(elements) => {
            for element in elements {
                walk(element, field, show);
            }
        }
        Json::Object(members) => {
            for (key, value) in members.iter() {
                field.push(&key.text);
                show(field, Role::Name, key);
                walk(value, field, show);
                field.pop();
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

fn cut(key: &str) -> String {
    let end = key.char_indices().nth(KEY_CHARACTERS);
    let start = end.map_or(key, |(end, _)| &key[..end]);
    let more = if start.len() < key.len() { "…" } else { "" };
    show::excerpt(start, 0) + more
}

#[cfg(test)]
mod tests {
    use switchboard_wire::Raw;

    use super::*;

    #[test]
    fn every_text_has_a_field() {
        let raw = Raw::parse(
            r#"{"name":"n","_meta":{"a":"b"},"inputSchema":{"title":"t","properties":{
                "p":{"enum":["e"],"properties":{"q":{"default":"d"}}},
                "properties":{"x":"y"}}},"outputSchema":{"properties":{"o":{"items":{"const":"c"}}}},
                "annotations":{"title":"at"}}"#,
        )
        .unwrap();
        let value = Json::read(&raw);
        let mut seen = Vec::new();
        each(&value, &mut |field, role, text| {
            if role == Role::Value || field.name() == "name" {
                seen.push(format!("{}={}", field.name(), text.text));
            }
        });
        assert_eq!(
            seen,
            [
                "name=n",
                "_meta.a=b",
                "inputSchema.title=t",
                "parameters.p.enum=e",
                "parameters.p.q.default=d",
                "parameters.properties.x=y",
                "output.o.items.const=c",
                "annotations.title=at"
            ]
        );
    }
}
