//! `switchboard stdio --profile`: a client sees and calls only what its profile includes, whether its process runs the
//! gateway or joins another one.

use serde_json::{Value, json};
use switchboard_test_support::{Home, pipe::Pipe, server, until};

fn home() -> Home {
    let home = Home::new(json!({}));
    home.set_config(json!({
        "mcpServers": { "a": server(&[]), "b": server(&[]) },
        "profiles": { "work": { "servers": ["a"], "tools": { "allow": ["*:echo"] } } },
    }));
    home
}

/// The names of the tools of servers that a client sees.
fn tools(pipe: &mut Pipe) -> Vec<String> {
    let list = pipe.request("tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap().iter();
    let names = tools.map(|tool| tool["name"].as_str().unwrap().to_owned());
    let is_own = |name: &String| name.starts_with("switchboard__");
    names.filter(|name| !is_own(name)).collect()
}

/// The error for the call of a tool, without the name of the tool.
fn refusal(pipe: &mut Pipe, tool: &str) -> Value {
    let error = pipe.call(tool, json!({})).unwrap_err();
    assert_eq!(error["code"], -32602, "{tool}: {error}");
    json!(error.to_string().replace(tool, "NAME"))
}

#[track_caller]
fn assert_limited(pipe: &mut Pipe) {
    until("the tool is known", || !tools(pipe).is_empty());
    assert_eq!(tools(pipe), ["a__echo"]);
    let answer = pipe.call("a__echo", json!({ "text": "x" }));
    assert_eq!(answer, Ok("x".to_owned()));
    for (hidden, missing) in [("a__pid", "a__pxd"), ("b__echo", "c__echo")] {
        let of_hidden = refusal(pipe, hidden);
        assert_eq!(of_hidden, refusal(pipe, missing), "{hidden}");
    }
}

/// Waits until a client without a profile sees the tools of both servers, and calls one that the profile leaves out.
#[track_caller]
fn assert_unlimited(pipe: &mut Pipe) {
    until("all tools are known", || {
        let tools = tools(pipe);
        let has = |name: &str| tools.iter().any(|tool| tool == name);
        has("a__pid") && has("b__echo")
    });
    pipe.call("b__pid", json!({})).unwrap();
}

#[test]
fn profile_limits_the_client_that_hosts() {
    let home = home();
    let mut first = Pipe::open_under(&home, "work");
    assert_limited(&mut first);
    // The gateway in the process of this client serves others, too.
    let mut second = Pipe::open(&home);
    assert_unlimited(&mut second);
    assert_limited(&mut first);
    for pipe in [&mut second, &mut first] {
        pipe.leave();
        assert!(pipe.ended().success());
    }
    home.assert_nobody("all have left");
}

#[test]
fn profile_limits_a_client_that_joins() {
    let home = home();
    let serve = home.serve();
    assert_unlimited(&mut Pipe::open(&home));
    let mut pipe = Pipe::open_under(&home, "work");
    assert_limited(&mut pipe);
    pipe.leave();
    assert!(pipe.ended().success());
    serve.stop();
}

#[test]
fn profile_limits_a_client_that_takes_over() {
    let home = home();
    let mut first = Pipe::open(&home);
    assert_unlimited(&mut first);
    let mut second = Pipe::open_under(&home, "work");
    assert_limited(&mut second);
    first.kill();
    assert_limited(&mut second);
    let mut third = Pipe::open(&home);
    assert_unlimited(&mut third);
    for pipe in [&mut third, &mut second] {
        pipe.leave();
        assert!(pipe.ended().success());
    }
    home.assert_nobody("all have left");
}
