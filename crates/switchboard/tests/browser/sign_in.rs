//! Signing in to a server from the console: the page of its provider opens in a new tab.

use serde_json::{Value, json};
use switchboard_test_support::{Tools, patiently, provider::Provider};

use crate::{browser::Browser, place::Place};

/// A gateway with a server that wants a sign-in, and its page in the console.
struct Scene {
    provider: Provider,
    place: Place,
    browser: Browser,
    console: Value,
}

impl Scene {
    fn new() -> Option<Self> {
        Self::with(&json!({}))
    }

    /// The same with this sign-in in the entry of the server.
    fn with(oauth: &Value) -> Option<Self> {
        let (tools, browser) = (Tools::peers()?, Browser::start()?);
        let provider = Provider::start(&tools, 3_600);
        let servers = json!({ "notes": { "url": provider.url(), "oauth": oauth } });
        let place = Place::configured(&servers, &json!({}));
        place.open(&browser);
        browser.go(&place.url("servers/notes"));
        browser.until_reads("needs sign-in");
        Some(Self {
            provider,
            place,
            console: browser.tab(),
            browser,
        })
    }

    /// Presses the button, and goes to the page of the provider.
    fn begin(&self) {
        let before = self.browser.tabs();
        self.browser
            .click(&self.browser.by_role("button", "Sign in notes"));
        let opened = patiently(|| {
            let tabs = self.browser.tabs();
            tabs.into_iter().find(|tab| !before.contains(tab))
        });
        self.browser.show(&opened.expect("a tab is opened"));
    }

    /// Presses the button, and answers on the page of the provider.
    fn answer(&self, answer: &str) {
        self.begin();
        self.browser.until_reads("Let the client use");
        let address = self
            .browser
            .execute("return [location.origin, opener]", &json!([]));
        assert_eq!(address, json!([self.provider.origin(), null]));
        self.browser.click(&self.browser.by_role("button", answer));
    }
}

#[test]
fn user_signs_in_from_the_console() {
    let Some(scene) = Scene::new() else { return };
    let browser = &scene.browser;
    assert_eq!(browser.complaints(), Vec::<String>::new());
    scene.answer("Allow");
    browser.until_reads("Signed in");
    let page = browser.tab();
    browser.show(&scene.console);
    browser.until_reads("You are signed in to notes.");
    browser.until_reads("ready");
    browser.show(&page);
    let barriers = browser.barriers();
    assert!(barriers.is_empty(), "{barriers}");
    let call = json!({ "name": "notes:add", "arguments": { "a": 1, "b": 2 } });
    let called = scene.place.post("/api/v1/tools/call", &call).json();
    assert!(called.to_string().contains("3 for ada"), "{called}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn code_is_shown_until_the_end() {
    let oauth = json!({ "grant": "device_code" });
    let Some(scene) = Scene::with(&oauth) else {
        return;
    };
    let browser = &scene.browser;
    // A notice that does not stay is gone at once.
    let hurry = "const later = setTimeout;
        window.setTimeout = (call, time) => later(call, time === 5000 ? 0 : time)";
    browser.execute(hurry, &json!([]));
    scene.begin();
    browser.until_reads("Confirm Device");
    let script = "return document.querySelector('code').textContent";
    let code = browser.execute(script, &json!([]));
    let page = browser.tab();
    browser.show(&scene.console);
    let told = format!("with the code {}", code.as_str().unwrap());
    browser.until_reads(&told);
    browser.show(&page);
    browser.click(&browser.by_role("button", "Continue"));
    browser.until_reads("Let the client use");
    browser.show(&scene.console);
    browser.until_reads(&told);
    browser.until_reads("Agree only if the page names 127.0.0.1");
    // It stays on other pages, among other notices, and while the gateway cannot be reached.
    browser.go(&scene.place.url("activity"));
    browser.until_reads("Calls");
    let more = "window.setTimeout = () => 0;
        return import('/console/notices.js').then((page) => [1, 2, 3, 4].forEach((number) => page.notice(`More ${number}`)))";
    browser.execute(more, &json!([]));
    let text = browser.text();
    assert!(text.contains(&told) && text.contains("More 4"), "{text}");
    assert!(!text.contains("More 1"), "{text}");
    browser.go(&scene.place.url("servers/notes"));
    browser.until_reads(&told);
    browser.show(&page);
    browser.click(&browser.by_role("button", "Allow"));
    browser.until_reads("Sign-in Success");
    browser.show(&scene.console);
    browser.until_reads("ready");
    assert!(!browser.text().contains(&told), "{}", browser.text());
}

#[test]
fn code_needs_no_new_tab() {
    let oauth = json!({ "grant": "device_code" });
    let Some(scene) = Scene::with(&oauth) else {
        return;
    };
    let browser = &scene.browser;
    browser.execute("window.open = () => null", &json!([]));
    browser.click(&browser.by_role("button", "Sign in notes"));
    let page = format!("Open {}/oidc/device in a browser", scene.provider.origin());
    browser.until_reads(&page);
    browser.until_reads("with the code");
}

#[test]
fn denied_sign_in_is_reported() {
    let Some(scene) = Scene::new() else { return };
    let browser = &scene.browser;
    scene.answer("Deny");
    browser.until_reads("Not signed in");
    browser.until_reads("Ada said no");
    browser.show(&scene.console);
    browser.until_reads("access was denied");
    // The user may try again.
    scene.answer("Allow");
    browser.until_reads("Signed in");
    browser.show(&scene.console);
    browser.until_reads("You are signed in to notes.");
}
