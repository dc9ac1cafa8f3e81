//! `switchboard memory stats`: the size and the state of the memory.

use std::{fmt::Write as _, time::Duration};

use clap::Args;
use serde::Deserialize;
use switchboard_config::Home;
use switchboard_terminal::visible::{pretty, visible_line};
use switchboard_terminal::{error::Error, print};
use switchboard_wire::Raw;
use tokio::time::{Instant, sleep};

use super::{
    scope::Wish,
    session::{self, Session, understood},
};

/// Time to wait for a store that is being opened.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Show the size and the state of the memory store.
///
/// If a part of it has failed, the exit code is 1, and the output says what to do.
#[derive(Debug, Args)]
pub(super) struct Stats {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Status {
    #[serde(rename = "status")]
    overall: String,
    memories: Option<u64>,
    versions: Option<u64>,
    entities: Option<u64>,
    relations: Option<u64>,
    parts: Parts,
}

#[derive(Deserialize)]
struct Parts {
    store: Part,
    index: Part,
    embeddings: Part,
}

#[derive(Deserialize)]
struct Part {
    state: String,
    message: Option<String>,
    action: Option<String>,
    model: Option<String>,
    embedded: Option<u64>,
    waiting: Option<u64>,
}

pub(super) fn run(home: &Home, args: &Stats) -> Result<(), Error> {
    let (answer, status) = session::with(home, async |memory| settled(memory).await)?;
    if args.json {
        print::data(&format!("{}\n", pretty(&answer)))?;
    } else {
        print::data(&readable(&status))?;
    }
    if status.overall == "error" {
        return Err(Error::reported());
    }
    Ok(())
}

/// Returns `true` if the store does not work.
pub(super) fn is_store_broken(home: &Home) -> Result<bool, Error> {
    let (_, status) = session::with(home, async |memory| settled(memory).await)?;
    Ok(status.parts.store.state == "error")
}

/// Returns `true` if memories cannot be found by meaning yet, but will be.
pub(super) async fn are_vectors_coming(memory: &Session) -> Result<bool, Error> {
    let status: Status = memory.read("get_status", &Wish::new()).await?;
    let state = &*status.parts.embeddings.state;
    Ok(matches!(state, "loading" | "filling"))
}

/// The state of the memory, after its store was opened or failed to open: before, nothing can be counted.
async fn settled(memory: &Session) -> Result<(Raw, Status), Error> {
    let until = Instant::now() + PATIENCE;
    loop {
        let answer = memory.call("get_status", &Wish::new()).await?;
        let status: Status = understood(&answer)?;
        if status.parts.store.state != "initializing" || Instant::now() >= until {
            return Ok((answer, status));
        }
        sleep(LOOK_AGAIN).await;
    }
}

fn readable(status: &Status) -> String {
    let mut text = String::new();
    // An unknown count is not zero.
    let count =
        |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
    let memories = match status.versions {
        Some(versions) if Some(versions) != status.memories => {
            format!("{} ({versions} versions)", count(status.memories))
        }
        _ => count(status.memories),
    };
    let Parts {
        store,
        index,
        embeddings,
    } = &status.parts;
    let rows = [
        ("Memories", memories),
        ("Entities", count(status.entities)),
        ("Relations", count(status.relations)),
        ("Store", store.in_words()),
        ("Index", index.in_words()),
        ("Vectors", embeddings.in_words()),
    ];
    for (name, value) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<10} {value}");
    }
    text
}

impl Part {
    fn in_words(&self) -> String {
        let mut words = visible_line(&self.state);
        let mut more = Vec::new();
        more.extend(self.model.as_deref().map(visible_line));
        if let (Some(embedded), Some(waiting)) = (self.embedded, self.waiting) {
            more.push(format!("{embedded} computed, {waiting} pending"));
        }
        more.extend(self.message.as_deref().map(visible_line));
        if !more.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(words, ": {}", more.join(", "));
        }
        if let Some(action) = &self.action {
            let _ = write!(words, "; {}", visible_line(action));
        }
        words
    }
}
