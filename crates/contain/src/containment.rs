//! Starting servers from the gateway: the guard, its socket, and the task that listens to it.

use std::{
    fmt,
    io::{self, IoSlice},
    os::unix::{net::UnixStream as StdUnixStream, process::ExitStatusExt},
    path::{self, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::{
    fd::{AsFd, OwnedFd},
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
    process::Pid,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixStream, unix::pipe},
    process::{Child, Command},
    sync::{mpsc, oneshot, watch},
    task::spawn_blocking,
    time::timeout,
};

use crate::{
    Contained, GUARD_ARGUMENT, Handle, LaunchError, StartFailure, Tree,
    container::Named,
    control::{Commission, Lines, Order, Report},
    handle::{State, killed},
    instance::{Instance, Marker, Token},
    launch::{Ladder, Launch, What},
    ledger,
    process::Identity,
    remains::Remains,
    report::{Ended, Rung, Step},
};

/// Starts servers so that nothing of them stays behind. A clone is the same.
#[derive(Clone)]
pub struct Containment {
    guard_program: PathBuf,
    ledger: PathBuf,
    instance: Instance,
    on_step: OnStep,
    shared: Arc<Shared>,
}

type OnStep = Arc<dyn Fn(&str, &Step) + Send + Sync>;

struct Shared {
    /// How many servers are not gone.
    live: watch::Sender<usize>,
    /// How often all were to be killed.
    kills: watch::Sender<usize>,
}

impl Containment {
    /// For one instance of the gateway, with its records in the directory `ledger`, which is made if it is not there.
    pub fn new(ledger: impl Into<PathBuf>, instance: Instance) -> io::Result<Self> {
        let ledger = path::absolute(ledger.into())?;
        ledger::create(&ledger)?;
        Ok(Self {
            guard_program: own_program()?,
            ledger,
            instance,
            on_step: Arc::new(|_, _| ()),
            shared: Arc::new(Shared {
                live: watch::Sender::new(0),
                kills: watch::Sender::new(0),
            }),
        })
    }

    /// The program to run as a guard, which is this one by default. It has to call
    /// [`guard_main`](crate::guard_main).
    #[must_use]
    pub fn guard_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.guard_program = program.into();
        self
    }

    /// Is told each step of each server, by the server's name. It must not block.
    #[must_use]
    pub fn on_step(mut self, on_step: impl Fn(&str, &Step) + Send + Sync + 'static) -> Self {
        self.on_step = Arc::new(on_step);
        self
    }

    /// Starts a server, and waits until it has started or could not be.
    ///
    /// Should this be dropped while it waits, then what was started is stopped.
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
        let (pipes, child, control) = self.guard(&launch.name).map_err(guard_failed)?;

        let (orders, receiver) = mpsc::unbounded_channel();
        let (state, watched) = watch::channel(State::default());
        let (started, starting) = oneshot::channel();
        let tree = Tree::new(launch.name.clone(), orders, watched);
        let handle = Handle::new(tree, launch.ladder);
        let guard = child.id().and_then(pid).and_then(Identity::of);
        let keeper = Keeper {
            name: launch.name.clone(),
            control,
            child,
            orders: Some(receiver),
            kills: self.shared.kills.subscribe(),
            state,
            started: Some(started),
            on_step: Arc::clone(&self.on_step),
            stopping: None,
            guard,
            leader: None,
            ledger: self.ledger.clone(),
            marker: commission.marker,
            container: commission.container,
            _counted: Counted::new(&self.shared),
        };
        tokio::spawn(keeper.run(bytes));

        let answer = match timeout(START_TIME, starting).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => return Err(guard_failed(io::ErrorKind::UnexpectedEof.into())),
            Err(_) => {
                handle.kill();
                return Err(guard_failed(io::ErrorKind::TimedOut.into()));
            }
        };
        match answer {
            Ok(()) => Ok(Contained {
                stdin: pipes.0,
                stdout: pipes.1,
                stderr: pipes.2,
                handle,
            }),
            Err((failure, errno)) => Err(LaunchError::Start {
                program: program(),
                cwd: launch.cwd.clone(),
                failure,
                source: io::Error::from_raw_os_error(errno),
            }),
        }
    }

    /// Ends everything at once, with SIGKILL: what was launched so far.
    pub fn kill_all(&self) {
        self.shared.kills.send_modify(|kills| *kills += 1);
    }

    /// How many servers are not gone.
    pub fn live(&self) -> usize {
        *self.shared.live.borrow()
    }

    /// Waits until nothing is left of all that was launched. They are not stopped by this.
    pub async fn all_gone(&self) {
        let mut live = self.shared.live.subscribe();
        // The sender is here.
        let _ = live.wait_for(|live| *live == 0).await;
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
            args,
            env,
            env_clear: launch.env_clear,
            cwd: launch.cwd.as_ref().map(path::absolute).transpose()?,
            marker: Marker {
                instance: self.instance.clone(),
                token,
            },
            ledger: self.ledger.clone(),
            leftovers: Ladder {
                close,
                term: launch.ladder.term.min(LEFTOVERS_TERM),
            },
            container,
        })
    }

    /// Starts a guard, with the server's ends of the pipes on their way to it.
    fn guard(&self, name: &str) -> io::Result<(Pipes, Child, UnixStream)> {
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
            .field("ledger", &self.ledger)
            .field("live", &self.live())
            .finish_non_exhaustive()
    }
}

