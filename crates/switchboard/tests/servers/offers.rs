//! The offers of a server, and the differences to those seen in another way.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use switchboard_catalog::expose_uri;

use crate::client::Client;

/// A list: the capability that announces it, the method that reads it, its member in the result, and the
/// member of an item that names it.
struct List {
    capability: &'static str,
    method: &'static str,
    member: &'static str,
    key: &'static str,
}

const LISTS: [List; 4] = [
    List {
        capability: "tools",
        method: "tools/list",
        member: "tools",
        key: "name",
    },
    List {
        capability: "prompts",
        method: "prompts/list",
        member: "prompts",
        key: "name",
    },
    List {
        capability: "resources",
        method: "resources/list",
        member: "resources",
        key: "uri",
    },
    List {
        capability: "resources",
        method: "resources/templates/list",
        member: "resourceTemplates",
        key: "uriTemplate",
    },
];

/// More pages than any server has.
const PAGES: usize = 100;
const METHOD_NOT_FOUND: i64 = -32601;
/// The longest name in the direct view, in bytes.
const LONGEST_NAME: usize = 64;

/// Tools, prompts, resources and templates, in the order of the server.
#[derive(Debug, Clone)]
pub(crate) struct Offers([Vec<Value>; LISTS.len()]);

impl Offers {
    /// Reads every list that the other side announces.
    #[track_caller]
    pub(crate) fn of(client: &mut Client) -> Self {
        Self(LISTS.map(|list| read(client, &list)))
    }

    pub(crate) fn tools(&self) -> &[Value] {
        &self.0[0]
    }

    pub(crate) fn prompts(&self) -> &[Value] {
        &self.0[1]
    }

    /// The first resource and the first template, if there are any.
    pub(crate) fn uris(&self) -> impl Iterator<Item = &Value> {
        let [_, _, resources, templates] = &self.0;
        let resource = resources.first().map(|resource| &resource["uri"]);
        let template = templates.first().map(|template| &template["uriTemplate"]);
        resource.into_iter().chain(template)
    }

    /// The part of the direct view that belongs to one server, under the names of the server. Also returns
    /// what strict clients would reject.
    pub(crate) fn of_server(&self, server: &str, direct: &Self) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let mut own = self.clone();
        for ((list, items), known) in LISTS.iter().zip(&mut own.0).zip(&direct.0) {
            // The pages of apps keep their scheme.
            let beginnings = ["", "ui://"].map(|scheme| expose(list, server, scheme));
            items.retain(|item| {
                let name = item[list.key].as_str().unwrap_or_default();
                beginnings
                    .iter()
                    .any(|beginning| name.starts_with(beginning))
            });
            for (place, item) in items.iter_mut().enumerate() {
                let exposed = item[list.key].as_str().unwrap_or_default();
                let name = |known: &Value| known[list.key].as_str().unwrap_or_default().to_owned();
                let clean = known
                    .iter()
                    .find(|known| exposed == expose(list, server, &name(known)));
                let shortened = known
                    .get(place)
                    .filter(|known| is_shortened(exposed, server, &name(known)));
                let Some(known) = clean.or(shortened) else {
                    continue;
                };
                item[list.key] = json!(name(known));
                if list.member == "tools" {
                    problems.extend(make_plain(item, known));
                    for member in ["/_meta/ui/resourceUri", "/_meta/ui~1resourceUri"] {
                        if let Some(page) = known.pointer(member).and_then(Value::as_str)
                            && let Some(shown) = item.pointer_mut(member)
                            && *shown == expose_uri(server, page)
                        {
                            *shown = json!(page);
                        }
                    }
                }
            }
        }
        (own, problems)
    }

    /// The differences between the server's own offers and these, which come another way.
    pub(crate) fn differences(&self, direct: &Self) -> Vec<String> {
        let lists = LISTS.iter().zip(self.0.iter().zip(&direct.0));
        lists
            .flat_map(|(list, (shown, expected))| compare(list, shown, expected))
            .collect()
    }
}

#[track_caller]
fn read(client: &mut Client, list: &List) -> Vec<Value> {
    let mut items = Vec::new();
    if client.capabilities.get(list.capability).is_none() {
        return items;
    }
    let mut params = json!({});
    for _ in 0..PAGES {
        let mut page = match client.request(list.method, &params) {
            Ok(page) => page,
            // Many servers have resources and no list of templates.
            Err(error) if error["code"] == METHOD_NOT_FOUND => return items,
            Err(error) => panic!("{}: {error}", list.method),
        };
        items.append(page[list.member].as_array_mut().unwrap());
        match page.get_mut("nextCursor") {
            Some(cursor) if !cursor.is_null() => params = json!({ "cursor": cursor.take() }),
            _ => return items,
        }
    }
    panic!("{}: more than {PAGES} pages", list.method);
}

