//! The programs that cargo builds with a test.

use std::{env, path::PathBuf};

/// The `switchboard` binary, for tests of its package.
#[track_caller]
pub fn switchboard() -> PathBuf {
    built("switchboard", "--bins")
}

/// A server of the crate `fixtures`. Cargo builds it as an example of the package under test: only examples
/// are built with its tests and may use its dev-dependencies.
#[track_caller]
pub fn fixture(name: &str) -> &'static str {
    let path = built(&format!("examples/{name}"), "--examples");
    let path = path.into_os_string().into_string();
    // A test uses only a few.
    path.expect("paths of builds are text").leak()
}

/// A file next to the directory of this test.
#[track_caller]
fn built(name: &str, targets: &str) -> PathBuf {
    let test = env::current_exe().expect("a test has a file");
    let folder = test.ancestors().nth(2).expect("it is in `deps`");
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is not built; `cargo build {targets}` in the package of this test builds it",
        path.display()
    );
    path
}
