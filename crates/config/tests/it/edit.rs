//! Edits that leave everything else unchanged.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_config::{add_server, parse, release_server, remove_server, set_enabled};

use super::config;

/// A typical text, with a comment at every possible position.
const COMMENTED: &str = r#"// The gateway at home.
{
  "view": "direct", // all of it
  /* what
     it serves */
  "mcpServers": {
    // files first
    "files": { "command": "npx", "args": ["-y", "x"] }, // after files
    /* then */ "web" /* key */ : /* value */ {
      "url": "https://example.com/mcp" // no comma here
    } /* after web */, // after the comma
    "boxed": {
      "image": "mcp/time", // with a comma
    } // after boxed
    // "off": { "command": "old" }
  }
  // the end
}
"#;

#[test]
fn malformed_reference_is_not_added() {
    let entry = json!({ "command": "a", "args": ["${projct}"], "env": { "A": "${" } });
    let error = add_server("{}", "new", &entry).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot add the server `new`: unknown reference \"${projct}\" (did you mean ${project}?); \
         a ${ in this string has no closing } (add the }, or write $${ for a literal ${)"
    );
    // The entry of another server does not prevent edits.
    let text = r#"{"mcpServers": {"old": {"command": "${projct}"}}}"#;
    add_server(text, "new", &json!({ "command": "a" })).unwrap();
    set_enabled(text, "old", false).unwrap();
    remove_server(text, "old").unwrap();
}

fn add(text: &str) -> String {
    let entry = json!({"env": {"A": "1"}, "args": ["-x"], "command": "new"});
    add_server(text, "new", &entry).unwrap()
}

#[test]
fn server_is_added_last_in_matching_style() {
    for (before, after) in [
        (
            "",
            "{\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"new\",\n      \"args\": [\"-x\"],\n      \"env\": {\n        \"A\": \"1\"\n      }\n    }\n  }\n}\n",
        ),
        (
            "// mine",
            "// mine\n{\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"new\",\n      \"args\": [\"-x\"],\n      \"env\": {\n        \"A\": \"1\"\n      }\n    }\n  }\n}\n",
        ),
        (
            "{}",
            "{\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"new\",\n      \"args\": [\"-x\"],\n      \"env\": {\n        \"A\": \"1\"\n      }\n    }\n  }\n}",
        ),
        (
            "{\r\n\t\"view\": \"auto\" // c\r\n}\r\n",
            "{\r\n\t\"view\": \"auto\", // c\r\n\t\"mcpServers\": {\r\n\t\t\"new\": {\r\n\t\t\t\"command\": \"new\",\r\n\t\t\t\"args\": [\"-x\"],\r\n\t\t\t\"env\": {\r\n\t\t\t\t\"A\": \"1\"\r\n\t\t\t}\r\n\t\t}\r\n\t}\r\n}\r\n",
        ),
        (
            "{\n    \"mcpServers\": {}\n}",
            "{\n    \"mcpServers\": {\n        \"new\": {\n            \"command\": \"new\",\n            \"args\": [\"-x\"],\n            \"env\": {\n                \"A\": \"1\"\n            }\n        }\n    }\n}",
        ),
        (
            "{\n  \"mcpServers\": {\n    // none yet\n  }\n}",
            "{\n  \"mcpServers\": {\n    // none yet\n    \"new\": {\n      \"command\": \"new\",\n      \"args\": [\"-x\"],\n      \"env\": {\n        \"A\": \"1\"\n      }\n    }\n  }\n}",
        ),
        (
            r#"{"mcpServers":{"a":{"command":"b"}}}"#,
            r#"{"mcpServers":{"a":{"command":"b"}, "new": {"command": "new", "args": ["-x"], "env": {"A": "1"}}}}"#,
        ),
        (
            r#"{"mcpServers":{"a":{"command":"b"},}} // x"#,
            r#"{"mcpServers":{"a":{"command":"b"}, "new": {"command": "new", "args": ["-x"], "env": {"A": "1"}},}} // x"#,
        ),
        (
            "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"b\"}, // c\n  },\n}",
            "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"b\"}, // c\n    \"new\": {\n      \"command\": \"new\",\n      \"args\": [\"-x\"],\n      \"env\": {\n        \"A\": \"1\"\n      }\n    },\n  },\n}",
        ),
        (
            "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"b\"} /* c */ /* d\n e */ }\n}",
            "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"b\"}, /* c */\n    \"new\": {\n      \"command\": \"new\",\n      \"args\": [\"-x\"],\n      \"env\": {\n        \"A\": \"1\"\n      }\n    } /* d\n e */ }\n}",
        ),
    ] {
        assert_eq!(add(before), after, "{before}");
        let mut expected = config(before);
        let added = config(after);
        expected
            .servers
            .insert("new".to_owned(), added.servers["new"].clone());
        assert_eq!(added, expected);
    }
}