fn expose(list: &List, server: &str, name: &str) -> String {
    match list.key {
        "name" => format!("{server}__{name}"),
        _ => expose_uri(server, name),
    }
}

/// Tests if an exposed name stands for this one, which is too long or has characters that clients do not
/// accept.
fn is_shortened(exposed: &str, server: &str, name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let fits = server.len() + "__".len() + name.len() <= LONGEST_NAME;
    let needs_it = !fits || !name.bytes().all(is_plain);
    needs_it && exposed.len() <= LONGEST_NAME && exposed.starts_with(&format!("{server}__"))
}

/// Removes what the gateway added to a tool of the direct view for strict clients, and restores `execution`,
/// which is left out there because the gateway handles tasks. Returns an error message if strict clients
/// would refuse the input schema.
fn make_plain(tool: &mut Value, known: &Value) -> Option<String> {
    let problem = (tool["inputSchema"]["type"] != "object").then(|| {
        let (name, schema) = (&tool["name"], &tool["inputSchema"]);
        format!("tool {name}: strict clients refuse its input schema: {schema}")
    });
    if tool.get("execution").is_none()
        && let Some(execution) = known.get("execution")
    {
        tool["execution"] = execution.clone();
    }
    for schema in ["inputSchema", "outputSchema"] {
        let is_added = known[schema].get("type").is_none();
        if let Some(members) = tool.get_mut(schema).and_then(Value::as_object_mut)
            && is_added
        {
            members.remove("type");
        }
    }
    problem
}

fn compare(list: &List, shown: &[Value], expected: &[Value]) -> Vec<String> {
    let name = |item: &Value| item[list.key].as_str().unwrap_or("?").to_owned();
    let shown_names: Vec<_> = shown.iter().map(name).collect();
    let expected_names: Vec<_> = expected.iter().map(name).collect();
    let member = list.member;
    if shown_names != expected_names {
        let shown: BTreeSet<_> = shown_names.iter().collect();
        let expected: BTreeSet<_> = expected_names.iter().collect();
        let missing: Vec<_> = expected.difference(&shown).collect();
        let added: Vec<_> = shown.difference(&expected).collect();
        return vec![match (&*missing, &*added) {
            ([], []) => format!("{member}: {shown_names:?} in place of {expected_names:?}"),
            _ => format!("{member}: missing {missing:?}, added {added:?}"),
        }];
    }
    let pairs = shown.iter().map(ordered).zip(expected.iter().map(ordered));
    let different = pairs.filter(|(shown, expected)| shown != expected);
    different
        .map(|(shown, expected)| {
            let place = first_difference(&shown, &expected);
            format!("{member}: {} differs: {place}", name(&shown))
        })
        .collect()
}

/// A definition with the parts of its defaults sorted: a server that joins them from a set has another order
/// after each start.
fn ordered(definition: &Value) -> Value {
    let member = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) if name == "default" => {
                let mut parts: Vec<_> = text.split(',').collect();
                parts.sort_unstable();
                json!(parts.join(","))
            }
            value => ordered(value),
        };
        (name.clone(), value)
    };
    match definition {
        Value::Object(members) => members.iter().map(member).collect(),
        Value::Array(items) => items.iter().map(ordered).collect(),
        value => value.clone(),
    }
}

/// The place at which two values differ, and both values there.
pub(crate) fn first_difference(one: &Value, other: &Value) -> String {
    match (one, other) {
        (Value::Object(members), Value::Object(others)) => {
            let names: BTreeSet<_> = members.keys().chain(others.keys()).collect();
            let mut names = names.into_iter();
            let name = names.find(|name| members.get(*name) != others.get(*name));
            let name = name.map_or("", |name| name);
            match (members.get(name), others.get(name)) {
                (Some(one), Some(other)) => format!("/{name}{}", first_difference(one, other)),
                (Some(one), None) => format!("/{name} is added: {one}"),
                (None, other) => format!("/{name} is missing: {other:?}"),
            }
        }
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            let mut pairs = items.iter().zip(others).enumerate();
            match pairs.find(|(_, (one, other))| one != other) {
                Some((at, (one, other))) => format!("/{at}{}", first_difference(one, other)),
                None => "nowhere".to_owned(),
            }
        }
        _ => format!(": {one} in place of {other}"),
    }
}
