//! `cargo xtask tidy`: checks the project's own rules, which no compiler knows.

mod clock;
mod cycles;
mod layers;
mod lines;
mod links;
mod once;
mod places;
mod pure;
mod source;
mod words;

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use self::source::File;
use crate::{USAGE, is_help, root};

const HELP: &str = "\
cargo xtask tidy

Checks every file that git knows or would add, and shows each problem as path:line: what, and what to do.

  - start a Rust file with a line `//!` that says what the file is for
  - keep a Rust file within 800 lines, the tests at its end not counted
  - leave no trailing white space, no notes to self, no paths of one machine
  - let a crate in crates/ depend only on those below it (layers.rs)
  - let at most 3 modules side by side depend on each other in a cycle (cycles.rs)
  - use no runtime, clock, thread or socket in crates that have none, as ARCHITECTURE.md says (pure.rs)
  - write `unsafe` only in the files that are listed for it (once.rs)
  - call the function that exists for files that are replaced, hexadecimal digits, percent-encoding and names
    in JSON, and do not write another one (once.rs)
  - open no comment with What, Whether, Who or How, name the actor, and keep the names of tests within 8 words
    (words.rs)
  - let every link in Markdown lead to a file or a heading (links.rs)
  - let no test want something to be over within a time: a busy machine fails it (clock.rs)

These files are in xtask/src/tidy, and have tables of what may break a rule. Lower a number there when you can,
and take out an entry that nothing needs: tidy says so. The rules of cycles.rs, pure.rs and once.rs are not for
tests, but that about `unsafe` is; that of clock.rs is for nothing else.

The length of functions is left to clippy: `too_many_lines` allows 100 lines. The bytes in fuzz/seeds and lock
files are left alone.";

#[derive(Debug, PartialEq, Eq)]
struct Problem {
    line: usize,
    what: String,
}

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    match args {
        [] => {}
        [arg] if is_help(arg) => {
            println!("{USAGE} {HELP}");
            return Ok(());
        }
        [arg, ..] => return Err(format!("{USAGE} {HELP}\n\nunexpected argument {arg:?}")),
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
}
