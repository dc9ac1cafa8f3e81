//! Output for people and for programs: messages on standard error, data on standard output, aligned
//! tables, and colour only on terminals unless it is turned off.

pub(crate) mod fold;
mod table;

use std::{
    io::{self, IsTerminal, Write as _},
    os::fd::AsFd,
    sync::OnceLock,
};

use serde::Serialize;
pub use switchboard_config::shell_word;
use switchboard_wire::Raw;
pub use table::{Cell, Table};

use fold::HANGING;

use crate::{
    error::Error,
    visible::{escaped, pretty},
};

/// Prints a line to standard error. Write errors are ignored.
pub fn say(message: &str) {
    let message = fitted(&io::stderr(), &clean(message), 0, 0);
    tell(&message);
}

/// Prints a warning to standard error.
pub fn warn(message: &str) {
    tell(&warning(&io::stderr(), message));
}

/// Formats a warning for a stream.
pub fn warning(stream: &(impl IsTerminal + AsFd), message: &str) -> String {
    labelled(stream, Colour::Yellow, "warning:", message)
}

/// Formats an indented warning about possible harm.
pub fn danger(stream: &(impl IsTerminal + AsFd), indent: usize, message: &str) -> String {
    indented(stream, indent, Colour::Red, "warning:", message)
}

/// Prints a hint to standard error.
pub fn hint(message: &str) {
    let message = labelled(&io::stderr(), Colour::Cyan, "hint:", message);
    tell(&message);
}

/// Writes lines to standard error in a single write, so that other output cannot interleave.
fn tell(lines: &str) {
    let _ = io::stderr().write_all(format!("{lines}\n").as_bytes());
}

fn labelled(
    stream: &(impl IsTerminal + AsFd),
    colour: Colour,
    label: &str,
    message: &str,
) -> String {
    indented(stream, 0, colour, label, message)
}

/// Formats a message after a label, both indented.
pub fn indented(
    stream: &(impl IsTerminal + AsFd),
    indent: usize,
    colour: Colour,
    label: &str,
    message: &str,
) -> String {
    let taken = indent + label.len() + 1;
    let message = fitted(stream, &clean(message), taken, indent + HANGING);
    let label = paint(stream, colour, label);
    format!("{:indent$}{label} {message}", "")
}

/// Wraps the text to the width of the terminal, if the stream is one. See `fold`.
pub fn fitted(stream: &impl AsFd, text: &str, taken: usize, indent: usize) -> String {
    match terminal_width(stream) {
        Some(width) => fold::fold(text, width, taken, indent),
        None => text.to_owned(),
    }
}

/// Prints the error of a command.
pub fn complain(failure: &Error) {
    if failure.is_silent() {
        return;
    }
    if failure.is_declined() {
        return say(failure.message());
    }
    let message = labelled(&io::stderr(), Colour::Red, "error:", failure.message());
    tell(&message);
    if let Some(advice) = failure.advice() {
        hint(advice);
    }
}

/// Writes data to standard output verbatim.
pub fn data(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes untrusted text to standard output: verbatim to a program, and [cleaned](clean) to a
/// terminal.
pub fn text(text: &str) -> Result<(), Error> {
    if is_terminal() {
        data(&clean(text))
    } else {
        data(text)
    }
}

/// Writes a value as JSON, for programs. Invisible characters are escaped, which keeps the JSON equal
/// and cannot control a terminal.
pub fn json(value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::new(format!("cannot write the output as JSON: {error}")))?;
    data(&format!("{}\n", escaped(&text)))
}

/// Writes JSON with line breaks and every value in its original spelling, escaped as in [`json`].
pub fn json_raw(value: &Raw) -> Result<(), Error> {
    data(&format!("{}\n", pretty(value)))
}

/// Writes JSON in its original spelling, escaped as in [`json`].
pub fn json_text(text: &str) -> Result<(), Error> {
    // Between JSON tokens a space is equivalent.
    let text = escaped(&text.replace('\r', " "));
    let end = if text.ends_with('\n') { "" } else { "\n" };
    data(&format!("{text}{end}"))
}

/// Prints a difference between two files in the usual colours.
pub fn difference(diff: &str) -> Result<(), Error> {
    data(&coloured(diff, |line| match line.as_bytes().first() {
        Some(b'+') => Some(Colour::Green),
        Some(b'-') => Some(Colour::Red),
        Some(b'@') => Some(Colour::Cyan),
        _ => None,
    }))
}

