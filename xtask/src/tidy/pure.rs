//! Rules about the crates without a runtime, a clock or a network.

use super::{Problem, layers::dependencies, places::Rule};

/// The crates without a runtime, a clock or a network, according to `ARCHITECTURE.md`, and the dependencies
/// that would bring them in.
const PURE: &[&str] = &[
    "wire",
    "machine",
    "approvals",
    "auth",
    "catalog",
    "client-configs",
    "config",
    "embed",
    "jsonc",
    "recall",
    "redact",
    "rest",
    "results",
    "schema",
    "search",
    "store",
    "text",
    "trust",
];
const IMPURE: [&str; 5] = ["tokio", "reqwest", "hyper", "tracing", "rand"];

/// Lines of manifests that are allowed nevertheless. The store has a thread, which answers through channels
/// and logs its errors.
const LINES: &[(&str, &str)] = &[
    (
        "store",
        r#"tokio = { workspace = true, features = ["sync"] }"#,
    ),
    ("store", "tracing.workspace = true"),
];

pub(super) const RULES: &[Rule] = &[CLOCK, THREAD, SOCKET];

/// The store keeps time itself: its thread waits, and records timestamps. `client-configs` names a backup
/// after the time of its creation.
const CLOCK: Rule = Rule {
    crates: PURE,
    part: |source| &source.code,
    words: &["::now", ".elapsed()", "thread::sleep"],
    home: &["crates/store/src/"],
    known: &[("crates/client-configs/src/apply.rs", 1)],
    advice: "this crate has no clock: take the time as an argument",
};

/// The store runs on its own thread. Scoped threads are allowed: they end with their scope.
const THREAD: Rule = Rule {
    crates: PURE,
    part: |source| &source.code,
    words: &["thread::spawn", "thread::Builder"],
    home: &[
        "crates/store/src/engine/store.rs",
        "crates/store/src/engine/memory/salvage.rs",
    ],
    known: &[],
    advice: "this crate has no threads: start one in a higher crate",
};

/// Addresses of `std::net` are allowed: they are plain values.
const SOCKET: Rule = Rule {
    crates: PURE,
    part: |source| &source.code,
    words: &[
        "TcpListener",
        "TcpStream",
        "ToSocketAddrs",
        "UdpSocket",
        "UnixDatagram",
        "UnixListener",
        "UnixStream",
    ],
    home: &[],
    known: &[],
    advice: "this crate has no network: take bytes, and send them in a higher crate",
};

/// Checks that the manifest of a pure crate has no impure dependency.
pub(super) fn check(name: &str, manifest: &str) -> Vec<Problem> {
    if !PURE.contains(&name) {
        return Vec::new();
    }
    let lines: Vec<&str> = manifest.lines().map(str::trim).collect();
    let mut problems = Vec::new();
    for (line, dependency) in dependencies(manifest) {
        let family = dependency.split(['-', '_']).next().unwrap_or(&dependency);
        if IMPURE.contains(&family) && !LINES.contains(&(name, lines[line - 1])) {
            let what = format!(
                "`{name}` has no runtime and no network: use `{dependency}` in a higher layer"
            );
            problems.push(Problem { line, what });
        }
    }
    for (of, allowed) in LINES {
        if *of == name && !lines.contains(allowed) {
            let what = format!(
                "`{allowed}` is no longer used: remove it from LINES in {}",
                file!()
            );
            problems.push(Problem { line: 1, what });
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::{
        super::{check, places::tests::found, tests::lines},
        *,
    };

    #[test]
    fn pure_crates_have_no_runtime() {
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

    #[test]
    fn store_may_use_channels() {
        let path = "crates/store/Cargo.toml";
        let manifest = |features: &str| {
            format!(
                "[dependencies]\ntokio = {{ workspace = true, features = [{features}] }}\ntracing.workspace = true\n"
            )
        };
        assert_eq!(check(path, &manifest("\"sync\"")), []);
        assert_eq!(lines(&check(path, &manifest("\"rt\", \"sync\""))), [1, 2]);
        assert_eq!(lines(&check(path, "[dependencies]\n")), [1, 1]);
    }

    #[test]
    fn pure_crates_have_no_clock_threads_or_sockets() {
        for (rule, text) in [
            (CLOCK, "let a = std::time::Instant::now();"),
            (CLOCK, "a.get_or_insert_with(SystemTime::now)"),
            (CLOCK, "started.elapsed()"),
            (THREAD, "std::thread::spawn(|| a)"),
            (SOCKET, "use std::{net::{IpAddr, TcpStream}};"),
        ] {
            assert_eq!(found(&rule, "crates/machine/src/a.rs", text), 1, "{text}");
            assert_eq!(found(&rule, "crates/client/src/a.rs", text), 0, "{text}");
        }
        let good = "use std::net::IpAddr;\nthread::scope(|scope| a);\nfn handle(now: Instant) {}\n\
                    #[cfg(test)]\nmod tests { fn a() { Instant::now(); } }";
        for rule in RULES {
            assert_eq!(
                found(rule, "crates/machine/src/a.rs", good),
                0,
                "{:?}",
                rule.words
            );
        }
    }
}
