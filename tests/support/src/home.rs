//! A home of a gateway, and the gateway that runs in it.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    fixture,
    http::Http,
    mcp::Client,
    processes::{self, Person},
    switchboard, until,
};

/// An entry of `mcpServers` for the server that behaves as its arguments say.
pub fn server(args: &[&str]) -> Value {
    json!({ "command": fixture("mcp_fixture"), "args": args })
}

/// The same entry with additional members.
pub fn with(mut server: Value, more: Value) -> Value {
    let (Value::Object(members), Value::Object(more)) = (&mut server, more) else {
        panic!("both are objects");
    };
    members.extend(more);
    server
}

pub fn eager(server: Value) -> Value {
    with(server, json!({ "start": "eager" }))
}

/// The gateway home of one test.
pub struct Home {
    dir: TempDir,
}

impl Home {
    /// A home with these servers.
    pub fn new(servers: Value) -> Self {
        let dir = tempfile::Builder::new().prefix("sb-").tempdir().unwrap();
        let home = Self { dir };
        home.set_servers(servers);
        home
    }

    /// A home with the memory and nothing else.
    pub fn remembering() -> Self {
        let home = Self::new(json!({}));
        home.set_config(json!({ "memory": { "enabled": true } }));
        home
    }

    pub fn set_servers(&self, servers: Value) {
        self.set_config(json!({ "mcpServers": servers }));
    }

    /// Writes the configuration, with a free port. The memory is one of the servers only if the configuration
    /// mentions it.
    pub fn set_config(&self, config: Value) {
        let quiet = json!({ "listen": "127.0.0.1:0", "memory": { "enabled": false } });
        let config = with(quiet, config);
        self.write_config(&format!("{config:#}\n"));
    }

    /// Writes the file as an editor does: replaces it atomically.
    pub fn write_config(&self, text: &str) {
        let new = self.path("switchboard.json.new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path("switchboard.json")).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The lines of a file that a server writes; empty if it does not exist yet.
    pub fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The program with this home.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(switchboard());
        command
            .arg("--home")
            .arg(self.dir.path())
            .args(args)
            .env_remove("SWITCHBOARD_HOME");
        command
    }

    /// Runs a command of the program to its end.
    pub fn run(&self, args: &[&str]) -> std::process::Output {
        self.command(args).stdin(Stdio::null()).output().unwrap()
    }

    /// Starts the gateway, and returns when it is ready.
    pub fn serve(&self) -> Serve<'_> {
        self.serve_with(self.command(&[]))
    }

    /// Starts the gateway with this command, which has no arguments of its own yet.
    pub fn serve_with(&self, command: Command) -> Serve<'_> {
        Serve::start(self, command)
    }

    /// All live processes that a gateway of this home has started.
    pub fn people(&self) -> Vec<Person> {
        match fs::read_to_string(self.path("run/instance")) {
            Ok(instance) => processes::contained(instance.trim()),
            Err(_) => Vec::new(),
        }
    }

    /// Checks that no process is left.
    #[track_caller]
    pub fn assert_nobody(&self, when: &str) {
        let people = self.people();
        assert!(people.is_empty(), "{when}: left: {people:#?}");
    }

    /// Waits until no process is left.
    #[track_caller]
    pub fn until_nobody(&self, when: &str) {
        until(&format!("{when}, all have left"), || {
            self.people().is_empty()
        });
    }

    fn complaints(&self) -> String {
        fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }
}

/// A test that fails leaves no process behind either.
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

/// A running `switchboard serve`.
pub struct Serve<'a> {
    pub home: &'a Home,
    pub address: SocketAddr,
    child: Child,
}

impl<'a> Serve<'a> {
    fn start(home: &'a Home, mut command: Command) -> Self {
        let errors = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(home.path("stderr"))
            .unwrap();
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--log-level", "debug"])
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
        // The rest of its output is read too, so that it never blocks on a full pipe.
        for _ in 0..3 {
            said.next();
        }
        Self {
            home,
            address,
            child,
        }
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub fn token(&self) -> String {
        let token = fs::read_to_string(self.home.path("run/token")).unwrap();
        token.trim().to_owned()
    }

    pub fn http(&self) -> Http {
        Http::connect(self.address, &self.token())
    }

    /// A client with a session of its own at the default address.
    pub fn client(&self) -> Client {
        Client::open(self.http())
    }

    pub fn status(&self) -> Value {
        let answer = self.http().get("/api/v1/status");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// One server, as in the status.
    pub fn server(&self, name: &str) -> Value {
        let status = self.status();
        let servers = status["servers"].as_array().unwrap();
        let server = servers.iter().find(|server| server["name"] == name);
        server.cloned().unwrap_or_default()
    }

    /// The reason that the server failed. A server that is being restarted has none for a moment, so this
    /// waits for it.
    #[track_caller]
    pub fn reason(&self, name: &str) -> String {
        until(&format!("{name} has failed"), || {
            self.server(name)["reason"].as_str().map(str::to_owned)
        })
    }

    pub fn state(&self, name: &str) -> String {
        let server = self.server(name);
        server["state"].as_str().unwrap_or("absent").to_owned()
    }

    /// Waits until the server is in this state.
    #[track_caller]
    pub fn until_state(&self, name: &str, state: &str) {
        until(&format!("{name} is {state}"), || self.state(name) == state);
    }

    /// Waits until all servers are ready.
    pub fn until_all_ready(&self) {
        until("all servers are ready", || {
            let status = self.status();
            let servers = status["servers"].as_array().unwrap();
            let ready = |server: &Value| server["state"] == "ready";
            servers.iter().all(ready)
        });
    }

    /// Waits until the server has been listed, and its snapshot is written.
    pub fn until_known(&self, name: &str) {
        let file = self.home.path(&format!("catalog/{name}.json"));
        until(&format!("{name} is known"), || {
            file.exists() && self.server(name)["tools"] != 0
        });
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        processes::signal(self.pid(), signal);
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        until("the gateway has ended", || self.child.try_wait().unwrap())
    }

    /// Stops the gateway as a user does, and checks that no process is left.
    pub fn stop(mut self) {
        self.signal(rustix::process::Signal::TERM);
        assert!(self.ended().success());
        self.home.assert_nobody("stopped");
    }
}

impl Drop for Serve<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
