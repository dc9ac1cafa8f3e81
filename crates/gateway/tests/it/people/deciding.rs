//! Decisions over REST: the first one wins, and an invalid one is refused with a reason.

use serde_json::{Value, json};

use super::{EVENTS, asks_deletions, form, mute, sampling, staged};
use crate::{
    api_rig::{Answer, Rig, TOKEN},
    mcp_rig::{LEGACY, MODERN, refusal_of},
};

/// Two approvers decide at the same time, again and again: one wins, and the other sees the winner.
#[tokio::test]
async fn first_of_two_concurrent_decisions_wins() {
    const ROUNDS: usize = 100;
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let mut calls = Vec::new();
    for n in 0..ROUNDS {
        calls.push(client.send_call("delete_file", json!({ "n": n })).await);
    }
    let waiting = rig.until_waiting(ROUNDS).await;
    let rounds = waiting.iter().map(|asked| async {
        let id = &asked["id"];
        let yes = rig.decide(id, "approve", json!({ "by": "ada" }));
        let no = rig.decide(id, "reject", json!({ "by": "bob" }));
        tokio::join!(yes, no)
    });
    let mut approved = 0;
    let rounds: Vec<_> = join_all(rounds).await;
    for (asked, (yes, no)) in waiting.iter().zip(rounds) {
        let (winner, loser, by, was) = match (yes.status, no.status) {
            (200, 409) => (yes, no, "ada", "approved"),
            (409, 200) => (no, yes, "bob", "rejected"),
            _ => panic!("{yes:?} {no:?}"),
        };
        approved += usize::from(by == "ada");
        assert_eq!(winner.json()["status"], was);
        let detail = loser.problem(409);
        assert!(detail.contains("by owner via tcp"), "{detail}");
        let problem = loser.json();
        assert_eq!(problem["was"], was);
        assert_eq!(problem["approval"], asked["id"]);
        assert_eq!(problem["decision"]["note"], by);
        let kept = rig.approval(&asked["id"]).await;
        assert_eq!(
            (&kept["status"], &kept["decision"]["note"]),
            (&json!(was), &json!(by))
        );
    }
    for call in &calls {
        client.finish(call).await;
    }
    assert_eq!(stage.calls_of("delete_file").len(), approved);
    rig.stop().await;
}

