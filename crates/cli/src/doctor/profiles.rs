//! The profiles of the configuration.

use switchboard_config::Config;
use switchboard_text::nearest;

use super::Finding;

/// Warns about servers in profiles that match none: a typo hides the server that was meant.
pub(super) fn look(config: &Config) -> Vec<Finding> {
    let servers = config.clone().with_memory().servers;
    let mut findings = Vec::new();
    for (name, profile) in &config.profiles {
        for pattern in profile.servers.iter().flatten() {
            let only = switchboard_config::Profile {
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
    }
    findings
}
