//! The public interface of the crate.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod checks;
mod fits;
mod hostile;
mod outlines;
mod properties;

use switchboard_wire::Raw;

fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned()).unwrap_or_else(|error| panic!("{error}: {text}"))
}
