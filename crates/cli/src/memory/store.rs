//! `switchboard memory store`: stores one memory.

use std::io::{self, Read as _};

use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_config::Home;
use switchboard_terminal::visible::{pretty, visible_line};
use switchboard_terminal::{error::Error, print};

use super::{
    scope::{self, MemoryType, Scope, Wish},
    session::{self, understood},
};

/// The most bytes that are read from standard input; the memory itself accepts up to 1 MiB.
const CONTENT_BYTES: u64 = 4 * 1024 * 1024;

/// Store a memory.
///
/// Write it so that it can be understood on its own. Prints the ID of the new memory, and warns about
/// near duplicates.
#[derive(Debug, Args)]
pub(super) struct Store {
    /// Text to remember, with or without quotes; `-` reads it from standard input
    #[arg(required = true, num_args = 1..)]
    content: Vec<String>,
    /// Kind of memory; semantic if omitted
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    kind: Option<MemoryType>,
    /// Importance from 0 to 1; 0.5 if omitted
    #[arg(long, value_name = "SHARE", value_parser = share)]
    importance: Option<f64>,
    /// Time from which it is valid, such as 2026-07-28 or 2026-07-28T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = scope::time)]
    from: Option<String>,
    /// Time until which it is valid
    #[arg(long, value_name = "TIME", value_parser = scope::time)]
    until: Option<String>,
    /// Person or thing that it is about; can be repeated
    #[arg(long = "entity", value_name = "NAME")]
    entities: Vec<String>,
    /// Metadata, as a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    #[command(flatten)]
    scope: Scope,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Stored {
    id: String,
    #[serde(default)]
    similar: Vec<Similar>,
}

#[derive(Deserialize)]
struct Similar {
    id: String,
    content: String,
    similarity: f64,
}

pub(super) fn run(home: &Home, args: &Store) -> Result<(), Error> {
    let content = content(&args.content)?;
    if content.trim().is_empty() {
        return Err(Error::usage("the text to remember is empty")
            .hint("pass the text, as in `switchboard memory store Ada prefers tea`"));
    }
    let entities = Some(args.entities.clone()).filter(|names| !names.is_empty());
    let wish = Wish::new()
        .with("content", Some(content))
        .within(&args.scope)
        .of_type(args.kind)
        .with("importance", args.importance)
        .with("valid_from", args.from.as_deref())
        .with("valid_until", args.until.as_deref())
        .with("entities", entities)
        .with("metadata", metadata(args.metadata.as_deref())?);
    let answer = session::with(home, async |memory| {
        memory.call("store_memory", &wish).await
    })?;
    let stored: Stored = understood(&answer)?;
    for similar in &stored.similar {
        print::warn(&format!(
            "{} is a near duplicate (similarity {:.2}): {}",
            visible_line(&similar.id),
            similar.similarity,
            print::one_line(&visible_line(&similar.content))
        ));
    }
    if args.json {
        print::data(&format!("{}\n", pretty(&answer)))
    } else {
        print::data(&format!("{}\n", visible_line(&stored.id)))
    }
}

fn content(words: &[String]) -> Result<String, Error> {
    if words != ["-"] {
        return Ok(words.join(" "));
    }
    let mut text = String::new();
    let read = io::stdin()
        .take(CONTENT_BYTES + 1)
        .read_to_string(&mut text);
    let read =
        read.map_err(|error| Error::usage(format!("cannot read standard input: {error}")))?;
    if read as u64 > CONTENT_BYTES {
        return Err(Error::usage(format!(
            "standard input is too long for one memory: it has more than {CONTENT_BYTES} bytes"
        ))
        .hint("store it in parts that can each be understood on their own"));
    }
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    Ok(text)
}

fn metadata(given: Option<&str>) -> Result<Option<Map<String, Value>>, Error> {
    let Some(given) = given else { return Ok(None) };
    let read: Result<Map<String, Value>, _> = serde_json::from_str(given);
    read.map(Some).map_err(|error| {
        Error::usage(format!("--metadata is not a JSON object: {error}"))
            .hint(r#"pass an object such as '{"source": "mail"}'"#)
    })
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok();
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "expected a number from 0 to 1".to_owned())
}
