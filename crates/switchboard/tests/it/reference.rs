//! The generated reference pages of the book, in `docs/reference`. A test fails if a page differs from the program;
//! `UPDATE_SNAPSHOTS=1 cargo nextest run -p switchboard --test it -E 'test(reference)'` writes the pages.

use std::{env, fmt::Write as _, fs, path::Path};

use serde_json::{Map, Value};

use crate::support::Place;

const UPDATE: &str =
    "UPDATE_SNAPSHOTS=1 cargo nextest run -p switchboard --test it -E 'test(reference)'";

/// Compares a page with the stored one, or stores it. No line ends in blanks.
fn check(page: &str, text: &str) {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let text = lines.join("\n") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference")
        .join(page);
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        return fs::write(path, text).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == text,
        "docs/reference/{page} differs from the program; {UPDATE} updates it"
    );
}

/// The text in one line of a table.
fn cell(text: &str) -> String {
    let text = text.replace('|', "\\|").replace('<', "&lt;");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The values that a schema allows, in words.
fn kind(schema: &Value) -> String {
    let words = |values: &Value| {
        let values = values.as_array().into_iter().flatten();
        let words: Vec<String> = values.map(|value| format!("`{value}`")).collect();
        words.join(", ")
    };
    if !schema["enum"].is_null() {
        return words(&schema["enum"]);
    }
    if let Some(any) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let kinds: Vec<String> = any.iter().map(kind).collect();
        return kinds.join(" or ");
    }
    if let Some(name) = schema["$ref"].as_str().and_then(|it| it.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(kinds) = schema["type"].as_array() {
        let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
        return kinds.join(" or ");
    }
    let range = |unit: &str| match (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
        (Some(min), Some(max)) => format!("{unit}, {min} to {max}"),
        (Some(min), None) => format!("{unit}, at least {min}"),
        _ => unit.to_owned(),
    };
    match schema["type"].as_str() {
        Some("integer") => range("integer"),
        Some("number") => range("number"),
        Some("array") if schema["items"].is_object() => {
            format!("list of {}", kind(&schema["items"]))
        }
        Some("array") => "list".to_owned(),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("object of {}", kind(&schema["additionalProperties"]))
        }
        Some(kind) => kind.to_owned(),
        None => "any value".to_owned(),
    }
}

/// Writes a table of the keys of an object, then a section for each key that is an object itself.
fn keys(out: &mut String, path: &str, object: &Value) {
    let none = Map::new();
    let properties = object["properties"].as_object().unwrap_or(&none);
    out.push_str("| key | value | default | description |\n|---|---|---|---|\n");
    for (name, key) in properties {
        let value = match key {
            _ if key["properties"].is_object() => "object, see below".to_owned(),
            _ if key["additionalProperties"]["properties"].is_object() => {
                "object, see below".to_owned()
            }
            _ => kind(key).replace("object", "object, see below"),
        };
        let value = match key["additionalProperties"]["type"].as_str() {
            Some("string") => "object of strings".to_owned(),
            _ => value,
        };
        let default = match &key["default"] {
            Value::Null => "–".to_owned(),
            default => format!("`{default}`"),
        };
        let about = cell(key["description"].as_str().unwrap_or_default());
        writeln!(out, "| `{name}` | {} | {default} | {about} |", cell(&value)).unwrap();
    }
    for (name, key) in properties {
        let mut inside = vec![(format!("{path}{name}"), key)];
        inside.push((format!("{path}{name}.NAME"), &key["additionalProperties"]));
        let any = key["anyOf"].as_array().into_iter().flatten();
        inside.extend(any.map(|one| (format!("{path}{name}"), one)));
        for (path, object) in inside {
            if object["properties"].is_object() {
                write!(out, "\n## `{path}`\n\n").unwrap();
                keys(out, &format!("{path}."), object);
            }
        }
    }
}

#[test]
fn configuration_page_matches_the_schema() {
    let schema = Place::new().run(&["schema"]).out;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let mut page = "# Configuration\n\n\
        Every key of `switchboard.json`, generated from the JSON Schema that `switchboard schema` prints. The file is\n\
        JSON with comments and trailing commas. [Servers](../guides/servers.md) explains the keys of a server,\n\
        [Approvals](../guides/approvals.md) and [Rules](../guides/rules.md) those of `approvals`.\n\n"
        .to_owned();
    writeln!(page, "{}\n", schema["description"].as_str().unwrap()).unwrap();
    keys(&mut page, "", &schema);
    check("configuration.md", &page);
}

/// The names of the commands that a help text lists.
fn listed(help: &str) -> Vec<&str> {
    let lines = help
        .lines()
        .skip_while(|line| !matches!(*line, "Commands:" | "Servers:"));
    lines
        .take_while(|line| !line.starts_with("Options:"))
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|name| {
            name.starts_with(|letter: char| letter.is_ascii_lowercase()) && *name != "help"
        })
        .collect()
}

