//! The gateway: one place through which AI agents use all their MCP servers.
//!
//! This crate assembles the layers and runs them. A request comes in through
//! [`inbound`](switchboard_inbound). [`core`](switchboard_core) decides which server it is for and if it may
//! go there. [`outbound`](switchboard_outbound) has the connection to that server; the response takes the
//! same way back. [`admin`](switchboard_admin) is the REST interface, for the command line and the console.

mod gateway;

pub use gateway::{Gateway, StartError};
pub use switchboard_base::view::{Endpoint, Face, View};
pub use switchboard_inbound::{
    doors::{Doors, PIPE_PATH, PIPE_PROJECT, PIPE_UPGRADE},
    ports::Ports,
};
pub use switchboard_outbound::sign_in::{RENEWAL_ARGUMENT, renewal_main};
