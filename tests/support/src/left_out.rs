//! Reasons to skip a test. A skipped test prints the reason and passes; any other test that cannot run fails.

use std::env;

/// A requirement that a machine may lack and that no script can install.
#[derive(Debug, Clone, Copy)]
pub enum Lack {
    /// Docker and Podman are missing or do not work: in a container, or without a required kernel feature.
    ContainerEngine,
    /// The kernel or the container that runs the tests forbids user namespaces, so no small disk can be
    /// mounted.
    Namespaces,
    /// The tests do not run as root, who alone can give a file to another user.
    Root,
}

/// A separate suite, which a command of `./test` installs and runs, because it takes gigabytes or many
/// minutes.
#[derive(Debug, Clone, Copy)]
pub enum Suite {
    Agents,
    Conformance,
    Servers,
}

impl Suite {
    /// Returns `true` if the suite was requested; otherwise prints that the test is skipped.
    #[must_use]
    pub fn is_wanted(self) -> bool {
        let (variable, command) = match self {
            Self::Agents => ("SWITCHBOARD_TEST_AGENTS", "agents"),
            Self::Conformance => ("SWITCHBOARD_TEST_CONFORMANCE", "conformance"),
            Self::Servers => ("SWITCHBOARD_TEST_SERVERS", "servers"),
        };
        let is_wanted = is_set(variable);
        if !is_wanted {
            eprintln!("left out: ./test {command} runs it");
        }
        is_wanted
    }
}

/// Returns `true` if `SWITCHBOARD_TEST_QUICK=1` skips tests that need tools which `./test quick` does not
/// install.
#[must_use]
pub fn is_quick() -> bool {
    let is_quick = is_set("SWITCHBOARD_TEST_QUICK");
    if is_quick {
        eprintln!("left out: SWITCHBOARD_TEST_QUICK=1");
    }
    is_quick
}

/// Prints that a test is skipped on this machine.
pub fn lacks(lack: Lack, why: &str) {
    eprintln!("left out: {lack:?}: {why}");
}

fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| value == "1")
}
