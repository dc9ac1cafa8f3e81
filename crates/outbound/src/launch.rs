//! Starts or reaches each kind of server.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    future::Future,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use parking_lot::Mutex;
use switchboard_base::{health::Reason, project::real_dir, scrub};
use switchboard_client::{
    Client, ClientBuilder,
    auth::OAuth,
    http::{Http, HttpConfigError},
    sse::Sse,
    stdio::{Process, ProcessGuard, Spawn, Spawning, Stdio},
    transport::Ended,
};
use switchboard_config::{
    CommandLine, Config, Container as ContainerConfig, Environment, Home, Network, Occasion,
    Remote, RemoteKind, ResolveError, Resolved, Server, Transport,
};
use switchboard_contain::{
    Container, Containment, Engine, Handle, Ladder, Launch, LaunchError, Mount, Step, Sweep, Tree,
    find_program,
};
use tokio::task::JoinHandle;

use crate::{
    deps::Deps,
    logs::Logs,
    restart::{NotStarted, StartError},
    start_approval,
    state_dir::StateDir,
    stderr::{LastWords, listen},
};

/// Starts to connect to the server, and returns the sign-in that the connection uses, if any. Fails for errors that waiting
/// cannot fix. The server's standard error goes to its log, and its last lines to `said`. Advice about a program that did
/// not start goes to `advice`.
pub(crate) async fn connect(
    builder: ClientBuilder,
    start: Start,
    said: &LastWords,
    advice: &LaunchAdvice,
    answers: &Answers,
) -> Result<(Client, Option<OAuth>), NotStarted> {
    let (name, id, deps) = (
        Arc::clone(&start.name),
        Arc::clone(&start.id),
        Arc::clone(&start.deps),
    );
    let preparing = tokio::task::spawn_blocking(move || prepare(&start));
    let prepared = preparing.await.unwrap_or_else(|error| {
        let error = StartError {
            reason: Reason::plain(&format!("cannot prepare the start: {error}")),
            permanent: false,
        };
        Err(error.into())
    });
    match prepared? {
        Prepared::BuiltIn => match &deps.memory {
            Some(memory) => Ok((builder.connect(memory.connector()), None)),
            None => Err(permanent("this build of Switchboard has no memory").into()),
        },
        Prepared::Remote(remote) => {
            let oauth = if remote.has_authorization() {
                None
            } else {
                Some(deps.sign_ins.of(&name, &remote).map_err(permanent)?)
            };
            let client = reach(builder, &remote, oauth.as_ref()).map_err(permanent)?;
            Ok((client, oauth))
        }
        Prepared::Launch { launch, ladder } => {
            #[cfg(test)]
            if let Some(servers) = &deps.fake_servers {
                return Ok((builder.connect(servers.stdio(&launch)), None));
            }
            let supervised = Supervised {
                launch: *launch,
                ladder,
                containment: deps.containment.clone(),
                logs: Arc::clone(&deps.logs),
                name: id,
                said: said.clone(),
                advice: advice.clone(),
                answers: answers.clone(),
                trees: Arc::default(),
            };
            Ok((builder.connect(Stdio::new(supervised)), None))
        }
    }
}

/// Starts to connect to a server at an address.
fn reach(
    builder: ClientBuilder,
    remote: &Remote,
    oauth: Option<&OAuth>,
) -> Result<Client, HttpConfigError> {
    match remote.kind {
        RemoteKind::Auto | RemoteKind::Http => {
            let mut http = Http::new(&remote.url)?;
            for (name, value) in &remote.headers {
                http = http.header(name, value)?;
            }
            if let Some(oauth) = oauth {
                http = http.oauth(oauth)?;
            }
            Ok(builder.connect(http))
        }
        RemoteKind::Sse => {
            let mut sse = Sse::new(&remote.url)?;
            for (name, value) in &remote.headers {
                sse = sse.header(name, value)?;
            }
            if let Some(oauth) = oauth {
                sse = sse.oauth(oauth)?;
            }
            Ok(builder.connect(sse))
        }
    }
}

