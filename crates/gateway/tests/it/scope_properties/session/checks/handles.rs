//! Handles of long results and of tasks: each belongs to the realm that got it.

use super::*;

/// The most realms in a test.
const REALMS: usize = 7;

/// A server of 2025-11-25 with tasks and long results.
fn stage_of_handles() -> Stage {
    let mut job = tool("job", "Works.");
    job["execution"] = json!({ "taskSupport": "optional" });
    let stage = Stage::new(&[job, tool("long", "Gives much.")]);
    let tasks = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    let greeting = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {}, "tasks": tasks },
        "serverInfo": { "name": "stage", "version": "1" },
    });
    stage.set_answer("initialize", &format!("\"result\":{greeting}"));
    let text = "zqlongtext ".repeat(1_000);
    let result = json!({ "content": [{ "type": "text", "text": text }] });
    stage.set_result("long", &result.to_string());
    let task = |id: &str| json!({ "taskId": id, "status": "working" });
    let tasks: Vec<_> = (0..REALMS)
        .map(|number| task(&format!("t{number}")))
        .collect();
    let all = json!({ "tasks": tasks });
    for (method, result) in [
        ("tasks/list", all),
        ("tasks/get", task("t0")),
        ("tasks/cancel", task("t0")),
    ] {
        stage.set_answer(method, &format!("\"result\":{result}"));
    }
    stage
}

/// A profile and a token, either of which may be missing.
pub(super) type Realm<'a> = (Option<&'a str>, Option<&'a str>);

/// A client of a realm, in the search view or that of one server.
pub(super) async fn client_of(
    rig: &Rig,
    (profile, token): Realm<'_>,
    one: Option<&str>,
    revision: &'static str,
) -> Client {
    let transport = match token {
        Some(_) => Transport::Http,
        None => Transport::Pipe,
    };
    let door = Door {
        transport,
        token,
        profile,
        look: Look::Search,
        one,
        revision,
    };
    Client::open(rig, &door).await.0
}

/// The realms of some profiles and tokens. The profiles are `a` and `b`, which has the server `s` only.
pub(super) struct Realms {
    held: String,
    twin: String,
    narrow: String,
}

impl Realms {
    pub(super) async fn new(rig: &Rig) -> Self {
        Self {
            held: token(rig, "held", Some("a"), &[]).await,
            twin: token(rig, "twin", Some("a"), &[]).await,
            narrow: token(rig, "narrow", None, &["s".to_owned()]).await,
        }
    }

    pub(super) fn all(&self) -> [Realm<'_>; REALMS] {
        [
            (None, None),
            (Some("a"), None),
            (Some("b"), None),
            (Some("a"), Some(&self.held)),
            (Some("a"), Some(&self.twin)),
            (None, Some(&self.narrow)),
            (Some("b"), Some(&self.narrow)),
        ]
    }
}

pub(super) fn config_of(entry: &Value) -> Value {
    json!({
        "mcpServers": { "s": entry },
        "profiles": { "a": {}, "b": { "servers": ["s"] } },
        "results": { "maxBytes": 2_000 },
        "approvals": { "notify": "off" },
    })
}

/// The handles of a long result and of a task, which the server calls by the number of the realm.
async fn handles(rig: &Rig, stage: &Stage, number: usize, realm: Realm<'_>) -> [String; 2] {
    let mut client = client_of(rig, realm, None, "2025-11-25").await;
    let arguments = json!({ "name": "s:long", "arguments": {} });
    let call = json!({ "name": "call_tool", "arguments": arguments });
    let cut = client.ask("tools/call", call).await;
    let cut = text_of(&cut["result"]);
    let (_, call) = cut.split_once("read_result ").unwrap();
    let call: Value = serde_json::from_str(call.split_inclusive('}').next().unwrap()).unwrap();
    let task = json!({ "taskId": format!("t{number}"), "status": "working" });
    stage.set_result("job", &json!({ "task": task }).to_string());
    let mut client = client_of(rig, realm, Some("s"), "2025-11-25").await;
    let params = json!({ "name": "job", "arguments": {}, "task": {} });
    let begun = client.ask("tools/call", params).await;
    let task = begun["result"]["task"]["taskId"].as_str();
    let task = task.unwrap_or_else(|| panic!("{begun}"));
    [call["id"].as_str().unwrap().to_owned(), task.to_owned()]
}

