//! Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no gateway, for every command.

use switchboard_test_support::until;

use crate::{
    snapshots::listed,
    support::{Gateway, Place, json},
};

/// Command lines without a gateway, and their exit codes. They run in this order.
const ALONE: &[(&str, i32)] = &[
    ("", 2),
    ("-h", 0),
    ("help", 0),
    ("--version", 0),
    ("nothing", 2),
    ("help nothing", 2),
    ("--config nothing.json list", 1),
    ("add", 2),
    ("add files", 2),
    ("add files npx", 2),
    ("add files -- npx", 0),
    ("add files -- npx", 1),
    ("list", 0),
    ("list extra", 2),
    ("disable files", 0),
    ("disable nothing", 1),
    ("enable files --no-wait", 0),
    ("enable nothing", 1),
    ("remove files", 0),
    ("remove nothing", 1),
    ("remove memory", 1),
    ("import --dry-run", 0),
    ("import --undo", 1),
    ("import nothing.json", 1),
    ("import netscape", 2),
    ("import --undo --dry-run", 2),
    ("connect", 0),
    ("connect cursor --dry-run", 0),
    ("connect cursor", 2),
    ("connect cursor --undo", 1),
    ("connect netscape", 2),
    ("secret", 2),
    ("secret list", 0),
    ("secret rm nothing", 1),
    ("secret set", 2),
    ("secret set bad/name", 2),
    ("login", 2),
    ("login nothing", 1),
    ("logout", 2),
    ("logout nothing", 1),
    ("auth", 2),
    ("auth list", 0),
    ("token", 2),
    ("token list", 0),
    ("token create ci", 0),
    ("token create ci", 1),
    ("token create x --right root", 2),
    ("token create x --expires soon", 2),
    ("token rotate ci", 0),
    ("token revoke ci", 0),
    ("token revoke ci", 1),
    ("logs nothing", 1),
    ("logs", 2),
    ("doctor", 0),
    ("completions bash", 0),
    ("completions", 2),
    ("man", 2),
    ("schema", 0),
    ("serve --listen 9000", 2),
    ("stdio", 0),
    ("stdio --view sideways", 2),
    ("memory", 2),
    ("memory store Ada drinks tea", 0),
    ("memory store tea --from someday", 2),
    ("memory recall tea", 0),
    ("memory recall zzyzx --mode text", 1),
    ("memory list", 0),
    ("memory list --limit many", 2),
    ("memory show nonsense", 1),
    ("memory export", 0),
    ("memory import nothing.jsonl", 1),
    ("memory stats", 0),
    ("memory repair", 0),
    ("memory serve", 0),
    ("memory forget nonsense --yes", 1),
    ("memory forget --all", 2),
    ("memory forget --all --yes", 0),
    ("status", 3),
    ("clients", 3),
    ("activity", 3),
    ("activity -n 0", 2),
    ("tools", 3),
    ("describe echo:say", 3),
    ("describe", 2),
    ("search weather", 3),
    ("search", 2),
    ("call echo:say", 3),
    ("call", 2),
    ("restart echo", 1),
    ("restart echo --no-wait", 3),
    ("restart", 2),
    ("trust", 3),
    ("trust show echo:say", 3),
    ("trust approve echo:say --yes", 3),
    ("trust reject echo:say", 3),
    ("trust reject", 2),
    ("approvals", 3),
    ("approvals show k7", 3),
    ("approvals approve k7 --yes", 3),
    ("approvals reject k7", 3),
    ("approvals reject k7 --for long", 2),
    ("approvals respond k7 x", 3),
    ("approvals watch", 3),
    ("approvals rules", 3),
    ("approvals forget r1", 3),
    ("approvals test x", 3),
    ("console", 3),
    ("stop", 3),
];

/// Command lines without an audit log, which the first gateway creates.
const WITHOUT_LOG: &[(&str, i32)] = &[
    ("audit", 2),
    ("audit list", 1),
    ("audit verify", 1),
    ("audit export", 1),
    ("audit archive all.jsonl", 1),
];

