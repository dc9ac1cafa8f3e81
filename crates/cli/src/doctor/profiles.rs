//! The profiles of the configuration.

use std::collections::BTreeMap;

use switchboard_config::{Config, Profile, Server};
use switchboard_rest::tools::Tools;
use switchboard_text::{glob::stars_match, nearest};

use super::Finding;

/// Warns about patterns in profiles that match nothing: a typo hides what was meant, or leaves it visible. Tools are
/// known only if the gateway runs.
pub(super) fn look(config: &Config, tools: Option<&Tools>) -> Vec<Finding> {
    let servers = config.clone().with_memory().servers;
    let mut findings = Vec::new();
    for (name, profile) in &config.profiles {
        for pattern in profile.servers.iter().flatten() {
            let only = Profile {
                servers: Some(vec![pattern.clone()]),
                ..Default::default()
            };
            if servers.keys().any(|server| only.permits_server(server)) {
                continue;
            }
            let meant = nearest(pattern, servers.keys().map(String::as_str));
            findings.push(Finding::warning(
                "profiles",
                format!("the profile `{name}` includes `{pattern}`, but there is no such server"),
                match meant {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("add the server, or remove it from `profiles.{name}.servers`"),
                },
            ));
        }
        for (list, patterns) in [
            ("allow", profile.allow.as_deref()),
            ("deny", Some(&*profile.deny)),
        ] {
            let patterns = patterns.unwrap_or_default().iter();
            findings.extend(patterns.filter_map(|pattern| {
                let pattern = pattern.to_string();
                let reason = unmatched(&pattern, &servers, tools)?;
                let known = tools.map(|tools| tools.tools.iter().map(|tool| &*tool.name));
                let meant = nearest(&pattern, known.into_iter().flatten());
                Some(Finding::warning(
                    "profiles",
                    format!(
                        "`{pattern}` in `profiles.{name}.tools.{list}` has no effect: {reason}"
                    ),
                    match meant {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None => {
                            "`switchboard tools` lists the tools; correct the pattern, or remove it"
                                .to_owned()
                        }
                    },
                ))
            }));
        }
    }
    findings
}

/// The reason why a pattern for tools matches none.
fn unmatched(
    pattern: &str,
    servers: &BTreeMap<String, Server>,
    tools: Option<&Tools>,
) -> Option<&'static str> {
    // Both parts may contain colons.
    let mut parts = pattern.match_indices(':').map(|(at, _)| &pattern[..at]);
    let is_meant = |server: &String| parts.clone().any(|part| stars_match(part, server));
    if !servers.keys().any(is_meant) {
        return parts.next().map(|_| "there is no such server");
    }
    let tools = tools?;
    if tools.starting.iter().any(is_meant) {
        return None;
    }
    let is_matched = |full: &str| stars_match(pattern, full);
    let mut all = tools.tools.iter();
    let matches = all.any(|tool| {
        is_matched(&tool.name) || is_matched(&format!("{}:{}", tool.server, tool.tool))
    });
    (!matches).then_some("clients see no such tool")
}
