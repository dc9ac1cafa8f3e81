//! `cargo xtask tidy`: the rules of the house that no compiler knows.

use std::{fs, path::Path, process::Command};

use crate::{USAGE, is_help, root};

const HELP: &str = "\
cargo xtask tidy

Checks every file that git knows or would add, and shows each problem as path:line: what, and what to do.

  - a Rust file starts with a head, `//!`, that says what it is for
  - a Rust file has at most 800 lines, the tests at its end not counted
  - no trailing white space, no notes to self, no paths of one machine
  - a crate in crates/ depends on those below it only (the table is in xtask/src/tidy.rs)

The bytes in fuzz/seeds and lock files are left alone.";

const MAX_LINES: usize = 800;

/// Which of our own crates each crate may depend on: the floors of the house.
const LAYERS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("machine", &["wire"]),
    ("client", &["machine", "wire"]),
    ("simulation", &["machine", "wire"]),
    ("files", &[]),
    ("contain", &["files"]),
    ("embed", &[]),
    ("config", &["approvals", "files", "redact", "wire"]),
    ("clients", &["files"]),
    ("store", &[]),
    ("catalog", &["files", "wire"]),
    ("results", &["files", "wire"]),
    ("schema", &["wire"]),
    ("search", &["embed", "wire"]),
    ("recall", &["embed", "search"]),
    (
        "memory",
        &["client", "embed", "recall", "schema", "store", "wire"],
    ),
    ("trust", &["files", "wire"]),
    ("redact", &["wire"]),
    ("approvals", &["redact", "schema", "wire"]),
    ("provider", &["client", "wire"]),
    ("console", &[]),
    (
        "base",
        &[
            "approvals",
            "catalog",
            "client",
            "config",
            "files",
            "redact",
            "store",
            "trust",
            "wire",
        ],
    ),
    (
        "outbound",
        &[
            "base", "catalog", "client", "config", "contain", "embed", "files", "memory", "redact",
            "search", "store", "trust", "wire",
        ],
    ),
    (
        "core",
        &[
            "approvals",
            "base",
            "catalog",
            "client",
            "config",
            "files",
            "outbound",
            "provider",
            "redact",
            "results",
            "schema",
            "search",
            "store",
            "trust",
            "wire",
        ],
    ),
    (
        "inbound",
        &[
            "approvals",
            "base",
            "client",
            "config",
            "contain",
            "core",
            "outbound",
            "store",
            "wire",
        ],
    ),
    (
        "admin",
        &[
            "approvals",
            "base",
            "catalog",
            "client",
            "config",
            "console",
            "core",
            "inbound",
            "outbound",
            "redact",
            "search",
            "store",
            "trust",
            "wire",
        ],
    ),
    (
        "gateway",
        &[
            "admin", "base", "config", "contain", "core", "files", "inbound", "outbound", "store",
        ],
    ),
    (
        "switchboard",
        &[
            "admin",
            "approvals",
            "base",
            "catalog",
            "client",
            "clients",
            "config",
            "contain",
            "files",
            "gateway",
            "schema",
            "store",
            "wire",
        ],
    ),
];

/// The crates without a runtime and a network, as `ARCHITECTURE.md` says, and the dependencies that would
/// bring them in.
const PURE: [&str; 13] = [
    "wire",
    "machine",
    "approvals",
    "catalog",
    "clients",
    "config",
    "embed",
    "recall",
    "redact",
    "results",
    "schema",
    "search",
    "trust",
];
const IMPURE: [&str; 5] = ["tokio", "reqwest", "hyper", "tracing", "rand"];

/// Notes to self, cut in two so that this file passes.
const NOTES: [&str; 4] = [
    concat!("to", "do!"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("db", "g!"),
];

/// Where people keep their work, each on their own machine.
const HOMES: [&str; 3] = [
    concat!("/", "root"),
    concat!("/", "home/"),
    concat!("/", "work/"),
];

/// Files in which home directories are a subject: rules match them under every name that they have.
const ABOUT_HOMES: [&str; 5] = [
    "crates/approvals/src/rules/pattern.rs",
    "crates/approvals/tests/it/evasions.rs",
    "crates/approvals/tests/it/hosts.rs",
    "crates/approvals/tests/it/shells.rs",
    "crates/approvals/tests/it/spellings.rs",
];

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
    let mut problems = 0;
    for path in tracked(&root)? {
        // What is no text, or is deleted and not yet committed, is not judged.
        let Ok(text) = fs::read_to_string(root.join(&path)) else {
            continue;
        };
        for Problem { line, what } in check(&path, &text) {
            println!("{path}:{line}: {what}");
            problems += 1;
        }
    }
    match problems {
        0 => Ok(()),
        1 => Err("1 problem".to_owned()),
        _ => Err(format!("{problems} problems")),
    }
}

/// The files that git knows, and those it would add.
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
    let mut problems = check_lines(text, !ABOUT_HOMES.contains(&path));
    if has_extension(path, "rs") {
        problems.extend(check_head(text));
        problems.extend(check_length(text));
    }
    if let Some(name) = crate_of_manifest(path) {
        problems.extend(check_layers(name, text));
    }
    problems.sort_by_key(|problem| problem.line);
    problems
}

/// Bytes made to be odd, and text that no one wrote.
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
                add(format!("`{note}`: do it now, or open an issue"));
            }
        }
        for home in HOMES.into_iter().filter(|_| homes) {
            if has_word(line, home) {
                add(format!(
                    "`{home}` is a path of one machine: make it relative, or ask the environment"
                ));
            }
        }
    }
    problems
}

