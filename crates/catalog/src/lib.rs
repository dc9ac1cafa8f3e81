//! The offers of every upstream server, merged into the lists that a client of the gateway sees.
//!
//! A server's last known lists are its [`Offers`]: raw JSON, exactly as the server sent it. A
//! [`ServerPart`] is made of them once: it reads the names, leaves out broken items and chooses
//! exposed names. A [`Catalog`] merges the parts of all servers. It is immutable; when one server
//! changes, [`Catalog::with`] makes a new one, which shares every other part.
//!
//! There are two views. The **direct** view shows the items of all servers under names that cannot
//! collide (`server__tool`, `switchboard://server/uri`). The view of **one server** leaves its
//! names and every byte of its definitions untouched. In the direct view, a definition differs from
//! what the server sent in its name or URI and in the address of a tool's page. If clients would
//! reject it, and with it all other definitions on its page, it is mended. A part of the program
//! itself may list other, shorter definitions there ([`ServerPart::listing`]).
//!
//! The owner may change items ([`Presented`]): both views show them as changed, and the name at the
//! server stays the [`Item`]'s identity.
//!
//! A [`Snapshot`] stores offers on disk.
//!
//! ```
//! use std::sync::Arc;
//! use switchboard_catalog::{Catalog, Kind, Offers, Presented, ServerPart};
//! use switchboard_wire::Raw;
//!
//! let offers = Offers {
//!     tools: vec![Raw::parse(r#"{ "name": "add", "inputSchema": {"type": "object"} }"#)?],
//!     ..Offers::default()
//! };
//! let part = ServerPart::prepare("math", Arc::new(offers), &|_, _, _| Presented::Unchanged);
//! let catalog = Catalog::default().with("math", Some(Arc::new(part)));
//!
//! let target = catalog.tool("math__add").unwrap();
//! assert_eq!((&**target.server, target.name), ("math", "add"));
//! assert_eq!(
//!     catalog.page(Kind::Tool, None)?.encoded(&[]).as_str(),
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
mod presented;
mod schema;
mod snapshot;
mod uris;

pub use catalog::{Catalog, Target};
pub use cursor::BadCursor;
pub use folder::{load_all, remove, write};
pub use item::Item;
pub use offers::{Kind, Offers};
pub use page::Page;
pub use part::{Problems, ServerPart};
pub use presented::{Present, Presented};
pub use snapshot::{Held, Snapshot, SnapshotError};
pub use uris::{escape, expose_content, expose_read_result, expose_updated, expose_uri};
