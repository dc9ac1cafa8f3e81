//! Access to the console: its files, one-time links, and sessions.

use serde_json::{Value, json};

use crate::api_rig::{Answer, Rig, TOKEN};

const SIGN_IN: &str = "/api/v1/console/sign-in";
const JSON: &str = "Content-Type: application/json\r\n";

/// A fresh key, taken from its link.
async fn key(rig: &Rig) -> String {
    let answer = rig.ask("POST", "/api/v1/console/link", None).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let link = answer.json()["url"].as_str().unwrap().to_owned();
    let (address, key) = link.split_once("/#sign-in=").unwrap();
    assert_eq!(address, format!("http://{}", rig.console));
    key.to_owned()
}

/// These headers, with the console's host if they name none.
fn to_console(rig: &Rig, headers: &str) -> String {
    if headers.contains("Host: ") {
        return headers.to_owned();
    }
    format!("Host: {}\r\n{headers}", rig.console)
}

async fn sign_in(rig: &Rig, headers: &str, key: &str) -> Answer {
    let body = json!({ "key": key }).to_string();
    let headers = to_console(rig, headers);
    rig.ask_with("POST", SIGN_IN, &headers, &body).await
}

/// Signs in, and returns the session.
pub(crate) async fn session(rig: &Rig) -> String {
    let answer = sign_in(rig, JSON, &key(rig).await).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["token"].as_str().unwrap().to_owned()
}

/// Sends a request with a session and additional headers.
async fn ask(rig: &Rig, method: &str, path: &str, session: &str, headers: &str) -> Answer {
    let headers = to_console(rig, headers);
    let headers = format!("Authorization: Bearer {session}\r\n{headers}");
    rig.ask_with(method, path, &headers, "").await
}

#[tokio::test]
async fn link_opens_once() {
    let rig = Rig::with(json!({})).await;
    let key = key(&rig).await;
    let answer = sign_in(&rig, JSON, &key).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.headers.contains("cache-control: no-store"));
    let said = answer.json();
    assert!(said["expiresAt"].as_str().unwrap().ends_with('Z'), "{said}");
    let token = said["token"].as_str().unwrap();
    for path in ["/api/v1/status", "/metrics", "/api/v1/openapi.json"] {
        let answer = ask(&rig, "GET", path, token, "").await;
        assert_eq!(answer.status, 200, "{path}");
    }
    let detail = sign_in(&rig, JSON, &key).await.problem(401);
    assert!(detail.contains("`switchboard console`"), "{detail}");
    rig.stop().await;
}

#[tokio::test]
async fn link_requires_the_socket_or_the_token() {
    let rig = Rig::with(json!({})).await;
    let answer = rig.ask_socket("POST", "/api/v1/console/link").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = rig.ask_with("POST", "/api/v1/console/link", "", "").await;
    answer.problem(401);
    rig.stop().await;
}

#[tokio::test]
async fn wrong_keys_open_nothing_and_cause_no_lockout() {
    let rig = Rig::with(json!({})).await;
    let good = key(&rig).await;
    let short = &good[..31];
    for wrong in ["", "x", short, &"0".repeat(32), &"x".repeat(3_000), TOKEN] {
        sign_in(&rig, JSON, wrong).await.problem(401);
    }
    let long = "x".repeat(5_000);
    sign_in(&rig, JSON, &long).await.problem(413);
    for body in ["", "{}", "[]", "{\"key\":1}", "{\"key\":\"x\",\"by\":1}"] {
        let headers = to_console(&rig, JSON);
        let answer = rig.ask_with("POST", SIGN_IN, &headers, body).await;
        answer.problem(400);
    }
    for _ in 0..50 {
        sign_in(&rig, JSON, "wrong").await.problem(401);
    }
    assert_eq!(sign_in(&rig, JSON, &good).await.status, 200);
    rig.stop().await;
}

