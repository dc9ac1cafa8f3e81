//! Reasons for which a test may be left out. Each says so, and passes; any other test that cannot run fails.

use std::env;

/// Something that a machine may lack and that no script can install.
#[derive(Debug, Clone, Copy)]
pub enum Lack {
    /// Docker and Podman are absent or refuse to work: in a container, or without a kernel feature that they need.
    ContainerEngine,
    /// The kernel or the container that runs the tests forbids user namespaces, so no small disk can be mounted.
    Namespaces,
    /// The tests do not run as root, who alone can give a file to another user.
    Root,
}

/// A suite of its own, which a command of `./test` installs and runs, because it takes gigabytes or many minutes.
#[derive(Debug, Clone, Copy)]
pub enum Suite {
    Agents,
    Conformance,
    Servers,
}

impl Suite {
    /// Whether the suite was asked for; says that the test is left out if not.
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

/// Whether `SWITCHBOARD_TEST_QUICK=1` leaves out what needs the tools that `./test quick` does not install.
#[must_use]
pub fn is_quick() -> bool {
    let is_quick = is_set("SWITCHBOARD_TEST_QUICK");
    if is_quick {
        eprintln!("left out: SWITCHBOARD_TEST_QUICK=1");
    }
    is_quick
}

/// Says that a test is left out on this machine.
pub fn lacks(lack: Lack, why: &str) {
    eprintln!("left out: {lack:?}: {why}");
}

fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| value == "1")
}
