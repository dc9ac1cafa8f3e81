//! The gateway signs in to the servers of the suite, for a user who runs `switchboard login`.

use std::fs;

use switchboard_test_support::{Tools, switchboard};

use crate::suite::Suite;

/// The user, embedded when the tests are built.
const USER: &str = include_str!("../../../../tests/peers/gateway_user.mjs");

/// Extensions that the gateway does not have. No revision requires them.
const LEFT_OUT: [&str; 2] = ["dpop", "dpop-nonce"];

#[test]
fn gateway_signs_in_as_2025_11_25_requires() {
    signs_in("2025-11-25");
}

#[test]
fn gateway_signs_in_as_2026_07_28_requires() {
    signs_in("2026-07-28");
}

#[track_caller]
fn signs_in(revision: &str) {
    let (Some(suite), Some(tools)) = (Suite::find(), Tools::peers()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let user = folder.path().join("gateway_user.mjs");
    fs::write(&user, USER).unwrap();
    let mut words = [tools.node(), user, switchboard()]
        .map(|word| word.to_str().unwrap().to_owned())
        .to_vec();
    words.push(LEFT_OUT.map(|name| format!("auth/{name}")).join(","));
    let mut failures = suite.require_sign_ins(&words.join(" "), revision);
    failures.retain(|name, _| {
        let (scenario, _) = name.split_once(':').unwrap_or((name, ""));
        !LEFT_OUT.contains(&scenario)
    });
    assert!(failures.is_empty(), "{failures:#?}");
}