#[tokio::test]
async fn requests_from_foreign_pages_are_refused() {
    let rig = Rig::with(json!({})).await;
    let key = key(&rig).await;
    let host = rig.console.clone();
    // A page from another port may claim to be JSON, but the browser adds its origin.
    for origin in [
        "http://localhost:3000",
        "http://127.0.0.1:3000",
        &format!("https://{host}"),
        &format!("http://127.0.0.1:{}", rig.port),
        &format!("http://localhost:{}", rig.port),
        "null",
        "https://example.com",
    ] {
        let headers = format!("{JSON}Host: {host}\r\nOrigin: {origin}\r\n");
        sign_in(&rig, &headers, &key).await.problem(403);
    }
    // Browsers send forms across origins without a preflight request.
    for kind in [
        "application/x-www-form-urlencoded",
        "text/plain",
        "text/plain; application/json",
        "multipart/form-data; boundary=x",
    ] {
        let headers = format!("Content-Type: {kind}\r\n");
        sign_in(&rig, &headers, &key).await.problem(415);
    }
    sign_in(&rig, "", &key).await.problem(415);
    sign_in(&rig, &format!("{JSON}Host: example.com\r\n"), &key)
        .await
        .problem(403);
    // None of these attempts has used up the key.
    let own = format!("{JSON}Host: {host}\r\nOrigin: http://{host}\r\n");
    assert_eq!(sign_in(&rig, &own, &key).await.status, 200);
    rig.stop().await;
}

