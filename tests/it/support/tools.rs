//! Third-party servers, as programs.

use switchboard_test_support::{Tools, tools::workspace};

use super::Program;

/// A server from npm.
pub(crate) fn npm(tools: &Tools, package: &str) -> Program {
    let script = format!("@modelcontextprotocol/{package}/dist/index.js");
    Program::new(tools.node()).arg(tools.node_modules().join(script))
}

/// A test server built with an SDK from `PyPI`.
pub(crate) fn python(tools: &Tools, script: &str) -> Program {
    Program::new(tools.python()).arg(workspace().join("tests/peers").join(script))
}
