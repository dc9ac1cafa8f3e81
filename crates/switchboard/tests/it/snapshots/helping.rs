//! The help of every command, and commands that need no gateway and no configuration.

use super::{golden::Book, stage::Stage};

pub(super) const FILES: &[&str] = &["completions", "help", "man", "schema"];

super::at_both_widths!();

/// The commands that a help text lists; each is followed by two spaces and its description.
pub(crate) fn listed(help: &str) -> Vec<String> {
    let mut lines = help.lines().skip_while(|line| !is_heading(line));
    let mut names = Vec::new();
    for line in lines.by_ref() {
        let Some(entry) = line
            .strip_prefix("  ")
            .filter(|rest| !rest.starts_with(' '))
        else {
            continue;
        };
        let (name, about) = entry.split_once(' ').unwrap_or((entry, ""));
        if about.starts_with(' ') && name.chars().all(|c| c.is_ascii_lowercase()) {
            names.push(name.to_owned());
        }
    }
    names.retain(|name| name != "help" && name != "switchboard");
    names
}

/// The heading above commands: that of a command, or the first of the groups.
fn is_heading(line: &str) -> bool {
    matches!(line, "Commands:" | "Servers:")
}

fn record(book: &mut Book) {
    let stage = Stage::new(book.columns);
    book.scene("the program");
    book.run(
        "help",
        &stage,
        &[
            &[],
            &["-h"],
            &["--help"],
            &["help"],
            &["--version"],
            &["lsit"],
            &["--color", "sometimes", "list"],
            &["--config", "nothing.json", "list"],
            &["help", "nothing"],
        ],
    );
    book.scene("every command");
    let help = stage.run(&["--help"]);
    help_below(book, &stage, &[], &help.text);

    book.scene("without a configuration");
    for shell in ["bash", "zsh", "fish"] {
        book.first_lines("completions", &stage, &["completions", shell], 5);
    }
    book.run(
        "completions",
        &stage,
        &[&["completions"], &["completions", "tcsh"]],
    );
    book.run("man", &stage, &[&["man"], &["man", "pages"]]);
    book.first_lines("schema", &stage, &["schema"], 12);
    book.run("schema", &stage, &[&["schema", "extra"]]);
}

/// Records the help of all commands that this text lists.
fn help_below(book: &mut Book, stage: &Stage, above: &[&str], help: &str) {
    for name in listed(help) {
        let command = [above, &[name.as_str()]].concat();
        let args = [&command[..], &["--help"]].concat();
        let answer = stage.run(&args);
        book.add("help", &args, &answer);
        help_below(book, stage, &command, &answer.text);
    }
}
