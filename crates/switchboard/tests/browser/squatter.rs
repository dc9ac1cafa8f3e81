//! Another program that had the port of the gateway before it, and left something behind in the browser.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::json;

use crate::{browser::Browser, place::Place};

/// A page that signs in with the key of any link that leads to it.
const PAGE: &str = "<!doctype html><title>squatter</title><p id=said>squatter</p><script>
    navigator.serviceWorker?.register('/sw.js').catch(() => {});
    const key = location.hash.split('sign-in=')[1];
    const said = (text) => { document.getElementById('said').textContent = `squatter: ${text}`; };
    if (key) fetch('/api/v1/console/sign-in', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ key }) })
        .then((answer) => said(answer.status), said);
</script>";

/// A service worker that serves the page for as long as the browser keeps it.
fn worker() -> String {
    format!(
        "const page = {};
        addEventListener('install', () => skipWaiting());
        addEventListener('activate', (event) => event.waitUntil(clients.claim()));
        addEventListener('fetch', (event) => {{
            if (event.request.mode === 'navigate')
                event.respondWith(new Response(page, {{ headers: {{ 'Content-Type': 'text/html' }} }}));
        }});",
        json!(PAGE)
    )
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    Worker,
    CachedPage,
}

/// The earlier program, until it is stopped.
struct Squatter {
    address: String,
    is_over: Arc<AtomicBool>,
    serving: JoinHandle<()>,
}

impl Squatter {
    fn start(leaves: Leaves) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let serving = thread::spawn(move || {
            while !over.load(Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => answer(stream, leaves),
                    Err(_) => thread::sleep(Duration::from_millis(10)),
                }
            }
        });
        Self {
            address,
            is_over,
            serving,
        }
    }

    fn end(self) {
        self.is_over.store(true, Relaxed);
        self.serving.join().unwrap();
    }
}

fn answer(stream: TcpStream, leaves: Leaves) {
    stream.set_nonblocking(false).unwrap();
    // A browser opens connections that it may never use.
    stream
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if !matches!(reader.read_line(&mut head), Ok(1..)) {
            return;
        }
    }
    let is_worker = head.starts_with("GET /sw.js ");
    let (status, kind, body) = match leaves {
        Leaves::Worker if is_worker => ("200 OK", "text/javascript", worker()),
        Leaves::CachedPage if is_worker => ("404 Not Found", "text/plain", String::new()),
        _ => ("200 OK", "text/html", PAGE.to_owned()),
    };
    let caching = match leaves {
        Leaves::Worker => "no-store",
        Leaves::CachedPage => "max-age=31536000, immutable",
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nCache-Control: {caching}\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = reader.get_mut().write_all(answer.as_bytes());
}

/// Opens a page as if the user had typed its address.
fn visit(browser: &Browser, url: &str) {
    browser.go("about:blank");
    browser.go(url);
}

fn gateway_has_its_own_page_after(leaves: Leaves) {
    let Some(browser) = Browser::start() else {
        return;
    };
    let squatter = Squatter::start(leaves);
    let url = format!("http://{}/", squatter.address);
    visit(&browser, &url);
    if leaves == Leaves::Worker {
        browser.until("navigator.serviceWorker.controller !== null");
    }
    let settings = json!({ "listen": squatter.address });
    squatter.end();
    let place = Place::new(&[], &json!({ "tools": [] }), &settings);
    let sessions = || {
        let listed = place.get("/api/v1/console/sessions").json();
        listed["sessions"].as_array().unwrap().len()
    };
    // The leftovers of that program are still there, and get nothing for a key.
    let link = place.post("/api/v1/console/link", &json!({})).json();
    let (_, key) = link["url"].as_str().unwrap().split_once('#').unwrap();
    visit(&browser, &format!("{url}#{key}"));
    browser.until_reads("squatter: 403");
    assert_eq!(sessions(), 0);
    place.open(&browser);
    assert_eq!(sessions(), 1);
}

#[test]
fn worker_of_an_earlier_program_gets_no_session() {
    gateway_has_its_own_page_after(Leaves::Worker);
}

#[test]
fn cached_page_of_earlier_program_gets_no_session() {
    gateway_has_its_own_page_after(Leaves::CachedPage);
}

#[test]
fn page_of_an_earlier_run_says_so() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let address = {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().to_string()
    };
    let place = Place::new(&[], &json!({ "tools": [] }), &json!({ "listen": address }));
    place.open(&browser);
    let before = place.console.clone();
    let place = place.after(|_| {});
    assert_ne!(before, place.console);
    browser.until_reads("the gateway restarted");
    browser.go(&format!("http://{before}/"));
    browser.until_reads("`switchboard console`");
    // At the usual address the page exists, but does not sign in.
    let (_, key) = place.link.split_once('#').unwrap();
    browser.go(&format!("http://{address}/#{key}"));
    browser.until_reads("Only the console's own page can sign in");
    place.open(&browser);
}
