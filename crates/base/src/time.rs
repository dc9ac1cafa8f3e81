//! Timestamps for people and scripts: RFC 3339.

use std::time::SystemTime;

use switchboard_rest::Time;

/// `2026-07-28T12:00:00Z`, to the millisecond.
pub fn format(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time)
        .map_or_else(|_| "out of range".to_owned(), |time| format!("{time:.3}"))
}

/// The same for a REST response.
pub fn shown(time: SystemTime) -> Time {
    format(time).into()
}
