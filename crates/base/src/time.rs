//! Times as people and scripts read them: RFC 3339.

use std::time::SystemTime;

use serde::Serializer;

/// `2026-07-28T12:00:00Z`, to the millisecond.
pub fn format(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time)
        .map_or_else(|_| "out of range".to_owned(), |time| format!("{time:.3}"))
}

/// Serializes a time as RFC 3339.
pub fn rfc3339<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format(*time))
}

/// Serializes a time that may be missing.
#[allow(clippy::ref_option)] // The shape that serde asks for.
pub fn rfc3339_option<S: Serializer>(time: &Option<SystemTime>, to: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => rfc3339(time, to),
        None => to.serialize_none(),
    }
}
