//! Every number and limit of a connection, with its default and its reason.

use std::time::Duration;

use switchboard_wire::{Era, Raw, Revision};

/// How a connection behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who we are: an `Implementation` object.
    pub client_info: Raw,
    /// What we can do, as the older revisions spell it.
    pub legacy_capabilities: Raw,
    /// What we can do, as 2026-07-28 spells it.
    pub modern_capabilities: Raw,
    /// The newest revision to offer. Below 2026-07-28 no probe is sent.
    pub newest: Revision,
    /// What is known of the server from before, so that it need not be probed.
    pub era: Option<Era>,
    /// How long a call takes at most, waits and retries included. Kept here because the life of a
    /// tombstone follows from it; each call brings its own deadline.
    pub request_timeout: Duration,
    /// How long opening the transport and the handshake may take together.
    pub handshake_timeout: Duration,
    /// How long to wait for an answer to `server/discover` before trying `initialize`. Short,
    /// because a server that ignores it is an older one.
    pub probe_timeout: Duration,
    /// The first delay before connecting again; it doubles with each failure.
    pub backoff_base: Duration,
    /// The longest such delay.
    pub backoff_max: Duration,
    /// How often a frame is offered to a transport that is busy.
    pub send_attempts: u32,
    /// The delay between two such offers.
    pub send_retry_delay: Duration,
    /// How often old tombstones are removed.
    pub sweep_interval: Duration,
    /// The most tombstones kept.
    pub tombstones_max: usize,
    /// The most calls at a time, waiting ones included.
    pub in_flight_max: usize,
    /// The most requests of the server that may wait for our answer.
    pub server_requests_max: usize,
    /// The most bytes of one request of the server.
    pub server_request_bytes: usize,
    /// The most bytes of all that wait for our answer, or are held back until the handshake is done.
    pub server_requests_bytes: usize,
    /// The most messages of the server that are held back until the handshake is done.
    pub held_max: usize,
    /// How long a transport may take to close before the connection ends without it.
    pub close_linger: Duration,
}

impl Settings {
    /// The defaults, for a client of this name that can do nothing but ask.
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

    /// How long an answer can be late and still be recognised: the longest a call can have been
    /// under way, through a reconnect, and some.
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
    fn a_tombstone_lives_75_seconds_by_default() {
        let settings = Settings::new(Raw::empty_object());
        assert_eq!(settings.tombstone_ttl(), Duration::from_secs(75));
    }
}
