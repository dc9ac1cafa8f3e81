//! Asking a human: the broker, its rules, and the forms that a person fills in.

pub mod broker;
mod decision;
pub mod form;
mod record;

pub use broker::{Broker, Effect, Input, Outcome};
pub use decision::{Decision, Refusal};
pub use record::{
    Action, Arguments, Ask, Decided, Id, Kind, Patience, Record, Remember, Scope, Status, Usage,
};
