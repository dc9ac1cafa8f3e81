//! A server that is not started until a person agrees: everything that would be started.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_terminal::{
    print::{self, shell_word},
    visible::{folded, visible_line},
};

/// A start that waits for a person, as the gateway tells it.
#[derive(Debug, Deserialize)]
pub(crate) struct Start {
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
    pub(crate) fn lines(&self) -> String {
        let mut text = format!(
            "program      {}\nfingerprint  {}\n",
            visible_line(&self.program),
            visible_line(&self.fingerprint)
        );
        for (key, value) in &self.settings {
            let key = visible_line(key);
            // Writing to a string cannot fail.
            let mut line = |words: &str| writeln!(text, "{key:<11}  {words}").unwrap_or_default();
            match value {
                Value::Object(members) => {
                    for (name, value) in members {
                        line(&member(name, value));
                    }
                }
                Value::Null => line("not found"),
                other => line(&words(other)),
            }
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
        let lines = folded(&self.lines());
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

/// A variable or a header. The gateway does not tell a value that is a credential.
fn member(name: &str, value: &Value) -> String {
    let name = shell_word(name);
    match value {
        Value::Null => format!("{name} (a token, not shown)"),
        other => format!("{name}={}", words(other)),
    }
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
                {"cwd": "/a b", "env": {"KEY": null, "A": "(a token, not shown)", "x\u001b": "a\u200b=b"}, "file": null,
                "inheritEnv": true, "pids": 9, "runArgs": ["-q", "a b"]},
                "references": ["${secret:gh}", "${env:HOME}"]}"#,
        )
        .unwrap();
        assert_eq!(
            start.lines(),
            "program      sh -c 'a b'\nfingerprint  f00\ncwd          '/a b'\n\
             env          A='(a token, not shown)'\nenv          KEY (a token, not shown)\n\
             env          $'x\\U0000001B'=$'a\\U0000200B=b'\nfile         not found\n\
             inheritEnv   true\npids         9\nrunArgs      -q 'a b'\n\
             gets         ${secret:gh} ${env:HOME}\n"
        );
    }
}
