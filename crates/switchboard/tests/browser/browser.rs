//! Chromium over `WebDriver`: the part of the protocol that the tests need.

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustix::process::{Pid, Signal, getuid, kill_process};
use serde_json::{Value, json};
use switchboard_test_support::{Tools, patiently, tools};
use tempfile::TempDir;

use crate::http;

pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const CONTROL: char = '\u{e009}';

/// True when no decision button is still disabled by its initial delay.
pub(crate) const READY: &str = "document.querySelector('fieldset.decide, main h1') !== null \
    && document.querySelector('fieldset.decide button:disabled, .held-tool button:disabled') === null";

/// The key under which `WebDriver` names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Headless and isolated: the browser makes no network requests but those of the page.
const FLAGS: [&str; 13] = [
    "--window-size=1280,900",
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--lang=en",
];

/// A browser with one page, which ends with the test.
pub(crate) struct Browser {
    driver: Child,
    address: String,
    session: String,
    profile: TempDir,
    axe: String,
}

/// An element of the page.
#[derive(Debug, Clone)]
pub(crate) struct Element(String);

impl Browser {
    /// Starts the browser; `None` if the tests that need it are skipped.
    pub(crate) fn start() -> Option<Self> {
        const AXE: &str = "browser/node_modules/axe-core/axe.min.js";
        let axe = fs::read_to_string(Tools::need(&[AXE])?.path(AXE)).unwrap();
        let (driver, chromium) = (tools::program("chromedriver"), tools::program("chromium"));
        Some(Self::launch(&driver, &chromium, axe))
    }

