//! Tells what happens to requests for approval, to whoever makes them louder.

use std::{sync::Arc, time::SystemTime};

use switchboard_client::Raw;
use tokio::sync::broadcast::{self, Receiver};

/// So much is heard at a time; who tells more at once is not heard to the end.
const HEARD: usize = 256;

/// Something that happened to a request.
#[derive(Debug)]
pub struct Event {
    /// The name of the event, such as `approval.created`.
    pub kind: &'static str,
    /// When it happened.
    pub at: SystemTime,
    /// The request as it is told outside.
    pub approval: Raw,
}

/// Where it is told what happens to requests.
#[derive(Debug)]
pub struct Notifier(broadcast::Sender<Arc<Event>>);

impl Default for Notifier {
    fn default() -> Self {
        Self(broadcast::Sender::new(HEARD))
    }
}

impl Notifier {
    /// Something has happened. It waits for nobody.
    pub fn tell(&self, kind: &'static str, approval: Raw) {
        let at = SystemTime::now();
        // Nobody hears before the task is there and after it has gone.
        let _ = self.0.send(Arc::new(Event { kind, at, approval }));
    }

    /// Hears of every event from now on.
    pub fn subscribe(&self) -> Receiver<Arc<Event>> {
        self.0.subscribe()
    }
}
