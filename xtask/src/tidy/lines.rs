//! Rules about lines: how they end, words they may not contain, their number, and the head of a file.

use super::{Problem, has_extension};

const MAX_LINES: usize = 800;

/// The most lines in the body of a function, without blank lines and comments.
const MAX_FUNCTION_LINES: usize = 100;

/// Notes to self, split so that this file passes.
const NOTES: [&str; 4] = [
    concat!("to", "do!"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("db", "g!"),
];

/// Directories that exist on one developer's machine only.
const HOMES: [&str; 3] = [
    concat!("/", "root"),
    concat!("/", "home/"),
    concat!("/", "work/"),
];

/// Files that are about home directories: rules match every spelling of them.
const ABOUT_HOMES: [&str; 5] = [
    "crates/approvals/src/rules/pattern.rs",
    "crates/approvals/tests/it/evasions.rs",
    "crates/approvals/tests/it/hosts.rs",
    "crates/approvals/tests/it/shells.rs",
    "crates/approvals/tests/it/spellings.rs",
];

/// Checks one text file.
pub(super) fn check(path: &str, text: &str) -> Vec<Problem> {
    let mut problems = check_lines(text, !ABOUT_HOMES.contains(&path));
    if has_extension(path, "rs") {
        problems.extend(check_head(text));
        problems.extend(check_length(text));
        if path.contains("src/") {
            problems.extend(check_functions(text));
        }
    }
    problems
}

fn check_lines(text: &str, homes: bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        let mut add = |what: String| {
            let line = index + 1;
            problems.push(Problem { line, what });
        };
        if line.ends_with(|last: char| last.is_ascii_whitespace()) {
            add("trailing white space: remove it".to_owned());
        }
        for note in NOTES {
            if has_word(line, note) {
                add(format!("`{note}`: resolve it now, or open an issue"));
            }
        }
        for home in HOMES.into_iter().filter(|_| homes) {
            if has_word(line, home) {
                add(format!(
                    "`{home}` is a path of one machine: make it relative, or read it from the environment"
                ));
            }
        }
    }
    problems
}

/// Tests if `word` occurs in `line` outside of a longer word or path. An edge of `word` that is not a letter
/// needs no boundary.
fn has_word(line: &str, word: &str) -> bool {
    let joins = |other: char| other.is_alphanumeric() || "_-.".contains(other);
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        let after = after.filter(|_| word.ends_with(char::is_alphanumeric));
        !before.into_iter().chain(after).any(joins)
    })
}

fn check_head(text: &str) -> Option<Problem> {
    let first = text.lines().next().unwrap_or_default();
    (!first.starts_with("//!")).then(|| Problem {
        line: 1,
        what: "no file comment: start the file with a `//!` line that states its purpose"
            .to_owned(),
    })
}

