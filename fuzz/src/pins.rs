//! Pins of approved definitions, read from files.

use switchboard_trust::{Pins, Policy};

/// Any file is either rejected or read, as it is and with a valid checksum, and pins that were read survive a
/// round trip.
pub fn pins(data: &[u8]) {
    check(data);
    for version in [1, 2] {
        check(&Pins::seal(version, data));
    }
}

fn check(file: &[u8]) {
    let Ok(mut read) = Pins::decode(file) else {
        return;
    };
    assert_eq!(Pins::decode(&read.encode()).ok().as_ref(), Some(&read));
    // All definitions vanish, and a second check finds nothing new.
    let none: [&switchboard_wire::Raw; 0] = [];
    read.judge(Policy::First, none, 1);
    assert!(!read.judge(Policy::First, none, 2).changed);
    assert_eq!(read.held().count(), 0);
    assert_eq!(Pins::decode(&read.encode()).ok(), Some(read));
}
