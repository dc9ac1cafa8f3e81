//! Simulates a connection under adverse conditions.
//!
//! A [`Schedule`] is a list of small [`Step`]s, generated from a seed: the transport is busy or gone, the
//! server responds late, twice, wrongly or not at all, callers go away, time passes with or without timers
//! being served. [`run`] plays it against a [`Subject`] in virtual time. A checker that knows the protocol
//! but not the machine watches every event and every action, and verifies the [`Invariant`]s. A schedule that
//! violates one is [`shrink`]-ed to the few steps that matter.
//!
//! Everything is deterministic: the same seed gives the same schedule and the same outcome.

pub mod broken;
mod campaign;
mod check;
mod coverage;
mod generate;
mod invariant;
mod random;
mod schedule;
mod server;
mod shrink;
mod step;
mod subject;
mod words;
mod world;

pub use campaign::{Campaign, Failure, Outcome, Progress, try_run};
pub use coverage::{Coverage, Happening, Phase, reachable};
pub use generate::schedule;
pub use invariant::{Broken, Invariant};
pub use schedule::{Schedule, Setup};
pub use shrink::{Shrunk, shrink};
pub use step::{Garbage, Server, Shape, Step, Stray, Welcome};
pub use subject::Subject;
pub use world::{Summary, run, trace};
