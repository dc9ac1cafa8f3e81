//! Messages about the requests of one caller: progress, logs, questions and cancellations reach that caller and no
//! other, although all use one process.
//!
//! Every message has a word of its own. At the end of each part, the server says that its resource has changed: a
//! client that has heard of that has heard all that came before.

use super::{
    handles::{Realm, Realms, config_of},
    told::UPDATED,
    *,
};

/// A client of a realm, and all that it has heard.
struct Peer {
    number: usize,
    look: Look,
    transport: Transport,
    revision: &'static str,
    is_owners: bool,
    /// It is a client of the owner that sees all of the server.
    is_whole: bool,
    ear: Ear,
    heard: Vec<Value>,
}

/// The progress token of every client.
const TOKEN_OF_ALL: &str = "p";
const URI: &str = "x:r";

/// The words of one client: in its progress, its result, its logs and its questions.
fn words(number: usize) -> [String; 4] {
    ["progress", "result", "log", "question"].map(|kind| format!("zq{kind}{number}q"))
}

fn tool_of(number: usize) -> String {
    format!("t{number}")
}

/// A server with a tool for each client.
fn stage(count: usize) -> Stage {
    let mut tools: Vec<_> = (0..count)
        .map(|number| tool(&tool_of(number), "Works."))
        .collect();
    tools.extend(["ask", "open"].map(|name| tool(name, "Asks.")));
    let stage = Stage::new(&tools);
    stage.set_resources(&json!([{ "uri": URI, "name": "r" }]));
    let greeting = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {
            "tools": {}, "resources": { "subscribe": true }, "logging": {},
            "extensions": { "com.example/x": {} },
        },
        "serverInfo": { "name": "stage", "version": "1" },
    });
    stage.set_answer("initialize", &format!("\"result\":{greeting}"));
    for number in 0..count {
        let text = json!([{ "type": "text", "text": words(number)[1] }]);
        let result = json!({ "content": text });
        stage.set_result(&tool_of(number), &result.to_string());
    }
    stage
}

impl Peer {
    async fn open(
        rig: &Rig,
        number: usize,
        (profile, token): Realm<'_>,
        (look, transport): (Look, Transport),
        revision: &'static str,
    ) -> Self {
        let one = matches!(look, Look::One(_)).then_some("s");
        let door = Door {
            transport,
            token,
            profile,
            look,
            one,
            revision,
        };
        let (mut client, _) = Client::open(rig, &door).await;
        let uri = match one {
            Some(_) => URI.to_owned(),
            None => format!("switchboard://s/{URI}"),
        };
        let mut listen = None;
        if revision == MODERN {
            let wanted = json!({ "resourceSubscriptions": [uri], "com.example/x": true });
            listen = Some(json!({ "notifications": wanted }));
        } else {
            let level = json!({ "level": "debug" });
            client.ask("logging/setLevel", level).await;
            let watched = client.ask("resources/subscribe", json!({ "uri": uri }));
            assert!(watched.await["result"].is_object());
        }
        let is_stream = listen.is_some();
        let mut ear = client.into_ear(listen).await;
        if is_stream {
            ear.next().await;
        }
        Self {
            number,
            look,
            transport,
            revision,
            is_owners: token.is_none(),
            is_whole: token.is_none() && profile != Some("a"),
            ear,
            heard: Vec::new(),
        }
    }

    fn about(&self) -> String {
        let Self {
            number,
            look,
            transport,
            revision,
            ..
        } = self;
        format!("{number} {look:?} {transport:?} {revision}")
    }

    /// Begins a call of a tool.
    async fn begin(&mut self, tool: &str, arguments: Value) -> Value {
        let name = match self.look {
            Look::One(_) => tool.to_owned(),
            _ => format!("s__{tool}"),
        };
        let meta = json!({ "progressToken": TOKEN_OF_ALL });
        let call = json!({ "name": name, "arguments": arguments, "_meta": meta });
        self.ear.client.begin("tools/call", call).await
    }

    async fn finish(&mut self, id: &Value) {
        self.heard.extend(self.ear.client.finish(id).await);
    }

    /// Tests if it has heard a text.
    fn has_heard(&self, text: &str) -> bool {
        let mut heard = self.heard.iter();
        heard.any(|said| said.to_string().contains(text))
    }

    /// Hears all that the server has said, and checks that nothing is about others. Returns it.
    async fn check(&mut self, others: &[String]) -> Vec<Value> {
        loop {
            let said = self.ear.next().await;
            let is_last = said["method"] == UPDATED;
            self.heard.push(said);
            if is_last {
                break;
            }
        }
        for other in others {
            assert!(
                !self.has_heard(other),
                "{}: {other} in {:?}",
                self.about(),
                self.heard
            );
        }
        std::mem::take(&mut self.heard)
    }
}

