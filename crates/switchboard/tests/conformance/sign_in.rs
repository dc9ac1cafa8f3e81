//! The gateway signs in to the servers of the suite, for a user who runs `switchboard login`.

use std::fs;

use switchboard_test_support::{Tools, switchboard};

use crate::suite::Suite;

/// The user, embedded when the tests are built.
const USER: &str = include_str!("../../../../tests/peers/gateway_user.mjs");

/// Those of extensions, which are run with every revision, and required by none.
const EXTENSIONS: [&str; 6] = [
    "client-credentials-basic",
    "client-credentials-jwt",
    "dpop",
    "dpop-nonce",
    "enterprise-managed-authorization",
    "wif-jwt-bearer",
];

#[test]
fn gateway_signs_in_as_2025_11_25_requires() {
    signs_in("2025-11-25", 20);
}

#[test]
fn gateway_signs_in_as_2026_07_28_requires() {
    signs_in("2026-07-28", 31);
}

#[test]
fn gateway_signs_in_as_2025_03_26_describes() {
    let Some((suite, command, _folder)) = suite() else {
        return;
    };
    for scenario in ["oauth-endpoint-fallback", "oauth-metadata-backcompat"] {
        let failures = suite.sign_in(&command, &format!("2025-03-26-{scenario}"));
        assert!(failures.is_empty(), "{failures:#?}");
    }
}

/// Checks that this many sign-ins succeed.
#[track_caller]
fn signs_in(revision: &str, count: usize) {
    let Some((suite, command, _folder)) = suite() else {
        return;
    };
    let (names, failures) = suite.require_sign_ins(&command, revision);
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(names.len(), count, "{names:#?}");
    for name in EXTENSIONS {
        assert!(names.contains(name), "{name}: {names:#?}");
    }
}

/// The suite, and the command of the user, which is in the folder.
fn suite() -> Option<(Suite, String, tempfile::TempDir)> {
    let (suite, tools) = (Suite::find()?, Tools::peers()?);
    let folder = tempfile::tempdir().unwrap();
    let user = folder.path().join("gateway_user.mjs");
    fs::write(&user, USER).unwrap();
    let words = [tools.node(), user, switchboard()].map(|word| word.to_str().unwrap().to_owned());
    Some((suite, words.join(" "), folder))
}
