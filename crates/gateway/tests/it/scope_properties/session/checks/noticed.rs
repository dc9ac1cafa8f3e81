//! Notifications of clients: only servers that their clients see receive them.

use super::*;

const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
/// A method of an extension. Its notifications can be kept back by name.
const EXTRA: &str = "notifications/x/extra";
/// Another one, which arrives after it.
const LAST: &str = "notifications/x/last";

/// A server with an extension.
fn stage() -> Stage {
    let stage = Stage::new(&[tool("job", "Works.")]);
    let greeting = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {}, "extensions": { "com.example/x": {} } },
        "serverInfo": { "name": "stage", "version": "1" },
    });
    stage.set_answer("initialize", &format!("\"result\":{greeting}"));
    stage
}

/// The notifications of clients that a server has received.
fn noticed(stage: &Stage, method: &str) -> usize {
    let asked = stage.asked();
    let asked = asked.iter();
    asked.filter(|line| line.starts_with(method)).count()
}

/// A client that has roots.
async fn client(rig: &Rig, profile: Option<&str>, one: &str, revision: &'static str) -> Pipe {
    let endpoint = match profile {
        Some(profile) => under(profile, server(one)),
        None => server(one).into(),
    };
    let able = json!({ "roots": { "listChanged": true } });
    Pipe::open_able(rig, endpoint, revision, able).await
}

#[tokio::test]
async fn notices_reach_the_servers_of_a_scope() {
    let [seen, hidden] = [stage(), stage()];
    let trusted = json!({ "trust": "always", "share": "all" });
    let config = |servers: Value, deny: Value| {
        json!({
            "mcpServers": { "s": seen.entry_with(&trusted), "o": hidden.entry_with(&trusted) },
            "profiles": { "p": { "servers": servers, "tools": { "deny": deny } } },
            "approvals": { "notify": "off" },
        })
    };
    let rig = Rig::configured(config(json!(["s", "o"]), json!([]))).await;
    for name in ["s", "o"] {
        rig.until_tools(name, 1).await;
    }
    let received = || {
        [ROOTS_CHANGED, EXTRA, LAST]
            .map(|method| [&seen, &hidden].map(|stage| noticed(stage, method)))
    };
    let mut expected = [[0; 2]; 3];
    let expect = async |expected: &mut [[usize; 2]; 3], arriving: [[usize; 2]; 3]| {
        let both = expected.iter_mut().flatten().zip(arriving.iter().flatten());
        both.for_each(|(count, more)| *count += more);
        let expected = *expected;
        until("the notices arrive", async || received() == expected).await;
    };
    for revision in &REVISIONS[..4] {
        let mut clients = Vec::new();
        for one in ["s", "o"] {
            clients.push(client(&rig, Some("p"), one, revision).await);
        }
        // A client with roots that connects to one server announces them there.
        expect(&mut expected, [[1, 1], [0, 0], [0, 0]]).await;
        let open = under("p", direct());
        let able = json!({ "roots": { "listChanged": true } });
        clients.push(Pipe::open_able(&rig, open, revision, able).await);
        for (servers, deny, arriving) in [
            (json!(["s", "o"]), json!([]), [[2, 2], [1, 1], [1, 1]]),
            (json!(["s"]), json!([]), [[2, 0], [1, 0], [1, 0]]),
            (
                json!(["s"]),
                json!([format!("s:{EXTRA}")]),
                [[2, 0], [0, 0], [1, 0]],
            ),
        ] {
            rig.reconfigure(&config(servers, deny)).await;
            for client in &mut clients {
                client.tell(ROOTS_CHANGED, json!({})).await;
                client.tell(EXTRA, json!({})).await;
                client.tell(LAST, json!({})).await;
                // Its notices have been read when this is answered.
                client.ask("ping", json!({})).await;
            }
            expect(&mut expected, arriving).await;
        }
        rig.reconfigure(&config(json!(["s", "o"]), json!([]))).await;
    }
    rig.stop().await;
    assert_eq!(received(), expected, "nothing else has arrived");
}
