//! Counters for the events of a connection. They can be read at any time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// Live counters. Only the machine increments them.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: Counter,)+
        }

        /// The counters at one point in time.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct CounterValues {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl Counters {
            /// Returns the current values of all counters.
            pub fn values(&self) -> CounterValues {
                CounterValues { $($name: self.$name.get(),)+ }
            }
        }
    };
}

counters! {
    /// Calls received from callers.
    calls,
    /// Calls answered by the server, with a result or an error, and notifications that were sent.
    answered,
    /// Calls that ended without a response: timeout, cancellation, lost connection, backpressure, shutdown.
    failed,
    /// Calls whose deadline passed.
    timeouts,
    /// Calls cancelled by their caller.
    cancelled,
    /// Times that the transport was busy.
    busy,
    /// Frames offered again after the transport was busy.
    retries,
    /// Calls and notifications that failed because the transport stayed busy or too many calls were in
    /// flight.
    backpressure,
    /// Responses to calls that had already ended.
    late,
    /// Responses to calls that were never made, or without a readable id.
    unknown,
    /// Events of a transport that had already been abandoned.
    stale,
    /// Frames that were not JSON-RPC.
    malformed,
    /// Frames over the limit.
    oversized,
    /// Messages that the protocol does not allow at that point.
    violations,
    /// Notifications received.
    notifications,
    /// Messages dropped because a bounded queue was full, or because their receiver was gone.
    dropped,
    /// Requests received from the server.
    server_requests,
    /// State transitions.
    transitions,
    /// Times that the connection became ready.
    ready,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Increments the counter.
    pub fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// Returns the current value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
