//! Rules about the crates without a runtime and a network.

use super::{Problem, layers::dependencies};

/// The crates without a runtime and a network, as `ARCHITECTURE.md` says, and the dependencies that would
/// bring them in.
const PURE: [&str; 13] = [
    "wire",
    "machine",
    "approvals",
    "catalog",
    "clients",
    "config",
    "embed",
    "recall",
    "redact",
    "results",
    "schema",
    "search",
    "trust",
];
const IMPURE: [&str; 5] = ["tokio", "reqwest", "hyper", "tracing", "rand"];

/// Checks that the manifest of such a crate brings in neither.
pub(super) fn check(name: &str, manifest: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (line, dependency) in dependencies(manifest) {
        let family = dependency.split(['-', '_']).next().unwrap_or(&dependency);
        if PURE.contains(&name) && IMPURE.contains(&family) {
            let what =
                format!("`{name}` has no runtime and no network: use `{dependency}` a floor up");
            problems.push(Problem { line, what });
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::{
        super::{check, tests::lines},
        IMPURE,
    };

    #[test]
    fn the_lower_floors_know_no_runtime() {
        let path = "crates/machine/Cargo.toml";
        for name in IMPURE {
            for line in [
                format!("{name} = \"1\""),
                format!("{name}.workspace = true"),
                format!("{name}-util = {{ version = \"1\" }}"),
                format!("other = {{ package = \"{name}\" }}"),
            ] {
                let manifest = format!("[dependencies]\n{line}\n");
                assert_eq!(lines(&check(path, &manifest)), [2], "{line}");
                assert_eq!(check("crates/client/Cargo.toml", &manifest), []);
                assert_eq!(check(path, &format!("[dev-dependencies]\n{line}\n")), []);
            }
            let table = format!("[dependencies.{name}]\nversion = \"1\"\n");
            assert_eq!(lines(&check(path, &table)), [1]);
            let target = format!("[target.'cfg(unix)'.dependencies]\n{name} = \"1\"\n");
            assert_eq!(lines(&check(path, &target)), [2]);
        }
    }
}
