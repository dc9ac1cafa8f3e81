//! The administration of the gateway: REST, status, notifications.

pub mod admin;
pub mod api;
pub mod notify;
pub mod status;
pub mod tally;
