//! The ordinary way to start a server: a command, in a process group of its own.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fmt,
    future::Future,
    io,
    path::PathBuf,
    pin::Pin,
    process::Stdio as StdStdio,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use switchboard_wire::Splitter;
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStderr},
    time::{sleep, timeout},
};

use super::{Process, ProcessGuard, Spawn, Spawning};

/// A command that starts a server.
///
/// The server gets the environment of this program, changed by [`env`](Self::env). When the
/// connection ends, its standard input is closed; if it does not leave, its process group is
/// asked with SIGTERM and then ended with SIGKILL. What it writes to standard error is logged at
/// debug level, or handed to [`on_stderr`](Self::on_stderr).
#[derive(Clone)]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    current_dir: Option<PathBuf>,
    on_stderr: Arc<dyn Fn(&str) + Send + Sync>,
    close_grace: Duration,
    term_grace: Duration,
}

impl Command {
    /// Starts `program`, looked up in `PATH` if it is a bare name.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            current_dir: None,
            on_stderr: Arc::new(|line| tracing::debug!(target: "switchboard::stderr", line)),
            close_grace: Duration::from_secs(2),
            term_grace: Duration::from_secs(2),
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(dir.into());
        self
    }

    /// Takes each line that the server writes to standard error. It must not block.
    #[must_use]
    pub fn on_stderr(mut self, handler: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_stderr = Arc::new(handler);
        self
    }

    /// How long the server may take to leave: after its standard input was closed, and again after
    /// SIGTERM. 2 seconds each by default.
    #[must_use]
    pub fn grace(mut self, close: Duration, term: Duration) -> Self {
        self.close_grace = close;
        self.term_grace = term;
        self
    }

    fn start(&self) -> io::Result<Process> {
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(StdStdio::piped())
            .stdout(StdStdio::piped())
            .stderr(StdStdio::piped())
            .kill_on_drop(true);
        if let Some(dir) = &self.current_dir {
            command.current_dir(dir);
        }
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("the child has no pipes"));
        };
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        tokio::spawn(read_stderr(
            stderr,
            Arc::clone(&self.on_stderr),
            Arc::clone(&last_words),
        ));
        let guard = CommandGuard {
            tree: Some(Tree {
                group: child.id(),
                child,
            }),
            last_words,
            close_grace: self.close_grace,
            term_grace: self.term_grace,
            settling: None,
        };
        Ok(Process {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            guard: Box::new(guard),
        })
    }
}

impl Spawn for Command {
    fn spawn(&self) -> Spawning {
        // Forking blocks for a moment; it is far below what is worth a thread.
        let process = self.start();
        Box::pin(async move { process })
    }

    fn describe(&self) -> String {
        // Arguments may hold secrets, so only the program is named.
        self.program.to_string_lossy().into_owned()
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

/// The lines that a server wrote last, to explain its end.
type LastWords = Arc<Mutex<VecDeque<String>>>;

const LAST_WORDS: usize = 3;
const STDERR_LINE: usize = 8 * 1024;
/// How long a process that closed its output may take to exit, for its status to be told.
const SETTLE: Duration = Duration::from_millis(200);

async fn read_stderr(
    mut stderr: ChildStderr,
    handler: Arc<dyn Fn(&str) + Send + Sync>,
    last_words: LastWords,
) {
    let mut lines = Splitter::new(STDERR_LINE);
    while let Ok(read) = stderr.read_buf(lines.buffer()).await
        && read > 0
    {
        while let Some(line) = lines.next_frame() {
            let line = match &line {
                Ok(line) => String::from_utf8_lossy(line),
                Err(_) => "(a line too long to show)".into(),
            };
            handler(&line);
            let mut last = last_words.lock().unwrap_or_else(PoisonError::into_inner);
            if last.len() == LAST_WORDS {
                last.pop_front();
            }
            last.push_back(line.into_owned());
        }
    }
}

struct CommandGuard {
    tree: Option<Tree>,
    last_words: LastWords,
    close_grace: Duration,
    term_grace: Duration,
    settling: Option<Settling>,
}

/// A process that closed its output, on its way to a status.
type Settling = Pin<Box<dyn Future<Output = (Tree, Option<String>)> + Send>>;

impl ProcessGuard for CommandGuard {
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<String> {
        if let Some(mut tree) = self.tree.take() {
            self.settling = Some(Box::pin(async move {
                let status = timeout(SETTLE, tree.child.wait()).await;
                (
                    tree,
                    status
                        .ok()
                        .and_then(Result::ok)
                        .map(|status| status.to_string()),
                )
            }));
        }
        let Some(settling) = &mut self.settling else {
            return Poll::Ready("closed".to_owned());
        };
        let (tree, status) = std::task::ready!(settling.as_mut().poll(cx));
        self.settling = None;
        self.tree = Some(tree);
        let mut message = status.map_or_else(
            || "the server closed its output".to_owned(),
            |status| format!("the server ended ({status})"),
        );
        let last = self
            .last_words
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for line in last.iter() {
            message.push_str(if message.contains('\n') {
                "\n  "
            } else {
                "; it wrote:\n  "
            });
            message.push_str(line);
        }
        Poll::Ready(message)
    }

    fn end(self: Box<Self>) {}
}

impl Drop for CommandGuard {
    fn drop(&mut self) {
        let (close_grace, term_grace) = (self.close_grace, self.term_grace);
        let settling = self.settling.take();
        let tree = self.tree.take();
        // Without a runtime nobody can wait, and dropping the tree ends it at once.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let tree = match (tree, settling) {
                (Some(tree), _) => tree,
                (None, Some(settling)) => settling.await.0,
                (None, None) => return,
            };
            tree.end(close_grace, term_grace).await;
        });
    }
}

/// A process and those it started, as far as they stayed in its group.
struct Tree {
    child: Child,
    group: Option<u32>,
}

impl Tree {
    /// Waits for the process to leave by itself, then asks, then insists.
    async fn end(mut self, close_grace: Duration, term_grace: Duration) {
        let left = timeout(close_grace, self.child.wait()).await.is_ok();
        if !left || self.group_lives() {
            self.signal_group(Signal::Term);
            let _ = timeout(term_grace, async {
                let _ = self.child.wait().await;
                while self.group_lives() {
                    sleep(Duration::from_millis(20)).await;
                }
            })
            .await;
        }
        // What is left is ended by the drop.
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.group_lives() {
            self.signal_group(Signal::Kill);
        }
    }
}

#[derive(Clone, Copy)]
enum Signal {
    Term,
    Kill,
}

#[cfg(unix)]
impl Tree {
    fn group_pid(&self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(i32::try_from(self.group?).ok()?)
    }

    fn group_lives(&self) -> bool {
        self.group_pid()
            .is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok())
    }

    fn signal_group(&self, signal: Signal) {
        let signal = match signal {
            Signal::Term => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        if let Some(group) = self.group_pid() {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

#[cfg(not(unix))]
impl Tree {
    fn group_lives(&self) -> bool {
        false
    }

    fn signal_group(&mut self, _signal: Signal) {
        let _ = self.child.start_kill();
    }
}