/// Colours the changes of a definition: names of fields, each followed by lines with `-` and `+`.
pub fn changes(diff: &str) -> String {
    coloured(diff, |line| match line.as_bytes() {
        [b' ', b' ', b'+', ..] => Some(Colour::Green),
        [b' ', b' ', b'-', ..] => Some(Colour::Red),
        [b' ', ..] => None,
        _ => Some(Colour::Cyan),
    })
}

fn coloured(lines: &str, colour: impl Fn(&str) -> Option<Colour>) -> String {
    let mut text = String::with_capacity(lines.len());
    for line in lines.lines() {
        let line = clean(line);
        match colour(&line) {
            Some(colour) => text.push_str(&paint(&io::stdout(), colour, &line)),
            None => text.push_str(&line),
        }
        text.push('\n');
    }
    text
}

/// Returns `true` if standard output is a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Asks on standard error. Only `y` and `yes` confirm.
pub fn confirm(question: &str) -> io::Result<bool> {
    let answer = ask(&format!("{question} [y/N] "))?;
    Ok(matches!(answer.as_str(), "y" | "yes"))
}

/// Asks on standard error. `y`, `yes` and an empty line confirm.
pub fn confirm_unless_no(question: &str) -> io::Result<bool> {
    let answer = ask(&format!("{question} [Y/n] "))?;
    Ok(matches!(answer.as_str(), "" | "y" | "yes"))
}

fn ask(question: &str) -> io::Result<String> {
    let mut to = io::stderr();
    to.write_all(clean(question).as_bytes())?;
    to.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim().to_ascii_lowercase())
}

/// Replaces characters of untrusted text that control a terminal, reorder text (bidirectional marks) or
/// are invisible (zero width, tags).
pub fn clean(text: &str) -> String {
    let allowed = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || is_hidden(c));
    text.chars()
        .map(|c| if allowed(c) { c } else { '\u{fffd}' })
        .collect()
}

fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0e}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The first line of a text, cleaned.
pub fn one_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    clean(&line.replace('\t', " "))
}

/// A colour of text on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Failures.
    Red,
    /// Success.
    Green,
    /// Warnings.
    Yellow,
    /// Hints.
    Cyan,
    /// Less important text.
    Dim,
}

/// The use of colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColourChoice {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Also in a pipe or a file
    Always,
    /// Nowhere
    Never,
}

impl From<ColourChoice> for clap::ColorChoice {
    fn from(choice: ColourChoice) -> Self {
        match choice {
            ColourChoice::Auto => Self::Auto,
            ColourChoice::Always => Self::Always,
            ColourChoice::Never => Self::Never,
        }
    }
}

static CHOICE: OnceLock<ColourChoice> = OnceLock::new();

/// Sets the use of colour. Only the first call has an effect.
pub fn choose_colour(choice: ColourChoice) {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let choice = match choice {
        ColourChoice::Auto if is_set("NO_COLOR") => ColourChoice::Never,
        ColourChoice::Auto if is_forced() => ColourChoice::Always,
        ColourChoice::Auto if is_dumb() => ColourChoice::Never,
        choice => choice,
    };
    // The choice is made once, at the start.
    let _ = CHOICE.set(choice);
}

/// Tests if the environment asks for colour in pipes, too.
fn is_forced() -> bool {
    std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Colours a text, if the stream is a terminal or colour is forced.
pub fn paint(stream: &impl IsTerminal, colour: Colour, text: &str) -> String {
    let is_wanted = match CHOICE.get().copied().unwrap_or_default() {
        ColourChoice::Auto => stream.is_terminal(),
        ColourChoice::Always => true,
        ColourChoice::Never => false,
    };
    if !is_wanted {
        return text.to_owned();
    }
    let code = match colour {
        Colour::Red => 31,
        Colour::Green => 32,
        Colour::Yellow => 33,
        Colour::Cyan => 36,
        Colour::Dim => 2,
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

/// Columns of the terminal, if the stream is one and reports at least 40.
pub fn terminal_width(of: &impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(of).ok()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns >= 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(clean("a\u{1b}[2Jb\u{9b}c\nd"), "a\u{fffd}[2Jb\u{fffd}c\nd");
        assert_eq!(clean("a\u{8e2}b\u{1d173}"), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn other_scripts_are_kept() {
        for plain in ["grün, 日本語, العربية", "☎️", "e\u{301}"] {
            assert_eq!(clean(plain), plain);
        }
    }
}
