//! The definitions that a trust request is about, as they are held now.

use std::fmt::Write as _;

use serde::Deserialize;
use switchboard_rest::trust::HeldTool;
use switchboard_terminal::{
    error::Error,
    print::{self, shell_word},
};

use super::show;
use crate::link::Link;

/// A definition that a trust request names.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Asked {
    #[serde(rename = "name")]
    tool: String,
    fingerprint: String,
}

/// The definitions of one request.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    /// Each definition as `switchboard trust show` prints it.
    pub(crate) text: String,
    /// Definitions that could not be shown, with the reason. A request with any of them cannot be approved
    /// from this text.
    pub(crate) unread: Vec<String>,
}

impl Definitions {
    /// Fetches the definitions that a request about this server names.
    pub(crate) fn read(link: &Link, server: &str, asked: &[Asked]) -> Result<Self, Error> {
        let mut held = super::ask_one(link, server)?.held;
        let mut all = Self::default();
        for one in asked {
            let place = held.iter().position(|held| held.tool == one.tool);
            let mut found = place.map(|place| held.swap_remove(place));
            if let Some(held) = &mut found {
                super::read_omitted(link, server, held)?;
            }
            all.add(server, one, found.as_ref());
        }
        Ok(all)
    }

    fn add(&mut self, server: &str, asked: &Asked, held: Option<&HeldTool>) {
        let why = match held {
            None => "is no longer held",
            Some(held) if held.fingerprint != asked.fingerprint => "has changed since the request",
            Some(held) if held.definition.is_none() => "is too large to be stored and shown",
            Some(held) => {
                // Writing to a string cannot fail.
                let _ = write!(self.text, "\n{}", show::to_decide(held));
                return;
            }
        };
        let name = format!("{server}:{}", asked.tool);
        self.unread.push(format!("{} {why}", shell_word(&name)));
        let _ = writeln!(self.text, "\n{} {why}", print::one_line(&name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(asked: &str, held: &str) -> Definitions {
        let asked: Asked = serde_json::from_str(asked).unwrap();
        let held: Option<HeldTool> = serde_json::from_str(held).unwrap();
        let mut all = Definitions::default();
        all.add("sky", &asked, held.as_ref());
        all
    }

    #[test]
    fn only_definition_with_the_fingerprint_is_shown() {
        let asked = r#"{"name": "a", "fingerprint": "f1", "why": "new"}"#;
        let held = |fingerprint: &str, definition: &str| {
            format!(
                r#"{{"name": "sky:a", "tool": "a", "why": "new", "fingerprint": "{fingerprint}", "sinceMs": 0,
                    "definition": {definition}}}"#
            )
        };
        let says = r#"{"name": "a", "description": "Reads keys."}"#;
        let shown = read(asked, &held("f1", says));
        assert!(shown.text.contains("Reads keys."), "{shown:?}");
        assert!(shown.unread.is_empty(), "{shown:?}");
        for (held, why) in [
            ("null".to_owned(), "sky:a is no longer held"),
            (held("f2", says), "sky:a has changed since the request"),
            (
                held("f1", "null"),
                "sky:a is too large to be stored and shown",
            ),
        ] {
            let shown = read(asked, &held);
            assert_eq!(shown.unread, [why]);
            assert!(!shown.text.contains("Reads keys."), "{shown:?}");
        }
    }

    #[test]
    fn truncated_changes_are_followed_by_the_definition() {
        let asked = r#"{"name": "a", "fingerprint": "f1", "why": "changed"}"#;
        let held = |after: &str| {
            format!(
                r#"{{"name": "sky:a", "tool": "a", "why": "changed", "fingerprint": "f1", "sinceMs": 0,
                    "diff": "description\n  + x\n", "definition": {{"name": "a", "description": "x y"}},
                    "changes": [{{"field": "description", "before": null, "after": "{after}"}}]}}"#
            )
        };
        let cut = read(asked, &held("x… (2 more characters)"));
        assert!(cut.text.contains("\ndefinition\n"), "{cut:?}");
        let whole = read(asked, &held("x"));
        assert!(!whole.text.contains("\ndefinition\n"), "{whole:?}");
    }
}
