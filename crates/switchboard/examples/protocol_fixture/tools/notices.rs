//! Tools that say something before they answer, or wait.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::time::sleep;

use super::{count, text};
use crate::{
    call::{Call, Stop},
    rpc::Answer,
    world::World,
};

/// Between two of the messages that the suite wants to see one by one.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn run(call: &Call) -> Option<Result<Answer, Stop>> {
    let answer = match &*call.name {
        "test_tool_with_logging" => with_logging(call).await,
        "test_logging_tool" => at_every_level(call),
        "test_tool_with_progress" => with_progress(call).await,
        "test_progress_burst" => burst(call, true, false),
        "test_log_burst" => burst(call, false, true),
        "test_both_burst" => burst(call, true, true),
        "test_wait_cancel" => wait(call).await,
        "test_reconnection" => {
            call.feed.cut();
            sleep(2 * PAUSE).await;
            text("Reconnection test completed successfully")
        }
        _ => return None,
    };
    Some(Ok(answer))
}

async fn with_logging(call: &Call) -> Answer {
    call.log("info", "Tool execution started");
    sleep(PAUSE).await;
    call.log("info", "Tool processing data");
    sleep(PAUSE).await;
    call.log("info", "Tool execution completed");
    text("Tool with logging executed successfully")
}

fn at_every_level(call: &Call) -> Answer {
    let levels = [
        "debug",
        "info",
        "notice",
        "warning",
        "error",
        "critical",
        "alert",
        "emergency",
    ];
    for level in levels {
        call.log(level, format!("A message of level {level}"));
    }
    text("Logged at every level")
}

async fn with_progress(call: &Call) -> Answer {
    for progress in [0, 50, 100] {
        call.progress(progress, 100);
        sleep(PAUSE).await;
    }
    text("Tool with progress executed successfully")
}

/// Messages with the numbers from one, as fast as they go.
fn burst(call: &Call, progress: bool, log: bool) -> Answer {
    let count = count(call, "count", 10);
    for number in 1..=count {
        if progress {
            call.progress(number, count);
        }
        if log {
            call.log("info", number);
        }
    }
    text(count.to_string())
}

/// Tells of its progress when it has begun, for whoever means to cancel it.
async fn wait(call: &Call) -> Answer {
    /// Whoever is dropped while waiting was cancelled.
    struct Waiting<'a>(&'a World, bool);
    impl Drop for Waiting<'_> {
        fn drop(&mut self) {
            if self.1 {
                self.0.cancelled.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
    let mut waiting = Waiting(&call.world, true);
    call.progress(1, 2);
    sleep(Duration::from_mins(1)).await;
    waiting.1 = false;
    text("Nobody cancelled this")
}
