//! Golden files: the output of each command, one file per command and width.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use super::stage::{Answer, Stage};

const HOW_TO_UPDATE: &str = "\
If this is what it should print, update the snapshots and look at what changed:
  UPDATE_SNAPSHOTS=1 cargo nextest run -p switchboard --test it -E 'test(snapshots)'
  git diff crates/switchboard/tests/snapshots";

/// Lines shown around a difference.
const CONTEXT: usize = 2;

/// The files of one test at one width, as they are written.
pub(super) struct Book {
    pub(super) columns: u16,
    scene: &'static str,
    files: BTreeMap<&'static str, File>,
}

#[derive(Default)]
struct File {
    scene: &'static str,
    text: String,
}

impl Book {
    pub(super) fn new(columns: u16) -> Self {
        Self {
            columns,
            scene: "",
            files: BTreeMap::new(),
        }
    }

    /// Names the circumstances of the following commands.
    pub(super) fn scene(&mut self, scene: &'static str) {
        self.scene = scene;
    }

    /// Runs commands, and records the output of each.
    pub(super) fn run(&mut self, file: &'static str, stage: &Stage, commands: &[&[&str]]) {
        for args in commands {
            let answer = stage.run(args);
            self.add(file, args, &answer);
        }
    }

    /// Runs a command with long output, and records its first lines.
    pub(super) fn first_lines(
        &mut self,
        file: &'static str,
        stage: &Stage,
        args: &[&str],
        lines: usize,
    ) {
        let mut answer = stage.run(args);
        let first: Vec<&str> = answer.text.lines().take(lines).collect();
        answer.text = format!("{}\n…\n", first.join("\n"));
        self.add(file, args, &answer);
    }

    /// Runs a command that asks questions, and types an answer to each.
    pub(super) fn converse(
        &mut self,
        file: &'static str,
        stage: &Stage,
        args: &[&str],
        typed: &[(&str, &str)],
    ) {
        let answer = stage.converse(args, typed);
        self.add(file, args, &answer);
    }

    pub(super) fn add(&mut self, file: &'static str, args: &[&str], answer: &Answer) {
        let file = self.files.entry(file).or_default();
        if file.scene != self.scene {
            file.scene = self.scene;
            let _ = write!(file.text, "# {}\n\n", self.scene);
        }
        let words: Vec<String> = args.iter().map(|word| quoted(word)).collect();
        let words = answer.scrub(&words.join(" "));
        let line = format!("$ switchboard {words}");
        let _ = write!(file.text, "{}\n{}", line.trim_end(), answer.text);
        if !file.text.ends_with('\n') {
            file.text.push('\n');
        }
        if answer.code != 0 {
            let _ = writeln!(file.text, "[exit {}]", answer.code);
        }
        file.text.push('\n');
    }

    /// Compares all files with the stored ones, and reports the differences of each.
    pub(super) fn check(self, expected: &[&str]) {
        let written: Vec<&str> = self.files.keys().copied().collect();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(
            written, expected,
            "FILES of this group are not what it writes"
        );
        let mut different = String::new();
        for (name, file) in &self.files {
            if let Err(diff) = compare(name, self.columns, file.text.trim_end()) {
                different.push_str(&diff);
                different.push('\n');
            }
        }
        assert!(different.is_empty(), "\n\n{different}{HOW_TO_UPDATE}\n");
    }
}

/// An argument as a user would type it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:@,*".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Tests if the files are to be updated.
pub(super) fn is_updating() -> bool {
    env::var_os("UPDATE_SNAPSHOTS").is_some()
}

pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots")
}

/// Compares a text with the stored one, or stores it.
fn compare(name: &str, columns: u16, text: &str) -> Result<(), String> {
    let file = format!("{name}.{columns}.txt");
    let path = folder().join(&file);
    let text = format!("{text}\n");
    let kept = fs::read_to_string(&path).unwrap_or_default();
    if kept == text {
        return Ok(());
    }
    if is_updating() {
        fs::create_dir_all(folder()).unwrap();
        fs::write(path, text).unwrap();
        return Ok(());
    }
    Err(format!("tests/snapshots/{file}\n{}", diff(&kept, &text)))
}

/// The lines that differ, with context.
fn diff(old: &str, new: &str) -> String {
    let edits = edits(
        &old.lines().collect::<Vec<_>>(),
        &new.lines().collect::<Vec<_>>(),
    );
    let is_near = |at: usize| {
        let near = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(edits.len());
        edits[near].iter().any(|(sign, _)| *sign != ' ')
    };
    let mut text = String::new();
    let mut line = 0;
    let mut was_near = false;
    for (at, (sign, content)) in edits.iter().enumerate() {
        line += usize::from(*sign != '+');
        let is_near = is_near(at);
        if is_near && !was_near {
            let _ = writeln!(text, "  @@ line {line}");
        }
        if is_near {
            let _ = writeln!(text, "  {sign}{content}");
        }
        was_near = is_near;
    }
    text
}

/// The shortest edit from one list of lines to another: each line with ` `, `-` or `+`.
fn edits<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    // The number of common lines in the remainders.
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut edits = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            edits.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            edits.push(('-', old[i]));
            i += 1;
        } else {
            edits.push(('+', new[j]));
            j += 1;
        }
    }
    edits
}

#[test]
fn difference_shows_lines_in_their_place() {
    let old = "a\nb\nc\nd\ne\nf\ng\n";
    let new = "a\nb\nc\nd\nE\nf\ng\nh\n";
    assert_eq!(
        diff(old, new),
        "  @@ line 3\n   c\n   d\n  -e\n  +E\n   f\n   g\n  +h\n"
    );
}
