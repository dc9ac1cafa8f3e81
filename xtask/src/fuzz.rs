//! `cargo xtask fuzz`: runs the checks of `fuzz/` under libFuzzer.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::SystemTime,
};

use crate::{USAGE, is_help, root};

const SECONDS: u64 = 600;

const HELP: &str = "\
cargo xtask fuzz [TARGET]... [--seconds N]

Run the checks in fuzz/src on generated input, guided by code coverage, until a check fails or the time is up.
The targets are the files in fuzz/fuzz_targets. Without a TARGET, all of them run, one process at a time.

  --seconds N   Time for each target, in seconds (default: 600)

The input starts from fuzz/seeds/TARGET and from the corpus of earlier runs in target/fuzz-corpus. An input that
fails a check is stored in target/fuzz-artifacts, and the command to replay it is printed. The first run installs
cargo-fuzz into .tools and builds libFuzzer, which takes a few minutes. No nightly toolchain is needed.

Example: cargo xtask fuzz envelope --seconds 60";

#[derive(Debug, PartialEq, Eq)]
struct Options {
    targets: Vec<String>,
    seconds: u64,
}

/// The directories of a run, and the host triple, which is part of the path of a binary.
struct Places {
    root: PathBuf,
    target: PathBuf,
    host: String,
}

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| is_help(arg)) {
        println!("{USAGE} {HELP}");
        return Ok(());
    }
    let root = root();
    let options = parse(args, &all_targets(&root)?)?;
    let places = Places {
        target: std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root.join("target"), Into::into),
        host: host()?,
        root,
    };
    build(&places, &options.targets)?;
    let mut findings = Vec::new();
    for target in &options.targets {
        println!("==> {target}, {} s", options.seconds);
        findings.extend(fuzz(&places, target, options.seconds)?);
    }
    if findings.is_empty() {
        return Ok(());
    }
    Err(findings.join("\n\n"))
}

fn parse(args: &[String], known: &[String]) -> Result<Options, String> {
    let usage = |what: String| format!("{USAGE} {HELP}\n\n{what}");
    let mut targets = Vec::new();
    let mut seconds = SECONDS;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--seconds" {
            let value = args.next().map(String::as_str).unwrap_or_default();
            // libFuzzer treats zero as no limit.
            let number = value.parse().ok().filter(|number| *number > 0);
            seconds = number.ok_or_else(|| {
                usage(format!(
                    "invalid value {value:?} for --seconds: expected a number of at least 1"
                ))
            })?;
        } else if known.contains(arg) {
            targets.push(arg.clone());
        } else {
            let known = known.join(", ");
            return Err(usage(format!(
                "unknown target {arg:?}; the targets are: {known}"
            )));
        }
    }
    if targets.is_empty() {
        targets = known.to_vec();
    }
    Ok(Options { targets, seconds })
}

fn all_targets(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("fuzz/fuzz_targets");
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut targets: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.path().file_stem()?.to_str().map(str::to_owned))
        .collect();
    targets.sort();
    Ok(targets)
}

fn host() -> Result<String, String> {
    let told = Command::new("rustc").arg("-vV").output();
    let told = told.map_err(|error| format!("rustc -vV: {error}"))?;
    let told = String::from_utf8_lossy(&told.stdout);
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "cannot find the host in the output of `rustc -vV`".to_owned())
}

fn build(places: &Places, targets: &[String]) -> Result<(), String> {
    succeed(Command::new(places.root.join("scripts/tools.sh")).arg("fuzz"))?;
    let mut build = Command::new(places.root.join(".tools/cargo/bin/cargo-fuzz"));
    build
        .current_dir(&places.root)
        .args(["fuzz", "build", "--fuzz-dir", "fuzz"])
        .args(["--target", &places.host])
        .arg("--target-dir")
        .arg(places.target.join("fuzz"))
        // Sanitizers are not stable yet.
        .env("RUSTC_BOOTSTRAP", "1")
        // Without symbols a report has addresses in place of source locations.
        .env("CARGO_PROFILE_RELEASE_STRIP", "none");
    if let [target] = targets {
        build.arg(target);
    }
    succeed(&mut build)
}

/// Runs one target. Returns a message for the user if it finds something.
fn fuzz(places: &Places, target: &str, seconds: u64) -> Result<Option<String>, String> {
    let corpus = places.target.join("fuzz-corpus").join(target);
    let artifacts = places.target.join("fuzz-artifacts").join(target);
    for folder in [&corpus, &artifacts] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    // The binary is run directly: `cargo fuzz run` would write its findings into the source tree.
    let binary = places
        .target
        .join("fuzz")
        .join(&places.host)
        .join("release")
        .join(target);
    let started = SystemTime::now();
    let status = status(
        Command::new(binary)
            .current_dir(&places.root)
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .arg(format!("-max_total_time={seconds}"))
            .args(["-timeout=10", "-print_final_stats=1"])
            .arg(&corpus)
            .arg(places.root.join("fuzz/seeds").join(target))
            // As cargo-fuzz does: code that is linked twice is not a finding.
            .env("ASAN_OPTIONS", "detect_odr_violation=0"),
    )?;
    if status.success() {
        return Ok(None);
    }
    let inputs = files_since(&artifacts, started);
    let inputs: Vec<&Path> = inputs
        .iter()
        .map(|input| input.strip_prefix(&places.root).unwrap_or(input))
        .collect();
    Ok(Some(report(target, status, &inputs)))
}

fn report(target: &str, status: ExitStatus, inputs: &[&Path]) -> String {
    if inputs.is_empty() {
        return format!(
            "{target} failed with {status} and left no input; see its last lines for the reason"
        );
    }
    let inputs = inputs.iter().map(|input| {
        let input = input.display();
        format!(
            "\n  input   {input}\
             \n  replay  cargo run -p switchboard-fuzz --bin {target} -- {input}\
             \n  keep    move it to fuzz/seeds/{target}/ under a descriptive name, and it becomes a test"
        )
    });
    let inputs: String = inputs.collect();
    format!("{target} failed, see the panic above{inputs}")
}

fn files_since(folder: &Path, start: SystemTime) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            modified.is_ok_and(|modified| modified >= start)
        })
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = status(command)?;
    if status.success() {
        Ok(())
    } else {
        let program = command.get_program().display();
        Err(format!("{program} failed with {status}"))
    }
}

fn status(command: &mut Command) -> Result<ExitStatus, String> {
    let status = command.status();
    status.map_err(|error| format!("{}: {error}", command.get_program().display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &str) -> Result<Options, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        parse(&words, &["a".to_owned(), "b".to_owned()])
    }

    #[test]
    fn all_targets_run_by_default() {
        let all = parse_words("").unwrap();
        assert_eq!(
            (all.targets.join(" "), all.seconds),
            ("a b".to_owned(), 600)
        );
        let one = parse_words("b --seconds 5").unwrap();
        assert_eq!((one.targets.join(" "), one.seconds), ("b".to_owned(), 5));
    }

    #[test]
    fn targets_match_the_source_tree() {
        let targets = all_targets(&root()).unwrap();
        assert!(targets.contains(&"envelope".to_owned()), "{targets:?}");
        let error = parse(&["x".to_owned()], &targets).unwrap_err();
        assert!(error.ends_with(&targets.join(", ")), "{error}");
    }

    #[test]
    fn finding_includes_the_replay_command() {
        let report = report("a", ExitStatus::default(), &[Path::new("target/x/crash-1")]);
        assert!(report.contains("cargo run -p switchboard-fuzz --bin a -- target/x/crash-1"));
    }
}