#[test]
fn comments_are_kept() {
    let added = add(COMMENTED);
    let new = "    } // after boxed\n";
    let (front, back) = COMMENTED.split_once(new).unwrap();
    let entry = "    \"new\": {\n      \"command\": \"new\",\n      \"args\": [\"-x\"],\n      \"env\": {\n        \"A\": \"1\"\n      }\n    }\n";
    assert_eq!(
        added,
        format!("{front}    }}, // after boxed\n{entry}{back}")
    );
    assert_eq!(remove_server(&added, "new").unwrap(), COMMENTED);
}

#[test]
fn server_is_removed_with_its_line() {
    for (name, gone, instead) in [
        (
            "files",
            "    \"files\": { \"command\": \"npx\", \"args\": [\"-y\", \"x\"] }, // after files\n",
            "",
        ),
        (
            "web",
            " \"web\" /* key */ : /* value */ {\n      \"url\": \"https://example.com/mcp\" // no comma here\n    } /* after web */,",
            "",
        ),
        (
            "boxed",
            ", // after the comma\n    \"boxed\": {\n      \"image\": \"mcp/time\", // with a comma\n    } // after boxed\n",
            " // after the comma\n",
        ),
    ] {
        let removed = remove_server(COMMENTED, name).unwrap();
        assert_eq!(removed, COMMENTED.replacen(gone, instead, 1), "{name}");
        let mut expected = config(COMMENTED);
        expected.servers.remove(name).unwrap();
        assert_eq!(config(&removed), expected);
    }
    for (before, name, after) in [
        (
            r#"{"mcpServers": {"a": {"command": "b"}}}"#,
            "a",
            r#"{"mcpServers": {}}"#,
        ),
        (
            r#"{"mcpServers": { "a": {"command": "b"}, }}"#,
            "a",
            r#"{"mcpServers": {}}"#,
        ),
        (
            r#"{"mcpServers": {"a": {"command": "b"}, "c": {"command": "d"}}}"#,
            "a",
            r#"{"mcpServers": {"c": {"command": "d"}}}"#,
        ),
        (
            r#"{"mcpServers": {"a": {"command": "b"}, "c": {"command": "d"}}}"#,
            "c",
            r#"{"mcpServers": {"a": {"command": "b"}}}"#,
        ),
        (
            "{\"mcpServers\": {\n  \"a\": {\"command\": \"b\"}\n}}",
            "a",
            "{\"mcpServers\": {}}",
        ),
        (
            "{\"mcpServers\": {\n  // keep\n  \"a\": {\"command\": \"b\"}\n}}",
            "a",
            "{\"mcpServers\": {\n  // keep\n}}",
        ),
        (
            "{\"mcpServers\": {\r\n  \"a\": {\"command\": \"b\"},\r\n  \"c\": {\"command\": \"d\"}\r\n}}",
            "c",
            "{\"mcpServers\": {\r\n  \"a\": {\"command\": \"b\"}\r\n}}",
        ),
        (
            "{\"mcpServers\": {\n  \"a\": {\"command\": \"b\"}\n  , \"c\": {\"command\": \"d\"}\n}}",
            "c",
            "{\"mcpServers\": {\n  \"a\": {\"command\": \"b\"}\n  \n}}",
        ),
    ] {
        assert_eq!(remove_server(before, name).unwrap(), after, "{before}");
    }
}

