//! A folder of its own for each test: the gateway's home, the scripts, and a log of the server.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::symlink,
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use switchboard_test_support::{Tools, http::Http, until};
use tempfile::TempDir;

const SWITCHBOARD: &str = env!("CARGO_BIN_EXE_switchboard");

/// The scripts, embedded when the tests are built.
const SCRIPTS: [(&str, &str); 10] = [
    ("fast.py", include_str!("../scripts/fast.py")),
    ("obey.mjs", include_str!("../scripts/obey.mjs")),
    ("obey.py", include_str!("../scripts/obey.py")),
    ("sdk.py", include_str!("../scripts/sdk.py")),
    ("sdk1.py", include_str!("../scripts/sdk1.py")),
    ("tour.mjs", include_str!("../scripts/tour.mjs")),
    ("tour.py", include_str!("../scripts/tour.py")),
    ("v1.mjs", include_str!("../scripts/v1.mjs")),
    ("v2.mjs", include_str!("../scripts/v2.mjs")),
    ("witness.mjs", include_str!("../scripts/witness.mjs")),
];

/// The way a client reaches the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Http,
    Stdio,
}

/// The files of one test. The gateway stops with it.
pub(crate) struct Place {
    dir: TempDir,
    pub(crate) tools: Tools,
    gateway: Option<Gateway>,
}

struct Gateway {
    child: Child,
    url: String,
    /// Kept open so that the gateway can write more, which is not read.
    _said: BufReader<ChildStdout>,
}

impl Place {
    /// A home with `server-everything` as `everything`, and no gateway.
    pub(crate) fn new(tools: Tools) -> Self {
        let dir = tempfile::Builder::new().prefix("sb-").tempdir().unwrap();
        for (name, text) in SCRIPTS {
            fs::write(dir.path().join(name), text).unwrap();
        }
        // The directory in which the imports of a script are resolved.
        let modules = fs::canonicalize(tools.node_modules()).unwrap();
        symlink(modules, dir.path().join("node_modules")).unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        let place = Self {
            dir,
            tools,
            gateway: None,
        };
        place.set_servers(&["everything"]);
        place
    }

    /// Like [`Place::new`], with a gateway that knows the server's tools.
    pub(crate) fn with_gateway(tools: Tools) -> Self {
        let mut place = Self::new(tools);
        place.serve();
        until("the gateway knows the server's tools", || {
            let tools = place.switchboard(&["tools"]).output().unwrap();
            let tools = String::from_utf8(tools.stdout).unwrap();
            tools.contains("everything:echo").then_some(())
        });
        place
    }

    /// A gateway with only the memory behind it, which lists all tools of the memory in every view.
    pub(crate) fn remembering(tools: Tools) -> Self {
        let mut place = Self::new(tools);
        let memory = json!({ "tools": "all" });
        place.configure(&json!({ "approvals": { "notify": "off" }, "memory": memory }));
        place.serve();
        place
    }

    fn serve(&mut self) {
        let mut child = self
            .switchboard(&["serve", "--log-level", "warn"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let url = line.split_whitespace().last().expect("it says where it is");
        self.gateway = Some(Gateway {
            child,
            url: url.to_owned(),
            _said: said,
        });
    }

    /// Replaces the configuration as an editor does: every name is another instance of `server-everything`.
    pub(crate) fn set_servers(&self, names: &[&str]) {
        let server = json!({
            "command": self.tools.node(),
            "args": ["--import", self.path("witness.mjs"), self.tools.everything()],
            "env": { "WITNESS": self.path("witness.log") },
            "start": "eager",
        });
        let servers: Value = names.iter().map(|name| (*name, server.clone())).collect();
        let memory = json!({ "enabled": false });
        self.configure(&json!({ "mcpServers": servers, "memory": memory }));
    }

    fn configure(&self, config: &Value) {
        let mut config = config.clone();
        config["listen"] = json!("127.0.0.1:0");
        let new = self.path("home/switchboard.json.new");
        fs::write(&new, config.to_string()).unwrap();
        fs::rename(new, self.path("home/switchboard.json")).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The command line with which a client starts the program on its pipe.
    pub(crate) fn stdio(&self, more: &[&str]) -> Vec<String> {
        self.words(&[&["stdio"], more].concat())
    }

    /// The command line of the program, with these arguments.
    pub(crate) fn words(&self, more: &[&str]) -> Vec<String> {
        let home = self.path("home").display().to_string();
        let words = [SWITCHBOARD, "--home", &home];
        words
            .iter()
            .chain(more)
            .map(|word| (*word).into())
            .collect()
    }

    /// The URL for MCP.
    pub(crate) fn url(&self) -> &str {
        &self.gateway.as_ref().expect("there is a gateway").url
    }

    /// A connection to the gateway for plain HTTP.
    pub(crate) fn http(&self) -> Http {
        let address = self.url().split('/').nth(2).expect("an address");
        Http::connect(address.parse().unwrap(), &self.token())
    }

    pub(crate) fn token(&self) -> String {
        let token = fs::read_to_string(self.path("home/run/token")).unwrap();
        token.trim().to_owned()
    }

    /// The process IDs of all server processes ever started.
    pub(crate) fn started(&self) -> Vec<i64> {
        let started = self.witnessed().into_iter();
        started
            .filter_map(|seen| seen["started"].as_i64())
            .collect()
    }

    /// The messages that the server's processes received, in order.
    pub(crate) fn witnessed(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("witness.log")).unwrap_or_default();
        // A line that is still being written has no line break yet.
        let lines = text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn switchboard(&self, args: &[&str]) -> Command {
        let mut command = Command::new(SWITCHBOARD);
        command
            .env_remove("SWITCHBOARD_HOME")
            .env("HOME", self.dir.path())
            .current_dir(self.dir.path())
            .arg("--home")
            .arg(self.path("home"))
            .args(args)
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(Gateway {
            child: mut gateway, ..
        }) = self.gateway.take()
        {
            // Stopped properly, so that it stops its servers.
            let _ = self.switchboard(&["stop"]).output();
            let _ = gateway.kill();
            let _ = gateway.wait();
        }
    }
}
