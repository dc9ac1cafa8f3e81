//! The parts that `serve` and `stdio` share: the lock, the token, the doors, the signals.

use std::{
    fs::{self, File},
    future::Future,
    io::{self, Read, Seek, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use switchboard_config::{Config, Environment, Home};
use switchboard_files::{Access, Links, write_private};
use switchboard_gateway::{Doors, Gateway, Ports};
use switchboard_terminal::error::{Context as _, Error};
use switchboard_text::hex;
use tokio::{
    net::UnixListener,
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};

/// Runs the gateway's work. A few threads are enough, since it mostly forwards bytes.
pub fn block_on<F: Future>(work: F) -> Result<F::Output, Error> {
    let workers = std::thread::available_parallelism().map_or(2, |n| n.get().min(4));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let done = runtime.block_on(work);
    // Do not wait for blocking operations (a file, a name server).
    runtime.shutdown_background();
    Ok(done)
}

/// Starts a gateway in this process.
pub fn start(
    home: Arc<Home>,
    config: Config,
    environment: Environment,
) -> Result<Arc<Gateway>, Error> {
    let started = Gateway::start(home, config, environment, None);
    started.map_err(|error| Error::from_error(&error, None))
}

/// Changes to the root directory, and returns the directory that the program was started in. That
/// one belongs to a client's project: relative names that this process and its children look up
/// must not be found there. Paths that the user gave have to be absolute by now.
pub(crate) fn leave_directory() -> Result<Option<PathBuf>, Error> {
    let directory = std::env::current_dir().ok();
    std::env::set_current_dir("/").context("cannot change to the directory /")?;
    Ok(directory)
}

/// The right to be the gateway of a home. One process holds it at a time, until it exits.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, not read")] File);

impl Lock {
    /// Returns `true` if a process holds the lock, or that cannot be determined.
    pub fn is_held(home: &Home) -> bool {
        match File::open(home.lock_file()) {
            Ok(lock) => lock.try_lock_shared().is_err(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Takes the lock; `Err` with the process that holds it, if there is one.
    pub fn take(home: &Home) -> Result<Result<Self, Option<u32>>, Error> {
        let path = home.lock_file();
        let mut file = switchboard_files::open_private(&path)
            .context(format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // The PID helps the user; without it, the result is the same.
                let _ = file.read_to_string(&mut holder);
                return Ok(Err(holder.trim().parse().ok()));
            }
            Err(fs::TryLockError::Error(error)) => {
                return Err(error).context(format!("cannot lock {}", path.display()));
            }
        }
        let write = || -> io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        let mut write = write;
        write().context(format!("cannot write {}", path.display()))?;
        sweep(home);
        warn_of_group(home.config_file());
        Ok(Ok(Self(file)))
    }
}

/// Warns that other users may change which programs are run.
fn warn_of_group(config: &Path) {
    if switchboard_files::access(config).is_ok_and(Access::is_group_writable) {
        tracing::warn!(file = %config.display(), "The group can change the configuration, which names programs to run; run `chmod g-w` on the file.");
    }
}

/// Removes the drafts that killed processes left in the home.
fn sweep(home: &Home) {
    let data = home.database();
    for folder in [
        data.parent(),
        home.config_file().parent(),
        Some(&home.run()),
        Some(&home.groups()),
        Some(&home.secrets()),
        Some(&home.vault()),
        Some(&home.catalog()),
        Some(&home.trust()),
        Some(&home.search()),
    ]
    .into_iter()
    .flatten()
    {
        match switchboard_files::sweep(folder) {
            Ok(0) => {}
            Ok(removed) => {
                tracing::info!(removed, folder = %folder.display(), "Removed temporary files of processes that were killed.");
            }
            Err(error) => {
                tracing::debug!(%error, folder = %folder.display(), "Cannot look for temporary files.");
            }
        }
    }
}

/// The token that clients over TCP present. A new one is made if there is none, or if it is too
/// short to be a secret or another user may know it.
pub(crate) fn token(home: &Home) -> Result<String, Error> {
    let path = home.token_file();
    match switchboard_files::read(&path, TOKEN_BYTES_MAX, Links::Refuse) {
        Ok(_) if !switchboard_files::access(&path).is_ok_and(is_own) => {
            tracing::warn!(path = %path.display(), "Another user may know the token; the gateway replaces it.");
        }
        Ok(token) => match String::from_utf8(token) {
            Ok(token) if token.trim().len() >= TOKEN_BYTES_MIN => {
                return Ok(token.trim().to_owned());
            }
            _ => {
                tracing::warn!(path = %path.display(), "The token is shorter than {TOKEN_BYTES_MIN} characters, or not text; the gateway replaces it.");
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).context(format!("cannot read {}", path.display()));
        }
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("the system provides no random numbers")?;
    let token = hex::encode(&bytes);
    write_private(&path, format!("{token}\n").as_bytes())
        .context(format!("cannot write {}", path.display()))?;
    Ok(token)
}

/// The shortest token: 128 bits in hexadecimal digits.
const TOKEN_BYTES_MIN: usize = 32;
const TOKEN_BYTES_MAX: u64 = 4096;

fn private(path: &Path) -> Result<(), Error> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .context(format!("cannot set the mode of {} to 600", path.display()))
}

/// Returns `true` if only this user can have written or read the file.
fn is_own(found: Access) -> bool {
    found.owner == rustix::process::geteuid().as_raw() && !found.is_open()
}

/// Opens the gateway's own socket. Replaces an existing one, which is a leftover, since the lock is
/// held.
pub(crate) fn bind_socket(home: &Home) -> Result<UnixListener, Error> {
    let path = home.socket();
    if path.is_symlink() {
        let message = format!("cannot open {}: it is a symbolic link", path.display());
        return Err(Error::new(message).hint("remove the link"));
    }
    match fs::remove_file(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).context(format!("cannot replace {}", path.display()));
        }
    }
    let listener = UnixListener::bind(&path).context(format!("cannot open {}", path.display()))?;
    private(&path)?;
    Ok(listener)
}

/// The signals that the gateway handles. Created before anything is running that would have to be
/// stopped.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Error> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot handle SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot handle SIGINT")?,
            hang_up: signal(SignalKind::hangup()).context("cannot handle SIGHUP")?,
        })
    }
}

