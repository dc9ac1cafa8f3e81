//! The gateway's folders and files.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access, access, statvfs},
    process::{Pid, Resource, getrlimit, test_kill_process},
};
use serde::Deserialize;
use switchboard_config::{Config, Home};

use super::{super::words::count, Finding};

/// Free space below which the store and the logs are about to fail, in bytes.
const SPACE_NEEDED: u64 = 64 * 1024 * 1024;
/// Free space below which the user is warned, in bytes.
const SPACE_WANTED: u64 = 512 * 1024 * 1024;
/// Entries of the audit log from which archiving is advised.
const AUDIT_ENTRIES: u64 = 100_000;
/// Open files below which the gateway turns connections away early.
const DESCRIPTORS_WANTED: u64 = 8_192;
/// The most records that are read.
const RECORDS: usize = 10_000;
/// The largest record that is read, in bytes; real ones are far smaller.
const RECORD_BYTES: u64 = 64 * 1024;

pub(super) fn look(home: &Home, gateway_runs: bool) -> Vec<Finding> {
    let logs = home.logs();
    let data = logs.parent().unwrap_or(&logs).to_owned();
    let mut findings = Vec::new();
    findings.push(folders(home, &data));
    findings.push(space(&data));
    findings.extend(token(home));
    findings.extend(files(home));
    findings.push(descriptors());
    findings.push(snapshots(home));
    findings.extend(audit(home));
    findings.push(records(home, gateway_runs));
    findings
}

/// Checks all folders that the gateway needs: they exist or can be created, are writable, and are closed to
/// others.
fn folders(home: &Home, data: &Path) -> Finding {
    let check = "home";
    let config = home.config_file().parent().unwrap_or(Path::new("/"));
    let folders = [
        config.to_owned(),
        data.to_owned(),
        home.logs(),
        home.catalog(),
        home.run(),
        home.secrets(),
    ];
    for folder in &folders {
        let there = nearest(folder);
        let shown = there.display();
        if !there.is_dir() {
            let fix = "move it away, or choose another directory with --home";
            return Finding::problem(check, format!("{shown} is not a directory"), fix);
        }
        if access(&there, Access::WRITE_OK | Access::EXEC_OK).is_err() {
            let fix =
                format!("run `chmod u+rwx '{shown}'`, or choose another directory with --home");
            return Finding::problem(check, format!("{shown} is not writable"), fix);
        }
    }
    for (folder, forbidden, mode) in [
        (home.run(), 0o077, 700),
        (home.secrets(), 0o077, 700),
        (data.to_owned(), 0o022, 700),
        (home.logs(), 0o022, 700),
    ] {
        if mode_of(&folder).is_some_and(|now| now & forbidden != 0) {
            let shown = folder.display();
            return Finding::problem(
                check,
                format!("other users can access {shown}"),
                format!("run `chmod {mode} '{shown}'`"),
            );
        }
    }
    let shown = data.display();
    if data.is_dir() {
        Finding::ok(check, format!("{shown} is writable and private"))
    } else {
        Finding::ok(check, format!("{shown} is created when it is needed"))
    }
}

fn space(data: &Path) -> Finding {
    let check = "disk";
    let there = nearest(data);
    let shown = there.display();
    let Ok(about) = statvfs(&there) else {
        let fix = "check it with `df`";
        return Finding::warning(
            check,
            format!("cannot determine the free space of {shown}"),
            fix,
        );
    };
    let left = about.f_bavail.saturating_mul(about.f_frsize);
    let message = match left / (1024 * 1024) {
        mib @ ..10_240 => format!("{mib} MiB free in {shown}"),
        mib => format!("{} GiB free in {shown}", mib / 1024),
    };
    let fix = "free some space, or choose another directory with --home";
    match left {
        ..SPACE_NEEDED => Finding::problem(check, message, fix),
        SPACE_NEEDED..SPACE_WANTED => Finding::warning(check, message, fix),
        _ => Finding::ok(check, message),
    }
}

fn token(home: &Home) -> Option<Finding> {
    let file = home.token_file();
    let mode = mode_of(&file)?;
    let shown = file.display();
    Some(if mode & 0o077 != 0 {
        let message = format!("other users can read {shown} (mode {mode:o})");
        let fix = format!(
            "run `chmod 600 '{shown}'`; if another user may have read it, delete it and restart the gateway, which creates a new one"
        );
        Finding::problem("token", message, fix)
    } else {
        Finding::ok("token", format!("{shown} is private"))
    })
}

