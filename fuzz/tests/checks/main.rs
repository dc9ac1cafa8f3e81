//! The fuzz checks as plain tests: on every seed, and on generated input.

mod generate;

use std::{fmt, fs, panic, path::Path};

use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use switchboard_fuzz::{CHECKS, Check};

#[test]
fn every_seed_holds() {
    let mut broken = Vec::new();
    for (name, check) in CHECKS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("seeds")
            .join(name);
        let mut seeds = 0;
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let data = fs::read(&path).unwrap();
            if panic::catch_unwind(|| check(&data)).is_err() {
                broken.push(path);
            }
            seeds += 1;
        }
        assert!(seeds > 0, "no seeds in {}", folder.display());
    }
    assert!(broken.is_empty(), "do not hold: {broken:#?}");
}

#[test]
fn every_check_has_a_fuzz_target() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz_targets");
    let mut found: Vec<String> = fs::read_dir(targets)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let mut expected = CHECKS.map(|(name, _)| name.to_owned());
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn generated_streams_of_lines_hold() {
    run(1_500, switchboard_fuzz::splitter, generate::lines());
}

#[test]
fn generated_configurations_hold() {
    run(3_000, switchboard_fuzz::edit, generate::configuration());
}

#[test]
fn generated_messages_to_guards_hold() {
    run(2_000, switchboard_fuzz::control, generate::control());
}

#[test]
fn generated_frames_hold() {
    run(2_500, switchboard_fuzz::envelope, generate::frame());
}

#[test]
fn generated_streams_of_events_hold() {
    run(1_500, switchboard_fuzz::sse, generate::events());
}

#[test]
fn generated_headers_hold() {
    run(2_000, switchboard_fuzz::header, generate::header());
}

#[test]
fn generated_pins_hold() {
    run(1_500, switchboard_fuzz::pins, generate::pins());
}

#[test]
fn generated_definitions_hold() {
    run(1_000, switchboard_fuzz::definition, generate::definitions());
}

#[test]
fn generated_snapshots_hold() {
    run(1_500, switchboard_fuzz::snapshot, generate::snapshot());
}

#[test]
fn generated_rules_hold() {
    run(2_000, switchboard_fuzz::rules, generate::rule());
}

#[test]
fn generated_texts_with_secrets_hold() {
    run(1_000, switchboard_fuzz::redaction, generate::secrets());
}

#[test]
fn noise_holds() {
    for (_, check) in CHECKS {
        run(500, check, prop::collection::vec(any::<u8>(), 0..200));
    }
}

/// Bytes that are shown as text where possible: a finding is more legible than as a list of numbers.
struct Input(Vec<u8>);

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

fn run(cases: u32, check: Check, input: impl Strategy<Value = Vec<u8>>) {
    let config = Config {
        failure_persistence: None, // Findings become seeds by hand, with a name.
        ..Config::with_cases(cases)
    };
    // The same input in every run: looking for new input is the purpose of fuzzing.
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let outcome = TestRunner::new_with_rng(config, rng).run(&input.prop_map(Input), |input| {
        check(&input.0);
        Ok(())
    });
    let finding = outcome.err().map(|error| error.to_string());
    assert_eq!(finding, None);
}
