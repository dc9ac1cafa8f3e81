//! The tasks that run the handlers, separate from the connection, so that no handler can block it.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use switchboard_wire::{Id, Notification};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet, spawn_blocking},
};

use crate::{
    driver::{Control, ServerRequest},
    handlers::Handlers,
};

/// Responds to the server's requests concurrently, until the connection has ended. The connection
/// limits their number.
pub(crate) async fn answer_requests(
    mut requests: mpsc::Receiver<ServerRequest>,
    control: mpsc::UnboundedSender<Control>,
) {
    let mut answering = JoinSet::new();
    let mut running: HashMap<Id, AbortHandle> = HashMap::new();
    while let Some(request) = requests.recv().await {
        while answering.try_join_next().is_some() {}
        match request {
            ServerRequest::Received {
                epoch,
                id,
                answering: answer,
            } => {
                running.retain(|_, task| !task.is_finished());
                let control = control.clone();
                let key = id.clone();
                let task = answering.spawn(async move {
                    let answer = answer.await;
                    let _ = control.send(Control::Answer { epoch, id, answer });
                });
                running.insert(key, task);
            }
            ServerRequest::Cancelled { id } => {
                if let Some(task) = running.remove(&id) {
                    task.abort();
                }
            }
        }
    }
}

/// Passes notifications to their handler, one after another, until the connection has ended. The
/// handler may block: it runs on a thread for blocking work.
pub(crate) async fn deliver_notifications(
    mut notifications: mpsc::Receiver<Notification>,
    handlers: Arc<Handlers>,
) {
    while let Some(first) = notifications.recv().await {
        if handlers.notification.is_none() {
            continue;
        }
        let mut news = vec![first];
        while let Ok(next) = notifications.try_recv() {
            news.push(next);
        }
        let handlers = Arc::clone(&handlers);
        let told = spawn_blocking(move || {
            for news in news {
                tell(&handlers, news);
            }
        });
        // Panics are caught; an error means that the runtime is shutting down.
        let _ = told.await;
    }
}

fn tell(handlers: &Handlers, news: Notification) {
    if let Some(handler) = &handlers.notification
        && catch_unwind(AssertUnwindSafe(|| handler(news))).is_err()
    {
        tracing::error!(target: "switchboard::handler", "A notification handler panicked.");
    }
}
