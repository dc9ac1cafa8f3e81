//! An MCP client whose connection is an explicit state machine.
//!
#![doc = include_str!("../README.md")]
//!
//! # What to expect
//!
//! * [`Client::connect`] returns at once. A call made before the connection is ready waits for it,
//!   up to the call's own deadline; after a loss the connection is opened again by itself, with
//!   subscriptions and log level as they were. [`Client::state`] tells where it stands.
//! * Every call ends: with an answer, or with an [`Error`] that says why, within its deadline
//!   (30 s unless [set](Call::timeout)). Dropping its future withdraws it.
//! * All five protocol revisions are spoken; which one is settled with the server by itself.
//! * Nothing is lost: each typed value keeps [the JSON it was read from](Lossless::raw), and
//!   [`Client::request`] hands back raw JSON altogether.
//! * A server may ask back ([sampling](ClientBuilder::on_sampling),
//!   [elicitation](ClientBuilder::on_elicitation), [roots](ClientBuilder::roots)); handlers serve
//!   old servers, which send requests, and new ones, which ask through their results, alike.
//! * [`Client::stop`] answers every waiting call and is done within 100 ms whatever the server does.

mod builder;
mod call;
mod client;
mod connection;
mod driver;
mod error;
mod handler_tasks;
mod handlers;
mod hints;
mod input;
mod join;
mod lists;
pub mod model;
mod paging;
mod pending;
mod round;
mod subscriptions;
pub mod telemetry;
pub mod throttle;
pub mod transport;

pub use builder::ClientBuilder;
pub use call::{Answering, Call, Canceller, InFlight, Progress};
pub use client::{Client, IntoParams};
pub use error::Error;
pub use handlers::{Asked, Violation};
pub use hints::CacheHints;
pub use input::{InputRequired, UnclearInput};
pub use model::Lossless;
pub use paging::Pages;
pub use pending::Reason;
pub use switchboard_machine::{
    CallError, CounterValues, ErrorKind, NO_HANDSHAKE, RequestFailure, Session, State,
};
pub use switchboard_wire::{Era, ErrorObject, Id, Notification, Raw, RawError, Request, Revision};
#[cfg(feature = "http")]
pub use transport::{http, sse};
pub use transport::{memory, stdio};