/// An instance of a server to start.
pub(crate) struct Start {
    /// The server's name in the configuration.
    pub(crate) name: Arc<str>,
    /// Identifies the instance in logs.
    pub(crate) id: Arc<str>,
    pub(crate) server: Arc<Server>,
    /// The callers that it is for.
    pub(crate) occasion: Occasion,
    /// The directory that it runs in, unless the configuration names one.
    pub(crate) state_dir: StateDir,
    pub(crate) deps: Arc<Deps>,
}

/// A server that is ready to be connected to.
enum Prepared {
    BuiltIn,
    Remote(Box<Remote>),
    Launch {
        /// Has the ladder of a server that has not responded yet.
        launch: Box<Launch>,
        ladder: Ladder,
    },
}

/// Resolves secrets and creates the directory of the server. Reads and writes files.
fn prepare(start: &Start) -> Result<Prepared, NotStarted> {
    let Start {
        name,
        id,
        server,
        occasion,
        deps,
        ..
    } = start;
    check_project(occasion)?;
    let resolved = resolve(name, server, occasion, deps)
        .map_err(|error| permanent(&error).hint(error.hint()))?;
    // Registered before any error message can contain one of them.
    scrub::register(scrub::Owner::Server(name), &resolved.secrets)
        .map_err(|error| permanent(format_args!("it has {error}")).hint(Some(error.hint())))?;
    let resolved = resolved.value;
    let mut ladder = Ladder {
        close: resolved.close_timeout,
        term: resolved.term_timeout,
    };
    let launch = match resolved.transport {
        Transport::BuiltIn => return Ok(Prepared::BuiltIn),
        Transport::Remote(remote) => return Ok(Prepared::Remote(Box::new(remote))),
        Transport::Command(line) => {
            let dir = match line.directory(&deps.home) {
                Some(dir) => dir,
                None => match occasion.project.as_deref() {
                    Some(project) if server.runs_in_project() => project.into(),
                    _ => own_directory(start)?,
                },
            };
            let file = command_file(&line, deps);
            check_file(server, file.as_deref())?;
            let mut launch = Launch::program(&**id, line.program(&deps.home)).cwd(dir);
            if let Some(file) = file {
                launch = launch.file(file);
            }
            for (name, value) in deps.environment.of_server(&line) {
                launch = launch.env(name, value);
            }
            launch.args(line.args)
        }
        Transport::Container(container) => {
            let patience = deps.config.load().shutdown.container_timeout;
            let engine = engine(&container, &deps.home, &deps.environment);
            let engine = engine.ok_or_else(|| {
                permanent("cannot run a container: neither `docker` nor `podman` is in PATH")
                    .hint(Some("install one, or set `isolation.engine`"))
            })?;
            check_file(server, engine.file().as_deref())?;
            let launch = container_launch(id, engine, container, &deps.home)?;
            ladder.close = ladder.close.min(patience / 3);
            ladder.term = ladder.term.min(patience / 2);
            launch.cwd(own_directory(start)?)
        }
    };
    let mute = Ladder {
        close: ladder.close.min(MUTE_CLOSE),
        ..ladder
    };
    Ok(Prepared::Launch {
        launch: Box::new(launch.ladder(mute)),
        ladder,
    })
}

/// Checks that the directory of the callers exists, and is still the one that they may use: a checkout can replace a
/// directory by a link to any other. It may be back later, so the failure is not permanent.
fn check_project(occasion: &Occasion) -> Result<(), StartError> {
    let Some(project) = occasion.project.as_deref() else {
        return Ok(());
    };
    let reason = match real_dir(Path::new(project)) {
        Some(found) if found == project => return Ok(()),
        Some(_) => {
            let reason = format!(
                "the path of the project directory {project} leads through a symbolic link now"
            );
            Reason::plain(&reason).with_hint(Some(
                "remove the link, or connect again to use the directory that it leads to",
            ))
        }
        None => Reason::plain(&format!("the project directory {project} does not exist")),
    };
    Err(StartError {
        reason,
        permanent: false,
    })
}

/// The directory of a server that is not configured to run elsewhere: one for each identity. Failures are
/// retried, because a full disk may have room again.
fn own_directory(start: &Start) -> Result<PathBuf, StartError> {
    let Start { name, server, .. } = start;
    let created = start.state_dir.create(name, server, &start.deps.home);
    created.map_err(|error| StartError {
        reason: Reason::plain(&error.to_string()).with_hint(error.hint()),
        permanent: false,
    })
}

