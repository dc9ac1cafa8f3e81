//! The client side of the official conformance suite, with the `conformance-client` program.

use std::{fmt::Write, fs, path::Path};

use serde_json::Value;
use tokio::process::Command;

use crate::support::{Tools, npm};

#[tokio::test]
async fn client_conforms_to_2025_11_25() {
    conforms_to("2025-11-25").await;
}

#[tokio::test]
async fn client_conforms_to_2026_07_28() {
    conforms_to("2026-07-28").await;
}

async fn conforms_to(revision: &str) {
    let Some(tools) = Tools::peers() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let suite = npm(&tools, "conformance");
    let output = Command::new(suite.executable())
        .args(suite.args())
        .args(["client", "--requirements", revision])
        .args(["--command", env!("CARGO_BIN_EXE_conformance-client")])
        .arg("-o")
        .arg(dir.path())
        .kill_on_drop(true)
        .output()
        .await
        .expect("the suite starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let summary = said
        .split_once("=== SUITE SUMMARY ===")
        .map_or(&*said, |(_, summary)| summary);
    let failed = failed_checks(dir.path());
    assert!(
        output.status.success(),
        "the suite is not content:\n{summary}\n{failed}"
    );
    // Not a required check, because it is newer than the revision.
    assert!(
        summary.contains("✓ json-schema-2020-12-preservation"),
        "{summary}\n{failed}"
    );
}

/// The failed checks, with details.
fn failed_checks(results: &Path) -> String {
    let mut failed = String::new();
    for scenario in fs::read_dir(results).into_iter().flatten().flatten() {
        let checks = fs::read(scenario.path().join("checks.json")).unwrap_or_default();
        let checks: Vec<Value> = serde_json::from_slice(&checks).unwrap_or_default();
        for check in checks.iter().filter(|check| check["status"] == "FAILURE") {
            let scenario = scenario.file_name();
            writeln!(failed, "{}: {check:#}", scenario.display()).expect("a string takes all");
        }
    }
    failed
}