    fn launch(driver: &Path, chromium: &Path, axe: String) -> Self {
        let profile = TempDir::new().unwrap();
        let mut driver = Command::new(driver)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let port = BufReader::new(driver.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, port) = line.split_once("started successfully on port ")?;
                port.trim_end_matches('.').parse::<u16>().ok()
            });
        let mut browser = Self {
            driver,
            address: format!("127.0.0.1:{}", port.expect("chromedriver says where it is")),
            session: String::new(),
            profile,
            axe,
        };
        let mut flags: Vec<_> = FLAGS.iter().map(ToString::to_string).collect();
        flags.push(format!(
            "--user-data-dir={}",
            browser.profile.path().display()
        ));
        if getuid().is_root() {
            // Chromium's own sandbox refuses to run as root.
            flags.push("--no-sandbox".to_owned());
        }
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "binary": chromium, "args": flags },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
            // An unexpected dialog makes the next command fail.
            "unhandledPromptBehavior": "dismiss and notify",
        } } });
        let session = browser.post("/session", &wanted).unwrap();
        session["sessionId"]
            .as_str()
            .unwrap()
            .clone_into(&mut browser.session);
        browser
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value, Value> {
        Self::value(&http::ask(&self.address, "POST", path, "", Some(body)))
    }

    fn value(answer: &http::Answer) -> Result<Value, Value> {
        let value = answer.json()["value"].take();
        if answer.status == 200 {
            Ok(value)
        } else {
            Err(value)
        }
    }

    /// Runs a command of the session, which has to succeed.
    #[track_caller]
    fn command(&self, path: &str, body: &Value) -> Value {
        match self.post(&format!("/session/{}/{path}", self.session), body) {
            Ok(value) => value,
            Err(error) => panic!("{path}: {} {}", error["error"], error["message"]),
        }
    }

    fn get(&self, path: &str) -> Value {
        let path = format!("/session/{}/{path}", self.session);
        Self::value(&http::ask(&self.address, "GET", &path, "", None)).unwrap()
    }

    /// Runs a command of Chromium's own protocol.
    #[track_caller]
    pub(crate) fn cdp(&self, command: &str, params: &Value) -> Value {
        self.command(
            "goog/cdp/execute",
            &json!({ "cmd": command, "params": params }),
        )
    }

    /// Opens a URL.
    #[track_caller]
    pub(crate) fn go(&self, url: &str) {
        self.command("url", &json!({ "url": url }));
    }

    /// The tabs, in no order.
    pub(crate) fn tabs(&self) -> Vec<Value> {
        self.get("window/handles").as_array().unwrap().clone()
    }

    /// The tab that commands go to.
    pub(crate) fn tab(&self) -> Value {
        self.get("window")
    }

    /// Sends the next commands to this tab.
    pub(crate) fn show(&self, tab: &Value) {
        self.command("window", &json!({ "handle": tab }));
    }

    /// Runs a script of the test and returns its value. The policy of the page does not apply to it.
    #[track_caller]
    pub(crate) fn execute(&self, script: &str, args: &Value) -> Value {
        self.command("execute/sync", &json!({ "script": script, "args": args }))
    }

    /// Waits until this expression is true, and returns its value.
    #[track_caller]
    pub(crate) fn until(&self, expression: &str) -> Value {
        let script = format!("return {expression}");
        let look = || {
            let value = self.execute(&script, &json!([]));
            Some(value).filter(|value| !matches!(value, Value::Null | Value::Bool(false)))
        };
        patiently(look).unwrap_or_else(|| {
            panic!(
                "never: {expression}\non a page that says\n{}\nand complains\n{:?}",
                self.text(),
                self.complaints()
            )
        })
    }

    /// All visible text of the page.
    pub(crate) fn text(&self) -> String {
        let text = self.execute("return document.body.innerText", &json!([]));
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the page contains this text.
    #[track_caller]
    pub(crate) fn until_reads(&self, text: &str) {
        self.until(&format!(
            "document.body.innerText.includes({})",
            Value::from(text)
        ));
    }

    /// Waits for the element that this selector finds.
    #[track_caller]
    pub(crate) fn find(&self, css: &str) -> Element {
        self.until(&format!(
            "document.querySelector({}) !== null",
            Value::from(css)
        ));
        let found = self.command("element", &json!({ "using": "css selector", "value": css }));
        Element(found[ELEMENT].as_str().unwrap().to_owned())
    }

    /// Waits for the element with this role and name, as a screen reader announces them, until it can be
    /// used.
    #[track_caller]
    pub(crate) fn by_role(&self, role: &str, name: &str) -> Element {
        const CANDIDATES: &str = "return [...document.querySelectorAll('a, button, input, textarea, select, summary, h1, h2, h3, [role], [aria-label]')]
            .filter((one) => one.checkVisibility() && !one.matches(':disabled'))
            .filter((one) => [one.innerText, one.ariaLabel, one.placeholder, ...[...(one.labels ?? [])].map((label) => label.innerText)]
                .some((text) => text?.includes(arguments[0])))";
        let look = || {
            let found = self.execute(CANDIDATES, &json!([name]));
            let found = found.as_array().unwrap().iter();
            let mut found = found.map(|one| Element(one[ELEMENT].as_str().unwrap().to_owned()));
            let known = |one: &Element| {
                let said = |what: &str| {
                    let path = format!("/session/{}/element/{}/{what}", self.session, one.0);
                    // The element may be gone by now.
                    Self::value(&http::ask(&self.address, "GET", &path, "", None))
                        .unwrap_or_default()
                };
                let label = said("computedlabel");
                let label = label.as_str().unwrap_or_default().trim();
                said("computedrole") == role && label.starts_with(name)
            };
            found.find(known)
        };
        patiently(look).unwrap_or_else(|| {
            panic!(
                "there is no {role} {name:?} on a page that says\n{}",
                self.text()
            )
        })
    }

    #[track_caller]
    pub(crate) fn click(&self, element: &Element) {
        self.command(&format!("element/{}/click", element.0), &json!({}));
    }

    /// Replaces the text of an element.
    #[track_caller]
    pub(crate) fn fill(&self, element: &Element, text: &str) {
        self.command(&format!("element/{}/clear", element.0), &json!({}));
        self.command(
            &format!("element/{}/value", element.0),
            &json!({ "text": text }),
        );
    }

    /// Chooses a value of a select element.
    #[track_caller]
    pub(crate) fn choose(&self, css: &str, value: &str) {
        self.find(css);
        self.execute(
            "const [css, value] = arguments; const node = document.querySelector(css);
            node.value = value; node.dispatchEvent(new Event('change', { bubbles: true }))",
            &json!([css, value]),
        );
    }

    /// Chooses a file.
    #[track_caller]
    pub(crate) fn choose_file(&self, css: &str, file: &Path) {
        let element = self.find(css);
        self.command(
            &format!("element/{}/value", element.0),
            &json!({ "text": file }),
        );
    }

    /// Sets the folder for downloads.
    pub(crate) fn save_to(&self, folder: &Path) {
        let params = json!({ "behavior": "allow", "downloadPath": folder });
        self.cdp("Browser.setDownloadBehavior", &params);
    }

    /// Presses keys one after another, in the focused element. Keys after Control are pressed with it.
    #[track_caller]
    pub(crate) fn press(&self, keys: &str) {
        let mut actions = Vec::new();
        let mut held = false;
        for key in keys.chars() {
            actions.push(json!({ "type": "keyDown", "value": key }));
            if key == CONTROL {
                held = true;
            } else {
                actions.push(json!({ "type": "keyUp", "value": key }));
            }
        }
        if held {
            actions.push(json!({ "type": "keyUp", "value": CONTROL }));
        }
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.command("actions", &json!({ "actions": [keyboard] }));
    }

    /// The role and the name of the focused element.
    pub(crate) fn focus(&self) -> (String, String) {
        let active = self.get("element/active");
        let id = active[ELEMENT].as_str().unwrap();
        let said = |what: &str| {
            let said = self.get(&format!("element/{id}/{what}"));
            said.as_str().unwrap_or_default().trim().to_owned()
        };
        (said("computedrole"), said("computedlabel"))
    }

    /// Presses Tab until an element with this role and name has the focus.
    #[track_caller]
    pub(crate) fn tab_to(&self, role: &str, name: &str) {
        let mut passed = Vec::new();
        for _ in 0..100 {
            let focus = self.focus();
            if focus.0 == role && focus.1.starts_with(name) {
                return;
            }
            passed.push(focus);
            self.press(TAB);
        }
        panic!("Tab never comes to the {role} {name:?}, but to {passed:?}");
    }

    /// Sets the width of the page, and light or dark mode.
    pub(crate) fn look(&self, width: u32, dark: bool) {
        let height = if width < 600 { 844 } else { 900 };
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.cdp("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            // An element that moves is not yet in its final place.
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.cdp(
            "Emulation.setEmulatedMedia",
            &json!({ "features": features }),
        );
    }

    /// Saves a screenshot of the whole page in `target/screenshots`.
    pub(crate) fn screenshot(&self, name: &str) {
        let whole = json!({ "format": "png", "captureBeyondViewport": true });
        let picture = self.cdp("Page.captureScreenshot", &whole);
        let picture = STANDARD.decode(picture["data"].as_str().unwrap()).unwrap();
        fs::write(pictures().join(format!("{name}.png")), picture).unwrap();
    }

    /// Saves a screenshot after a failure, if that is still possible.
    fn last_picture(&self) {
        let path = format!("/session/{}/screenshot", self.session);
        let Ok(picture) = Self::value(&http::ask(&self.address, "GET", &path, "", None)) else {
            return;
        };
        let picture = STANDARD.decode(picture.as_str().unwrap_or_default());
        let test = thread::current()
            .name()
            .unwrap_or("test")
            .replace("::", "-");
        if let Ok(picture) = picture
            && fs::write(pictures().join(format!("failed-{test}.png")), picture).is_ok()
        {
            println!("how it looked: target/screenshots/failed-{test}.png");
        }
    }

    fn log(&self, kind: &str) -> Vec<Value> {
        let log = self.command("se/log", &json!({ "type": kind }));
        log.as_array().unwrap().clone()
    }

    /// The page's problems since the last call: script errors, violations of its policy, and failed loads.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.log("browser")
            .iter()
            .filter(|entry| entry["level"] == "SEVERE" || entry["source"] == "security")
            .map(|entry| entry["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// The URLs of other hosts than this one that were requested since the last call.
    pub(crate) fn requests_elsewhere(&self, host: &str) -> Vec<String> {
        let own = format!("http://{host}/");
        let mut requests = self.requests();
        // Addresses of the browser itself, or that need no request.
        let inner = ["chrome:", "data:", "about:", "blob:"];
        requests.retain(|url| {
            !url.starts_with(&own) && !inner.iter().any(|inner| url.starts_with(inner))
        });
        requests
    }

    fn requests(&self) -> Vec<String> {
        self.log("performance")
            .iter()
            .filter_map(|entry| {
                let message: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
                let message = &message["message"];
                (message["method"] == "Network.requestWillBeSent").then(|| {
                    message["params"]["request"]["url"]
                        .as_str()
                        .map(str::to_owned)
                })?
            })
            .collect()
    }

    /// The accessibility violations that axe-core reports as serious or critical.
    pub(crate) fn barriers(&self) -> String {
        const RUN: &str = "const done = arguments[arguments.length - 1];
            axe.run(document, {resultTypes: ['violations']}).then(
                (found) => done(found.passes.length === 0 ? [['axe', 'looked at nothing', []]] : found.violations.filter((one) => ['serious', 'critical'].includes(one.impact))
                    .map((one) => [one.id, one.help, one.nodes.map((node) => `${node.html}: ${node.failureSummary}`)])),
                (error) => done([['axe', String(error), []]]))";
        if self.execute("return typeof axe", &json!([])) == "undefined" {
            self.execute(&self.axe, &json!([]));
        }
        let found = self.command("execute/async", &json!({ "script": RUN, "args": [] }));
        let mut text = String::new();
        for violation in found.as_array().unwrap() {
            let _ = writeln!(text, "{}: {}", violation[0], violation[1]);
            for node in violation[2].as_array().unwrap() {
                let _ = writeln!(text, "    {}", node.as_str().unwrap_or_default());
            }
        }
        text
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if thread::panicking() {
            self.last_picture();
        }
        if !self.session.is_empty() {
            let path = format!("/session/{}", self.session);
            let _ = http::ask(&self.address, "DELETE", &path, "", None);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        // Kills what the driver left running, found by its unique profile.
        for pid in running_with(self.profile.path()) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The processes that have this path in their command line.
fn running_with(path: &Path) -> Vec<Pid> {
    let path = path.display().to_string();
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter(|process| {
            let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains(&path)
        })
        .filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// The folder for screenshots.
fn pictures() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots");
    let _ = fs::create_dir_all(&folder);
    folder
}
