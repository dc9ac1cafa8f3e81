//! The attendant: runs the handlers, away from the connection, so that none of them can hold it up.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use switchboard_machine::Inbound;
use switchboard_wire::{Id, Notification, method};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

use crate::{driver::Control, handlers::Handlers};

pub(crate) struct Attendant {
    pub(crate) inbound: mpsc::Receiver<Inbound>,
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) control: mpsc::UnboundedSender<Control>,
    /// The keeper, which waits for the word that a listen stream is open.
    pub(crate) acknowledged: mpsc::Sender<Notification>,
}

impl Attendant {
    /// Runs until the connection is over. Notifications are handled one after another, in order;
    /// requests side by side (the connection bounds their number).
    pub(crate) async fn run(mut self) {
        let mut answering = JoinSet::new();
        let mut running: HashMap<Id, AbortHandle> = HashMap::new();
        while let Some(inbound) = self.inbound.recv().await {
            while answering.try_join_next().is_some() {}
            match inbound {
                Inbound::Notification(news) => self.tell(news),
                Inbound::Request(request) => {
                    running.retain(|_, task| !task.is_finished());
                    let handlers = Arc::clone(&self.handlers);
                    let control = self.control.clone();
                    let id = request.id.clone();
                    let task = answering.spawn(async move {
                        let answer = handlers.answer(&request.method, request.params).await;
                        let _ = control.send(Control::Answer {
                            id: request.id,
                            answer,
                        });
                    });
                    running.insert(id, task);
                }
                Inbound::RequestCancelled { id } => {
                    if let Some(task) = running.remove(&id) {
                        task.abort();
                    }
                }
            }
        }
    }

    fn tell(&self, news: Notification) {
        if news.method == method::LISTEN_ACKNOWLEDGED {
            let _ = self.acknowledged.try_send(news);
        } else if let Some(handler) = &self.handlers.notification
            && catch_unwind(AssertUnwindSafe(|| handler(news))).is_err()
        {
            tracing::error!(target: "switchboard::handler", "a notification handler panicked");
        }
    }
}
