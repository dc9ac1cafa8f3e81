//! The configurations of AI clients: imports servers from them and adds the gateway to them.
//!
//! ```no_run
//! use switchboard_client_configs::{Client, Dirs, GatewayEntry, Which};
//! # fn run() -> Result<(), switchboard_client_configs::Error> {
//! let dirs = Dirs::current()?;
//! for found in switchboard_client_configs::read(Client::Cursor, &dirs)? {
//!     for server in found.servers {
//!         println!("{}: {}", server.name, server.entry);
//!     }
//! }
//!
//! let gateway = GatewayEntry::new("switchboard", "/usr/local/bin/switchboard");
//! let plan = switchboard_client_configs::plan_connect(Client::Cursor, &dirs, &gateway)?;
//! println!("{}", plan.diff);
//! let backups = std::path::Path::new("backups");
//! switchboard_client_configs::apply(&plan, backups)?;
//! switchboard_client_configs::undo(Which::Last, backups)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! * Only [`apply`] and [`undo`] write files. [`apply`] makes a backup first, and never overwrites a
//!   file that has changed since the plan was made.
//! * Everything outside the gateway's entry and the servers that [`Plan::remove`] takes out keeps its comments,
//!   order and formatting.
//! * A file that cannot be parsed is reported with line and column, and left unchanged.

mod apply;
mod client;
mod diff;
mod error;
mod files;
mod import;
mod json;
mod locations;
mod own;
mod plan;
mod read;
mod shapes;
mod texts;
mod toml;
mod undo;
mod variables;

pub use apply::{Applied, apply};
pub use client::Client;
pub use diff::unified;
pub use error::{Error, ErrorKind};
pub use import::Imported;
pub use locations::{Dirs, Os};
pub use own::{Connection, Reach, State, state};
pub use plan::{GatewayEntry, HttpEntry, Plan, plan_connect, plan_disconnect, plan_unchanged};
pub use read::{Found, Skipped, read, read_file, read_project};
pub use texts::{Replace, replace_texts};
pub use undo::{How, Undone, Which, undo};
