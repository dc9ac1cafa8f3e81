//! Secrets by form and by value, and text that contains none.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod families;
mod harmless;
mod known;
mod planted;
mod redaction;

use switchboard_wire::Raw;

fn raw(text: &str) -> Raw {
    Raw::parse(text.to_owned()).unwrap_or_else(|error| panic!("{error}: {text}"))
}
