//! `switchboard memory export`: writes all memories to a file.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use serde::Deserialize;
use switchboard_config::Home;
use switchboard_files::{Draft, Durability};
use switchboard_terminal::{error::Error, print};

use super::{
    super::{config_file::cannot, progress::Progress, words::count},
    scope::{Scope, Wish},
    session::{self, Session},
};

/// Entries fetched at once.
const PAGE: u64 = 1_000;

/// Write memories to a file or to standard output.
///
/// JSON lines can be imported again with `switchboard memory import`; Markdown is for reading. The file is
/// written as a whole or not at all, and only its owner can read it.
#[derive(Debug, Args)]
pub(super) struct Export {
    /// File to write; standard output if it is `-` or omitted
    file: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Include earlier versions of memories
    #[arg(long)]
    history: bool,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object per line, as read by `import`
    Jsonl,
    /// For reading
    Markdown,
}

#[derive(Deserialize)]
struct Page {
    data: String,
    count: u64,
    next_cursor: Option<String>,
}

pub(super) fn run(home: &Home, args: &Export) -> Result<(), Error> {
    let format = match args.format {
        Format::Jsonl => "jsonl",
        Format::Markdown => "markdown",
    };
    let wish = Wish::new()
        .with("format", Some(format))
        .with("include_history", args.history.then_some(true))
        .with("limit", Some(PAGE))
        .within(&args.scope);
    let Some(path) = args.file.as_deref().filter(|path| *path != Path::new("-")) else {
        return session::with(home, async |memory| {
            let mut to = io::stdout();
            pages(memory, &wish, |data| Ok(to.write_all(data.as_bytes())?)).await?;
            Ok(to.flush()?)
        });
    };
    // The final write checks this, too, but failing before any work is better.
    if !args.force && path.symlink_metadata().is_ok() {
        return Err(is_there(path));
    }
    let mut draft = Draft::beside(path).map_err(|error| cannot("create", path, &error))?;
    let failed = |error| cannot("write", path, &error);
    let lines = session::with(home, async |memory| {
        pages(memory, &wish, |data| {
            draft.write_all(data.as_bytes()).map_err(failed)
        })
        .await
    })?;
    let placed = if args.force {
        draft.place(Durability::Synced)
    } else {
        draft.place_new()
    };
    placed.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => is_there(path),
        _ => failed(error),
    })?;
    let lines = count(lines, "entry", "entries");
    print::say(&format!("wrote {lines} to {}", path.display()));
    Ok(())
}

/// Calls `each` with page after page, and returns the number of entries.
async fn pages(
    memory: &Session,
    wish: &Wish,
    mut each: impl FnMut(&str) -> Result<(), Error>,
) -> Result<u64, Error> {
    let mut progress = Progress::new();
    let mut written = 0;
    let mut cursor: Option<String> = None;
    loop {
        let wish = wish.clone().with("cursor", cursor.as_deref());
        let page: Page = memory.read("export_memory", &wish).await?;
        each(&page.data)?;
        written += page.count;
        progress.show(&format!("exporting… {written}"));
        if page.next_cursor.is_none() {
            return Ok(written);
        }
        if page.next_cursor == cursor {
            return Err(Error::new(
                "the export stalled: the gateway returned no more entries",
            ));
        }
        cursor = page.next_cursor;
    }
}

fn is_there(path: &Path) -> Error {
    Error::new(format!("{} already exists", path.display()))
        .hint("choose another name, or use --force to replace it")
}
