//! Converts clap's errors to those of the other commands.

use std::ffi::OsString;

use clap::{
    Command, ValueEnum as _,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::{error::Error, print::ColourChoice};

/// Converts an error of clap: the message, the usage of the command, and a hint.
pub fn failure(error: &clap::Error, command: &Command, words: &[OsString]) -> Error {
    let text = error.render().to_string();
    let mut message = String::new();
    let mut tips = Vec::new();
    for paragraph in text.split("\n\n") {
        let paragraph = paragraph.trim_end();
        if let Some(wrong) = paragraph.strip_prefix("error: ") {
            message.push_str(wrong);
        } else if let Some(usage) = paragraph.strip_prefix("Usage: ") {
            message = format!("{message}\nusage: {usage}");
        } else {
            let lines = paragraph.lines();
            tips.extend(lines.filter_map(|line| line.trim().strip_prefix("tip: ")));
        }
    }
    let message = plain(&message);
    let hint = match (meant(error), tips.is_empty()) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, true) => format!("run `{} --help` for examples", path(command, words)),
        (None, false) => plain(&tips.join("; ")),
    };
    Error::usage(message).hint(hint)
}

/// The command or option that was probably meant.
fn meant(error: &clap::Error) -> Option<&str> {
    let known = |kind| error.get(kind);
    let meant = known(ContextKind::SuggestedSubcommand).or(known(ContextKind::SuggestedArg));
    match meant? {
        ContextValue::String(one) => Some(one),
        // The last suggestion is the best.
        ContextValue::Strings(all) => all.last().map(String::as_str),
        _ => None,
    }
}

/// Tests if clap's output is the help or the version that the user requested, not an error.
pub fn is_help(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// Reads `--color` from a command line that is not parsed yet.
pub fn colour(words: &[OsString]) -> Option<ColourChoice> {
    let mut words = words.iter().filter_map(|word| word.to_str());
    let mut choice = None;
    while let Some(word) = words.next().filter(|word| *word != "--") {
        let given = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(given) => given.strip_prefix('='),
            None => None,
        };
        let given = given.and_then(|given| ColourChoice::from_str(given, false).ok());
        choice = given.or(choice);
    }
    choice
}

fn plain(text: &str) -> String {
    text.replace("unrecognized subcommand", "unknown command")
        .replace("provided:\n  <", "provided: <")
        .replace("\n  <", ", <")
        .replace("invalid digit found in string", "it is not a whole number")
}

/// The words of the command in question. `help` is skipped: clap's own `help` has no help page.
fn path(command: &Command, words: &[OsString]) -> String {
    let mut path = command.get_name().to_owned();
    let mut command = command;
    let words = words.iter().filter_map(|word| word.to_str());
    for word in words.filter(|word| *word != "help") {
        if let Some(found) = command.find_subcommand(word) {
            path = format!("{path} {}", found.get_name());
            command = found;
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    fn complaint(words: &[&str]) -> Error {
        let command = Command::new("program").subcommand(
            Command::new("add")
                .arg(Arg::new("name").required(true))
                .arg(
                    Arg::new("lines")
                        .long("lines")
                        .value_parser(clap::value_parser!(u16)),
                ),
        );
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let error = command
            .clone()
            .no_binary_name(true)
            .try_get_matches_from(&words)
            .unwrap_err();
        failure(&error, &command, &words)
    }

    #[test]
    fn missing_arguments_are_named_with_the_usage() {
        let failure = complaint(&["add"]);
        assert_eq!(
            failure.message(),
            "the following required arguments were not provided: <name>\nusage: add <name>"
        );
        assert_eq!(
            failure.advice(),
            Some("run `program add --help` for examples")
        );
    }

    #[test]
    fn tips_become_hints() {
        let failure = complaint(&["ad"]);
        assert!(
            failure
                .message()
                .starts_with("unknown command 'ad'\nusage: "),
            "{failure}"
        );
        assert_eq!(failure.advice(), Some("did you mean `add`?"));
        let failure = complaint(&["add", "x", "--lines", "y"]);
        assert_eq!(
            failure.message(),
            "invalid value 'y' for '--lines <lines>': it is not a whole number"
        );
    }

    #[test]
    fn colour_is_found_before_parsing() {
        let colour = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            colour(&words)
        };
        assert_eq!(
            colour(&["list", "--color=never"]),
            Some(ColourChoice::Never)
        );
        assert_eq!(colour(&["--color", "always"]), Some(ColourChoice::Always));
        for other in [
            &["--color"][..],
            &["--color=blue"],
            &["--", "--color=never"],
            &["--colors"],
        ] {
            assert_eq!(colour(other), None, "{other:?}");
        }
    }
}
