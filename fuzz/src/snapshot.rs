//! Snapshots of catalogues, read from files.

use switchboard_catalog::{ServerPart, Snapshot};

/// A file is refused or read, as it is and under a right checksum, and what is read is written and read
/// again as the same, and can be shown.
pub fn snapshot(data: &[u8]) {
    check(data.to_vec());
    check(Snapshot::seal(data));
}

fn check(file: Vec<u8>) {
    let Ok(read) = Snapshot::decode(file) else {
        return;
    };
    assert_eq!(Snapshot::decode(read.encode()).ok().as_ref(), Some(&read));
    let part = ServerPart::prepare(&read.server, read.offers, &|_, _| true);
    assert!(part.problems().messages.len() <= part.problems().count);
}
