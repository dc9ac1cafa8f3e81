//! The client side of the official conformance suite, with the `conformance-client` program.

use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

use serde_json::Value;
use tokio::process::Command;

use crate::support::{Tools, npm};

/// The scenarios that no revision requires: those of extensions, and one that is newer than the revisions.
const NOT_REQUIRED: [&str; 7] = [
    "auth/client-credentials-basic",
    "auth/client-credentials-jwt",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/enterprise-managed-authorization",
    "auth/wif-jwt-bearer",
    "json-schema-2020-12-preservation",
];

#[tokio::test]
async fn client_conforms_to_2025_11_25() {
    conforms_to("2025-11-25", 25).await;
}

#[tokio::test]
async fn client_conforms_to_2026_07_28() {
    conforms_to("2026-07-28", 39).await;
}

#[tokio::test]
async fn client_signs_in_as_2025_03_26_describes() {
    for scenario in ["oauth-endpoint-fallback", "oauth-metadata-backcompat"] {
        let scenario = format!("auth/2025-03-26-{scenario}");
        let Some(ran) = run(&["--scenario", &scenario]).await else {
            return;
        };
        assert!(ran.is_content, "{}", ran.failed);
        assert!(ran.said.contains("OVERALL: PASSED"), "{}", ran.said);
    }
}

/// Checks that this many scenarios pass.
async fn conforms_to(revision: &str, count: usize) {
    let Some(Ran {
        is_content,
        said,
        failed,
    }) = run(&["--requirements", revision]).await
    else {
        return;
    };
    let summary = said
        .split_once("=== SUITE SUMMARY ===")
        .map_or(&*said, |(_, summary)| summary);
    assert!(is_content, "the suite is not content:\n{summary}\n{failed}");
    let passed = summary.lines().filter_map(|line| {
        let (name, found) = line.strip_prefix("✓ ")?.split_once(": ")?;
        found.ends_with(" passed, 0 failed").then_some(name)
    });
    let passed: BTreeSet<_> = passed.collect();
    assert_eq!(passed.len(), count, "{summary}\n{failed}");
    for name in NOT_REQUIRED {
        assert!(passed.contains(name), "{name}:\n{summary}\n{failed}");
    }
}

/// A run of the suite.
struct Ran {
    is_content: bool,
    said: String,
    failed: String,
}

/// Runs the suite; `None` if the tests that need it are skipped.
async fn run(args: &[&str]) -> Option<Ran> {
    let tools = Tools::peers()?;
    let dir = tempfile::tempdir().expect("a directory");
    let suite = npm(&tools, "conformance");
    let output = Command::new(suite.executable())
        .args(suite.args())
        .arg("client")
        .args(args)
        .args(["--command", env!("CARGO_BIN_EXE_conformance-client")])
        .arg("-o")
        .arg(dir.path())
        .kill_on_drop(true)
        .output()
        .await
        .expect("the suite starts");
    // The result of a single scenario is on standard error.
    let said = [output.stdout, output.stderr].concat();
    Some(Ran {
        is_content: output.status.success(),
        said: String::from_utf8_lossy(&said).into_owned(),
        failed: failed_checks(dir.path()),
    })
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
