//! A folder of its own for each test: the gateway's home, the servers' home, and the directories to start
//! from.

use std::{
    cell::RefCell,
    env,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    mem,
    net::SocketAddr,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    thread,
};

use rustix::process::Signal;
use serde_json::{Value, json};
use switchboard_test_support::{
    Tools,
    http::Http,
    processes::{self, Person},
    until,
};
use tempfile::TempDir;

use crate::{client::Client, table::Installed};

const SWITCHBOARD: &str = env!("CARGO_BIN_EXE_switchboard");

/// Lines of the log that are shown when a test fails.
const LAST_LINES: usize = 60;

/// A cluster that does not exist.
const KUBECONFIG: &str = "\
apiVersion: v1
kind: Config
clusters: [{ name: none, cluster: { server: 'http://127.0.0.1:9' } }]
contexts: [{ name: none, context: { cluster: none, user: none } }]
users: [{ name: none, user: {} }]
current-context: none
";

/// The files of one test. No process that was started in it outlives it.
pub(crate) struct Place {
    dir: TempDir,
    /// The gateway's home, which can be moved.
    home: RefCell<&'static str>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("sb-").tempdir().unwrap();
        let place = Self {
            dir,
            home: RefCell::new("home"),
        };
        for name in [
            "home",
            "user",
            "tmp",
            "work",
            "here",
            "elsewhere",
            "project/.git",
        ] {
            fs::create_dir_all(place.path(name)).unwrap();
        }
        fs::write(place.path("work/notes.txt"), "one line\n").unwrap();
        fs::write(place.path("work/kubeconfig"), KUBECONFIG).unwrap();
        place.git(
            &place.path("work"),
            &["init", "--quiet", "--initial-branch", "main"],
        );
        place
    }

    /// Makes a directory that is a git repository with one file, branch and commit, which are named after it.
    pub(crate) fn repository(&self, name: &str) {
        let directory = self.path(name);
        fs::create_dir(&directory).unwrap();
        let file = directory.join(format!("{name}.txt"));
        fs::write(file, format!("notes of {name}\n")).unwrap();
        let message = format!("commit of {name}");
        let author = [
            "-c",
            "user.name=servers",
            "-c",
            "user.email=servers@example.org",
        ];
        let commit = ["commit", "--quiet", "--message", &message];
        let branch = format!("branch-of-{name}");
        self.git(
            &directory,
            &["init", "--quiet", "--initial-branch", &branch],
        );
        self.git(&directory, &["add", "."]);
        self.git(&directory, &[&author[..], &commit].concat());
    }

    fn git(&self, directory: &Path, args: &[&str]) {
        let mut git = self.command("git".as_ref(), directory);
        let done = git.args(args).status().unwrap();
        assert!(done.success(), "git {args:?}");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A folder that is a git repository with one file.
    pub(crate) fn work(&self) -> String {
        self.path("work").to_str().unwrap().to_owned()
    }

    /// Writes the configuration.
    pub(crate) fn configure(&self, servers: &Value) {
        let config = json!({
            "listen": "127.0.0.1:0",
            "memory": { "enabled": false },
            "approvals": { "notify": "off" },
            "mcpServers": servers,
        });
        fs::write(self.home().join("switchboard.json"), config.to_string()).unwrap();
    }

    /// Moves the gateway's home, and the directories of the servers with it.
    pub(crate) fn move_home(&self) {
        fs::rename(self.home(), self.path("moved")).unwrap();
        *self.home.borrow_mut() = "moved";
    }

    fn home(&self) -> PathBuf {
        self.path(*self.home.borrow())
    }

    /// The gateway's log, and the standard error of servers that are started directly.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }

    /// Starts the gateway in this directory, and returns when it is reachable.
    pub(crate) fn serve(&self, directory: &str) -> Gateway<'_> {
        let mut child = self
            .switchboard(&["serve", "--log-level", "debug"], directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(
                File::options()
                    .create(true)
                    .append(true)
                    .open(self.path("stderr"))
                    .unwrap(),
            )
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        said.read_line(&mut first).unwrap();
        let address = first.trim().strip_prefix("MCP      http://");
        let address = address.and_then(|rest| rest.strip_suffix("/mcp")?.parse().ok());
        let address = address.unwrap_or_else(|| panic!("the gateway said {first:?}"));
        Gateway {
            place: self,
            address,
            child,
            _said: said,
        }
    }

    /// A client that starts `switchboard stdio` in this directory, with the direct view.
    pub(crate) fn stdio(&self, directory: &str) -> Client {
        let words = ["stdio", "--view", "direct", "--log-level", "debug"];
        Client::start(
            &mut self.switchboard(&words, directory),
            &self.path("stderr"),
        )
    }

    /// A client of the server itself, which is started as the gateway started it.
    pub(crate) fn start(&self, server: &Installed) -> Client {
        let prefix = format!("{}.", server.name());
        let folders = fs::read_dir(self.home().join("servers")).unwrap().flatten();
        let mut folders = folders.filter(|folder| {
            let name = folder.file_name();
            name.to_str().is_some_and(|name| name.starts_with(&prefix))
        });
        let folder = folders
            .next()
            .expect("the gateway has made a directory for the server");
        let work = self.work();
        let mut command = self.command(&server.program(), &folder.path());
        command.args(server.args(&work)).envs(server.env(&work));
        Client::start(&mut command, &self.path("stderr"))
    }

    /// Everything that is held, as the user sees it.
    pub(crate) fn held(&self) -> Vec<String> {
        let mut command = self.switchboard(&["trust", "--json"], "here");
        let trust = command.stdin(Stdio::null()).output().unwrap();
        let trust: Value = serde_json::from_slice(&trust.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&trust.stderr)));
        let servers = trust["servers"].as_array().unwrap().iter();
        let held = servers.flat_map(|server| server["held"].as_array().unwrap());
        held.map(|item| {
            let (name, why, diff) = (&item["name"], &item["why"], &item["diff"]);
            format!("{name} is held ({why}): {diff}")
        })
        .collect()
    }

    /// Waits until all processes that were started here are gone.
    #[track_caller]
    pub(crate) fn assert_nobody(&self) {
        until(&format!("all have left: {:?}", self.people()), || {
            self.people().is_empty().then_some(())
        });
    }

    /// The processes that were started here and are still running.
    fn people(&self) -> Vec<Person> {
        let instance = fs::read_to_string(self.home().join("run/instance"));
        let mut people = instance.map_or_else(
            |_| Vec::new(),
            |instance| processes::contained(instance.trim()),
        );
        let home = format!("HOME={}", self.dir.path().display());
        people.extend(processes::with_variable(&home));
        people
    }

    fn switchboard(&self, args: &[&str], directory: &str) -> Command {
        let mut command = self.command(SWITCHBOARD.as_ref(), &self.path(directory));
        command.arg("--home").arg(self.home()).args(args);
        command
    }

    /// A program in this directory, with only the variables that a gateway passes on. It leads a process
    /// group.
    fn command(&self, program: &Path, directory: &Path) -> Command {
        let tools = Tools::need(&[]).expect("the tests are not left out");
        let node = tools.path("node/bin").into_os_string();
        let path = [node, env::var_os("PATH").unwrap_or_default()];
        // No server needs an address outside of this machine, and none must wait for one.
        let nowhere = "http://127.0.0.1:9";
        let mut command = Command::new(program);
        command
            .current_dir(directory)
            .process_group(0)
            .env_clear()
            .env("PATH", path.join(":".as_ref()))
            .env("HOME", self.path("user"))
            .env("TMPDIR", self.path("tmp"))
            .env("LANG", "C.UTF-8")
            .envs([("HTTP_PROXY", nowhere), ("HTTPS_PROXY", nowhere)])
            .env("NO_PROXY", "127.0.0.1,localhost");
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for person in self.people() {
            processes::kill(person.pid);
        }
        if thread::panicking() {
            let log = self.log();
            let lines: Vec<_> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
            eprintln!("what was logged last:\n{}", last.join("\n"));
        }
    }
}

