//! The caller's side of a request in flight.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use switchboard_machine::{CallError, Reply};
use tokio::sync::{mpsc, oneshot};

use crate::driver::Control;

/// The reason why a call is cancelled, once it is known.
pub type Reason = Arc<OnceLock<Arc<str>>>;

/// Waits for the reply to one request. Dropping it earlier cancels the request.
pub(crate) struct Pending {
    id: u64,
    reply: oneshot::Receiver<Result<Reply, CallError>>,
    control: mpsc::UnboundedSender<Control>,
    replied: bool,
    /// The reason for the cancellation, set by the caller.
    reason: Option<Reason>,
}

impl Pending {
    pub(crate) fn new(
        id: u64,
        reply: oneshot::Receiver<Result<Reply, CallError>>,
        control: mpsc::UnboundedSender<Control>,
    ) -> Self {
        Self {
            id,
            reply,
            control,
            replied: false,
            reason: None,
        }
    }

    /// Sets the reason to send to the server if this is dropped.
    pub(crate) fn because(mut self, reason: Option<Reason>) -> Self {
        self.reason = reason;
        self
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Returns `true` if the reply has arrived but has not been read.
    pub(crate) fn is_over(&self) -> bool {
        !self.reply.is_empty()
    }
}

impl Future for Pending {
    type Output = Result<Reply, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let reply = std::task::ready!(Pin::new(&mut self.reply).poll(cx));
        self.replied = true;
        // The driver ends only when the client is stopped, after it has replied to every call.
        Poll::Ready(reply.unwrap_or(Err(CallError::Shutdown { sent: true })))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.replied {
            return;
        }
        let id = self.id;
        let reason = self
            .reason
            .as_ref()
            .and_then(|reason| reason.get().cloned());
        let _ = self.control.send(match reason {
            Some(_) => Control::Cancel { id, reason },
            None => Control::CallerGone(id),
        });
    }
}
