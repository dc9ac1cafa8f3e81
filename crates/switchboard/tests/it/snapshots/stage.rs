//! A place in which every command prints the same on every machine, and filters for what still differs.

use std::{
    cell::RefCell,
    fs,
    ops::Range,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
};

use regex_lite::{Captures, Regex};

use super::screen::replay;
use crate::{
    support::{Gateway, PROGRAM, Place},
    terminal::Session,
};

/// A folder, an environment and a terminal of this width.
pub(super) struct Stage {
    pub(super) place: Place,
    columns: u16,
    variables: Vec<(&'static str, String)>,
    /// Generated names, and the text to write for each.
    names: RefCell<Vec<(String, String)>>,
}

/// The result of a command.
pub(super) struct Answer {
    pub(super) code: i32,
    /// The screen, without the parts that differ each time.
    pub(super) text: String,
    names: Vec<(String, String)>,
}

impl Answer {
    pub(super) fn scrub(&self, text: &str) -> String {
        scrub(text, &self.names)
    }
}

impl Stage {
    pub(super) fn new(columns: u16) -> Self {
        let place = Place::of_fixed_length();
        let bin = place.path().join("bin");
        fs::create_dir(&bin).unwrap();
        symlink(PROGRAM, bin.join("switchboard")).unwrap();
        symlink(python(), bin.join("python3")).unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let variables = vec![
            ("HOME", text(&place.user())),
            ("SWITCHBOARD_HOME", text(&place.home())),
            ("PATH", text(&bin)),
            ("LANG", "C.UTF-8".to_owned()),
            ("NO_COLOR", "1".to_owned()),
            ("TERM", "xterm".to_owned()),
            ("TZ", noon()),
            ("USER", "ada".to_owned()),
        ];
        let names = vec![(text(place.path()), "/tmp/sb-000000".to_owned())];
        let mode = fs::Permissions::from_mode(0o700);
        fs::create_dir(place.home()).unwrap();
        fs::set_permissions(place.home(), mode).unwrap();
        Self {
            place,
            columns,
            variables,
            names: RefCell::new(names),
        }
    }

    /// Writes the configuration, which only its owner can read or change, regardless of the umask.
    pub(super) fn write_config(&self, text: &str) {
        self.place.write_config(text);
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(self.place.config(), mode).unwrap();
    }

    /// Lets the environment enable colour.
    pub(super) fn in_colour(mut self) -> Self {
        self.variables.retain(|(name, _)| *name != "NO_COLOR");
        self
    }

    /// Replaces this text by another of the same length, so that columns stay aligned.
    pub(super) fn call_it(&self, name: &str, shown: &str) {
        assert_eq!(name.len(), shown.len(), "{name} is as wide as {shown}");
        let pair = (name.to_owned(), shown.to_owned());
        self.names.borrow_mut().push(pair);
    }

    /// The program, as a user would start it.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.place.path().join("bin/switchboard"));
        command
            .env_clear()
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.place.user())
            .args(args);
        command
    }

    pub(super) fn start(&self, args: &[&str]) -> Session {
        Session::spawn(self.command(args), Some(self.columns))
    }

    pub(super) fn run(&self, args: &[&str]) -> Answer {
        self.end(self.start(args))
    }

    /// Runs a command that only prepares the stage.
    #[track_caller]
    pub(super) fn succeed(&self, args: &[&str]) {
        let answer = self.run(args);
        assert_eq!(answer.code, 0, "{args:?}: {}", answer.text);
    }

    /// Runs a command, and types each answer after its question.
    pub(super) fn converse(&self, args: &[&str], typed: &[(&str, &str)]) -> Answer {
        let mut session = self.start(args);
        for (question, answer) in typed {
            session.wait_for(question);
            session.type_in(answer);
        }
        self.end(session)
    }

    /// The result of a command that was started.
    pub(super) fn end(&self, session: Session) -> Answer {
        let (code, seen) = session.end();
        let names = self.names.borrow().clone();
        Answer {
            code: code.unwrap(),
            text: scrub(&replay(&seen), &names),
            names,
        }
    }

    pub(super) fn gateway(&self) -> Gateway {
        let serve = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        Gateway::spawn(&self.place, serve)
    }

    /// The output of a command in a pipe, as JSON.
    #[track_caller]
    pub(super) fn json(&self, args: &[&str]) -> serde_json::Value {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// A command that runs in the background.
    pub(super) fn background(&self, args: &[&str]) -> Background {
        let child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Background(child.unwrap())
    }
}