/// How long a guard may take to start a server. On a machine that swaps this is not long.
const START_TIME: Duration = Duration::from_secs(30);
/// How long those may stay that a server leaves behind, before they are asked to leave.
const LEFTOVERS: Duration = Duration::from_millis(500);
/// The same for a container, of which the engine has to clean up.
const CONTAINER_LEFTOVERS: Duration = Duration::from_secs(5);
/// And at most after they were asked.
const LEFTOVERS_TERM: Duration = Duration::from_secs(2);
/// How long the remains of a server may take to die before they are looked for anew.
const REMAINS_TIME: Duration = Duration::from_secs(5);

type Pipes = (pipe::Sender, pipe::Receiver, pipe::Receiver);

/// This very program, even if its file has been replaced since.
#[cfg(target_os = "linux")]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it may fail")]
fn own_program() -> io::Result<PathBuf> {
    Ok("/proc/self/exe".into())
}

#[cfg(not(target_os = "linux"))]
fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

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

/// One server that is not gone.
struct Counted(Arc<Shared>);

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

/// Listens to one guard until nothing is left of its server.
struct Keeper {
    name: String,
    control: UnixStream,
    child: Child,
    /// None when nobody is left to give any.
    orders: Option<mpsc::UnboundedReceiver<Order>>,
    kills: watch::Receiver<usize>,
    state: watch::Sender<State>,
    started: Option<oneshot::Sender<Result<(), (StartFailure, i32)>>>,
    on_step: OnStep,
    /// Since when it is being stopped.
    stopping: Option<Instant>,
    guard: Option<Identity>,
    leader: Option<Identity>,
    ledger: PathBuf,
    marker: Marker,
    container: Option<Named>,
    _counted: Counted,
}

