//! Behaviour on a terminal: questions, colours, and output that cannot take over the terminal.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read as _, Write as _},
    process::{Child, Command},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
};

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use serde_json::{Value, json};
use switchboard_test_support::{PATIENCE, until};

use crate::support::{Gateway, Place};

/// A command on a terminal.
pub(crate) struct Session {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Session {
    pub(crate) fn start(place: &Place, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = place.command(args);
        command.env("TERM", "xterm").envs(variables.iter().copied());
        Self::spawn(command, None)
    }

    /// Starts any command, on a terminal with this many columns; with `None`, the terminal does not report
    /// its size.
    pub(crate) fn spawn(mut command: Command, columns: Option<u16>) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let terminal = OpenOptions::new()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        if let Some(columns) = columns {
            let size = Winsize {
                ws_row: 24,
                ws_col: columns,
                ws_xpixel: 0,
                ws_ypixel: 0,
            };
            tcsetwinsize(&terminal, size).unwrap();
        }
        let child = command
            .stdin(terminal.try_clone().unwrap())
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal)
            .spawn()
            .unwrap();
        // The command holds the terminal open, which would then never end.
        drop(command);
        let keyboard = File::from(controller);
        let mut reader = keyboard.try_clone().unwrap();
        let (sender, screen) = mpsc::channel();
        thread::spawn(move || {
            let mut chunk = [0; 4096];
            // The end of a terminal is an error.
            while let Ok(read @ 1..) = reader.read(&mut chunk) {
                if sender.send(chunk[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            keyboard,
            screen,
            seen: Vec::new(),
        }
    }

    /// Types text.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the screen contains this text.
    pub(crate) fn wait_for(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            let more = self.screen.recv_timeout(PATIENCE);
            let seen = String::from_utf8_lossy(&self.seen);
            assert!(more.is_ok(), "{text:?} is not seen: {more:?} in {seen}");
            self.seen.extend(more.into_iter().flatten());
        }
    }

    /// Forgets the output so far, to wait for what comes next.
    pub(crate) fn forget(&mut self) {
        self.seen.clear();
    }

    /// Sends SIGTERM to the command.
    pub(crate) fn terminate(&self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).unwrap();
    }

    /// Waits for the end, and returns the exit code and all output.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        loop {
            let more = self.screen.recv_timeout(PATIENCE);
            if more == Err(RecvTimeoutError::Disconnected) {
                break;
            }
            let seen = String::from_utf8_lossy(&self.seen);
            assert!(more.is_ok(), "it waits for something: {seen}");
            self.seen.extend(more.into_iter().flatten());
        }
        let code = self.child.wait().unwrap().code();
        (code, String::from_utf8(self.seen).unwrap())
    }
}

/// Runs a command on a terminal, types this text, and returns the exit code and the output.
pub(crate) fn run(
    place: &Place,
    args: &[&str],
    typed: &str,
    variables: &[(&str, &str)],
) -> (Option<i32>, String) {
    let mut session = Session::start(place, args, variables);
    session.type_in(typed);
    session.end()
}

#[test]
fn user_is_asked_on_a_terminal() {
    let place = Place::new();
    let file = place.write("other.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    let import = ["import", file.to_str().unwrap()];
    for no in ["n\n", "\n", "what?\n"] {
        let (code, seen) = run(&place, &import, no, &[]);
        assert_eq!(code, Some(1), "{seen}");
        assert!(
            seen.contains("Add 1 server? [y/N]") && seen.contains("nothing was changed"),
            "{seen}"
        );
        assert!(!place.config().exists());
    }
    let (code, seen) = run(&place, &import, "y\n", &[]);
    assert_eq!(code, Some(0), "{seen}");
    assert!(
        fs::read_to_string(place.config())
            .unwrap()
            .contains("\"a\"")
    );
}

#[test]
fn colour_depends_on_terminal_and_settings() {
    let place = Place::new();
    let (code, seen) = run(&place, &["status"], "", &[]);
    assert_eq!(code, Some(3));
    assert!(
        seen.contains("\u{1b}[31merror:\u{1b}[0m no gateway"),
        "{seen:?}"
    );
    for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (_, seen) = run(&place, &["status"], "", &[variable]);
        assert!(seen.starts_with("error: no gateway"), "{seen:?}");
    }
    // The words are the same without a terminal.
    assert!(place.run(&["status"]).err.starts_with("error: no gateway"));
}

