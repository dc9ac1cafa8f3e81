//! `cargo xtask tidy`: checks the project's own rules, which no compiler knows.

mod clock;
mod cycles;
mod layers;
mod lines;
mod links;
mod once;
mod places;
mod pure;
pub(crate) mod source;
mod words;

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use self::source::File;
use crate::{gave_help, messages, root};

const HELP: &str = "\
cargo xtask tidy

Check every file that git tracks or would add. Each problem is printed as path:line: problem: fix.

  - A Rust file starts with a `//!` line that states its purpose
  - A Rust file has at most 800 lines, not counting the tests at its end
  - No trailing white space, no notes to self, no paths of one machine
  - A crate in crates/ depends only on crates of lower layers (layers.rs)
  - At most 3 sibling modules depend on each other in a cycle (cycles.rs)
  - No runtime, clock, thread or socket in the crates that have none according to ARCHITECTURE.md (pure.rs)
  - `unsafe` only in the files that are listed for it (once.rs)
  - One implementation each of replacing files, hexadecimal digits, percent-encoding and names in JSON; other
    code calls it (once.rs)
  - No comment opens with What, Whether, Who or How; comments name the actor; names of tests have at most 8 words
    (words.rs)
  - Every link in Markdown leads to a file or a heading (links.rs)
  - xtask/messages.txt has every message of the program (`cargo xtask messages` writes it)
  - No test has an upper bound on a duration, because a busy machine fails it (clock.rs)

These files are in xtask/src/tidy. Some contain tables of exceptions. Lower a number there when you can, and remove
entries that are no longer needed; tidy reports them. The rules of cycles.rs, pure.rs and once.rs do not apply to
tests, except for `unsafe`; the rule of clock.rs applies only to tests.

The length of functions is checked by clippy (`too_many_lines`, 100 lines). The files in fuzz/seeds and lock files
are not checked.";

#[derive(Debug, PartialEq, Eq)]
struct Problem {
    line: usize,
    what: String,
}

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if gave_help(args, HELP)? {
        return Ok(());
    }
    let root = root();
    let mut problems = Vec::new();
    let mut sources = Vec::new();
    let mut bounds = Vec::new();
    let mut texts = BTreeMap::new();
    for path in tracked(&root)? {
        let file = root.join(&path);
        // Files that are not text, or are deleted but not yet committed, are skipped.
        let Ok(text) = fs::read_to_string(&file) else {
            if file.exists() {
                texts.insert(path, String::new());
            }
            continue;
        };
        sources.extend(File::new(&path, &text));
        bounds.push((path.clone(), clock::find(&path, &text)));
        let found = check(&path, &text).into_iter();
        problems.extend(found.map(|problem| (path.clone(), problem)));
        texts.insert(path, text);
    }
    problems.extend(links::check(&texts));
    problems.extend(check_messages(&texts, &messages::collect(&sources)));
    problems.extend(clock::check(&bounds, clock::KNOWN));
    problems.extend(cycles::check(&sources));
    for rule in once::RULES.iter().chain(pure::RULES) {
        problems.extend(rule.check(&sources));
    }
    for (path, Problem { line, what }) in &problems {
        println!("{path}:{line}: {what}");
    }
    match problems.len() {
        0 => Ok(()),
        1 => Err("1 problem".to_owned()),
        count => Err(format!("{count} problems")),
    }
}

/// The sources of all crates.
pub(crate) fn sources() -> Result<Vec<File>, String> {
    let root = root();
    let files = tracked(&root)?.into_iter().filter_map(|path| {
        let text = fs::read_to_string(root.join(&path)).ok()?;
        File::new(&path, &text)
    });
    Ok(files.collect())
}

/// Compares the stored texts of the program with the current ones.
fn check_messages(texts: &BTreeMap<String, String>, current: &str) -> Option<(String, Problem)> {
    let stored = texts.get(messages::PATH).map_or("", String::as_str);
    if stored == current {
        return None;
    }
    let same = stored.lines().zip(current.lines());
    let line = 1 + same.take_while(|(old, new)| old == new).count();
    let what =
        "the texts of the program changed: run `cargo xtask messages` and read the difference";
    Some((
        messages::PATH.to_owned(),
        Problem {
            line,
            what: what.to_owned(),
        },
    ))
}

/// The files that git tracks, and the untracked ones that it would add.
fn tracked(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .current_dir(root)
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .output()
        .map_err(|error| format!("git ls-files: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git ls-files: {}", said.trim()));
    }
    let listed = String::from_utf8_lossy(&output.stdout);
    let mut paths: Vec<String> = listed.split_terminator('\0').map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn check(path: &str, text: &str) -> Vec<Problem> {
    if is_exempt(path) {
        return Vec::new();
    }
    let mut problems = lines::check(path, text);
    problems.extend(words::check(path, text));
    if let Some(name) = layers::crate_of_manifest(path) {
        problems.extend(layers::check(name, text));
        problems.extend(pure::check(name, text));
    }
    problems.sort_by_key(|problem| problem.line);
    problems
}

/// Tests if a file is exempt: fuzz seeds are malformed on purpose, and lock files are generated.
fn is_exempt(path: &str) -> bool {
    path.starts_with("fuzz/seeds/")
        || has_extension(path, "lock")
        || path.ends_with("package-lock.json")
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|own| own == extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn lines(problems: &[Problem]) -> Vec<usize> {
        problems.iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn changed_message_is_reported() {
        let path = messages::PATH.to_owned();
        let texts = BTreeMap::from([(path.clone(), "a\nb\n".to_owned())]);
        assert_eq!(check_messages(&texts, "a\nb\n"), None);
        let problem = check_messages(&texts, "a\nc\n");
        assert_eq!(problem.map(|(at, found)| (at, found.line)), Some((path, 2)));
        assert!(check_messages(&BTreeMap::new(), "a\n").is_some());
    }
}
