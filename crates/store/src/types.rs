//! The types of the domain. Engines depend on these types; the types depend on no engine.

pub(crate) mod activity;
pub(crate) mod approval;
pub(crate) mod audit;
pub(crate) mod change;
pub(crate) mod error;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod status;

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970-01-01 UTC, clamped to the range of `i64`; negative before 1970.
pub(crate) fn micros_since_1970(time: SystemTime) -> i64 {
    let micros =
        |distance: std::time::Duration| i64::try_from(distance.as_micros()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => micros(after),
        Err(before) => micros(before.duration()).saturating_neg(),
    }
}
