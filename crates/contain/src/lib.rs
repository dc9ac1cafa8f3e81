//! Starts, contains and ends process trees and containers, so that nothing is left behind when the server,
//! its guard or the gateway dies.
//!
//! Every server has a guard: this program ([`own_program`]), run again with [`GUARD_ARGUMENT`]. The guard starts the server,
//! ends it when the gateway says so, and ends it by itself when the gateway has died.
//!
//! | who dies | what happens |
//! |---|---|
//! | the server, leaving children | the guard waits briefly, then ends them |
//! | the gateway | the guard sees the socket close: SIGTERM, 300 ms, SIGKILL |
//! | the guard | the server dies with it; the gateway ends the rest of the tree |
//! | both | the next gateway finds the rest by its records, see [`Sweep`] |
//!
//! While its guard lives, no descendant of a server can hide: a process that loses its parent becomes a child
//! of the guard. Once the guard has been killed, one kind of process is out of sight: a daemon in its own
//! session that has also discarded its environment. On systems other than Linux, a guard knows only the
//! server's process group, and nothing can be found after its death.
//!
//! ```no_run
//! use std::process::ExitCode;
//! use switchboard_contain::{Containment, GUARD_ARGUMENT, Ladder, Launch, guard_main};
//!
//! fn main() -> ExitCode {
//!     if std::env::args_os().nth(1).is_some_and(|arg| arg == GUARD_ARGUMENT) {
//!         return guard_main(std::env::args_os());
//!     }
//!     // The runtime starts here.
//!     ExitCode::SUCCESS
//! }
//!
//! async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//!     switchboard_contain::become_subreaper()?;
//!     let containment = Containment::new("run/groups", "main".parse()?)?;
//!     let server = Launch::program("memory", "npx").args(["-y", "server-memory"]);
//!     let contained = containment.launch(&server).await?;
//!     drop(contained.stdin);
//!     contained.handle.stop(Ladder::PROCESS);
//!     let ended = contained.handle.gone().await;
//!     println!("{:?} in {:?}", ended.rung, ended.took);
//!     Ok(())
//! }
//! ```

#![cfg(unix)]

mod container;
mod containment;
mod control;
mod engine;
mod engine_env;
mod error;
mod guard;
mod guard_monitor;
mod handle;
mod instance;
mod launch;
mod lineage;
mod orphans;
mod own;
mod process;
mod program;
mod records;
mod report;
mod sweep;

pub use container::{Container, Engine, Mount};
pub use containment::Containment;
#[doc(hidden)]
pub use control::check_control;
pub use engine::output_within;
pub use error::{LaunchError, StartFailure, split_advice};
pub use guard::{GUARD_ARGUMENT, guard_main};
pub use handle::{Contained, Handle, Tree};
pub use instance::{Instance, InvalidInstance, MARKER};
pub use launch::{Ladder, Launch};
pub use lineage::{Lineage, Process};
pub use own::{detach, own_program};
pub use process::Ticks;
pub use program::find_program;
pub use report::{Ended, Rung, Step};
pub use sweep::{Sweep, SweepReport, Swept};

/// Makes this process the parent of the processes that its descendants leave behind, so that no child of a
/// killed guard escapes. Call it once, early. Does nothing on systems without subreapers.
pub fn become_subreaper() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}
