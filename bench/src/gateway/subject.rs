//! The measured programs, each in its own process: starting, waiting, stopping.

use std::{
    env,
    error::Error,
    fmt,
    fs::{self, File},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value, json};
use switchboard_wire::Era;
use tempfile::TempDir;

use super::{
    echo::word,
    http::{Connection, Door},
    process,
};
use crate::Result;

/// The argument that makes this program the server behind every subject.
pub(crate) const ECHO: &str = "echo";
/// The argument that makes it the relay.
pub(crate) const RELAY: &str = "relay";

/// The longest time for a subject to become ready, or to exit.
const PATIENCE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(20);

/// The command line of an echo server with this number of tools.
pub(super) fn echo(tools: usize) -> Result<Vec<String>> {
    echo_of(Era::Legacy, tools)
}

/// The same for an era.
fn echo_of(era: Era, tools: usize) -> Result<Vec<String>> {
    let own = env::current_exe()?;
    let own = own
        .to_str()
        .ok_or("the path of this program is not UTF-8")?;
    let tools = tools.to_string();
    Ok([own, ECHO, word(era), &tools].map(str::to_owned).to_vec())
}

/// A directory for a gateway, with its configuration.
pub(super) struct Home {
    dir: TempDir,
}

impl Home {
    pub(super) fn new() -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("sb-bench-").tempdir()?;
        Ok(Self { dir })
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a configuration of these servers; `more` is added to each entry.
    pub(super) fn configure(&self, servers: &[(String, Vec<String>)], more: &Value) -> Result<()> {
        let mut entries = Map::new();
        for (name, line) in servers {
            let (program, arguments) = line.split_first().ok_or("no server")?;
            let mut entry = json!({"command": program, "args": arguments});
            if let (Value::Object(entry), Value::Object(more)) = (&mut entry, more) {
                entry.extend(more.clone());
            }
            entries.insert(name.clone(), entry);
        }
        let config = json!({"listen": "127.0.0.1:0", "view": "direct", "mcpServers": entries});
        let text = serde_json::to_vec_pretty(&config)?;
        fs::write(self.path().join("switchboard.json"), text)?;
        Ok(())
    }

    /// A command of the gateway for this home.
    pub(super) fn command(&self, switchboard: &Path, command: &str) -> Command {
        let mut built = Command::new(switchboard);
        built.arg("--home").arg(self.path()).arg(command);
        built
    }

    /// Starts `switchboard serve` and waits until it listens.
    pub(super) fn serve(&self, switchboard: &Path) -> Result<Subject> {
        let mut command = self.command(switchboard, "serve");
        command.args(["--listen", "127.0.0.1:0"]);
        let mut running = Running::start("switchboard serve", command, self.path())?;
        let address = running.address()?;
        let token = fs::read_to_string(self.path().join("run/token"))?;
        let door = Door {
            address,
            path: "/mcp",
            token: Some(token.trim().to_owned()),
            tool: "echo__echo",
            era: Era::Legacy,
        };
        Ok(Subject {
            running,
            door,
            _home: None,
        })
    }
}

/// A running subject that can be called.
pub(super) struct Subject {
    running: Running,
    pub(super) door: Door,
    /// Removed with the subject.
    _home: Option<Home>,
}

impl Subject {
    /// `switchboard serve` with one echo server and default settings otherwise.
    pub(super) fn switchboard(program: &Path) -> Result<Self> {
        Self::between(program, Era::Legacy, Era::Legacy)
    }

    /// The same between clients and a server of these eras.
    pub(super) fn between(program: &Path, clients: Era, server: Era) -> Result<Self> {
        let home = Home::new()?;
        home.configure(&[("echo".to_owned(), echo_of(server, 1)?)], &json!({}))?;
        let Self { running, door, .. } = home.serve(program)?;
        Ok(Self {
            running,
            door: Door {
                era: clients,
                ..door
            },
            _home: Some(home),
        })
    }

    pub(super) fn relay() -> Result<Self> {
        let home = Home::new()?;
        let mut command = Command::new(env::current_exe()?);
        command.arg(RELAY).args(echo(1)?);
        let mut running = Running::start("relay", command, home.path())?;
        let door = Door {
            address: running.address()?,
            path: "/mcp",
            token: None,
            tool: "echo",
            era: Era::Legacy,
        };
        Ok(Self {
            running,
            door,
            _home: Some(home),
        })
    }

