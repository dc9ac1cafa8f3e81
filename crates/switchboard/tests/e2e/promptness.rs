//! Changes that have to reach connected clients within a second. The elapsed time is the thing under test, so that
//! these tests have bounds, unlike all others. A busy machine may delay a round, so the fastest of five counts.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use switchboard_test_support::{
    Home,
    http::Http,
    mcp::{Client, request},
    pipe::Pipe,
    server, until,
};

const PROMPT: Duration = Duration::from_secs(1);
const ROUNDS: usize = 5;

/// Tests if less than a second has passed.
fn is_prompt(start: Instant) -> bool {
    let elapsed = start.elapsed();
    eprintln!("{elapsed:?}");
    elapsed < PROMPT
}

/// Checks that a round takes less than a second.
#[track_caller]
fn assert_prompt(round: impl FnMut(usize) -> bool) {
    let rounds: Vec<_> = (0..ROUNDS).map(round).collect();
    assert!(rounds.contains(&true), "no round was prompt");
}

const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// A configuration in which the profile includes this server.
fn config(included: &str) -> Value {
    json!({
        "mcpServers": { "a": server(&[]), "b": server(&[]) },
        "profiles": { "work": { "servers": [included] } },
    })
}

/// Checks that all tools of servers in a list are of this one.
fn assert_all_of(server: &str, tools: &[String]) {
    let beginnings = [format!("{server}__"), "switchboard__".to_owned()];
    let is_other = |name: &&String| !beginnings.iter().any(|start| name.starts_with(start));
    assert_eq!(tools.iter().find(is_other), None, "{server}");
    assert!(tools.iter().any(|name| name.starts_with(&beginnings[0])));
}

#[test]
fn changed_profile_reaches_clients_within_a_second() {
    let home = Home::new(json!({}));
    home.set_config(config("a"));
    let serve = home.serve();
    for server in ["a", "b"] {
        serve.until_known(server);
    }
    let mut pipe = Pipe::open_under(&home, "work");
    let mut web = Client::try_open_at(serve.http(), "/mcp/p/work").unwrap();
    let mut stream = web.listen();
    assert_all_of("a", &web.tools());
    assert_prompt(|round| {
        let included = ["b", "a"][round % 2];
        let start = Instant::now();
        // The gateway finds out by itself: only the file changes.
        home.set_config(config(included));
        pipe.until_told(LIST_CHANGED);
        stream.until(LIST_CHANGED);
        let is_prompt = is_prompt(start);
        let list = pipe.request("tools/list", json!({}));
        let list = list["result"]["tools"].as_array().unwrap().iter();
        let names = list.map(|tool| tool["name"].as_str().unwrap().to_owned());
        for tools in [names.collect(), web.tools()] {
            assert_all_of(included, &tools);
        }
        is_prompt
    });
    serve.stop();
}

/// The sessions of a token: a stream of each transport, and a call.
struct Sessions {
    streams: Vec<Http>,
    call: Http,
}

impl Sessions {
    fn open(http: &Http) -> Self {
        let stream = |method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
            let mut http = http.again();
            http.send(method, path, headers, body.as_bytes()).unwrap();
            let head = http.head().unwrap();
            assert_eq!(head.status, 200, "{path}");
            http
        };
        let web = Client::open(http.again());
        let session = [
            ("Mcp-Session-Id", &*web.session),
            ("Accept", "text/event-stream"),
        ];
        let modern = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "subscriptions/listen"),
        ];
        let info = json!({ "name": "e2e", "version": "1.0" });
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": info,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let wanted = json!({ "toolsListChanged": true });
        let listen = json!({ "notifications": wanted, "_meta": meta });
        let listen = request(&json!(1), "subscriptions/listen", listen);
        let streams = vec![
            stream("GET", "/mcp", &session, ""),
            stream("GET", "/sse", &[], ""),
            stream("POST", "/mcp", &modern, &listen),
        ];
        let mut caller = web.beside();
        caller.begin(&json!(9), "a__hang", json!({}));
        Self {
            streams,
            call: caller.http,
        }
    }

    /// Waits until all have ended.
    fn until_ended(mut self) {
        for mut stream in self.streams {
            while stream.chunk().unwrap().is_some() {}
        }
        assert_eq!(self.call.answer().unwrap().status, 401);
    }
}

#[test]
fn revoked_token_ends_sessions_within_a_second() {
    let home = Home::new(json!({ "a": server(&[]) }));
    let serve = home.serve();
    serve.until_known("a");
    let mut owner = serve.http();
    assert_prompt(|round| {
        let name = format!("t{round}");
        let body = json!({ "name": name }).to_string();
        let answer = owner.ask("POST", "/api/v1/tokens", &[], body.as_bytes());
        let token = answer.json()["token"].as_str().unwrap().to_owned();
        let http = Http::connect(serve.address, &token);
        let sessions = Sessions::open(&http);
        until("the call arrives", || serve.server("a")["inFlight"] == 1);
        let start = Instant::now();
        let path = format!("/api/v1/tokens/{name}");
        assert_eq!(owner.ask("DELETE", &path, &[], b"").status, 204);
        sessions.until_ended();
        let is_prompt = is_prompt(start);
        let body = request(&json!(1), "initialize", json!({}));
        let late = http.again().ask("POST", "/mcp", &[], body.as_bytes());
        assert_eq!(late.status, 401, "{late:?}");
        until("the call is over", || serve.server("a")["inFlight"] == 0);
        is_prompt
    });
    serve.stop();
}
