//! The limits of this crate, with their reasons.

/// The most items of one kind that are judged, equal to the limit of the catalogue. Further items are
/// left out.
pub const TOOLS: usize = 10_000;

/// The longest name of a tool, in bytes. The protocol recommends up to 128 characters, and model
/// providers accept 64.
pub const NAME_BYTES: usize = 256;

/// The longest key of a record, in bytes: a tag such as `(resource) ` and a name, or the start of a
/// long URI and its hash.
pub const KEY_BYTES: usize = NAME_BYTES + 96;

/// The most tools, prompts and templates of one server that are remembered, including those no longer
/// offered. Beyond this, the first that vanished are forgotten, and from then on no definition of the
/// server is approved on first sight, because an item that looks new may be a forgotten one.
pub const PINS: usize = 40_000;

/// The most resources of one server that are remembered. Files and rows come and go, so beyond this
/// the first resources that vanished are forgotten without any loss of trust: one that returns is
/// judged as new.
pub const RESOURCES: usize = 10_000;

/// The most fingerprints of rejected definitions of one tool that are remembered: those of eight
/// definitions that name a place, or of more that do not. The approver is asked about a forgotten one
/// again.
pub const REJECTIONS: usize = 16;

/// The largest definition, in bytes, whose text is kept. Of a larger one only the fingerprint is kept,
/// which is enough to hold back a change but not to show it.
pub const DEFINITION_BYTES: usize = 1024 * 1024;

/// The most bytes of definitions in the pins of one server. Beyond this only fingerprints are kept;
/// the texts of vanished tools are dropped first.
pub const DEFINITIONS_BYTES: usize = 32 * 1024 * 1024;

/// The largest file of pins to read, in bytes. It has room for everything that the limits above allow.
pub const PINS_BYTES: usize = 224 * 1024 * 1024;

/// The most files of pins to read from one folder.
pub const PINS_FILES: usize = 10_000;

/// The most bytes of text of one definition to scan for instructions. A longer definition is
/// suspicious for that reason alone.
pub const SCAN_BYTES: usize = 256 * 1024;

/// The most findings to report for one definition.
pub const FINDINGS: usize = 40;
