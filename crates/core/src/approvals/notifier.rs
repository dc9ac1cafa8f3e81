//! Publishes changes of approval requests to the tasks that send them to the webhook and the
//! desktop.

use std::{sync::Arc, time::SystemTime};

use switchboard_client::Raw;
use tokio::sync::broadcast::{self, Receiver};

/// Capacity of the channel. A subscriber that falls further behind misses the oldest events.
const HEARD: usize = 256;

/// A change of a request.
#[derive(Debug)]
pub struct Event {
    /// The name of the event, such as `approval.created`.
    pub kind: &'static str,
    /// Time of the change.
    pub at: SystemTime,
    /// The request, redacted for the outside.
    pub approval: Raw,
}

/// The sender of approval events.
#[derive(Debug)]
pub struct Notifier(broadcast::Sender<Arc<Event>>);

impl Default for Notifier {
    fn default() -> Self {
        Self(broadcast::Sender::new(HEARD))
    }
}

impl Notifier {
    /// Publishes an event, without waiting.
    pub fn tell(&self, kind: &'static str, approval: Raw) {
        let at = SystemTime::now();
        // There is no subscriber before the notification task starts and after it ends.
        let _ = self.0.send(Arc::new(Event { kind, at, approval }));
    }

    /// Subscribes to all events from now on.
    pub fn subscribe(&self) -> Receiver<Arc<Event>> {
        self.0.subscribe()
    }
}
