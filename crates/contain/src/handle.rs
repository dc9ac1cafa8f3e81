//! A started server: its pipes, and the handle that stops it.

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

/// A started server.
#[derive(Debug)]
pub struct Contained {
    /// Its standard input. Dropping it closes the pipe, which asks the server to exit.
    pub stdin: pipe::Sender,
    /// Its standard output.
    pub stdout: pipe::Receiver,
    /// Its standard error.
    pub stderr: pipe::Receiver,
    /// The handle that stops it.
    pub handle: Handle,
}

/// Owns a running server.
///
/// Dropping it stops the server in the background without blocking, with the [`Ladder`] that it was launched
/// with; close its standard input first, or the first rung waits in vain. [`Tree`] reports when the server
/// is gone. If the runtime shuts down first, the server's guard treats that as the death of the gateway:
/// SIGTERM, 300 ms, SIGKILL.
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

    /// The server's processes, which other code can watch and end.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// PID of its first process.
    pub fn pid(&self) -> u32 {
        self.tree.pid()
    }

    /// Ready when its first process has exited.
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

    /// Sets the ladder that is used when the handle is dropped.
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

/// All processes of a server. Clones refer to the same server.
#[derive(Clone)]
pub struct Tree {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    orders: mpsc::UnboundedSender<Order>,
    state: watch::Receiver<State>,
}

/// The state of a server.
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

    /// PID of its first process.
    pub fn pid(&self) -> u32 {
        self.shared.state.borrow().pid
    }

    /// Stops the server by the ladder. Close its standard input just before. Further calls have no effect,
    /// unless their times are shorter.
    pub fn stop(&self, ladder: Ladder) {
        // If the receiver is gone, nothing is left to stop.
        let _ = self.shared.orders.send(Order::Stop(ladder));
    }

    /// Kills the server at once, with SIGKILL, even while it is being stopped.
    pub fn kill(&self) {
        let _ = self.shared.orders.send(Order::Kill);
    }

    /// Waits until its first process has exited. Others of it may live on for the time that the ladder
    /// allows.
    pub async fn exited(&self) -> ExitStatus {
        let exit = self.wait(|state| state.exit).await;
        exit.unwrap_or_else(killed)
    }

    /// Waits until nothing of the server is left. The ladder bounds the time, but a process that hangs in the
    /// kernel does not exit, so use a timeout.
    pub async fn gone(&self) -> Ended {
        let ended = self.wait(|state| state.ended).await;
        ended.unwrap_or(Ended {
            rung: Rung::Kill,
            took: Duration::ZERO,
        })
    }

    /// Tests if nothing of the server is left.
    pub fn is_gone(&self) -> bool {
        self.shared.state.borrow().ended.is_some()
    }

    /// Returns `None` if the runtime of the monitor has shut down, and the guard with it.
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

/// The status of a process that died with its guard, so that its real status is unknown.
pub(crate) fn killed() -> ExitStatus {
    use std::os::unix::process::ExitStatusExt;
    ExitStatus::from_raw(libc::SIGKILL)
}