fn container_launch(
    name: &str,
    engine: Engine,
    config: ContainerConfig,
    home: &Home,
) -> Result<Launch, StartError> {
    let mut container = Container::new(config.image);
    for (name, value) in config.env {
        container = container.env(name, value);
    }
    match config.network {
        Network::None => {}
        Network::Default => container = container.network(None),
        Network::Named(name) => container = container.network(Some(name)),
    }
    if config.memory.is_some() {
        container = container.memory(config.memory);
    }
    if config.cpus.is_some() {
        container = container.cpus(config.cpus);
    }
    if config.pids.is_some() {
        container = container.pids(config.pids);
    }
    for mount in &config.mounts {
        container = container.mount(parse_mount(mount, home.base())?);
    }
    if config.read_only {
        container = container.read_only();
    }
    for arg in config.run_args {
        container = container.run_arg(arg);
    }
    Ok(Launch::container(name, engine, container).args(config.args))
}

/// Holds back a server that would start a different file than the user approved.
fn check_file(server: &Server, file: Option<&Path>) -> Result<(), NotStarted> {
    match file {
        Some(file) if server.is_other_file(file) => {
            let reason = start_approval::other_file(server, file);
            Err(NotStarted::Held(Reason::plain(&reason)))
        }
        _ => Ok(()),
    }
}

/// The file that a command line resolves to. References in it are already replaced.
fn command_file(line: &CommandLine, deps: &Deps) -> Option<PathBuf> {
    let given = deps.environment.of_server(line);
    let path = given.get(OsStr::new("PATH")).map(OsString::as_os_str);
    find_program(&line.program(&deps.home), path)
}

/// The file that a local server starts, resolved from its command line or its engine; `None` if there is
/// none, or if a reference in the command or in `PATH` cannot be resolved. Reads files.
pub(crate) fn program_file(name: &str, server: &Server, deps: &Deps) -> Option<PathBuf> {
    match &server.transport {
        Transport::BuiltIn | Transport::Remote(_) => None,
        Transport::Command(line) => {
            // A missing secret elsewhere in the entry has no effect on the file.
            let path = line.env.get_key_value("PATH").into_iter();
            let line = CommandLine {
                args: Vec::new(),
                env: path
                    .map(|(name, path)| (name.clone(), path.clone()))
                    .collect(),
                ..line.clone()
            };
            let no_caller = Occasion::default();
            let line = resolve_line(name, server, line, &no_caller, deps)?;
            command_file(&line, deps)
        }
        Transport::Container(container) => engine(container, &deps.home, &deps.environment)?.file(),
    }
}

/// The directory that the entry of a local server names for its processes for these callers; `None` if there is none,
/// or if a reference in it cannot be resolved. Reads files.
pub(crate) fn configured_directory(
    name: &str,
    server: &Server,
    occasion: &Occasion,
    deps: &Deps,
) -> Option<PathBuf> {
    let Transport::Command(line) = &server.transport else {
        return None;
    };
    let line = CommandLine {
        command: String::new(),
        args: Vec::new(),
        env: BTreeMap::new(),
        inherit_env: line.inherit_env.clone(),
        cwd: Some(line.cwd.clone()?),
    };
    resolve_line(name, server, line, occasion, deps)?.directory(&deps.home)
}

/// This part of the command line of a server, with its references resolved.
fn resolve_line(
    name: &str,
    server: &Server,
    part: CommandLine,
    occasion: &Occasion,
    deps: &Deps,
) -> Option<CommandLine> {
    let server = Server {
        transport: Transport::Command(part),
        ..server.clone()
    };
    match resolve(name, &server, occasion, deps).ok()?.value.transport {
        Transport::Command(line) => Some(line),
        Transport::Container(_) | Transport::Remote(_) | Transport::BuiltIn => None,
    }
}

fn resolve(
    name: &str,
    server: &Server,
    occasion: &Occasion,
    deps: &Deps,
) -> Result<Resolved<Server>, ResolveError> {
    server.resolve(name, occasion, &deps.home.secrets(), &|variable| {
        deps.environment.get(variable).map(Into::into)
    })
}