#[test]
fn log_does_not_take_over_the_terminal() {
    let place = Place::new();
    place.write("home/logs/a.log", "\u{1b}]0;owned\u{7} text\n");
    let (_, seen) = run(&place, &["logs", "a"], "", &[]);
    assert_eq!(seen, "\u{fffd}]0;owned\u{fffd} text\r\n");
    // A program gets the log verbatim.
    assert_eq!(place.run(&["logs", "a"]).out, "\u{1b}]0;owned\u{7} text\n");
}

/// A server whose tool reports progress, and waits until a file exists.
const SLOW: &str = r#"
import json, os, sys, time
def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, params = asked["method"], asked.get("params") or {}
    result = {}
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "slow", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        result = {"tools": [{"name": "copy", "description": "Copies.", "inputSchema": schema},
                            {"name": "flood", "description": "Talks.", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call" and params["name"] == "flood":
        token, done = params["_meta"]["progressToken"], 0
        while True:
            done += 1
            say({"method": "notifications/progress",
                 "params": {"progressToken": token, "progress": done, "message": "x" * 1000}})
    elif method == "tools/call":
        token, done = params["_meta"]["progressToken"], 0
        while not os.path.exists(sys.argv[1]):
            done += 1
            say({"method": "notifications/progress",
                 "params": {"progressToken": token, "progress": done, "total": 9999, "message": "copying"}})
            time.sleep(0.1)
        result = {"content": [{"type": "text", "text": json.dumps(params["arguments"])}]}
    say({"id": asked["id"], "result": result})
"#;

fn start(place: &Place, server: &Value) -> Gateway {
    let config = json!({ "listen": "127.0.0.1:0", "memory": { "enabled": false }, "mcpServers": { "slow": server } });
    place.write_config(&config.to_string());
    let gateway = Gateway::start(place, &[]);
    until("its tools are known", || {
        place.run(&["describe", "slow:copy"]).code == Some(0)
    });
    gateway
}

#[test]
fn endless_progress_is_ended_by_the_timeout() {
    let place = Place::without_memory();
    let script = place.write("slow.py", SLOW);
    // With progress, a call may take ten times as long, and no longer.
    let server = json!({ "command": "python3", "args": ["-S", script], "requestTimeoutMs": 500 });
    let _gateway = start(&place, &server);
    let flooded = place.run(&["call", "slow:flood"]);
    assert_eq!(flooded.code, Some(1), "{flooded:?}");
    assert!(flooded.err.contains("requestTimeoutMs"), "{flooded:?}");
}

#[test]
fn call_shows_progress_and_takes_pairs() {
    let place = Place::without_memory();
    let script = place.write("slow.py", SLOW);
    let done = place.home().join("done");
    let server = json!({ "command": "python3", "args": ["-S", script, done] });
    let _gateway = start(&place, &server);
    let wrong = place.run(&["call", "slow:copy", "n=x"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(
        wrong
            .err
            .contains("hint: expected arguments\n  n: integer\n"),
        "{wrong:?}"
    );
    let mut session = Session::start(&place, &["call", "slow:copy", "n=7"], &[]);
    session.wait_for(" of 9999: copying");
    fs::write(&done, "").unwrap();
    let (code, seen) = session.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains(r#"{"n": 7}"#), "{seen}");
    let described = place.run(&["describe", "slow:copy"]);
    assert!(
        described.out.contains("\narguments\n  n: integer\n")
            && described
                .out
                .contains("\n  switchboard call slow:copy n=VALUE\n"),
        "{described:?}"
    );
}
