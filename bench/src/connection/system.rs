//! Measurements of this process by the operating system. Linux only; `None` elsewhere.

use std::{fs, time::Duration};

/// CPU time of all live threads. Unlike wall-clock time, it does not include other programs.
pub(super) fn cpu_time() -> Option<Duration> {
    let mut nanos = 0;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let times = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        nanos += times.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(nanos))
}

/// Resident memory, in KiB.
pub(super) fn resident_kib() -> Option<u32> {
    // The figures in `status` lag behind; these are counted when they are read.
    let sizes = fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = sizes.lines().find_map(|line| line.strip_prefix("Rss:"))?;
    line.split_whitespace().next()?.parse().ok()
}
