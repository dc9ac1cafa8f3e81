//! `switchboard memory recall`: finds memories about something.

use std::{fmt::Write as _, time::Duration};

use clap::{Args, ValueEnum};
use serde::Deserialize;
use switchboard_config::Home;
use switchboard_terminal::visible::{pretty, visible_line};
use switchboard_terminal::{error::Error, print};
use tokio::time::{Instant, sleep};

use super::{
    scope::{MemoryType, Scope, Times, Wish},
    session::{self, Session, understood},
    shapes::{Remembered, excerpt},
    stats,
};

/// Time to wait for the vectors if the user asks for a search by meaning.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time to wait for them otherwise, if the memory server was just started for this command: it would never
/// have them without a wait.
const MOMENT: Duration = Duration::from_millis(600);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Find memories about something.
///
/// Ask in plain words, with or without quotes. Memories are found by keyword, by meaning and through the
/// entities they mention. Each has a score from 0 to 1; the best comes first. If nothing is found, the exit
/// code is 1.
#[derive(Debug, Args)]
pub(super) struct Recall {
    /// Query in plain words
    #[arg(required = true, num_args = 1..)]
    query: Vec<String>,
    /// Number of memories to show, up to 100
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=100))]
    limit: u16,
    /// Search in this way only
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Only memories of this kind
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    kind: Option<MemoryType>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    scope: Scope,
    #[command(flatten)]
    times: Times,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// By keyword
    Text,
    /// By meaning
    Vector,
}

#[derive(Deserialize)]
struct Found {
    memories: Vec<Remembered>,
    #[serde(default)]
    vectors: String,
}

pub(super) fn run(home: &Home, args: &Recall) -> Result<(), Error> {
    let query = args.query.join(" ");
    if query.trim().is_empty() {
        return Err(Error::usage("the query is empty")
            .hint("ask in plain words, such as `switchboard memory recall what does Ada drink`"));
    }
    let mode = args.mode.map(|mode| match mode {
        Mode::Text => "text",
        Mode::Vector => "vector",
    });
    let tool = if mode.is_some() {
        "search_memory"
    } else {
        "recall"
    };
    let wish = Wish::new()
        .with("query", Some(query))
        .with("mode", mode)
        .with("limit", Some(args.limit))
        .within(&args.scope)
        .of_type(args.kind)
        .at(&args.times);
    let patience = match args.mode {
        Some(Mode::Vector) => PATIENCE,
        Some(Mode::Text) => Duration::ZERO,
        None => MOMENT,
    };
    let answer = session::with(home, async |memory| {
        if !patience.is_zero() && (args.mode.is_some() || memory.is_fresh()) {
            wait_for_vectors(memory, patience).await?;
        }
        memory.call(tool, &wish).await
    })?;
    let found: Found = understood(&answer)?;
    if args.json {
        print::data(&format!("{}\n", pretty(&answer)))?;
    }
    if found.memories.is_empty() {
        return Err(Error::new("no memory matches the query").hint(
            "use other words, or omit the scope; `switchboard memory list` lists the memories",
        ));
    }
    if !args.json {
        print::data(&listing(&found.memories))?;
        if matches!(&*found.vectors, "loading" | "filling") && mode.is_none() {
            print::say("searched by keyword only: the vectors are not ready yet");
        }
    }
    Ok(())
}

/// Waits, for a limited time, until memories can be found by meaning or it is clear that they cannot.
async fn wait_for_vectors(memory: &Session, patience: Duration) -> Result<(), Error> {
    let until = Instant::now() + patience;
    while stats::are_vectors_coming(memory).await? && Instant::now() < until {
        sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

fn listing(memories: &[Remembered]) -> String {
    let mut text = String::new();
    for memory in memories {
        let id = visible_line(&memory.id);
        let score = memory.score.unwrap_or_default();
        let about = [
            memory.channels.in_words(),
            memory.scope(),
            memory
                .valid()
                .map_or_else(String::new, |when| format!("valid {when}")),
        ];
        let about: Vec<_> = about.into_iter().filter(|part| !part.is_empty()).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{score:.2}  {id}  {}  {}",
            memory.day(),
            about.join("; ")
        );
        text.push_str(&excerpt(&memory.content));
    }
    text
}