#[test]
fn existing_switch_of_a_server_is_changed() {
    for (before, enabled, after) in [
        (r#"{"command": "a"}"#, true, r#"{"command": "a"}"#),
        (
            r#"{"command": "a"}"#,
            false,
            r#"{"command": "a", "enabled": false}"#,
        ),
        (
            r#"{"command": "a", "enabled" : /* on */ true}"#,
            false,
            r#"{"command": "a", "enabled" : /* on */ false}"#,
        ),
        (
            r#"{"enabled": false, "command": "a"}"#,
            true,
            r#"{"enabled": true, "command": "a"}"#,
        ),
        (
            r#"{"disabled": true, "command": "a"}"#,
            true,
            r#"{"disabled": false, "command": "a"}"#,
        ),
        (
            r#"{"command": "a", "disabled": false}"#,
            false,
            r#"{"command": "a", "disabled": true}"#,
        ),
        (
            r#"{"disabled": false, "enabled": true, "command": "a"}"#,
            false,
            r#"{"disabled": true, "enabled": false, "command": "a"}"#,
        ),
        (
            "{\n    \"command\": \"a\" // x\n  }",
            false,
            "{\n    \"command\": \"a\", // x\n    \"enabled\": false\n  }",
        ),
    ] {
        let text = |entry| format!("{{\"mcpServers\": {{\n  \"s\": {entry}\n}}}}");
        let switched = set_enabled(&text(before), "s", enabled).unwrap();
        assert_eq!(switched, text(after));
        assert_eq!(config(&switched).servers["s"].enabled, enabled);
    }
}

#[test]
fn released_server_keeps_its_file() {
    for (before, file, after) in [
        (
            r#"{"command": "a", "hold": true}"#,
            Some("/b/\"a"),
            r#"{"command": "a", "hold": false, "approvedFile": "/b/\"a"}"#,
        ),
        (
            r#"{"approvedFile": "/c", "command": "a"}"#,
            Some("/b"),
            r#"{"approvedFile": "/b", "command": "a"}"#,
        ),
        (
            r#"{"url": "http://a", "hold": true}"#,
            None,
            r#"{"url": "http://a", "hold": false}"#,
        ),
    ] {
        let text = |entry| format!("{{\"mcpServers\": {{\n  \"s\": {entry}\n}}}}");
        let released = release_server(&text(before), "s", file).unwrap();
        assert_eq!(released, text(after));
        let server = &config(&released).servers["s"];
        assert_eq!(
            (server.hold, server.approved_file.as_deref()),
            (false, file)
        );
    }
}

#[test]
fn errors_have_hints() {
    let text = r#"{"mcpServers": {"files": {"command": "a"}, "odd": 1}}"#;
    let entry = json!({"command": "b"});
    let told = |result: Result<String, switchboard_config::EditError>| {
        let error = result.unwrap_err();
        let hint = error.hint().unwrap_or_default();
        (error.to_string(), hint.into_owned())
    };
    let parts = |message: &str, hint: &str| (message.to_owned(), hint.to_owned());
    assert_eq!(
        told(add_server(text, "files", &entry)),
        parts(
            "server `files` already exists",
            "remove it first, or choose another name"
        )
    );
    assert_eq!(
        told(remove_server(text, "flies")),
        parts("there is no server `flies`", "did you mean `files`?")
    );
    assert_eq!(
        told(set_enabled("{}", "files", true)),
        parts(
            "there is no server `files`",
            "add one with `switchboard add`"
        )
    );
    assert_eq!(
        told(set_enabled(text, "odd", false)),
        parts(
            "cannot change the server `odd`: it is not an object",
            "fix the configuration first"
        )
    );
    assert_eq!(
        told(add_server("{\"mcpServers\": []}", "new", &entry)),
        parts(
            "cannot change \"mcpServers\": it is not an object",
            "fix the configuration first"
        )
    );
    assert_eq!(
        told(add_server("[]", "new", &entry)),
        parts(
            "cannot change the configuration: it is not an object",
            "fix the configuration first"
        )
    );
    assert_eq!(
        told(add_server(text, "a/b", &entry)),
        parts(
            "a server's name may not contain / or control characters",
            "remove these characters"
        )
    );
    assert_eq!(
        told(add_server(text, "new", &json!({"comand": "b"}))),
        parts(
            "cannot add the server `new`: unknown key \"comand\"",
            "did you mean \"command\"?"
        )
    );
    assert_eq!(
        told(remove_server("{\n  \"mcpServers\": {\n", "files")),
        parts(
            "cannot change the configuration, because it has errors\nswitchboard.json:2:17: this object is not closed: a } is missing",
            ""
        )
    );
    // A result that does not parse is an error.
    let full = format!(
        "{{\"mcpServers\": {{}}}}{}",
        " ".repeat(4 * 1024 * 1024 - 20)
    );
    assert_eq!(
        told(add_server(&full, "new", &entry)),
        parts(
            "cannot change the configuration, because it has errors\nswitchboard.json:1:1: the file is larger than 4194304 bytes (make it smaller)",
            ""
        )
    );
}

#[test]
fn carriage_return_ends_a_comment() {
    let text = "{ // c\r\"mcpServers\": {}}";
    assert!(config(&add(text)).servers.contains_key("new"));
}

#[derive(Clone, Debug)]
enum Edit {
    Add(String, Value),
    Remove(usize),
    Enable(usize, bool),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let entry = prop_oneof![
        Just(json!({"command": "c"})),
        Just(json!({"url": "https://a", "headers": {"A": "b // no comment", "C": "}"}})),
        Just(
            json!({"image": "i", "args": ["a \" quote", "long ".repeat(30)], "isolation": {"pids": 5}})
        ),
        Just(
            json!({"command": "c", "gallery": {"nested": [{"deep": [1, 2, null]}]}, "disabled": true})
        ),
    ];
    let name = prop_oneof!["[a-e]", "[a-z\"\\\\ ü{},:*]{1,8}"];
    let edit = prop_oneof![
        (name, entry).prop_map(|(name, entry)| Edit::Add(name, entry)),
        any::<usize>().prop_map(Edit::Remove),
        (any::<usize>(), any::<bool>()).prop_map(|(at, enabled)| Edit::Enable(at, enabled)),
    ];
    prop::collection::vec(edit, 1..20)
}

/// Whitespace and comments.
fn trivia() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "// c\n",
        "// , } \"\r\n",
        "/* c */",
        "/* \n , { */",
        "\n    ",
    ]);
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

