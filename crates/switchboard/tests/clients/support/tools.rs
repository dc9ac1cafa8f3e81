//! Where the clients and the servers are installed.
#![allow(dead_code, reason = "each test binary that has this uses a part of it")]
#![allow(clippy::print_stderr, reason = "a test that is left out says so")]

use std::{
    env,
    path::{Path, PathBuf},
};

/// The directory into which `scripts/tools.sh` installs.
pub(crate) struct Tools(PathBuf);

/// One file of everything that the tests need.
const NEEDED: [&str; 5] = [
    "node/bin/node",
    "peers/node_modules/@modelcontextprotocol/inspector",
    "peers-rust/bin/rust-peer",
    "python/bin/python",
    "python1/bin/python",
];

/// The directory into which `scripts/tools.sh` installs; `None` if the tests that need it are left out. A file
/// that is missing there fails the test: a test that passes without its tools proves nothing.
#[track_caller]
pub(crate) fn directory(needed: &[&str]) -> Option<PathBuf> {
    if env::var_os("SWITCHBOARD_TEST_QUICK").is_some_and(|quick| quick == "1") {
        eprintln!("left out: SWITCHBOARD_TEST_QUICK=1");
        return None;
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let given = env::var_os("SWITCHBOARD_TOOLS").map(PathBuf::from);
    let directory = given.unwrap_or_else(|| workspace.join(".tools"));
    for path in needed {
        assert!(
            directory.join(path).exists(),
            "{path} is not in {}; scripts/tools.sh installs it, SWITCHBOARD_TEST_QUICK=1 leaves this test out",
            directory.display()
        );
    }
    Some(directory)
}

/// The file of a program in the `PATH`.
#[track_caller]
pub(crate) fn program(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.exists())
        .unwrap_or_else(|| panic!("{name} is not installed; scripts/tools.sh installs it"))
}

impl Tools {
    /// Finds it; `None` if the tests that need it are left out.
    #[track_caller]
    pub(crate) fn find() -> Option<Self> {
        directory(&NEEDED).map(Self)
    }

    pub(crate) fn node(&self) -> PathBuf {
        self.0.join("node/bin/node")
    }

    pub(crate) fn python(&self) -> PathBuf {
        self.0.join("python/bin/python")
    }

    /// Python with the official SDK of the handshake revisions.
    pub(crate) fn python1(&self) -> PathBuf {
        self.0.join("python1/bin/python")
    }

    /// The servers and clients on the Rust SDK.
    pub(crate) fn rust_peer(&self) -> PathBuf {
        self.0.join("peers-rust/bin/rust-peer")
    }

    pub(crate) fn node_modules(&self) -> PathBuf {
        self.0.join("peers/node_modules")
    }

    pub(crate) fn everything(&self) -> PathBuf {
        let package = "@modelcontextprotocol/server-everything";
        self.node_modules().join(package).join("dist/index.js")
    }

    pub(crate) fn inspector(&self) -> PathBuf {
        let package = "@modelcontextprotocol/inspector";
        let launcher = self.node_modules().join(package);
        launcher.join("clients/launcher/build/index.js")
    }
}
