//! The scenarios that each agent goes through.

use std::{fs, process::Output};

use serde_json::{Value, json};
use switchboard_test_support::{Home, Serve, fixture, pipe::Pipe, server, until};

use crate::{
    agent::{Agent, Run, new_place, waiting},
    model::{DONE, Turn},
};

/// A home with a scripted server, and one that asks questions.
fn home(route: &str) -> Home {
    let home = Home::new(json!({}));
    let seen = home.text("seen");
    home.set_config(json!({
        "mcpServers": {
            "fixture": server(&["--seen", &seen]),
            "asker": {
                "command": fixture("protocol_fixture"),
                "args": ["--revisions", "2025-11-25", "--transport", "stdio"],
                "tools": { "allow": ["test_elicitation"] },
            },
        },
        // The long result of the tour is cut far below the limit of an agent.
        "results": { "maxBytes": 4_096 },
        "approvals": {
            "route": route,
            "notify": "off",
            "rules": [{ "action": "ask", "server": "fixture", "tool": "env" }],
        },
    }));
    home
}

fn served(home: &Home) -> Serve<'_> {
    let gateway = home.serve();
    gateway.until_known("fixture");
    gateway.until_known("asker");
    gateway
}

/// Waits for the one pending request.
fn request(home: &Home) -> Value {
    until("a person is asked", || waiting(home).pop())
}

fn answer(home: &Home, request: &Value, more: &[&str]) {
    let id = request["id"].as_str().unwrap();
    let words = [&["approvals", "approve", id, "--yes"], more].concat();
    let done: Output = home.run(&words);
    assert!(done.status.success(), "{done:?}");
}

/// Continues the last result where it was cut: the result names the ID and the offset.
fn read_on(results: &[String]) -> Value {
    let last = results.last().map(String::as_str).unwrap_or_default();
    let call = last.rsplit("read_result").next().unwrap_or_default();
    let id = call.find("r_").map(|at| &call[at..]).unwrap_or_default();
    let is_end = |letter: char| letter != '_' && letter != '-' && !letter.is_ascii_alphanumeric();
    let id = id.split(is_end).next().unwrap_or_default();
    let offset = call.split("offset").nth(1).unwrap_or_default();
    let offset = offset.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let offset: String = offset.chars().take_while(char::is_ascii_digit).collect();
    json!({ "id": id, "offset": offset.parse::<u64>().unwrap_or_default() })
}

/// Calls a tool, reads the rest of a long result, and waits for an approver in between.
#[track_caller]
fn tour(agent: Agent) {
    const TURNS: [Turn; 4] = [
        ("fixture__echo", |_| json!({ "text": "hello from a tool" })),
        ("fixture__big", |_| json!({ "bytes": 6_000 })),
        ("switchboard__read_result", read_on),
        ("fixture__env", |_| json!({ "name": "PATH" })),
    ];
    let Some(program) = agent.find() else { return };
    let home = home("human");
    let gateway = served(&home);
    let mut run = Run::start(agent, &program, &home, &TURNS);
    let asked = request(&home);
    assert_eq!(run.model.results().len(), 3, "it waits for the person");
    answer(&home, &asked, &[]);
    let status = run.ended();
    assert!(status.success(), "{status}");
    let said = run.said();
    assert!(said.contains(DONE), "{said}");
    let results = run.model.results();
    assert_eq!(results.len(), TURNS.len());
    assert!(results[0].contains("hello from a tool"), "{}", results[0]);
    let letters = |text: &str| text.matches('x').count();
    assert!(
        (2_000..6_000).contains(&letters(&results[1])),
        "{}",
        results[1]
    );
    assert!(letters(&results[1]) + letters(&results[2]) >= 6_000);
    assert!(results[3].contains("/bin"), "{}", results[3]);
    gateway.stop();
}

/// The way in which a server gets into a new home.
#[derive(Clone, Copy)]
enum Contact {
    /// With `switchboard add`.
    Added,
    /// Written into the configuration by hand.
    Pasted,
}