/// A configuration with comments at any position.
fn text() -> impl Strategy<Value = String> {
    let entry = prop::sample::select(vec![
        "{\"command\": \"a\"}",
        "{ // c\n \"url\": \"http://a\", /* d */ }",
        "{\n      \"image\": \"i\",\n      \"enabled\": /* e */ false // f\n    }",
        "{\"disabled\":true,\"command\":\"a\"}",
    ]);
    let server = (trivia(), trivia(), trivia(), entry, trivia());
    let servers = prop::collection::vec(server, 0..4);
    (
        trivia(),
        trivia(),
        servers,
        any::<bool>(),
        trivia(),
        trivia(),
    )
        .prop_map(|(front, open, servers, comma, close, back)| {
            let mut text = format!("{front}{{{open}\"mcpServers\":{{");
            let count = servers.len();
            for (at, (before, after_key, before_value, entry, after)) in
                servers.into_iter().enumerate()
            {
                let comma = if at + 1 < count || comma { "," } else { "" };
                write!(
                    text,
                    "{before}\"s{at}\"{after_key}:{before_value}{entry}{after}{comma}"
                )
                .unwrap();
            }
            text + &close + "}" + &back + "}" + &front
        })
}

/// The number of comments that are unambiguous in a text.
fn comments(text: &str) -> usize {
    text.matches("// c").count() + text.matches("/* \n , { */").count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edits_change_only_their_server(text in text(), edits in edits()) {
        let mut text = text;
        let mut model = config(&text);
        for edit in edits {
            let names: Vec<_> = model.servers.keys().cloned().collect();
            let pick = |at: usize| names.get(at % names.len().max(1)).cloned();
            let before = comments(&text);
            let (edited, touched) = match edit {
                Edit::Add(name, entry) => {
                    let added = add_server(&text, &name, &entry);
                    prop_assert_eq!(added.is_err(), names.contains(&name));
                    let Ok(edited) = added else { continue };
                    let alone = json!({"mcpServers": {&*name: entry}}).to_string();
                    let server = config(&alone).servers[&name].clone();
                    model.servers.insert(name.clone(), server);
                    prop_assert_eq!(comments(&edited), before + comments(&alone));
                    (edited, name)
                }
                Edit::Remove(at) => {
                    let Some(name) = pick(at) else { continue };
                    model.servers.remove(&name);
                    (remove_server(&text, &name).unwrap(), name)
                }
                Edit::Enable(at, enabled) => {
                    let Some(name) = pick(at) else { continue };
                    let edited = set_enabled(&text, &name, enabled).unwrap();
                    model.servers.get_mut(&name).unwrap().enabled = enabled;
                    prop_assert_eq!(comments(&edited), before);
                    (edited, name)
                }
            };
            prop_assert_eq!(&parse(&edited, "x").map_err(|problems| problems[0].to_string()), &Ok(model.clone()), "{:?}", edited);
            for name in names.iter().filter(|name| **name != touched) {
                prop_assert_eq!(written(&text, name), written(&edited, name), "{:?} became {:?}", text, edited);
            }
            text = edited;
        }
    }
}