async fn join_all<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    // Enough at a time to collide, and few enough for the sockets of this machine.
    let mut done = Vec::new();
    let all: Vec<_> = all.map(Box::pin).collect();
    let mut all = all.into_iter().peekable();
    while all.peek().is_some() {
        let mut some: Vec<_> = all.by_ref().take(25).collect();
        let mut results: Vec<Option<T>> = some.iter().map(|_| None).collect();
        std::future::poll_fn(|cx| {
            for (future, result) in some.iter_mut().zip(&mut results) {
                if result.is_none()
                    && let std::task::Poll::Ready(value) = future.as_mut().poll(cx)
                {
                    *result = Some(value);
                }
            }
            if results.iter().all(Option::is_some) {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
        done.extend(results.into_iter().flatten());
    }
    done
}

/// Submits a decision with these headers.
async fn knock(rig: &Rig, id: &Value, headers: &str, body: &str) -> Answer {
    let path = format!("/api/v1/approvals/{}/approve", id.as_str().unwrap());
    rig.ask_with("POST", &path, headers, body).await
}

#[tokio::test]
async fn decisions_require_the_token_and_the_same_site() {
    let (stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    let call = client.send_call("delete_file", json!({})).await;
    let asked = rig.one_waiting().await;
    let id = &asked["id"];
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    let json = "Content-Type: application/json\r\n";
    for (headers, status) in [
        (json.to_owned(), 401),
        (format!("{json}Authorization: Bearer wrong\r\n"), 401),
        (format!("{json}Authorization: Basic {TOKEN}\r\n"), 401),
        (format!("{json}Cookie: token={TOKEN}\r\n"), 401),
        (
            format!("{json}{token}Origin: https://evil.example\r\n"),
            403,
        ),
        (format!("{json}{token}Origin: null\r\n"), 403),
        (format!("{json}{token}Host: evil.example\r\n"), 403),
    ] {
        let answer = knock(&rig, id, &headers, "{}").await;
        assert_eq!(answer.status, status, "{headers}: {answer:?}");
    }
    for kind in [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
        "text/plain; charset=utf-8",
    ] {
        for body in ["{}", "", "by=me"] {
            let headers = format!("{token}Content-Type: {kind}\r\n");
            let answer = knock(&rig, id, &headers, body).await;
            answer.problem(415);
        }
    }
    // A path that is not an id, and an id that does not exist.
    for id in [
        "aaaaaaaa",
        "..%2f..%2fstatus",
        "%ff",
        &"a".repeat(3000),
        "' OR 1=1 --".replace(' ', "%20").as_str(),
    ] {
        for how in ["approve", "reject", "respond"] {
            let body = if how == "respond" {
                json!({ "text": "x" })
            } else {
                json!({})
            };
            let answer = rig
                .post(&format!("/api/v1/approvals/{id}/{how}"), &body)
                .await;
            assert!(
                (400..=414).contains(&answer.status),
                "{id} {how}: {answer:?}"
            );
        }
        let answer = rig.get(&format!("/api/v1/approvals/{id}")).await;
        assert!((400..=414).contains(&answer.status), "{id}: {answer:?}");
    }
    rig.get("/api/v1/approvals/aaaaaaaa").await.problem(404);
    let long = format!("{{\"by\":\"{}\"}}", "x".repeat(5 * 1024 * 1024));
    let answer = knock(&rig, id, &format!("{json}{token}"), &long).await;
    assert_eq!(answer.status, 413, "{:?}", answer.headers);
    assert_eq!(rig.approval(id).await["status"], "pending");
    assert_eq!(rig.approval(id).await["version"], 1);
    assert_eq!(stage.calls(), 0);
    rig.decided(id, "reject", json!({})).await;
    client.finish(&call).await;
    rig.stop().await;
}

/// Every member with every kind of invalid value.
#[tokio::test]
async fn invalid_decision_is_refused_without_effect() {
    let (_stage, rig) = staged(asks_deletions()).await;
    let mut events = rig.follow(EVENTS).await;
    let mut client = mute(&rig, LEGACY).await;
    let mut other = mute(&rig, MODERN).await;
    let mut third = mute(&rig, LEGACY).await;
    client.send_call("ask", sampling("Why?")).await;
    let sample = events.until("approval.created").await;
    drop(third.send_call("delete_file", json!({})).await);
    let gated = events.until("approval.created").await;
    other.send_call("delete_file", json!({ "n": 1 })).await;
    events.until("approval.created").await;
    let wrong = [
        json!(null),
        json!(true),
        json!(7),
        json!(-1),
        json!("x"),
        json!([]),
        json!([1]),
        json!({}),
        json!({ "x": 1 }),
        json!(1e300),
    ];
    let places = [
        ("approve", vec!["edits", "remember", "by", "nonsense"]),
        ("reject", vec!["reason", "remember", "by", "edits"]),
        ("respond", vec!["action", "content", "text", "by", "reason"]),
    ];
    let fits = |how: &str, name: &str, value: &Value| match (how, name) {
        (_, "by" | "reason" | "text" | "action") if how != "respond" => {
            value.is_string() || value.is_null()
        }
        ("respond", "text") => value.is_string(),
        ("approve", "edits") => value.is_null() || *value == json!({}),
        (_, "remember") => value.is_null(),
        _ => false,
    };
    for asked in [&sample, &gated] {
        for (how, names) in &places {
            for name in names {
                for value in &wrong {
                    if fits(how, name, value) {
                        continue;
                    }
                    let answer = rig.decide(&asked["id"], how, json!({ *name: value })).await;
                    assert!(
                        (400..500).contains(&answer.status) && answer.status != 409,
                        "{how} {name}={value}: {answer:?}"
                    );
                    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
                    assert!(detail.len() > 10, "{how} {name}={value}: {detail}");
                }
            }
        }
        for body in [
            "",
            "{",
            "[]",
            "7",
            "null",
            "\"x\"",
            "{\"by\":\"a\"}x",
            "\u{0}",
            &"[".repeat(100_000),
        ] {
            let id = asked["id"].as_str().unwrap();
            let path = format!("/api/v1/approvals/{id}/respond");
            let answer = rig.ask("POST", &path, Some(body)).await;
            assert!(
                (400..500).contains(&answer.status),
                "{body:.10}: {answer:?}"
            );
        }
    }
    let remember = |more: Value| json!({ "remember": more });
    for body in [
        remember(json!({ "scope": "ever" })),
        remember(json!({ "scope": "always", "arguments": "some" })),
        remember(json!({ "scope": "always", "expiresInSeconds": -1 })),
        remember(json!({ "scope": "always", "expiresInSeconds": 1.5 })),
        remember(json!({ "scope": "always", "expiresInSeconds": "1" })),
        remember(json!({ "scope": "always", "more": 1 })),
        remember(json!({ "arguments": "any" })),
        json!({ "edits": { "arguments": [] } }),
        json!({ "edits": { "arguments": null } }),
        json!({ "edits": { "name": "other" } }),
        json!({ "by": "x".repeat(101) }),
    ] {
        let answer = rig.decide(&gated["id"], "approve", body.clone()).await;
        assert!((400..500).contains(&answer.status), "{body}: {answer:?}");
    }
    for edits in [
        json!({ "messages": [] }),
        json!({ "messages": "x" }),
        json!({ "messages": {} }),
        json!({ "messages": [7] }),
        json!({ "messages": [{ "role": "king", "content": { "type": "text", "text": "x" } }] }),
        json!({ "maxTokens": 0 }),
        json!({ "maxTokens": "7" }),
        json!({ "temperature": "hot" }),
        json!({ "stopSequences": "x" }),
        json!({ "stopSequences": [1] }),
        json!({ "model": 1 }),
        json!({ "systemPrompt": {} }),
        json!({ "tools": [] }),
    ] {
        let answer = rig
            .decide(&sample["id"], "approve", json!({ "edits": edits }))
            .await;
        assert_eq!(answer.status, 422, "{edits}: {answer:?}");
    }
    for asked in [&sample, &gated] {
        let now = rig.approval(&asked["id"]).await;
        assert_eq!(now["status"], "pending", "{now}");
        assert_eq!(now["version"], 1, "{now}");
    }
    for query in [
        "status=nonsense",
        "kind=nonsense",
        "limit=x",
        "limit=-1",
        "limit=99999999999999999999",
        "status=pending&status=closed",
        "nonsense=1",
    ] {
        let answer = rig.get(&format!("/api/v1/approvals?{query}")).await;
        answer.problem(400);
    }
    rig.stop().await;
}

/// Lists: by status, by kind, by server, page by page, newest first.
#[tokio::test]
async fn lists_are_filtered_and_paged() {
    let (_stage, rig) = staged(asks_deletions()).await;
    let mut client = mute(&rig, LEGACY).await;
    for n in 0..5 {
        client.send_call("delete_file", json!({ "n": n })).await;
        rig.until_waiting(n + 1).await;
    }
    client.send_call("ask", form("Who?", json!({}))).await;
    let waiting = rig.until_waiting(6).await;
    rig.decided(&waiting[0]["id"], "reject", json!({})).await;
    let ids = |list: &Value| -> Vec<String> {
        let list = list["approvals"].as_array().unwrap().iter();
        list.map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = ids(&rig.get("/api/v1/approvals").await.json());
    let mut expected: Vec<_> = waiting
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect();
    expected.reverse();
    assert_eq!(all, expected);
    for (query, count) in [
        ("status=pending", 5),
        ("status=open", 5),
        ("status=closed", 1),
        ("status=rejected", 1),
        ("status=approved", 0),
        ("kind=elicitation", 1),
        ("kind=tool_call", 5),
        ("kind=trust", 0),
        ("server=s", 6),
        ("server=t", 0),
        ("limit=2", 2),
        ("status=pending&kind=tool_call", 4),
        ("status=&kind=", 6),
    ] {
        let list = rig.get(&format!("/api/v1/approvals?{query}")).await.json();
        assert_eq!(ids(&list).len(), count, "{query}: {list}");
    }
    let mut paged = Vec::new();
    let mut before = String::new();
    loop {
        let path = format!("/api/v1/approvals?limit=2&before={before}");
        let page = ids(&rig.get(&path).await.json());
        let Some(last) = page.last() else { break };
        before.clone_from(last);
        paged.extend(page);
    }
    assert_eq!(paged, all);
    rig.stop().await;
}

/// Long values are omitted from lists and events, and present in the full request.
#[tokio::test]
async fn long_values_are_omitted_from_lists() {
    let (_stage, rig) = staged(asks_deletions()).await;
    let mut events = rig.follow(EVENTS).await;
    let mut client = mute(&rig, LEGACY).await;
    let long = "y".repeat(100_000);
    let call = client
        .send_call("delete_file", json!({ "path": long }))
        .await;
    let told = events.until("approval.created").await;
    let listed = rig.one_waiting().await;
    for one in [&told, &listed] {
        assert_eq!(one["truncated"], true);
        assert!(one["request"].is_null());
        assert!(one["summary"].as_str().unwrap().chars().count() <= 200);
    }
    let whole = rig.approval(&told["id"]).await;
    assert_eq!(whole["request"]["arguments"]["path"], long);
    rig.decided(&told["id"], "reject", json!({})).await;
    refusal_of(&client.finish(&call).await.json);
    rig.stop().await;
}
