//! The administration of the gateway: REST, status, notifications.

pub mod admin;
pub mod api;
mod notify;
pub mod status;
mod tally;
