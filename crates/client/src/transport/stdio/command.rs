//! The usual way to start a server: a command in its own process group.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fmt,
    future::Future,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    pin::{Pin, pin},
    process::{ExitStatus, Stdio as StdStdio},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use parking_lot::Mutex;
use switchboard_wire::Splitter;
use tokio::{
    io::AsyncReadExt,
    process::ChildStderr,
    sync::watch,
    time::{sleep, timeout},
};

use super::{super::Ended, Process, ProcessGuard, Spawn, Spawning};

/// A command that starts a server.
///
/// The server inherits the environment of this program, changed by [`env`](Self::env). When the
/// connection ends, its standard input is closed; if it does not exit, its process group gets
/// SIGTERM and then SIGKILL. Its output to standard error is logged at debug level, or passed to
/// [`on_stderr`](Self::on_stderr).
#[derive(Clone)]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    current_dir: Option<PathBuf>,
    on_stderr: Arc<dyn Fn(&str) + Send + Sync>,
    close_grace: Duration,
    term_grace: Duration,
    env_clear: bool,
    /// Number of started processes that have not exited.
    live: Arc<watch::Sender<usize>>,
}

impl Command {
    /// Creates a command for `program`, which is looked up in `PATH` if it is a bare name.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            current_dir: None,
            on_stderr: Arc::new(|line| tracing::debug!(target: "switchboard::stderr", line)),
            close_grace: Duration::from_secs(2),
            term_grace: Duration::from_secs(2),
            env_clear: false,
            live: Arc::new(watch::Sender::new(0)),
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

