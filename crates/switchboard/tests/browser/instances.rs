//! The instances of a server that each client has its own of: a tree that follows the gateway, with a button and a log
//! for each.

use std::{fs, path::PathBuf};

use serde_json::json;
use switchboard_test_support::{mcp::Client, server, until, with};

use crate::{
    browser::{Browser, ENTER},
    hostile::check,
    place::Place,
    usability::{pages, text_of},
};

/// A client may have any name.
const HOSTILE: &str = "<img src=x onerror=window.canary=1>";

/// A gateway with such a server, and a directory that clients work in.
fn place() -> (Place, PathBuf) {
    let servers = json!({ "s": with(server(&[]), json!({ "share": "client" })), "t": server(&[]) });
    let place = Place::configured(&servers, &json!({}));
    until("the tools are known", || {
        place.get("/api/v1/tools").body.contains("s:pid")
    });
    let shop = place.path("shop");
    fs::create_dir(&shop).unwrap();
    let shop = shop.canonicalize().unwrap();
    (place, shop)
}

/// The process that serves the client.
fn pid(client: &mut Client) -> String {
    client.call("s__pid", json!({})).unwrap()
}

/// The texts of the cells of each row whose name starts like this.
fn rows(browser: &Browser, name: &str) -> Vec<Vec<String>> {
    let script = "return [...document.querySelectorAll('main tbody tr')]
        .map((row) => [...row.cells].map((cell) => cell.innerText.trim()))
        .filter((cells) => cells[0].startsWith(arguments[0]))";
    serde_json::from_value(browser.execute(script, &json!([name]))).unwrap()
}

fn until_rows(browser: &Browser, count: usize) -> Vec<Vec<String>> {
    until("the rows are as expected", || {
        rows(browser, "s/").len() == count
    });
    rows(browser, "s/")
}

/// Waits until the page shows that no call is in flight. Otherwise a restart asks for confirmation.
fn until_idle(browser: &Browser) {
    until("no call is in flight", || {
        rows(browser, "s")
            .iter()
            .all(|cells| cells.iter().rev().nth(1).unwrap() == "0")
    });
}

/// Checks that the page is accessible on a wide and on a narrow screen.
fn check_looks(browser: &Browser, name: &str) {
    for width in [1280, 390] {
        browser.look(width, false);
        assert_eq!(browser.barriers(), "", "{name} at {width}");
    }
    pages(browser, name);
}

#[test]
fn instances_are_rows_under_their_server() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let (place, shop) = place();
    place.open(&browser);
    browser.go(&place.url("servers"));
    browser.until_reads("Restart");
    assert!(rows(&browser, "s/").is_empty());
    // The page follows the gateway while the user only looks at it.
    let mut first = place.client_in("claude-code", &shop);
    let mut second = place.client_in(HOSTILE, &shop);
    let before = [pid(&mut first), pid(&mut second)];
    let shown = until_rows(&browser, 2);
    for (cells, client) in shown.iter().zip(["claude-code", HOSTILE]) {
        let callers = format!("{client} in {}", shop.display());
        assert!(cells[0].ends_with(&callers), "{cells:?}");
        assert!(cells[1].starts_with("ready"), "{cells:?}");
    }
    let order = browser.execute(
        "return [...document.querySelectorAll('main tbody a.row')].map((link) => link.innerText)",
        &json!([]),
    );
    assert_eq!(order, json!(["memory", "s", "s/1", "s/2", "t"]));
    browser.until("document.querySelector('main tr:nth-child(2)').innerText.includes('ready')");
    check(&browser, "servers", &[HOSTILE]);
    check_looks(&browser, "servers-instances");

    until_idle(&browser);
    browser.tab_to("button", "Restart s/2");
    browser.press(ENTER);
    browser.until_reads("s/2 is restarting.");
    until("another process serves the client", || {
        pid(&mut second) != before[1]
    });
    assert_eq!(pid(&mut first), before[0]);
    assert_eq!(until_rows(&browser, 2)[1][0], shown[1][0]);

    second.end();
    assert_eq!(until_rows(&browser, 1)[0][0], shown[0][0]);
    first.end();
    until_rows(&browser, 0);
    browser.until("!document.querySelector('main tr:nth-child(2)').innerText.includes('ready')");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn server_page_has_logs_of_instances() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let (place, shop) = place();
    let mut first = place.client_in("claude-code", &shop);
    let mut second = place.client_in(HOSTILE, &shop);
    let before = [pid(&mut first), pid(&mut second)];
    place.open(&browser);
    browser.go(&place.url("servers/t"));
    browser.until_reads("one for all clients");
    browser.go(&place.url("servers/s"));
    browser.until_reads("one for each client: its entry sets share");
    let shown = until_rows(&browser, 2);
    assert!(shown[1][2].starts_with(HOSTILE), "{shown:?}");
    check(&browser, "the server", &[HOSTILE]);
    let log = || text_of(&browser, ".log");
    browser.until(
        "['[1]', '[2]'].every((mark) => document.querySelector('.log').innerText.includes(mark))",
    );

    browser.click(&browser.by_role("link", "Log of s/2"));
    browser.until("document.querySelector('.log').innerText.includes('[2]')");
    assert!(!log().contains("[1]"), "{}", log());
    assert_eq!(browser.focus().1, "Log of s/2");
    check_looks(&browser, "server-instances");
    // Back to the whole log, and to the link that led away from it.
    browser.execute("document.activeElement.blur()", &json!([]));
    browser.press("\u{e00c}");
    browser.until("document.querySelector('.log').innerText.includes('[1]')");
    assert_eq!(browser.focus().1, "Log of s/2");

    browser.press(ENTER);
    browser.until("location.hash === '#servers/s/2'");
    until_idle(&browser);
    browser.click(&browser.by_role("button", "Restart s/2"));
    browser.until_reads("s/2 is restarting.");
    until("another process serves the client", || {
        pid(&mut second) != before[1]
    });
    assert_eq!(pid(&mut first), before[0]);
    // The log of an instance that has ended can still be read.
    second.end();
    browser.until_reads("s/2 is not running.");
    assert_eq!(until_rows(&browser, 1)[0][0], "s/1");
    assert!(log().contains("[2]"), "{}", log());
    browser.go(&place.url("servers/s/99"));
    browser.until_reads("s/99 is not running.");
    browser.go(&place.url("servers/s/x"));
    browser.until("document.querySelector('.log').innerText.includes('[1]')");
    browser.until("document.title === 's · Switchboard'");
}
