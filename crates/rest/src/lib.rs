//! The types of the REST interface and of its event stream. The gateway writes them, and the command line
//! reads them.
//!
//! A client may talk to a gateway of another version: it ignores unknown fields, most fields may be missing,
//! and unknown words are kept (see [`words`]). Only the gateway parses bodies and queries, and it rejects
//! unknown fields in them.
//!
//! `openapi.json` describes the interface. The tests of this crate generate it from these types, whose
//! comments are its descriptions, and from a table of the routes:
//! `UPDATE_SNAPSHOTS=1 cargo nextest run -p switchboard-rest`.

pub mod activity;
pub mod approvals;
pub mod console;
pub mod events;
pub mod logins;
#[cfg(test)]
mod openapi;
pub mod problem;
pub mod profiles;
pub mod rules;
pub mod servers;
pub mod status;
mod time;
pub mod tokens;
pub mod tools;
pub mod trust;
pub mod words;

pub use self::{problem::Problem, time::Time};

/// The `OpenAPI` description of the interface.
pub const OPENAPI: &str = include_str!("../openapi.json");