/// The same handle with other letters at its end.
pub(super) fn altered(handle: &str) -> String {
    let (start, end) = handle.split_at(handle.len() - 6);
    let turned: String = end.chars().rev().collect();
    let other = if turned == end { "zyxwvt" } else { &turned };
    format!("{start}{other}")
}

#[tokio::test]
async fn handles_of_other_callers_look_missing() {
    let stage = stage_of_handles();
    let settings = json!({ "trust": "always" });
    let rig = Rig::configured(config_of(&stage.entry_with(&settings))).await;
    rig.until_tools("s", 2).await;
    let realms = Realms::new(&rig).await;
    let realms = realms.all();
    let mut known = Vec::new();
    for (number, realm) in realms.into_iter().enumerate() {
        known.push(handles(&rig, &stage, number, realm).await);
    }
    for (number, realm) in realms.into_iter().enumerate() {
        for revision in REVISIONS {
            let mut menu = client_of(&rig, realm, None, revision).await;
            let mut one = client_of(&rig, realm, Some("s"), revision).await;
            for (owner, [result, task]) in known.iter().enumerate() {
                let read = json!({ "name": "read_result", "arguments": { "id": "NAME" } });
                let of_theirs = menu.answer("tools/call", &read, result).await;
                let of_missing = menu.answer("tools/call", &read, &altered(result)).await;
                let is_same = of_theirs == of_missing;
                assert_eq!(is_same, owner != number, "{revision} {of_theirs}");
                if owner == number {
                    continue;
                }
                for method in ["tasks/get", "tasks/result", "tasks/cancel", "tasks/update"] {
                    let of = json!({ "taskId": "NAME", "inputResponses": {} });
                    let of_theirs = one.answer(method, &of, task).await;
                    let of_missing = one.answer(method, &of, &altered(task)).await;
                    assert_eq!(of_theirs, of_missing, "{revision} {method}");
                    assert!(of_theirs["error"].is_object(), "{revision} {of_theirs}");
                }
            }
            let listed = one.ask("tasks/list", json!({})).await;
            if revision == MODERN {
                assert_eq!(listed["error"]["code"], -32601, "{listed}");
                continue;
            }
            let tasks = listed["result"]["tasks"].as_array().unwrap();
            assert_eq!(tasks.len(), 1, "{revision} {listed}");
            one.ask("tasks/get", json!({ "taskId": tasks[0]["taskId"] }))
                .await;
            let get = one.ask("tasks/get", json!({ "taskId": known[number][1] }));
            assert!(get.await["result"].is_object(), "{revision}");
        }
    }
    // A token of the same name and scope is another one.
    let answer = rig.ask("DELETE", "/api/v1/tokens/held", None).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    let again = token(&rig, "held", Some("a"), &[]).await;
    let realm = (Some("a"), Some(&*again));
    let [result, task] = &known[3];
    let mut menu = client_of(&rig, realm, None, MODERN).await;
    let read = json!({ "name": "read_result", "arguments": { "id": "NAME" } });
    let of_old = menu.answer("tools/call", &read, result).await;
    let of_missing = menu.answer("tools/call", &read, &altered(result)).await;
    assert_eq!(of_old, of_missing);
    let mut one = client_of(&rig, realm, Some("s"), "2025-11-25").await;
    let of = json!({ "taskId": "NAME" });
    let of_old = one.answer("tasks/get", &of, task).await;
    assert_eq!(of_old, one.answer("tasks/get", &of, &altered(task)).await);
    let asked = stage.asked();
    let gets = asked.iter().filter(|line| line.starts_with("tasks/get"));
    let mut gets: Vec<_> = gets
        .map(|line| line.rsplit_once("\"t").unwrap().1)
        .collect();
    gets.dedup();
    let own = (0..REALMS).map(|number| format!("{number}\"}}"));
    assert_eq!(
        gets,
        own.collect::<Vec<_>>(),
        "each realm asks about its task"
    );
    let mut others = asked.iter();
    let is_other =
        |line: &String| line.starts_with("tasks/cancel") || line.starts_with("tasks/upd");
    assert!(!others.any(is_other), "{asked:?}");
    rig.stop().await;
}
