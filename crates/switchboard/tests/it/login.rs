//! `switchboard login`, `logout` and `auth list`, where there is no provider. `tests/peers/login.rs` has real providers.

use std::net::TcpListener;

use crate::support::{Gateway, Place, json};

#[test]
fn servers_without_a_sign_in_are_named() {
    let place = Place::new();
    // Nothing listens there once the listener is gone.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let closed = format!("http://{}/mcp", closed.unwrap());
    let config = format!(
        r#"{{
            "memory": {{ "enabled": false }},
            "mcpServers": {{
                "local": {{ "command": "none" }},
                "fixed": {{ "url": "{closed}", "headers": {{ "authorization": "Bearer x" }} }},
                "off": {{ "url": "{closed}", "enabled": false }},
                "held": {{ "url": "{closed}", "hold": true }},
                "unset": {{ "url": "http://127.0.0.1:1/${{env:NOT_SET}}" }},
                "down": {{ "url": "{closed}" }}
            }}
        }}"#
    );
    place.write_config(&config);
    let _gateway = Gateway::start(&place, &[]);
    for (name, message, hint) in [
        (
            "local",
            "server `local` runs on this machine",
            "through `env`",
        ),
        (
            "fixed",
            "has the header `Authorization`",
            "remove the header",
        ),
        (
            "off",
            "server `off` is disabled",
            "`switchboard enable off`",
        ),
        (
            "held",
            "server `held` is held",
            "`switchboard trust approve held`",
        ),
        (
            "unset",
            "the variable NOT_SET is not set",
            "in the environment",
        ),
        ("down", "cannot fetch the", "check the network connection"),
        ("dwon", "there is no server `dwon`", "did you mean `down`?"),
    ] {
        for command in ["login", "logout"] {
            // Without a sign-in, nothing is sent, so the user may sign out of any server that could have one.
            if command == "logout" && matches!(name, "fixed" | "off" | "held" | "down") {
                let done = place.run(&[command, name]);
                let told = format!("signed out of `{name}`\n");
                assert_eq!((done.code, &*done.err), (Some(0), &*told), "{done:?}");
                continue;
            }
            let done = place.run(&[command, name]);
            assert_eq!(done.code, Some(1), "{done:?}");
            assert!(done.err.contains(message), "{command} {name}: {done:?}");
            assert!(done.err.contains(hint), "{command} {name}: {done:?}");
            assert_eq!(done.out, "", "{done:?}");
        }
    }
    let listed = json(&place, &["auth", "list", "--json"]);
    let states: Vec<_> = listed["logins"].as_array().unwrap().iter().collect();
    let names: Vec<_> = states.iter().map(|login| &login["server"]).collect();
    assert_eq!(names, ["down", "held", "off", "unset"], "{listed}");
    assert!(
        states.iter().all(|login| login["state"] == "none"),
        "{listed}"
    );
    // Nothing was stored, so there is no key.
    assert!(!place.home().join("vault.key").exists());
}

#[test]
fn list_is_empty_without_remote_servers() {
    let place = Place::without_memory();
    let none = "there are no servers that you can sign in to\n";
    place.check(&["auth", "list"], 0, "", none);
}
