//! Every limit of this crate, with its reason.

/// The largest schema that is read. Of some seven hundred tools of common servers the largest has 12 kB.
pub const SCHEMA_BYTES: usize = 256 * 1024;

/// The most steps of one check: a step is one keyword on one value, or some bytes of text that are
/// looked at. A check takes microseconds, and some tens of milliseconds in the worst case.
pub const STEPS: u64 = 200_000;

/// How many schemas may stand around the one being looked at, references and combinations counted.
/// Deeper ones, of which a schema that refers to itself has no end, say neither yes nor no.
pub(crate) const FRAMES: usize = 160;

/// The most patterns of one schema that are compiled; the others are not checked.
pub(crate) const PATTERNS: usize = 64;

/// The longest pattern that is compiled.
pub(crate) const PATTERN_BYTES: usize = 1024;

/// How large a compiled pattern may get, in several sizes: work is charged by the size.
pub(crate) const PROGRAM_BYTES: [usize; 5] = [1024, 4 * 1024, 16 * 1024, 64 * 1024, 256 * 1024];

/// How large all compiled patterns of one schema may get, in units of the smallest size.
pub(crate) const PATTERN_PROGRAMS: u64 = 1024;

/// The most mismatches that are told at once. More do not help whoever has to mend them.
pub const MISMATCHES: usize = 5;

/// How much of a value is shown, in characters.
pub(crate) const VALUE_CHARACTERS: usize = 60;

/// How much of a description is shown, in characters.
pub(crate) const DESCRIPTION_CHARACTERS: usize = 80;

/// How much of one name is shown, in characters.
pub(crate) const NAME_CHARACTERS: usize = 64;

/// How long a path may get, in bytes.
pub(crate) const PATH_BYTES: usize = 256;

/// How many allowed values or known names are told.
pub(crate) const CHOICES: usize = 12;

/// How many names are searched for one that may have been meant.
pub(crate) const CANDIDATES: usize = 256;

/// The most schemas that one outline looks at.
pub(crate) const OUTLINE_STEPS: usize = 4096;

/// How deep an outline shows what is nested.
pub(crate) const OUTLINE_DEPTH: usize = 6;
