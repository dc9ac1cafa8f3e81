//! The environment of a server: a fixed list, its own variables, and the inherited ones.

use std::{collections::BTreeMap, ffi::OsStr};

use serde_json::json;
use switchboard_test_support::{Home, pipe::Pipe, processes, server, until, with};

/// The process ID of a server, once it responds.
fn pid(pipe: &mut Pipe, server: &str) -> i32 {
    let tool = format!("{server}__pid");
    let pid = until(&tool, || pipe.call(&tool, json!({})).ok());
    pid.parse().unwrap()
}

const SECRETS: [&str; 5] = [
    "GH_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "ANTHROPIC_API_KEY",
    "BANK_KEY",
    "npm_config__authToken",
];

#[test]
fn server_gets_listed_own_and_inherited_variables() {
    let home = Home::new(json!({
        "bank": with(server(&[]), json!({ "env": { "KEY": "${env:BANK_KEY}" } })),
        "weather": with(server(&[]), json!({
            "env": { "UNITS": "metric", "KUBECONFIG": "/own" },
            "inheritEnv": ["KUBECONFIG", "SSH_AUTH_SOCK", "NOT_SET"],
        })),
        "all": with(server(&[]), json!({ "env": { "TZ": "UTC" }, "inheritEnv": true })),
    }));
    let dir = tempfile::tempdir().unwrap();
    let hush = OsStr::new("hush");
    let mut variables: Vec<(&str, &OsStr)> = SECRETS.map(|name| (name, hush)).into();
    let listed = [
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/nonexistent/home"),
        ("LANG", "C.UTF-8"),
        ("LC_TIME", "C"),
        ("TZ", "Europe/Berlin"),
        ("HTTPS_PROXY", "http://user:password@127.0.0.1:9"),
        ("npm_config_registry", "http://127.0.0.1:9/"),
    ];
    variables.extend(listed.map(|(name, value)| (name, OsStr::new(value))));
    variables.extend(
        [
            ("KUBECONFIG", "/theirs"),
            ("SSH_AUTH_SOCK", "/agent"),
            ("LD_PRELOAD", ""),
            ("NODE_OPTIONS", "--no-warnings"),
            ("PYTHONPATH", "/evil"),
            ("BASH_ENV", "/evil"),
            ("UV_INDEX_PRIVATE_PASSWORD", "hush"),
            ("UV_INDEX_URL", "https://user:hush@127.0.0.1/simple"),
        ]
        .map(|(name, value)| (name, OsStr::new(value))),
    );
    let mut pipe = Pipe::open_alone(&home, dir.path(), &variables);

    let with_own = |own: &[(&str, &str)]| {
        let mut all: BTreeMap<String, String> = listed
            .iter()
            .chain(own)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        all.remove("SWITCHBOARD_CONTAINED");
        all
    };
    let seen = |pid: i32| {
        let mut environment = processes::environment(pid);
        let marker = environment.remove("SWITCHBOARD_CONTAINED");
        assert!(marker.is_some(), "{environment:?}");
        environment
    };
    let bank = pid(&mut pipe, "bank");
    assert_eq!(seen(bank), with_own(&[("KEY", "hush")]));
    let weather = pid(&mut pipe, "weather");
    assert_eq!(
        seen(weather),
        with_own(&[
            ("UNITS", "metric"),
            ("KUBECONFIG", "/own"),
            ("SSH_AUTH_SOCK", "/agent"),
        ])
    );
    let all = seen(pid(&mut pipe, "all"));
    assert_eq!(all["TZ"], "UTC");
    for name in SECRETS {
        assert_eq!(all[name], "hush");
    }
    // A guard has no variables that its server could read.
    for server in [bank, weather] {
        assert!(seen(processes::parent(server)).is_empty());
    }
    pipe.leave();
    assert!(pipe.ended().success());
}
