//! What every upstream offers, merged into what a client of the gateway sees.
//!
//! A server's last known lists are its [`Offers`]: raw JSON, every byte as the server sent it. A
//! [`ServerPart`] is made of them once: names read, broken items left out, exposed names chosen. A
//! [`Catalog`] puts the parts of all servers together. It never changes; when one server does,
//! [`Catalog::with`] makes the next one, which shares every other part with it.
//!
//! Two views are served. The **direct** view shows everything of every server under names that
//! cannot collide (`server__tool`, `switchboard://server/uri`); the view of **one server** leaves its
//! names alone, and every byte of a definition. In the direct view a definition differs from what the server sent
//! in its name or URI and in the address of the page that a tool comes with, and is mended if clients would reject it, and with it all others on its page; a part of the
//! program itself may list other, shorter ones there ([`ServerPart::listing`]).
//!
//! [`Snapshot`] is how offers outlive the process.
//!
//! ```
//! use std::sync::Arc;
//! use switchboard_catalog::{Catalog, Kind, Offers, ServerPart};
//! use switchboard_wire::Raw;
//!
//! let offers = Offers {
//!     tools: vec![Raw::parse(r#"{ "name": "add", "inputSchema": {"type": "object"} }"#)?],
//!     ..Offers::default()
//! };
//! let part = ServerPart::prepare("math", Arc::new(offers), &|_, _| true);
//! let catalogue = Catalog::default().with("math", Some(Arc::new(part)));
//!
//! let target = catalogue.tool("math__add").unwrap();
//! assert_eq!((&**target.server, target.name), ("math", "add"));
//! assert_eq!(
//!     catalogue.page(Kind::Tool, None)?.encoded(&[]).as_str(),
//!     r#"{"tools":[{ "name": "math__add", "inputSchema": {"type": "object"} }]}"#
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod catalog;
mod cursor;
mod digest;
mod folder;
mod item;
pub mod limits;
mod mend;
mod names;
mod nearest;
mod offers;
mod page;
mod parallel;
mod part;
mod schema;
mod snapshot;
mod uris;

pub use catalog::{Catalog, Target};
pub use cursor::BadCursor;
pub use folder::{load_all, remove, write};
pub use item::Item;
pub use offers::{Kind, Offers};
pub use page::Page;
pub use part::{Permits, Problems, ServerPart};
pub use snapshot::{Held, Snapshot, SnapshotError};
pub use uris::{escape, expose_content, expose_read_result, expose_updated, expose_uri};
