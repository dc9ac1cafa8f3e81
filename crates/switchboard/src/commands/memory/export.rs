//! `switchboard memory export`: everything that is remembered, in a file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::Deserialize;
use switchboard_config::Home;

use super::{
    super::{config_file::cannot, shapes::count},
    progress::Progress,
    scope::{Scope, Wish},
    session::{self, Session},
};
use crate::{failure::Failure, print};

/// So many are fetched at once.
const PAGE: u64 = 1_000;

/// Write what is remembered to a file or to standard output.
///
/// JSON lines can be read again with `switchboard memory import`; Markdown is for people. A file is
/// written whole or not at all, and only its owner may read it.
#[derive(Debug, Args)]
pub(super) struct Export {
    /// The file; standard output if it is `-` or not named
    file: Option<PathBuf>,
    /// How it is written
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Also what memories were before
    #[arg(long)]
    history: bool,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object a line, which `import` reads
    Jsonl,
    /// For people
    Markdown,
}

#[derive(Deserialize)]
struct Page {
    data: String,
    count: u64,
    next_cursor: Option<String>,
}

pub(super) fn run(home: &Home, args: &Export) -> Result<(), Failure> {
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
    // Also said at the end; to say it before any work is kinder.
    if !args.force && path.symlink_metadata().is_ok() {
        return Err(is_there(path));
    }
    let mut draft = Draft::new(path)?;
    let lines = session::with(home, async |memory| {
        pages(memory, &wish, |data| draft.write(data)).await
    })?;
    draft.finish(args.force)?;
    let lines = count(lines, "entry", "entries");
    print::say(&format!("wrote {lines} to {}", path.display()));
    Ok(())
}

/// Hands on page after page; how many entries there were.
async fn pages(
    memory: &Session,
    wish: &Wish,
    mut each: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<u64, Failure> {
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
            return Err(Failure::new(
                "the export does not get on; nothing more can be had",
            ));
        }
        cursor = page.next_cursor;
    }
}

/// A file beside the one that is wanted, which takes its place when it is whole.
struct Draft {
    path: PathBuf,
    /// Where it is written until then.
    beside: PathBuf,
    file: File,
}

impl Draft {
    fn new(path: &Path) -> Result<Self, Failure> {
        let Some(name) = path.file_name() else {
            return Err(Failure::usage(format!("{} names no file", path.display())));
        };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.part", std::process::id()));
        let beside = path.with_file_name(hidden);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)
            .map_err(|error| cannot("make", path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            beside,
            file,
        })
    }

    fn write(&mut self, data: &str) -> Result<(), Failure> {
        self.file
            .write_all(data.as_bytes())
            .map_err(|error| cannot("write", &self.path, &error))
    }

    fn finish(self, force: bool) -> Result<(), Failure> {
        let synced = self.file.sync_all();
        synced.map_err(|error| cannot("write", &self.path, &error))?;
        let placed = if force {
            fs::rename(&self.beside, &self.path)
        } else {
            let placed = renameat_with(CWD, &self.beside, CWD, &self.path, RenameFlags::NOREPLACE);
            match placed.map_err(io::Error::from) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(is_there(&self.path));
                }
                // Not every file system can do it in one step.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    fs::rename(&self.beside, &self.path)
                }
                placed => placed,
            }
        };
        placed.map_err(|error| cannot("write", &self.path, &error))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It is gone already if it has taken its place.
        let _ = fs::remove_file(&self.beside);
    }
}

fn is_there(path: &Path) -> Failure {
    Failure::new(format!("{} is there already", path.display()))
        .hint("choose another name, or give --force to replace it")
}
