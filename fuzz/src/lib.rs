//! What must hold for any bytes at all.
//!
//! Each check is a plain function that takes arbitrary bytes, and panics if the code under test
//! breaks its word. They compare it with a slow and obvious model of itself, so the models are
//! written from the specifications and share nothing with the code they judge.
//!
//! The tests run every check on the seeds and on generated input. `cargo xtask fuzz` runs them
//! under libFuzzer for as long as you like; what it finds goes into `seeds/` and is a test from
//! then on.
#![allow(clippy::missing_panics_doc)] // To panic is what a check is for.

mod chunks;
mod control;
mod definition;
mod edit;
mod envelope;
mod header;
mod json;
mod pins;
mod raw;
mod redact;
mod rules;
mod snapshot;
mod splitter;
mod sse;

use std::io::Write as _;

pub use control::control;
pub use definition::definition;
pub use edit::edit;
pub use envelope::envelope;
pub use header::header;
pub use pins::pins;
pub use redact::redaction;
pub use rules::rules;
pub use snapshot::snapshot;
pub use splitter::splitter;
pub use sse::sse;

/// A check: returns if all is well, panics if not.
pub type Check = fn(&[u8]);

/// Every check under its name, which is also that of its fuzz target and its folder in `seeds/`.
pub const CHECKS: [(&str, Check); 11] = [
    ("edit", edit),
    ("control", control),
    ("splitter", splitter),
    ("envelope", envelope),
    ("sse", sse),
    ("header", header),
    ("redaction", redaction),
    ("pins", pins),
    ("definition", definition),
    ("snapshot", snapshot),
    ("rules", rules),
];

/// Runs one check on the files named on the command line: the way back from a crash to a debugger.
pub fn replay(check: Check) -> std::io::Result<()> {
    for path in std::env::args_os().skip(1) {
        let data = std::fs::read(&path)?;
        check(&data);
        writeln!(std::io::stdout(), "{}: holds", path.display())?;
    }
    Ok(())
}
