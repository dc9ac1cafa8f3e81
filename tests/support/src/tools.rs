//! The tools that `scripts/tools.sh` installs.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::left_out::is_quick;

/// The directory into which `scripts/tools.sh` installs.
#[derive(Debug, Clone)]
pub struct Tools(PathBuf);

/// One file of each tool that the tests with third-party servers and clients need.
const PEERS: [&str; 5] = [
    "node/bin/node",
    "peers/node_modules/@modelcontextprotocol/inspector",
    "peers-rust/bin/rust-peer",
    "python/bin/python",
    "python1/bin/python",
];

impl Tools {
    /// The tools, which must include these files; `None` if the test is skipped. A missing file fails the
    /// test: a test that passes without its tools proves nothing.
    #[track_caller]
    pub fn need(files: &[&str]) -> Option<Self> {
        if is_quick() {
            return None;
        }
        let given = env::var_os("SWITCHBOARD_TOOLS").map(PathBuf::from);
        let tools = Self(given.unwrap_or_else(|| workspace().join(".tools")));
        for file in files {
            let path = tools.path(file);
            assert!(
                path.exists(),
                "{} is not there; scripts/tools.sh installs it, SWITCHBOARD_TEST_QUICK=1 leaves this test out",
                path.display()
            );
        }
        Some(tools)
    }

    /// The tools for tests with third-party servers and clients.
    #[track_caller]
    pub fn peers() -> Option<Self> {
        Self::need(&PEERS)
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    pub fn node(&self) -> PathBuf {
        self.path("node/bin/node")
    }

    pub fn python(&self) -> PathBuf {
        self.path("python/bin/python")
    }

    /// Python with the official SDK of the handshake revisions.
    pub fn python1(&self) -> PathBuf {
        self.path("python1/bin/python")
    }

    /// The servers and clients built with the Rust SDK.
    pub fn rust_peer(&self) -> PathBuf {
        self.path("peers-rust/bin/rust-peer")
    }

    pub fn node_modules(&self) -> PathBuf {
        self.path("peers/node_modules")
    }

    pub fn everything(&self) -> PathBuf {
        let package = "@modelcontextprotocol/server-everything";
        self.node_modules().join(package).join("dist/index.js")
    }

    pub fn inspector(&self) -> PathBuf {
        let package = "@modelcontextprotocol/inspector";
        let launcher = self.node_modules().join(package);
        launcher.join("clients/launcher/build/index.js")
    }
}

/// The directory of all-MiniLM-L6-v2, a sentence model; `None` if the test is skipped.
#[track_caller]
pub fn model() -> Option<PathBuf> {
    if is_quick() {
        return None;
    }
    let given = env::var_os("SWITCHBOARD_MODEL").map(PathBuf::from);
    let folder = given.or_else(|| Tools::need(&[]).map(|tools| tools.path("model")))?;
    assert!(
        folder.join("model.safetensors").exists(),
        "no model is in {}; scripts/tools.sh installs it, SWITCHBOARD_TEST_QUICK=1 leaves this test out",
        folder.display()
    );
    Some(folder)
}

/// The path of a program in the `PATH`.
#[track_caller]
pub fn program(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.exists())
        .unwrap_or_else(|| panic!("{name} is not installed; scripts/tools.sh installs it"))
}

/// The root of the workspace.
pub fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this crate is in `tests`")
}
