//! The servers behind the gateway: supervision, connections, and the items they offer.

pub mod builtin;
pub mod cache;
mod changes;
pub mod deps;
pub mod discovery;
mod fair_queue;
mod fetch;
pub mod first_contact;
pub mod identity;
mod judgement;
mod keyed_locks;
pub mod launch;
pub mod limiter;
pub mod live;
pub mod live_catalog;
pub mod logs;
pub mod memory;
pub mod model;
pub mod pins;
pub mod questions;
mod restart;
pub mod start_approval;
pub mod start_throttle;
mod stderr;
pub mod subscriptions;
pub mod supervisor;
pub mod upstream;
