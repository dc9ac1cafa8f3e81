//! What happened on a connection, in numbers that anyone may read at any time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// Live counters. The machine adds, everybody reads.
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
            /// Reads all of them.
            pub fn values(&self) -> CounterValues {
                CounterValues { $($name: self.$name.get(),)+ }
            }
        }
    };
}

counters! {
    /// Calls taken in.
    calls,
    /// Calls answered by the server, with a result or an error.
    answered,
    /// Calls that failed on our side: deadline, loss, backpressure, stop.
    failed,
    /// Calls whose deadline passed.
    timeouts,
    /// Calls withdrawn by their caller.
    cancelled,
    /// Times the transport was busy.
    busy,
    /// Frames offered again after that.
    retries,
    /// Calls and notifications given up because the transport stayed busy or too many were in flight.
    backpressure,
    /// Answers to calls that had already ended.
    late,
    /// Answers to calls that were never made.
    unknown,
    /// Events of a transport that had already been given up.
    stale,
    /// Frames that were not JSON-RPC.
    malformed,
    /// Frames over the limit.
    oversized,
    /// Messages that the protocol does not allow at that point.
    violations,
    /// Notifications received.
    notifications,
    /// Messages of the server dropped because a bounded queue was full.
    dropped,
    /// Requests received.
    server_requests,
    /// Changes of state.
    transitions,
    /// Times the connection became ready.
    ready,
}

/// One number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// Reads it.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
