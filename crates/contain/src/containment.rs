//! Starts servers from the gateway: the guard, its socket and the server's pipes.

use std::{
    fmt,
    io::{self, IoSlice},
    os::unix::net::UnixStream as StdUnixStream,
    path::{self, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use rustix::{
    fd::{AsFd, OwnedFd},
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
    process::Pid,
};
use tokio::{
    net::{UnixStream, unix::pipe},
    process::{Child, Command},
    sync::{mpsc, oneshot, watch},
};

use crate::{
    Contained, GUARD_ARGUMENT, Handle, LaunchError, Tree,
    control::{Commission, NotStarted},
    guard_monitor::GuardMonitor,
    handle::State,
    instance::{Instance, Marker, Token},
    launch::{Ladder, Launch, What},
    own::own_program,
    process::Identity,
    records,
    report::Step,
};

/// Starts servers so that nothing of them stays behind. Clones share their state.
#[derive(Clone)]
pub struct Containment {
    guard_program: PathBuf,
    records: PathBuf,
    instance: Instance,
    on_step: OnStep,
    shared: Arc<Shared>,
}

pub(crate) type OnStep = Arc<dyn Fn(&str, &Step) + Send + Sync>;

struct Shared {
    /// The number of servers that are not gone.
    live: watch::Sender<usize>,
    /// The number of calls of `kill_all`.
    kills: watch::Sender<usize>,
}

impl Containment {
    /// Creates a containment for one gateway instance, with its records in the directory `records`, which is
    /// created if it does not exist.
    pub fn new(records: impl Into<PathBuf>, instance: Instance) -> io::Result<Self> {
        let records = path::absolute(records.into())?;
        records::create(&records)?;
        Ok(Self {
            guard_program: own_program()?,
            records,
            instance,
            on_step: Arc::new(|_, _| ()),
            shared: Arc::new(Shared {
                live: watch::Sender::new(0),
                kills: watch::Sender::new(0),
            }),
        })
    }

    /// Sets the program to run as a guard, which is this one by default. It has to call
    /// [`guard_main`](crate::guard_main).
    #[must_use]
    pub fn guard_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.guard_program = program.into();
        self
    }

    /// Sets a callback for each step of each server. It receives the server's name and must not block.
    #[must_use]
    pub fn on_step(mut self, on_step: impl Fn(&str, &Step) + Send + Sync + 'static) -> Self {
        self.on_step = Arc::new(on_step);
        self
    }

    /// Starts a server, and waits until it has started or failed to start.
    ///
    /// If the future is dropped while it waits, the server is stopped.
    pub async fn launch(&self, launch: &Launch) -> Result<Contained, LaunchError> {
        let program = || launch.describe();
        let commission = self.commission(launch);
        let guard_failed = |source| LaunchError::Guard {
            program: program(),
            source,
        };
        let commission = commission.map_err(guard_failed)?;
        let bytes = commission.encode().map_err(|source| LaunchError::Invalid {
            program: program(),
            source,
        })?;
        let guard = self.guard(&launch.name, &commission.marker);
        let (pipes, child, control) = guard.map_err(guard_failed)?;

        // Unbounded, because `Drop` sends here and cannot wait. Only the gateway's own code sends orders, a
        // few for each server, and the monitor reads them while the server runs.
        let (orders, receiver) = mpsc::unbounded_channel();
        let (state, watched) = watch::channel(State::default());
        let (started, starting) = oneshot::channel();
        let tree = Tree::new(launch.name.clone(), orders, watched);
        let handle = Handle::new(tree, launch.ladder);
        let guard = child.id().and_then(pid).and_then(Identity::of);
        let monitor = GuardMonitor {
            name: launch.name.clone(),
            control,
            child,
            orders: Some(receiver),
            kills: self.shared.kills.subscribe(),
            state,
            started: Some(started),
            on_step: Arc::clone(&self.on_step),
            stopping: false,
            patience: None,
            guard,
            leader: None,
            records: self.records.clone(),
            marker: commission.marker,
            container: commission.container,
            _counted: Counted::new(&self.shared),
        };
        tokio::spawn(monitor.run(bytes));

        // The channel closes if the guard was killed, perhaps because it took too long.
        let answer = starting.await;
        match answer.map_err(|_| guard_failed(io::ErrorKind::UnexpectedEof.into()))? {
            Ok(()) => Ok(Contained {
                stdin: pipes.0,
                stdout: pipes.1,
                stderr: pipes.2,
                handle,
            }),
            Err(NotStarted {
                failure,
                errno,
                interpreter,
            }) => Err(LaunchError::Start {
                program: program(),
                cwd: launch.cwd.clone(),
                failure,
                interpreter,
                source: io::Error::from_raw_os_error(errno),
            }),
        }
    }

    /// Kills all servers that were launched so far, with SIGKILL.
    pub fn kill_all(&self) {
        self.shared.kills.send_modify(|kills| *kills += 1);
    }

    /// Waits until nothing is left of the servers that were launched. Does not stop them.
    pub async fn all_gone(&self) {
        let mut live = self.shared.live.subscribe();
        // The sender is in `self`, so this cannot fail.
        let _ = live.wait_for(|live| *live == 0).await;
    }

    pub(crate) fn instance(&self) -> &Instance {
        &self.instance
    }

    fn commission(&self, launch: &Launch) -> io::Result<Commission> {
        let token = Token::random()?;
        let mut env = launch.env.clone();
        let (program, args, container) = match &launch.what {
            What::Program { program, args } => (program.clone(), args.clone(), None),
            What::Container { engine, container } => {
                let run = container.command(engine, &self.instance, &launch.name, &token);
                env.extend(run.env);
                let mut words = run.words.into_iter();
                let program = words.next().unwrap_or_default();
                (program, words.collect(), Some(run.named))
            }
        };
        let close = if container.is_some() {
            CONTAINER_LEFTOVERS
        } else {
            LEFTOVERS
        };
        Ok(Commission {
            name: launch.name.clone(),
            program,
            file: launch.file.clone(),
            args,
            env,
            cwd: path::absolute(&launch.cwd)?,
            marker: Marker {
                instance: self.instance.clone(),
                token,
            },
            records: self.records.clone(),
            leftovers: Ladder {
                close,
                term: launch.ladder.term.min(LEFTOVERS_TERM),
            },
            container,
        })
    }

    /// Starts a guard and sends it the server's ends of the pipes. The marker is its only variable, because
    /// the server may read the environment of its parent.
    fn guard(&self, name: &str, marker: &Marker) -> io::Result<(Pipes, Child, UnixStream)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        let (stdin, server_stdin) = pipe::pipe()?;
        let (server_stdout, stdout) = pipe::pipe()?;
        let (server_stderr, stderr) = pipe::pipe()?;
        send_pipes(
            &ours,
            &[
                server_stdin.into_blocking_fd()?,
                server_stdout.into_blocking_fd()?,
                server_stderr.into_blocking_fd()?,
            ],
        )?;
        let child = Command::new(&self.guard_program)
            .arg0("switchboard")
            .arg(GUARD_ARGUMENT)
            .arg(name.replace('\0', " "))
            .env_clear()
            .env(crate::instance::MARKER, marker.to_string())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        ours.set_nonblocking(true)?;
        let control = UnixStream::from_std(ours)?;
        Ok(((stdin, stdout, stderr), child, control))
    }
}