/// The engine of a container, resolved to a file: the configured one, or the one that is installed. A
/// relative path is relative to the directory of the configuration file.
fn engine(config: &ContainerConfig, home: &Home, environment: &Environment) -> Option<Engine> {
    let engine = match config.engine.split_first() {
        Some((program, options)) if program.contains('/') => {
            let program = home.base().join(program);
            Engine::new(program.to_string_lossy(), options.iter().cloned())
        }
        Some((program, options)) => Engine::new(program, options.iter().cloned()),
        None => Engine::detect(environment.get("PATH")?)?,
    };
    let variables = environment.iter();
    let engine = engine.inherit(variables.map(|(name, value)| (name.into(), value.into())));
    Some(engine.located())
}

/// Adds the engines of a configuration to a sweep. The engine of a server that may not run is queried only
/// about containers that an earlier run left behind, and no program that the entry of a held server names is
/// ever run.
pub fn with_engines(
    mut sweep: Sweep,
    config: &Config,
    home: &Home,
    environment: &Environment,
) -> Sweep {
    for (name, server) in &config.servers {
        let Transport::Container(container) = &server.transport else {
            continue;
        };
        let is_named = !container.engine.is_empty();
        if server.hold && is_named {
            continue;
        }
        let Some(engine) = engine(container, home, environment) else {
            continue;
        };
        let file = engine.file();
        if is_named && file.is_some_and(|file| server.is_other_file(&file)) {
            continue;
        }
        sweep = if server.enabled && !server.hold {
            sweep.engine(engine)
        } else {
            sweep.engine_of(name, engine)
        };
    }
    sweep
}

/// Parses `SOURCE:TARGET[:ro]`, the engines' notation. A relative source is relative to `base`.
fn parse_mount(mount: &str, base: &Path) -> Result<Mount, StartError> {
    let wrong = || StartError {
        reason: Reason::plain(&format!(
            "the mount {mount:?} must be SOURCE:TARGET or SOURCE:TARGET:ro"
        )),
        permanent: true,
    };
    let (mount, writable) = match mount.strip_suffix(":ro") {
        Some(mount) => (mount, false),
        None => (mount.strip_suffix(":rw").unwrap_or(mount), true),
    };
    let (source, target) = mount.split_once(':').ok_or_else(wrong)?;
    if source.is_empty() || target.is_empty() {
        return Err(wrong());
    }
    Ok(Mount {
        source: base.join(source),
        target: target.into(),
        writable,
    })
}

fn permanent(error: impl std::fmt::Display) -> StartError {
    StartError {
        reason: Reason::plain(&error.to_string()),
        permanent: true,
    }
}

/// A process, or the engine of a container, under a guard.
struct Supervised {
    launch: Launch,
    containment: Containment,
    logs: Arc<Logs>,
    name: Arc<str>,
    said: LastWords,
    advice: LaunchAdvice,
    /// The ladder after the server has responded once.
    ladder: Ladder,
    answers: Answers,
    /// All process trees that were started and may still be running.
    trees: Arc<Mutex<Vec<Tree>>>,
}

impl Spawn for Supervised {
    fn spawn(&self) -> Spawning {
        let (launch, containment) = (self.launch.clone(), self.containment.clone());
        let (logs, name) = (Arc::clone(&self.logs), Arc::clone(&self.name));
        let (trees, said) = (Arc::clone(&self.trees), self.said.clone());
        let (answers, ladder) = (self.answers.clone(), self.ladder);
        let advice = self.advice.clone();
        Box::pin(async move {
            let contained = containment.launch(&launch).await.map_err(|error| {
                said.clear();
                advice.set(error.hint().as_deref());
                // The content of the file is not trusted, so it is shown only to users.
                if let Some(interpreter) = error.interpreter() {
                    said.add(&format!("#!{interpreter}"));
                }
                to_io(&error)
            })?;
            {
                let mut trees = trees.lock();
                trees.retain(|tree| !tree.is_gone());
                trees.push(contained.handle.tree().clone());
            }
            said.clear();
            advice.set(None);
            let listening = listen(contained.stderr, name, logs, said);
            let listening = Box::pin(rest_of(tokio::spawn(listening)));
            Ok(Process {
                stdin: Box::new(contained.stdin),
                stdout: Box::new(contained.stdout),
                guard: Box::new(Guarded {
                    handle: contained.handle,
                    exit: None,
                    listening: Some(listening),
                    ladder,
                    answers,
                }),
            })
        })
    }

