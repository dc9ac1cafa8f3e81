//! Every limit of this crate, with its reason.

/// The most items of one kind that are judged, which is as many as the catalogue shows. Items after
/// them are left out.
pub const TOOLS: usize = 10_000;

/// The longest name of a tool that is kept. The protocol advises 128 characters, and model
/// providers take 64.
pub const NAME_BYTES: usize = 256;

/// The longest key of a record: a tag such as `(resource) ` and a name, or the start of a long URI and
/// its hash.
pub const KEY_BYTES: usize = NAME_BYTES + 96;

/// The most tools, prompts and templates of one server that are remembered, vanished ones included.
/// When there are more, those that vanished first are forgotten, and from then on nothing of the
/// server is approved on first sight, because an item that looks new may be one that was forgotten.
pub const PINS: usize = 40_000;

/// The most resources of one server that are remembered. Files and rows come and go, so beyond this
/// the resources that vanished first are forgotten without any loss of trust: one that returns is
/// judged as new.
pub const RESOURCES: usize = 10_000;

/// The most fingerprints of rejected definitions of one tool that are remembered: those of eight definitions that name
/// a place, or of more that do not. A forgotten one is asked about again.
pub const REJECTIONS: usize = 16;

/// The largest definition whose text is kept. Of a larger one the fingerprint alone is, which is
/// enough to hold back a change but not to show it.
pub const DEFINITION_BYTES: usize = 1024 * 1024;

/// How many bytes of definitions the pins of one server keep. Of what does not fit, vanished tools
/// first, the fingerprint alone is kept.
pub const DEFINITIONS_BYTES: usize = 32 * 1024 * 1024;

/// The largest file of pins that is read. It has room for everything that the limits above allow.
pub const PINS_BYTES: usize = 224 * 1024 * 1024;

/// How many files of pins are read from one folder.
pub const PINS_FILES: usize = 10_000;

/// How many bytes of text of one definition are looked at for instructions. A longer definition is
/// suspicious for that alone.
pub const SCAN_BYTES: usize = 256 * 1024;

/// How many findings of one definition are told.
pub const FINDINGS: usize = 40;
