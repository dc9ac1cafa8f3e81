//! Help, completions and the schema.

use crate::support::Place;

const COMMANDS: [&str; 28] = [
    "serve",
    "stdio",
    "add",
    "remove",
    "enable",
    "disable",
    "restart",
    "import",
    "connect",
    "status",
    "list",
    "tools",
    "search",
    "trust",
    "approvals",
    "audit",
    "memory",
    "call",
    "activity",
    "logs",
    "clients",
    "describe",
    "console",
    "doctor",
    "stop",
    "completions",
    "man",
    "schema",
];

#[test]
fn every_command_has_example_and_global_options() {
    let place = Place::new();
    let all = place.run(&["--help"]);
    assert_eq!(all.code, Some(0));
    for command in COMMANDS {
        assert!(all.out.contains(&format!("\n  {command} ")), "{command}");
        let help = place.run(&[command, "--help"]);
        assert_eq!(help.code, Some(0), "{command}");
        let (_, example) = help.out.split_once("\nExample").unwrap();
        assert!(example.contains(command), "{command}: {example}");
        assert!(help.out.contains("--home"), "{command}");
        assert!(help.out.contains("--config"), "{command}");
    }
}

#[test]
fn every_read_command_has_json() {
    let place = Place::new();
    for command in [
        &["status"][..],
        &["list"],
        &["tools"],
        &["search"],
        &["trust"],
        &["trust", "list"],
        &["trust", "show"],
        &["approvals"],
        &["approvals", "list"],
        &["approvals", "show"],
        &["approvals", "watch"],
        &["approvals", "rules"],
        &["approvals", "test"],
        &["audit", "list"],
        &["audit", "verify"],
        &["memory", "store"],
        &["memory", "recall"],
        &["memory", "list"],
        &["memory", "show"],
        &["memory", "import"],
        &["memory", "stats"],
        &["call"],
        &["connect"],
        &["logs"],
        &["console"],
        &["doctor"],
    ] {
        let help = place.run(&[command, &["--help"]].concat());
        assert!(help.out.contains("--json"), "{command:?}");
    }
}

#[test]
fn every_subcommand_has_an_example() {
    let place = Place::new();
    for (command, all) in [
        ("trust", &["list", "show", "approve", "reject"][..]),
        (
            "approvals",
            &[
                "list", "show", "approve", "reject", "respond", "watch", "rules", "forget", "test",
            ],
        ),
        ("audit", &["list", "verify", "export"]),
        (
            "memory",
            &[
                "store", "recall", "list", "show", "forget", "export", "import", "stats", "serve",
                "repair",
            ],
        ),
    ] {
        for what in all {
            let help = place.run(&[command, what, "--help"]);
            assert_eq!(help.code, Some(0), "{command} {what}");
            let (_, example) = help.out.split_once("\nExample").unwrap();
            let words = format!("switchboard {command} {what}");
            assert!(example.contains(&words), "{command} {what}: {example}");
        }
    }
}

#[test]
fn empty_command_line_shows_the_help() {
    let place = Place::new();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_switchboard"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let help = String::from_utf8(output.stderr).unwrap();
    assert!(help.contains("First steps:"), "{help}");
    let wrong = place.run(&["lsit"]);
    assert_eq!(wrong.code, Some(2));
    assert_eq!(
        wrong.err,
        "error: unknown command 'lsit'\nusage: switchboard [OPTIONS] <COMMAND>\nhint: did you mean `list`?\n"
    );
    let wrong = place.run(&["remove"]);
    assert_eq!(wrong.code, Some(2));
    assert_eq!(
        wrong.err,
        "error: missing argument: <NAME>\n\
         usage: switchboard remove <NAME>\nhint: run `switchboard remove --help` for examples\n"
    );
}

#[test]
fn shells_get_completions() {
    let place = Place::new();
    for (shell, mark) in [
        ("bash", "complete -F _switchboard"),
        ("zsh", "#compdef switchboard"),
        ("fish", "complete -c switchboard"),
    ] {
        let done = place.run(&["completions", shell]);
        assert_eq!(done.code, Some(0));
        assert!(
            done.out.contains(mark)
                && done.out.contains("doctor")
                && done.out.contains("approvals"),
            "{shell}"
        );
    }
}

#[test]
fn manual_has_a_page_per_command() {
    let place = Place::new();
    let folder = place.path().join("new/man1");
    let done = place.run(&["man", folder.to_str().unwrap()]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    for (page, mark) in [
        ("switchboard.1", "switchboard"),
        ("switchboard-add.1", "Examples"),
        ("switchboard-approvals-approve.1", "remember"),
    ] {
        let text = std::fs::read_to_string(folder.join(page)).unwrap();
        assert!(text.contains(".TH") && text.contains(mark), "{page}");
    }
    let file = place.write("file", "");
    let done = place.run(&["man", file.to_str().unwrap()]);
    assert_eq!(done.code, Some(1));
    assert!(
        done.err.contains("cannot write the manual pages"),
        "{}",
        done.err
    );
}

#[test]
fn schema_is_printed() {
    let done = Place::new().run(&["schema"]);
    let schema: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(schema, switchboard_config::schema());
}

#[test]
fn closed_output_is_not_an_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Place::new()
        .command(&["schema"])
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
