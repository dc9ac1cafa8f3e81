//! The access page: tokens are created, rotated and revoked, and sessions of the console are ended.

use serde_json::{Value, json};

use crate::{
    browser::{Browser, ENTER},
    http,
    place::Place,
    usability::{pages, text_of},
};

const SHOWN: &str = "document.querySelector('.issued pre')?.innerText";
const SESSION: &str = "localStorage.getItem('switchboard.token')";

fn place() -> Place {
    let schema = json!({ "type": "object", "required": ["path"], "properties": {
        "path": { "type": "string" }, "lines": { "type": "integer", "description": "How many." } } });
    let tool =
        json!({ "name": "read", "inputSchema": schema, "annotations": { "readOnlyHint": true } });
    let profile = json!({ "servers": ["files"] });
    let confined = json!({ "servers": ["files", "memory"], "memory": { "namespace": "notes" } });
    let settings = json!({ "profiles": {
        "work": profile, "notes": confined, "menu": { "view": "search" } } });
    Place::new(&["files", "mail"], &json!({ "tools": [tool] }), &settings)
}

/// A gateway whose configuration renames a tool and fixes one of its arguments.
fn place_with_override() -> Place {
    let place = place();
    let config = place.path("home/switchboard.json");
    let text = std::fs::read_to_string(&config).unwrap();
    let mut changed: Value = serde_json::from_str(&text).unwrap();
    changed["mcpServers"]["files"]["overrides"] =
        json!({ "read": { "name": "look", "arguments": { "path": { "value": "/a" } } } });
    std::fs::write(&config, changed.to_string()).unwrap();
    place.post("/api/v1/config/reload", &json!({}));
    place
}

/// The arguments that the page of a profile shows for a tool, with their types.
fn arguments(browser: &Browser, tool: &str) -> Vec<String> {
    let arguments = "(() => {
        const one = [...document.querySelectorAll('main article')].find((one) => one.querySelector('h3').innerText.trim() === TOOL);
        return one ? [...one.querySelectorAll('.outline dt')].map((dt) => dt.innerText.trim()) : null;
    })()";
    let arguments = browser.until(&arguments.replace("TOOL", &Value::from(tool).to_string()));
    serde_json::from_value(arguments).unwrap()
}

fn open(browser: &Browser, place: &Place) {
    place.open(browser);
    browser.go(&place.url("access"));
    browser.by_role("button", "Create");
}

/// The HTTP status that an MCP client with this token gets.
fn connect(place: &Place, token: &str) -> u16 {
    let headers =
        format!("Authorization: Bearer {token}\r\nAccept: application/json, text/event-stream\r\n");
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "a-client", "version": "1" } } });
    http::ask(&place.address, "POST", "/mcp", &headers, Some(&hello)).status
}

/// Creates a token in the page.
fn create(browser: &Browser, name: &str) -> String {
    browser.fill(&browser.by_role("textbox", "Name"), name);
    browser.click(&browser.by_role("button", "Create"));
    browser.until_reads(&format!("The token {name} is created."));
    shown(browser)
}

/// The token that the page shows.
fn shown(browser: &Browser) -> String {
    browser.until(SHOWN).as_str().unwrap().to_owned()
}

fn tokens(place: &Place) -> Vec<Value> {
    let listed = place.get("/api/v1/tokens").json();
    listed["tokens"].as_array().unwrap().clone()
}

fn sessions(place: &Place) -> usize {
    let listed = place.get("/api/v1/console/sessions").json();
    listed["sessions"].as_array().unwrap().len()
}

/// The texts of the cells of a row.
fn row(browser: &Browser, name: &str) -> Vec<String> {
    let cells = "[...document.querySelectorAll('main tbody tr')]
        .map((row) => [...row.cells].map((cell) => cell.innerText.trim()))
        .find((cells) => cells[0].startsWith(NAME)) ?? null";
    let cells = browser.until(&cells.replace("NAME", &Value::from(name).to_string()));
    serde_json::from_value(cells).unwrap()
}

