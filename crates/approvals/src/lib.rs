//! Human approval: the broker of requests, the rules, and the forms that a person fills in.
//!
//! Nothing here waits, reads or writes. [`Broker`] holds every request that waits for a person, as a state
//! machine: it takes inputs and returns effects. [`rules`] decide which calls need approval, and [`form`]
//! parses the questions of servers and validates the answers.

pub mod broker;
mod capacity;
mod decision;
pub mod form;
mod json;
mod record;
pub mod rules;
mod step;

pub use broker::{Broker, Effect, Input, Outcome, WriteError};
pub use decision::{Decision, DecisionError, rememberable};
pub use json::says_twice;
pub use record::{
    Action, Arguments, Ask, Asker, Decided, Holder, Id, Kind, Patience, Peer, Record, Remember,
    Scope, Session, Source, Status, Usage,
};
