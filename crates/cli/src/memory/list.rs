//! `switchboard memory list`: memories, most recently learned first.

use std::{collections::HashSet, fmt::Write};

use clap::Args;
use serde::Deserialize;
use switchboard_config::Home;
use switchboard_terminal::visible::{pretty, visible_line};
use switchboard_terminal::{error::Error, print};
use switchboard_wire::Raw;

use super::{
    super::progress::Progress,
    scope::{MemoryType, Scope, Times, Wish},
    session::{self, Session, understood},
    shapes::{Remembered, indented},
};

/// The most memories that the server lists at once.
const PAGE: u64 = 200;

/// List memories, most recently learned first
#[derive(Debug, Args)]
pub(super) struct List {
    /// Number of memories to show, up to 200
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=PAGE))]
    limit: u64,
    /// Number of memories to skip
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u64,
    /// Show all memories
    #[arg(long, conflicts_with_all = ["limit", "offset"])]
    all: bool,
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

impl List {
    fn is_filtered(&self) -> bool {
        self.kind.is_some() || self.scope != Scope::default() || self.times != Times::default()
    }
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    memories: Vec<Raw>,
    total: u64,
    next_offset: Option<u64>,
}

pub(super) fn run(home: &Home, args: &List) -> Result<(), Error> {
    let wish = Wish::new()
        .within(&args.scope)
        .of_type(args.kind)
        .at(&args.times);
    let page = session::with(home, async |memory| {
        if args.all {
            return all(memory, &wish).await;
        }
        page(memory, wish, args.limit, args.offset).await
    })?;
    if args.json {
        return print::data(&format!("{}\n", pretty(&page.to_raw())));
    }
    if page.memories.is_empty() {
        print::say(match page.total {
            0 if args.is_filtered() => "no memories match",
            0 => "there are no memories",
            _ => "the offset is beyond the last memory",
        });
        return Ok(());
    }
    let memories: Result<Vec<Remembered>, _> = page.memories.iter().map(understood).collect();
    print::data(&listing(&memories?))?;
    if let Some(next) = page.next_offset {
        let shown = page.memories.len();
        print::say(&format!("{shown} of {} memories", page.total));
        print::hint(&format!(
            "use --offset {next} for the next page, or --all to show all memories"
        ));
    }
    Ok(())
}

async fn page(memory: &Session, wish: Wish, limit: u64, offset: u64) -> Result<Page, Error> {
    let wish = wish.with("limit", Some(limit)).with("offset", Some(offset));
    memory.read("list_memories", &wish).await
}

/// Fetches all pages. A memory that is stored meanwhile shifts the rest, so that some come twice.
async fn all(memory: &Session, wish: &Wish) -> Result<Page, Error> {
    let mut known = HashSet::new();
    let mut progress = Progress::new();
    let mut memories = Vec::new();
    let mut offset = Some(0);
    while let Some(here) = offset {
        let page = page(memory, wish.clone(), PAGE, here).await?;
        for memory in page.memories {
            let id = memory.member("id").and_then(|id| id.to_text());
            if id.is_none_or(|id| known.insert(id)) {
                memories.push(memory);
            }
        }
        progress.show(&format!("{} of {} memories", memories.len(), page.total));
        offset = page.next_offset.filter(|next| *next > here);
    }
    Ok(Page {
        total: memories.len() as u64,
        memories,
        next_offset: None,
    })
}

/// Characters in the ID of a memory that was stored here.
const ID_CHARS: usize = 29;
/// The most candidates shown for an ambiguous ID.
const SHOWN: usize = 10;

/// The memories whose IDs begin with a prefix.
#[derive(Default)]
struct Candidates {
    /// A set, because a memory that is stored meanwhile shifts the rest of a list, so that some come twice.
    ids: HashSet<String>,
    /// The first candidates.
    shown: Vec<Raw>,
}

/// Completes ID prefixes, in one pass over all memories. An ID that no memory has is returned as it is.
pub(super) async fn find(memory: &Session, given: &[String]) -> Result<Vec<String>, Error> {
    let is_whole = |id: &String| id.is_empty() || id.chars().count() >= ID_CHARS;
    if given.iter().all(is_whole) {
        return Ok(given.to_vec());
    }
    let mut all: Vec<Candidates> = given.iter().map(|_| Candidates::default()).collect();
    let mut offset = Some(0);
    while let Some(here) = offset {
        let wish = Wish::new().with("include_invalid", Some(true));
        let page = page(memory, wish, PAGE, here).await?;
        for memory in page.memories {
            let Some(id) = memory.member("id").and_then(|id| id.to_text()) else {
                continue;
            };
            for (given, candidates) in given.iter().zip(&mut all) {
                let is_one = !given.is_empty() && id.starts_with(given.as_str());
                if is_one && candidates.ids.insert(id.clone()) && candidates.shown.len() < SHOWN {
                    candidates.shown.push(memory.clone());
                }
            }
        }
        offset = page.next_offset.filter(|next| *next > here);
    }
    let all = given.iter().zip(all);
    all.map(|(given, candidates)| candidates.one(given))
        .collect()
}

impl Candidates {
    fn one(self, given: &str) -> Result<String, Error> {
        if self.ids.contains(given) || self.ids.is_empty() {
            return Ok(given.to_owned());
        }
        if self.ids.len() == 1 {
            return Ok(self.ids.into_iter().collect());
        }
        let shown: Result<Vec<Remembered>, _> = self.shown.iter().map(understood).collect();
        let more = match self.ids.len() - self.shown.len() {
            0 => String::new(),
            more => format!("\n  and {more} more"),
        };
        let message = format!(
            "the IDs of {} memories begin with {:?}:\n{}{more}",
            self.ids.len(),
            visible_line(given),
            listing(&shown?).trim_end()
        );
        Err(Error::new(message).hint("use more characters of the ID"))
    }
}

impl Page {
    /// The page as the tool returns it.
    fn to_raw(&self) -> Raw {
        let next = self
            .next_offset
            .map(|next| ("next_offset", Raw::number(next)));
        let members = [
            ("memories", Raw::array(self.memories.iter().cloned())),
            ("count", Raw::number(self.memories.len() as u64)),
            ("total", Raw::number(self.total)),
        ];
        Raw::object(members.into_iter().chain(next))
    }
}

/// Each memory with its metadata and the beginning of its text.
fn listing(memories: &[Remembered]) -> String {
    let mut text = String::new();
    for memory in memories {
        let about = [
            visible_line(&memory.memory_type),
            memory.scope(),
            memory
                .valid()
                .map_or_else(String::new, |when| format!("valid {when}")),
        ];
        let about: Vec<_> = about.into_iter().filter(|part| !part.is_empty()).collect();
        let content = memory.content.trim();
        let cut = content.char_indices().nth(CHARS);
        let cut = cut.map_or(content.len(), |(at, _)| at);
        let more = if cut < content.len() { "…" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}  {}  {}\n{}",
            visible_line(&memory.id),
            memory.day(),
            about.join("; "),
            indented(&format!("{}{more}", visible_line(&content[..cut]))),
        );
    }
    text
}

/// Characters shown of each memory.
const CHARS: usize = 300;