/// Writes the help of a command and of the commands below it.
fn help(out: &mut String, place: &Place, command: &[&str]) {
    let shown = place.run(&[command, &["--help"]].concat());
    assert_eq!(shown.code, Some(0), "{command:?}");
    let level = "#".repeat(command.len() + 1);
    let name = [&["switchboard"], command].concat().join(" ");
    write!(
        out,
        "\n{level} `{name}`\n\n```text\n{}\n```\n",
        shown.out.trim_end()
    )
    .unwrap();
    for below in listed(&shown.out) {
        help(out, place, &[command, &[below]].concat());
    }
}

#[test]
fn command_line_page_matches_the_help() {
    let place = Place::new();
    let mut page = "# Command line\n\n\
        The help of every command, as `switchboard COMMAND --help` prints it. [Scripting](../guides/scripting.md) has\n\
        the exit codes and `--json`.\n"
        .to_owned();
    let program = place.run(&["--help"]);
    write!(
        page,
        "\n## `switchboard`\n\n```text\n{}\n```\n",
        program.out.trim_end()
    )
    .unwrap();
    for command in listed(&program.out) {
        help(&mut page, &place, &[command]);
    }
    check("cli.md", &page);
}

/// Writes a table of the members of an object in the REST API.
fn members(out: &mut String, schema: &Value) {
    let required = |name: &str| {
        let names = schema["required"].as_array().into_iter().flatten();
        names.into_iter().any(|it| it == name)
    };
    out.push_str("| member | value | description |\n|---|---|---|\n");
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let optional = if required(name) { "" } else { " (optional)" };
        let about = cell(member["description"].as_str().unwrap_or_default());
        writeln!(
            out,
            "| `{name}`{optional} | {} | {about} |",
            cell(&kind(member))
        )
        .unwrap();
    }
}

#[test]
fn rest_page_matches_the_openapi_description() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rest/openapi.json");
    let api: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let mut page = "# REST API\n\n\
        Every endpoint of the gateway except MCP, generated from the OpenAPI description at `/api/v1/openapi.json`.\n\
        Requests need the token: `Authorization: Bearer $(cat ~/.local/share/switchboard/run/token)`. Errors are\n\
        problem details as defined by RFC 9457, of type [Problem](#problem). [Scripting](../guides/scripting.md) has\n\
        examples.\n"
        .to_owned();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, route) in methods.as_object().unwrap() {
            if !matches!(&**method, "get" | "post" | "put" | "delete" | "patch") {
                continue;
            }
            write!(page, "\n## `{} {path}`\n\n", method.to_uppercase()).unwrap();
            writeln!(page, "{}.", route["summary"].as_str().unwrap_or_default()).unwrap();
            if let Some(about) = route["description"].as_str() {
                write!(page, "\n{about}\n").unwrap();
            }
            let parameters = route["parameters"].as_array();
            let parameters: Vec<&Value> = parameters.into_iter().flatten().collect();
            if !parameters.is_empty() {
                page.push_str("\n| parameter | in | value | description |\n|---|---|---|---|\n");
            }
            for parameter in parameters {
                let text = |name: &str| cell(parameter[name].as_str().unwrap_or_default());
                let kind = cell(&kind(&parameter["schema"]));
                let about = text("description");
                writeln!(
                    page,
                    "| `{}` | {} | {kind} | {about} |",
                    text("name"),
                    text("in")
                )
                .unwrap();
            }
            let body = &route["requestBody"]["content"]["application/json"]["schema"];
            if !body.is_null() {
                write!(page, "\nBody: {}.\n", kind(body)).unwrap();
            }
            page.push_str("\n| status | response |\n|---|---|\n");
            for (status, answer) in route["responses"].as_object().unwrap() {
                let name = answer["$ref"].as_str().and_then(|it| it.rsplit('/').next());
                let answer = name.map_or(answer, |name| &api["components"]["responses"][name]);
                let about = cell(answer["description"].as_str().unwrap_or_default());
                let content = answer["content"].as_object().into_iter().flatten().next();
                let schema = content.map(|(kind, content)| (kind, &content["schema"]));
                let what = match schema {
                    Some((_, schema)) if schema["$ref"].is_string() => {
                        format!("{}. {about}", kind(schema))
                    }
                    Some((kind, _)) => format!("`{kind}`. {about}"),
                    None => about,
                };
                writeln!(page, "| {status} | {what} |").unwrap();
            }
        }
    }
    page.push_str("\n## Types\n");
    for (name, schema) in api["components"]["schemas"].as_object().unwrap() {
        write!(page, "\n### {name}\n\n").unwrap();
        if let Some(about) = schema["description"].as_str() {
            write!(page, "{about}\n\n").unwrap();
        }
        if schema["properties"].is_object() {
            members(&mut page, schema);
        } else {
            writeln!(page, "Value: {}.", kind(schema)).unwrap();
        }
    }
    check("rest.md", &page);
}
