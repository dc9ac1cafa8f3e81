//! The life of the gateway: running, stopping, stopped.

use std::time::SystemTime;

use tokio::sync::watch;

/// The stage of the gateway, which only ever advances.
#[derive(Debug)]
pub struct Lifecycle {
    /// Time when the gateway started.
    pub started: SystemTime,
    stage: watch::Sender<Stage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Running,
    Stopping,
    /// A second request to stop: no more waiting.
    Hurrying,
    Stopped,
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self {
            started: SystemTime::now(),
            stage: watch::Sender::new(Stage::Running),
        }
    }
}

impl Lifecycle {
    /// Begins to stop. Returns `true` on the first request.
    pub(crate) fn begin_stop(&self) -> bool {
        self.advance(Stage::Running, Stage::Stopping)
    }

    /// Handles a second request to stop: processes that have not exited are killed now.
    pub fn hurry(&self) {
        self.advance(Stage::Stopping, Stage::Hurrying);
    }

    /// Marks the gateway as stopped.
    pub(crate) fn end(&self) {
        self.stage.send_replace(Stage::Stopped);
    }

    fn advance(&self, from: Stage, to: Stage) -> bool {
        self.stage.send_if_modified(|stage| {
            let advances = *stage == from;
            if advances {
                *stage = to;
            }
            advances
        })
    }

    /// Tests if the gateway is stopping or has stopped.
    pub fn is_stopping(&self) -> bool {
        *self.stage.borrow() >= Stage::Stopping
    }

    /// Waits until the gateway begins to stop.
    pub fn stopped(&self) -> impl Future<Output = ()> + use<> {
        self.reached(Stage::Stopping)
    }

    /// Waits for a second request to stop.
    pub(crate) fn hurried(&self) -> impl Future<Output = ()> + use<> {
        self.reached(Stage::Hurrying)
    }

    /// Waits until the gateway has stopped completely.
    pub fn ended(&self) -> impl Future<Output = ()> + use<> {
        self.reached(Stage::Stopped)
    }

    fn reached(&self, stage: Stage) -> impl Future<Output = ()> + use<> {
        let mut stages = self.stage.subscribe();
        async move {
            // An error means that the gateway was dropped, which counts as stopped.
            let _ = stages.wait_for(|now| *now >= stage).await;
        }
    }
}