fn check_length(text: &str) -> Option<Problem> {
    let lines: Vec<&str> = text.lines().collect();
    let tests = lines
        .windows(2)
        .rposition(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod tests {"));
    let length = tests.unwrap_or(lines.len());
    (length > MAX_LINES).then(|| Problem {
        line: MAX_LINES + 1,
        what: format!(
            "{length} lines without the tests, {MAX_LINES} are allowed: split it by responsibility"
        ),
    })
}

/// Finds functions that are too long. The source is formatted, so a function ends at the first closing brace
/// with the indentation of its head.
fn check_functions(text: &str) -> Vec<Problem> {
    let lines: Vec<&str> = text.lines().collect();
    let mut problems = Vec::new();
    for (start, line) in lines.iter().enumerate().filter(|(_, it)| is_function(it)) {
        let indent = &line[..line.len() - line.trim_start().len()];
        let is_end = |line: &&str| line.strip_prefix(indent) == Some("}");
        let head = lines[start..].iter().take_while(|it| !it.ends_with('{'));
        let body = lines[start..].iter().skip(head.count() + 1);
        let body = body.take_while(|it| !is_end(it));
        let code = body.filter(|it| !it.trim().is_empty() && !it.trim_start().starts_with("//"));
        let length = code.count();
        // A function without a body has no end of its own.
        if length > MAX_FUNCTION_LINES && !is_declaration(&lines[start..]) {
            problems.push(Problem {
                line: start + 1,
                what: format!(
                    "a function of {length} lines, {MAX_FUNCTION_LINES} are allowed: split it into named parts"
                ),
            });
        }
    }
    problems
}

/// Tests if the line is the head of a function.
fn is_function(line: &str) -> bool {
    let words = line.split_whitespace();
    let mut words = words.skip_while(|word| {
        matches!(
            *word,
            "pub" | "const" | "async" | "unsafe" | "extern" | "in"
        ) || word.starts_with("pub(")
    });
    words.next() == Some("fn")
}

/// Tests if the function that starts here has no body, as in a trait.
fn is_declaration(lines: &[&str]) -> bool {
    let end = lines.iter().find(|line| line.ends_with(['{', '}', ';']));
    end.is_some_and(|line| line.ends_with(';'))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{check, tests::lines},
        {HOMES, MAX_FUNCTION_LINES, MAX_LINES, NOTES},
    };

    #[test]
    fn long_function_is_found_at_its_head() {
        let body = |length: usize| "        a();\n\n        // Why.\n".repeat(length);
        let file = |length: usize| {
            let (long, short) = (body(length), body(1));
            format!(
                "//! Head.\ntrait T {{\n    fn declared(&self);\n}}\nimpl A {{\n    pub(crate) async fn long(\n        a: A,\n    ) {{\n{long}    }}\n\n    fn short() {{\n{short}    }}\n}}\n"
            )
        };
        assert_eq!(check("src/a.rs", &file(MAX_FUNCTION_LINES)), []);
        let longer = file(MAX_FUNCTION_LINES + 1);
        assert_eq!(lines(&check("src/a.rs", &longer)), [6]);
        // Tests may be longer.
        assert_eq!(check("tests/it/a.rs", &longer), []);
    }

    #[test]
    fn rust_file_starts_with_a_module_comment() {
        assert_eq!(check("a.rs", "//! Says what.\n"), []);
        assert_eq!(lines(&check("a.rs", "use std::fmt;\n//! Late.\n")), [1]);
        assert_eq!(lines(&check("a.rs", "")), [1]);
        assert_eq!(check("a.toml", "[package]\n"), []);
    }

    #[test]
    fn tests_at_the_end_are_not_counted() {
        let body = |length: usize| format!("//! Head.\n{}", "\n".repeat(length - 1));
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(MAX_LINES));
        assert_eq!(check("a.rs", &body(MAX_LINES)), []);
        assert_eq!(check("a.rs", &(body(MAX_LINES) + &tests)), []);
        assert_eq!(
            lines(&check("a.rs", &(body(MAX_LINES + 1) + &tests))),
            [MAX_LINES + 1]
        );
        assert_eq!(lines(&check("a.rs", &body(MAX_LINES + 1))), [MAX_LINES + 1]);
    }

    #[test]
    fn trailing_white_space_is_found() {
        assert_eq!(lines(&check("a.md", "a\nb \nc\t\nd\r\n")), [2, 3, 4]);
        assert_eq!(check("fuzz/seeds/sse/a", "a \n"), []);
        assert_eq!(check("Cargo.lock", "a \n"), []);
    }

    #[test]
    fn notes_to_self_match_whole_words() {
        for note in NOTES {
            assert_eq!(lines(&check("a.sh", &format!("\n# {note}: x\n"))), [2]);
            assert_eq!(lines(&check("a.sh", &format!("({note})"))), [1]);
            assert_eq!(check("a.sh", &format!("a_{note}")), []);
        }
        assert_eq!(check("a.sh", &format!("mktemp a.{}", "X".repeat(6))), []);
    }

    #[test]
    fn machine_specific_paths_are_found() {
        let [root, home, work] = HOMES;
        for path in [
            root.to_owned(),
            format!("{root}/x"),
            format!("{home}me"),
            format!("{work}x"),
        ] {
            assert_eq!(
                lines(&check("a.md", &format!("see \"{path}\""))),
                [1],
                "{path}"
            );
            assert_eq!(check("a.md", &format!("see https://example.com{path}")), []);
        }
        assert_eq!(check("a.md", &format!("{root}s and crates{work}x")), []);
    }
}
