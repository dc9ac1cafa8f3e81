//! What the tests share: a home of their own, the program in it, clients, and a look at who is left.

pub(crate) mod http;
pub(crate) mod mcp;
pub(crate) mod pipe;
pub(crate) mod processes;

use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use self::{http::Http, mcp::Client, processes::Person};

const SWITCHBOARD: &str = env!("CARGO_BIN_EXE_switchboard");

/// Far more than anything that works takes on a busy machine.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// Looks again and again until it finds what it looks for.
pub(crate) fn within<T>(time: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + time;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "not within {time:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The example server that does as it is told.
pub(crate) fn fixture() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let beside = Path::new(SWITCHBOARD).parent().expect("it is in a folder");
        let path = beside.join("examples/mcp_fixture");
        assert!(
            path.exists(),
            "{} is not there: `cargo build -p switchboard --examples` makes it",
            path.display()
        );
        path.to_str().expect("paths of builds are text").to_owned()
    })
}

/// An entry of `mcpServers` for the example server.
pub(crate) fn server(args: &[&str]) -> Value {
    json!({ "command": fixture(), "args": args })
}

/// The same entry with other members as well.
pub(crate) fn with(mut server: Value, more: Value) -> Value {
    let (Value::Object(members), Value::Object(more)) = (&mut server, more) else {
        panic!("both are objects");
    };
    members.extend(more);
    server
}

pub(crate) fn eager(server: Value) -> Value {
    with(server, json!({ "start": "eager" }))
}

/// One test's own gateway home.
pub(crate) struct Home {
    dir: TempDir,
}

impl Home {
    /// A home with these servers.
    pub(crate) fn new(servers: Value) -> Self {
        let dir = tempfile::Builder::new().prefix("sb-").tempdir().unwrap();
        let home = Self { dir };
        home.set_servers(servers);
        home
    }

    /// A home with the memory and nothing else.
    pub(crate) fn remembering() -> Self {
        let home = Self::new(json!({}));
        home.set_config(json!({ "memory": { "enabled": true } }));
        home
    }

    pub(crate) fn set_servers(&self, servers: Value) {
        self.set_config(json!({ "mcpServers": servers }));
    }

    /// Writes the configuration, on a port that is free. The memory is one of the servers only if the
    /// configuration speaks of it.
    pub(crate) fn set_config(&self, config: Value) {
        let quiet = json!({ "listen": "127.0.0.1:0", "memory": { "enabled": false } });
        let config = with(quiet, config);
        self.write_config(&format!("{config:#}\n"));
    }

    /// Writes the file as an editor does: whole, in place of the old one.
    pub(crate) fn write_config(&self, text: &str) {
        let new = self.path("switchboard.json.new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path("switchboard.json")).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The lines of a file that a server writes; none if it is not there yet.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The program with this home.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(SWITCHBOARD);
        command
            .arg("--home")
            .arg(self.dir.path())
            .args(args)
            .env_remove("SWITCHBOARD_HOME");
        command
    }

    /// Runs a command of the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> std::process::Output {
        self.command(args).stdin(Stdio::null()).output().unwrap()
    }

    /// Starts the gateway, and returns when it is there.
    pub(crate) fn serve(&self) -> Serve<'_> {
        Serve::start(self)
    }

    /// Everyone that a gateway of this home has started and that is still there.
    pub(crate) fn people(&self) -> Vec<Person> {
        match fs::read_to_string(self.path("run/instance")) {
            Ok(instance) => processes::contained(instance.trim()),
            Err(_) => Vec::new(),
        }
    }

    /// Waits until nobody is left.
    #[track_caller]
    pub(crate) fn assert_nobody_within(&self, time: Duration, when: &str) {
        let until = Instant::now() + time;
        loop {
            let people = self.people();
            if people.is_empty() {
                return;
            }
            assert!(
                Instant::now() < until,
                "{when}: left after {time:?}: {people:#?}"
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn complaints(&self) -> String {
        fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }
}

/// A test that fails leaves nobody either.
impl Drop for Home {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("what the gateway said:\n{}", self.complaints());
            for person in self.people() {
                processes::kill(person.pid);
            }
        }
    }
}

/// `switchboard serve`.
pub(crate) struct Serve<'a> {
    pub(crate) home: &'a Home,
    pub(crate) address: SocketAddr,
    child: Child,
}

impl<'a> Serve<'a> {
    fn start(home: &'a Home) -> Self {
        let errors = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(home.path("stderr"))
            .unwrap();
        let mut child = home
            .command(&["serve", "--listen", "127.0.0.1:0", "--log-level", "debug"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = said.next().and_then(Result::ok).unwrap_or_default();
        let address = first
            .strip_prefix("MCP      http://")
            .and_then(|rest| rest.strip_suffix("/mcp"))
            .and_then(|address| address.parse().ok());
        let Some(address) = address else {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the gateway said {first:?}, and {}", home.complaints());
        };
        // Whatever else it says is read with it, so that it never waits for a reader.
        for _ in 0..3 {
            said.next();
        }
        Self {
            home,
            address,
            child,
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub(crate) fn token(&self) -> String {
        let token = fs::read_to_string(self.home.path("run/token")).unwrap();
        token.trim().to_owned()
    }

    pub(crate) fn http(&self) -> Http {
        Http::connect(self.address, &self.token())
    }

    /// A client of everything, with a session of its own.
    pub(crate) fn client(&self) -> Client {
        Client::open(self.http())
    }

    pub(crate) fn status(&self) -> Value {
        let answer = self.http().get("/api/v1/status");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// One server, as the status has it.
    pub(crate) fn server(&self, name: &str) -> Value {
        let status = self.status();
        let servers = status["servers"].as_array().unwrap();
        let server = servers.iter().find(|server| server["name"] == name);
        server.cloned().unwrap_or_default()
    }

    /// Why the server failed. One that is being started again has no reason for a moment, so it is waited for.
    #[track_caller]
    pub(crate) fn reason(&self, name: &str) -> String {
        within(SOON, &format!("{name} has failed"), || {
            self.server(name)["reason"].as_str().map(str::to_owned)
        })
    }

    pub(crate) fn state(&self, name: &str) -> String {
        let server = self.server(name);
        server["state"].as_str().unwrap_or("absent").to_owned()
    }

    /// Waits until the server is in this state.
    #[track_caller]
    pub(crate) fn until_state(&self, name: &str, state: &str) {
        within(SOON, &format!("{name} is {state}"), || {
            (self.state(name) == state).then_some(())
        });
    }

    /// Waits until each server is ready.
    pub(crate) fn until_all_ready(&self) {
        within(SOON, "all servers are ready", || {
            let status = self.status();
            let servers = status["servers"].as_array().unwrap();
            let ready = |server: &Value| server["state"] == "ready";
            servers.iter().all(ready).then_some(())
        });
    }

    /// Waits until what the server offers is known, and kept for the next start.
    pub(crate) fn until_known(&self, name: &str) {
        let file = self.home.path(&format!("catalog/{name}.json"));
        within(SOON, &format!("{name} is known"), || {
            (file.exists() && self.server(name)["tools"] != 0).then_some(())
        });
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        processes::signal(self.pid(), signal);
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> ExitStatus {
        within(SOON, "the gateway has ended", || {
            self.child.try_wait().unwrap()
        })
    }

    /// Stops the gateway as a user does, and sees that nobody is left.
    pub(crate) fn stop(mut self) {
        self.signal(rustix::process::Signal::TERM);
        assert!(self.ended().success());
        self.home.assert_nobody_within(Duration::ZERO, "stopped");
    }
}

impl Drop for Serve<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
