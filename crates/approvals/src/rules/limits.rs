//! Every limit of the rules, with its reason.

/// The most rules of the configuration, and the most remembered ones: every call is compared with each.
pub const RULES: usize = 1_000;

/// The longest rule, as text or as JSON, in bytes.
pub const RULE_BYTES: usize = 4 * 1024;

/// The most conditions on arguments in one rule.
pub const CONDITIONS: usize = 32;

/// The most steps of a path into arguments.
pub const PATH_STEPS: usize = 32;

/// The longest pattern for a name or a value, in characters.
pub const GLOB_CHARACTERS: usize = switchboard_text::glob::CHARACTERS;

/// The largest compiled regular expression, in bytes.
pub const PROGRAM_BYTES: usize = 64 * 1024;

/// The most values in arguments that are judged. A call with more is denied, because it cannot be judged.
pub const ARGUMENT_NODES: usize = 100_000;

/// The longest text that is compared with a pattern or a regular expression, in bytes.
pub const MATCHED_BYTES: usize = 256 * 1024;

/// The deepest level of JSON texts within JSON texts that is parsed.
pub const TEXTS_IN_TEXTS: usize = 3;

/// The most bytes of text that one judgement looks at, where each spelling of a text counts once for each
/// pattern. A call with more is denied, because it cannot be judged.
pub const JUDGED_BYTES: usize = 16 * 1024 * 1024;

/// The most spellings of one text. A text with more may mean anything.
pub const SPELLINGS: usize = 512;

/// The most texts whose spellings are cached during one judgement.
pub const SPELLED_TEXTS: usize = 16;
