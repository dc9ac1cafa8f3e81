//! The annotations of a tool, and the extent to which they are believed.
//!
//! Annotations come from the server that the rules protect against. A missing one means the worst. One that
//! makes a tool look harmless is not believed if the name of the tool contradicts it, or contains characters
//! other than ASCII.

use serde::{Deserialize, Serialize};

use switchboard_redact::words::words;

/// The annotations of a tool, as its server gave them; in a rule, the ones that it requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hints {
    /// The tool changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The tool may destroy existing data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// A repeated call has no further effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// The tool reaches beyond this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// The properties that a tool is assumed to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four facts that the protocol names, none of which follows from the others"
)]
pub struct Believed {
    /// The tool changes nothing.
    pub read_only: bool,
    /// The tool may destroy existing data.
    pub destructive: bool,
    /// A repeated call has no further effect.
    pub idempotent: bool,
    /// The tool reaches beyond this machine.
    pub open_world: bool,
}

impl Hints {
    /// The properties that a tool of this name is assumed to have. The annotations of the `owner` are believed.
    pub fn believed(self, tool: &str, owner: Self) -> Believed {
        let told = Telling::of(tool);
        // A tool that claims to be both read-only and destructive is not believed.
        let read_only = self.read_only == Some(true)
            && self.destructive != Some(true)
            && owner.destructive != Some(true)
            && told == Telling::Nothing;
        let read_only = owner.read_only.unwrap_or(read_only);
        let spared = self.destructive == Some(false) && told != Telling::Destroys;
        let destructive = owner.destructive.unwrap_or(!read_only && !spared);
        let idempotent = self.idempotent == Some(true) || read_only;
        Believed {
            read_only,
            destructive,
            idempotent: owner.idempotent.unwrap_or(idempotent),
            open_world: owner.open_world.unwrap_or(self.open_world != Some(false)),
        }
    }

    /// Tests if all required annotations hold.
    pub(crate) fn hold(self, believed: Believed) -> bool {
        [
            (self.read_only, believed.read_only),
            (self.destructive, believed.destructive),
            (self.idempotent, believed.idempotent),
            (self.open_world, believed.open_world),
        ]
        .iter()
        .all(|(wanted, is)| wanted.is_none_or(|wanted| wanted == *is))
    }

    /// The number of annotations that are set.
    pub(crate) fn count(self) -> usize {
        let all = [
            self.read_only,
            self.destructive,
            self.idempotent,
            self.open_world,
        ];
        all.iter().flatten().count()
    }
}

/// The effect that the name of a tool suggests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Telling {
    Nothing,
    Writes,
    Destroys,
}

/// Words that suggest destruction anywhere in a name.
const DESTROY: &[&str] = &[
    "delete",
    "del",
    "remove",
    "rm",
    "rmdir",
    "drop",
    "destroy",
    "erase",
    "wipe",
    "purge",
    "prune",
    "truncate",
    "overwrite",
    "unlink",
    "uninstall",
    "kill",
    "terminate",
    "shutdown",
    "reboot",
    "revoke",
    "shred",
    "exec",
    "execute",
    "eval",
    "shell",
    "bash",
    "powershell",
    "cmd",
    "sudo",
    "spawn",
    "write",
    "send",
    "replace",
    "transfer",
    "pay",
    "purchase",
    "refund",
    "withdraw",
    "deploy",
    "reset",
    "rollback",
    "revert",
    "discard",
    "disable",
    "ban",
    "cancel",
    "move",
    "mv",
    "chmod",
    "chown",
    "format",
    "clear",
];

/// Words that are nouns as often as verbs, so that they count only at the beginning: `run_query`, but not
/// `list_run_ids`.
const DESTROY_FIRST: &[&str] = &[
    "run", "update", "set", "put", "patch", "sync", "stop", "restore",
];

