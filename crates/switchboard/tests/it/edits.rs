//! Several commands that change the configuration at the same time.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    process::{Child, Stdio},
    time::{Duration, SystemTime},
};

use serde_json::Value;

use crate::support::{Gateway, Place};

fn servers(place: &Place) -> BTreeSet<String> {
    let text = fs::read_to_string(place.config()).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    let servers = config["mcpServers"].as_object().unwrap();
    servers.keys().cloned().collect()
}

/// Starts all commands, waits for them, and returns the exit codes.
fn at_once(place: &Place, commands: &[Vec<String>]) -> Vec<Option<i32>> {
    let start = |args: &Vec<String>| {
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let mut command = place.command(&args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let children: Vec<Child> = commands.iter().map(start).collect();
    let wait = |mut child: Child| child.wait().unwrap().code();
    children.into_iter().map(wait).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn twenty() -> (Vec<Vec<String>>, BTreeSet<String>) {
    let names: BTreeSet<_> = (0..20).map(|n| format!("s{n}")).collect();
    let add = |name: &String| words(&format!("add {name} --disabled -- true"));
    (names.iter().map(add).collect(), names)
}

#[test]
fn concurrent_adds_are_all_kept() {
    let place = Place::new();
    let (adds, names) = twenty();
    assert_eq!(at_once(&place, &adds), [Some(0); 20]);
    assert_eq!(servers(&place), names);
}

#[test]
fn concurrent_adds_with_a_gateway_are_kept() {
    let place = Place::new();
    let _gateway = Gateway::start(&place, &[]);
    let (adds, names) = twenty();
    assert_eq!(at_once(&place, &adds), [Some(0); 20]);
    assert_eq!(servers(&place), names);
}

#[test]
fn concurrent_edits_of_all_kinds_are_kept() {
    let place = Place::new();
    let (adds, _) = twenty();
    assert_eq!(at_once(&place, &adds), [Some(0); 20]);
    let mixed: Vec<_> = (0..20)
        .map(|n| match n % 4 {
            0 => words(&format!("remove s{n}")),
            1 => words(&format!("enable s{n} --no-wait")),
            _ => words(&format!("add t{n} --disabled -- true")),
        })
        .collect();
    assert_eq!(at_once(&place, &mixed), [Some(0); 20]);
    let expected: BTreeSet<_> = (0..20)
        .flat_map(|n| match n % 4 {
            0 => vec![],
            1 => vec![format!("s{n}")],
            _ => vec![format!("s{n}"), format!("t{n}")],
        })
        .collect();
    assert_eq!(servers(&place), expected);
    let text = fs::read_to_string(place.config()).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(config["mcpServers"]["s1"]["enabled"], true);
}

#[test]
fn stale_drafts_are_swept() {
    let place = Place::new();
    let dead = dead_process(&place);
    let stale = |path: &str| {
        let path = place.write(&format!("home/{path}.{dead}.3.new"), "API_KEY=x");
        let file = File::options().write(true).open(&path).unwrap();
        let killed = SystemTime::now() - Duration::from_mins(6);
        file.set_modified(killed).unwrap();
        path
    };
    let config = stale(".switchboard.json");
    assert_eq!(
        place.run(&["add", "a", "--disabled", "--", "x"]).code,
        Some(0)
    );
    assert!(!config.exists(), "add");
    let drafts = [".switchboard.json", "secrets/.key", "run/.token"].map(stale);
    let _gateway = Gateway::start(&place, &[]);
    for draft in drafts {
        assert!(!draft.exists(), "{draft:?}");
    }
}

/// The process ID of a process that has ended.
fn dead_process(place: &Place) -> u32 {
    let mut child = place
        .command(&["--version"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.wait().unwrap();
    child.id()
}

#[test]
fn removed_server_keeps_its_directory_with_a_note() {
    let place = Place::without_memory();
    let config = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}"#;
    place.write_config(config);
    let dir = place.home().join("servers/a.0af1");
    place.write("home/servers/a.0af1/notes.db", "");
    fs::create_dir(place.home().join("servers/b.0af1")).unwrap();
    place.check(
        &["remove", "a"],
        0,
        "",
        "removed `a`\nhint: the files of `a` are kept in DIR/home/servers/a.0af1\n",
    );
    assert!(dir.join("notes.db").exists());
    place.check(&["remove", "b"], 0, "", "removed `b`\n");
}

/// The gateway that `add` starts has no terminal on which to report why it does not start.
#[test]
fn add_reports_why_its_gateway_failed() {
    let place = Place::without_memory();
    // The folder of the socket cannot be created.
    place.write("home/run", "");
    let mut command = place.command(&[]);
    let output = command.args(["add", "a", "--", "true"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let reason = "error: the gateway did not start: ";
    let rest = said
        .split(reason)
        .nth(1)
        .unwrap_or_else(|| panic!("{said}"));
    assert!(rest.contains("/run"), "{said}");
    assert!(!rest.contains("error: "), "{said}");
    assert!(servers(&place).contains("a"));
}

#[test]
fn add_waits_for_no_client_in_a_project() {
    let place = Place::without_memory();
    for (share, args) in [
        ("auto", &["${project}", "${client}"][..]),
        ("client", &["${project}"]),
        ("project", &["${project.name}"]),
    ] {
        let mut command = place.command(&[]);
        command.args(["add", share, "--share", share, "--", "none"]);
        let output = command.args(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let later =
            format!("`{share}` starts when a client that works in a project directory uses it");
        assert!(said.contains(&later), "{said}");
    }
}
