//! `switchboard stdio`: MCP on standard input and output. Connects to the running gateway, or
//! becomes one.

mod handover;
mod join;
mod pipes;

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
    sync::Arc,
};

use clap::Args;
use switchboard_config::{Config, Environment, Home, Started};
use switchboard_gateway::{Endpoint, Face, Gateway, Ports, View};
use tokio::time::Instant;
use tracing::level_filters::LevelFilter;

pub use self::pipes::{Reader, Writer};
use switchboard_terminal::{
    error::{Context as _, Error},
    print,
};
use switchboard_text::nearest;

use crate::{
    log,
    runtime::{self, Lock, Signals},
};

/// Connect a client over standard input and output.
///
/// This is the command to put into a client's configuration. It connects to the gateway that is running
/// for this home directory. If none is running, it becomes the gateway, for other clients too, until the
/// last client disconnects.
#[derive(Debug, Args)]
pub struct StdioArgs {
    /// Tools that the client sees: `search` (a few tools that find and call all others), `direct` (every
    /// tool of every server), `server:NAME`, or `configured` (the `view` of switchboard.json)
    #[arg(long, value_name = "VIEW", default_value = "configured", value_parser = parse_view)]
    view: View,
    /// Profile that the client is held to: it sees and calls only what the profile includes
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Log level on standard error: off, error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "warn", value_parser = log::level)]
    log_level: LevelFilter,
}

impl StdioArgs {
    /// The arguments for the view of one server.
    pub fn of_server(name: &str, log_level: LevelFilter) -> Self {
        Self {
            view: View::Server(name.into()),
            profile: None,
            log_level,
        }
    }
}

/// A client on a pipe: its endpoint, and the directory that it works in.
#[derive(Debug, Clone)]
pub struct Client {
    endpoint: Endpoint,
    directory: Option<PathBuf>,
}

impl Client {
    /// A client with this view, in the directory of this process.
    pub fn here(view: View) -> Self {
        let directory = std::env::current_dir().ok();
        Self {
            endpoint: view.into(),
            directory,
        }
    }

    /// Checks that the configuration has the client's profile.
    fn check_profile(&self, config: &Config) -> Result<(), Error> {
        let profile = self.endpoint.profile.as_deref();
        profile.map_or(Ok(()), |name| check_profile(config, name))
    }

    /// The directory, as it is sent to the gateway.
    pub fn project(&self) -> Option<Arc<str>> {
        Some(self.directory.as_deref()?.to_str()?.into())
    }

    /// The environment of this process, as a gateway in it may pass it on.
    pub fn environment(&self) -> Environment {
        Environment::current(self.directory.as_deref().map(Started::ByClient))
    }
}

/// Connects to the running gateway, if there is one and it answers.
pub async fn join(home: &Home, client: &Client) -> Option<(Reader, Writer)> {
    let link = join::connect(home, client).await.ok()?;
    link.map(join::Link::into_ends)
}

/// Checks that the configuration has a profile.
pub fn check_profile(config: &Config, name: &str) -> Result<(), Error> {
    if config.profiles.contains_key(name) {
        return Ok(());
    }
    Err(
        match nearest(name, config.profiles.keys().map(String::as_str)) {
            Some(meant) => unknown_profile(name).hint(format!("did you mean `{meant}`?")),
            None => no_profile(name),
        },
    )
}

fn no_profile(name: &str) -> Error {
    unknown_profile(name).hint("`profiles` in switchboard.json lists the profiles")
}

fn unknown_profile(name: &str) -> Error {
    Error::new(format!("there is no profile `{name}`"))
}

fn parse_view(text: &str) -> Result<View, String> {
    match text.split_once(':') {
        None if text == "configured" => Ok(View::All(Face::Configured)),
        None if text == "direct" => Ok(View::All(Face::Direct)),
        None if text == "search" => Ok(View::All(Face::Search)),
        Some(("server", name)) if !name.is_empty() => Ok(View::Server(name.into())),
        _ => Err("expected `search`, `direct`, `server:NAME` or `configured`".to_owned()),
    }
}

