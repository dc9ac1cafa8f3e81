//! The settings and limits of a connection, with their defaults.

use std::time::Duration;

use switchboard_wire::{Era, Raw, Revision};

/// The settings of a connection.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name and version of the client: an `Implementation` object.
    pub client_info: Raw,
    /// The capabilities of the client, in the format of the older revisions.
    pub legacy_capabilities: Raw,
    /// The capabilities of the client, in the format of 2026-07-28.
    pub modern_capabilities: Raw,
    /// The newest revision to offer. No probe is sent if it is older than 2026-07-28.
    pub newest: Revision,
    /// The era of the server, if it is known from an earlier connection, so that no probe is
    /// needed.
    pub era: Option<Era>,
    /// The longest time that a call takes, including waits and retries. It is only used to compute
    /// [`tombstone_ttl`](Settings::tombstone_ttl); each call has its own timeout.
    pub request_timeout: Duration,
    /// Time limit for opening the transport and the handshake together.
    pub handshake_timeout: Duration,
    /// Time to wait for a response to `server/discover` before trying `initialize`. Short, because
    /// a server that ignores it is an older one.
    pub probe_timeout: Duration,
    /// The delay before the first reconnect; it doubles with each failure.
    pub backoff_base: Duration,
    /// The longest delay before a reconnect.
    pub backoff_max: Duration,
    /// The number of times that a frame is offered to a busy transport.
    pub send_attempts: u32,
    /// The delay between two such attempts.
    pub send_retry_delay: Duration,
    /// The interval at which expired tombstones are removed.
    pub sweep_interval: Duration,
    /// The most tombstones.
    pub tombstones_max: usize,
    /// The most concurrent calls, including the waiting ones.
    pub in_flight_max: usize,
    /// The most requests of the server that may wait for a response.
    pub server_requests_max: usize,
    /// The largest request of the server, in bytes.
    pub server_request_bytes: usize,
    /// The most bytes of the requests that wait for a response, and of the messages that are held
    /// back until the handshake is done.
    pub server_requests_bytes: usize,
    /// The most messages of the server that are held until the handshake is done.
    pub held_max: usize,
    /// Time that a transport may take to close before the connection ends without it.
    pub close_linger: Duration,
}

impl Settings {
    /// Creates the default settings, for a client without capabilities.
    pub fn new(client_info: Raw) -> Self {
        Self {
            client_info,
            legacy_capabilities: Raw::empty_object(),
            modern_capabilities: Raw::empty_object(),
            newest: Revision::LATEST,
            era: None,
            request_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(10),
            probe_timeout: Duration::from_secs(2),
            backoff_base: Duration::from_secs(1),
            backoff_max: Duration::from_secs(30),
            send_attempts: 3,
            send_retry_delay: Duration::from_millis(10),
            sweep_interval: Duration::from_mins(1),
            tombstones_max: 4_096,
            in_flight_max: 1_024,
            server_requests_max: 64,
            server_request_bytes: 4 * 1024 * 1024,
            server_requests_bytes: 16 * 1024 * 1024,
            held_max: 64,
            close_linger: Duration::from_millis(50),
        }
    }

    /// Returns the time for which a late response is still recognised: the longest time that a call
    /// can be in flight, including a reconnect, plus a margin.
    pub fn tombstone_ttl(&self) -> Duration {
        self.request_timeout
            .saturating_add(self.handshake_timeout)
            .saturating_add(self.backoff_max)
            .saturating_add(Duration::from_secs(5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tombstone_lives_75_seconds_by_default() {
        let settings = Settings::new(Raw::empty_object());
        assert_eq!(settings.tombstone_ttl(), Duration::from_secs(75));
    }
}
