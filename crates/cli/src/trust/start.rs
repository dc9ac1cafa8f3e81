//! A server that is not started until the user approves it: everything that would be started.

use std::fmt::Write as _;

use serde_json::Value;
use switchboard_rest::trust::Start;
use switchboard_terminal::{
    print::{self, shell_word},
    visible::{folded, visible_line},
};

/// The parts of a start, one per line.
pub(crate) fn lines(start: &Start) -> String {
    let mut text = format!(
        "program      {}\nfingerprint  {}\n",
        visible_line(&start.program),
        visible_line(&start.fingerprint)
    );
    for (key, value) in &start.settings {
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
    if !start.references.is_empty() {
        let references = visible_line(&start.references.join(" "));
        let _ = writeln!(text, "uses         {references}");
    }
    text
}

/// The parts of a start under a heading.
pub(super) fn page(start: &Start, server: &str) -> String {
    let server = print::one_line(server);
    let lines = folded(&lines(start));
    format!("{server} is held until you approve it\n{lines}")
}

/// Prints hints about the next steps.
pub(super) fn advise(server: &str) {
    let word = shell_word(server);
    print::hint(&format!(
        "`switchboard trust approve {word}` starts it, `switchboard remove {word}` removes it"
    ));
}

/// A variable or a header. The gateway does not reveal a value that is a credential.
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
            lines(&start),
            "program      sh -c 'a b'\nfingerprint  f00\ncwd          '/a b'\n\
             env          A='(a token, not shown)'\nenv          KEY (a token, not shown)\n\
             env          $'x\\U0000001B'=$'a\\U0000200B=b'\nfile         not found\n\
             inheritEnv   true\npids         9\nrunArgs      -q 'a b'\n\
             uses         ${secret:gh} ${env:HOME}\n"
        );
    }
}
