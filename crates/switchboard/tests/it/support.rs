//! A folder of its own for each test, the program run in it, and optionally a gateway.

use std::{
    fs,
    io::{BufRead as _, BufReader, ErrorKind, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_switchboard");

/// A server with two tools, which logs its requests on standard error. The argument `refuse` is the error
/// that it responds with.
const ECHO: &str = r#"
import json, sys, time
print("echo is here", file=sys.stderr, flush=True)
time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, params = asked["method"], asked.get("params") or {}
    result = {}
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "echo", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [
            {"name": name, "description": "It will %s.\nAnd more." % name, "inputSchema": {"type": "object"}}
            for name in ("say", "fail")]}
    elif method == "tools/call":
        print("called", params["name"], file=sys.stderr, flush=True)
        result = {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}],
                  "isError": params["name"] == "fail"}
    answer = {"result": result}
    if "refuse" in (params.get("arguments") or {}):
        answer = {"error": {"code": 1, "message": params["arguments"]["refuse"]}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"#;

/// A server whose tools are in a file, which is read for every list.
const SHIFTY: &str = r#"
import json, sys
def offered():
    with open(sys.argv[1]) as file:
        return json.load(file)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, params = asked["method"], asked.get("params") or {}
    result = {}
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "shifty", "version": "1"}}
        if "instructions" in offered():
            result["instructions"] = offered()["instructions"]
    elif method == "tools/list":
        result = {"tools": offered()["tools"]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "called " + params["name"]}]}
        result = offered().get("result", result)
    text = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result})
    # Texts that no tree of values can hold.
    for name, raw in offered().get("raw", {}).items():
        text = text.replace(json.dumps(name), raw)
    print(text, flush=True)
"#;

/// The folder of one test.
pub(crate) struct Place {
    dir: TempDir,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("user")).unwrap();
        Self { dir }
    }

    /// Like [`Place::new`], with a path of fixed length, for outputs that are compared column by column.
    pub(crate) fn of_fixed_length() -> Self {
        let mut name = tempfile::Builder::new();
        let dir = name.prefix("sb-").rand_bytes(6).tempdir_in("/tmp").unwrap();
        fs::create_dir(dir.path().join("user")).unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Like [`Place::new`], without the built-in memory, for tests that count servers and tools.
    pub(crate) fn without_memory() -> Self {
        let place = Self::new();
        place.write_config(r#"{"memory": {"enabled": false}}"#);
        place
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The home of the user who runs the program.
    pub(crate) fn user(&self) -> PathBuf {
        self.dir.path().join("user")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.home().join("switchboard.json")
    }

    /// Writes a file in the folder of the test.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn write_config(&self, text: &str) {
        self.write("home/switchboard.json", text);
    }

    /// Writes a secret with the required mode.
    pub(crate) fn write_secret(&self, name: &str, text: &str) {
        let file = self.write(&format!("home/secrets/{name}"), text);
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// The command line of the server with two tools.
    pub(crate) fn echo(&self) -> [String; 3] {
        let script = self.write("echo.py", ECHO);
        ["python3".into(), "-S".into(), script.display().to_string()]
    }

    /// The command line of a server with the tools in the file of this name.
    pub(crate) fn shifty(&self, file: &str) -> [String; 4] {
        let script = self.write("shifty.py", SHIFTY);
        let file = self.dir.path().join(file);
        let [script, file] = [script, file].map(|path| path.display().to_string());
        ["python3".into(), "-S".into(), script, file]
    }

    /// The program with these arguments. Added servers are not started: most tests are about the entry.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        match args {
            [adding @ ("add" | "import"), rest @ ..] => {
                self.bare_command(&[&[*adding, "--no-wait"], rest].concat())
            }
            args => self.bare_command(args),
        }
    }

    fn bare_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .env_remove("SWITCHBOARD_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("NO_COLOR")
            .env("HOME", self.user())
            .current_dir(self.user())
            .arg("--home")
            .arg(self.home())
            .args(args)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        let output = self.command(args).output().unwrap();
        self.done(&output)
    }

    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Done {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A command that refuses its arguments ends without reading.
        if let Err(error) = stdin.write_all(input.as_bytes()) {
            assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{error}");
        }
        drop(stdin);
        self.done(&child.wait_with_output().unwrap())
    }

    /// Runs a command and compares its exit code and all output.
    #[track_caller]
    pub(crate) fn check(&self, args: &[&str], code: i32, out: &str, err: &str) {
        let done = self.run(args);
        assert_eq!(
            (done.code, done.out.as_str(), done.err.as_str()),
            (Some(code), out, err),
            "{args:?}"
        );
    }

    fn done(&self, output: &std::process::Output) -> Done {
        let text = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            text.replace(self.dir.path().to_str().unwrap(), "DIR")
        };
        Done {
            code: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }
}

/// A gateway. On drop, it is killed if it still runs.
pub(crate) struct Gateway {
    pub(crate) child: Child,
    /// The address on which it listens, `HOST:PORT`.
    pub(crate) address: String,
    /// The link to the console, as printed.
    pub(crate) console: String,
    _out: BufReader<ChildStdout>,
}

impl Gateway {
    /// Starts the gateway, and waits until it prints its address.
    pub(crate) fn start(place: &Place, args: &[&str]) -> Self {
        let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(args);
        Self::spawn(place, command)
    }

    /// Starts the gateway with this command.
    pub(crate) fn spawn(place: &Place, mut command: Command) -> Self {
        let log = fs::File::create(place.dir.path().join("serve.err")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let (_, address) = line.split_once("http://").unwrap();
        let (address, _) = address.split_once('/').unwrap();
        let mut console = String::new();
        out.read_line(&mut console).unwrap();
        let console = console.trim_end().strip_prefix("Console  ").unwrap();
        Self {
            child,
            address: address.to_owned(),
            console: console.to_owned(),
            _out: out,
        }
    }

    /// The standard error of the gateway.
    pub(crate) fn log(place: &Place) -> String {
        fs::read_to_string(place.dir.path().join("serve.err")).unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client on a pipe, killed with the test.
pub(crate) struct Client {
    pub(crate) child: Child,
    /// The name that the server gives itself.
    pub(crate) server: String,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last: u64,
}

impl Client {
    /// Starts a program that speaks MCP, as a client of this name.
    pub(crate) fn start(mut command: Command, name: &str) -> Self {
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        let mut client = Self {
            server: String::new(),
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            last: 0,
        };
        let greeting = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": name, "version": "1" },
        });
        let result = client.ask("initialize", &greeting);
        let name = result["serverInfo"]["name"].as_str();
        name.unwrap().clone_into(&mut client.server);
        client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request, and returns its result.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "{method}");
            let mut message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == json!(id) {
                assert!(message["error"].is_null(), "{message}");
                return message["result"].take();
            }
        }
    }

    /// Calls a tool, and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let result = self.ask("tools/call", &params);
        assert_ne!(result["isError"], json!(true), "{result}");
        result
    }

    /// Closes the pipe, and waits for the end of the program.
    pub(crate) fn leave(mut self) {
        drop(self.stdin.take());
        self.child.wait().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The output of a command with `--json`.
#[track_caller]
pub(crate) fn json(place: &Place, args: &[&str]) -> Value {
    let done = place.run(args);
    assert_eq!(done.code, Some(0), "{done:?}");
    serde_json::from_str(&done.out).unwrap()
}
