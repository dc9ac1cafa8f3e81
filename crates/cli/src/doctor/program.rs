//! The programs that servers need: their paths, their versions, and if they respond.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    path::PathBuf,
    process::Command,
    time::Duration,
};

use parking_lot::Mutex;

/// The most bytes that are read of a program's output.
const OUTPUT_BYTES: u64 = 64 * 1024;

/// Advice for a program that is missing.
pub(super) fn how_to_get(command: &str) -> String {
    if let Some(advice) = switchboard_contain::split_advice(command) {
        return advice;
    }
    let name = command.rsplit('/').next().unwrap_or(command);
    match name {
        "npx" | "node" | "npm" => {
            "install Node.js 20 or newer from https://nodejs.org, and check that it is in PATH"
                .to_owned()
        }
        "uvx" | "uv" => {
            "install uv from https://docs.astral.sh/uv, and check that ~/.local/bin is in PATH"
                .to_owned()
        }
        "python" => "install Python 3; if its program is named `python3`, use that as the command"
            .to_owned(),
        "python3" | "pip" | "pipx" => "install Python 3 from https://www.python.org".to_owned(),
        "docker" | "podman" => "install Docker or Podman, and check that it is in PATH".to_owned(),
        "bun" | "bunx" => "install Bun from https://bun.sh".to_owned(),
        "deno" => "install Deno from https://deno.com".to_owned(),
        "go" => "install Go from https://go.dev".to_owned(),
        _ if command.contains('/') => "check the path; it must name an executable file".to_owned(),
        _ => format!("install it, or use the full path of `{name}` as the command"),
    }
}

/// A program to run, with the environment in which the gateway would run it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Question {
    /// The file, as [`find`](crate::programs::find) returned it: a bare name would be searched again, and
    /// elsewhere.
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<OsString, OsString>,
}

/// The answers of programs, each run once.
#[derive(Default)]
pub(super) struct Answers {
    known: Mutex<HashMap<Question, Option<String>>>,
}

impl Answers {
    /// The output of a program that ends in time and with success.
    pub(super) fn of(&self, question: Question, time: Duration) -> Option<String> {
        // The lock is held while the program runs, so that other threads wait for its answer instead of
        // running it again.
        let mut known = self.known.lock();
        if let Some(answer) = known.get(&question) {
            return answer.clone();
        }
        let answer = ask(&question, time);
        known.insert(question, answer.clone());
        answer
    }
}

fn ask(question: &Question, time: Duration) -> Option<String> {
    let mut command = Command::new(&question.program);
    command
        .args(&question.args)
        .env_clear()
        .envs(&question.env)
        // The current directory may be a repository that is not trusted.
        .current_dir("/");
    let output = switchboard_contain::output_within(&mut command, time, OUTPUT_BYTES)?;
    Some(output.trim().to_owned())
}

/// The first number of a version such as `v20.1.0`.
pub(super) fn major(version: &str) -> Option<u32> {
    let digits = version.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::programs;

    #[test]
    fn hanging_program_times_out() {
        let answers = Answers::default();
        let ask = |program: &str, args: &[&str], time| {
            let path = std::env::var_os("PATH").unwrap();
            let question = Question {
                program: programs::find(program.as_ref(), &path).unwrap(),
                args: args.iter().map(|&arg| arg.to_owned()).collect(),
                env: BTreeMap::new(),
            };
            answers.of(question, time)
        };
        let started = Instant::now();
        assert_eq!(ask("sleep", &["30"], Duration::from_millis(50)), None);
        assert!(started.elapsed() < Duration::from_secs(10));
        assert_eq!(ask("false", &[], Duration::from_secs(10)), None);
        assert_eq!(
            ask("echo", &["v20.1"], Duration::from_secs(10)).as_deref(),
            Some("v20.1")
        );
    }

    #[test]
    fn versions() {
        for (text, expected) in [
            ("v20.1.0", Some(20)),
            ("18", Some(18)),
            ("none", None),
            ("", None),
        ] {
            assert_eq!(major(text), expected, "{text}");
        }
    }
}
