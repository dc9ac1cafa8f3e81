//! Tokens: their rights and their scopes.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{
    api_rig::{Answer, Rig, TOKEN},
    mcp_rig::{LEGACY, MODERN, REVISIONS, Web},
    people::PENDING,
    stage_rig::{Stage, tool},
};

/// A gateway with two servers that offer the same, and two profiles.
pub(crate) struct Two {
    pub(crate) rig: Rig,
    pub(crate) a: Stage,
    pub(crate) b: Stage,
}

pub(crate) fn stage() -> Stage {
    let stage = Stage::new(&[
        tool("read", "Reads a page."),
        tool("wait", "Waits."),
        tool("drop_all", "Drops every page."),
    ]);
    stage.set_prompts(&json!([{ "name": "p" }]));
    stage.set_resources(&json!([{ "uri": "x:1", "name": "one" }]));
    stage
}

impl Two {
    pub(crate) async fn new() -> Self {
        let (a, b) = (stage(), stage());
        let rig = Rig::configured(json!({
            "mcpServers": {
                "alpha": a.entry_with(&json!({ "trust": "always" })),
                "beta": b.entry_with(&json!({ "trust": "always" })),
            },
            "profiles": {
                "work": { "servers": ["alpha"], "tools": { "deny": ["*:drop_*"] } },
                "rest": { "servers": ["beta"] },
            },
            "approvals": { "rules": ["ask *:drop_*"], "notify": "off" },
        }))
        .await;
        for server in ["alpha", "beta"] {
            rig.until_tools(server, 3).await;
        }
        Self { rig, a, b }
    }
}

impl Rig {
    /// Creates a token.
    pub(crate) async fn token(&self, about: Value) -> String {
        let answer = self.post("/api/v1/tokens", &about).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["token"].as_str().unwrap().to_owned()
    }

    /// Sends a request with this token.
    pub(crate) async fn ask_as(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        let headers =
            format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n");
        self.ask_with(method, path, &headers, body).await
    }

    pub(crate) async fn initialize_as(&self, token: &str, path: &str) -> Answer {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "it", "version": "1" },
        } });
        self.ask_as(token, "POST", path, &body.to_string()).await
    }
}

/// The tools of servers in a list, without the gateway's own.
pub(crate) fn of_servers(tools: Vec<String>) -> Vec<String> {
    let is_own = |name: &String| name.starts_with("switchboard__");
    tools.into_iter().filter(|name| !is_own(name)).collect()
}

/// An error with a name replaced, to compare it with that for another name.
async fn error(web: &Web<'_>, method: &str, params: &Value, name: &str) -> String {
    let params = params.to_string().replace("NAME", name);
    let answer = web.ask_whatever(method, serde_json::from_str(&params).unwrap());
    let mut answer = answer.await.json();
    assert!(answer.get("error").is_some(), "{method} {name}: {answer}");
    answer.as_object_mut().unwrap().remove("id");
    answer.to_string().replace(name, "NAME")
}

#[tokio::test]
async fn token_reaches_only_its_servers() {
    let Two { rig, a, b } = Two::new().await;
    let token = rig
        .token(json!({ "name": "t", "servers": ["alpha"] }))
        .await;
    for revision in REVISIONS {
        let web = Web::with_token(&rig, "/mcp/direct", revision, &token).await;
        let tools = of_servers(web.tools().await);
        assert_eq!(
            tools,
            ["alpha__read", "alpha__wait", "alpha__drop_all"],
            "{revision}"
        );
        for (method, params, hidden, missing) in [
            (
                "tools/call",
                json!({ "name": "NAME", "arguments": {} }),
                "beta__read",
                "bexa__read",
            ),
            (
                "prompts/get",
                json!({ "name": "NAME" }),
                "beta__p",
                "bexa__p",
            ),
            (
                "resources/read",
                json!({ "uri": "NAME" }),
                "switchboard://beta/x:1",
                "switchboard://bexa/x:1",
            ),
        ] {
            if revision == MODERN && method == "resources/read" {
                continue; // Its name would have to be in a header, which this client does not send.
            }
            let hidden = error(&web, method, &params, hidden).await;
            let missing = error(&web, method, &params, missing).await;
            assert_eq!(hidden, missing, "{revision} {method}");
        }
        let called = web.call("alpha__read", json!({})).await;
        assert!(called["content"].is_array(), "{called}");
    }
    let calls = rig.get("/api/v1/activity").await.json();
    let call = &calls["activity"][0];
    assert_eq!(
        (&call["principal"], &call["door"]),
        (&json!("token t"), &json!("tcp"))
    );
    assert_eq!(call["client"], "it", "{call}");
    // Under a profile, both limits apply.
    let web = Web::with_token(&rig, "/mcp/p/work/direct", LEGACY, &token).await;
    let tools = of_servers(web.tools().await);
    assert_eq!(tools, ["alpha__read", "alpha__wait"]);
    assert_eq!((a.calls_of("read").len(), b.calls()), (REVISIONS.len(), 0));
    rig.stop().await;
}

