//! The configuration of Switchboard: its home, its file, its schema.
//!
//! ```
//! use switchboard_config::{Transport, parse};
//!
//! let config = parse(
//!     r#"{
//!         // The block that every MCP client knows.
//!         "mcpServers": {
//!             "files": { "command": "npx", "args": ["-y", "server-filesystem", "/data"] },
//!         },
//!     }"#,
//!     "switchboard.json",
//! )
//! .map_err(|problems| problems[0].to_string())?;
//! let Transport::Command(line) = &config.servers["files"].transport else { unreachable!() };
//! assert_eq!(line.command, "npx");
//!
//! let problems = parse(r#"{"mcpServers": {"files": {"comand": "npx"}}}"#, "switchboard.json");
//! assert_eq!(
//!     problems.unwrap_err()[0].to_string(),
//!     r#"switchboard.json:1:27: unknown key "comand" (did you mean "command"?)"#,
//! );
//! # Ok::<(), String>(())
//! ```
//!
//! A text is parsed into a tree with offsets (`json`). The tree is checked against the table of keys
//! (`keys`, `shape`) and converted to the model (`read`, `server`). The schema is generated from the
//! same table, so the two cannot diverge. Edits use the tree's offsets and leave the rest of the text
//! unchanged. Everything is synchronous and bounded, and no text causes a panic.

mod diagnostic;
mod edit;
mod environment;
mod filter;
mod home;
mod json;
mod keys;
mod listen;
mod load;
mod model;
mod name;
mod network;
mod profile;
mod read;
mod reference;
mod resolve;
mod schema;
mod script;
mod secret;
mod server;
mod shape;
mod share;
mod sharing;
mod shell;
mod wanted;
mod write;

pub use diagnostic::Diagnostic;
pub use edit::{
    EditError, add_server, add_servers, check_server, release_server, remove_server, set_enabled,
};
pub use environment::{Environment, Started};
pub use filter::ToolFilter;
pub use home::{Home, HomeError};
pub use load::{ConfigError, open_trusted, parse, read_trusted};
pub use model::{
    Approvals, Argument, Auth, Budget, CommandLine, Config, Container, Embeddings, Grant, Guard,
    IdentityProvider, Inherit, McpAuth, Memory, MemoryTools, Notify, OAuth, Override, Overrides,
    Prices, Profile, Provider, ProviderKind, Remote, RemoteKind, ResourceParameter, Results, Route,
    Sampling, Search, Server, Sessions, Shutdown, Start, ToolPattern, Transport, Trust, View,
    Webhook,
};
pub use name::NameError;
pub use network::Network;
pub use reference::{Placeholder, is_secret_name};
pub use resolve::{NO_PROJECT_HINT, Occasion, ResolveError, Resolved, Unfit};
pub use schema::schema;
pub use secret::{Place, Reference, is_pasted_value, secret_parts};
pub use share::Share;
pub use sharing::{Because, STATEFUL_CHECKED, Sharing, Stateful};
pub use shell::shell_word;
pub use switchboard_files::LockError;
pub use write::{ConfigLock, Written};