    /// The other gateway, with a configuration that enables nothing.
    pub(super) fn mcp_proxy(program: &Path) -> Result<Self> {
        let home = Home::new()?;
        // It does not accept port 0, so it gets a port that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let line = echo(1)?;
        let (server, arguments) = line.split_first().ok_or("no server")?;
        // An array of strings has the same syntax in TOML and in JSON.
        let config = format!(
            "[proxy]\nname = \"bench\"\n\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {}\n\n\
             [[backends]]\nname = \"echo\"\ntransport = \"stdio\"\ncommand = {}\nargs = {}\n",
            address.port(),
            json!(server),
            json!(arguments),
        );
        let file = home.path().join("proxy.toml");
        fs::write(&file, config)?;
        let mut command = Command::new(program);
        command.arg("--config").arg(file);
        let running = Running::start("mcp-proxy", command, home.path())?;
        let door = Door {
            address,
            path: "/",
            token: None,
            tool: "echo/echo",
            era: Era::Legacy,
        };
        Ok(Self {
            running,
            door,
            _home: Some(home),
        })
    }

    /// Opens a connection as soon as a call over it succeeds.
    pub(super) async fn ready(&mut self) -> Result<Connection> {
        self.connected(true).await
    }

    /// Opens a connection as soon as possible.
    pub(super) async fn connect(&mut self) -> Result<Connection> {
        self.connected(false).await
    }

    async fn connected(&mut self, calling: bool) -> Result<Connection> {
        let until = Instant::now() + PATIENCE;
        loop {
            let attempt = async {
                let mut connection = Connection::open(&self.door, 0).await?;
                if calling {
                    connection.call().await?;
                }
                Result::Ok(connection)
            };
            match attempt.await {
                Ok(connection) => return Ok(connection),
                Err(error) if self.running.has_ended() || Instant::now() > until => {
                    return Err(self.running.complaint(&error));
                }
                Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.running.child.id()
    }

    /// The subject's own processes: with its guards, without the servers behind it.
    fn own_processes(&self) -> Result<Vec<u32>> {
        let line = echo(1)?;
        let server = line.get(..2).unwrap_or_default().join(" ");
        let is_server =
            |pid: &u32| process::command_line(*pid).is_none_or(|line| line.starts_with(&server));
        let mut below = process::descendants(self.pid())?;
        below.retain(|pid| !is_server(pid));
        below.insert(0, self.pid());
        Ok(below)
    }

    /// CPU time of the subject's own processes.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        self.own_processes()?
            .into_iter()
            .map(process::cpu_time)
            .sum()
    }

    /// Memory of the subject itself, and of its guards, in MB.
    pub(super) fn resident(&self) -> Result<(f64, f64)> {
        let own = process::resident(self.pid())?;
        let others = self.own_processes()?.into_iter().skip(1);
        let others: Vec<f64> = others.map(process::resident).collect::<Result<_>>()?;
        Ok((own, others.iter().fold(0.0, |sum, size| sum + size)))
    }

    /// Stops it and waits until it has exited.
    pub(super) fn stop(mut self) -> Result<()> {
        self.running.stop()
    }
}

/// A process whose output is kept in files.
struct Running {
    name: &'static str,
    child: Child,
    output: PathBuf,
    errors: PathBuf,
}

impl Running {
    fn start(name: &'static str, mut command: Command, dir: &Path) -> Result<Self> {
        let (output, errors) = (dir.join("bench-stdout"), dir.join("bench-stderr"));
        let child = command
            .stdin(Stdio::null())
            .stdout(File::create(&output)?)
            .stderr(File::create(&errors)?)
            .spawn()
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        Ok(Self {
            name,
            child,
            output,
            errors,
        })
    }

    /// The address on which it reports to listen.
    fn address(&mut self) -> Result<SocketAddr> {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = fs::read_to_string(&self.output)?;
            let line = said.lines().find_map(|line| line.split_once("http://"));
            if let Some((_, rest)) = line
                && let Some((address, _)) = rest.split_once('/')
                && said.ends_with('\n')
            {
                return Ok(address.parse()?);
            }
            if Instant::now() > until || self.has_ended() {
                return Err(self.complaint(&"it does not report its address"));
            }
            thread::sleep(POLL);
        }
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn complaint(&self, error: &dyn fmt::Display) -> Box<dyn Error + Send + Sync> {
        let said = fs::read_to_string(&self.errors).unwrap_or_default();
        let last: Vec<&str> = said.lines().rev().take(5).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        format!(
            "{}: {error}; its last output: {}",
            self.name,
            last.join(" | ")
        )
        .into()
    }

    fn stop(&mut self) -> Result<()> {
        if self.has_ended() {
            return Ok(());
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM)?;
        }
        let until = Instant::now() + PATIENCE;
        while !self.has_ended() {
            if Instant::now() > until {
                self.child.kill()?;
                self.child.wait()?;
                return Err(format!("{} did not exit within {PATIENCE:?}", self.name).into());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // This is needed only after a failure, which is being reported; otherwise it has been stopped before.
        let _ = self.stop();
    }
}
