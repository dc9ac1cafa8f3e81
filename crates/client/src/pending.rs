//! A request under way: the caller's end of it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use switchboard_machine::{CallError, Reply};
use tokio::sync::{mpsc, oneshot};

use crate::driver::Control;

/// Waits for the reply to one request. Dropping it before withdraws the request.
pub(crate) struct Pending {
    id: u64,
    reply: oneshot::Receiver<Result<Reply, CallError>>,
    control: mpsc::UnboundedSender<Control>,
    replied: bool,
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
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

impl Future for Pending {
    type Output = Result<Reply, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let reply = std::task::ready!(Pin::new(&mut self.reply).poll(cx));
        self.replied = true;
        // The driver ends only in a stop.
        Poll::Ready(reply.unwrap_or(Err(CallError::Shutdown)))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.replied {
            let _ = self.control.send(Control::CallerGone(self.id));
        }
    }
}
