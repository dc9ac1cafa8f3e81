//! The gateway: one place through which AI agents use all their MCP servers.
//!
//! A request walks from an edge, which reads it and knows whom it comes from, to the desk, which
//! knows what is asked of which server, and over that server's connection; the answer walks the same
//! rooms back. Beside that path a supervisor keeps the servers what the configuration wants.
//!
//! | module | what |
//! |---|---|
//! | `server`, `edge` | doors, and clients on pipes and over HTTP |
//! | `desk`, `call` | which server is meant, and one request to it |
//! | `upstream`, `restart`, `limit` | one server: its connection, its failures, its places |
//! | `supervisor`, `launch` | the set of servers, and how each is started |
//! | `shelf` | the catalogue and its snapshots |
//! | `notify` | who is told, over HTTP and on the desktop, that a request waits |
//! | `api` | REST, for the command line and the console |

mod actor;
mod admin;
mod answer;
mod api;
mod approvals;
mod apps;
mod asking;
mod audit;
mod builtin;
mod cache;
mod call;
mod caller;
mod changes;
mod connection;
mod console;
mod core;
mod desk;
mod edge;
mod events;
mod extensions;
mod failure;
mod fair;
mod fetch;
mod finder;
mod first_contact;
mod gateway;
mod health;
mod hold;
mod identity;
mod inbound;
mod judgement;
mod launch;
mod learn;
mod lessons;
mod limit;
mod line;
mod listen;
mod live;
mod logs;
mod mailbox;
mod memory;
mod metrics;
mod model;
mod notify;
mod outbound;
mod pace;
mod park;
mod peer;
mod ports;
mod problem;
mod question;
mod random;
mod relay;
mod restart;
pub mod scrub;
mod seal;
mod server;
mod session;
mod shelf;
mod shown;
mod status;
mod stderr;
mod supervisor;
mod tally;
mod tasks;
mod time;
mod translate;
mod trust;
mod trust_requests;
mod turns;
mod upstream;
mod uri;
mod view;
mod watch;

pub use crate::core::ChangeError;
pub use gateway::{Gateway, StartError};
pub use health::{Health, Part, PartState, Reason, SAID, ServerState, UNREADABLE};
pub use ports::Ports;
pub use server::{Doors, PIPE_PATH, PIPE_PROJECT, PIPE_UPGRADE};
pub use status::{FailedList, ServerStatus, Status, describe};
pub use view::{Face, View};
