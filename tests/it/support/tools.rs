//! Where the servers by others are installed.

use std::{
    env,
    path::{Path, PathBuf},
};

use super::Program;

/// The directory into which `scripts/tools.sh` installs.
pub(crate) struct Tools(PathBuf);

impl Tools {
    /// Finds it; `None` if the tests that need it are to be left out.
    pub(crate) fn find() -> Option<Self> {
        if env::var_os("SWITCHBOARD_TEST_QUICK").is_some_and(|quick| quick == "1") {
            println!("left out: SWITCHBOARD_TEST_QUICK=1");
            return None;
        }
        let root = env::var_os("SWITCHBOARD_TOOLS")
            .map_or_else(|| workspace().join(".tools"), PathBuf::from);
        Some(Self(root))
    }

    /// A server from npm.
    pub(crate) fn npm(&self, package: &str) -> Program {
        let script = format!("peers/node_modules/@modelcontextprotocol/{package}/dist/index.js");
        Program::new(self.installed("node/bin/node")).arg(self.installed(&script))
    }

    /// A server of ours on an SDK from `PyPI`.
    pub(crate) fn python(&self, script: &str) -> Program {
        Program::new(self.installed("python/bin/python"))
            .arg(workspace().join("tests/peers").join(script))
    }

    fn installed(&self, path: &str) -> PathBuf {
        let path = self.0.join(path);
        assert!(
            path.exists(),
            "{} is not there: run ./test once, which installs it",
            path.display()
        );
        path
    }
}

/// The root of the workspace.
pub(crate) fn workspace() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("this crate is in the workspace")
}
