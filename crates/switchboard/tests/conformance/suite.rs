//! The official suite as a program, and its findings.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use switchboard_test_support::Tools;

/// The suite, where `scripts/tools.sh` installed it.
pub(crate) struct Suite {
    node: PathBuf,
    script: PathBuf,
    /// The options of Node.js.
    options: Vec<String>,
}

/// Failed checks as `scenario:check`, with the message of the suite.
pub(crate) type Failures = BTreeMap<String, String>;

impl Suite {
    /// Finds the suite; `None` if the tests that need it are skipped.
    pub(crate) fn find() -> Option<Self> {
        const NODE: &str = "node/bin/node";
        const SCRIPT: &str = "peers/node_modules/@modelcontextprotocol/conformance/dist/index.js";
        let tools = Tools::need(&[NODE, SCRIPT])?;
        Some(Self {
            node: tools.path(NODE),
            script: tools.path(SCRIPT),
            options: Vec::new(),
        })
    }

    /// The suite as a client of the owner: only those are asked for roots. It has no option for a token.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        let code = format!(
            "const plain = fetch; globalThis.fetch = (to, how = {{}}) => {{ \
             const headers = new Headers(how.headers ?? to.headers); \
             headers.set('Authorization', 'Bearer {token}'); \
             return plain(to, {{ ...how, headers }}); }}"
        );
        Self {
            node: self.node.clone(),
            script: self.script.clone(),
            options: vec![format!("--import=data:text/javascript,{code}")],
        }
    }

    /// Runs everything that a revision requires, and the scenarios that are run with it for information.
    pub(crate) fn require(&self, url: &str, revision: &str) -> Failures {
        let found = self.run(url, &["--requirements", revision]);
        assert!(
            found.names.len() >= 30,
            "the suite ran {} scenarios only:\n{}",
            found.names.len(),
            found.said
        );
        found.failures
    }

    /// Runs one scenario.
    pub(crate) fn scenario(&self, url: &str, revision: &str, scenario: &str) -> Failures {
        let found = self.run(url, &["--scenario", scenario, "--spec-version", revision]);
        assert_eq!(found.names.len(), 1, "{}", found.said);
        found.failures
    }

    /// Runs one scenario of an extension in the newest revision: extensions belong to none.
    pub(crate) fn extension(&self, url: &str, scenario: &str) -> Failures {
        let newest = ["--spec-version", "2026-07-28", "--force"];
        let found = self.run(url, &[&["--scenario", scenario], &newest[..]].concat());
        assert_eq!(found.names.len(), 1, "{}", found.said);
        found.failures
    }

    /// Runs the sign-ins that a revision requires of clients, and those of extensions. The suite starts the command with
    /// the URL of its server. Returns the names of the scenarios as well.
    pub(crate) fn require_sign_ins(
        &self,
        command: &str,
        revision: &str,
    ) -> (BTreeSet<String>, Failures) {
        let args = ["client", "--requirements", revision, "--command", command];
        let found = self.run_into(&args, "auth");
        (found.names, found.failures)
    }

    /// Runs one sign-in.
    pub(crate) fn sign_in(&self, command: &str, scenario: &str) -> Failures {
        let scenario = format!("auth/{scenario}");
        let args = ["client", "--scenario", &scenario, "--command", command];
        let found = self.run_into(&args, "auth");
        assert_eq!(found.names.len(), 1, "{}", found.said);
        found.failures
    }

    fn run(&self, url: &str, args: &[&str]) -> Found {
        self.run_into(&[&["server", "--url", url], args].concat(), "")
    }

    /// Runs the suite, and reads the results that it saves in this folder of its output.
    fn run_into(&self, args: &[&str], folder: &str) -> Found {
        let results = tempfile::tempdir().unwrap();
        let output = Command::new(&self.node)
            .args(&self.options)
            .arg(&self.script)
            .args(args)
            .arg("-o")
            .arg(results.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut found = Found {
            names: BTreeSet::new(),
            failures: Failures::new(),
            said,
        };
        for entry in fs::read_dir(results.path().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let checks = fs::read(path.join("checks.json")).unwrap_or_default();
            let checks: Vec<Value> = serde_json::from_slice(&checks).unwrap_or_default();
            let name = scenario(&path);
            found.add(&name, &checks);
            found.names.insert(name);
        }
        found
    }
}

struct Found {
    names: BTreeSet<String>,
    failures: Failures,
    said: String,
}

impl Found {
    fn add(&mut self, scenario: &str, checks: &[Value]) {
        if checks.is_empty() {
            let reason = "the scenario left no checks".to_owned();
            self.failures.insert(scenario.to_owned(), reason);
        }
        let bad = |check: &&Value| matches!(check["status"].as_str(), Some("FAILURE" | "WARNING"));
        for check in checks.iter().filter(bad) {
            let name = format!("{scenario}:{}", check["id"].as_str().unwrap_or_default());
            let reason = check["errorMessage"].as_str().unwrap_or_default();
            let details = check["details"].to_string();
            let details: String = details.chars().take(600).collect();
            let reason = format!("{} {reason} {details}", check["status"]);
            self.failures.insert(name, reason);
        }
    }
}

/// The name of a scenario, from the directory of its results: `server-NAME-2026-01-02T03-04-05-678Z`.
fn scenario(path: &Path) -> String {
    const STAMP: usize = "-2026-01-02T03-04-05-678Z".len();
    let name = path.file_name().unwrap().to_str().unwrap();
    let name = &name[..name.len() - STAMP];
    name.strip_prefix("server-").unwrap_or(name).to_owned()
}