/// Words of tools that add something.
const WRITE: &[&str] = &[
    "create",
    "insert",
    "append",
    "upload",
    "publish",
    "modify",
    "edit",
    "save",
    "rename",
    "install",
    "upsert",
    "submit",
    "enable",
    "grant",
    "invite",
    "subscribe",
    "unsubscribe",
    "mkdir",
];

/// Such words that count only at the beginning.
const WRITE_FIRST: &[&str] = &[
    "add", "post", "make", "new", "commit", "push", "merge", "start", "restart", "assign",
    "change", "book", "order", "buy", "reply", "comment", "share", "apply", "copy", "import",
    "register", "store", "schedule", "trigger", "close", "open", "fork", "click", "type", "press",
    "fill", "mark", "call",
];

/// Words that also count if the next one follows without a separator.
const JOINED: &[&str] = &[
    "delete",
    "remove",
    "destroy",
    "overwrite",
    "uninstall",
    "terminate",
    "execute",
];

impl Telling {
    fn of(tool: &str) -> Self {
        // `delete` with a letter of another alphabet looks the same to a person.
        if !tool.is_ascii() {
            return Self::Destroys;
        }
        let words = words(tool);
        let has = |list: &[&str]| words.iter().any(|word| list.contains(&&**word));
        let begins = |list: &[&str]| words.first().is_some_and(|word| list.contains(&&**word));
        let joined = |word: &String| {
            let rest = JOINED.iter().find_map(|stem| word.strip_prefix(stem));
            // `deleted_files` are files that were deleted.
            rest.is_some_and(|rest| !matches!(rest, "d" | "r" | "rs"))
        };
        if has(DESTROY) || begins(DESTROY_FIRST) || words.iter().any(joined) {
            Self::Destroys
        } else if has(WRITE) || begins(WRITE_FIRST) {
            Self::Writes
        } else {
            Self::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn believed(tool: &str, read_only: Option<bool>, destructive: Option<bool>) -> (bool, bool) {
        let hints = Hints {
            read_only,
            destructive,
            ..Hints::default()
        };
        let believed = hints.believed(tool, Hints::default());
        (believed.read_only, believed.destructive)
    }

    #[test]
    fn missing_hints_mean_the_worst() {
        assert_eq!(believed("look", None, None), (false, true));
        let worst = Hints::default().believed("look", Hints::default());
        assert!(!worst.idempotent && worst.open_world);
    }

    #[test]
    fn hints_are_believed_unless_the_name_contradicts() {
        for (tool, read_only, destructive) in [
            ("read_file", true, false),
            ("list_deleted_files", true, false),
            ("list_run_ids", true, false),
            ("get_posts", true, false),
            ("delete_file", false, true),
            ("deleteFile", false, true),
            ("deletefile", false, true),
            ("FileDELETE", false, true),
            ("get_and_remove", false, true),
            ("run_query", false, true),
            ("send-mail", false, true),
            ("kill9", false, true),
            ("d\u{435}lete", false, true),
            ("create_issue", false, false),
            ("add_note", false, false),
        ] {
            let found = believed(tool, Some(true), Some(false));
            assert_eq!(found, (read_only, destructive), "{tool}");
        }
        assert_eq!(believed("read", Some(true), Some(true)), (false, true));
        assert_eq!(believed("read", Some(true), None), (true, false));
        assert_eq!(believed("read", Some(false), Some(false)), (false, false));
    }

    #[test]
    fn hints_of_the_owner_are_believed() {
        let hints = |read_only, destructive| Hints {
            read_only,
            destructive,
            ..Hints::default()
        };
        let says = hints(Some(true), None);
        for (owner, expected) in [
            (hints(Some(true), None), (true, false)),
            (hints(None, Some(false)), (false, false)),
            (hints(Some(false), None), (false, true)),
        ] {
            let found = says.believed("delete_file", owner);
            assert_eq!((found.read_only, found.destructive), expected, "{owner:?}");
        }
        let found = says.believed("read_file", hints(None, Some(true)));
        assert!(!found.read_only && found.destructive);
    }
}
