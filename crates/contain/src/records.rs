//! Records of the running servers on disk, so that a later gateway can find the processes that are left
//! if this one and a guard are killed.
//!
//! A record does not need to be trusted: it is believed only about processes that have the recorded
//! start times, and it names no command to run.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use switchboard_files::{Draft, Durability, Links};

use crate::{
    instance::{Marker, Token},
    process::Identity,
};

/// One running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) marker: Marker,
    /// The boot and PID namespace in which the PIDs are valid.
    pub(crate) boot: String,
    pub(crate) guard: Identity,
    /// The server's first process, which leads its group. `None` until it starts.
    pub(crate) leader: Option<Identity>,
    /// The container's name, if it runs in one.
    pub(crate) container: Option<String>,
}

/// A record in its file format.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    name: String,
    marker: String,
    boot: String,
    guard: Identity,
    leader: Option<Identity>,
    container: Option<String>,
}

const VERSION: u32 = 1;
/// The largest file that is read. A record is far smaller.
const RECORD_BYTES: u64 = 64 * 1024;
/// The most files that are examined. No machine runs as many servers.
const RECORDS: usize = 10_000;

/// The content of a directory of records.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) records: Vec<Record>,
    /// Files that are not valid records.
    pub(crate) damaged: Vec<PathBuf>,
}

impl Record {
    /// Writes the record, replacing an earlier version.
    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        let written = Written {
            version: VERSION,
            name: self.name.clone(),
            marker: self.marker.to_string(),
            boot: self.boot.clone(),
            guard: self.guard,
            leader: self.leader,
            container: self.container.clone(),
        };
        let text = serde_json::to_vec(&written)?;
        let path = path(dir, &self.marker.token);
        let mut draft = Draft::beside(&path)?;
        draft.write_all(&text)?;
        // The record need not survive a power failure, because no process of the server does either.
        draft.place(Durability::Eventual)
    }

    /// Reads a record, if its file is valid.
    fn read(file: &Path) -> Option<Self> {
        // Symbolic links are refused, and so are pipes, which would block.
        let text = switchboard_files::read(file, RECORD_BYTES, Links::Refuse).ok()?;
        let written: Written = serde_json::from_slice(&text).ok()?;
        let marker = Marker::parse(&written.marker)?;
        let named_right = file.file_stem()?.to_str()? == marker.token.as_str();
        let pids_right = [Some(written.guard), written.leader]
            .into_iter()
            .flatten()
            .all(|process| process.pid > 1);
        let container_right = written.container.as_ref().is_none_or(|container| {
            container.starts_with(&format!("switchboard-{}-", marker.instance))
                && container.ends_with(&format!("-{}", marker.token.as_str()))
        });
        let right = named_right && pids_right && container_right;
        (written.version == VERSION && right).then_some(Self {
            name: written.name,
            marker,
            boot: written.boot,
            guard: written.guard,
            leader: written.leader,
            container: written.container,
        })
    }
}

/// Creates the directory, accessible to this user only.
pub(crate) fn create(dir: &Path) -> io::Result<()> {
    switchboard_files::create_dir(dir)
}

/// Removes a record, if it exists.
pub(crate) fn remove(dir: &Path, token: &Token) {
    let _ = fs::remove_file(path(dir, token));
}

/// The record of one server, if there is one.
pub(crate) fn find(dir: &Path, token: &Token) -> Option<Record> {
    Record::read(&path(dir, token))
}

/// All records.
pub(crate) fn read(dir: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    for entry in entries.take(RECORDS) {
        let file = entry?.path();
        // The directory may contain other files, and drafts of running guards.
        if file.extension().is_none_or(|kind| kind != "json") || file.is_dir() {
            continue;
        }
        match Record::read(&file) {
            Some(record) => found.records.push(record),
            None => found.damaged.push(file),
        }
    }
    Ok(found)
}

fn path(dir: &Path, token: &Token) -> PathBuf {
    dir.join(format!("{}.json", token.as_str()))
}

/// Identifies this boot and, within it, this PID namespace: a restarted container has the same boot but
/// other processes.
#[cfg(target_os = "linux")]
pub(crate) fn boot() -> io::Result<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let pids = fs::read_link("/proc/self/ns/pid")?;
    Ok(format!("{} {}", boot.trim(), pids.display()))
}

/// Where start times cannot be read, no process ever matches a record, so the boot does not matter.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it is read")]
pub(crate) fn boot() -> io::Result<String> {
    Ok(String::new())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn record() -> Record {
        Record {
            name: "files".into(),
            marker: Marker {
                instance: "main".parse().unwrap(),
                token: Token::random().unwrap(),
            },
            boot: boot().unwrap(),
            guard: Identity {
                pid: 100,
                started: 7,
            },
            leader: None,
            container: None,
        }
    }

    #[test]
    fn record_survives_a_round_trip() {
        let dir = tempfile::tempdir().unwrap();
        let records = dir.path().join("run/groups");
        assert!(read(&records).unwrap().records.is_empty());
        create(&records).unwrap();
        create(&records).unwrap();
        let mut record = record();
        record.write(&records).unwrap();
        record.leader = Some(Identity {
            pid: 101,
            started: 8,
        });
        let token = record.marker.token.as_str();
        record.container = Some(format!("switchboard-main-files-{token}"));
        record.write(&records).unwrap();
        let found = read(&records).unwrap();
        assert_eq!(found.records, [record.clone()]);
        assert!(found.damaged.is_empty());
        assert_eq!(find(&records, &record.marker.token), Some(record.clone()));
        remove(&records, &record.marker.token);
        remove(&records, &record.marker.token);
        assert_eq!(find(&records, &record.marker.token), None);
        assert!(read(&records).unwrap().records.is_empty());
    }

    #[test]
    fn invalid_records_count_as_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let records = dir.path();
        let good = record();
        good.write(records).unwrap();
        let text = fs::read_to_string(path(records, &good.marker.token)).unwrap();
        // A valid record under another name, in another format, through a link, for all processes.
        let other = Token::random().unwrap();
        fs::write(path(records, &other), &text).unwrap();
        let other = record();
        let file = |name: &str| records.join(name);
        fs::write(
            path(records, &other.marker.token),
            text.replace(good.marker.token.as_str(), other.marker.token.as_str())
                .replace("\"pid\":100", "\"pid\":-1"),
        )
        .unwrap();
        symlink(path(records, &good.marker.token), file("link.json")).unwrap();
        fs::create_dir(file("dir.json")).unwrap();
        fs::write(file("letter.txt"), "not ours").unwrap();
        fs::write(file("empty.json"), "").unwrap();
        fs::write(file("large.json"), vec![b' '; 1 << 20]).unwrap();
        fs::write(file("deep.json"), "[".repeat(60_000)).unwrap();
        let found = read(records).unwrap();
        assert_eq!(found.records, [good]);
        assert_eq!(found.damaged.len(), 6, "{:?}", found.damaged);
    }
}
