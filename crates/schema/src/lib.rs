//! Checks values against JSON schemas.
//!
//! Tools declare their arguments in a schema. [`Checker`] checks arguments before they are sent,
//! and explains mismatches in plain words, so that an agent can correct them. [`outline`] and
//! [`shape`] show the same schema in few bytes.
//!
//! Schemas come from servers and values from clients, so neither is trusted: all work is bounded,
//! nothing is fetched, and no input makes this crate panic. It does not reject values that a schema
//! allows either; in doubt, a value passes, and the server decides.
//!
//! ```
//! use switchboard_schema::{Checker, outline};
//! use switchboard_wire::Raw;
//!
//! let schema = Raw::parse(
//!     r#"{
//!         "type": "object",
//!         "properties": {
//!             "limit": {"type": "integer", "default": 10},
//!             "path": {"type": "string", "description": "The file to read"}
//!         },
//!         "required": ["path"],
//!         "additionalProperties": false
//!     }"#,
//! )?;
//! assert_eq!(outline(&schema, 200).text, "path: string, limit?: integer = 10");
//!
//! let checker = Checker::compile(&schema)?;
//! let mismatches = checker.check(&Raw::parse(r#"{"pth":"/tmp"}"#)?).unwrap_err();
//! assert_eq!(
//!     mismatches.to_string(),
//!     "arguments.path is missing: string (The file to read)\n\
//!      arguments.pth is unknown; did you mean `path`?"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod coerce;
mod error;
mod kind;
pub mod limits;
mod outline;
mod parts;
mod pattern;
mod reference;
mod run;
mod scalar;
mod schema;
mod shape;
mod text;

pub use check::Checker;
pub use coerce::Fit;
pub use error::{ValidationError, ValidationErrors};
pub use outline::{Outline, outline};
pub use schema::Unusable;
pub use shape::shape;
