//! A server that was started: its pipes, and the handle to its end.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    process::ExitStatus,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    net::unix::pipe,
    sync::{mpsc, watch},
};

use crate::{
    control::Order,
    launch::Ladder,
    report::{Ended, Rung},
};

/// A server that was started.
#[derive(Debug)]
pub struct Contained {
    /// Its standard input. Dropping it closes it, which asks the server to leave.
    pub stdin: pipe::Sender,
    /// Its standard output.
    pub stdout: pipe::Receiver,
    /// Its standard error.
    pub stderr: pipe::Receiver,
    /// Its end.
    pub handle: Handle,
}

/// Owns the end of a server.
///
/// Dropping it stops the server, with the [`Ladder`] it was launched with, in the background and without
/// blocking; its standard input should be closed by then, or the first rung waits in vain.
/// [`Tree`] tells when it is gone. Should the runtime end first, then the server's guard takes that for the death
/// of the gateway: SIGTERM, 300 ms, SIGKILL.
pub struct Handle {
    tree: Tree,
    ladder: Ladder,
    exiting: Option<Exiting>,
}

type Exiting = Pin<Box<dyn Future<Output = ExitStatus> + Send + Sync>>;

impl Handle {
    pub(crate) fn new(tree: Tree, ladder: Ladder) -> Self {
        Self {
            tree,
            ladder,
            exiting: None,
        }
    }

    /// The server's processes, to be watched and ended from elsewhere.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Its first process.
    pub fn pid(&self) -> u32 {
        self.tree.pid()
    }

    /// Ready when its first process has ended.
    pub fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<ExitStatus> {
        let tree = &self.tree;
        let exiting = self.exiting.get_or_insert_with(|| {
            let tree = tree.clone();
            Box::pin(async move { tree.exited().await })
        });
        let status = std::task::ready!(exiting.as_mut().poll(cx));
        self.exiting = None;
        Poll::Ready(status)
    }

    /// See [`Tree::exited`].
    pub async fn exited(&self) -> ExitStatus {
        self.tree.exited().await
    }

    /// See [`Tree::stop`].
    pub fn stop(&self, ladder: Ladder) {
        self.tree.stop(ladder);
    }

    /// Has it ended by this ladder when the handle is dropped.
    pub fn set_ladder(&mut self, ladder: Ladder) {
        self.ladder = ladder;
    }

    /// See [`Tree::kill`].
    pub fn kill(&self) {
        self.tree.kill();
    }

    /// See [`Tree::gone`].
    pub async fn gone(&self) -> Ended {
        self.tree.gone().await
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.tree.stop(self.ladder);
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.tree).finish()
    }
}

/// All processes of a server. A clone is of the same.
#[derive(Clone)]
pub struct Tree {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    orders: mpsc::UnboundedSender<Order>,
    state: watch::Receiver<State>,
}

/// What is known of a server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    pub(crate) pid: u32,
    pub(crate) exit: Option<ExitStatus>,
    pub(crate) ended: Option<Ended>,
}

impl Tree {
    pub(crate) fn new(
        name: String,
        orders: mpsc::UnboundedSender<Order>,
        state: watch::Receiver<State>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                name,
                orders,
                state,
            }),
        }
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Its first process.
    pub fn pid(&self) -> u32 {
        self.shared.state.borrow().pid
    }

    /// Ends it by the ladder. Its standard input should have been closed just before. Again and again is the
    /// same as once, or sooner if the times are shorter.
    pub fn stop(&self, ladder: Ladder) {
        // When nobody listens there is nothing left to stop.
        let _ = self.shared.orders.send(Order::Stop(ladder));
    }

    /// Ends it at once, with SIGKILL, also when it is being stopped.
    pub fn kill(&self) {
        let _ = self.shared.orders.send(Order::Kill);
    }

    /// Waits until its first process has ended. Others of it may live, for the moment that they are given.
    pub async fn exited(&self) -> ExitStatus {
        let exit = self.wait(|state| state.exit).await;
        exit.unwrap_or_else(killed)
    }

    /// Waits until nothing of it is left. How long that may take is for the one who stops it to say; but a
    /// process that hangs in the kernel does not end, so that this wait should be bounded.
    pub async fn gone(&self) -> Ended {
        let ended = self.wait(|state| state.ended).await;
        ended.unwrap_or(Ended {
            rung: Rung::Kill,
            took: Duration::ZERO,
        })
    }

    /// Whether nothing of it is left.
    pub fn is_gone(&self) -> bool {
        self.shared.state.borrow().ended.is_some()
    }

    /// None when the runtime that looked after it has ended, and the guard with it.
    async fn wait<T>(&self, known: impl Fn(&State) -> Option<T>) -> Option<T> {
        let mut state = self.shared.state.clone();
        let state = state.wait_for(|state| known(state).is_some()).await;
        state.ok().and_then(|state| known(&state))
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("name", &self.shared.name)
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}

/// The status of a process of which nothing else is known but that it died with its guard.
pub(crate) fn killed() -> ExitStatus {
    use std::os::unix::process::ExitStatusExt;
    ExitStatus::from_raw(libc::SIGKILL)
}
