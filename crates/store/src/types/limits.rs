//! Every bound of the store, in one place.

use std::time::Duration;

/// The most records that wait for the disk; one more is dropped.
pub const QUEUED_RECORDS: usize = 8192;

/// The most rows in one answer.
pub const ROWS_PER_ANSWER: usize = 1000;

/// The most bytes in one answer of approvals or audit entries, if it has more than one.
pub const BYTES_PER_ANSWER: usize = 64 << 20;

/// The most statuses to look for at once.
pub const STATUSES_PER_QUESTION: usize = 64;

/// The most writes that wait to be committed.
pub const QUEUED_WRITES: usize = 4096;

/// The most bytes of them, and so the most in one of them.
pub const QUEUED_WRITE_BYTES: usize = 64 << 20;

/// The most changes of memory in one write.
pub const CHANGES_PER_WRITE: usize = 10_000;

/// The longest memory, in bytes.
pub const CONTENT_BYTES: usize = 1 << 20;

/// The longest metadata of a memory, in bytes.
pub const METADATA_BYTES: usize = 256 << 10;

/// The longest description of an entity, in bytes.
pub const DESCRIPTION_BYTES: usize = 64 << 10;

/// The longest reason for a change of a memory, in bytes.
pub const REASON_BYTES: usize = 4096;

/// The longest id, kind, name of a scope or of an entity, in bytes.
pub const NAME_BYTES: usize = 512;

/// The most entities that one version of a memory speaks of.
pub const MENTIONS_PER_VERSION: usize = 512;

/// The most vectors put at once.
pub const VECTORS_PER_WRITE: usize = 4096;

/// The most numbers in a vector.
pub const DIMENSIONS: usize = 8192;

/// Where the memories of a damaged file are whose scope cannot be read.
pub const SALVAGED_NAMESPACE: &str = "salvaged";

/// The most pieces of a damaged file that are brought back in one commit, and about how many bytes.
pub(crate) const SALVAGE_BATCH: usize = 500;
/// See [`SALVAGE_BATCH`].
pub(crate) const SALVAGE_BATCH_BYTES: usize = 4 << 20;

/// How many of these wait while one is committed.
pub(crate) const SALVAGE_BATCHES: usize = 2;

/// How often a table of a damaged file is tried to be read from another place.
pub(crate) const SALVAGE_ATTEMPTS: u32 = 200_000;

/// The longest row of a damaged file that is read, in bytes.
pub(crate) const SALVAGE_ROW_BYTES: usize = 2 << 20;

/// The size of a page of the file.
pub(crate) const PAGE_BYTES: usize = 4096;

/// What a change counts for besides its texts.
pub(crate) const CHANGE_BYTES: usize = 256;

/// The most questions that wait for an answer.
pub(crate) const QUEUED_QUERIES: usize = 1024;

/// The most records in one commit; as many as this do not wait any longer.
pub(crate) const RECORDS_PER_COMMIT: usize = 2048;

/// The longest that a record waits for others to be committed with.
pub(crate) const GROUP_WAIT: Duration = Duration::from_millis(500);

/// The most old rows removed in one go.
pub(crate) const ROWS_PER_TRIM: usize = 512;

/// The longest error text kept, in bytes.
pub(crate) const ERROR_BYTES: usize = 4096;

/// The longest text searched for, in bytes.
pub(crate) const SEARCH_BYTES: usize = 256;

/// How long one attempt waits for somebody else's lock. It also bounds what closing waits for.
pub(crate) const LOCK_WAIT: Duration = Duration::from_millis(250);

/// The first and the longest pause between two attempts.
pub(crate) const RETRY_FIRST: Duration = Duration::from_millis(250);
/// See [`RETRY_FIRST`].
pub(crate) const RETRY_LONGEST: Duration = Duration::from_secs(10);

/// How many damaged files are put aside before the disk itself is suspected.
pub(crate) const DAMAGED_FILES: u32 = 3;
