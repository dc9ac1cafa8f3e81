//! Properties that must hold for any input.
//!
//! Each check is a plain function that takes arbitrary bytes, and panics if the code under test breaks a
//! property. It compares the code with a slow and obvious model, written from the specification, which shares
//! nothing with the code it checks.
//!
//! The tests run every check on the seeds and on generated input. `cargo xtask fuzz` runs them under
//! libFuzzer for as long as you like; inputs that fail go into `seeds/` and become tests.
#![allow(clippy::missing_panics_doc)] // Checks panic on purpose.

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

/// A check: returns if the properties hold, and panics if not.
pub type Check = fn(&[u8]);

/// Every check by name. Its fuzz target and its directory in `seeds/` have the same name.
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

/// Runs one check on the files named on the command line, to reproduce a crash in a debugger.
pub fn replay(check: Check) -> std::io::Result<()> {
    for path in std::env::args_os().skip(1) {
        let data = std::fs::read(&path)?;
        check(&data);
        writeln!(std::io::stdout(), "{}: holds", path.display())?;
    }
    Ok(())
}
