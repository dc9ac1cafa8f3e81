//! Everything around the gateway's entry stays, in files of any content and layout.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use switchboard_client_configs::{Client, How, Which, undo};

use super::{Machine, text};

/// The layout of a file.
#[derive(Debug, Clone)]
struct Style {
    newline: &'static str,
    indent: &'static str,
    /// Fillers before a value, after a value and before a closing brace, in turn.
    filler: Vec<&'static str>,
    trailing_comma: bool,
    one_line: bool,
    end: &'static str,
    mark: bool,
}

fn styles() -> impl Strategy<Value = Style> {
    let filler = prop::sample::select(vec![
        "",
        " ",
        "/* c */",
        " /* , } */ ",
        "  ",
        "/**/",
        "/* \" */",
        "",
    ]);
    (
        prop::sample::select(vec!["\n", "\r\n"]),
        prop::sample::select(vec!["", " ", "  ", "    ", "\t"]),
        prop::collection::vec(filler, 1..6),
        any::<(bool, bool, bool)>(),
        prop::sample::select(vec!["", "\n", "\n\n", " // end"]),
    )
        .prop_map(
            |(newline, indent, filler, (comma, one_line, mark), end)| Style {
                newline,
                indent,
                filler,
                trailing_comma: comma,
                one_line,
                end,
                mark,
            },
        )
}

/// Writes a value in a style, with comments at every allowed position.
struct Writer<'a> {
    style: &'a Style,
    text: String,
    used: usize,
}

impl Writer<'_> {
    fn fill(&mut self) {
        let filler = &self.style.filler;
        self.text.push_str(filler[self.used % filler.len()]);
        self.used += 1;
    }

    fn line(&mut self, depth: usize) {
        if !self.style.one_line {
            if self.used.is_multiple_of(3) {
                self.text.push_str(" // a comment, with { and \"");
            }
            self.text.push_str(self.style.newline);
            self.text.push_str(&self.style.indent.repeat(depth));
        }
    }

    fn value(&mut self, value: &Value, depth: usize) {
        let Value::Object(members) = value else {
            self.text.push_str(&value.to_string());
            return;
        };
        self.text.push('{');
        for (index, (key, value)) in members.iter().enumerate() {
            self.line(depth + 1);
            self.text.push_str(&Value::from(key.as_str()).to_string());
            self.fill();
            self.text.push(':');
            self.fill();
            self.value(value, depth + 1);
            self.fill();
            if index + 1 < members.len() || self.style.trailing_comma {
                self.text.push(',');
            }
        }
        self.fill();
        if !members.is_empty() {
            self.line(depth);
        }
        self.text.push('}');
    }
}

fn written(value: &Value, style: &Style) -> String {
    let mut writer = Writer {
        style,
        text: if style.mark { "\u{feff}" } else { "" }.to_owned(),
        used: 0,
    };
    writer.value(value, 0);
    writer.text.push_str(style.end);
    writer.text
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\"\\\\/*{},:ä ]{0,8}".prop_map(Value::from),
        Just(json!(["a", {"b": 1}, []])),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop::collection::btree_map("[a-zä \"/]{1,5}", inner, 0..4)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    })
}

/// The content of a file with its servers, if it has an object for them.
fn files() -> impl Strategy<Value = (Map<String, Value>, Option<Map<String, Value>>)> {
    let members = || {
        prop::collection::btree_map("[a-zä\"]{1,5}", values(), 0..4)
            .prop_map(|members| members.into_iter().collect::<Map<_, _>>())
    };
    (members(), prop::option::of(members()))
}

/// Parses a text, with a parser other than that of the crate.
fn meaning(text: &str) -> Value {
    let mut plain = String::new();
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(inside) = rest.strip_prefix("/*") {
            inside.find("*/").unwrap() + 4
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|letter| {
                let ends = letter == '"' && !escaped;
                escaped = letter == '\\' && !escaped;
                ends
            });
            let length = end.unwrap() + 2;
            plain.push_str(&rest[..length]);
            length
        } else {
            if first == '}' && plain.ends_with(',') {
                plain.pop();
            }
            if !first.is_whitespace() {
                plain.push(first);
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    serde_json::from_str(&plain).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The value of a whole file.
fn whole(root: &Map<String, Value>, servers: Option<&Map<String, Value>>) -> Value {
    let mut root = root.clone();
    if let Some(servers) = servers {
        root.insert("mcpServers".to_owned(), Value::Object(servers.clone()));
    }
    Value::Object(root)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn connect_changes_only_its_entry((root, servers) in files(), style in styles()) {
        let machine = Machine::new();
        let before_value = whole(&root, servers.as_ref());
        let before = written(&before_value, &style);
        prop_assert_eq!(&meaning(&before), &before_value, "{}", before);
        machine.write(Client::Cursor, &before);

        // The entry is there, and the rest has the same meaning.
        let connected = machine.connect(Client::Cursor).after;
        machine.write(Client::Cursor, &connected);
        let mut expected = before_value.clone();
        expected["mcpServers"]["switchboard"] = json!({
            "command": "/opt/bin/switchboard",
            "args": ["stdio", "--home", "/data/home of mine"],
        });
        prop_assert_eq!(&meaning(&connected), &expected, "{}", connected);
        prop_assert!(!machine.connect(Client::Cursor).changed);

        // All comments and line ends are kept.
        for mark in ["/*", "//", "*/"] {
            prop_assert_eq!(before.matches(mark).count(), connected.matches(mark).count());
        }
        if before.contains("\r\n") {
            let others = connected.replace("\r\n", "");
            prop_assert!(!others.trim_end().contains('\n'), "{:?}", connected);
        }

        // Removal restores every byte, if the file had servers before.
        let disconnected = machine.disconnect(Client::Cursor).after;
        if servers.is_some_and(|servers| !servers.is_empty()) {
            prop_assert_eq!(disconnected, before);
        }
    }
}

proptest! {
    // Each case waits for the disk several times.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn undo_restores_every_byte((root, servers) in files(), style in styles()) {
        let machine = Machine::new();
        let before = written(&whole(&root, servers.as_ref()), &style);
        let file = machine.write(Client::Cursor, &before);
        machine.apply(&machine.connect(Client::Cursor));
        prop_assert!(text(&file) != before);
        let undone = undo(Which::Last, &machine.backups()).unwrap();
        prop_assert_eq!(undone.how, How::Restored);
        prop_assert_eq!(text(&file), before);
    }
}
