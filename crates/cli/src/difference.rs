//! Diffs of configurations, shown without secrets.
//!
//! A secret is masked in its own place and nowhere else. Nothing is masked in a server that comes with a
//! repository: the author of the repository decides which values look like secrets, and must not be able to
//! hide code that way.

use std::path::Path;

use switchboard_client_configs::{replace_texts, unified};
use switchboard_config::{Place, secret_parts};
use switchboard_terminal::error::Error;

use super::secret::moving::masked;

/// The diff of two texts of a file, with the values that look like secrets masked, except in servers that
/// come with a repository according to `is_foreign`.
pub(super) fn difference(
    file: &Path,
    before: Option<&str>,
    after: &str,
    is_foreign: &dyn Fn(&str) -> bool,
) -> Result<String, Error> {
    let hide = |text: &str| {
        replace_texts(file, text, &mut |keys, before, text| {
            hidden(keys, before, text, is_foreign)
        })
    };
    let before = before.map(hide).transpose()?;
    Ok(unified(file, before.as_deref(), &hide(after)?))
}

/// The text with the parts that look like secrets masked; `None` if there are none.
fn hidden(
    keys: &[&str],
    before: Option<&str>,
    text: &str,
    is_foreign: &dyn Fn(&str) -> bool,
) -> Option<String> {
    if let ["mcpServers", server, ..] = keys
        && is_foreign(server)
    {
        return None;
    }
    let parts = secret_parts(place(keys, before), text);
    let mut shown = text.to_owned();
    for part in parts.iter().rev() {
        let mask = format!("({})", masked(&text[part.clone()]));
        shown.replace_range(part.clone(), &mask);
    }
    (!parts.is_empty()).then_some(shown)
}

/// The kind of place where a text stands in a configuration. Any named value may have the name of a secret.
fn place<'a>(keys: &[&'a str], before: Option<&'a str>) -> Place<'a> {
    let (key, parent) = match keys {
        [.., parent, key] => (*key, *parent),
        [key] => (*key, ""),
        [] => ("", ""),
    };
    match (before, parent, key) {
        (Some(before), ..) => Place::Argument(before),
        (None, "headers" | "http_headers", _) => Place::Header(key),
        (None, "env" | "environment", _) => Place::Variable(key),
        (None, _, "command" | "cwd" | "image") => Place::Argument(""),
        (None, ..) if key.to_ascii_lowercase().ends_with("url") => Place::Address,
        (None, ..) => Place::Variable(key),
    }
}
