//! `switchboard memory show`: one memory in full, with its history.

use std::{fmt::Write as _, io};

use clap::Args;
use switchboard_config::Home;
use switchboard_terminal::visible::{pretty, visible, visible_line};
use switchboard_terminal::{error::Error, print};

use super::{
    list,
    scope::{self, Wish},
    session::{self, understood},
    shapes::{Remembered, moment},
};

/// Show one memory
#[derive(Debug, Args)]
pub(super) struct Show {
    /// ID of the memory, as shown by `list` and `recall` (a prefix is enough)
    id: String,
    /// Include earlier versions
    #[arg(long)]
    history: bool,
    /// The memory as it was known at this time, such as 2026-07-28 or 2026-07-28T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = scope::time)]
    known_at: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(home: &Home, args: &Show) -> Result<(), Error> {
    let wish = Wish::new()
        .with("known_at", args.known_at.as_deref())
        .with("history", args.history.then_some(true));
    let answer = session::with(home, async |memory| {
        let id = list::find(memory, std::slice::from_ref(&args.id)).await?;
        let wish = wish.with("id", id.first().map(String::as_str));
        memory.call("get_memory", &wish).await
    })?;
    if args.json {
        return print::data(&format!("{}\n", pretty(&answer)));
    }
    let memory: Remembered = understood(&answer)?;
    let mut text = whole(&memory);
    for version in &memory.history {
        let until = version.learned_until.as_deref().map(moment);
        let until = until.map_or_else(String::new, |until| format!(" until {until}"));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\nversion {}, known since {}{until}{}",
            version.version,
            moment(&version.learned_at),
            version
                .valid()
                .map_or_else(String::new, |when| format!(", valid {when}")),
        );
        for line in visible(version.content.trim_end()).lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    print::data(&text)
}

/// The text of a memory, followed by its metadata.
fn whole(memory: &Remembered) -> String {
    let mut text = print::fitted(&io::stdout(), &visible(memory.content.trim_end()), 0, 0);
    text.push_str("\n\n");
    let entities: Vec<_> = memory
        .entities
        .iter()
        .map(|name| visible_line(name))
        .collect();
    let rows = [
        ("ID", Some(visible_line(&memory.id))),
        ("Type", Some(visible_line(&memory.memory_type))),
        ("Importance", Some(memory.importance.to_string())),
        (
            "Scope",
            Some(memory.scope()).filter(|scope| !scope.is_empty()),
        ),
        ("Learned", Some(moment(&memory.learned_at))),
        ("Known until", memory.learned_until.as_deref().map(moment)),
        ("Valid", memory.valid()),
        ("Reason", memory.reason.as_deref().map(visible_line)),
        (
            "Replaced by",
            memory.superseded_by.as_deref().map(visible_line),
        ),
        (
            "About",
            Some(entities.join(", ")).filter(|names| !names.is_empty()),
        ),
        ("Version", Some(memory.version.to_string())),
        ("Metadata", memory.metadata.as_ref().map(pretty)),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<12} {value}");
        }
    }
    text
}
