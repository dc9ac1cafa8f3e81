//! Tools to measure with: generated in the likeness of real ones, or from a file.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_wire::Raw;

use super::Result;
use crate::speed::{ACTS, DETAILS, THINGS};

/// A definition and its server.
#[derive(Deserialize)]
pub(super) struct Definition {
    server: String,
    pub(super) tool: Raw,
}

/// A tool of a measured server.
pub(super) struct Tool {
    pub(super) server: String,
    pub(super) name: String,
    pub(super) raw: Raw,
    pub(super) value: Value,
    /// Index of its definition in the corpus. If the corpus is too small, definitions are repeated under
    /// other names.
    pub(super) origin: usize,
}

/// Takes `count` tools evenly from all, on servers with `each` tools.
pub(super) fn draw(all: &[Definition], count: usize, each: usize) -> Result<Vec<Tool>> {
    if all.is_empty() {
        return Err("the file contains no tools".into());
    }
    let origin = |at| {
        if count > all.len() {
            at % all.len()
        } else {
            at * all.len() / count
        }
    };
    let (mut servers, mut tools) = (HashSet::new(), Vec::new());
    for chunk in (0..count).map(origin).collect::<Vec<_>>().chunks(each) {
        let server = unique(&mut servers, &all[chunk[0]].server);
        let mut names = HashSet::new();
        for origin in chunk {
            let raw = &all[*origin].tool;
            let name = raw.member("name").and_then(|name| name.to_text());
            let name = unique(&mut names, &name.ok_or("a tool has no name")?);
            let raw = raw.with_member("name", &Raw::string(&name))?;
            let (server, value, origin) = (server.clone(), raw.read_owned()?, *origin);
            tools.push(Tool {
                server,
                name,
                raw,
                value,
                origin,
            });
        }
    }
    Ok(tools)
}