/// Command lines while a gateway with the server `echo` runs.
const RUNNING: &[(&str, i32)] = &[
    ("status", 0),
    ("list", 0),
    ("clients", 0),
    ("activity", 0),
    ("activity echo --failed", 0),
    ("activity nothing", 1),
    ("tools", 0),
    ("tools echo", 0),
    ("tools nothing", 1),
    ("describe echo:say", 0),
    ("describe echo:nothing", 1),
    ("describe echo", 1),
    ("search say", 0),
    ("search zzyzx", 1),
    ("search say --server nothing", 1),
    ("search --forget", 0),
    ("call echo:say", 0),
    ("call echo:say text=hello", 0),
    ("call echo:say {nonsense", 2),
    ("call echo:fail", 1),
    ("call echo:nothing", 1),
    ("logs echo", 0),
    ("logs nothing", 1),
    ("logs echo -n few", 2),
    ("trust", 0),
    ("trust list nothing", 1),
    ("trust show echo:say", 0),
    ("trust show nothing", 1),
    ("trust approve echo:say --yes", 0),
    ("trust approve nothing --yes", 1),
    ("trust reject echo:say", 1),
    ("approvals", 0),
    ("approvals list --all", 0),
    ("approvals rules", 0),
    ("approvals show zz", 1),
    ("approvals approve zz --yes", 1),
    ("approvals reject zz", 1),
    ("approvals respond zz x", 1),
    ("approvals forget nothing", 1),
    ("approvals test {nonsense", 2),
    ("audit list", 0),
    ("audit verify", 0),
    ("audit verify --expect nonsense", 2),
    ("audit verify --expect 9999:000000000000", 1),
    ("audit export all.jsonl", 0),
    ("audit export all.jsonl", 1),
    ("console", 0),
    ("console --sessions", 0),
    ("login echo", 1),
    ("login nothing", 1),
    ("logout echo", 1),
    ("auth list", 0),
    ("token create ci --server echo", 0),
    ("token create x --server nothing", 1),
    ("token rotate ci", 0),
    ("token revoke ci", 0),
    ("token revoke ci", 1),
    ("memory list", 0),
    ("doctor", 0),
    ("serve", 1),
    ("add echo -- npx", 1),
    ("disable echo", 0),
    ("call echo:say", 1),
    ("enable echo", 0),
    ("restart echo", 0),
    ("restart nothing", 1),
    ("remove echo", 0),
    ("restart echo", 1),
    ("stop", 0),
    ("stop", 3),
];

#[track_caller]
fn check(place: &Place, lines: &[(&str, i32)]) {
    let wrong: Vec<String> = lines
        .iter()
        .filter_map(|(line, expected)| {
            let args: Vec<&str> = line.split_whitespace().collect();
            let done = place.run(&args);
            let is_right = done.code == Some(*expected);
            (!is_right).then(|| format!("`{line}` is {expected} in the table: {done:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const CONFIG: &str = r#"{ "listen": "127.0.0.1:0", "approvals": { "notify": "off" } }"#;

#[test]
fn exit_codes_without_a_gateway() {
    let place = Place::new();
    place.write_config(CONFIG);
    check(&place, WITHOUT_LOG);
    check(&place, ALONE);
}

#[test]
fn exit_codes_with_a_gateway() {
    let place = Place::new();
    place.write_config(CONFIG);
    let mut gateway = Gateway::start(&place, &[]);
    let echo = place.echo();
    let mut add = vec!["add", "echo", "--start", "eager", "--"];
    add.extend(echo.iter().map(String::as_str));
    assert_eq!(place.run(&add).code, Some(0));
    until("echo is ready", || {
        json(&place, &["list", "--json"])["servers"][0]["state"] == "ready"
    });
    check(&place, RUNNING);
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
}

#[test]
fn every_command_has_exit_codes() {
    let count = check_below(&Place::new(), &[]);
    assert!(count > 50, "{count}");
}

/// Checks a command and all its subcommands, and counts them.
fn check_below(place: &Place, command: &[&str]) -> usize {
    let line = command.join(" ");
    let is_told = |(told, _): &(&str, i32)| told.starts_with(&line);
    let mut tables = [ALONE, WITHOUT_LOG, RUNNING].into_iter().flatten();
    assert!(tables.any(is_told), "`{line}` is in no table");
    let wrong = place.run(&[command, &["--nonsense"]].concat());
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let help = place.run(&[command, &["--help"]].concat());
    assert_eq!(help.code, Some(0), "{help:?}");
    let below = listed(&help.out);
    let counts = below
        .iter()
        .map(|name| check_below(place, &[command, &[name]].concat()));
    counts.sum::<usize>() + 1
}
