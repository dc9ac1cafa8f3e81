//! Where the clients and the servers are installed.
#![allow(dead_code, reason = "each test binary that has this uses a part of it")]

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

impl Tools {
    /// Finds it; `None` if the tests that need it are to be left out.
    pub(crate) fn find() -> Option<Self> {
        if env::var_os("SWITCHBOARD_TEST_QUICK").is_some_and(|quick| quick == "1") {
            println!("left out: SWITCHBOARD_TEST_QUICK=1");
            return None;
        }
        let given = env::var_os("SWITCHBOARD_TOOLS").map(PathBuf::from);
        let is_given = given.is_some();
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let tools = Self(given.unwrap_or_else(|| workspace.join(".tools")));
        let missing = NEEDED.iter().find(|path| !tools.0.join(path).exists());
        if let Some(path) = missing {
            // `./test` has installed it: that it is not there is a fault.
            assert!(!is_given, "{path} is not in SWITCHBOARD_TOOLS");
            println!("left out: {path} is not in .tools; ./test installs it");
            return None;
        }
        Some(tools)
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