#[tokio::test]
async fn key_and_session_require_the_current_name() {
    let rig = Rig::with(json!({})).await;
    let (session, key) = (session(&rig).await, key(&rig).await);
    let (id, _) = session.split_once('.').unwrap();
    let challenge = json!({ "session": id, "nonce": "n".repeat(32) }).to_string();
    let port = rig.port;
    for (host, why) in [
        (format!("127.0.0.1:{port}"), "own page"),
        (format!("localhost:{port}"), "own page"),
        (format!("[::1]:{port}"), "own page"),
        (format!("{}.localhost:{port}", "0".repeat(32)), "each start"),
        (rig.console.replace(&format!(":{port}"), ""), "each start"),
    ] {
        let page = format!("Host: {host}\r\nOrigin: http://{host}\r\n");
        let program = format!("Host: {host}\r\n");
        for headers in [&page, &program] {
            let detail = sign_in(&rig, &format!("{JSON}{headers}"), &key).await;
            let detail = detail.problem(403);
            assert!(detail.contains(why), "{host}: {detail}");
            let headers_json = format!("{JSON}{headers}");
            rig.ask_with("POST", "/api/v1/console/prove", &headers_json, &challenge)
                .await
                .problem(403);
            ask(&rig, "GET", "/api/v1/status", &session, headers)
                .await
                .problem(403);
        }
    }
    assert_eq!(sign_in(&rig, JSON, &key).await.status, 200);
    // The token is valid under every name of this machine.
    for host in [format!("127.0.0.1:{port}"), rig.console.clone()] {
        let headers = format!("Host: {host}\r\n");
        let answer = ask(&rig, "GET", "/api/v1/status", TOKEN, &headers).await;
        assert_eq!(answer.status, 200, "{host}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn console_has_a_new_name_in_each_run() {
    let rig = Rig::with(json!({})).await;
    let before = rig.console.clone();
    let rig = rig.restarted(|_| {}).await;
    let name = |host: &str| host.split_once(':').unwrap().0.to_owned();
    assert_ne!(name(&before), name(&rig.console));
    let headers = format!("Host: {before}\r\n");
    let detail = rig.ask_with("GET", "/", &headers, "").await.problem(403);
    assert!(detail.contains("`switchboard console`"), "{detail}");
    rig.stop().await;
}

#[tokio::test]
async fn session_is_bound_to_the_port() {
    let rig = Rig::with(json!({})).await;
    let session = session(&rig).await;
    let host = rig.console.clone();
    let path = "/api/v1/status";
    let own = format!("Host: {host}\r\nOrigin: http://{host}\r\n");
    let answer = ask(&rig, "GET", path, &session, &own).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let other = format!("Host: {host}\r\nOrigin: http://localhost:3000\r\n");
    let detail = ask(&rig, "GET", path, &session, &other).await.problem(403);
    assert!(detail.contains("own page"), "{detail}");
    // The token still works: a program on this machine that serves a page may have it.
    let answer = ask(&rig, "GET", path, TOKEN, &other).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let asking = format!("{other}Access-Control-Request-Method: POST\r\n");
    let answer = rig.ask_with("OPTIONS", path, &asking, "").await;
    assert!(answer.status >= 400, "{answer:?}");
    assert!(!answer.headers.contains("access-control"), "{answer:?}");
    rig.stop().await;
}

#[tokio::test]
async fn session_does_not_open_mcp() {
    let rig = Rig::with(json!({})).await;
    let session = session(&rig).await;
    for path in ["/mcp", "/mcp/direct", "/mcp/s/a", "/sse", "/sse/messages/x"] {
        for method in ["GET", "POST"] {
            let answer = ask(&rig, method, path, &session, JSON).await;
            assert_eq!(answer.status, 401, "{method} {path}");
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn session_ends_with_the_gateway() {
    let rig = Rig::with(json!({})).await;
    let session = session(&rig).await;
    let key = key(&rig).await;
    let rig = rig.restarted(|_| {}).await;
    ask(&rig, "GET", "/api/v1/status", &session, "")
        .await
        .problem(401);
    sign_in(&rig, JSON, &key).await.problem(401);
    rig.stop().await;
}

#[tokio::test]
async fn session_ends_on_sign_out() {
    let rig = Rig::with(json!({})).await;
    let (one, two, three) = (
        session(&rig).await,
        session(&rig).await,
        session(&rig).await,
    );
    let status = async |session: &str| ask(&rig, "GET", "/api/v1/status", session, "").await.status;
    let answer = ask(&rig, "POST", "/api/v1/console/sign-out", &one, "").await;
    assert_eq!(answer.json()["ended"], 1, "{answer:?}");
    assert_eq!((status(&one).await, status(&two).await), (401, 200));
    let listed = rig.get("/api/v1/console/sessions").await.json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2, "{listed}");
    assert!(!listed.to_string().contains(two.split_once('.').unwrap().1));
    let answer = rig
        .post("/api/v1/console/sign-out", &json!({ "all": true }))
        .await;
    assert_eq!(answer.json()["ended"], 2, "{answer:?}");
    assert_eq!((status(&two).await, status(&three).await), (401, 401));
    rig.post("/api/v1/console/sign-out", &json!({}))
        .await
        .problem(422);
    rig.stop().await;
}

#[tokio::test]
async fn ended_session_loses_its_streams() {
    let rig = Rig::with(json!({ "a": { "command": "x", "enabled": false } })).await;
    let (one, two) = (session(&rig).await, session(&rig).await);
    let paths = ["/api/v1/events", "/api/v1/servers/a/logs?follow=true"];
    let mut ended = Vec::new();
    for path in paths {
        ended.push(rig.follow_as(&one, path, &to_console(&rig, "")).await);
    }
    let mut others = [
        rig.follow_as(&two, paths[0], &to_console(&rig, "")).await,
        rig.follow(paths[0]).await,
    ];
    let answer = ask(&rig, "POST", "/api/v1/console/sign-out", &one, "").await;
    assert_eq!(answer.json()["ended"], 1, "{answer:?}");
    for stream in &mut ended {
        while stream.next().await.is_some() {}
    }
    rig.reconfigure(&json!({ "mcpServers": {}, "memory": { "enabled": false } }))
        .await;
    for stream in &mut others {
        assert!(stream.next().await.is_some());
    }
    rig.stop().await;
}

#[tokio::test]
async fn signing_all_out_ends_links_too() {
    let rig = Rig::with(json!({})).await;
    let thief = session(&rig).await;
    let owners = key(&rig).await;
    let link = ask(&rig, "POST", "/api/v1/console/link", &thief, "").await;
    let link = link.json()["url"].as_str().unwrap().to_owned();
    let (_, theirs) = link.split_once("/#sign-in=").unwrap();
    // Signing out revokes only the links that this session created.
    ask(&rig, "POST", "/api/v1/console/sign-out", &thief, "").await;
    sign_in(&rig, JSON, theirs).await.problem(401);
    assert_eq!(sign_in(&rig, JSON, &owners).await.status, 200);
    let owners = key(&rig).await;
    let all = json!({ "all": true });
    rig.post("/api/v1/console/sign-out", &all).await;
    sign_in(&rig, JSON, &owners).await.problem(401);
    rig.stop().await;
}

#[tokio::test]
async fn gateway_proves_a_session_to_its_page() {
    let rig = Rig::with(json!({})).await;
    let session = session(&rig).await;
    let (id, _) = session.split_once('.').unwrap();
    let prove = async |id: &str, nonce: &str| {
        let body = json!({ "session": id, "nonce": nonce }).to_string();
        let headers = to_console(&rig, JSON);
        rig.ask_with("POST", "/api/v1/console/prove", &headers, &body)
            .await
    };
    let proof = prove(id, &"n".repeat(32)).await;
    assert_eq!(proof.json()["proof"].as_str().unwrap().len(), 64);
    prove(id, "short").await.problem(422);
    prove("other", &"n".repeat(32)).await.problem(404);
    rig.stop().await;
}

#[tokio::test]
async fn page_needs_no_token_and_can_be_revalidated() {
    let rig = Rig::with(json!({})).await;
    let page = rig.ask_with("GET", "/", "", "").await;
    assert_eq!(page.status, 200, "{page:?}");
    assert!(page.body.starts_with("<!doctype html>"), "{page:?}");
    for header in [
        "content-type: text/html; charset=utf-8",
        "content-security-policy: default-src 'none';",
        "x-content-type-options: nosniff",
        "cache-control: no-cache",
    ] {
        assert!(page.headers.contains(header), "{header} in {page:?}");
    }
    let head = rig.ask_with("HEAD", "/", "", "").await;
    assert_eq!((head.status, &*head.body), (200, ""));
    let length = format!("content-length: {}", page.body.len());
    assert!(head.headers.contains(&length), "{head:?}");
    let etag = page
        .headers
        .lines()
        .find_map(|line| line.strip_prefix("etag: "));
    let etag = etag.unwrap();
    assert!(head.headers.contains(&format!("etag: {etag}")), "{head:?}");
    for known in [etag, &format!("\"x\", W/{etag}"), "*"] {
        let headers = format!("If-None-Match: {known}\r\n");
        let same = rig.ask_with("GET", "/", &headers, "").await;
        assert_eq!((same.status, &*same.body), (304, ""), "{known}");
        assert!(
            same.headers.contains("content-security-policy: "),
            "{same:?}"
        );
    }
    let other = rig
        .ask_with("GET", "/", "If-None-Match: \"x\"\r\n", "")
        .await;
    assert_eq!(other.status, 200);
    rig.ask_with("POST", "/", "", "").await.problem(405);
    rig.stop().await;
}

#[tokio::test]
async fn console_paths_serve_only_the_page() {
    let rig = Rig::with(json!({})).await;
    for path in [
        "/console/",
        "/console/..",
        "/console/../api/v1/status",
        "/console/%2e%2e/api/v1/status",
        "/console/%2e%2e%2fapi%2fv1%2fstatus",
        "/console/..%2f..%2frun/token",
        "/console//etc/passwd",
        "/console/.%00",
        "/console/\\..\\..\\",
    ] {
        let answer = rig.ask_with("GET", path, "", "").await;
        assert!(!answer.problem(404).contains("pid"), "{path}");
    }
    for path in ["/console", "//", "/index.html", "/../api/v1/status", "/%2e"] {
        rig.ask_with("GET", path, "", "").await.problem(401);
    }
    for foreign in [
        "Host: example.com\r\n",
        "Host: rebound.example.com:7777\r\n",
        "Host: localhost\r\nOrigin: https://example.com\r\n",
    ] {
        rig.ask_with("GET", "/", foreign, "").await.problem(403);
    }
    let described: Value = rig.get("/api/v1/openapi.json").await.json();
    let described = described["paths"].as_object().unwrap();
    assert!(!described.contains_key("/"));
    rig.stop().await;
}
