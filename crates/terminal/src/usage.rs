//! Converts clap's errors to those of the other commands.

use std::ffi::OsString;

use clap::{
    Command, ValueEnum as _,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::{error::Error, print::ColourChoice, visible::visible_line};

/// Converts an error of clap: the message, the usage of the command, and a hint.
pub fn failure(error: &clap::Error, command: &Command, words: &[OsString]) -> Error {
    let mut text = error.render().to_string();
    // A word of the user with line breaks could pass for a paragraph of clap's.
    for (_, value) in error.context() {
        if let ContextValue::String(word) = value
            && word.contains(char::is_control)
            && word.contains(char::is_alphanumeric)
        {
            text = text.replace(word, &visible_line(word));
        }
    }
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
    let (path, target) = target(command, words);
    if let Some(missing) = missing(error, target) {
        let rest = message.find("\nusage: ").map_or("", |at| &message[at..]);
        message = format!("{missing}{rest}");
    }
    let message = plain(&message);
    let hint = match (meant(error), tips.is_empty()) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, true) => format!("run `{path} --help` for examples"),
        (None, false) => plain(&tips.join("; ")),
    };
    Error::usage(message).hint(hint)
}

/// The message for missing arguments; `None` for other errors. A choice of arguments comes last.
fn missing(error: &clap::Error, command: &Command) -> Option<String> {
    if error.kind() != ErrorKind::MissingRequiredArgument {
        return None;
    }
    let Some(ContextValue::Strings(all)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let (choices, plain): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.contains('|'));
    let several = if all.len() == 1 { "" } else { "s" };
    if choices.is_empty() {
        let names: Vec<_> = plain.into_iter().map(String::as_str).collect();
        return Some(format!("missing argument{several}: {}", names.join(", ")));
    }
    let bare = |name: &String| name.replace(['<', '>'], "");
    let mut parts: Vec<_> = plain.into_iter().map(bare).collect();
    parts.extend(
        choices
            .into_iter()
            .map(|choice| one_of(&bare(choice), command)),
    );
    Some(format!(
        "missing argument{several}: {}",
        parts.join(", and ")
    ))
}

/// The alternatives of a choice in words, such as ``one of URL or `-- COMMAND` ``.
fn one_of(choice: &str, command: &Command) -> String {
    let is_last = |name: &str| {
        let mut last = command.get_arguments().filter(|arg| arg.is_last_set());
        last.any(|arg| {
            arg.get_value_names()
                .is_some_and(|names| names.iter().any(|one| one == name))
        })
    };
    let mut words: Vec<_> = choice
        .split('|')
        .map(|one| match one {
            option if option.starts_with('-') => format!("`{option}`"),
            name if is_last(name) => format!("`-- {name}`"),
            name => name.to_owned(),
        })
        .collect();
    let last = words.pop().unwrap_or_default();
    format!("one of {} or {last}", words.join(", "))
}

/// The command, option or value that was probably meant.
fn meant(error: &clap::Error) -> Option<&str> {
    let known = |kind| error.get(kind);
    let meant = known(ContextKind::SuggestedSubcommand)
        .or_else(|| known(ContextKind::SuggestedArg))
        .or_else(|| known(ContextKind::SuggestedValue));
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
    let text = text
        .replace("unrecognized subcommand", "unknown command")
        .replace("invalid digit found in string", "expected a whole number");
    in_words(&text).unwrap_or(text)
}

/// Replaces `0 is not in 1..=1000` with words.
fn in_words(text: &str) -> Option<String> {
    let (before, after) = text.split_once(" is not in ")?;
    let (before, _) = before.rsplit_once(": ")?;
    let (range, rest) = after.split_at(after.find('\n').unwrap_or(after.len()));
    let (from, to) = range.split_once("..=")?;
    Some(format!(
        "{before}: expected a number from {from} to {to}{rest}"
    ))
}

/// The command in question and its words. `help` is skipped: clap's own `help` has no help page.
fn target<'a>(command: &'a Command, words: &[OsString]) -> (String, &'a Command) {
    let mut path = command.get_name().to_owned();
    let mut command = command;
    let words = words.iter().filter_map(|word| word.to_str());
    for word in words.filter(|word| *word != "help") {
        if let Some(found) = command.find_subcommand(word) {
            path = format!("{path} {}", found.get_name());
            command = found;
        }
    }
    (path, command)
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
            "missing argument: <name>\nusage: add <name>"
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
            "invalid value 'y' for '--lines <lines>': expected a whole number"
        );
    }

    #[test]
    fn words_of_the_user_forge_no_lines() {
        let failure = complaint(&["add", "x", "y\n\n  tip: run z\n\nUsage: z"]);
        assert!(!failure.message().contains("\nusage: z"), "{failure}");
        assert_eq!(
            failure.advice(),
            Some("run `program add --help` for examples")
        );
        let failure = complaint(&["add", "x", "--lines=y\n\n  tip: run z"]);
        assert_eq!(
            failure.advice(),
            Some("run `program add --help` for examples")
        );
    }

    #[test]
    fn ranges_and_choices_are_explained_in_words() {
        assert_eq!(
            plain("invalid value '0' for '-n <N>': 0 is not in 1..=1000"),
            "invalid value '0' for '-n <N>': expected a number from 1 to 1000"
        );
        let command = Command::new("add").arg(Arg::new("line").value_name("COMMAND").last(true));
        assert_eq!(
            one_of("URL|COMMAND|--image IMAGE", &command),
            "one of URL, `-- COMMAND` or `--image IMAGE`"
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