/// Whether `word` stands in `line` and is not part of a longer word or path. An edge of `word` that
/// is no letter needs no boundary.
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
        what: "no head: start the file with a `//!` line that says what it is for".to_owned(),
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
            "{length} lines without the tests, {MAX_LINES} are allowed: find the two things it does"
        ),
    })
}

/// The folder in `crates/` that this is the manifest of.
fn crate_of_manifest(path: &str) -> Option<&str> {
    let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!name.contains('/')).then_some(name)
}

fn check_layers(name: &str, manifest: &str) -> Vec<Problem> {
    let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
        return vec![Problem {
            line: 1,
            what: format!("`{name}` is on no floor: add it to LAYERS in xtask/src/tidy.rs"),
        }];
    };
    let mut problems = Vec::new();
    for (line, dependency) in dependencies(manifest) {
        let ours = dependency.strip_prefix("switchboard-");
        if ours.is_some_and(|ours| !allowed.contains(&ours)) {
            let below = match allowed {
                [] => "none of ours".to_owned(),
                allowed => format!("only {}", allowed.join(", ")),
            };
            let what =
                format!("`{name}` may use {below}: turn the arrow round, or move the code down");
            problems.push(Problem { line, what });
        }
        let family = dependency.split(['-', '_']).next().unwrap_or(&dependency);
        if PURE.contains(&name) && IMPURE.contains(&family) {
            let what =
                format!("`{name}` has no runtime and no network: use `{dependency}` a floor up");
            problems.push(Problem { line, what });
        }
    }
    problems
}

/// The packages that a manifest depends on outside of tests, with the line of each.
fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            inside = is_dependency_table(table);
            // [dependencies.NAME]
            if let Some((parent, name)) = table.rsplit_once('.')
                && is_dependency_table(parent)
            {
                found.push((index + 1, unquoted(name)));
            }
        } else if inside
            && !line.starts_with('#')
            && let Some((key, value)) = line.split_once('=')
        {
            let renamed = value
                .split_once("package")
                .and_then(|(_, rest)| rest.split('"').nth(1));
            let key = key.split('.').next().unwrap_or(key);
            found.push((index + 1, unquoted(renamed.unwrap_or(key))));
        }
    }
    found
}

fn is_dependency_table(table: &str) -> bool {
    let last = table.rsplit('.').next().unwrap_or(table);
    matches!(last, "dependencies" | "build-dependencies")
}

fn unquoted(name: &str) -> String {
    name.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(problems: &[Problem]) -> Vec<usize> {
        problems.iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn a_rust_file_starts_with_a_head() {
        assert_eq!(check("a.rs", "//! Says what.\n"), []);
        assert_eq!(lines(&check("a.rs", "use std::fmt;\n//! Late.\n")), [1]);
        assert_eq!(lines(&check("a.rs", "")), [1]);
        assert_eq!(check("a.toml", "[package]\n"), []);
    }

    #[test]
    fn the_tests_at_the_end_are_not_counted() {
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
    fn white_space_at_the_end_of_a_line_is_found() {
        assert_eq!(lines(&check("a.md", "a\nb \nc\t\nd\r\n")), [2, 3, 4]);
        assert_eq!(check("fuzz/seeds/sse/a", "a \n"), []);
        assert_eq!(check("Cargo.lock", "a \n"), []);
    }

    #[test]
    fn notes_to_self_are_words() {
        for note in NOTES {
            assert_eq!(lines(&check("a.sh", &format!("\n# {note}: x\n"))), [2]);
            assert_eq!(lines(&check("a.sh", &format!("({note})"))), [1]);
            assert_eq!(check("a.sh", &format!("a_{note}")), []);
        }
        assert_eq!(check("a.sh", &format!("mktemp a.{}", "X".repeat(6))), []);
    }

    #[test]
    fn paths_of_one_machine_are_found_where_they_start() {
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

    #[test]
    fn no_arrow_runs_up() {
        let manifest = "[package]\nname = \"x\"\n\n[dependencies]\nbytes.workspace = true\n\
                        switchboard-wire.workspace = true\n";
        assert_eq!(check("crates/machine/Cargo.toml", manifest), []);
        assert_eq!(check("crates/client/Cargo.toml", manifest), []);
        assert_eq!(lines(&check("crates/wire/Cargo.toml", manifest)), [6]);
        assert_eq!(lines(&check("crates/unheard-of/Cargo.toml", manifest)), [1]);
        assert_eq!(check("fuzz/Cargo.toml", manifest), []);
    }

    #[test]
    fn the_lower_floors_know_no_runtime() {
        let path = "crates/machine/Cargo.toml";
        for name in IMPURE {
            for line in [
                format!("{name} = \"1\""),
                format!("{name}.workspace = true"),
                format!("{name}-util = {{ version = \"1\" }}"),
                format!("other = {{ package = \"{name}\" }}"),
            ] {
                let manifest = format!("[dependencies]\n{line}\n");
                assert_eq!(lines(&check(path, &manifest)), [2], "{line}");
                assert_eq!(check("crates/client/Cargo.toml", &manifest), []);
                assert_eq!(check(path, &format!("[dev-dependencies]\n{line}\n")), []);
            }
            let table = format!("[dependencies.{name}]\nversion = \"1\"\n");
            assert_eq!(lines(&check(path, &table)), [1]);
            let target = format!("[target.'cfg(unix)'.dependencies]\n{name} = \"1\"\n");
            assert_eq!(lines(&check(path, &target)), [2]);
        }
    }
}
