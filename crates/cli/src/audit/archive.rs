//! `switchboard audit archive`: moves the oldest part of the log to a file, and checks archives together with
//! the log.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead as _, BufReader, BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use clap::Args;
use serde::Deserialize;
use switchboard_config::Home;
use switchboard_host::runtime::Lock;
use switchboard_store::{Anchor, Audited};
use switchboard_terminal::{error::Error, print};
use switchboard_text::hex;
use switchboard_wire::Raw;

use super::{Entry, cannot, cannot_make, failure, log_of};
use crate::words::count;

/// Move entries of the audit log to a file.
///
/// The file has the format of `audit export`. The log keeps the number and the hash of the last entry that
/// was moved: `audit verify` continues from there, and `audit verify --archive FILE` checks both.
#[derive(Debug, Args)]
pub(super) struct Archive {
    /// File to create
    file: PathBuf,
    /// Only entries before this day or time (UTC); all entries if omitted
    #[arg(long, value_name = "TIME", value_parser = moment)]
    before: Option<SystemTime>,
}

fn moment(text: &str) -> Result<SystemTime, String> {
    let day = || {
        text.parse::<jiff::civil::Date>()?
            .to_zoned(jiff::tz::TimeZone::UTC)
    };
    let time = text
        .parse::<jiff::Timestamp>()
        .or_else(|_| day().map(|day| day.timestamp()));
    time.map(SystemTime::from).map_err(|_| {
        "expected a date such as 2026-11-01, or a time such as 2026-11-01T12:00:00Z".to_owned()
    })
}

/// The longest line of an archive, in bytes.
const LINE_BYTES: u64 = 64 << 20;

pub(super) fn run(home: &Home, args: &Archive) -> Result<(), Error> {
    let log = log_of(home)?;
    let began = switchboard_store::anchor(&log).map_err(|error| failure(&error))?;
    let path = &args.file;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| cannot_make(path, &error))?;
    let moved = write(&log, &file, began, args.before).and_then(|until| {
        // The file and its name have to be on disk before any entry is removed.
        file.sync_all()?;
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(until)
    });
    let until = match moved {
        Ok(until) if until.seq > began.seq => until,
        other => {
            // No entry was removed from the log.
            let _ = std::fs::remove_file(path);
            other?;
            print::say("there are no entries to archive");
            return Ok(());
        }
    };
    if !switchboard_store::forget_archived(&log, &until).map_err(|error| failure(&error))? {
        return Err(Error::new("the audit log changed while it was archived")
            .hint("compare the file with the archive that another command made at the same time"));
    }
    // Shrinking locks the file for as long as a copy takes.
    let is_shrunk = !Lock::is_held(home) && switchboard_store::shrink(&log).is_ok();
    print::say(&format!(
        "moved {} to {}\nlast moved  {}:{}",
        count(until.seq - began.seq, "entry", "entries"),
        path.display(),
        until.seq,
        hex::encode(&until.hash)
    ));
    if !is_shrunk {
        print::hint(
            "the database file shrinks only if you archive while no gateway is running: `switchboard stop`",
        );
    }
    Ok(())
}

/// Writes the entries to the file, each checked, and returns the last one.
fn write(
    log: &Path,
    file: &File,
    began: Anchor,
    before: Option<SystemTime>,
) -> Result<Anchor, Error> {
    let mut to = BufWriter::new(file);
    let mut until = began;
    let mut broken = None;
    let walked = switchboard_store::export(log, began.seq, |audited| {
        if before.is_some_and(|before| audited.entry.at >= before) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if audited.seq != until.seq + 1 || !audited.follows(&until.hash) {
            broken = Some(until.seq + 1);
            return Err(io::ErrorKind::Interrupted.into());
        }
        let line = serde_json::to_string(&Entry::new(&audited))?;
        to.write_all(line.replace(['\r', '\n'], " ").as_bytes())?;
        to.write_all(b"\n")?;
        until = Anchor {
            seq: audited.seq,
            hash: audited.hash,
        };
        Ok(())
    });
    if let Some(seq) = broken {
        return Err(Error::new(format!("the log is broken at entry {seq}"))
            .hint("run `switchboard audit verify` for details; nothing was moved"));
    }
    match walked {
        Err(switchboard_store::StoreError::Export(error))
            if error.kind() == io::ErrorKind::Interrupted => {}
        walked => walked.map_err(|error| failure(&error))?,
    }
    to.flush()?;
    Ok(until)
}

/// A line of an archive.
#[derive(Deserialize)]
struct Line {
    seq: u64,
    at: String,
    what: String,
    subject: String,
    body: Raw,
    text: Option<String>,
    hash: String,
}

/// Checks archives, oldest first: each on its own, against the one before it, and against the log.
pub(super) fn check(log: &Path, archives: &[PathBuf]) -> Result<(), Error> {
    if archives.is_empty() {
        return Ok(());
    }
    let anchor = switchboard_store::anchor(log).map_err(|error| failure(&error))?;
    // The hash of every entry, starting with that of the anchor before the first.
    let mut hashes = vec![Anchor::default().hash];
    for path in archives {
        let file = File::open(path).map_err(|error| cannot("read", path, &error))?;
        let mut lines = BufReader::new(file);
        loop {
            let mut line = String::new();
            let read = io::Read::take(&mut lines, LINE_BYTES).read_line(&mut line)?;
            if read == 0 {
                break;
            }
            let next = hashes.len();
            let wrong = |at: usize, why: &str| {
                Error::new(format!("{} is broken at entry {at}: {why}", path.display()))
                    .hint("pass all archives of the log, unchanged and oldest first")
            };
            let audited = parse(&line).ok_or_else(|| wrong(next, "the line is invalid"))?;
            let seq = usize::try_from(audited.seq).unwrap_or(usize::MAX);
            let before = seq.checked_sub(1).and_then(|before| hashes.get(before));
            let Some(before) = before else {
                let why = format!("entry {} is in its place", audited.seq);
                return Err(wrong(next, &why));
            };
            // An archive that was interrupted may contain entries that the next one contains again.
            let known = hashes.get(seq);
            if !audited.follows(before) || known.is_some_and(|known| *known != audited.hash) {
                return Err(wrong(seq, "this entry, or an earlier one, was changed"));
            }
            if known.is_none() {
                hashes.push(audited.hash);
            }
        }
    }
    let at_anchor = usize::try_from(anchor.seq)
        .ok()
        .and_then(|seq| hashes.get(seq));
    let Some(at_anchor) = at_anchor else {
        return Err(Error::new(format!(
            "entries {} to {} are in none of these archives",
            hashes.len(),
            anchor.seq
        ))
        .hint("pass all archives of the log, oldest first"));
    };
    if *at_anchor != anchor.hash {
        return Err(Error::new(format!(
            "the audit log does not continue the archives: entry {} has a different hash",
            anchor.seq
        ))
        .hint("check that the archives belong to this log and are unchanged"));
    }
    Ok(())
}

fn parse(line: &str) -> Option<Audited> {
    let line: Line = serde_json::from_str(line).ok()?;
    let body = line.text.unwrap_or_else(|| line.body.as_str().to_owned());
    let hash = hex::decode(&line.hash)?;
    Some(Audited {
        seq: line.seq,
        entry: switchboard_store::Entry {
            at: line.at.parse::<jiff::Timestamp>().ok()?.into(),
            what: line.what.into(),
            subject: line.subject.into(),
            body: body.into(),
        },
        hash,
    })
}
