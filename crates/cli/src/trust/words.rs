//! Definitions and findings in words.

use serde_json::{Value, json};
use switchboard_rest::trust::{Change, Finding, HeldTool, ServerTrust};
use switchboard_terminal::print::{self, shell_word};

/// The name under which the gateway holds the instructions of a server.
const INSTRUCTIONS: &str = "(instructions)";

/// The number of suspicious definitions of a server, shown or held.
pub(super) fn suspicious(server: &ServerTrust) -> usize {
    let is_worse = |finding: &Finding| finding.severity != "note";
    let held = server.held.iter();
    let held = held.filter(|held| held.findings.iter().any(is_worse));
    server.flagged.len() + held.count()
}

/// The definition that a decision is about.
pub(super) fn seen(held: &HeldTool) -> Value {
    json!({ "tool": held.tool, "fingerprint": held.fingerprint })
}

/// The reason why a definition is held.
pub(crate) fn reason(held: &HeldTool) -> &str {
    match &*held.why {
        "changed" => "changed since approval",
        "hidden" => "hidden characters",
        "dangerous" => "dangerous text",
        other => other,
    }
}

/// The name of a definition in a command.
pub(super) fn word(held: &HeldTool) -> String {
    shell_word(&held.name)
}

/// The name of a definition, and its kind if it is not a tool.
pub(super) fn title(held: &HeldTool) -> String {
    let name = print::one_line(&held.name);
    if held.tool == INSTRUCTIONS {
        format!("{name} (the server's instructions for models)")
    } else {
        name
    }
}

/// Tests if the gateway left out a part of a change. Then only the whole definition shows all of its text.
pub(super) fn is_cut(change: &Change) -> bool {
    let values = [&change.before, &change.after].into_iter().flatten();
    let mut values = values.map(String::as_str);
    change.field == "and more" || values.any(|value| value.ends_with(" more characters)"))
}

/// The place and the meaning of a finding.
pub(crate) fn finding(finding: &Finding) -> String {
    print::one_line(&format!("{}: {}", finding.field, finding.says))
}
