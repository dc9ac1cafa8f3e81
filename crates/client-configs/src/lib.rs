//! The configurations of AI clients: taking servers over from them, and putting the gateway into
//! them.
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
//! # What to expect
//!
//! * Nothing is written but by [`apply`] and [`undo`], and never over a file that has changed since
//!   the plan was made. A backup comes first.
//! * Comments, order and formatting of everything that is not the gateway's entry stay as they are.
//! * A file that cannot be read is named with line and column, and left alone.

mod apply;
mod client;
mod diff;
mod error;
mod files;
mod import;
mod json;
mod locations;
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
pub use plan::{GatewayEntry, Plan, plan_connect, plan_disconnect};
pub use read::{Found, read, read_file, read_project};
pub use texts::{Replace, replace_texts};
pub use undo::{How, Undone, Which, undo};
