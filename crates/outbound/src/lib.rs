//! The servers behind the gateway: supervision, connections, and the items they offer.

pub mod builtin;
pub mod cache;
mod changes;
mod clock;
pub mod deps;
pub mod discovery;
mod fair_queue;
#[cfg(test)]
mod fake_servers;
mod fetch;
pub mod first_contact;
pub mod identity;
pub mod instance;
pub mod instances;
mod judgement;
mod keyed_locks;
pub mod launch;
pub mod limiter;
pub mod live;
pub mod live_catalog;
pub mod logs;
pub mod memory;
pub mod model;
pub mod overrides;
pub mod pins;
pub mod questions;
mod restart;
pub mod sign_in;
pub mod start_approval;
pub mod start_throttle;
mod state_dir;
mod stderr;
pub mod subscriptions;
pub mod supervisor;
pub mod upstream;
