//! The MCP client connection as a state machine.
//!
//! [`Machine`] is deterministic: it has no socket, no clock, no task and no random source of its
//! own. Time and a seed are handed in, [`Event`]s are things that happened, [`Action`]s are things
//! to do. So every race can be replayed, and no test of a race has to sleep.
//!
#![doc = include_str!("../README.md")]
//!
//! # Driving it
//!
//! Call [`Machine::handle`] with one event, then take actions from [`Machine::poll_action`] until
//! there are none, then wait for the next event or for [`Machine::next_timeout`], at which an
//! [`Event::Tick`] is due. The one rule: the [`Event::SendResult`] of an [`Action::Send`] is handed
//! in before any other event, because offering a frame to a transport takes no time.
//!
//! # States
//!
//! `Starting → Initializing → Ready → Closing`, with `Backoff` between attempts and `Failed` for
//! what another attempt would not mend.
//!
//! | event | Starting | Initializing | Ready | Backoff | Failed | Closing |
//! |---|---|---|---|---|---|---|
//! | transport up | begin handshake | violation | violation | stale | stale | drop |
//! | transport down | backoff, or failed if permanent | the same; at once again if the probe drove the server away | fail all, then the same | stale | stale | exit |
//! | frame over the limit | – | close, backoff | close, fail all, backoff | stale | stale | drop |
//! | frame not JSON-RPC | – | count | count | stale | stale | drop |
//! | handshake answered | – | ready, ask on, backoff or failed | – | stale | stale | drop |
//! | response | – | count late or unknown | reply, or count late or unknown | stale | stale | drop |
//! | server ping | – | answer | answer (older revisions) | stale | stale | drop |
//! | server request | – | hold | deliver | stale | stale | drop |
//! | notification | – | log messages: deliver; others: hold | to its call, or deliver | stale | stale | drop |
//! | call | hold | hold | send | hold | reply `Failed` | reply `Shutdown` |
//! | deadline of a call | reply `Timeout` | reply `Timeout` | withdraw, reply `Timeout` | reply `Timeout` | – | – |
//! | caller gone | forget | forget | withdraw | forget | – | – |
//! | restart | – | – | – | open | open | – |
//! | stop | exit | close | fail all, close | exit | exit | `AlreadyClosing` |
//!
//! After a transport is given up its epoch is stale: whatever it still reports is dropped and
//! counted. That is why nothing can happen in `Backoff` and `Failed` but calls, time and commands.

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