fn unique(taken: &mut HashSet<String>, name: &str) -> String {
    let others = (2..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(others);
    names
        .find(|name| taken.insert(name.clone()))
        .unwrap_or_default()
}

/// A query that an agent might use to find a tool: the first words of its description, in another order.
pub(super) fn query(tool: &Tool) -> String {
    let said = tool.value["description"].as_str();
    let said = said.filter(|said| !said.trim().is_empty());
    let mut words: Vec<&str> = said
        .unwrap_or(&tool.name)
        .split_whitespace()
        .take(9)
        .collect();
    let half = words.len() / 2;
    words.rotate_left(half);
    words.join(" ")
}

/// Arguments that fit a schema: its required members, and no others.
pub(super) fn sample(schema: &Value, root: &Value, depth: usize) -> Value {
    let given = ["const", "default"].map(|of| &schema[of]);
    let mut given = given
        .into_iter()
        .chain([&schema["examples"][0], &schema["enum"][0]]);
    if let Some(value) = given.find(|value| !value.is_null()) {
        return value.clone();
    }
    let to = schema["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
    let choices = ["anyOf", "oneOf", "allOf"].map(|of| &schema[of][0]);
    let mut others = to
        .and_then(|to| root.pointer(to))
        .into_iter()
        .chain(choices);
    if let Some(other) =
        others.find(|one| one.is_object() && depth < 8 && schema["properties"].is_null())
    {
        return sample(other, root, depth + 1);
    }
    let kind = schema["type"].as_str().or(schema["type"][0].as_str());
    let least = |of: &str| schema[of].as_u64().unwrap_or_default();
    match (kind, schema["format"].as_str()) {
        (Some("string"), Some("uri" | "url")) => json!("https://example.com/"),
        (Some("string"), Some("date-time")) => json!("2026-01-31T12:00:00Z"),
        (Some("string"), _) => json!("example".repeat(1 + usize::from(least("minLength") > 7))),
        (Some("number" | "integer"), _) => {
            json!(least("minimum").max(least("exclusiveMinimum") + 1))
        }
        (Some("boolean"), _) => json!(true),
        (Some("array"), _) => json!([sample(&schema["items"], root, depth + 1)]),
        _ => {
            let names = schema["required"].as_array().into_iter().flatten();
            let value = |name: &str| sample(&schema["properties"][name], root, depth + 1);
            let names = names.filter_map(Value::as_str);
            names.map(|name| (name.to_owned(), value(name))).collect()
        }
    }
}

/// Generates tools like those of 116 real servers: the number of parameters, and the lengths of the
/// descriptions of tools and parameters, have the same distribution.
pub(super) fn made_up() -> Vec<Definition> {
    let kinds = " archived shared draft recurring public linked default external".split(' ');
    let things = kinds.flat_map(|kind| THINGS.map(|thing| (kind, thing)));
    let all = things.flat_map(|(kind, thing)| ACTS.map(|act| (act, kind, thing)));
    let all = (0..).zip(all);
    all.map(|(n, (act, kind, thing))| one(&mut Dice(n), act, kind, thing))
        .collect()
}

/// Values at the percentiles 0, 5, 10, 25, 50, 75, 90, 95, 99 and 100.
const PARAMETERS: [usize; 10] = [0, 0, 1, 1, 3, 5, 8, 12, 17, 40];
const SAID: [usize; 10] = [20, 27, 33, 53, 161, 490, 656, 1166, 2863, 13_000];
const SAID_OF_ONE: [usize; 10] = [0, 0, 10, 30, 50, 94, 180, 255, 345, 2_000];
/// Number of members of a parameter that is an object.
const INNER: [usize; 10] = [2, 2, 3, 4, 8, 12, 22, 40, 150, 400];

fn one(dice: &mut Dice, act: &str, kind: &str, thing: &str) -> Definition {
    let name = format!("{act} {kind} {thing}").replace("  ", " ");
    let detail = dice.pick(&DETAILS);
    let description = dice.talk(&format!("{name} {detail}"), SAID);
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for at in 0..dice.spread(PARAMETERS) {
        let name = format!(
            "{}{}",
            dice.pick(&THINGS).replace(' ', "_"),
            ["Id", "", "Name"][at % 3]
        );
        let mut schema = match dice.next() {
            0..68 => json!({"type": "string"}),
            68..82 => json!({"type": "boolean"}),
            82..89 => json!({"type": "string", "enum": ["open", "closed", "all"]}),
            _ => {
                let inner = (0..dice.spread(INNER)).map(|n| {
                    let said = dice.talk("How it is", SAID_OF_ONE);
                    (
                        format!("field{n}"),
                        json!({"type": "string", "description": said}),
                    )
                });
                json!({"type": "object", "properties": inner.collect::<Map<_, _>>()})
            }
        };
        schema["description"] =
            json!(dice.talk(&format!("The {name} of the {thing}"), SAID_OF_ONE));
        if at < 2 {
            required.push(name.clone());
        }
        properties.insert(name, schema);
    }
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let hints = json!({"title": name, "readOnlyHint": false, "openWorldHint": true});
    let mut tool = json!({"description": description, "inputSchema": schema, "annotations": hints});
    tool["name"] = json!(name.replace(' ', "_"));
    let tool = Raw::from_value(&tool).unwrap_or_else(|_| Raw::empty_object());
    let server = thing.replace(' ', "-");
    Definition { server, tool }
}

/// A deterministic pseudorandom number generator.
struct Dice(u64);

impl Dice {
    /// A number less than 100.
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed >> 33) % 100).unwrap_or_default()
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.next() % from.len()]
    }

    fn spread(&mut self, over: [usize; 10]) -> usize {
        const AT: [usize; 10] = [0, 5, 10, 25, 50, 75, 90, 95, 99, 100];
        let at = self.next();
        let above = AT.iter().position(|bound| *bound > at).unwrap_or(9);
        let (from, to) = (over[above - 1], over[above]);
        from + (to - from) * (at - AT[above - 1]) / (AT[above] - AT[above - 1])
    }

    /// Appends sentences until the text has about a random length from this distribution.
    fn talk(&mut self, text: &str, lengths: [usize; 10]) -> String {
        let (mut text, length) = (text.to_owned(), self.spread(lengths));
        while text.len() + 20 < length {
            text = format!(
                "{text}. This can {} {}",
                self.pick(&ACTS),
                self.pick(&DETAILS)
            );
        }
        text
    }
}
