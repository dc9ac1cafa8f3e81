//! A Model Context Protocol (MCP) client connection as a state machine.
//!
//! [`Machine`] is deterministic: it has no socket, no clock, no task and no source of randomness.
//! The caller passes in the time, a seed and [`Event`]s, and carries out the resulting [`Action`]s.
//! Every race can therefore be replayed, and tests of races need not sleep.
//!
#![doc = include_str!("../README.md")]
//!
//! # Driving the machine
//!
//! Call [`Machine::handle`] with one event, then take actions from [`Machine::poll_action`] until
//! there are none, then wait for the next event or until [`Machine::next_timeout`], when an
//! [`Event::Tick`] is due. The [`Event::SendResult`] of an [`Action::Send`] must be passed in before
//! any other event, because offering a frame to a transport takes no time.
//!
//! # States
//!
//! `Starting → Initializing → Ready → Closing`, with `Backoff` between attempts and `Failed` for
//! failures that a retry would not fix.
//!
//! | event | Starting | Initializing | Ready | Backoff | Failed | Closing |
//! |---|---|---|---|---|---|---|
//! | transport up | begin handshake | violation | violation | stale | stale | drop |
//! | transport down | backoff, or failed if permanent | the same; reopen at once if the server left when probed | fail all, then the same | stale | stale | exit |
//! | frame over the limit | – | close, backoff | close, fail all, backoff | stale | stale | drop |
//! | frame not JSON-RPC | – | count | count | stale | stale | drop |
//! | handshake response | – | ready, next request, backoff or failed | – | stale | stale | drop |
//! | response | – | count late or unknown | reply, or count late or unknown | stale | stale | drop |
//! | server ping | – | respond | respond (older revisions) | stale | stale | drop |
//! | server request | – | hold | deliver | stale | stale | drop |
//! | notification | – | log messages: deliver; others: hold | to its call, or deliver | stale | stale | drop |
//! | call | hold | hold | send | hold | reply `Failed` | reply `Shutdown` |
//! | deadline of a call | reply `Timeout` | reply `Timeout` | cancel, reply `Timeout` | reply `Timeout` | – | – |
//! | caller gone | drop | drop | cancel | drop | – | – |
//! | restart | – | – | – | open | open | – |
//! | stop | exit | close | fail all, close | exit | exit | `AlreadyClosing` |
//!
//! The epoch of an abandoned transport is stale: its later events are dropped and counted. In
//! `Backoff` and `Failed` only calls, time and commands therefore have an effect.

mod backoff;
mod connection;
mod counters;
mod error;
mod event;
mod handshake;
mod ids;
mod outbox;
mod random;
mod settings;
mod throttle;
mod time;
mod timers;
mod tombstones;

pub use connection::{Machine, NO_HANDSHAKE};
pub use counters::{Counter, CounterValues, Counters};
pub use error::{CallError, ErrorKind, RequestFailure};
pub use event::{
    Action, Call, CallKind, Down, DownKind, Event, Extend, Headers, Inbound, Outgoing,
    OutgoingKind, Reply, SendOutcome, State, Stopped, Telemetry,
};
pub use handshake::Session;
pub use ids::Ids;
pub use settings::Settings;
pub use throttle::{Missed, Throttle};
pub use time::Moment;
