//! A client whose gateway goes away: the next gateway keeps its subscriptions and its log level, but not its
//! open questions. A question also outlives the response to another call.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::Signal;
use serde_json::{Value, json};
use switchboard_test_support::{Home, pipe::Pipe, until, with};

/// Speaks 2025-06-18. Its tools ask the client and return its answer; it reports a change of a resource
/// before it responds to the subscription, and logs the level that it gets. A call that comes before the
/// answer waits. Of two calls of `together`, it answers the first and asks for the second at once. It answers
/// `hasty` when `release` is called, without waiting for the answer to its question. It starts slowly if a file
/// with its name and `.slow` exists.
const ASKING: &str = r#"#!/bin/sh
[ -e "$0.slow" ] && sleep 3
say() { printf '%s\n' "$1"; }
tool() { printf '{"name":"%s","inputSchema":{"type":"object"}}' "$1"; }
held= first=
while if [ -n "$held" ]; then line=$held held=; else IFS= read -r line; fi; do
  id=$(printf '%s' "$line" | sed -n 's/^.*"id":\([0-9][0-9]*\).*$/\1/p')
  done="{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}"
  case $line in
    *'"server/discover"'*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"unknown\"}}" ;;
    *'"initialize"'*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{},\"logging\":{},\"resources\":{\"subscribe\":true}},\"serverInfo\":{\"name\":\"asking\",\"version\":\"1\"}}}" ;;
    *'"tools/list"'*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[$(tool greet),$(tool wipe),$(tool together),$(tool hasty),$(tool release)]}}" ;;
    *'"resources/list"'*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"resources\":[{\"uri\":\"note://a\",\"name\":\"a\"}]}}" ;;
    *'"resources/templates/list"'*) say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"resourceTemplates\":[]}}" ;;
    *'"resources/subscribe"'*) say '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"note://a"}}'; say "$done" ;;
    *'"logging/setLevel"'*) say "$done"; say '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"heard"}}' ;;
    *'"hasty"'*)
      hasty=$id
      say '{"jsonrpc":"2.0","id":"h","method":"elicitation/create","params":{"message":"hasty","requestedSchema":{"type":"object","properties":{}}}}' ;;
    *'"release"'*)
      say "{\"jsonrpc\":\"2.0\",\"id\":$hasty,\"result\":{\"content\":[]}}"
      say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[]}}" ;;
    *'"id":"h"'*) printf '%s' "$line" > "$0.part"; mv "$0.part" "$0.told" ;;
    *'"together"'*)
      if [ -z "$first" ]; then first=$id; continue; fi
      printf '%s\n%s\n' "{\"jsonrpc\":\"2.0\",\"id\":$first,\"result\":{\"content\":[]}}" '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"together","requestedSchema":{"type":"object","properties":{}}}}'
      while IFS= read -r answer; do
        case $answer in *'"id":"q"'*) break ;; esac
      done
      first=
      say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$(printf '%s' "$answer" | sed -n 's/^.*"action":"\([a-z]*\)".*$/\1/p')\"}]}}" ;;
    *'"tools/call"'*)
      case $line in *'"greet"'*) name=greet ;; *) name=wipe ;; esac
      say "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"elicitation/create\",\"params\":{\"message\":\"$name\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}"
      while IFS= read -r answer; do
        case $answer in *'"id":"q"'*) break ;; *'"tools/call"'*) held=$answer ;; esac
      done
      did=$(printf '%s' "$answer" | sed -n 's/^.*"action":"\([a-z]*\)".*$/\1/p')
      say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$did\"}]}}" ;;
  esac
done
"#;

fn home() -> Home {
    home_with(json!({}))
}

fn home_with(settings: Value) -> Home {
    let home = Home::new(json!({}));
    let path = home.path("asking.sh");
    fs::write(&path, ASKING).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let config = json!({
        "mcpServers": { "q": { "command": path } },
        "approvals": { "notify": "off" },
    });
    home.set_config(with(config, settings));
    home
}

fn initialize(pipe: &mut Pipe) {
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "e2e-asked", "version": "1.0" },
    });
    let answer = pipe.request("initialize", params);
    assert!(answer["result"].is_object(), "{answer}");
    pipe.tell("notifications/initialized", json!({}));
}

fn open(home: &Home) -> Pipe {
    let mut pipe = Pipe::start(home);
    initialize(&mut pipe);
    pipe
}

/// The URI of the server's resource, once it is known.
fn resource(pipe: &mut Pipe) -> String {
    until("the resource is known", || {
        let list = pipe.request("resources/list", json!({}));
        list["result"]["resources"][0]["uri"]
            .as_str()
            .map(str::to_owned)
    })
}

/// Calls a tool, and returns the ID of the call and of the question that it asks.
fn ask(pipe: &mut Pipe, tool: &str) -> (Value, Value) {
    let call = pipe.begin_call(tool, json!({}));
    let question = pipe.until_told("elicitation/create");
    let about = tool.trim_start_matches("q__");
    assert_eq!(question["params"]["message"], about, "{question}");
    (call, question["id"].clone())
}

fn answer(pipe: &mut Pipe, question: &Value, action: &str) {
    let result = json!({ "action": action, "content": {} });
    pipe.say(&json!({ "jsonrpc": "2.0", "id": question, "result": result }).to_string());
}

