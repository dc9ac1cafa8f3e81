//! The spans and events that a connection records. Their names are stable.
//!
//! | event (target `switchboard::connection`) | level | fields |
//! |---|---|---|
//! | `connection.transition` | info | `from`, `to`, `reason` |
//! | `request.start` | trace | `id`, `method` |
//! | `request.stop` | trace | `id`, `duration_us` |
//! | `request.failure` | debug | `id`, `duration_us`, `error` |
//! | `response.late` | debug | `id` |
//! | `response.unknown` | debug | `id` |
//! | `transport.busy` | debug | `attempts` |
//! | `protocol.violation` | warn | `reason`, `missed`, `missed_bytes` |
//! | `notification.received` | trace | `method` |
//!
//! All events occur inside the span `connection` with the field `server`; the events of a request also inside
//! the span `request` (trace) with the fields `id` and `method`. Payloads are never recorded. The same events
//! are counted, see [`Client::counters`](crate::Client::counters).
//!
//! A server can violate the protocol any number of times: `protocol.violation` is recorded ten times, and
//! then once per ten seconds with the number and size of the frames in between.
//!
//! Other targets: `switchboard::transport` (events of a transport), `switchboard::list` (items left out of a
//! list), `switchboard::handler` (handlers that panicked), `switchboard::stderr` (output of a server to its
//! standard error).

use switchboard_machine::Telemetry;

use crate::handlers::Violation;

const TARGET: &str = "switchboard::connection";

pub(crate) fn connection_span(server: &str) -> tracing::Span {
    tracing::info_span!(target: TARGET, "connection", server)
}

pub(crate) fn request_span(id: u64, method: &str) -> tracing::Span {
    tracing::trace_span!(target: TARGET, "request", id, method)
}

pub(crate) fn emit(what: &Telemetry) {
    match what {
        Telemetry::Transition { from, to, reason } => {
            tracing::info!(name: "connection.transition", target: TARGET, from, to, %reason, "connection.transition");
        }
        Telemetry::CallStarted { id, method } => {
            tracing::trace!(name: "request.start", target: TARGET, id, %method, "request.start");
        }
        Telemetry::CallAnswered { id, after } => {
            let duration_us = micros(*after);
            tracing::trace!(name: "request.stop", target: TARGET, id, duration_us, "request.stop");
        }
        Telemetry::CallFailed { id, after, error } => {
            let duration_us = micros(*after);
            tracing::debug!(name: "request.failure", target: TARGET, id, duration_us, %error, "request.failure");
        }
        Telemetry::LateResponse { id } => {
            tracing::debug!(name: "response.late", target: TARGET, %id, "response.late");
        }
        Telemetry::UnknownResponse { id } => {
            tracing::debug!(name: "response.unknown", target: TARGET, ?id, "response.unknown");
        }
        Telemetry::Busy { attempts } => {
            tracing::debug!(name: "transport.busy", target: TARGET, attempts, "transport.busy");
        }
        // Recorded by `violation`, at a limited rate.
        Telemetry::Violation { .. } => {}
        Telemetry::Notification { method } => {
            tracing::trace!(name: "notification.received", target: TARGET, method, "notification.received");
        }
    }
}

pub(crate) fn violation(what: &Violation<'_>) {
    match *what {
        Violation::Frame { reason, .. } => {
            tracing::warn!(name: "protocol.violation", target: TARGET, reason, "protocol.violation");
        }
        Violation::More { count, bytes } => {
            let reason = "more violations";
            tracing::warn!(name: "protocol.violation", target: TARGET, reason, missed = count, missed_bytes = bytes, "protocol.violation");
        }
    }
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
