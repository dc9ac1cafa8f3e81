//! The configuration of Switchboard: its home, its file, its schema.

mod edit;
mod filter;
mod home;
mod json;
mod load;
mod model;
mod problem;
mod resolve;
mod schema;
mod write;

pub use edit::{EditError, add_server, remove_server, set_enabled};
pub use filter::ToolFilter;
pub use home::{Home, HomeError};
pub use load::{ConfigError, parse};
pub use model::{
    Approvals, Auth, CommandLine, Config, Container, DEFAULT_LISTEN, McpAuth, Memory, Provider,
    ProviderKind, Remote, RemoteKind, Route, Sampling, Search, Server, Shutdown, Start, Transport,
    View,
};
pub use problem::Problem;
pub use resolve::ResolveError;
pub use schema::schema;
pub use write::write_atomically;