fn until_withdrawn(pipe: &mut Pipe, question: &Value) {
    let told = pipe.until_told("notifications/cancelled");
    assert_eq!(told["params"]["requestId"], *question, "{told}");
}

/// Checks that the answer to a closed question is not used for another.
fn wipe_gets_its_own_answer(pipe: &mut Pipe, before: &Value) {
    let (call, question) = ask(pipe, "q__wipe");
    assert_ne!(question, *before);
    assert!(question.as_u64().unwrap() < 1 << 53, "{question}");
    answer(pipe, before, "accept");
    answer(pipe, &question, "decline");
    let done = pipe.finish(&call);
    assert_eq!(done["result"]["content"][0]["text"], "decline", "{done}");
}

fn question_ends_with_its_gateway(signal: Signal) {
    let home = home();
    let mut serve = home.serve();
    serve.until_known("q");
    let mut pipe = open(&home);
    let (call, question) = ask(&mut pipe, "q__greet");
    serve.signal(signal);
    serve.ended();
    until_withdrawn(&mut pipe, &question);
    let lost = pipe.finish(&call);
    assert!(lost["error"].is_object(), "{lost}");
    wipe_gets_its_own_answer(&mut pipe, &question);
    pipe.leave();
    assert!(pipe.ended().success());
}

#[test]
fn question_ends_with_a_gateway_that_is_killed() {
    question_ends_with_its_gateway(Signal::KILL);
}

#[test]
fn question_ends_with_a_gateway_that_stops() {
    question_ends_with_its_gateway(Signal::TERM);
}

#[test]
fn question_ends_with_its_session() {
    let home = home();
    let serve = home.serve();
    serve.until_known("q");
    let mut pipe = open(&home);
    let (_, question) = ask(&mut pipe, "q__greet");
    initialize(&mut pipe);
    until_withdrawn(&mut pipe, &question);
    wipe_gets_its_own_answer(&mut pipe, &question);
    serve.stop();
}

#[test]
fn subscription_and_level_outlive_the_gateway() {
    let home = home();
    let mut serve = home.serve();
    serve.until_known("q");
    let mut pipe = open(&home);
    let uri = resource(&mut pipe);
    let ask = |pipe: &mut Pipe, method: &str, params: Value| {
        let answer = pipe.request(method, params);
        assert!(answer["result"].is_object(), "{answer}");
    };
    ask(&mut pipe, "resources/subscribe", json!({ "uri": uri }));
    ask(&mut pipe, "logging/setLevel", json!({ "level": "warning" }));
    let told = pipe.until_told("notifications/resources/updated");
    assert_eq!(told["params"]["uri"], *uri, "{told}");
    pipe.until_told("notifications/message");
    serve.signal(Signal::KILL);
    serve.ended();
    let told = pipe.until_told("notifications/resources/updated");
    assert_eq!(told["params"]["uri"], *uri, "{told}");
    pipe.until_told("notifications/message");
    pipe.leave();
    assert!(pipe.ended().success());
}

#[test]
fn subscription_outlives_a_slow_start() {
    let home = home_with(json!({ "waitTimeoutMs": 500 }));
    let mut serve = home.serve();
    serve.until_known("q");
    let mut pipe = open(&home);
    let uri = resource(&mut pipe);
    let answer = pipe.request("resources/subscribe", json!({ "uri": uri }));
    assert!(answer["result"].is_object(), "{answer}");
    pipe.until_told("notifications/resources/updated");
    fs::write(home.path("asking.sh.slow"), "").unwrap();
    serve.signal(Signal::KILL);
    serve.ended();
    let told = pipe.until_told("notifications/resources/updated");
    assert_eq!(told["params"]["uri"], *uri, "{told}");
    pipe.leave();
    assert!(pipe.ended().success());
}

#[test]
fn question_after_another_response_reaches_the_client() {
    let home = home();
    let serve = home.serve();
    serve.until_known("q");
    let mut pipe = open(&home);
    for _ in 0..100 {
        let first = pipe.begin_call("q__together", json!({}));
        let (second, question) = ask(&mut pipe, "q__together");
        answer(&mut pipe, &question, "accept");
        // The server takes them in the order of their arrival, which may differ.
        let done = [first, second].map(|call| pipe.finish(&call));
        let texts = done
            .each_ref()
            .map(|done| &done["result"]["content"][0]["text"]);
        assert!(texts.contains(&&json!("accept")), "{done:?}");
    }
    serve.stop();
}

#[test]
fn question_of_an_answered_call_is_dropped() {
    let home = home();
    let serve = home.serve();
    serve.until_known("q");
    let mut pipe = open(&home);
    let (hasty, question) = ask(&mut pipe, "q__hasty");
    let release = pipe.begin_call("q__release", json!({}));
    for call in [hasty, release] {
        let done = pipe.finish(&call);
        assert!(done["result"].is_object(), "{done}");
    }
    until_withdrawn(&mut pipe, &question);
    let told = until("the server is told", || {
        fs::read_to_string(home.path("asking.sh.told")).ok()
    });
    assert!(told.contains("\"error\""), "{told}");
    let list = serve.http().get("/api/v1/approvals").json();
    assert_eq!(list["approvals"], json!([]), "no approver is asked instead");
    serve.stop();
}
