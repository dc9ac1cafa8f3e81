//! `switchboard memory forget`: deletes memories for good, after the user agrees.

use clap::Args;
use serde::Deserialize;
use switchboard_config::Home;
use switchboard_terminal::visible::visible_line;
use switchboard_terminal::{error::Error, print};

use super::{
    super::{agree::FORGET, words::count},
    list,
    scope::Wish,
    session::{self, Consent},
    shapes::{Remembered, excerpt},
};

/// Delete memories permanently, with all their versions.
///
/// You are asked before anything is deleted. If a memory is merely no longer valid, have an agent invalidate
/// it instead: its earlier versions can then still be queried.
#[derive(Debug, Args)]
#[command(
    override_usage = "switchboard memory forget [OPTIONS] ID...\n       switchboard memory forget --all [OPTIONS]"
)]
pub(super) struct Forget {
    /// IDs of the memories, as shown by `list` and `recall` (a prefix is enough)
    #[arg(value_name = "ID", required_unless_present = "all", num_args = 1..)]
    ids: Vec<String>,
    /// Delete all memories, in every scope
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
}

/// The shortest ID prefix with which `--yes` deletes a memory.
const SURE_CHARS: usize = 12;

pub(super) fn run(home: &Home, args: &Forget) -> Result<(), Error> {
    FORGET.check(args.yes)?;
    if args.all {
        return forget_all(home, args.yes);
    }
    // All memories are looked up before the first is deleted, so that a wrong ID costs nothing. The session
    // is closed while the user decides: others may need the memory.
    let found = session::with(home, async |memory| {
        let mut found: Vec<Remembered> = Vec::new();
        let ids = list::find(memory, &args.ids).await?;
        for (given, id) in args.ids.iter().zip(ids) {
            // The memory would be gone before the user sees which one it is.
            if args.yes && *given != id && given.chars().count() < SURE_CHARS {
                let message = format!(
                    "the ID prefix `{given}` is too short to delete a memory without confirmation"
                );
                return Err(
                    Error::usage(message).hint("use more characters of the ID, or omit --yes")
                );
            }
            if found.iter().all(|known| known.id != id) {
                found.push(memory.read("get_memory", &one(&id)).await?);
            }
        }
        Ok(found)
    })?;
    if !args.yes {
        for memory in &found {
            let heading = format!("{}  {}\n", visible_line(&memory.id), memory.day());
            print::say((heading + &excerpt(&memory.content)).trim_end());
        }
        let many = count(found.len() as u64, "memory", "memories");
        FORGET.agree(args.yes, &format!("Delete {many}? This cannot be undone."))?;
    }
    session::with(home, async |memory| {
        for found in &found {
            memory.call("delete_memory", &one(&found.id)).await?;
        }
        Ok(())
    })?;
    let many = count(found.len() as u64, "memory", "memories");
    print::say(&format!("deleted {many}"));
    Ok(())
}

fn one(id: &str) -> Wish {
    Wish::new().with("id", Some(id))
}

fn forget_all(home: &Home, yes: bool) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct Deleted {
        deleted: u64,
    }
    if !yes {
        let total = session::with(home, async |memory| {
            let wish = Wish::new()
                .with("limit", Some(1))
                .with("include_invalid", Some(true));
            let page: Total = memory.read("list_memories", &wish).await?;
            Ok(page.total)
        })?;
        if total == 0 {
            print::say("there are no memories");
            return Ok(());
        }
        let all = all_of(total);
        FORGET.agree(
            yes,
            &format!("Delete {all}, in every scope? This cannot be undone."),
        )?;
    }
    let done: Deleted = session::with_consent(home, Consent::Given, async |memory| {
        memory.read("reset_all_memory", &Wish::new()).await
    })?;
    print::say(&match done.deleted {
        0 => "there are no memories".to_owned(),
        deleted => format!("deleted {}", all_of(deleted)),
    });
    Ok(())
}

fn all_of(total: u64) -> String {
    match total {
        1 => "the only memory".to_owned(),
        more => format!("all {more} memories"),
    }
}

#[derive(Deserialize)]
struct Total {
    total: u64,
}