/// Stops the gateway on a signal, without further waiting on a second one, and reloads the
/// configuration on SIGHUP. Returns when the gateway has stopped.
pub(crate) async fn until_stopped(gateway: &Arc<Gateway>, mut signals: Signals) {
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => break,
            _ = signals.interrupt.recv() => break,
            _ = signals.hang_up.recv() => {
                // A file that cannot be applied has been reported.
                let _ = gateway.reload().await;
            }
            () = gateway.stopped() => break,
        }
    }
    let mut stopping = std::pin::pin!(gateway.stop());
    loop {
        tokio::select! {
            // Polled first, so that the shutdown has begun before a signal can hurry it.
            biased;
            () = &mut stopping => break,
            _ = signals.terminate.recv() => {}
            _ = signals.interrupt.recv() => gateway.hurry(),
        }
    }
    // Clients on pipes have been answered; give them time to read the responses.
    let _ = timeout(LAST_ANSWERS, gateway.abandoned()).await;
}

/// The time to read the last responses.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// Opens the doors in the background.
pub(crate) fn open_doors(
    gateway: &Arc<Gateway>,
    token: &str,
    socket: Option<UnixListener>,
    tcp: Option<Ports>,
) -> Doors {
    let doors = gateway.doors(token);
    if let Some(socket) = socket {
        let doors = doors.clone();
        tokio::spawn(async move { doors.serve_socket(socket).await });
    }
    if let Some(tcp) = tcp {
        tokio::spawn(doors.serve_tcp(tcp));
    }
    doors
}

/// Raises the limit on open files as far as the system permits, because each client and each server
/// takes some.
pub(crate) fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    /// Closing all descriptors before a program is started takes longer with a limit of millions.
    const ENOUGH: u64 = 65_536;
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if limit.current.is_some_and(|current| current < most) {
        limit.current = Some(most);
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%error, "Cannot raise the limit on open files.");
        }
    }
}