/// One run that starts the gateway itself: the server has never been used before.
#[track_caller]
fn first_contact(agent: Agent, contact: Contact) {
    const TURNS: [Turn; 1] = [(
        "fixture__echo",
        |_| json!({ "text": "hello at first sight" }),
    )];
    let Some(program) = agent.find() else { return };
    let home = Home::new(json!({}));
    let entry = server(&[]);
    match contact {
        Contact::Added => {
            let mut words = vec!["add", "fixture", "--", entry["command"].as_str().unwrap()];
            let args = entry["args"].as_array().unwrap().iter();
            words.extend(args.map(|word| word.as_str().unwrap()));
            let done: Output = home.run(&words);
            assert!(done.status.success(), "{done:?}");
        }
        Contact::Pasted => home.set_servers(json!({ "fixture": entry })),
    }
    let mut run = Run::start(agent, &program, &home, &TURNS);
    let status = run.ended();
    assert!(status.success(), "{status}");
    let results = run.model.results();
    assert_eq!(results.len(), 1);
    assert!(
        results[0].contains("hello at first sight"),
        "{}",
        results[0]
    );
}

/// The party that answers the server's question.
#[derive(Clone, Copy)]
enum Answers {
    /// The agent supports elicitation, and gives this answer.
    Agent(&'static str),
    /// The agent does not support elicitation, so the gateway asks the user.
    Person,
}

#[track_caller]
fn asked(agent: Agent, answers: Answers) {
    const TURNS: [Turn; 1] = [(
        "asker__test_elicitation",
        |_| json!({ "message": "Who are you?" }),
    )];
    let Some(program) = agent.find() else { return };
    let home = home("auto");
    let gateway = served(&home);
    let mut run = Run::start(agent, &program, &home, &TURNS);
    let expected = match answers {
        Answers::Agent(expected) => expected,
        Answers::Person => {
            let fields = [
                "--field",
                "username=ada",
                "--field",
                "email=ada@example.org",
            ];
            answer(&home, &request(&home), &fields);
            ACCEPTED
        }
    };
    let status = run.ended();
    assert!(status.success(), "{status}");
    let results = run.model.results();
    assert_eq!(results.len(), 1);
    assert!(results[0].contains(expected), "{}", results[0]);
    gateway.stop();
}

/// The list that an agent is shown when there are many tools.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Every tool, because the agent searches the list itself.
    EveryTool,
    Menu,
}

/// Checks the tools that an agent offers to its model: the view by the client, and the profile.
#[track_caller]
fn viewed(agent: Agent, shown: Shown) {
    let Some(program) = agent.find() else { return };
    let home = Home::new(json!({}));
    home.set_config(json!({
        // `connect --http` needs a fixed port. It writes the one that the running gateway has.
        "listen": "127.0.0.1:1",
        "mcpServers": { "many": server(&["--tools", "60"]), "few": server(&[]) },
        "profiles": { "narrow": { "servers": ["few"], "tools": { "allow": ["few:echo"] } } },
    }));
    let gateway = home.serve();
    gateway.until_known("many");
    gateway.until_known("few");
    let offered = |options: &[&str]| {
        let mut run = Run::start_with(agent, &program, &home, &[], options);
        let status = run.ended();
        assert!(status.success(), "{status}");
        run.model.offered()
    };
    let all = offered(&[]);
    assert_eq!(all.contains("many__"), shown == Shown::EveryTool, "{all}");
    assert_eq!(
        all.contains("retrieve_tools"),
        shown == Shown::Menu,
        "{all}"
    );
    for options in [
        &["--profile", "narrow"][..],
        &["--http", "--profile", "narrow"],
    ] {
        let narrow = offered(options);
        assert!(narrow.contains("few__echo"), "{options:?}: {narrow}");
        for hidden in ["many__", "few__env", "retrieve_tools"] {
            assert!(!narrow.contains(hidden), "{options:?} {hidden}: {narrow}");
        }
    }
    gateway.stop();
}

/// Runs an agent in two projects at the same time. The server answers with a file of its project.
#[track_caller]
fn at_two_projects(agent: Agent) {
    const TURNS: [Turn; 1] = [("fixture__echo", |_| json!({ "text": "from no file" }))];
    const FILES: [&str; 2] = ["a file of one project", "a file of the other"];
    let Some(program) = agent.find() else { return };
    let home = Home::new(json!({ "fixture": server(&["--script", "${project}/answers.json"]) }));
    let gateway = home.serve();
    let places = FILES.map(|text| {
        let place = new_place();
        let result = json!({ "content": [{ "type": "text", "text": text }] });
        let answers = json!({ "tools/call": { "result": result } });
        let file = place.path().join("work/answers.json");
        fs::write(file, answers.to_string()).unwrap();
        place
    });
    // The tools are known once a client has listed them in a project.
    let mut pipe = Pipe::open_in(&home, &places[0].path().join("work"), &[]);
    pipe.request("tools/list", json!({}));
    gateway.until_known("fixture");
    pipe.leave();
    pipe.ended();
    let mut runs = places.map(|place| Run::start_in(place, agent, &program, &home, &TURNS, &[]));
    for (run, text) in runs.iter_mut().zip(FILES) {
        let status = run.ended();
        assert!(status.success(), "{status}");
        let results = run.model.results();
        assert_eq!(results.len(), 1);
        let seen = FILES.map(|file| results[0].contains(file));
        assert_eq!(seen, FILES.map(|file| file == text), "{}", results[0]);
    }
    gateway.stop();
}

