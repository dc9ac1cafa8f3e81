//! The limits of this crate, with their reasons.

/// The largest schema that is read, in bytes. Among some seven hundred tools of common servers, the
/// largest has 12 kB.
pub const SCHEMA_BYTES: usize = 256 * 1024;

/// The most steps of one check: a step is one keyword on one value, or the reading of some bytes of
/// text. A check takes microseconds, and some tens of milliseconds in the worst case.
pub const STEPS: u64 = 200_000;

/// The deepest nesting of schemas in one check, counting references and combinations. Deeper schemas,
/// which a schema that refers to itself always reaches, give no verdict.
pub(crate) const FRAMES: usize = 160;

/// The most patterns of one schema that are compiled; the others are not checked.
pub(crate) const PATTERNS: usize = 64;

/// The longest pattern that is compiled, in bytes.
pub(crate) const PATTERN_BYTES: usize = 1024;

/// The sizes of compiled patterns, in bytes, up to the largest allowed: matching is charged by the size.
pub(crate) const PROGRAM_BYTES: [usize; 5] = [1024, 4 * 1024, 16 * 1024, 64 * 1024, 256 * 1024];

/// The total size of all compiled patterns of one schema, in units of the smallest size.
pub(crate) const PATTERN_PROGRAMS: u64 = 1024;

/// The most mismatches that are reported at once. More do not help the caller to correct them.
pub const MISMATCHES: usize = 5;

/// The most characters of a value that are shown.
pub(crate) const VALUE_CHARACTERS: usize = 60;

/// The most characters of a description that are shown.
pub(crate) const DESCRIPTION_CHARACTERS: usize = 80;

/// The most characters of a name that are shown.
pub(crate) const NAME_CHARACTERS: usize = 64;

/// The length in bytes after which a path is truncated.
pub(crate) const PATH_BYTES: usize = 256;

/// The most allowed values or known names that are listed.
pub(crate) const CHOICES: usize = 12;

/// The most names that are searched for the one that was meant.
pub(crate) const CANDIDATES: usize = 256;

/// The most schemas that one outline visits.
pub(crate) const OUTLINE_STEPS: usize = 4096;

/// The deepest nesting that an outline shows.
pub(crate) const OUTLINE_DEPTH: usize = 6;
