//! `switchboard memory repair`: what can be read of a damaged store is brought back.

use std::time::Duration;

use clap::Args;
use switchboard_config::Home;
use switchboard_store::{Store, StoreError, memory::Salvaged};
use tokio::time::timeout;

use super::{
    super::{agree::DISCARD, shapes::count, visible::visible_line},
    progress::Progress,
};
use crate::{
    failure::Failure,
    link::Link,
    print,
    runtime::{self, Lock},
};

/// How long the store may take to write what it still has.
const CLOSE: Duration = Duration::from_secs(10);
/// So many problems are named.
const NAMED: usize = 20;

/// Bring back what can be read of a damaged memory.
///
/// When the store is damaged, it is put aside, and the memory does not work until somebody has
/// decided: this command brings back what can be read, --discard begins without it. The damaged file is
/// kept in either case. No gateway may run meanwhile.
#[derive(Debug, Args)]
pub(super) struct Repair {
    /// Begin without what is in the damaged file
    #[arg(long)]
    discard: bool,
    /// Do not ask before discarding
    #[arg(long, short, requires = "discard")]
    yes: bool,
}

pub(super) fn run(home: &Home, args: &Repair) -> Result<(), Failure> {
    if args.discard {
        DISCARD.check(args.yes)?;
    }
    if Link::find(home)?.is_some() {
        return Err(is_running());
    }
    if !home.database().exists() {
        nothing();
        return Ok(());
    }
    home.create()?;
    let Ok(lock) = Lock::take(home)? else {
        return Err(is_running());
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

fn is_running() -> Failure {
    Failure::new("the memory cannot be repaired while a gateway runs")
        .hint("`switchboard stop` stops it; then repair, and start it again")
}

fn nothing() {
    print::say("the memory is not damaged: there is nothing to repair");
}

async fn mend(store: &Store, args: &Repair) -> Result<(), Failure> {
    let wrong = |error: StoreError| Failure::from_error(&error);
    let memories = store.memories();
    let Some(aside) = memories.damaged().await.map_err(wrong)? else {
        nothing();
        return Ok(());
    };
    let aside = visible_line(&aside);
    if args.discard {
        let question = format!("Begin without the memories in {aside}? The file is kept.");
        DISCARD.agree(args.yes, &question)?;
        memories.discard_damaged().await.map_err(wrong)?;
        print::say("the memory begins anew; the damaged file is kept beside it");
        return Ok(());
    }
    let mut progress = Progress::new();
    let told = |salvaged: &Salvaged| {
        progress.show(&format!("repairing… {} versions", salvaged.versions));
    };
    let salvaged = memories.repair(told).await.map_err(wrong)?;
    drop(progress);
    for problem in salvaged.problems.iter().take(NAMED) {
        print::warn(&visible_line(problem));
    }
    if salvaged.problems.len() > NAMED {
        print::warn(&format!("and {} more", salvaged.problems.len() - NAMED));
    }
    print::say(&format!(
        "brought back {}, {} and {} of {aside}; the damaged file is kept beside the store",
        count(salvaged.versions, "version", "versions"),
        count(salvaged.entities, "entity", "entities"),
        count(salvaged.relations, "relation", "relations"),
    ));
    Ok(())
}
