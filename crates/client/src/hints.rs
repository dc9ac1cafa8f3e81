//! How long a result may be kept, and for whom.

use std::time::Duration;

use switchboard_wire::Raw;

/// What a server of 2026-07-28 says of how long a result may be kept. Older ones say nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheHints {
    /// For so long.
    pub ttl: Duration,
    /// For anyone; if not, only for who asked.
    pub public: bool,
}

impl CacheHints {
    /// What this result says, if it does.
    ///
    /// ```
    /// use switchboard_client::{CacheHints, Raw};
    ///
    /// let result = Raw::parse(r#"{"tools":[],"ttlMs":60000,"cacheScope":"public"}"#)?;
    /// let hints = CacheHints::of(&result).unwrap();
    /// assert_eq!((hints.ttl.as_secs(), hints.public), (60, true));
    /// # Ok::<(), switchboard_client::RawError>(())
    /// ```
    pub fn of(result: &Raw) -> Option<Self> {
        let ttl: u64 = result.member("ttlMs")?.read().ok()?;
        let scope = result
            .member("cacheScope")
            .and_then(|scope| scope.to_text());
        Some(Self {
            ttl: Duration::from_millis(ttl).min(TTL_MAX),
            public: scope.as_deref() == Some("public"),
        })
    }

    /// What holds for two results together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            ttl: self.ttl.min(other.ttl),
            public: self.public && other.public,
        }
    }
}

/// Nothing is kept for longer than this, whatever a server says.
const TTL_MAX: Duration = Duration::from_hours(24);