impl Keeper {
    async fn run(mut self, commission: Vec<u8>) {
        // If the guard has died the end of the socket tells.
        let _ = self.control.write_all(&commission).await;
        let mut lines = Lines::default();
        let mut buffer = [0; 1024];
        loop {
            let order = async {
                match &mut self.orders {
                    Some(orders) => orders.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                read = self.control.read(&mut buffer) => {
                    let Ok(read @ 1..) = read else { break };
                    lines.push(&buffer[..read]);
                    while let Some(line) = lines.next_line() {
                        if let Some(report) = Report::parse(&line) {
                            self.take_note(report);
                        }
                    }
                }
                order = order => match order {
                    Some(order) => self.order(order).await,
                    None => self.orders = None,
                },
                // The sender lives as long as this task, which counts among its servers.
                _ = self.kills.changed() => self.order(Order::Kill).await,
            }
        }
        if self.state.borrow().ended.is_none() {
            self.guard_lost().await;
        }
        // It has said good-bye and is about to end.
        if timeout(GUARD_EXIT, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }

    async fn order(&mut self, order: Order) {
        if self.stopping.is_none() {
            self.stopping = Some(Instant::now());
            if order != Order::Kill && self.state.borrow().exit.is_none() {
                self.step(&Step::Stopping);
            }
        }
        let _ = self.control.write_all(order.line().as_bytes()).await;
    }

    fn take_note(&mut self, report: Report) {
        match report {
            Report::Started { pid, leader } => {
                self.leader = leader;
                self.state.send_modify(|state| state.pid = pid);
                self.step(&Step::Started(pid));
                if let Some(started) = self.started.take() {
                    let _ = started.send(Ok(()));
                }
            }
            Report::Failed { failure, errno } => {
                if let Some(started) = self.started.take() {
                    let _ = started.send(Err((failure, errno)));
                }
                self.end(Rung::Own, Duration::ZERO);
            }
            Report::Exited(status) => self.exited(ExitStatus::from_raw(status)),
            Report::SentTerm(count) => self.step(&Step::SentTerm(count)),
            Report::SentKill(count) => self.step(&Step::SentKill(count)),
            Report::StoppingContainer => self.step(&Step::StoppingContainer),
            Report::KillingContainer => self.step(&Step::KillingContainer),
            Report::Unrecorded(why) => self.step(&Step::Unrecorded(why)),
            Report::Gone { rung, took } => {
                // It may leave at the sight of its closed input before the guard reads the order.
                let rung = match rung {
                    Rung::Own if self.stopping.is_some() => Rung::Close,
                    rung => rung,
                };
                self.end(rung, took);
                self.step(&Step::Gone(Ended { rung, took }));
            }
        }
    }

    fn exited(&self, status: ExitStatus) {
        self.state.send_modify(|state| state.exit = Some(status));
        self.step(&Step::Exited(status));
    }

    fn end(&self, rung: Rung, took: Duration) {
        self.state.send_modify(|state| {
            state.exit.get_or_insert_with(killed);
            state.ended = Some(Ended { rung, took });
        });
    }

    /// The guard was killed. What is left of the server is ended here.
    async fn guard_lost(&mut self) {
        let since = Instant::now();
        self.step(&Step::GuardLost);
        let _ = self.child.kill().await;
        if let Some(guard) = self.guard {
            self.end_remains(Remains {
                marker: self.marker.clone(),
                guard,
                leader: self.leader,
                container: self.container.as_ref().map(|it| it.name.clone()),
            })
            .await;
        }
        ledger::remove(&self.ledger, &self.marker.token);
        if self.state.borrow().exit.is_none() {
            self.exited(killed());
        }
        let took = since.elapsed();
        self.end(Rung::Kill, took);
        self.step(&Step::Gone(Ended {
            rung: Rung::Kill,
            took,
        }));
    }

    async fn end_remains(&mut self, remains: Remains) {
        loop {
            let remains = remains.clone();
            let container = self.container.take();
            let ended = spawn_blocking(move || remains.end(container.as_ref(), REMAINS_TIME));
            let outcome = ended.await.unwrap_or_default();
            if outcome.ended > 0 {
                self.step(&Step::SentKill(outcome.ended));
            }
            if outcome.left == 0 {
                return;
            }
        }
    }

    fn step(&self, step: &Step) {
        (self.on_step)(&self.name, step);
    }
}

/// How long a guard may take to end after its last word.
const GUARD_EXIT: Duration = Duration::from_secs(1);
