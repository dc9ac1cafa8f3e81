//! Notifies watchers of calls.
//!
//! A call only updates counters. While there are readers of events, the counters are polled once a second;
//! while there are none, nothing runs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use switchboard_core::core::Core;
use switchboard_rest::events::{self, CallsEvent};
use switchboard_store::Query;
use tokio::time::{sleep, timeout};

/// The interval at which the counters are polled.
const EVERY: Duration = Duration::from_secs(1);

/// Runs as long as the gateway.
pub(crate) async fn run(core: Weak<Core>) {
    let mut before = BTreeMap::new();
    loop {
        let Some(watched) = core.upgrade().map(|core| core.events.watched()) else {
            return;
        };
        watched.await;
        sleep(EVERY).await;
        let Some(core) = core.upgrade() else {
            return;
        };
        // Calls that were counted without a reader are reported to the next reader.
        let now = core.metrics.calls();
        if core.events.is_watched() && now != before {
            tell(&core, &before, &now).await;
            before = now;
        }
    }
}

async fn tell(core: &Arc<Core>, before: &Counts, now: &Counts) {
    let last = newest(core).await;
    core.events.tell("calls", || {
        let changed = now
            .iter()
            .filter(|(name, counts)| before.get(*name) != Some(counts));
        let servers = changed
            .map(|(name, &(calls, errors))| (name.clone(), events::Counts { calls, errors }));
        CallsEvent {
            last,
            servers: servers.collect(),
        }
    });
}

type Counts = BTreeMap<String, (u64, u64)>;

/// The last recorded call, if the store responds in time.
async fn newest(core: &Core) -> Option<u64> {
    let newest = core.store.activity(Query {
        limit: 1,
        ..Query::default()
    });
    let newest = timeout(EVERY, newest).await.ok()?.ok()?;
    newest.first().map(|call| call.id)
}
