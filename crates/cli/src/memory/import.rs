//! `switchboard memory import`: imports memories that were exported here or elsewhere.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use switchboard_config::Home;
use switchboard_files::Links;
use switchboard_terminal::visible::visible_line;
use switchboard_terminal::{error::Error, print};

use super::{
    super::{config_file::cannot, progress::Progress, words::count},
    pages::{Page, Pages},
    scope::Wish,
    session::{self, Session},
};

/// The largest file, in bytes: all of it is held in memory during the import.
const FILE_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Invalid lines that are listed; `--json` lists all.
const NAMED: usize = 20;

/// Import JSON lines written by `switchboard memory export`.
///
/// Also reads the file of the MCP reference memory server. Invalid lines are reported and
/// skipped, and the exit code is 1. If the import is interrupted, run it again: memories that are
/// already stored are skipped.
#[derive(Debug, Args)]
pub(super) struct Import {
    /// File to import; `-` reads standard input
    file: PathBuf,
    /// Treatment of a memory whose ID already exists
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnConflict::Skip)]
    on_conflict: OnConflict,
    /// Check the file without importing it
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnConflict {
    /// Keep the existing memory
    Skip,
    /// Replace it, with its history
    Replace,
    /// Keep both, the new one under another ID
    Copy,
}

/// The result of importing a page, or of all pages together.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Imported {
    memories: u64,
    entities: u64,
    relations: u64,
    skipped: u64,
    #[serde(default)]
    errors: Vec<Wrong>,
}

/// An invalid line.
#[derive(Debug, Serialize, Deserialize)]
struct Wrong {
    line: u64,
    message: String,
}

pub(super) fn run(home: &Home, args: &Import) -> Result<(), Error> {
    let text = read(&args.file)?;
    let pages = Pages::of(&text);
    if pages.lines == 0 {
        return Err(Error::new("the file contains no memories")
            .hint("use a file that `switchboard memory export` wrote"));
    }
    let on_conflict = match args.on_conflict {
        OnConflict::Skip => "skip",
        OnConflict::Replace => "replace",
        OnConflict::Copy => "copy",
    };
    let wish = Wish::new()
        .with("on_conflict", Some(on_conflict))
        .with("dry_run", args.dry_run.then_some(true));
    let mut total = Imported::default();
    let done = session::with(home, async |memory| {
        import(memory, &wish, pages, &mut total).await
    });
    total.errors.sort_by_key(|wrong| wrong.line);
    if args.json && done.is_ok() {
        print::json(&total)?;
    } else {
        tell(&total, args.dry_run);
    }
    done?;
    if total.errors.is_empty() {
        return Ok(());
    }
    let lines = count(total.errors.len() as u64, "invalid line", "invalid lines");
    Err(Error::new(format!("skipped {lines}"))
        .hint("fix them and import the file again; stored memories are skipped"))
}

async fn import(
    memory: &Session,
    wish: &Wish,
    mut pages: Pages<'_>,
    total: &mut Imported,
) -> Result<(), Error> {
    let lines = pages.lines;
    let mut progress = Progress::new();
    let mut sent = 0;
    for line in std::mem::take(&mut pages.too_long) {
        let message = "this memory and its versions are larger than 14 MiB".to_owned();
        total.errors.push(Wrong { line, message });
    }
    for Page { text, numbers } in pages {
        let wish = wish.clone().with("jsonl", Some(text));
        let mut page: Imported = memory.read("import_memory", &wish).await?;
        for wrong in &mut page.errors {
            wrong.line = file_line(&numbers, wrong.line);
        }
        total.memories += page.memories;
        total.entities += page.entities;
        total.relations += page.relations;
        total.skipped += page.skipped;
        total.errors.append(&mut page.errors);
        sent += numbers.len();
        progress.show(&format!("importing… {sent} of {lines} lines"));
    }
    Ok(())
}

/// The line number in the file, for a line of a page.
fn file_line(numbers: &[u64], line: u64) -> u64 {
    let at = usize::try_from(line.saturating_sub(1)).ok();
    at.and_then(|at| numbers.get(at)).copied().unwrap_or(line)
}

fn tell(total: &Imported, dry_run: bool) {
    for wrong in total.errors.iter().take(NAMED) {
        print::warn(&format!(
            "line {}: {}",
            wrong.line,
            visible_line(&wrong.message)
        ));
    }
    if total.errors.len() > NAMED {
        let more = count((total.errors.len() - NAMED) as u64, "line", "lines");
        print::warn(&format!("{more} more; --json lists all"));
    }
    let done = if dry_run { "would import" } else { "imported" };
    print::say(&format!(
        "{done} {}, {}, {}; {} skipped",
        count(total.memories, "memory", "memories"),
        count(total.entities, "entity", "entities"),
        count(total.relations, "relation", "relations"),
        total.skipped
    ));
}

fn read(path: &Path) -> Result<String, Error> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        let mut input = io::stdin().take(FILE_BYTES + 1);
        let read = input.read_to_end(&mut bytes);
        read.and_then(|read| {
            let fits = read as u64 <= FILE_BYTES;
            fits.then_some(bytes)
                .ok_or_else(|| io::ErrorKind::FileTooLarge.into())
        })
    } else {
        switchboard_files::read(path, FILE_BYTES, Links::Follow)
    };
    let bytes = bytes.map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => Error::new(format!("{} is too large", path.display()))
            .hint("split it into files of less than 2 GiB, between two memories"),
        io::ErrorKind::InvalidInput => Error::new(format!("{} is not a file", path.display()))
            .hint("use `-` to read from standard input"),
        _ => cannot("read", path, &error),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let lines = error.as_bytes()[..good]
            .iter()
            .filter(|byte| **byte == b'\n');
        Error::new(format!(
            "line {} of {} is not UTF-8 text",
            lines.count() + 1,
            path.display()
        ))
        .hint("use a file that `switchboard memory export` wrote")
    })
}
