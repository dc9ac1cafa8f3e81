//! Searches for tools: results and explanations, feedback and its removal, and empty results.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Stdio},
};

use serde_json::{Value, json};
use switchboard_test_support::until;

use crate::support::{Gateway, Place, json};

const TOOLS: &str = r#"{"tools": [
    {"name": "forecast", "description": "Tells the weather of a city.\nIt is often right.",
     "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
     "annotations": {"readOnlyHint": true}},
    {"name": "delete_note", "description": "Takes a note away.", "inputSchema": {"type": "object"}}
]}"#;

/// A gateway with one server, `sky`, whose tools are known.
fn gateway(place: &Place) -> Gateway {
    place.write("tools.json", TOOLS);
    let gateway = Gateway::start(place, &[]);
    let server = place.shifty("tools.json");
    let mut add = vec!["add", "sky", "--start", "eager", "--"];
    add.extend(server.iter().map(String::as_str));
    place.check(&add, 0, "", "added `sky`\n");
    // The index follows the catalogue with a delay.
    until("both tools are found", || {
        place.run(&["search", "weather"]).code == Some(0)
            && place.run(&["search", "note"]).code == Some(0)
    });
    gateway
}

#[test]
fn tools_are_found_by_what_they_do() {
    let place = Place::new();
    let _gateway = gateway(&place);
    // The words may be separate arguments.
    let done = place.run(&["search", "weather", "in", "Berlin", "-n", "1"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    let lines: Vec<&str> = done.out.lines().collect();
    assert_eq!(lines.len(), 2, "{done:?}");
    assert_eq!(lines[0], "SCORE  TOOL          DESCRIPTION");
    let words: Vec<&str> = lines[1].splitn(3, "  ").map(str::trim).collect();
    let score: f64 = words[0].parse().unwrap();
    assert!((0.0..=1.0).contains(&score), "{done:?}");
    assert_eq!(words[1], "sky:forecast");
    assert!(
        words[2].starts_with("Tells the weather of a city"),
        "{done:?}"
    );

    let found = json(&place, &["search", "weather in Berlin", "--json"]);
    let first = &found["tools"][0];
    assert_eq!(
        (&first["name"], &first["server"], &first["tool"]),
        (&json!("sky:forecast"), &json!("sky"), &json!("forecast"))
    );
    assert!(
        first["score"].is_number() && first.get("why").is_none(),
        "{first}"
    );
    assert!(
        found["byMeaning"].is_boolean() && found["learnt"] == 0,
        "{found}"
    );
    let found = json(&place, &["search", "weather", "--explain", "--json"]);
    let matched = &found["tools"][0]["why"]["matches"][0];
    assert_eq!(matched["word"], "weather", "{found}");

    let done = place.run(&["search", "note", "--server", "sky", "--trusted"]);
    assert!(done.out.contains("sky:delete_note"), "{done:?}");
}

#[test]
fn nothing_found_says_what_to_try() {
    let place = Place::new();
    let _gateway = gateway(&place);
    // Tools that change something are filtered out, so no tool has this word.
    let args = ["search", "xyzzy", "plugh", "--read-only", "--server", "sky"];
    let err = "error: no tool matches `xyzzy plugh`\nhint: try other words for what you want to do, in English, or omit --server and --read-only; `switchboard tools` lists all tools\n";
    place.check(&args, 1, "", err);
    let done = place.run(&["search", "xyzzy", "plugh", "--json"]);
    assert_eq!(done.code, Some(1));
    let found: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(found["tools"], json!([]));
    assert!(done.err.starts_with("error: no tool matches"), "{done:?}");
    place.check(
        &["search", "weather", "--server", "ski"],
        1,
        "",
        "error: there is no server `ski`\nhint: did you mean `sky`?\n",
    );
}

#[test]
fn search_explains_its_results() {
    let place = Place::new();
    let _gateway = gateway(&place);
    let done = place.run(&["search", "weather forecasts", "--explain", "--limit", "1"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(
        lines[2].starts_with("    by keyword 1.00, by meaning "),
        "{done:?}"
    );
    assert!(lines[2].ends_with(", feedback 0.00"), "{done:?}");
    // Another form of a word counts as the same word.
    let has = |start: &str| lines.iter().any(|line| line.starts_with(start));
    assert!(has("    weather: description ("), "{done:?}");
    assert!(has("    forecasts: name ("), "{done:?}");
    let last = lines.last().unwrap();
    assert!(last.starts_with("searched by keyword "), "{done:?}");
    assert!(
        last.ends_with("; no feedback from earlier searches yet"),
        "{done:?}"
    );

    // A synonym is shown with the word it stands for.
    let done = place.run(&["search", "erase", "--explain"]);
    assert!(done.out.contains("    erase → delete: name ("), "{done:?}");
}

/// An agent with the search view.
struct Agent {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Agent {
    fn new(place: &Place) -> Self {
        let mut child = place
            .command(&["stdio", "--view", "search"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut agent = Self { child, answers };
        agent.ask(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}),
        );
        agent
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
        loop {
            let mut answer = String::new();
            assert!(
                self.answers.read_line(&mut answer).unwrap() > 0,
                "no answer"
            );
            let mut answer: Value = serde_json::from_str(&answer).unwrap();
            if answer["id"] == 1 {
                return answer["result"].take();
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }
}

#[test]
fn search_feedback_is_reported_and_forgotten() {
    let place = Place::new();
    let _gateway = gateway(&place);
    let mut agent = Agent::new(&place);
    let found = agent.call("retrieve_tools", &json!({"query": "take a note away"}));
    assert!(found.to_string().contains("sky:delete_note"), "{found}");
    let called = agent.call("call_tool", &json!({"name": "sky:delete_note"}));
    assert_eq!(
        called["content"][0]["text"], "called delete_note",
        "{called}"
    );

    let search = ["search", "take a note away", "--explain"];
    let learnt = "; feedback from earlier searches: 1 match\n";
    until("a lesson is learnt", || {
        place.run(&search).out.ends_with(learnt)
    });
    let first = |found: &Value| found["tools"][0]["why"]["learnt"].as_f64().unwrap();
    let args = ["search", "take a note away", "--explain", "--json"];
    assert!(first(&json(&place, &args)) > 0.0);

    place.check(
        &["search", "--forget"],
        0,
        "",
        "cleared the feedback from earlier searches\n",
    );
    let found = json(&place, &args);
    assert_eq!((first(&found), &found["learnt"]), (0.0, &json!(0)));
    drop(agent.child.stdin.take());
    agent.child.wait().unwrap();
}
