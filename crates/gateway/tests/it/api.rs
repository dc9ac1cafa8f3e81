//! Properties of the whole REST interface: authentication, unknown paths, errors.

use std::{fs, path::Path};

use serde_json::{Value, json};
use switchboard_config::Home;

use crate::api_rig::{Rig, TOKEN, fixture};

#[tokio::test]
async fn everything_but_health_requires_the_token() {
    let rig = Rig::with(json!({})).await;
    let alive = rig.ask_with("GET", "/healthz", "", "").await;
    assert_eq!((alive.status, &*alive.body), (200, "ok"));
    let described = rig.get("/api/v1/openapi.json").await.json();
    let mut addresses = 0;
    for (path, item) in described["paths"].as_object().unwrap() {
        let path = path.replace("{name}", "x");
        for verb in item.as_object().unwrap().keys() {
            let open = matches!(
                &*path,
                "/healthz" | "/readyz" | "/api/v1/console/sign-in" | "/api/v1/console/prove"
            );
            if verb == "parameters" || open {
                continue;
            }
            addresses += 1;
            let verb = verb.to_uppercase();
            let none = rig.ask_with(&verb, &path, "", "").await;
            assert!(none.problem(401).contains("run/token"), "{verb} {path}");
            assert!(none.headers.contains("www-authenticate: bearer"));
            let wrong = "Authorization: Bearer t0ke\r\n";
            rig.ask_with(&verb, &path, wrong, "").await.problem(401);
        }
    }
    assert!(addresses >= 18, "{addresses}");
    rig.stop().await;
}

/// Clients that were refused for lack of a token look for metadata without one.
#[tokio::test]
async fn well_known_addresses_are_not_found() {
    let rig = Rig::with(json!({})).await;
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    for path in [
        "/.well-known",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp/s/x",
        "/.well-known/oauth-authorization-server",
        "/mcp/.well-known/openid-configuration",
    ] {
        for verb in ["GET", "HEAD", "POST", "OPTIONS", "DELETE"] {
            for headers in ["", &*token] {
                let answer = rig.ask_with(verb, path, headers, "").await;
                assert_eq!((answer.status, &*answer.body), (404, ""), "{verb} {path}");
                assert!(!answer.headers.contains("www-authenticate"), "{answer:?}");
            }
        }
    }
    let other = rig.ask_with("GET", "/.well-knownx", "", "").await;
    assert_eq!(other.status, 401, "{other:?}");
    rig.stop().await;
}

#[tokio::test]
async fn socket_requires_no_token() {
    let rig = Rig::with(json!({})).await;
    let answer = rig.ask_socket("GET", "/api/v1/status").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["pid"], std::process::id());
    rig.stop().await;
}

#[tokio::test]
async fn foreign_origins_and_hosts_are_refused() {
    let rig = Rig::with(json!({})).await;
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    for foreign in [
        "Host: example.com\r\n",
        "Host: localhost\r\nOrigin: https://example.com\r\n",
    ] {
        let headers = format!("{token}{foreign}");
        let answer = rig.ask_with("GET", "/api/v1/status", &headers, "").await;
        answer.problem(403);
        rig.ask_with("GET", "/readyz", foreign, "")
            .await
            .problem(403);
    }
    rig.stop().await;
}

#[tokio::test]
async fn gateway_is_ready_once_the_store_is() {
    let rig = Rig::with(json!({ "parked": { "command": "/does/not/exist" } })).await;
    let ready = rig.until("/readyz", |answer| answer["ready"] == true).await;
    let parts = ready["parts"].as_array().unwrap();
    assert!(parts.iter().any(|part| part["name"] == "store"), "{ready}");
    assert!(
        parts.iter().any(|part| part["name"] == "server:parked"),
        "{ready}"
    );
    assert_eq!(rig.get("/readyz").await.status, 200);
    rig.stop().await;
}

#[tokio::test]
async fn readiness_names_parts_with_the_token_only() {
    let rig = Rig::with(json!({ "parked": { "command": "/does/not/exist" } })).await;
    rig.until("/api/v1/status", |status| {
        let part = status["parts"].as_array().unwrap().last().unwrap();
        status["servers"][0]["state"] == "parked" && part["message"].is_string()
    })
    .await;
    rig.until("/readyz", |answer| answer["ready"] == true).await;
    let open = rig.ask_with("GET", "/readyz", "", "").await.json();
    assert_eq!(open, json!({ "ready": true }));
    let ready = rig.get("/readyz").await.json();
    let parts = ready["parts"].as_array().unwrap();
    assert!(
        parts.contains(&json!({ "name": "server:parked", "state": "error" })),
        "{ready}"
    );
    for part in parts {
        let keys: Vec<_> = part.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["name", "state"], "{ready}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn broken_store_makes_the_gateway_unready() {
    // A directory in its place, from which no database can be opened.
    let block = |home: &Home| fs::create_dir(home.database()).unwrap();
    let rig = Rig::prepared(json!({}), block).await;
    let failed = |answer: &Value| {
        let parts = answer["parts"].as_array().unwrap();
        parts
            .iter()
            .any(|part| part["name"] == "store" && part["state"] == "error")
    };
    rig.until("/readyz", failed).await;
    let answer = rig.get("/readyz").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["ready"], false);
    let problem = rig.get("/api/v1/activity").await.json();
    assert_eq!(problem["status"], 503, "{problem}");
    assert!(problem["hint"].is_string(), "{problem}");
    // The rest keeps working.
    assert_eq!(rig.get("/api/v1/status").await.status, 200);
    rig.stop().await;
}