/// Checks the modes of the files that hold secrets, or that name programs to run.
fn files(home: &Home) -> Vec<Finding> {
    let mut findings = Vec::new();
    let config = home.config_file();
    let shown = config.display();
    if let Ok(found) = switchboard_files::access(config) {
        if found.is_group_writable() {
            findings.push(Finding::warning(
                "config",
                format!(
                    "the group can change {shown}, which names programs to run (mode {:o})",
                    found.mode
                ),
                format!("run `chmod g-w '{shown}'`"),
            ));
        }
        let in_clear = Config::load(config).map_or(0, |config| config.clear_secrets().len());
        if in_clear > 0 {
            let secrets = count(in_clear as u64, "secret", "secrets");
            let message = format!("{shown} contains {secrets} in plain text");
            let fix = "store each with `switchboard secret set NAME` and write ${secret:NAME} in its place";
            findings.push(if found.is_open() {
                Finding::problem(
                    "config",
                    format!(
                        "{message}, and other users can read it (mode {:o})",
                        found.mode
                    ),
                    format!("run `chmod 600 '{shown}'`; {fix}"),
                )
            } else {
                Finding::warning("config", message, fix)
            });
        }
    }
    let secrets = fs::read_dir(home.secrets()).into_iter().flatten().flatten();
    let secrets = secrets.take(RECORDS).map(|entry| entry.path());
    let private = [home.database(), home.seal_key(), home.rules()];
    for file in private.into_iter().chain(secrets) {
        if file.is_symlink() {
            // Changing the mode of the link would change the file behind it.
            findings.push(Finding::problem(
                "files",
                format!("{} is a symbolic link", file.display()),
                "replace it with a regular file with mode 600",
            ));
            continue;
        }
        let Some(mode) = mode_of(&file).filter(|mode| mode & 0o077 != 0) else {
            continue;
        };
        let shown = file.display();
        findings.push(Finding::problem(
            "files",
            format!("other users can access {shown} (mode {mode:o})"),
            format!("run `chmod 600 '{shown}'`"),
        ));
    }
    findings
}

/// Checks the limit of open files: each client and each server takes some.
fn descriptors() -> Finding {
    let check = "descriptors";
    let most = getrlimit(Resource::Nofile).maximum;
    match most.filter(|most| *most < DESCRIPTORS_WANTED) {
        None => Finding::ok(check, "the limit on open files is high enough"),
        Some(most) => Finding::warning(
            check,
            format!("the limit of {most} open files restricts the number of clients and servers"),
            format!(
                "raise the hard limit to {DESCRIPTORS_WANTED} (`ulimit -Hn`, limits.conf or LimitNOFILE)"
            ),
        ),
    }
}

fn snapshots(home: &Home) -> Finding {
    let check = "catalog";
    let (read, failed) = switchboard_catalog::load_all(&home.catalog());
    match failed.first() {
        None => Finding::ok(
            check,
            format!("the definitions of {} are cached", servers(read.len())),
        ),
        Some((file, error)) => Finding::warning(
            check,
            format!(
                "{} of the cached files cannot be read: {}: {error}",
                failed.len(),
                file.display()
            ),
            format!(
                "delete '{}'; the gateway lists the server again",
                file.display()
            ),
        ),
    }
}

/// Finds an audit log that is long enough to be archived.
fn audit(home: &Home) -> Option<Finding> {
    let file = home.database();
    // Other checks report problems with the file.
    let entries = file
        .exists()
        .then(|| switchboard_store::length(&file).ok())??;
    (entries >= AUDIT_ENTRIES).then(|| {
        let message = format!("the audit log has {entries} entries");
        let fix = "move the oldest to a file with `switchboard audit archive FILE --before DATE`";
        Finding::warning("audit", message, fix)
    })
}

fn servers(count: usize) -> String {
    match count {
        1 => "1 server".to_owned(),
        many => format!("{many} servers"),
    }
}

/// The part of a server's record that is needed here.
#[derive(Deserialize)]
struct Record {
    name: String,
    guard: Guard,
}

#[derive(Deserialize)]
struct Guard {
    pid: i32,
}

/// Finds records of servers whose guards are dead: both the guard and the gateway were killed.
fn records(home: &Home, gateway_runs: bool) -> Finding {
    let check = "leftovers";
    let entries = match fs::read_dir(home.groups()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Finding::ok(check, "no orphaned server processes");
        }
        Err(error) => {
            let shown = home.groups();
            let shown = shown.display();
            return Finding::problem(
                check,
                format!("cannot read {shown}: {error}"),
                format!("run `chmod 700 '{shown}'`"),
            );
        }
    };
    let records = entries
        .flatten()
        .take(RECORDS)
        .filter_map(|entry| read_record(&entry.path()));
    let (live, dead): (Vec<_>, Vec<_>) = records.partition(|record| is_alive(record.guard.pid));
    if let Some(record) = dead.first() {
        return Finding::problem(
            check,
            format!(
                "the guard of `{}` was killed, and processes of the server may still be running",
                record.name
            ),
            if gateway_runs {
                "run `switchboard stop` and `switchboard serve`; the new gateway ends leftover processes"
            } else {
                "run `switchboard serve`; the new gateway ends leftover processes"
            },
        );
    }
    match live.first() {
        Some(record) if !gateway_runs => Finding::warning(
            check,
            format!(
                "the guard of `{}` is still running without a gateway",
                record.name
            ),
            "check again in a few seconds; the guard ends the server and exits by itself",
        ),
        _ => Finding::ok(check, "no orphaned server processes"),
    }
}

fn read_record(file: &Path) -> Option<Record> {
    let about = fs::symlink_metadata(file).ok()?;
    let is_record = file.extension().is_some_and(|ending| ending == "json");
    if !is_record || !about.is_file() || about.len() > RECORD_BYTES {
        return None;
    }
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

fn is_alive(pid: i32) -> bool {
    match Pid::from_raw(pid) {
        // A process that may not be signalled still exists.
        Some(pid) => !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)),
        None => false,
    }
}

fn mode_of(path: &Path) -> Option<u32> {
    Some(fs::metadata(path).ok()?.permissions().mode() & 0o777)
}

/// The folder, or its nearest ancestor that exists.
fn nearest(folder: &Path) -> PathBuf {
    let there = folder
        .ancestors()
        .find(|path| path.symlink_metadata().is_ok());
    there.unwrap_or(Path::new("/")).to_owned()
}
