//! Commands for developers: `cargo xtask COMMAND`.
#![allow(clippy::print_stdout, clippy::print_stderr)] // A command-line program writes to the terminal.

mod bench;
mod crash;
mod eval;
mod fuzz;
mod messages;
mod simulate;
mod tidy;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

/// One command. The program prints its error; an error that starts with [`USAGE`] means wrong usage.
struct Command {
    name: &'static str,
    summary: &'static str,
    run: fn(&[String]) -> Result<(), String>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "bench",
        summary: "Run a benchmark of the wire format, a connection or the gateway",
        run: bench::run,
    },
    Command {
        name: "crash",
        summary: "Kill the program at random moments and check for lost data",
        run: crash::run,
    },
    Command {
        name: "eval",
        summary: "Measure the quality of the search for tools and memories",
        run: eval::run,
    },
    Command {
        name: "fuzz",
        summary: "Fuzz the code that parses untrusted bytes",
        run: fuzz::run,
    },
    Command {
        name: "messages",
        summary: "Write every message of the program to one file",
        run: messages::run,
    },
    Command {
        name: "simulate",
        summary: "Run random schedules against the state machine",
        run: simulate::run,
    },
    Command {
        name: "tidy",
        summary: "Check the project's own rules",
        run: tidy::run,
    },
];

/// The prefix of errors caused by wrong usage, for which the exit code is 2.
const USAGE: &str = "usage:";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.starts_with(USAGE) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<(), String> {
    let (name, rest) = match arguments {
        [] => return Err(help()),
        [name, ..] if is_help(name) => {
            println!("{}", help());
            return Ok(());
        }
        [name, rest @ ..] => (name, rest),
    };
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(rest),
        None => Err(format!("{}\n\nunknown command {name:?}", help())),
    }
}

fn help() -> String {
    let commands: Vec<String> = COMMANDS
        .iter()
        .map(|Command { name, summary, .. }| format!("  {name:<10}{summary}"))
        .collect();
    format!(
        "{USAGE} cargo xtask COMMAND [ARGUMENTS]\n\nCommands for developers:\n\n{}\n\n\
         Run `cargo xtask COMMAND --help` for the options of a command.",
        commands.join("\n")
    )
}

fn is_help(argument: &str) -> bool {
    matches!(argument, "-h" | "--help" | "help")
}

/// Prints the help of a command that takes no arguments if it is requested; `false` if the command is to run.
fn gave_help(args: &[String], help: &str) -> Result<bool, String> {
    match args {
        [] => Ok(false),
        [arg] if is_help(arg) => {
            println!("{USAGE} {help}");
            Ok(true)
        }
        [arg, ..] => Err(format!("{USAGE} {help}\n\nunexpected argument {arg:?}")),
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// Builds a package for release and runs it.
fn run_release(package: &str, args: &[String]) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = std::process::Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", package, "--"])
        .args(args)
        .current_dir(root())
        .status()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{package} failed with {status}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatch_words(words: &str) -> Result<(), String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        dispatch(&words)
    }

    #[test]
    fn wrong_usage_is_distinct_from_failure() {
        for words in [
            "",
            "nonsense",
            "bench",
            "bench nonsense",
            "bench wire --nonsense",
            "crash",
            "crash nonsense",
            "crash memory --kills",
            "crash memory --kills none",
            "crash memory --expiries 1",
            "fuzz --nonsense",
            "fuzz nonsense",
            "fuzz --seconds",
            "fuzz --seconds 0",
            "messages nonsense",
            "tidy nonsense",
        ] {
            let error = dispatch_words(words).unwrap_err();
            assert!(error.starts_with(USAGE), "{words:?}: {error}");
        }
    }

    #[test]
    fn every_command_has_help() {
        assert_eq!(dispatch_words("--help"), Ok(()));
        for command in COMMANDS {
            assert_eq!((command.run)(&["--help".to_owned()]), Ok(()));
            assert!(help().contains(command.summary));
        }
    }
}
