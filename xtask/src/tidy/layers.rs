//! A rule about manifests: the crates that a crate may depend on.

use super::Problem;

/// The layers: for each crate, the crates of the workspace that it may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("text", &[]),
    ("machine", &["wire"]),
    ("auth", &[]),
    ("client", &["auth", "machine", "wire"]),
    ("files", &[]),
    ("contain", &["files"]),
    ("embed", &["text"]),
    ("jsonc", &[]),
    (
        "config",
        &["approvals", "files", "jsonc", "redact", "text", "wire"],
    ),
    ("client-configs", &["files", "jsonc", "text"]),
    ("store", &[]),
    ("catalog", &["files", "text", "wire"]),
    ("results", &["files", "wire"]),
    ("schema", &["text", "wire"]),
    ("search", &["embed", "wire"]),
    ("recall", &["embed", "search"]),
    (
        "memory",
        &[
            "client", "embed", "recall", "schema", "store", "text", "wire",
        ],
    ),
    ("secrets", &["files", "text"]),
    ("tokens", &["files", "text"]),
    ("trust", &["files", "text", "wire"]),
    ("redact", &["text", "wire"]),
    ("approvals", &["redact", "schema", "text", "wire"]),
    ("rest", &["approvals", "wire"]),
    ("provider", &["client", "wire"]),
    ("console", &[]),
    (
        "base",
        &[
            "approvals",
            "catalog",
            "client",
            "config",
            "files",
            "redact",
            "rest",
            "store",
            "text",
            "tokens",
            "trust",
            "wire",
        ],
    ),
    (
        "outbound",
        &[
            "base", "catalog", "client", "config", "contain", "embed", "files", "memory", "redact",
            "rest", "search", "secrets", "store", "text", "trust", "wire",
        ],
    ),
    (
        "core",
        &[
            "approvals",
            "base",
            "catalog",
            "client",
            "config",
            "files",
            "outbound",
            "provider",
            "redact",
            "rest",
            "results",
            "schema",
            "search",
            "store",
            "text",
            "tokens",
            "trust",
            "wire",
        ],
    ),
    (
        "inbound",
        &[
            "approvals",
            "base",
            "client",
            "config",
            "contain",
            "core",
            "outbound",
            "rest",
            "store",
            "text",
            "tokens",
            "wire",
        ],
    ),
    (
        "admin",
        &[
            "approvals",
            "base",
            "catalog",
            "client",
            "config",
            "console",
            "core",
            "inbound",
            "outbound",
            "redact",
            "rest",
            "search",
            "store",
            "text",
            "tokens",
            "trust",
            "wire",
        ],
    ),
    (
        "gateway",
        &[
            "admin", "base", "config", "contain", "core", "files", "inbound", "outbound", "store",
        ],
    ),
    ("terminal", &["client-configs", "config", "store", "wire"]),
    (
        "host",
        &[
            "base", "config", "files", "gateway", "terminal", "text", "wire",
        ],
    ),
    (
        "cli",
        &[
            "admin",
            "approvals",
            "base",
            "catalog",
            "client",
            "client-configs",
            "config",
            "contain",
            "files",
            "gateway",
            "host",
            "rest",
            "schema",
            "store",
            "terminal",
            "text",
            "tokens",
            "wire",
        ],
    ),
    (
        "switchboard",
        &["cli", "config", "contain", "host", "terminal"],
    ),
];

/// The crate in `crates/` that this path is the manifest of.
pub(super) fn crate_of_manifest(path: &str) -> Option<&str> {
    let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!name.contains('/')).then_some(name)
}

/// Checks that a manifest depends on no crates of the workspace except those of lower layers.
pub(super) fn check(name: &str, manifest: &str) -> Vec<Problem> {
    let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
        return vec![Problem {
            line: 1,
            what: format!("`{name}` is in no layer: add it to LAYERS in xtask/src/tidy/layers.rs"),
        }];
    };
    let mut problems = Vec::new();
    for (line, dependency) in dependencies(manifest) {
        let ours = dependency.strip_prefix("switchboard-");
        if ours.is_some_and(|ours| !allowed.contains(&ours)) {
            let below = match allowed {
                [] => "no crate of the workspace".to_owned(),
                allowed => format!("only {}", allowed.join(", ")),
            };
            let what =
                format!("`{name}` may use {below}: invert the dependency, or move the code down");
            problems.push(Problem { line, what });
        }
    }
    problems
}

/// The packages that a manifest depends on outside of tests, each with its line.
pub(super) fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            inside = is_dependency_table(table);
            // [dependencies.NAME]
            if let Some((parent, name)) = table.rsplit_once('.')
                && is_dependency_table(parent)
            {
                found.push((index + 1, unquoted(name)));
            }
        } else if inside
            && !line.starts_with('#')
            && let Some((key, value)) = line.split_once('=')
        {
            let renamed = value
                .split_once("package")
                .and_then(|(_, rest)| rest.split('"').nth(1));
            let key = key.split('.').next().unwrap_or(key);
            found.push((index + 1, unquoted(renamed.unwrap_or(key))));
        }
    }
    found
}

fn is_dependency_table(table: &str) -> bool {
    let last = table.rsplit('.').next().unwrap_or(table);
    matches!(last, "dependencies" | "build-dependencies")
}

fn unquoted(name: &str) -> String {
    name.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::{check, tests::lines};

    #[test]
    fn dependencies_point_down_only() {
        let manifest = "[package]\nname = \"x\"\n\n[dependencies]\nbytes.workspace = true\n\
                        switchboard-wire.workspace = true\n";
        assert_eq!(check("crates/machine/Cargo.toml", manifest), []);
        assert_eq!(check("crates/client/Cargo.toml", manifest), []);
        assert_eq!(lines(&check("crates/wire/Cargo.toml", manifest)), [6]);
        assert_eq!(lines(&check("crates/unheard-of/Cargo.toml", manifest)), [1]);
        assert_eq!(check("fuzz/Cargo.toml", manifest), []);
    }
}
