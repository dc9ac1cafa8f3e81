//! Timestamps.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// A time in the format of RFC 3339, in UTC with milliseconds. Clients must accept any text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline, extend("format" = "date-time")))]
#[serde(transparent)]
pub struct Time(String);

impl From<String> for Time {
    fn from(time: String) -> Self {
        Self(time)
    }
}

impl Deref for Time {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}