#[test]
fn token_is_created_used_rotated_and_revoked() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    open(&browser, &place);
    browser.until_reads("No tokens.");
    assert_eq!(connect(&place, "swb_0000000000000000_0"), 401);
    let first = create(&browser, "laptop");
    assert_eq!(browser.focus().1, "The token laptop is created.");
    browser.until_reads("It is shown only now");
    assert_eq!(
        row(&browser, "laptop")[1..6],
        ["call", "–", "never", "never", "–"]
    );
    assert_eq!(connect(&place, &first), 200);
    // Without a change by the user, the page shows that the token was used.
    browser.until_reads("a-client");
    assert_eq!(shown(&browser), first);

    browser.click(&browser.by_role("button", "Rotate laptop"));
    browser.click(&browser.by_role("button", "Cancel"));
    assert_eq!(connect(&place, &first), 200);
    browser.click(&browser.by_role("button", "Rotate laptop"));
    browser.click(&browser.find("dialog .danger"));
    browser.until_reads("The token laptop is rotated.");
    let second = shown(&browser);
    assert_eq!(connect(&place, &first), 401);
    assert_eq!(connect(&place, &second), 200);

    browser.click(&browser.by_role("button", "Revoke laptop"));
    browser.click(&browser.find("dialog .danger"));
    browser.until_reads("The token laptop is revoked.");
    browser.until_reads("No tokens.");
    assert_eq!(connect(&place, &second), 401);
    assert!(!browser.text().contains(&second));
    assert_eq!(tokens(&place), [json!(null); 0]);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn new_token_has_the_chosen_limits() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    open(&browser, &place);
    browser.fill(&browser.by_role("textbox", "Name"), "ci");
    for name in ["approve", "files", "mail"] {
        browser.click(&browser.by_role("checkbox", name));
    }
    browser.choose("form .field-row .field:nth-child(2) select", "2592000");
    browser.choose("form .field-row .field:nth-child(3) select", "work");
    browser.click(&browser.by_role("button", "Create"));
    browser.until_reads("The token ci is created.");
    let made = &tokens(&place)[0];
    assert_eq!(made["rights"], json!(["call", "approve"]));
    assert_eq!(made["profile"], "work");
    assert_eq!(made["servers"], json!(["files", "mail"]));
    assert!(made["expiresAt"].is_string(), "{made}");
    let shown = row(&browser, "ci");
    assert_eq!(shown[1], "call, approve");
    assert_eq!(shown[2], "profile work, servers files, mail");
    // With the day: a time alone would be one of today.
    assert!(shown[3].contains(", "), "{shown:?}");
    // The form is empty again.
    let kept = "return [...document.querySelectorAll('form :checked')].map((one) => one.value)";
    let kept = browser.execute(kept, &json!([]));
    assert_eq!(kept, json!(["", "", "call"]));
    for (width, dark) in [(1280, false), (1280, true), (390, false)] {
        browser.look(width, dark);
        assert_eq!(browser.barriers(), "");
        let shade = if dark { "dark" } else { "light" };
        browser.screenshot(&format!("token-{width}-{shade}"));
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn token_with_a_taken_name_is_refused() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    open(&browser, &place);
    let first = create(&browser, "ci");
    browser.fill(&browser.by_role("textbox", "Name"), "ci");
    browser.press(ENTER);
    browser.until_reads("there is already a token ci; choose another name");
    // The user can correct the name, and the first token is still shown.
    assert_eq!(shown(&browser), first);
    assert_eq!(tokens(&place).len(), 1);
    browser.fill(&browser.by_role("textbox", "Name"), "ci/2");
    browser.press(ENTER);
    browser.until_reads("a token's name has 1 to 64 letters");
    browser.screenshot("token-refused-1280-light");
    assert_ne!(create(&browser, "ci-2"), first);
    assert!(!browser.text().contains("a token's name has"));
    assert_eq!(tokens(&place).len(), 2);
}

#[test]
fn token_is_gone_after_leaving_the_page() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    open(&browser, &place);
    let holds = |secret: &str| {
        let script = "const [secret] = arguments;
            return [document.documentElement.outerHTML, location.href, JSON.stringify(history.state ?? null),
                JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage }), document.cookie]
                .map((text) => text.includes(secret))";
        let holds = browser.execute(script, &json!([secret]));
        holds.as_array().unwrap().contains(&json!(true))
    };
    let first = create(&browser, "first");
    assert!(holds(&first));
    browser.click(&browser.find("#pages a[href='#settings']"));
    browser.until_reads("This browser");
    assert!(!holds(&first));
    browser.execute("history.back()", &json!([]));
    row(&browser, "first");
    assert!(!holds(&first));

    let second = create(&browser, "second");
    browser.click(&browser.by_role("button", "Hide the token"));
    assert!(!holds(&second));
    assert_eq!(browser.focus().1, "Tokens");

    // The browser may restore a page with its content.
    let third = create(&browser, "third");
    browser.go("about:blank");
    browser.execute("history.back()", &json!([]));
    browser.until("location.protocol === 'http:' && document.querySelector('main h1')?.innerText");
    assert!(!holds(&third));
    // The browser chooses the entry of its history that it returns to.
    browser.go(&place.url("access"));
    row(&browser, "third");
    assert!(!holds(&third));
    assert_eq!(connect(&place, &third), 200);
}