/// Clients of every realm, over all of its transports, in two views.
async fn peers(rig: &Rig, realms: &[Realm<'_>]) -> Vec<Peer> {
    let mut peers = Vec::new();
    for realm in realms {
        for transport in &TRANSPORTS[usize::from(realm.1.is_some())..] {
            let number = peers.len();
            let look = [Look::Direct, Look::One(0)][number % 2];
            let revision = REVISIONS[number % REVISIONS.len()];
            let place = (look, *transport);
            peers.push(Peer::open(rig, number, *realm, place, revision).await);
        }
    }
    peers
}

/// The words of all but one client, and the one that no client may hear.
fn others(number: usize, count: usize) -> Vec<String> {
    let others = (0..count).filter(|other| *other != number);
    let lost = ["zqlost".to_owned()];
    others.flat_map(words).chain(lost).collect()
}

/// Lets all clients hear the rest, and check it. Returns what each has heard.
async fn check(stage: &Stage, peers: &mut [Peer]) -> Vec<Vec<Value>> {
    stage.tell_with(UPDATED, json!({ "uri": URI })).await;
    let count = peers.len();
    let mut all = Vec::new();
    for peer in peers {
        all.push(peer.check(&others(peer.number, count)).await);
    }
    all
}

/// The most clients in this test.
const PEERS: usize = 17;

/// A gateway with one server, and this profile `a`.
async fn rig_of(stage: &Stage, profile: Value) -> Rig {
    let settings = json!({ "trust": "always", "share": "all" });
    let mut config = config_of(&stage.entry_with(&settings));
    config["profiles"]["a"] = profile;
    // No user answers in place of a client.
    config["approvals"]["route"] = json!("client");
    let rig = Rig::configured(config).await;
    rig.until_tools("s", PEERS + 2).await;
    rig
}

#[tokio::test]
async fn messages_about_a_call_reach_its_client_only() {
    let stage = stage(PEERS);
    let rig = rig_of(&stage, json!({})).await;
    let realms = Realms::new(&rig).await;
    let mut peers = peers(&rig, &realms.all()).await;
    assert_eq!(peers.len(), PEERS);
    report(&stage, &mut peers).await;
    ask(&stage, &mut peers).await;
    complete(&stage, &mut peers).await;
    rig.stop().await;
}

/// After its response, the server logs something that may be about the call: the gateway cannot tell.
#[tokio::test]
async fn late_logs_reach_no_other_realm() {
    for number in 0..=1 {
        let stage = stage(PEERS);
        // It may hide something, as far as the gateway knows.
        let some = json!({ "tools": { "deny": ["s:zqnone"] } });
        let rig = rig_of(&stage, some).await;
        let realms = Realms::new(&rig).await;
        let all = realms.all();
        let realms = [&all[2..3], &all[..]][number];
        let mut peers = peers(&rig, realms).await;
        for number in 0..peers.len() {
            let call = peers[number].begin(&tool_of(number), json!({})).await;
            peers[number].finish(&call).await;
            let late = json!({ "level": "error", "data": "zqlate" });
            stage.tell_with(LOG, late).await;
            for (peer, heard) in check(&stage, &mut peers).await.into_iter().enumerate() {
                let mut heard = heard.iter();
                let is_told = heard.any(|said| said["params"]["data"] == "zqlate");
                let (peer, is_older) = (&peers[peer], peers[peer].revision != MODERN);
                let may_hear = peer.is_whole;
                assert!(may_hear || !is_told, "{}", peer.about());
                let must_hear = realms.len() == 1 && is_older;
                assert!(is_told || !must_hear, "{}", peer.about());
            }
        }
        rig.stop().await;
    }
}

/// All clients call at once, and some take their calls back.
async fn report(stage: &Stage, peers: &mut [Peer]) {
    let mut calls = Vec::new();
    for peer in &mut *peers {
        let tool = tool_of(peer.number);
        stage.hold_calls(&tool);
        calls.push(peer.begin(&tool, json!({})).await);
    }
    let mut tokens = Vec::new();
    for peer in &*peers {
        let tool = tool_of(peer.number);
        until("the call arrives", async || {
            stage.calls_of(&tool).len() == 1
        })
        .await;
        tokens.push(stage.calls_of(&tool)[0]["_meta"]["progressToken"].clone());
    }
    let distinct: BTreeSet<_> = tokens.iter().map(Value::to_string).collect();
    assert_eq!(distinct.len(), peers.len(), "each call has its own token");
    // The gateway cannot tell whose call these are about.
    for (method, params) in [
        (
            "notifications/progress",
            json!({ "progressToken": TOKEN_OF_ALL, "progress": 9, "message": "zqlost" }),
        ),
        (LOG, json!({ "level": "error", "data": "zqlost" })),
        (
            "notifications/tasks/status",
            json!({ "taskId": "zqlost", "status": "working" }),
        ),
        (
            "notifications/tasks",
            json!({ "taskId": "zqlost", "status": "working" }),
        ),
        ("notifications/x/changed", json!({ "about": "zqlost" })),
        (
            "notifications/elicitation/complete",
            json!({ "elicitationId": "zqlost" }),
        ),
    ] {
        stage.tell_with(method, params).await;
    }
    for (peer, token) in peers.iter().zip(tokens) {
        let [word, ..] = words(peer.number);
        let progress = json!({ "progressToken": token, "progress": 1, "message": word });
        stage.tell_with("notifications/progress", progress).await;
    }
    let mut cancelled = 0;
    for (peer, call) in peers.iter_mut().zip(&calls) {
        if peer.number % 3 == 0 {
            cancelled += 1;
            // The IDs of different clients are the same.
            peer.ear.client.cancel(call).await;
            if peer.transport != Transport::Http {
                peer.ear.client.cancel(call).await;
            }
        }
    }
    let count = || {
        let asked = stage.asked();
        let asked = asked.iter();
        asked
            .filter(|line| line.starts_with("notifications/cancelled"))
            .count()
    };
    until("the server hears of them", async || count() == cancelled).await;
    for (peer, call) in peers.iter_mut().zip(&calls) {
        stage.release_calls(&tool_of(peer.number));
        if peer.number % 3 != 0 {
            peer.finish(call).await;
            let [progress, result, ..] = words(peer.number);
            let is_it = |said: &Value| said["params"]["message"] == *progress;
            let reports: Vec<_> = peer.heard.iter().filter(|said| is_it(said)).collect();
            assert_eq!(reports.len(), 1, "{} {:?}", peer.about(), peer.heard);
            let token = &reports[0]["params"]["progressToken"];
            assert_eq!(*token, TOKEN_OF_ALL, "{}", peer.about());
            assert!(peer.has_heard(&result), "{} {:?}", peer.about(), peer.heard);
        }
    }
    assert_eq!(count(), cancelled);
    check(stage, peers).await;
}

/// The clients call one after another. The server logs something during each call and asks a question, once while
/// only this call is in flight, and once during one of another client.
async fn ask(stage: &Stage, peers: &mut [Peer]) {
    let count = peers.len();
    for number in 0..count {
        let [_, _, log, question] = words(number);
        let tool = tool_of(number);
        let said = json!({ "level": "warning", "data": log });
        let line = json!({ "jsonrpc": "2.0", "method": LOG, "params": said });
        stage.set(&format!("results/{tool}.before"), &line.to_string());
        let call = peers[number].begin(&tool, json!({})).await;
        peers[number].finish(&call).await;
        let about = peers[number].about();
        assert!(
            peers[number].has_heard(&log),
            "{about} {:?}",
            peers[number].heard
        );
        // Others are asked in the response to their own request, or do not answer here.
        if peers[number].transport == Transport::Http || peers[number].revision == MODERN {
            continue;
        }
        let asked = json!({ "type": "object", "properties": {} });
        let params = json!({ "message": question, "requestedSchema": asked });
        let method = "elicitation/create";
        let questions = json!({ "q": { "method": method, "params": params } });
        let other = (number + 1) % count;
        for is_alone in [true, false] {
            let mut of_other = None;
            if !is_alone {
                let tool = tool_of(other);
                let before = stage.calls_of(&tool).len();
                stage.hold_calls(&tool);
                of_other = Some(peers[other].begin(&tool, json!({})).await);
                until("the other call arrives", async || {
                    stage.calls_of(&tool).len() > before
                })
                .await;
            }
            let questions = json!({ "questions": questions });
            let before = stage.calls_of("ask").len();
            let call = peers[number].begin("ask", questions).await;
            until("the server asks", async || {
                stage.calls_of("ask").len() > before
            })
            .await;
            // The gateway waits until it is clear which call the question is about.
            if let Some(of_other) = of_other {
                stage.release_calls(&tool_of(other));
                peers[other].finish(&of_other).await;
            }
            peers[number].finish(&call).await;
            // If it may be about either call, it may be put to neither.
            let is_asked = peers[number].has_heard(&question);
            // If it may be about an earlier call of the owner, it is put to no token.
            let is_able = peers[number].revision >= "2025-06-18" && peers[number].is_owners;
            assert!(is_asked || !is_able || !is_alone, "{about}");
            peers[number].heard.clear();
        }
    }
    check(stage, peers).await;
}

/// The server has each client open an address, and says that it has done so.
async fn complete(stage: &Stage, peers: &mut [Peer]) {
    const COMPLETE: &str = "notifications/elicitation/complete";
    let mut told = 0;
    for number in 0..peers.len() {
        let peer = &mut peers[number];
        if peer.revision != "2025-11-25" || peer.transport == Transport::Http {
            continue;
        }
        let call = peer.begin("open", json!({})).await;
        peer.finish(&call).await;
        assert!(
            peer.has_heard("elicitationId"),
            "{} {:?}",
            peer.about(),
            peer.heard
        );
        stage.release("opened");
        stage
            .tell_with(COMPLETE, json!({ "elicitationId": "e" }))
            .await;
        for (other, heard) in check(stage, peers).await.iter().enumerate() {
            let mut heard = heard.iter();
            let is_told = heard.any(|said| said["method"] == COMPLETE);
            assert_eq!(
                is_told,
                other == number,
                "{} {heard:?}",
                peers[other].about()
            );
        }
        told += 1;
    }
    assert!(told > 1, "several clients open an address");
}
