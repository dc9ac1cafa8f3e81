//! `switchboard memory repair`: recovers the readable part of a damaged store.

use std::time::Duration;

use clap::Args;
use switchboard_config::Home;
use switchboard_host::runtime::{self, Lock};
use switchboard_rest::status::{RepairMemory, RepairedMemory};
use switchboard_store::{Store, memory::Salvaged};
use switchboard_terminal::visible::visible_line;
use switchboard_terminal::{error::Error, print};
use tokio::time::timeout;

use super::{
    super::{agree::DISCARD, progress::Progress, words::count},
    stats,
};
use crate::link::Link;

/// Time for the store to write its remaining data.
const CLOSE: Duration = Duration::from_secs(10);
/// The most problems that are listed.
const NAMED: usize = 20;

/// Recover the readable part of a damaged memory store.
///
/// The gateway moves a damaged store aside, and the memory server is unavailable until you choose: this
/// command recovers the readable part, and --discard starts with an empty store. The damaged file is kept in
/// either case.
#[derive(Debug, Args)]
pub(super) struct Repair {
    /// Start without the content of the damaged file
    #[arg(long)]
    discard: bool,
    /// Do not ask for confirmation before discarding
    #[arg(long, short, requires = "discard")]
    yes: bool,
}

fn mended(salvaged: &Salvaged) -> RepairedMemory {
    RepairedMemory {
        versions: salvaged.versions,
        entities: salvaged.entities,
        relations: salvaged.relations,
        problems: salvaged.problems.iter().map(ToString::to_string).collect(),
    }
}

pub(super) fn run(home: &Home, args: &Repair) -> Result<(), Error> {
    if args.discard {
        DISCARD.check(args.yes)?;
    }
    let mended = if let Some(link) = Link::find(home)? {
        ask(home, &link, args)?
    } else {
        by_oneself(home, args)?
    };
    match mended {
        None => print::say("the memory store is not damaged; there is nothing to repair"),
        Some(_) if args.discard => {
            print::say("the memory store is now empty; the damaged file is kept beside it");
        }
        Some(mended) => tell(&mended),
    }
    Ok(())
}

/// Asks the running gateway to repair the store. Returns `None` if there is nothing to repair.
fn ask(home: &Home, link: &Link, args: &Repair) -> Result<Option<RepairedMemory>, Error> {
    if !stats::is_store_broken(home)? {
        return Ok(None);
    }
    if args.discard {
        DISCARD.agree(args.yes, &question("the damaged file"))?;
    }
    let discard = args.discard;
    let wish = serde_json::to_string(&RepairMemory { discard })
        .map_err(|error| Error::new(error.to_string()))?;
    let answer = link.post_and_wait("/api/v1/memory/repair", &wish)?;
    let mended = serde_json::from_str(&answer)
        .map_err(|error| Error::new(format!("cannot parse the gateway's response: {error}")))?;
    Ok(Some(mended))
}

/// Repairs the store without a gateway.
fn by_oneself(home: &Home, args: &Repair) -> Result<Option<RepairedMemory>, Error> {
    if !home.database().exists() {
        return Ok(None);
    }
    home.create()?;
    let Ok(lock) = Lock::take(home)? else {
        return Err(Error::new("another program is using the memory").hint("run the command again"));
    };
    let done = runtime::block_on(async {
        let store = Store::open(home.database());
        let done = mend(&store, args).await;
        store.close();
        let _ = timeout(CLOSE, store.closed()).await;
        done
    })?;
    drop(lock);
    done
}

async fn mend(store: &Store, args: &Repair) -> Result<Option<RepairedMemory>, Error> {
    let memories = store.memories();
    let Some(aside) = memories.damaged().await? else {
        return Ok(None);
    };
    if args.discard {
        DISCARD.agree(args.yes, &question(&visible_line(&aside)))?;
        memories.discard_damaged().await?;
        return Ok(Some(RepairedMemory::default()));
    }
    let mut progress = Progress::new();
    let told = |salvaged: &Salvaged| {
        progress.show(&format!("repairing… {} versions", salvaged.versions));
    };
    let salvaged = memories.repair(told).await?;
    Ok(Some(mended(&salvaged)))
}

fn question(file: &str) -> String {
    format!("Start without the memories in {file}? The file is kept.")
}

fn tell(mended: &RepairedMemory) {
    for problem in mended.problems.iter().take(NAMED) {
        print::warn(&visible_line(problem));
    }
    if mended.problems.len() > NAMED {
        print::warn(&format!("and {} more", mended.problems.len() - NAMED));
    }
    print::say(&format!(
        "recovered {}, {} and {}; the damaged file is kept beside the store",
        count(mended.versions, "version", "versions"),
        count(mended.entities, "entity", "entities"),
        count(mended.relations, "relation", "relations"),
    ));
}
