//! Pending requests survive the gateway, no matter how it ends.

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::{Value, json};
use switchboard_test_support::{Home, Serve, http::Http, pipe::Pipe, server, until};

/// The number of calls over HTTP, and of calls over each of two pipes.
struct Crowd {
    web: usize,
    each_pipe: usize,
}

impl Crowd {
    const fn count(&self) -> usize {
        self.web + 2 * self.each_pipe
    }
}

fn pending(http: &mut Http) -> Vec<Value> {
    let list = http
        .get("/api/v1/approvals?status=pending&limit=1000")
        .json();
    list["approvals"].as_array().unwrap().clone()
}

fn ids(list: &[Value]) -> BTreeSet<String> {
    let ids = list
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned());
    ids.collect()
}

fn home() -> Home {
    let home = Home::new(json!({}));
    home.set_config(json!({
        "mcpServers": { "a": server(&[]) },
        "approvals": { "rules": ["ask a:echo"], "notify": "off" },
    }));
    home
}

/// Makes a crowd of calls wait, ends the gateway, and starts it again: all requests are still there, and each
/// answer is delivered once.
fn survives(crowd: &Crowd, signal: Signal) {
    let home = home();
    let mut serve = home.serve();
    serve.until_known("a");
    let mut clients = Vec::new();
    for n in 0..crowd.web {
        let mut client = serve.client();
        client.begin(&json!(7), "a__echo", json!({ "text": format!("web {n}") }));
        clients.push(client);
    }
    let mut pipes = [Pipe::open(&home), Pipe::open(&home)];
    for (at, pipe) in pipes.iter_mut().enumerate() {
        for n in 0..crowd.each_pipe {
            pipe.begin_call("a__echo", json!({ "text": format!("pipe {at} {n}") }));
        }
    }
    let mut http = serve.http();
    let before = until("all are asked", || {
        let list = pending(&mut http);
        (list.len() == crowd.count()).then_some(list)
    });
    assert!(before.iter().all(|one| one["status"] == "pending"));
    serve.signal(signal);
    serve.ended();
    drop((clients, pipes, serve));

    let serve = home.serve();
    serve.until_known("a");
    let mut http = serve.http();
    let after = until("all are orphaned", || {
        let list = pending(&mut http);
        let orphaned = list.iter().filter(|one| one["status"] == "orphaned");
        (orphaned.count() == crowd.count()).then_some(list)
    });
    assert_eq!(ids(&after), ids(&before), "others wait than before");
    let mut texts = BTreeSet::new();
    for one in &after {
        let id = one["id"].as_str().unwrap();
        let path = format!("/api/v1/approvals/{id}/approve");
        let answer = http.ask("POST", &path, &[], b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.json()["deliveredAt"].is_null());
        let text = one["request"]["arguments"]["text"].as_str().unwrap();
        assert!(texts.insert(text.to_owned()), "asked twice: {text}");
    }
    assert_eq!(texts.len(), crowd.count());
    assert_eq!(pending(&mut http).len(), 0);
    fetched_once(&serve, &texts);
    serve.stop();
}

/// A client that makes the same call again gets the stored answer, once.
fn fetched_once(serve: &Serve<'_>, texts: &BTreeSet<String>) {
    let mut http = serve.http();
    let mut web = serve.client();
    let mut pipe = Pipe::open(serve.home);
    for text in texts {
        let arguments = json!({ "text": text });
        if text.starts_with("web") {
            assert_eq!(web.call("a__echo", arguments), Ok(text.clone()));
        } else {
            let id = pipe.begin_call("a__echo", arguments);
            let answer = pipe.finish(&id);
            assert_eq!(answer["result"]["content"][0]["text"], **text, "{answer}");
        }
    }
    assert_eq!(pending(&mut http).len(), 0, "asked again");
    let closed = http
        .get("/api/v1/approvals?status=approved&limit=1000")
        .json();
    let closed = closed["approvals"].as_array().unwrap();
    assert_eq!(closed.len(), texts.len());
    assert!(closed.iter().all(|one| one["deliveredAt"].is_string()));
    let text = texts.iter().find(|text| text.starts_with("web")).unwrap();
    web.begin(&json!(99), "a__echo", json!({ "text": text }));
    until("it is asked anew", || {
        (pending(&mut http).len() == 1).then_some(())
    });
}

#[test]
fn pending_requests_survive_a_killed_gateway() {
    let crowd = Crowd {
        web: 250,
        each_pipe: 125,
    };
    survives(&crowd, Signal::KILL);
}

#[test]
fn pending_requests_survive_and_do_not_delay_shutdown() {
    let crowd = Crowd {
        web: 20,
        each_pipe: 5,
    };
    survives(&crowd, Signal::TERM);
}
