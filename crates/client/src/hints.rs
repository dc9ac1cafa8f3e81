//! The time for which a result may be cached, and for whom.

use std::time::Duration;

use switchboard_wire::Raw;

/// The caching hints of a result from a server of 2026-07-28. Older servers send none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheHints {
    /// Time for which the result may be cached.
    pub ttl: Duration,
    /// The result may be shared; otherwise it is only for the client that requested it.
    pub public: bool,
}

impl CacheHints {
    /// Reads the hints of a result, if it has any.
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

    /// Combines the hints of two results. The stricter ones apply.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            ttl: self.ttl.min(other.ttl),
            public: self.public && other.public,
        }
    }
}

/// The longest time for which a result is cached, regardless of the server's hint.
const TTL_MAX: Duration = Duration::from_hours(24);
