//! A server that is not started until a person agrees: everything that would be started.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    commands::visible::visible_line,
    print::{self, shell_word},
};

/// A start that waits for a person, as the gateway tells it.
#[derive(Debug, Deserialize)]
pub(in crate::commands) struct Start {
    program: String,
    pub(super) fingerprint: String,
    #[serde(default)]
    settings: Map<String, Value>,
    /// The secrets and variables of the gateway that it would get.
    #[serde(default)]
    references: Vec<String>,
}

impl Start {
    /// What would be started, a line for each part.
    pub(in crate::commands) fn lines(&self) -> String {
        let mut text = format!(
            "program      {}\nfingerprint  {}\n",
            visible_line(&self.program),
            visible_line(&self.fingerprint)
        );
        for (key, value) in &self.settings {
            let note = match key.as_str() {
                "env" | "headers" => " (names only)",
                _ => "",
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{:<11}  {}{note}", visible_line(key), words(value));
        }
        if !self.references.is_empty() {
            let references = visible_line(&self.references.join(" "));
            let _ = writeln!(text, "gets         {references}");
        }
        text
    }

    /// The same under a line that says what it is about.
    pub(super) fn page(&self, server: &str) -> String {
        let server = print::one_line(server);
        let lines = self.lines();
        format!("{server} is not started until you approve it\n{lines}")
    }
}

/// What to do about it.
pub(super) fn advise(server: &str) {
    let word = shell_word(server);
    print::hint(&format!(
        "`switchboard trust approve {word}` starts it, `switchboard remove {word}` forgets it"
    ));
}

/// A value as the words of a command line.
fn words(value: &Value) -> String {
    match value {
        Value::Array(all) => {
            let all: Vec<_> = all.iter().map(words).collect();
            all.join(" ")
        }
        Value::String(text) => shell_word(text),
        other => visible_line(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_printed() {
        let start: Start = serde_json::from_str(
            r#"{"program": "sh -c 'a b'", "fingerprint": "f00", "settings":
                {"cwd": "/a b", "env": ["KEY", "x\u001b"], "inheritEnv": true, "pids": 9},
                "references": ["${secret:gh}", "${env:HOME}"]}"#,
        )
        .unwrap();
        assert_eq!(
            start.lines(),
            "program      sh -c 'a b'\nfingerprint  f00\ncwd          '/a b'\n\
             env          KEY $'x\\U0000001B' (names only)\ninheritEnv   true\npids         9\n\
             gets         ${secret:gh} ${env:HOME}\n"
        );
    }
}
