//! The gateway from the outside: real sockets, real servers.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod announced;
mod api;
mod api_calls;
mod api_config;
mod api_rig;
mod api_servers;
mod api_streams;
mod apps;
mod bounds;
mod console;
mod containers;
mod described;
mod doors;
mod eras;
mod events;
mod extensions;
mod heard;
mod hold;
mod identity;
mod index;
mod instance_entries;
mod instance_limits;
mod instance_questions;
mod instance_rig;
mod instances;
mod learning;
mod log_levels;
mod mcp_rig;
mod memory;
mod overrides;
mod people;
mod profiles;
mod results;
mod scope_properties;
mod search_call;
mod search_changes;
mod search_menu;
mod search_retrieve;
mod sessions;
mod stage_rig;
mod streams;
mod tasks;
mod token_ends;
mod tokens;
mod trust;
mod trust_asked;
mod trust_kinds;
mod trust_lists;
mod trust_settings;
mod views;
