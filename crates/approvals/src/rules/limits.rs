//! Every limit of the rules, with its reason.

/// The most rules of the configuration, and as many remembered ones: every call is held against each.
pub const RULES: usize = 1_000;

/// The longest rule, as text or as JSON.
pub const RULE_BYTES: usize = 4 * 1024;

/// The most conditions on arguments in one rule.
pub const CONDITIONS: usize = 32;

/// The most steps of a path into arguments.
pub const PATH_STEPS: usize = 32;

/// The longest pattern for a name or a value.
pub const GLOB_CHARACTERS: usize = switchboard_text::glob::CHARACTERS;

/// How large a compiled regular expression may get, in bytes.
pub const PROGRAM_BYTES: usize = 64 * 1024;

/// The most values in arguments that are looked at. More cannot be judged, and are denied.
pub const ARGUMENT_NODES: usize = 100_000;

/// The longest text that is held against a pattern or a regular expression.
pub const MATCHED_BYTES: usize = 256 * 1024;

/// How deep texts are read that spell JSON within texts that spell JSON.
pub const TEXTS_IN_TEXTS: usize = 3;

/// The most bytes of text that one judgement looks at, where each spelling of a text counts once for each pattern.
/// More cannot be judged, and are denied.
pub const JUDGED_BYTES: usize = 16 * 1024 * 1024;

/// The most spellings of one text. A text that has more may be anything.
pub const SPELLINGS: usize = 512;

/// The most texts whose spellings are kept during one judgement.
pub const SPELLED_TEXTS: usize = 16;
