//! Snapshots of catalogues in files.

use switchboard_catalog::{Presented, ServerPart, Snapshot};

/// Any file is either rejected or read, as it is and with a valid checksum. A snapshot that was read survives
/// a round trip, and can be shown.
pub fn snapshot(data: &[u8]) {
    check(data.to_vec());
    check(Snapshot::seal(data));
}

fn check(file: Vec<u8>) {
    let Ok(read) = Snapshot::decode(file) else {
        return;
    };
    assert_eq!(Snapshot::decode(read.encode()).ok().as_ref(), Some(&read));
    let part = ServerPart::prepare(&read.server, read.offers, &|_, _, _| Presented::Unchanged);
    assert!(part.problems().messages.len() <= part.problems().count);
}