#[tokio::test]
async fn unknown_paths_and_wrong_methods_are_problems() {
    let rig = Rig::with(json!({})).await;
    let detail = rig.get("/api/v2/status").await.problem(404);
    assert!(detail.contains("/api/v2/status"), "{detail}");
    assert!(detail.contains("openapi.json"), "{detail}");
    let answer = rig.ask("PUT", "/api/v1/servers", None).await;
    assert!(answer.problem(405).contains("PUT"));
    assert!(
        answer.headers.contains("allow: get,head,post"),
        "{answer:?}"
    );
    rig.ask("POST", "/healthz", None).await.problem(405);
    rig.stop().await;
}

#[tokio::test]
async fn unreadable_body_is_a_problem_with_a_location() {
    let rig = Rig::with(json!({ "a": fixture() })).await;
    let path = "/api/v1/tools/call";
    for (body, said) in [
        ("{\"name\":\n x}", "line 2 column 2"),
        ("", "line 1 column 0"),
        ("{}", "missing field `name`"),
        ("{\"name\":1}", "expected a string"),
        ("{\"name\":\"a:b\",\"args\":{}}", "unknown field `args`"),
        ("{\"name\":\"a:b\",\"arguments\":[]}", "`arguments`"),
        (&"[".repeat(100_000), "line 1 column"),
        (
            &format!("{{\"{}\":1}}", "x".repeat(100_000)),
            "line 1 column 100003",
        ),
    ] {
        let detail = rig.ask("POST", path, Some(body)).await.problem(400);
        assert!(detail.contains(said), "{detail}");
        assert!(detail.len() < 500, "{}", detail.len());
    }
    let form = format!(
        "Authorization: Bearer {TOKEN}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    );
    let detail = rig.ask_with("POST", path, &form, "{}").await.problem(415);
    assert!(detail.contains("application/json"), "{detail}");
    let long = format!("{{\"name\":\"{}\"}}", "x".repeat(4 * 1024 * 1024));
    let detail = rig.ask("POST", path, Some(&long)).await.problem(413);
    assert!(detail.contains("4194304"), "{detail}");
    rig.stop().await;
}

#[tokio::test]
async fn status_shows_the_gateway_and_its_servers() {
    let rig = Rig::with(json!({ "a": fixture() })).await;
    rig.until_known("a").await;
    let answer = rig.get("/api/v1/status").await;
    assert!(answer.headers.contains("cache-control: no-store"));
    let status = answer.json();
    assert_eq!(status["state"], "running");
    assert_eq!(status["servers"][0]["name"], "a");
    assert_eq!(status["servers"][0]["state"], "ready");
    let at = status["startedAt"].as_str().unwrap();
    assert!(at.ends_with('Z') && at.contains('T'), "{at}");
    // The tools of the server, and the gateway's own.
    assert_eq!(status["tools"], 7);
    rig.stop().await;
}

/// The names and types in the metrics page of the book, sorted.
fn documented_metrics() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    let page = fs::read_to_string(path).unwrap();
    let rows = page.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let kind = rest.split(" |").next()?;
        let is_type = matches!(kind, "counter" | "gauge" | "histogram");
        is_type.then(|| (name.to_owned(), kind.to_owned()))
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    rows
}

#[tokio::test]
async fn metrics_match_the_page_of_the_book() {
    let rig =
        Rig::with(json!({ "a": fixture(), "off": { "command": "x", "enabled": false } })).await;
    assert_eq!(rig.call("a:echo", json!({})).await.status, 200);
    let answer = rig.get("/metrics").await;
    assert!(
        answer
            .headers
            .contains("content-type: text/plain; version=0.0.4"),
        "{answer:?}"
    );
    for line in [
        "switchboard_calls_total{server=\"a\",outcome=\"ok\"} 1",
        "switchboard_servers{state=\"ready\"} 1",
        "switchboard_servers{state=\"disabled\"} 1",
        "switchboard_in_flight{server=\"a\"} 0",
        "switchboard_queued{server=\"a\"} 0",
        "switchboard_clients 0",
        "switchboard_tools 7",
        "switchboard_store_dropped_records_total 0",
        "# TYPE process_cpu_seconds_total counter",
    ] {
        assert!(
            answer.body.lines().any(|other| other == line),
            "{line} in\n{}",
            answer.body
        );
    }
    let resident = answer
        .body
        .lines()
        .find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    if cfg!(target_os = "linux") {
        assert!(resident.unwrap().parse::<u64>().unwrap() > 1_000_000);
    }
    let types = answer.body.lines().filter_map(|line| {
        let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        Some((name.to_owned(), kind.to_owned()))
    });
    let mut types: Vec<_> = types.collect();
    types.sort_unstable();
    assert_eq!(types, documented_metrics());
    rig.stop().await;
}

#[tokio::test]
async fn gateway_can_be_stopped() {
    let rig = Rig::with(json!({ "a": fixture() })).await;
    rig.until_known("a").await;
    let answer = rig.ask("POST", "/api/v1/shutdown", None).await;
    assert_eq!(answer.status, 202);
    assert_eq!(answer.json(), json!({ "state": "stopping" }));
    rig.gateway.stopped().await;
    rig.stop().await;
}