#[tokio::test]
async fn profile_without_shared_server_looks_missing() {
    let (a, b) = (stage(), stage());
    let config = |rest: &str| {
        json!({
            "mcpServers": { "alpha": a.entry(), "beta": b.entry() },
            "profiles": { "rest": { "servers": [rest] }, "work": { "servers": ["alp*"] } },
        })
    };
    let rig = Rig::configured(config("b*")).await;
    let narrow = json!({ "name": "narrow", "servers": ["alpha"] });
    let narrow = rig.token(narrow).await;
    let pinned = json!({ "name": "pinned", "servers": ["alpha"], "profile": "rest" });
    let pinned = rig.token(pinned).await;
    let answer = async |method: &str, path: String, name: &str| {
        let answer = rig.ask_as(&narrow, method, &path, "{}").await;
        let headers = answer.headers.lines();
        let headers: Vec<_> = headers.filter(|line| !line.starts_with("date: ")).collect();
        let of_any = |text: &str| text.replace(name, "NAME");
        (answer.status, headers.concat(), of_any(&answer.body))
    };
    for view in ["", "/direct", "/search", "/s/alpha", "/s/beta"] {
        for (method, root) in [("POST", "/mcp"), ("GET", "/mcp"), ("GET", "/sse")] {
            let path = |name: &str| format!("{root}/p/{name}{view}");
            let of_hidden = answer(method, path("rest"), "rest").await;
            let of_missing = answer(method, path("rext"), "rext").await;
            assert_eq!(of_hidden, of_missing, "{method} {root} {view}");
            assert_eq!(of_hidden.0, 404, "{of_hidden:?}");
        }
    }
    for (token, path) in [
        (&narrow, "/mcp"),
        (&narrow, "/mcp/p/work"),
        (&pinned, "/mcp"),
        (&pinned, "/mcp/p/rest"),
    ] {
        let answer = rig.initialize_as(token, path).await;
        assert_eq!(answer.status, 200, "{path} {answer:?}");
    }
    // The profile appears with the server, and disappears without it, also for a session.
    rig.reconfigure(&config("alpha")).await;
    let web = Web::with_token(&rig, "/mcp/p/rest", LEGACY, &narrow).await;
    web.result("tools/list", json!({})).await;
    rig.reconfigure(&config("beta")).await;
    let answer = web.ask_whatever("tools/list", json!({})).await;
    assert_eq!(answer.status, 404, "{answer:?}");
    rig.stop().await;
}

#[tokio::test]
async fn pinned_token_is_held_to_its_profile() {
    let Two { rig, a: _a, b: _b } = Two::new().await;
    let token = rig.token(json!({ "name": "t", "profile": "work" })).await;
    for path in ["/mcp/direct", "/mcp/p/work/direct"] {
        for revision in REVISIONS {
            let web = Web::with_token(&rig, path, revision, &token).await;
            let tools = of_servers(web.tools().await);
            assert_eq!(tools, ["alpha__read", "alpha__wait"], "{path} {revision}");
        }
    }
    for root in ["/mcp", "/sse"] {
        let refused = async |profile: &str| {
            let path = format!("{root}/p/{profile}");
            let method = if root == "/mcp" { "POST" } else { "GET" };
            let answer = rig.ask_as(&token, method, &path, "{}").await;
            assert_eq!(answer.status, 404, "{path} {answer:?}");
            answer.body.replace(profile, "NAME")
        };
        assert_eq!(refused("rest").await, refused("rext").await, "{root}");
    }
    // A session belongs to its token.
    let web = Web::with_token(&rig, "/mcp", LEGACY, &token).await;
    let other = rig.token(json!({ "name": "u", "profile": "rest" })).await;
    let session = web.session.clone();
    let mut stolen = Web::with_token(&rig, "/mcp", LEGACY, &other).await;
    stolen.session = session;
    let answer = stolen.ask_whatever("tools/list", json!({})).await;
    assert_eq!(answer.status, 404, "{answer:?}");
    rig.stop().await;
}