/// A background command, which ends with the test.
pub(super) struct Background(pub(super) Child);

impl Drop for Background {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The interpreter of the servers. The one in PATH may be a script that needs more of PATH.
fn python() -> PathBuf {
    let asked = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output();
    let said = String::from_utf8(asked.unwrap().stdout).unwrap();
    Path::new(said.trim()).canonicalize().unwrap()
}

/// A time zone in which it is noon, so that the date does not change during the test: another day is written
/// differently.
fn noon() -> String {
    let seconds = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let hour = seconds.as_secs() / 3600 % 24;
    // West is positive.
    if hour >= 12 {
        format!("<noon>{}", hour - 12)
    } else {
        format!("<noon>-{}", 12 - hour)
    }
}

/// Patterns of text that differs each time, and the replacements. A cell of a table keeps its width.
const FILTERS: &[(&str, &str)] = &[
    (r"Switchboard \d+\.\d+\.\d+", "Switchboard 0.0.0"),
    (r"switchboard \d+\.\d+\.\d+", "switchboard 0.0.0"),
    (r"127\.0\.0\.1:\d{5}", "127.0.0.1:00000"),
    (r"\bprocess \d+", "process 0"),
    // A cell that the number makes too long by a character is cut.
    (r"\bpid \d+(?: ?[^ …\n])* ?…", "pid 0)"),
    (r"\bpid \d+", "pid 0"),
    (r"\(\d+[ms]\)", "(0s)"),
    (r"\b\d+[ms] ago\b", "0s ago"),
    (r"\b\d+[ms] left\b", "5m left"),
    // The ages of requests, and the time left for each.
    (r"(?m)^([a-z0-9]{8}  )\d+[ms]", "${1}0s"),
    (r"(?m)^([a-z0-9]{8}  0s   )\d+[ms]", "${1}5m"),
    (r"(?m)^(claude-code  )\d+[ms]", "${1}0s"),
    (
        r"((?::|the hash)\s*)[0-9a-f]{64}\b",
        "${1}0000000000000000000000000000000000000000000000000000000000000000",
    ),
    (r"\b\d{4}-\d\d-\d\dT", "2026-01-01T"),
    (r"(-[0-9a-f]{16}  )\d{4}-\d\d-\d\d", "${1}2026-01-01"),
    (r"\b(learned) \d{4}-\d\d-\d\d", "$1 2026-01-01"),
    (r"\d\d:\d\d:\d\d(\.\d+)?", "00:00:00"),
    (r"\b\d{8}T\d{6}\.\d+Z", "20260101T000000.000Z"),
    (r"\b\d+\.\d s\b", "0.0 s"),
    (r" after \d+ ms\b", " after 0 ms"),
    // The end of the folder's name, where the beginning is cut off.
    (r"…\w(/shifty\.py)", "…0$1"),
    // The durations of calls.
    (r"DURATION +OUTCOME", "DURATION  OUTCOME"),
    (
        r"(?m)(< 1 ms|\d+ ms|[\d.]+ s) +(ok|error|tool error|cancelled|timeout)$",
        "0 ms  $2",
    ),
    (r"\bversion \d+\.\d+\.\d+", "version 0.0.0"),
    (
        r"\bswb_[0-9a-f]{16}_[0-9a-f]{32}\b",
        "swb_0000000000000000_00000000000000000000000000000000",
    ),
    (r"\b[0-9a-f]{32}\b", "00000000000000000000000000000000"),
    (r"\.localhost:\d{5}/", ".localhost:00000/"),
    (r"http…\d{3}\b", "http…000"),
    (r"\b\d+ [MG]iB free\b", "0 GiB free"),
    (
        r"\b[0-9a-f]{12}-[0-9a-f]{16}\b",
        "000000000000-0000000000000000",
    ),
];

static COMPILED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let filters = FILTERS.iter();
    filters
        .map(|(pattern, shown)| (compiled(pattern), *shown))
        .collect()
});