/// The source of a server, from its key to its closing brace.
fn written(text: &str, name: &str) -> String {
    let key = Value::from(name).to_string();
    let mut from = 0;
    loop {
        let start = from + text[from..].find(&key).unwrap();
        // A quote after a backslash is inside a string. A key is followed by comments and a colon; other
        // matches are not keys.
        let escaped = text[..start].ends_with('\\');
        if let Some(end) = entry_end(text, start + key.len()).filter(|_| !escaped) {
            return text[start..end].to_owned();
        }
        from = start + 1;
    }
}

fn entry_end(text: &str, mut at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut colon) = (0, false);
    let past = |from: usize, mark: &[u8]| {
        let length = bytes[from..]
            .windows(mark.len())
            .position(|window| window == mark)?;
        Some(from + length + mark.len())
    };
    while at < bytes.len() {
        if bytes[at..].starts_with(b"//") {
            at = past(at, b"\n")?;
        } else if bytes[at..].starts_with(b"/*") {
            at = past(at, b"*/")?;
        } else if bytes[at] == b'"' && colon && depth > 0 {
            at += 1;
            while bytes[at] != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at += 1;
        } else {
            match bytes[at] {
                b':' if depth == 0 => colon = true,
                b'{' if colon => depth += 1,
                b'}' if depth == 1 => return Some(at + 1),
                b'}' => depth -= 1,
                byte if depth == 0 && !byte.is_ascii_whitespace() => return None,
                _ => {}
            }
            at += 1;
        }
    }
    None
}