impl fmt::Debug for Containment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Containment")
            .field("instance", &self.instance)
            .field("records", &self.records)
            .field("live", &*self.shared.live.borrow())
            .finish_non_exhaustive()
    }
}

/// Time for which processes that a server leaves behind may stay before they are sent SIGTERM.
const LEFTOVERS: Duration = Duration::from_millis(500);
/// The same for a container, after which the engine has to clean up.
const CONTAINER_LEFTOVERS: Duration = Duration::from_secs(5);
/// Time between their SIGTERM and SIGKILL.
const LEFTOVERS_TERM: Duration = Duration::from_secs(2);

type Pipes = (pipe::Sender, pipe::Receiver, pipe::Receiver);

fn send_pipes(control: &StdUnixStream, pipes: &[OwnedFd; 3]) -> io::Result<()> {
    let fds = pipes.each_ref().map(AsFd::as_fd);
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(
        control,
        &[IoSlice::new(b"!")],
        &mut ancillary,
        SendFlags::empty(),
    )?;
    Ok(())
}

fn pid(id: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(id).ok()?)
}

/// Counts one server that is not gone.
pub(crate) struct Counted(Arc<Shared>);

impl Counted {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.live.send_modify(|live| *live += 1);
        Self(Arc::clone(shared))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.live.send_modify(|live| *live -= 1);
    }
}
