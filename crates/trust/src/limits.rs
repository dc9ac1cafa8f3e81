//! Every limit of this crate, with its reason.

/// The most tools of one list that are judged, which is as many as the catalogue shows. What comes
/// after them is left out.
pub const TOOLS: usize = 10_000;

/// The longest name of a tool that is kept. The protocol advises 128 characters, and model
/// providers take 64.
pub const NAME_BYTES: usize = 256;

/// The most tools of one server that are remembered, vanished ones included. When there are more,
/// those that vanished first are forgotten, and from then on nothing of the server is approved on
/// first sight, because what looks new may be what was forgotten.
pub const PINS: usize = 20_000;

/// How many refusals of one tool are remembered. A forgotten one is asked about again.
pub const REJECTIONS: usize = 8;

/// The largest definition whose text is kept. Of a larger one the fingerprint alone is, which is
/// enough to hold back a change but not to show it.
pub const DEFINITION_BYTES: usize = 1024 * 1024;

/// How many bytes of definitions the ledger of one server keeps. Of what does not fit, vanished tools
/// first, the fingerprint alone is kept.
pub const DEFINITIONS_BYTES: usize = 32 * 1024 * 1024;

/// The largest file of a ledger that is read. It has room for everything that the limits above let
/// a ledger hold.
pub const LEDGER_BYTES: usize = 96 * 1024 * 1024;

/// How many ledgers are read from one folder.
pub const LEDGER_FILES: usize = 10_000;

/// How many bytes of text of one definition are looked at for instructions. A longer definition is
/// suspicious for that alone.
pub const SCAN_BYTES: usize = 256 * 1024;

/// How many findings of one definition are told.
pub const FINDINGS: usize = 40;