/// The pattern, with the gap to the next cell if it is in a table.
fn compiled(pattern: &str) -> Regex {
    Regex::new(&format!("(?:{pattern})(?P<gap>  +)?")).unwrap()
}

fn scrub(text: &str, names: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for (name, shown) in names {
        text = text.replace(name, shown);
    }
    text = narrow_processes(&text);
    for (pattern, shown) in &*COMPILED {
        text = replace(&text, pattern, shown);
    }
    text
}

/// Makes a column with a process ID as wide as if the ID had one digit.
fn narrow_processes(text: &str) -> String {
    let cell = Regex::new(r"pid \d+\)(?P<gap>  +)").unwrap();
    let tables = text.split("\n\n").map(|table| {
        let found = cell.captures_iter(table);
        // The end of the column, in characters of its line, and its excess width.
        let ends = found.map(|found| {
            let all = found.get(0).unwrap();
            let line = table[..all.start()].rfind('\n').map_or(0, |end| end + 1);
            let end = table[line..all.end()].chars().count();
            let digits = found[0].chars().filter(char::is_ascii_digit).count();
            (end - 2, digits + found["gap"].len() - 3)
        });
        match ends.max() {
            Some((end, excess)) => without(table, end - excess..end),
            None => table.to_owned(),
        }
    });
    let tables: Vec<String> = tables.collect();
    cell.replace_all(&tables.join("\n\n"), "pid 0)  ")
        .into_owned()
}

/// Removes these columns from every line that is blank there.
fn without(table: &str, columns: Range<usize>) -> String {
    let lines = table.split('\n').map(|line| {
        let is_blank = line
            .chars()
            .skip(columns.start)
            .take(columns.len())
            .all(|c| c == ' ');
        let kept = line.chars().enumerate();
        kept.filter(|(at, _)| !is_blank || !columns.contains(at))
            .map(|(_, c)| c)
            .collect::<String>()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Replaces the matches of a filter; text after a gap of two spaces stays in its column.
fn replace(text: &str, pattern: &Regex, shown: &str) -> String {
    let replaced = pattern.replace_all(text, |found: &Captures<'_>| {
        let mut new = String::new();
        found.expand(shown, &mut new);
        if found.name("gap").is_some() {
            let width = found[0].chars().count();
            new.push_str("  ");
            new.extend(std::iter::repeat_n(
                ' ',
                width.saturating_sub(new.chars().count()),
            ));
        }
        new
    });
    replaced.into_owned()
}

#[test]
fn column_with_a_process_has_one_width() {
    for pid in ["7", "1234", "4194304"] {
        let fill = " ".repeat(pid.len() - 1);
        let table =
            format!("\nID  BY     {fill}  RULE\na          {fill}  ask\nb   pid {pid})  deny\n\nx");
        assert_eq!(
            narrow_processes(&table),
            "\nID  BY       RULE\na            ask\nb   pid 0)  deny\n\nx"
        );
    }
}

#[test]
fn filters_keep_columns() {
    assert_eq!(
        replace("a 123s  b\na 1s    b", &compiled(r"\d+s"), "0s"),
        "a 0s    b\na 0s    b"
    );
    let in_words = compiled(r"\(\d+s\)");
    assert_eq!(replace("(12s) x", &in_words, "(0s)"), "(0s) x");
}