    /// Clears the environment of the server: it gets only the variables set with
    /// [`env`](Self::env), and not even `PATH`.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.env_clear = true;
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(dir.into());
        self
    }

    /// Handles each line that the server writes to standard error. The handler must not block.
    #[must_use]
    pub fn on_stderr(mut self, handler: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_stderr = Arc::new(handler);
        self
    }

    /// Sets the time that the server may take to exit: after its standard input was closed, and
    /// again after SIGTERM. 2 seconds each by default.
    #[must_use]
    pub fn grace(mut self, close: Duration, term: Duration) -> Self {
        self.close_grace = close;
        self.term_grace = term;
        self
    }

    fn start(&self) -> io::Result<Process> {
        let mut command = tokio::process::Command::new(&self.program);
        if self.env_clear {
            command.env_clear();
        }
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
            return Err(io::Error::other("the child process has no pipes"));
        };
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let reading = tokio::spawn(read_stderr(
            stderr,
            Arc::clone(&self.on_stderr),
            Arc::clone(&last_words),
        ));
        let guard = CommandGuard {
            group: Group::new(child.id(), &self.live),
            exiting: Some(Box::pin(async move {
                let status = child.wait().await.ok();
                // Its last output explains the end, but one of its children may keep writing.
                let _ = timeout(LAST_WORDS_WAIT, reading).await;
                status
            })),
            status: None,
            last_words,
            close_grace: self.close_grace,
            term_grace: self.term_grace,
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
        // Forking blocks briefly, but not long enough to be worth a thread.
        let process = self.start();
        Box::pin(async move { process })
    }

    fn describe(&self) -> String {
        // Arguments may contain secrets, so only the program is named.
        self.program.to_string_lossy().into_owned()
    }

    fn ended(&self) -> Ended {
        let mut live = self.live.subscribe();
        Box::pin(async move {
            // The sender lives as long as this command. If it is gone, there is no process left to
            // wait for.
            let _ = live.wait_for(|live| *live == 0).await;
        })
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

/// The last lines that a server wrote, to explain its end.
type LastWords = Arc<Mutex<VecDeque<String>>>;

const LAST_WORDS: usize = 3;
const LAST_WORDS_WAIT: Duration = Duration::from_millis(100);
const STDERR_LINE: usize = 8 * 1024;
/// Time that the system may take to reap killed processes.
const REAP: Duration = Duration::from_secs(1);
/// The interval at which to check if a process group is gone.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

async fn read_stderr(
    mut stderr: ChildStderr,
    handler: Arc<dyn Fn(&str) + Send + Sync>,
    last_words: LastWords,
) {
    let mut lines = Splitter::new(STDERR_LINE);
    loop {
        lines.buffer().reserve(STDERR_LINE);
        match stderr.read_buf(lines.buffer()).await {
            Ok(read) if read > 0 => {}
            _ => return,
        }
        while let Some(line) = lines.next_frame() {
            let line = match &line {
                Ok(line) => String::from_utf8_lossy(line),
                Err(_) => "(a line too long to show)".into(),
            };
            // A panic must not stop the reading: the server would block on a full pipe.
            if catch_unwind(AssertUnwindSafe(|| handler(&line))).is_err() {
                tracing::error!(target: "switchboard::handler", "A standard error handler panicked.");
            }
            let mut last = last_words.lock();
            if last.len() == LAST_WORDS {
                last.pop_front();
            }
            last.push_back(line.into_owned());
        }
    }
}

struct CommandGuard {
    group: Group,
    exiting: Option<Exiting>,
    status: Option<ExitStatus>,
    last_words: LastWords,
    close_grace: Duration,
    term_grace: Duration,
}

/// Waits for the end of a process.
type Exiting = Pin<Box<dyn Future<Output = Option<ExitStatus>> + Send>>;

impl ProcessGuard for CommandGuard {
    fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(exiting) = &mut self.exiting {
            self.status = std::task::ready!(exiting.as_mut().poll(cx));
            self.exiting = None;
        }
        Poll::Ready(())
    }

    fn explain(&self) -> String {
        match self.status {
            Some(status) => format!("the server exited ({status})"),
            None => "the server closed its pipes".to_owned(),
        }
    }

    fn last_words(&self) -> Option<String> {
        let lines: Vec<_> = self.last_words.lock().iter().cloned().collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

impl Drop for CommandGuard {
    fn drop(&mut self) {
        let (close_grace, term_grace) = (self.close_grace, self.term_grace);
        let exiting = self.exiting.take();
        let group = self.group.take();
        // Without a runtime there is no way to wait, and dropping the group kills it immediately.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(see_off(exiting, group, close_grace, term_grace));
        }
    }
}

/// Waits for the process to exit by itself, then sends SIGTERM, then SIGKILL.
async fn see_off(
    exiting: Option<Exiting>,
    group: Group,
    close_grace: Duration,
    term_grace: Duration,
) {
    let mut gone = pin!(async {
        if let Some(exiting) = exiting {
            exiting.await;
        }
        // Its children may still be running.
        while group.lives() {
            sleep(LOOK_AGAIN).await;
        }
    });
    let ladder = [
        (close_grace, None),
        (term_grace, Some(Signal::Term)),
        (REAP, Some(Signal::Kill)),
    ];
    for (grace, signal) in ladder {
        if let Some(signal) = signal {
            group.signal(signal);
        }
        if timeout(grace, &mut gone).await.is_ok() {
            return;
        }
    }
}

/// A process and its descendants in the same process group. Dropping it kills them.
struct Group {
    leader: Option<u32>,
    live: Arc<watch::Sender<usize>>,
    counted: bool,
}

impl Group {
    fn new(leader: Option<u32>, live: &Arc<watch::Sender<usize>>) -> Self {
        live.send_modify(|live| *live += 1);
        Self {
            leader,
            live: Arc::clone(live),
            counted: true,
        }
    }

    /// Moves the group out of this value.
    fn take(&mut self) -> Self {
        Self {
            leader: self.leader.take(),
            live: Arc::clone(&self.live),
            counted: std::mem::take(&mut self.counted),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.lives() {
            self.signal(Signal::Kill);
        }
        if self.counted {
            self.live.send_modify(|live| *live -= 1);
        }
    }
}

#[derive(Clone, Copy)]
enum Signal {
    Term,
    Kill,
}

#[cfg(unix)]
impl Group {
    fn pid(&self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(i32::try_from(self.leader?).ok()?)
    }

    fn lives(&self) -> bool {
        self.pid()
            .is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok())
    }

    fn signal(&self, signal: Signal) {
        let signal = match signal {
            Signal::Term => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        if let Some(group) = self.pid() {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

/// Other platforms have no process groups; the process itself is killed on drop.
#[cfg(not(unix))]
impl Group {
    fn lives(&self) -> bool {
        false
    }

    fn signal(&self, _signal: Signal) {}
}
