//! `cargo xtask messages`: the messages of the program in one file, so that all of them can be read together and a change
//! of one shows up in a diff.

use std::{fmt::Write as _, fs};

use crate::{
    gave_help, root,
    tidy::{self, source},
};

/// The file with the texts.
pub(crate) const PATH: &str = "xtask/messages.txt";

const HELP: &str = "\
cargo xtask messages

Write every message of the program to xtask/messages.txt: errors, hints, log lines and descriptions, that is, each
string of two or more words in crates/*/src outside tests and comments. The help pages are in docs/reference/cli.md,
and the texts of the console in crates/console. `cargo xtask tidy` fails if the file is not up to date. Read the
difference before you commit it.";

/// Words that start statements of SQL, which are not texts for people.
const SQL: &[&str] = &[
    "ALTER ", "BEGIN", "CREATE ", "DELETE ", "DROP ", "EXPLAIN ", "INSERT ", "PRAGMA ", "SELECT ",
    "UPDATE ", "VACUUM ", "WITH ",
];

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if gave_help(args, HELP)? {
        return Ok(());
    }
    let text = collect(&tidy::sources()?);
    fs::write(root().join(PATH), text).map_err(|error| format!("cannot write {PATH}: {error}"))
}

/// The contents of the file.
pub(crate) fn collect(files: &[source::File]) -> String {
    let mut text =
        "# Every message of the program, by file. Written by `cargo xtask messages`.\n".to_owned();
    for file in files {
        let messages: Vec<String> = source::strings(&file.source.text)
            .map(unfold)
            .filter(|string| is_message(string))
            .collect();
        if messages.is_empty() {
            continue;
        }
        let _ = write!(text, "\n{}\n", file.path);
        for message in messages {
            let _ = writeln!(text, "  {message}");
        }
    }
    text
}

/// The literal on one line: a break that the compiler skips is removed, and another one is spelled `\n`.
fn unfold(literal: &str) -> String {
    let mut parts = literal.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    let joined = parts.fold(first, |text, part| text + part.trim_start());
    joined.trim_end().replace('\n', "\\n")
}

/// Tests if a string has two words or more, and is not a statement of SQL.
fn is_message(string: &str) -> bool {
    let words = string.split([' ', '\n']);
    let words = words.filter(|word| word.chars().filter(|c| c.is_alphabetic()).count() > 1);
    words.count() > 1
        && !SQL
            .iter()
            .any(|start| string.trim_start().starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_listed_by_file() {
        let file = |path, text| source::File::new(path, text).unwrap();
        let files = [
            file(
                "crates/a/src/b.rs",
                "// not \"this one\"\nfn c() { d(\"no\", \"the server \\\"x\\\"\"); e(\"two \\\n   lines\", r#\"raw \"text\" too\"#) }\n\
                 #[error(\"cannot {f}\")]\n#[cfg(test)]\nmod tests { const G: &str = \"nor this\"; }",
            ),
            file("crates/a/src/h.rs", "const I: &str = \"SELECT a FROM b\";"),
        ];
        let expected =
            "\ncrates/a/src/b.rs\n  the server \\\"x\\\"\n  two lines\n  raw \"text\" too\n";
        let text = collect(&files);
        assert!(text.ends_with(expected), "{text}");
    }
}
