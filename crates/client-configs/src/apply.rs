//! Applies a plan, after a backup.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::files::{self, Target};
use crate::plan::{Action, Plan};

/// The most names that are tried for a backup.
const ATTEMPTS: u64 = 1000;

/// The result of [`apply`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The file that was written, with links resolved; `None` if there was nothing to do.
    pub written: Option<PathBuf>,
    /// The backup of its previous content; `None` if the file did not exist.
    pub backup: Option<PathBuf>,
}

/// The manifest of a backup.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) client: String,
    pub(crate) action: Action,
    /// The name of the gateway's entry.
    pub(crate) name: String,
    /// The program that the entry starts.
    pub(crate) program: PathBuf,
    pub(crate) file: PathBuf,
    /// File name of the backup beside the manifest; `None` if the file did not exist.
    pub(crate) backup: Option<String>,
    /// The ID of the token that was created for the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// The places of the servers that were removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) moved: Vec<Vec<String>>,
    /// Fingerprint of the text after the change, to detect later changes.
    pub(crate) after: Fingerprint,
}

/// Applies a plan, unless the file has changed since the plan was made. First writes a backup of the
/// file, with a manifest for [`undo`](crate::undo).
pub fn apply(plan: &Plan, backups: &Path) -> Result<Applied, Error> {
    if !plan.changed {
        return Ok(Applied {
            written: None,
            backup: None,
        });
    }
    let target = Target::new(&plan.file, plan.before.as_deref())?;
    target.check()?;
    let backup = keep(plan, &target.file, backups)?;
    // The client may have written its file while the backup was made.
    target.replace(&plan.after)?;
    Ok(Applied {
        written: Some(target.file),
        backup,
    })
}

fn keep(plan: &Plan, file: &Path, backups: &Path) -> Result<Option<PathBuf>, Error> {
    let id = free_id(backups, plan.client.name())?;
    let backup = match &plan.before {
        Some(before) => Some(copy(before, file, backups, &id)?),
        None => None,
    };
    let manifest = Manifest {
        client: plan.client.name().to_owned(),
        action: plan.action,
        name: plan.gateway.name.clone(),
        program: plan.gateway.program.clone(),
        file: file.to_owned(),
        backup: backup.clone(),
        token: plan.token.clone(),
        moved: plan.moved.clone(),
        after: Fingerprint::of(&plan.after),
    };
    let note = backups.join(format!("{id}.json"));
    let text = serde_json::to_string_pretty(&manifest).map_err(|source| Error::Manifest {
        file: note.clone(),
        source,
    })?;
    files::write_new(&note, &text).map_err(Error::io("write", &note))?;
    Ok(backup.map(|name| backups.join(name)))
}

/// Copies the text of a file to the backup folder. Only the user can read the copy, because a server that was
/// moved leaves its keys there.
pub(crate) fn copy(text: &str, file: &Path, backups: &Path, id: &str) -> Result<String, Error> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("{id}-{}", name.trim_start_matches('.'));
    let copy = backups.join(&name);
    files::write_new(&copy, text).map_err(Error::io("write", &copy))?;
    Ok(name)
}

/// An unused name for a backup. Names sort by time.
pub(crate) fn free_id(backups: &Path, client: &str) -> Result<String, Error> {
    switchboard_files::create_dir(backups).map_err(Error::io("create", backups))?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let taken = |id: &String| {
        fs::read_dir(backups).is_ok_and(|entries| {
            entries.flatten().any(|entry| {
                let name = entry.file_name();
                name.to_string_lossy().starts_with(id.as_str())
            })
        })
    };
    // Two changes within one millisecond need distinct names in the right order.
    (0..ATTEMPTS)
        .map(|later| stamp(now + Duration::from_millis(later)))
        .find(|stamp| !taken(stamp))
        .map(|stamp| format!("{stamp}-{client}"))
        .ok_or_else(|| Error::Unfit {
            file: backups.to_owned(),
            why: "has no free name for another backup",
            fix: Some("move some backups away"),
        })
}

/// Formats a time as `20261115T052233.123Z`.
fn stamp(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // The calendar repeats every 400 years. Years that start in March have the leap day last.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!(
        "{:04}{month:02}{day:02}T{:02}{:02}{:02}.{:03}Z",
        era * 400 + year + next,
        second / 3600,
        second / 60 % 60,
        second % 60,
        since_1970.subsec_millis()
    )
}

/// A fingerprint of a text, to detect changes. It protects against accidents, not against forgery: an
/// attacker who can forge the text can change the file anyway.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    bytes: usize,
    /// FNV-1a, 64 bits.
    hash: String,
}

impl Fingerprint {
    pub(crate) fn of(text: &str) -> Self {
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self {
            bytes: text.len(),
            hash: format!("{hash:016x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_calendar_times() {
        for (millis, expected) in [
            (0, "19700101T000000.000Z"),
            (951_782_399_999, "20000228T235959.999Z"),
            (951_782_400_000, "20000229T000000.000Z"),
            (1_794_720_153_120, "20261115T052233.120Z"),
        ] {
            assert_eq!(stamp(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn fingerprint_matches_published_fnv_values() {
        assert_eq!(Fingerprint::of("").hash, "cbf29ce484222325");
        assert_eq!(Fingerprint::of("foobar").hash, "85944171f73967e8");
    }
}