#[test]
fn sessions_are_listed_and_ended() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    place.open(&browser);
    let first = browser.until(SESSION).as_str().unwrap().to_owned();
    let link = place.post("/api/v1/console/link", &json!({})).json();
    browser.go("about:blank");
    browser.go(link["url"].as_str().unwrap());
    browser.until(&format!("{SESSION} !== {}", Value::from(&*first)));
    let own = browser.until(SESSION).as_str().unwrap().to_owned();
    let [first_id, own_id] = [&first, &own].map(|token| token.split_once('.').unwrap().0);
    let works = || {
        let script = "const [token] = arguments;
            return fetch('/api/v1/status', { headers: { Authorization: `Bearer ${token}` } }).then((answer) => answer.status)";
        browser.execute(script, &json!([first]))
    };
    assert_eq!(works(), 200);
    browser.go(&place.url("access"));
    assert!(!row(&browser, first_id)[0].contains("this browser"));
    assert!(row(&browser, own_id)[0].contains("this browser"));
    browser.click(&browser.by_role("button", &format!("End {first_id}")));
    browser.click(&browser.by_role("button", "Cancel"));
    assert_eq!(sessions(&place), 2);
    browser.click(&browser.by_role("button", &format!("End {first_id}")));
    browser.click(&browser.by_role("button", "End session"));
    browser.until_reads("The session is ended.");
    browser.until(&format!(
        "!document.querySelector('main').innerText.includes('{first_id}')"
    ));
    assert_eq!(sessions(&place), 1);
    assert_eq!(browser.complaints(), [""; 0]);
    assert_eq!(works(), 401);
    row(&browser, own_id);

    browser.click(&browser.by_role("button", "End all sessions"));
    browser.click(&browser.find("dialog .danger"));
    browser.until_reads("You are signed out. To sign in");
    assert_eq!(sessions(&place), 0);
}

#[test]
fn user_signs_out_of_the_own_session() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    open(&browser, &place);
    browser.click(&browser.by_role("button", "Sign out"));
    browser.until_reads("You are signed out. To sign in");
    assert_eq!(sessions(&place), 0);
    assert!(browser.execute("return localStorage.length", &json!([])) == 0);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn connected_client_is_listed_with_its_view() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    open(&browser, &place);
    let token = create(&browser, "ci");
    assert_eq!(connect(&place, &token), 200);
    browser.go(&place.url("overview"));
    browser.go(&place.url("access"));
    let cells = row(&browser, "a-client");
    assert!(cells.contains(&"token ci".to_owned()), "{cells:?}");
    let sees = "every tool: the list of tools is short".to_owned();
    assert!(cells.contains(&sees), "{cells:?}");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn profile_is_shown_as_its_clients_see_it() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place_with_override();
    open(&browser, &place);
    browser.click(&browser.by_role("link", "work"));
    browser.until_reads("Profile work");
    browser.until_reads("Annotations: read-only");
    // The other argument is fixed.
    assert_eq!(arguments(&browser, "files__look"), ["lines integer"]);
    let text = browser.text();
    assert!(!text.contains("mail__"), "{text}");
    assert_eq!(browser.barriers(), "");
    // The namespace is fixed, and nothing is shown that does not have one.
    let namespace = "namespace string".to_owned();
    for (profile, is_fixed) in [("notes", true), ("menu", false)] {
        browser.go(&place.url(&format!("access/{profile}")));
        browser.until_reads(&format!("Profile {profile}"));
        let shown = arguments(&browser, "memory__store_memory");
        assert!(
            shown.contains(&"content string required".to_owned()),
            "{shown:?}"
        );
        assert_eq!(shown.contains(&namespace), !is_fixed, "{shown:?}");
        assert_eq!(browser.text().contains("Prompts ("), !is_fixed);
    }
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn menu_of_a_profile_comes_first() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place();
    place.open(&browser);
    browser.go(&place.url("access/menu"));
    browser.until_reads("Its clients see a menu: its profile sets this view.");
    let titles = "return [...document.querySelectorAll('main h2, main h3')].map((one) => one.innerText.trim())";
    let titles = browser.execute(titles, &json!([]));
    let titles = titles.as_array().unwrap();
    assert_eq!(titles[..2], ["Menu (5)", "retrieve_tools"]);
    assert!(titles.contains(&json!("files__read")), "{titles:?}");
    browser.until_reads("Its clients find these tools by search");
    assert_eq!(
        arguments(&browser, "describe_tool"),
        ["name string required"]
    );
    assert_eq!(browser.barriers(), "");
    pages(&browser, "profile-menu");
    browser.go(&place.url("access/work"));
    browser.until_reads("Its clients see every tool");
    assert!(!browser.text().contains("by search"));
}

#[test]
fn override_is_shown_beside_the_definition() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let place = place_with_override();
    place.open(&browser);
    browser.go(&place.url("tools/files/read"));
    browser.until_reads("Name for clients");
    browser.until_reads("files__look");
    browser.until_reads("Fixed argument path");
    let for_clients = text_of(&browser, "main .card .outline");
    assert!(
        for_clients.contains("lines") && !for_clients.contains("path"),
        "{for_clients}"
    );
    browser.click(&browser.find(".override summary"));
    browser.until_reads("Definition of the server");
    let of_server = text_of(&browser, ".override details pre");
    assert!(of_server.contains(r#""path": {"#), "{of_server}");
    assert_eq!(browser.barriers(), "");
    pages(&browser, "tool-override");
    assert_eq!(browser.complaints(), [""; 0]);
}
