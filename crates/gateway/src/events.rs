//! What happens in the gateway, for whoever watches.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::SystemTime,
};

use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::{health::Health, time};

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// Its place in the order of events of this gateway.
    pub id: u64,
    /// What kind: `server.state`, `config.applied`, `config.refused`, `gateway.stopping`.
    pub kind: &'static str,
    /// When.
    #[serde(serialize_with = "time::rfc3339")]
    pub at: SystemTime,
    /// What.
    pub data: Value,
}

/// A reader that falls further behind than this misses the oldest, and is told how many.
const DEPTH: usize = 512;

#[derive(Debug)]
pub(crate) struct Events {
    sender: broadcast::Sender<Arc<Event>>,
    next: AtomicU64,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::Sender::new(DEPTH),
            next: AtomicU64::new(1),
        }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.sender.subscribe()
    }

    /// Tells whoever watches. Costs next to nothing if nobody does.
    pub(crate) fn tell(&self, kind: &'static str, data: impl FnOnce() -> Value) {
        let id = self.next.fetch_add(1, Relaxed);
        if self.sender.receiver_count() > 0 {
            let _ = self.sender.send(Arc::new(Event {
                id,
                kind,
                at: SystemTime::now(),
                data: data(),
            }));
        }
    }

    pub(crate) fn server(&self, name: &str, health: &Health) {
        self.tell("server.state", || json!({ "name": name, "health": health }));
    }
}
