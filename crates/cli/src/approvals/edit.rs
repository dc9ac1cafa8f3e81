//! Changes to a request before it is approved: in an editor, or by options of the command line.

use std::{
    fs::{self, OpenOptions},
    io::{self, IsTerminal as _, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use switchboard_config::Home;
use switchboard_rest::approvals::Approval;
use switchboard_terminal::visible::{pretty, visible};
use switchboard_terminal::{error::Error, print};
use switchboard_wire::Raw;

use super::{decide::Edits, words};
use crate::programs;

/// Members of a sampling request that can be edited, besides the model.
const EDITABLE: [&str; 5] = [
    "systemPrompt",
    "messages",
    "maxTokens",
    "temperature",
    "stopSequences",
];
/// The longest text that is read back from an editor, in bytes.
const EDITED_BYTES: u64 = 8 * 1024 * 1024;

/// Opens an editor. Returns `None` if the user leaves the text unchanged.
pub(super) fn run(home: &Home, approval: &Approval) -> Result<Option<Edits>, Error> {
    if approval.is_review() {
        let before = draft_text(approval);
        let file = Scratch::new(home, &approval.id, "txt", &before)?;
        let after = file.edit()?;
        return Ok((after != before).then(|| Edits {
            body: Raw::object([("text", Raw::string(&after))]),
            diff: difference("answer.txt", &visible(&before), &visible(&after)),
        }));
    }
    let is_call = approval.kind == "tool_call";
    let before = if is_call {
        words::arguments(approval).unwrap_or_else(Raw::empty_object)
    } else {
        editable(approval)
    };
    let file = Scratch::new(home, &approval.id, "json", &(pretty(&before) + "\n"))?;
    loop {
        let after = file.edit()?;
        let changed = read(&after).and_then(|after| {
            if is_call {
                Ok(arguments(approval, &after))
            } else {
                changed_members(approval, &before, &after)
            }
        });
        match changed {
            Ok(edits) => return Ok(edits),
            Err(why) => again(&why)?,
        }
    }
}

/// Other arguments for a call, or `None` if they are the same.
pub(super) fn arguments(approval: &Approval, after: &Raw) -> Option<Edits> {
    let before = words::arguments(approval).unwrap_or_else(Raw::empty_object);
    let (old, new) = (pretty(&before), pretty(after));
    (old != new).then(|| Edits {
        body: Raw::object([("arguments", after.clone())]),
        diff: difference("arguments.json", &(old + "\n"), &(new + "\n")),
    })
}

/// Other members of a sampling request.
pub(super) fn members(approval: &Approval, changed: Vec<(&str, Raw)>) -> Edits {
    let before = editable(approval);
    let mut after = before.clone();
    for (name, value) in &changed {
        if let Ok(with) = after.without(&[name]).with_member(name, value) {
            after = with;
        }
    }
    Edits {
        body: Raw::object(changed),
        diff: difference(
            "request.json",
            &(pretty(&before) + "\n"),
            &(pretty(&after) + "\n"),
        ),
    }
}

/// The editable members of a sampling request.
fn editable(approval: &Approval) -> Raw {
    let request = words::request(approval);
    let members = EDITABLE
        .into_iter()
        .filter_map(|name| Some((name, request.member(name)?)));
    Raw::object(members)
}

/// The text of the model's answer.
fn draft_text(approval: &Approval) -> String {
    let content = approval
        .draft
        .as_ref()
        .and_then(|raw| raw.member("content"));
    let Some(content) = content else {
        return String::new();
    };
    let blocks = content.elements().unwrap_or_else(|| vec![content]);
    let text = |block: &Raw| block.member("text").and_then(|text| text.to_text());
    let texts: Vec<String> = blocks.iter().filter_map(text).collect();
    texts.join("\n")
}

fn read(text: &str) -> Result<Raw, String> {
    let raw = Raw::parse(text.trim().to_owned()).map_err(|error| error.to_string())?;
    if raw.is_object() {
        Ok(raw)
    } else {
        Err("it is not a JSON object".to_owned())
    }
}

fn changed_members(
    approval: &Approval,
    before: &Raw,
    after: &Raw,
) -> Result<Option<Edits>, String> {
    let all = after.members().unwrap_or_default();
    for (name, _) in before.members().unwrap_or_default() {
        if !all.iter().any(|(other, _)| *other == name) {
            return Err(format!(
                "`{name}` is missing; change its value, but keep it"
            ));
        }
    }
    let changed: Vec<(&str, Raw)> = all
        .iter()
        .filter(|(name, value)| {
            let old = before.member(name);
            old.is_none_or(|old| pretty(&old) != pretty(value))
        })
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    Ok((!changed.is_empty()).then(|| members(approval, changed)))
}

/// Asks whether to edit again after the edited text was rejected.
fn again(why: &str) -> Result<(), Error> {
    let message = format!("the edited text is invalid: {why}");
    if !io::stdin().is_terminal() {
        return Err(Error::new(message).hint("edit it again; nothing was approved"));
    }
    print::warn(&message);
    match print::confirm("Edit it again?") {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::new("nothing was approved")),
        Err(error) => Err(Error::new(format!("cannot ask on the terminal: {error}"))),
    }
}

fn difference(name: &str, before: &str, after: &str) -> String {
    switchboard_client_configs::unified(Path::new(name), Some(before), after)
}

/// A private file to edit, which is removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(home: &Home, id: &str, ending: &str, text: &str) -> Result<Self, Error> {
        let id: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
        let name = format!("edit-{id}-{}.{ending}", std::process::id());
        let file = Self(home.run().join(name));
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let mut to = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&file.0)?;
            to.write_all(text.as_bytes())
        };
        write().map_err(|error| crate::config_file::cannot("write", &file.0, &error))?;
        Ok(file)
    }

    /// Opens the editor and returns the edited text.
    fn edit(&self) -> Result<String, Error> {
        let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| {
            let editor = std::env::var(name).ok();
            editor.filter(|editor| !editor.trim().is_empty())
        });
        let editor = editor.unwrap_or_else(|| "vi".to_owned());
        // The variable may contain options, as it may for other programs.
        let environment = programs::environment();
        let status = Command::new("/bin/sh")
            .env("PATH", environment.get("PATH").unwrap_or_default())
            .arg("-c")
            .arg(format!("{editor} \"$@\""))
            .arg(&editor)
            .arg(&self.0)
            .status();
        let hint = "set VISUAL or EDITOR to an editor that waits until you close the file; nothing was approved";
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => {
                let message = format!("the editor `{editor}` failed with {status}");
                return Err(Error::new(message).hint(hint));
            }
            Err(error) => {
                let message = format!("cannot start the editor `{editor}`: {error}");
                return Err(Error::new(message).hint(hint));
            }
        }
        let read = || -> io::Result<String> {
            let mut text = String::new();
            let file = fs::File::open(&self.0)?;
            file.take(EDITED_BYTES).read_to_string(&mut text)?;
            Ok(text)
        };
        read().map_err(|error| crate::config_file::cannot("read", &self.0, &error))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It is fine if the file is already gone.
        let _ = fs::remove_file(&self.0);
    }
}