/// Serves one client on standard input and output.
pub fn run(home: Home, args: &StdioArgs) -> Result<(), Error> {
    let _log = log::to_stderr(args.log_level).context("cannot start the log")?;
    if io::stdin().is_terminal() {
        print::say("waiting for an MCP client on standard input; press Ctrl-D to quit");
    }
    let client = Client {
        endpoint: Endpoint {
            profile: args.profile.as_deref().map(Arc::from),
            view: args.view.clone(),
        },
        directory: runtime::leave_directory()?,
    };
    runtime::block_on(async move {
        let until = Instant::now() + join::PATIENCE;
        loop {
            // There usually is one, and the attempt costs next to nothing.
            if let Some(link) = join::connect(&home, &client).await? {
                return join::relay(home, client, link).await;
            }
            home.create()?;
            match Lock::take(&home)? {
                Ok(lock) => return be(home, client, lock).await,
                // Another process is about to become the gateway, or to stop being it.
                Err(_) if Instant::now() < until => join::pause().await,
                Err(holder) => {
                    let holder = holder.map_or_else(String::new, |pid| format!(" (process {pid})"));
                    let message = format!("the gateway{holder} does not respond");
                    return Err(Error::new(message).hint("end that process and restart the client"));
                }
            }
        }
    })?
}

/// Runs the gateway, for the client on standard input and for clients that connect later.
async fn be(home: Home, client: Client, lock: Lock) -> Result<(), Error> {
    let config = Config::load(home.config_file())?;
    client.check_profile(&config)?;
    let hosted = Hosted::start(home, config, &client, lock)?;
    let (reader, writer) = pipes::open();
    let gateway = Arc::clone(&hosted.gateway);
    let serving = tokio::spawn(async move {
        let project = client.project();
        let served = gateway.serve_pipe(client.endpoint, project, reader, writer);
        if let Err(error) = served.await {
            tracing::debug!(%error, "The client's pipe closed early.");
        }
        // Connected clients keep the gateway running for as long as they need it, and so do servers
        // that are being listed for the first time.
        gateway.deserted().await;
        gateway.stop().await;
    });
    hosted.until_stopped().await;
    serving.abort();
    Ok(())
}

/// A gateway in this process that other clients can connect to.
struct Hosted {
    gateway: Arc<Gateway>,
    home: Arc<Home>,
    signals: Signals,
    #[expect(dead_code, reason = "held, not read")]
    lock: Lock,
}

impl Hosted {
    fn start(home: Home, config: Config, client: &Client, lock: Lock) -> Result<Self, Error> {
        let signals = Signals::listen()?;
        runtime::raise_file_limit();
        let address = config.listen_address();
        let home = Arc::new(home);
        let gateway = runtime::start(Arc::clone(&home), config, client.environment())?;
        // In the background: other clients can wait for a moment, but this one needs its first
        // response.
        let (host, place) = (Arc::clone(&gateway), Arc::clone(&home));
        tokio::spawn(async move {
            let token = match runtime::token(&place) {
                Ok(token) => token,
                Err(failure) => return tracing::warn!("{}", failure.line()),
            };
            let socket = runtime::bind_socket(&place)
                .inspect_err(|failure| {
                    tracing::warn!("Other clients cannot connect: {}", failure.line());
                })
                .ok();
            let tcp = Ports::bind(address)
                .await
                .inspect_err(|error| {
                    tracing::warn!(
                        "HTTP clients cannot connect: cannot listen on {address}: {error}"
                    );
                })
                .ok();
            runtime::open_doors(&host, &token, socket, tcp);
            host.watch_config();
        });
        Ok(Self {
            gateway,
            home,
            signals,
            lock,
        })
    }

    async fn until_stopped(self) {
        runtime::until_stopped(&self.gateway, self.signals).await;
        // A leftover socket does no harm, but without it clients see at once that no gateway is
        // running.
        let _ = std::fs::remove_file(self.home.socket());
    }
}