/// `switchboard serve`.
pub(crate) struct Gateway<'a> {
    place: &'a Place,
    address: SocketAddr,
    child: Child,
    /// Kept open so that the gateway can write more, which is not read.
    _said: BufReader<ChildStdout>,
}

impl Gateway<'_> {
    /// A client of one server.
    pub(crate) fn client(&self, server: &str) -> Client {
        let path = format!("/mcp/s/{server}");
        Client::connect(self.address, &self.token(), &path)
    }

    /// A client that works in this directory, with the direct view.
    pub(crate) fn client_in(&self, directory: &str) -> Client {
        let directory = self.place.path(directory);
        let path = format!("/mcp/direct?project={}", directory.display());
        Client::connect(self.address, &self.token(), &path)
    }

    /// One server, with its instances.
    pub(crate) fn server(&self, name: &str) -> Value {
        let mut http = Http::connect(self.address, &self.token());
        http.get(&format!("/api/v1/servers/{name}")).json()
    }

    /// The servers in the status.
    pub(crate) fn servers(&self) -> Vec<Value> {
        let mut http = Http::connect(self.address, &self.token());
        let mut status = http.get("/api/v1/status").json();
        mem::take(status["servers"].as_array_mut().unwrap())
    }

    /// Tests if the gateway knows the tools of this server, and has stored them for the next start.
    pub(crate) fn has_learnt(&self, server: &Value) -> bool {
        let name = server["name"].as_str().unwrap();
        let kept = self.place.home().join(format!("catalog/{name}.json"));
        server["tools"] != 0 && kept.exists()
    }

    /// Stops the gateway as a user does, and checks that no process is left.
    #[track_caller]
    pub(crate) fn stop(mut self) {
        let pid = i32::try_from(self.child.id()).unwrap();
        processes::signal(pid, Signal::TERM);
        let ended = until("the gateway has ended", || self.child.try_wait().unwrap());
        assert!(ended.success(), "{ended}");
        self.place.assert_nobody();
    }

    fn token(&self) -> String {
        let token = fs::read_to_string(self.place.home().join("run/token")).unwrap();
        token.trim().to_owned()
    }
}

impl Drop for Gateway<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
