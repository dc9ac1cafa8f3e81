//! The client side of the official conformance suite, through the `conformance-client` program.

use tokio::process::Command;

use crate::support::{Tools, workspace};

#[tokio::test]
async fn the_client_conforms_to_2025_11_25() {
    conforms_to("2025-11-25").await;
}

#[tokio::test]
async fn the_client_conforms_to_2026_07_28() {
    conforms_to("2026-07-28").await;
}

async fn conforms_to(revision: &str) {
    let Some(tools) = Tools::find() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let suite = tools.npm("conformance");
    let output = Command::new(suite.program())
        .args(suite.args())
        .args(["client", "--requirements", revision])
        .args(["--command", env!("CARGO_BIN_EXE_conformance-client")])
        .arg("--expected-failures")
        .arg(workspace().join("tests/conformance-baseline.yml"))
        .arg("-o")
        .arg(dir.path())
        .kill_on_drop(true)
        .output()
        .await
        .expect("the suite starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the suite is not content:\n{said}\n{errors}");
}
