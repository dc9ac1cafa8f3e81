//! Asking a human: the broker, its rules, and the forms that a person fills in.
//!
//! Nothing here waits, reads or writes. [`Broker`] is every question that waits for a person, as a
//! machine: it is told what happens and says what is to be done. [`rules`] say which calls are asked
//! about, [`form`] what a server asks and whether an answer fits.

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
    Action, Arguments, Ask, Decided, Holder, Id, Kind, Patience, Peer, Record, Remember, Scope,
    Session, Source, Status, Usage,
};
