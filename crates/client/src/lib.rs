//! A Model Context Protocol (MCP) client whose connection is an explicit state machine.
//!
#![doc = include_str!("../README.md")]
//!
//! # Guarantees
//!
//! * [`Client::connect`] returns immediately. A call made before the connection is ready waits for
//!   it, up to the call's own deadline. A lost connection is reopened automatically, and
//!   subscriptions and log level are restored. [`Client::state`] returns the current state.
//! * Every call ends within its deadline (30 s unless [set](Call::timeout)), with a response or
//!   with an [`Error`] that gives the reason. Dropping its future cancels it.
//! * All five protocol revisions are supported; the client negotiates one with the server.
//! * Nothing is lost: each typed value keeps [the JSON it was read from](Lossless::raw), and
//!   [`Client::request`] returns raw JSON.
//! * A server may request input ([sampling](ClientBuilder::on_sampling),
//!   [elicitation](ClientBuilder::on_elicitation), [roots](ClientBuilder::roots)). The same
//!   handlers serve older servers, which send requests, and newer ones, which ask in their results.
//! * [`Client::stop`] ends every waiting call at once, and the connection within 100 ms, regardless of the
//!   server. [`Client::closed`] also waits for the server process, up to its
//!   [grace periods](stdio::Command::grace).

#[cfg(feature = "http")]
pub mod auth;
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
pub use handlers::{Asked, LogMessage, Violation};
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
