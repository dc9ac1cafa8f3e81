//! An MCP server that wants a sign-in, and a user who gives it. The authorization server is `oidc-provider`.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStderr, Command, Output, Stdio},
};

use serde_json::Value;

use crate::{
    Tools,
    http::{Answer, Http},
};

/// The server. It ends when it is dropped.
pub struct Provider {
    origin: String,
    child: Child,
    /// Keeps the pipe open, so that a complaint does not end the server.
    _errors: BufReader<ChildStderr>,
}

impl Provider {
    /// Starts the server. Its access tokens expire after this many seconds.
    pub fn start(tools: &Tools, lifetime: u32) -> Self {
        Self::with(tools, &[&lifetime.to_string()])
    }

    /// Starts a server that accepts only tokens that are bound to a key. Its authorization server demands a nonce in each
    /// proof, and assumes no resource.
    pub fn strict(tools: &Tools, lifetime: u32) -> Self {
        Self::with(tools, &[&lifetime.to_string(), "strict"])
    }

    fn with(tools: &Tools, args: &[&str]) -> Self {
        let script = include_str!("../../peers/oidc_server.mjs");
        let mut child = run(tools, script, args);
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        let origin = loop {
            line.clear();
            let read = errors.read_line(&mut line).unwrap();
            assert_ne!(read, 0, "the provider did not start");
            if let Some(origin) = line.strip_prefix("listening on ") {
                break origin.trim_end().to_owned();
            }
        };
        Self {
            origin,
            child,
            _errors: errors,
        }
    }

    /// The address without a path.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The address of the MCP server, which has the tool `add`.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// The counts of the authorization server.
    pub fn book(&self) -> Value {
        self.ask("GET", "/book").json()
    }

    /// Withdraws the consent of all users, and so all tokens.
    pub fn revoke_all(&self) {
        assert_eq!(self.ask("POST", "/revoke-all").status, 200);
    }

    /// Lets all access tokens expire.
    pub fn expire(&self) {
        assert_eq!(self.ask("POST", "/expire").status, 200);
    }

    /// The number of token requests that were carried out and not answered yet.
    pub fn pending(&self) -> u64 {
        self.book()["pending"].as_u64().unwrap()
    }

    /// Begins or ends a fault: the token endpoint fails (`isDown`), answers late (`isSlow`) or not until the fault has ended
    /// (`holdsTokens`), or the server refuses all tokens (`refusesAll`).
    pub fn toggle(&self, fault: &str) {
        assert_eq!(self.ask("POST", &format!("/toggle/{fault}")).status, 200);
    }

    fn ask(&self, method: &str, path: &str) -> Answer {
        let address = self.origin.strip_prefix("http://").unwrap();
        Http::connect(address.parse().unwrap(), "none").ask(method, path, &[], b"")
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A user with a browser, who gives consent (`yes`), denies it (`no`), or gives it and copies the last address (`copy`).
pub fn browse(tools: &Tools, url: &str, answer: &str) -> Output {
    browse_with(tools, &[url, answer])
}

/// The same user, who enters a code first.
pub fn enter(tools: &Tools, url: &str, code: &str, answer: &str) -> Output {
    browse_with(tools, &[url, answer, code])
}

fn browse_with(tools: &Tools, args: &[&str]) -> Output {
    let browser = include_str!("../../peers/browser.mjs");
    run(tools, browser, args).wait_with_output().unwrap()
}

/// Runs a module, which may import the packages of the peers.
pub fn run(tools: &Tools, module: &str, args: &[&str]) -> Child {
    let mut child = Command::new(tools.node())
        .args(["--input-type=module", "-"])
        .args(args)
        .current_dir(tools.path("peers"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(module.as_bytes()).unwrap();
    child
}
