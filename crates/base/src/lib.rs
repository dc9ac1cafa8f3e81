//! The vocabulary of all layers of the gateway: callers, errors, health, events, the audit log.

pub mod actor;
pub mod apps;
pub mod audit;
pub mod backchannel;
pub mod caller;
pub mod error;
pub mod events;
pub mod extensions;
pub mod health;
pub mod log_marks;
pub mod metrics;
pub mod notifications;
pub mod project;
pub mod random;
pub mod scrub;
pub mod self_searching;
pub mod signed_token;
pub mod tasks;
pub mod time;
pub mod tokens;
pub mod uri;
pub mod view;