/// The rights that a route needs, written down a second time.
fn needs(path: &str) -> &'static [&'static str] {
    match path {
        "/healthz" | "/readyz" | "/api/v1/openapi.json" => &[],
        "/api/v1/console/sign-in" | "/api/v1/console/prove" => &[],
        "/api/v1/tools/call" => &["call", "admin"],
        path if path.starts_with("/api/v1/approvals/rules") => &["admin"],
        path if path.starts_with("/api/v1/approvals") => &["approve"],
        path if path.starts_with("/api/v1/trust") => &["approve"],
        _ => &["admin"],
    }
}

#[tokio::test]
async fn every_route_needs_its_right() {
    let Two { rig, a: _a, b: _b } = Two::new().await;
    let routes = rig.get("/api/v1/openapi.json").await.json();
    let routes = routes["paths"].as_object().unwrap();
    for right in ["call", "approve", "admin"] {
        let token = rig.token(json!({ "name": right, "rights": [right] })).await;
        for (path, verbs) in routes {
            for verb in ["get", "post", "delete"] {
                if verbs.get(verb).is_none() {
                    continue;
                }
                let lacks = needs(path).iter().find(|need| **need != right);
                let Some(lacks) = lacks else {
                    continue; // The route may act; other tests call it.
                };
                let name = path.replace("{name}", "x").replace("{id}", "x");
                let answer = rig.ask_as(&token, &verb.to_uppercase(), &name, "{}").await;
                let told = answer.problem(403);
                let wanted = format!("this token lacks the right `{lacks}`");
                assert!(told.starts_with(&wanted), "{right} {verb} {path}: {told}");
            }
        }
        let answer = rig.initialize_as(&token, "/mcp").await;
        let expected = if right == "call" { 200 } else { 403 };
        assert_eq!(answer.status, expected, "{right}: {answer:?}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn each_right_opens_its_routes() {
    let Two { rig, a: _a, b: _b } = Two::new().await;
    for (right, paths) in [
        ("approve", ["/api/v1/approvals", "/api/v1/trust"]),
        ("admin", ["/api/v1/tokens", "/api/v1/status"]),
    ] {
        let token = rig.token(json!({ "name": right, "rights": [right] })).await;
        for path in paths {
            let answer = rig.ask_as(&token, "GET", path, "").await;
            assert_eq!(answer.status, 200, "{right} {path}: {answer:?}");
        }
    }
    let rights = ["call", "admin"];
    let token = rig.token(json!({ "name": "both", "rights": rights })).await;
    let call = json!({ "name": "alpha:read" }).to_string();
    let answer = rig
        .ask_as(&token, "POST", "/api/v1/tools/call", &call)
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    rig.stop().await;
}

/// Tests if a text is in a file of a directory.
fn is_in(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().flatten().any(|entry| {
        let path = entry.path();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => is_in(&path, text),
            kind if kind.is_file() => {
                let bytes = fs::read(&path).unwrap();
                bytes
                    .windows(text.len())
                    .any(|part| part == text.as_bytes())
            }
            _ => false,
        }
    })
}

#[tokio::test]
async fn token_outlives_the_gateway_without_its_secret() {
    let Two { rig, a: _a, b: _b } = Two::new().await;
    let token = rig.token(json!({ "name": "t" })).await;
    let web = Web::with_token(&rig, "/mcp", LEGACY, &token).await;
    web.tools().await;
    let list = rig.get("/api/v1/tokens").await.json();
    assert_eq!(list["tokens"][0]["client"], "it", "{list}");
    assert!(!list.to_string().contains(&token), "{list}");
    let (_, secret) = token.rsplit_once('_').unwrap();
    let secret = secret.to_owned();
    let rig = rig
        .restarted(|home| {
            let folder = home.tokens().parent().unwrap().to_owned();
            assert!(is_in(&folder, "\"t\""), "the token has an entry");
            assert!(!is_in(&folder, &secret), "no file has the secret");
        })
        .await;
    assert_eq!(rig.initialize_as(&token, "/mcp").await.status, 200);
    let again = rig.get("/api/v1/tokens").await.json();
    assert_eq!(again["tokens"][0]["client"], "it", "{again}");
    rig.stop().await;
}

#[tokio::test]
async fn approver_decides_only_about_its_servers() {
    let Two { rig, a, b } = Two::new().await;
    let about = json!({ "name": "phone", "rights": ["approve"], "servers": ["alpha"] });
    let token = rig.token(about).await;
    let owner = Web::open(&rig, "/mcp/direct", LEGACY).await;
    let calls = async {
        tokio::join!(
            owner.call("alpha__drop_all", json!({})),
            owner.ask(
                "tools/call",
                json!({ "name": "beta__drop_all", "arguments": {} })
            ),
        )
    };
    let decide = async {
        let all = rig.until_waiting(2).await;
        let id = |server: &str| {
            let of = all.iter().find(|one| one["server"] == server);
            of.unwrap()["id"].as_str().unwrap().to_owned()
        };
        let (own, hidden) = (id("alpha"), id("beta"));
        let list = rig.ask_as(&token, "GET", PENDING, "").await.json();
        assert_eq!(list["approvals"].as_array().unwrap().len(), 1, "{list}");
        assert_eq!(list["approvals"][0]["id"], *own, "{list}");
        for (verb, end) in [
            ("GET", ""),
            ("POST", "/approve"),
            ("POST", "/reject"),
            ("POST", "/respond"),
        ] {
            let body = if end == "/respond" {
                r#"{"action":"accept"}"#
            } else {
                ""
            };
            let refused = async |id: &str| {
                let path = format!("/api/v1/approvals/{id}{end}");
                let answer = rig.ask_as(&token, verb, &path, body).await;
                answer.problem(404).replace(id, "ID")
            };
            assert_eq!(refused(&hidden).await, refused("zzzzzzzz").await, "{end}");
        }
        let trust = rig.ask_as(&token, "GET", "/api/v1/trust", "").await.json();
        assert_eq!(trust["servers"].as_array().unwrap().len(), 1, "{trust}");
        let unknown = rig
            .ask_as(&token, "POST", "/api/v1/trust/beta/approve", "{}")
            .await;
        assert!(
            !unknown.problem(404).contains("did you mean"),
            "{unknown:?}"
        );
        let path = format!("/api/v1/approvals/{own}/approve");
        let rule = r#"{"remember":{"scope":"always"}}"#;
        rig.ask_as(&token, "POST", &path, rule).await.problem(403);
        let done = rig.ask_as(&token, "POST", &path, "").await.json();
        let by = done["decision"]["by"].as_str().unwrap();
        assert!(by.starts_with("token phone via tcp"), "{done}");
        rig.decided(&json!(hidden), "reject", json!({})).await;
    };
    let ((approved, _), ()) = tokio::join!(calls, decide);
    assert!(approved["content"].is_array(), "{approved}");
    assert_eq!((a.calls_of("drop_all").len(), b.calls()), (1, 0));
    rig.stop().await;
}

#[tokio::test]
async fn profile_with_single_tools_reviews_no_server() {
    let Two { rig, a: _a, b: _b } = Two::new().await;
    let about = json!({ "name": "t", "rights": ["approve"], "profile": "work" });
    let token = rig.token(about).await;
    let answer = rig.ask_as(&token, "GET", "/api/v1/trust", "").await;
    assert!(answer.problem(403).contains("single tools"), "{answer:?}");
    rig.stop().await;
}

#[tokio::test]
async fn wrong_requests_for_tokens_are_refused() {
    let Two { rig, a: _a, b: _b } = Two::new().await;
    rig.token(json!({ "name": "t" })).await;
    for (about, status, told) in [
        (json!({ "name": "t" }), 409, "there is already a token `t`"),
        (json!({ "name": "a b" }), 422, "a token's name"),
        (
            json!({ "name": "x", "profile": "wrk" }),
            422,
            "did you mean `work`?",
        ),
        (
            json!({ "name": "x", "servers": ["alpa"] }),
            422,
            "did you mean `alpha`?",
        ),
        (
            json!({ "name": "x", "rights": [] }),
            422,
            "a token needs a right",
        ),
        (
            json!({ "name": "x", "rights": ["root"] }),
            422,
            "there is no right `root`",
        ),
        (
            json!({ "name": "x", "rights": ["admin"], "servers": ["alpha"] }),
            422,
            "cannot be held",
        ),
        (
            json!({ "name": "x", "expiresInSeconds": 0 }),
            422,
            "lifetime",
        ),
        (
            json!({ "name": "x", "right": "call" }),
            400,
            "unknown field",
        ),
    ] {
        let answer = rig.post("/api/v1/tokens", &about).await;
        let said = answer.problem(status);
        assert!(said.contains(told), "{about}: {said}");
    }
    for (verb, path) in [
        ("DELETE", "/api/v1/tokens/x"),
        ("POST", "/api/v1/tokens/x/rotate"),
    ] {
        let answer = rig.ask(verb, path, None).await;
        assert!(
            answer.problem(404).contains("there is no token `x`"),
            "{answer:?}"
        );
    }
    let list = rig.get("/api/v1/tokens").await.json();
    assert_eq!(list["tokens"].as_array().unwrap().len(), 1, "{list}");
    rig.stop().await;
}

#[tokio::test]
async fn damaged_file_of_tokens_is_kept() {
    let damaged = r#"{"tokens":[{"name":"t"}]}"#;
    let rig = Rig::prepared(json!({ "mcpServers": {} }), |home| {
        fs::write(home.tokens(), damaged).unwrap();
    })
    .await;
    let answer = rig.post("/api/v1/tokens", &json!({ "name": "x" })).await;
    assert!(answer.problem(500).contains("tokens.json"), "{answer:?}");
    assert_eq!(fs::read_to_string(rig.home.tokens()).unwrap(), damaged);
    // Without the file, no token is left.
    fs::remove_file(rig.home.tokens()).unwrap();
    let token = rig.token(json!({ "name": "x" })).await;
    fs::remove_file(rig.home.tokens()).unwrap();
    rig.ask("DELETE", "/api/v1/tokens/x", None)
        .await
        .problem(404);
    assert_eq!(rig.initialize_as(&token, "/mcp").await.status, 401);
    // The gateway's own token does not depend on the file.
    assert_eq!(rig.initialize_as(TOKEN, "/mcp").await.status, 200);
    rig.stop().await;
}

#[tokio::test]
async fn wrong_token_is_rejected_without_authentication() {
    let stage = stage();
    let rig = Rig::configured(json!({
        "mcpServers": { "alpha": stage.entry() },
        "auth": { "mcp": "none" },
    }))
    .await;
    let wrong = format!("swb_{}_{}", "0".repeat(16), "0".repeat(32));
    let answer = rig.initialize_as(&wrong, "/mcp").await;
    assert_eq!(answer.status, 401, "a revoked token is not anyone's");
    rig.stop().await;
}

#[tokio::test]
async fn administrator_cannot_take_other_rights() {
    let Two { rig, a: _a, b: _b } = Two::new().await;
    let token = rig.token(json!({ "name": "t", "rights": ["admin"] })).await;
    rig.token(json!({ "name": "u" })).await;
    for rights in [json!(["call"]), json!(["admin", "approve"])] {
        let body = json!({ "name": "more", "rights": rights }).to_string();
        let answer = rig.ask_as(&token, "POST", "/api/v1/tokens", &body).await;
        answer.problem(403);
    }
    let rotate = "/api/v1/tokens/u/rotate";
    rig.ask_as(&token, "POST", rotate, "").await.problem(403);
    let link = "/api/v1/console/link";
    let answer = rig.ask_as(&token, "POST", link, "").await;
    assert!(answer.problem(403).contains("cannot open the console"));
    let body = json!({ "name": "same", "rights": ["admin"] }).to_string();
    let answer = rig.ask_as(&token, "POST", "/api/v1/tokens", &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    rig.stop().await;
}

#[tokio::test]
async fn approver_of_single_tools_sees_no_review() {
    let stage = stage();
    let rig = Rig::configured(json!({
        "mcpServers": { "alpha": stage.entry_with(&json!({ "trust": "ask" })) },
        "profiles": { "work": { "tools": { "allow": ["alpha:read"] } } },
        "approvals": { "notify": "off" },
    }))
    .await;
    let about = json!({ "name": "t", "rights": ["approve"], "profile": "work" });
    let token = rig.token(about).await;
    let review = rig.one_waiting().await;
    assert_eq!(review["kind"], "trust", "{review}");
    let list = rig.ask_as(&token, "GET", PENDING, "").await.json();
    assert_eq!(list["approvals"], json!([]), "a review is about all tools");
    let id = review["id"].as_str().unwrap();
    let path = format!("/api/v1/approvals/{id}/approve");
    rig.ask_as(&token, "POST", &path, "").await.problem(404);
    rig.stop().await;
}

#[tokio::test]
async fn wrong_token_does_not_close_open_addresses() {
    let Two { rig, a: _a, b: _b } = Two::new().await;
    let wrong = format!("swb_{}_{}", "0".repeat(16), "0".repeat(32));
    let answer = rig.ask_as(&wrong, "GET", "/healthz", "").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let two = format!("Authorization: Bearer {TOKEN}\r\nAuthorization: Bearer {wrong}\r\n");
    let answer = rig.ask_with("GET", "/api/v1/status", &two, "").await;
    answer.problem(401);
    rig.stop().await;
}
