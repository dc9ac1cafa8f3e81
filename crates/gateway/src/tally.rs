//! Tells whoever watches that calls were made.
//!
//! A call counts itself and nothing else. While somebody reads events, the counts are looked at once a
//! second; while nobody does, nothing runs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use serde_json::{Map, Value, json};
use switchboard_store::Query;
use tokio::time::{sleep, timeout};

use crate::context::Context;

/// How often the counts are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// Runs as long as the gateway.
pub(crate) async fn run(context: Weak<Context>) {
    let mut before = BTreeMap::new();
    loop {
        let Some(watched) = context.upgrade().map(|context| context.events.watched()) else {
            return;
        };
        watched.await;
        sleep(EVERY).await;
        let Some(context) = context.upgrade() else {
            return;
        };
        // What was counted while nobody watched is told to the first who does.
        let now = context.metrics.calls();
        if context.events.is_watched() && now != before {
            tell(&context, &before, &now).await;
            before = now;
        }
    }
}

async fn tell(context: &Arc<Context>, before: &Counts, now: &Counts) {
    let last = newest(context).await;
    context.events.tell("calls", || {
        let changed = now
            .iter()
            .filter(|(name, counts)| before.get(*name) != Some(counts));
        let servers: Map<String, Value> = changed
            .map(|(name, (calls, errors))| {
                let counts = json!({ "calls": calls, "errors": errors });
                (name.clone(), counts)
            })
            .collect();
        json!({ "last": last, "servers": servers })
    });
}

type Counts = BTreeMap<String, (u64, u64)>;

/// The last call that was written down, if the store says so in time.
async fn newest(context: &Context) -> Option<u64> {
    let newest = context.store.activity(Query {
        limit: 1,
        ..Query::default()
    });
    let newest = timeout(EVERY, newest).await.ok()?.ok()?;
    newest.first().map(|call| call.id)
}