const ACCEPTED: &str = "action=accept";

/// Interrupts a call that never ends, and checks that the server is notified.
#[track_caller]
fn cancelled(agent: Agent) {
    const TURNS: [Turn; 1] = [("fixture__hang", |_| json!({}))];
    let Some(program) = agent.find() else { return };
    let home = home("human");
    let gateway = served(&home);
    let mut run = Run::start(agent, &program, &home, &TURNS);
    let seen = |what: &str| {
        let lines = home.lines("seen");
        lines.iter().any(|line| line.contains(what)).then_some(())
    };
    until("the server has the call", || seen("hangs"));
    run.interrupt();
    until("the call is withdrawn", || seen("requestId"));
    run.ended();
    gateway.stop();
}

#[test]
fn claude_code_calls_reads_on_and_waits() {
    tour(Agent::ClaudeCode);
}

#[test]
fn claude_code_answers_a_server() {
    asked(Agent::ClaudeCode, Answers::Agent(ACCEPTED));
}

#[test]
fn claude_code_cancels_a_call() {
    cancelled(Agent::ClaudeCode);
}

#[test]
fn codex_calls_reads_on_and_waits() {
    tour(Agent::Codex);
}

#[test]
fn codex_answers_a_server() {
    asked(Agent::Codex, Answers::Agent("action=decline"));
}

#[test]
fn codex_cancels_a_call() {
    cancelled(Agent::Codex);
}

#[test]
fn opencode_calls_reads_on_and_waits() {
    tour(Agent::OpenCode);
}

#[test]
fn user_answers_a_server_for_opencode() {
    asked(Agent::OpenCode, Answers::Person);
}

#[test]
fn opencode_cancels_a_call() {
    cancelled(Agent::OpenCode);
}

#[test]
fn gemini_calls_reads_on_and_waits() {
    tour(Agent::GeminiCli);
}

#[test]
fn user_answers_a_server_for_gemini() {
    asked(Agent::GeminiCli, Answers::Person);
}

#[test]
fn gemini_cancels_a_call() {
    cancelled(Agent::GeminiCli);
}

#[test]
fn claude_code_uses_a_server_just_added() {
    first_contact(Agent::ClaudeCode, Contact::Added);
}

#[test]
fn claude_code_uses_a_server_just_pasted() {
    first_contact(Agent::ClaudeCode, Contact::Pasted);
}

#[test]
fn codex_uses_a_server_just_added() {
    first_contact(Agent::Codex, Contact::Added);
}

#[test]
fn codex_uses_a_server_just_pasted() {
    first_contact(Agent::Codex, Contact::Pasted);
}

#[test]
fn opencode_uses_a_server_just_added() {
    first_contact(Agent::OpenCode, Contact::Added);
}

#[test]
fn opencode_uses_a_server_just_pasted() {
    first_contact(Agent::OpenCode, Contact::Pasted);
}

#[test]
fn gemini_uses_a_server_just_added() {
    first_contact(Agent::GeminiCli, Contact::Added);
}

#[test]
fn gemini_uses_a_server_just_pasted() {
    first_contact(Agent::GeminiCli, Contact::Pasted);
}

#[test]
fn claude_code_sees_its_view_and_profile() {
    viewed(Agent::ClaudeCode, Shown::EveryTool);
}

#[test]
fn codex_sees_its_view_and_profile() {
    viewed(Agent::Codex, Shown::EveryTool);
}

#[test]
fn opencode_sees_its_view_and_profile() {
    viewed(Agent::OpenCode, Shown::Menu);
}

#[test]
fn gemini_sees_its_view_and_profile() {
    viewed(Agent::GeminiCli, Shown::Menu);
}

#[test]
fn claude_code_sees_only_its_own_project() {
    at_two_projects(Agent::ClaudeCode);
}

#[test]
fn codex_sees_only_its_own_project() {
    at_two_projects(Agent::Codex);
}

#[test]
fn opencode_sees_only_its_own_project() {
    at_two_projects(Agent::OpenCode);
}

#[test]
fn gemini_sees_only_its_own_project() {
    at_two_projects(Agent::GeminiCli);
}