    fn describe(&self) -> String {
        self.launch.describe()
    }

    fn ended(&self) -> Ended {
        let trees = self.trees.lock();
        let trees = trees.clone();
        Box::pin(async move {
            for tree in trees {
                tree.gone().await;
            }
        })
    }
}

/// The connection prefixes the message with `cannot run …`, and treats these kinds as permanent.
fn to_io(error: &LaunchError) -> io::Error {
    let kind = if error.is_permanent() {
        io::ErrorKind::InvalidInput
    } else {
        io::ErrorKind::Other
    };
    io::Error::new(kind, error.reason())
}

/// Waits for the rest of a server's output after it has exited. A process that it left behind may keep the
/// pipe open, so the wait is short.
async fn rest_of(listening: JoinHandle<()>) {
    let _ = tokio::time::timeout(LAST_WORDS_PATIENCE, listening).await;
}

const LAST_WORDS_PATIENCE: Duration = Duration::from_millis(100);

struct Guarded {
    handle: Handle,
    exit: Option<ExitStatus>,
    /// Reads the rest of the output, so that its last words can be reported with its exit.
    listening: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// The ladder after the server has responded once.
    ladder: Ladder,
    answers: Answers,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.answers.0.load(Relaxed) {
            self.handle.set_ladder(self.ladder);
        }
    }
}

/// Advice about a program that did not start, apart from the message, which passes through the connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct LaunchAdvice(Arc<Mutex<Option<String>>>);

impl LaunchAdvice {
    fn set(&self, advice: Option<&str>) {
        *self.0.lock() = advice.map(Into::into);
    }

    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().clone()
    }
}

/// `true` if a server has ever responded. A server that never responded needs no time to clean up before it
/// exits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers(Arc<AtomicBool>);

impl Answers {
    pub(crate) fn note(&self) {
        self.0.store(true, Relaxed);
    }
}

/// Time for a server that has never responded to exit before it is sent SIGTERM.
const MUTE_CLOSE: Duration = Duration::from_secs(1);

impl ProcessGuard for Guarded {
    fn poll_exit(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        if self.exit.is_none() {
            self.exit = Some(std::task::ready!(self.handle.poll_exit(cx)));
        }
        if let Some(listening) = &mut self.listening {
            std::task::ready!(listening.as_mut().poll(cx));
            self.listening = None;
        }
        Poll::Ready(())
    }

    fn explain(&self) -> String {
        match self.exit {
            Some(exit) => format!("the server exited ({exit})"),
            None => "the server closed its output".to_owned(),
        }
    }
}

/// Writes each step in the life of a server to its log.
pub fn note_step(logs: &Logs, server: &str, step: &Step) {
    match step {
        Step::SentKill(_) | Step::KillingContainer | Step::GuardLost | Step::Unrecorded(_) => {
            tracing::warn!(server, %step, "Unexpected event of a server process.");
        }
        Step::SentTerm(_) | Step::StoppingContainer => {
            tracing::info!(server, %step, "Stopping a server process.");
        }
        _ => tracing::debug!(server, %step, "Event of a server process."),
    }
    logs.note(&server.into(), &step.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_use_the_notation_of_engines() {
        let base = Path::new("/base");
        let mount = parse_mount("/data:/in:ro", base).unwrap();
        assert_eq!(
            (mount.target.to_str(), mount.writable),
            (Some("/in"), false)
        );
        assert!(parse_mount("/data:/in", base).unwrap().writable);
        let relative = parse_mount("data:/in", base).unwrap();
        assert_eq!(relative.source, Path::new("/base/data"));
        for wrong in ["/data", ":/in", "/data:"] {
            assert!(parse_mount(wrong, base).is_err(), "{wrong}");
        }
    }
}
