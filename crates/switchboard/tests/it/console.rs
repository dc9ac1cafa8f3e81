//! Sign-in to the console: the link that `serve` prints, and the one that a command prints.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    process::Stdio,
};

use switchboard_test_support::until;

use crate::support::{Gateway, Place, json};

/// The gateway's response to the key of a link.
fn sign_in(gateway: &Gateway, link: &str) -> String {
    let (host, key) = link.split_once("/#sign-in=").unwrap();
    let host = host.strip_prefix("http://").unwrap();
    let (name, port) = host.split_once(':').unwrap();
    assert!(name.ends_with(".localhost"), "{link}");
    assert!(gateway.address.ends_with(&format!(":{port}")), "{link}");
    let body = format!("{{\"key\":\"{key}\"}}");
    let mut stream = TcpStream::connect(&gateway.address).unwrap();
    let head = format!(
        "POST /api/v1/console/sign-in HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn printed_link_opens_the_console_once() {
    let place = Place::new();
    let gateway = Gateway::start(&place, &[]);
    let answer = sign_in(&gateway, &gateway.console);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let answer = sign_in(&gateway, &gateway.console);
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}

#[test]
fn console_command_prints_a_new_link() {
    let place = Place::new();
    let gateway = Gateway::start(&place, &[]);
    place.check(
        &["console", "--sessions"],
        0,
        "",
        "no browser is signed in\n",
    );
    let done = place.run(&["console"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.err.contains("Chromium") && done.err.contains("Firefox"),
        "{done:?}"
    );
    let link = done.out.strip_suffix('\n').unwrap();
    assert_ne!(link, gateway.console);
    let other = json(&place, &["console", "--json"]);
    for link in [link, other["url"].as_str().unwrap()] {
        let answer = sign_in(&gateway, link);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

/// A browser may look for the console at the other address.
#[test]
fn other_program_at_the_port_leaves_no_console() {
    let other = TcpListener::bind("[::1]:0").unwrap();
    let taken = other.local_addr().unwrap();
    let listen = format!("127.0.0.1:{}", taken.port());
    let place = Place::new();
    let mut serve = place
        .command(&["serve", "--listen", &listen])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the gateway answers", || {
        place.run(&["status"]).code == Some(0)
    });
    let done = place.run(&["console"]);
    assert_eq!((done.code, &*done.out), (Some(1), ""), "{done:?}");
    assert!(done.err.contains(&taken.to_string()), "{done:?}");
    for command in ["status", "doctor"] {
        let done = place.run(&[command]);
        let said = format!("{}{}", done.out, done.err);
        assert!(said.contains(&taken.to_string()), "{done:?}");
    }
    serve.kill().unwrap();
    serve.wait().unwrap();
}

#[test]
fn console_needs_a_gateway() {
    let place = Place::new();
    let done = place.run(&["console"]);
    assert_eq!((done.code, &*done.out), (Some(3), ""), "{done:?}");
    assert!(
        done.err.contains("start one with `switchboard serve`"),
        "{done:?}"
    );
}

#[test]
fn browser_is_opened_on_request() {
    let place = Place::new();
    let _gateway = Gateway::start(&place, &[]);
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let opened = place.user().join("opened");
    let script = format!(
        "#!/bin/sh\nprintf '%s ' \"$@\" > {0}.args\nstat -c %a \"$1\" > {0}.mode\ncat \"$1\" > {0}\n",
        opened.display()
    );
    let script = place.write(&format!("bin/{opener}"), &script);
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let foreign = place.write(&format!("user/repo/bin/{opener}"), "#!/bin/sh\nexit 1\n");
    fs::set_permissions(&foreign, fs::Permissions::from_mode(0o755)).unwrap();
    let repo = place.user().join("repo");
    fs::create_dir(repo.join(".git")).unwrap();
    let open = |path: &str| {
        let output = place
            .command(&["console", "--open"])
            .current_dir(&repo)
            .env("PATH", path)
            .output();
        output.unwrap()
    };
    let done = open(&format!(
        "./bin:{}:{}:/usr/bin:/bin",
        repo.join("bin").display(),
        script.parent().unwrap().display()
    ));
    assert!(done.status.success(), "{done:?}");
    let link = String::from_utf8(done.stdout).unwrap();
    let told = |ending| fs::read_to_string(opened.with_extension(ending)).unwrap();
    let page = fs::read_to_string(&opened).unwrap();
    assert!(page.contains(&format!("{:?}", link.trim())), "{page}");
    assert_eq!(told("mode").trim(), "600");
    // Every user of the machine can read the arguments.
    assert!(!told("args").contains("sign-in"), "{}", told("args"));
    // Without a browser, the link is still printed.
    let done = open("/nowhere");
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stdout).contains("/#sign-in="));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        said.contains(opener) && said.contains("copy the link"),
        "{said}"
    );
}
