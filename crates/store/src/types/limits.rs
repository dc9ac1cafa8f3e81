//! The limits of the store, in one place.

use std::time::Duration;

/// The most activity records in the queue; further ones are dropped.
pub const QUEUED_RECORDS: usize = 8192;

/// The most rows in one answer.
pub const ROWS_PER_ANSWER: usize = 1000;

/// The most bytes in one answer that has more than one approval, audit entry, or version of a
/// memory.
pub const BYTES_PER_ANSWER: usize = 64 << 20;

/// The most statuses in one filter.
pub const STATUSES_PER_QUESTION: usize = 64;

/// The most writes in the queue.
pub const QUEUED_WRITES: usize = 4096;

/// The most bytes of all queued writes, and therefore of a single one.
pub const QUEUED_WRITE_BYTES: usize = 64 << 20;

/// The most memory changes in one write.
pub const CHANGES_PER_WRITE: usize = 10_000;

/// The longest memory, in bytes.
pub const CONTENT_BYTES: usize = 1 << 20;

/// The longest metadata of a memory, in bytes.
pub const METADATA_BYTES: usize = 256 << 10;

/// The longest description of an entity, in bytes.
pub const DESCRIPTION_BYTES: usize = 64 << 10;

/// The longest reason for a change of a memory, in bytes.
pub const REASON_BYTES: usize = 4096;

/// The longest ID, kind, or name of a scope or an entity, in bytes.
pub const NAME_BYTES: usize = 512;

/// The most entities that one version of a memory mentions.
pub const MENTIONS_PER_VERSION: usize = 512;

/// The most vectors in one write.
pub const VECTORS_PER_WRITE: usize = 4096;

/// The most numbers in a vector.
pub const DIMENSIONS: usize = 8192;

/// The namespace of salvaged memories whose scope cannot be read.
pub const SALVAGED_NAMESPACE: &str = "salvaged";

/// The most pieces of a damaged file that are restored in one commit.
pub(crate) const SALVAGE_BATCH: usize = 500;
/// The approximate size of such a batch, in bytes.
pub(crate) const SALVAGE_BATCH_BYTES: usize = 4 << 20;

/// The most batches that are queued while one is committed.
pub(crate) const SALVAGE_BATCHES: usize = 2;

/// The most attempts to read a table of a damaged file from a different position.
pub(crate) const SALVAGE_ATTEMPTS: u32 = 200_000;

/// The longest row of a damaged file that is read, in bytes.
pub(crate) const SALVAGE_ROW_BYTES: usize = 2 << 20;

/// The size of a page of the file, in bytes.
pub(crate) const PAGE_BYTES: usize = 4096;

/// The size of a queued change apart from its texts, in bytes.
pub(crate) const CHANGE_BYTES: usize = 256;

/// The most queries in the queue.
pub(crate) const QUEUED_QUERIES: usize = 1024;

/// The most activity records in one commit. A full batch is committed at once.
pub(crate) const RECORDS_PER_COMMIT: usize = 2048;

/// The longest time that a record waits for others to share its commit.
pub(crate) const GROUP_WAIT: Duration = Duration::from_millis(500);

/// The most expired rows removed in one step.
pub(crate) const ROWS_PER_TRIM: usize = 512;

/// The longest error text stored, in bytes.
pub(crate) const ERROR_BYTES: usize = 4096;

/// The longest text searched for, in bytes.
pub(crate) const SEARCH_BYTES: usize = 256;

/// Time that one attempt waits for another process's lock. It also bounds the time that closing
/// takes.
pub(crate) const LOCK_WAIT: Duration = Duration::from_millis(250);

/// The first pause between two attempts.
pub(crate) const RETRY_FIRST: Duration = Duration::from_millis(250);
/// The longest pause between two attempts.
pub(crate) const RETRY_LONGEST: Duration = Duration::from_secs(10);

/// The most damaged files set aside before the disk itself is suspected.
pub(crate) const DAMAGED_FILES: u32 = 3;
