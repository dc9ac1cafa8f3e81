//! Changes to the text of a configuration.

use serde_json::{Value, json};
use switchboard_config::{add_server, remove_server, set_enabled};

/// A successful change is visible to a plain JSON parser, leaves everything else as it was, and keeps the
/// comments outside of the removed text. The first byte chooses the name.
pub fn edit(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let Ok(text) = str::from_utf8(rest) else {
        return;
    };
    let name = ["a", "b", "new", "\u{fc}\""][usize::from(first % 4)];
    let before = Plain::read(text);
    let entry = json!({"command": "x", "args": ["// no comment", "\\\"/*"]});
    if let Ok(after) = add_server(text, name, &entry) {
        let added = Plain::read(&after);
        assert_eq!(added.comments, before.comments);
        let mut expected = before.value.clone();
        expected["mcpServers"][name] = entry;
        assert_eq!(added.value, expected);
        let removed = remove_server(&after, name);
        assert!(
            removed.is_ok(),
            "what was added can be removed: {removed:?}"
        );
    }
    if let Ok(after) = remove_server(text, name) {
        let removed = Plain::read(&after);
        let mut left = before.comments.iter();
        let kept = removed
            .comments
            .iter()
            .all(|comment| left.any(|old| old == comment));
        assert!(kept, "no comment is invented or moved");
        let mut expected = before.value.clone();
        if let Some(servers) = expected["mcpServers"].as_object_mut() {
            servers.remove(name);
        }
        assert_eq!(removed.value, expected);
    }
    for enabled in [true, false] {
        if let Ok(after) = set_enabled(text, name, enabled) {
            let set = Plain::read(&after);
            assert_eq!(set.comments, before.comments);
            let server = &set.value["mcpServers"][name];
            let is_on = server.get("enabled") != Some(&json!(false))
                && server.get("disabled") != Some(&json!(true));
            assert_eq!(is_on, enabled, "{after}");
            assert_eq!(set_enabled(&after, name, enabled).ok(), Some(after));
        }
    }
}

/// A text without comments and trailing commas, and the comments.
struct Plain {
    /// Null if the text is not JSON; an object if it is empty.
    value: Value,
    comments: Vec<String>,
}

impl Plain {
    fn read(text: &str) -> Self {
        let mut comments = Vec::new();
        let mut plain = String::new();
        let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
        while let Some(next) = rest.chars().next() {
            let length = match next {
                '"' => string_length(rest),
                '/' if rest.starts_with("//") => rest.find(['\n', '\r']).unwrap_or(rest.len()),
                '/' if rest.starts_with("/*") => {
                    rest[2..].find("*/").map_or(rest.len(), |end| end + 4)
                }
                other => other.len_utf8(),
            };
            let (token, after) = rest.split_at(length);
            rest = after;
            if token.starts_with("//") || token.starts_with("/*") {
                comments.push(token.trim_end().to_owned());
                continue;
            }
            if matches!(next, '}' | ']') && plain.trim_end().ends_with(',') {
                plain.truncate(plain.trim_end().len() - 1);
            }
            plain.push_str(token);
        }
        let value = match plain.trim() {
            "" => json!({}),
            plain => serde_json::from_str(plain).unwrap_or_default(),
        };
        Self { value, comments }
    }
}

/// The length of the string at the start of a text, including its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
