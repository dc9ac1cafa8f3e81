//! `switchboard serve`: runs the gateway until it is stopped.

use std::{
    io,
    net::SocketAddr,
    os::unix::net::UnixStream,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use switchboard_config::{Config, Environment, Home, Started};
use switchboard_gateway::Ports;
use switchboard_terminal::error::{Context as _, Error};
use tracing::level_filters::LevelFilter;

use crate::{
    log,
    runtime::{self, Lock, Signals},
};

/// The longest time to wait for a command that is the gateway for a moment.
const MOMENT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);

/// Run the gateway.
///
/// Clients connect through `switchboard stdio`, or to the printed address with a token of `switchboard token create`.
/// The link to the console works once; `switchboard console` prints another. The gateway stops on
/// Ctrl-C, on SIGTERM and with `switchboard stop`, and stops all servers first. A second Ctrl-C stops
/// it without waiting for slow servers.
#[derive(Debug, Args)]
pub struct Serve {
    /// Address to listen on instead of `listen` in the configuration; port 0 selects a free port
    #[arg(long, value_name = "ADDR", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Log level on standard error: off, error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = log::level)]
    log_level: LevelFilter,
}

/// Runs a gateway until it is stopped.
pub fn run(home: Home, args: &Serve) -> Result<(), Error> {
    let _log = log::to_stderr(args.log_level).context("cannot start the log")?;
    runtime::raise_file_limit();
    home.create()?;
    let directory = runtime::leave_directory()?;
    let lock = match take_lock(&home)? {
        Ok(lock) => lock,
        Err(holder) => {
            let holder = holder.map_or_else(String::new, |pid| format!(" (process {pid})"));
            return Err(Error::new(format!(
                "a gateway is already running for {}{holder}",
                home.config_file().display()
            ))
            .hint("`switchboard status` shows it, `switchboard stop` stops it"));
        }
    };
    let config = Config::load(home.config_file())?;
    let address = args.listen.unwrap_or_else(|| config.listen_address());
    if !address.ip().is_loopback() {
        let message =
            format!("cannot listen on {address}: the gateway accepts only loopback addresses");
        let hint = "choose a loopback address such as 127.0.0.1:7777";
        return Err(Error::usage(message).hint(hint));
    }
    let environment = Environment::current(directory.as_deref().map(Started::ByUser));
    runtime::block_on(serve(home, config, environment, address, lock))?
}

/// Takes the lock. Waits for a command that is the gateway for a moment and accepts no clients.
fn take_lock(home: &Home) -> Result<Result<Lock, Option<u32>>, Error> {
    let until = Instant::now() + MOMENT;
    loop {
        let taken = Lock::take(home)?;
        let is_joinable = || UnixStream::connect(home.socket()).is_ok();
        if taken.is_ok() || Instant::now() >= until || is_joinable() {
            return Ok(taken);
        }
        thread::sleep(PAUSE);
    }
}

async fn serve(
    home: Home,
    config: Config,
    environment: Environment,
    address: SocketAddr,
    lock: Lock,
) -> Result<(), Error> {
    let signals = Signals::listen()?;
    let token = runtime::token(&home)?;
    let tcp = Ports::bind(address).await.map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::AddrInUse => ": another program uses this port",
            _ => "",
        };
        Error::new(format!("cannot listen on {address}{why}: {error}"))
            .hint("choose another address with --listen, such as 127.0.0.1:0 for any free port, or with `listen` in the configuration")
    })?;
    let socket = runtime::bind_socket(&home)?;
    let address = tcp.address();
    let home = Arc::new(home);
    let gateway = runtime::start(Arc::clone(&home), config, environment)?;
    let doors = runtime::open_doors(&gateway, &token, Some(socket), Some(tcp));
    gateway.watch_config();
    announce(&home, address, gateway.console_link().as_deref());
    runtime::until_stopped(&gateway, signals).await;
    doors.closed().await;
    // A leftover socket does no harm, but without it clients see at once that no gateway is
    // running.
    let _ = std::fs::remove_file(home.socket());
    drop(lock);
    Ok(())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = text.trim_start_matches(':').parse::<u16>().unwrap_or(7777);
        format!("expected HOST:PORT, such as 127.0.0.1:{port}")
    })
}

#[expect(clippy::print_stdout)] // The user or a script waits for these lines.
fn announce(home: &Home, address: SocketAddr, console: Option<&str>) {
    println!("MCP      http://{address}/mcp");
    if let Some(link) = console {
        println!("Console  {link}");
    }
    println!("API      http://{address}/api/v1/status");
    println!("Token    {}", home.token_file().display());
}
