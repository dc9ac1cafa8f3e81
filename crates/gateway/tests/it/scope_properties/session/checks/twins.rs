//! Two gateways that differ only in what a caller does not see: it gets the same answers from both.
//!
//! In one of them, the owner has also searched, called tools and stored memories.

use super::*;

/// A gateway without what a caller does not see, or with something else in its place.
async fn twin_of(
    world: &World,
    caller: &Caller,
    dice: &mut Dice,
    coverage: &mut Coverage,
) -> World {
    let mut servers = Vec::new();
    for server in &world.servers {
        let is_named = |names: &Vec<String>| names.contains(&server.name);
        let is_seen = world.sees_server(caller, &server.name);
        let is_hidden = |tool: &Tool| !world.would_see_tool(caller, server, tool);
        coverage.note_if(!is_seen, "hidden server");
        coverage.note_if(is_seen && server.tools.iter().any(is_hidden), "hidden tool");
        // A token names only servers that exist.
        let stays = is_seen || caller.servers.as_ref().is_some_and(is_named);
        if stays || dice.percent(50) {
            servers.push(server.without(dice, &is_hidden));
        }
    }
    let mut profiles = world.profiles.clone();
    for (at, profile) in profiles.iter_mut().enumerate() {
        if caller.profile != Some(at) {
            profile.tools = Filter {
                allow: None,
                deny: Vec::new(),
            };
            profile.view = Some("direct");
            profile.namespace = Some(dice.item());
            // A token that is held to servers alone may find out which profiles there are.
            profile.is_gone = caller.token.is_none() || caller.is_held;
        }
    }
    World::of(world.seed, servers, profiles).await
}

/// Lets the owner do what no other caller may notice. Returns the memories that it has stored.
async fn busy(world: &World, caller: &Caller) -> Vec<Value> {
    let mut owner = Pipe::open(&world.rig, search()).await;
    for server in &world.servers {
        for tool in server
            .tools
            .iter()
            .filter(|tool| server.offers(tool))
            .take(5)
        {
            let name = format!("{}:{}", server.name, tool.shown());
            // The ranking learns from a call after a search.
            let query = format!("{} {WORDS}", tool.shown_about());
            assert!(owner.retrieve(&query).await.contains(&name), "{name}");
            owner.call_found(&name, json!({ "note": "busy" })).await;
        }
    }
    let mut stored = Vec::new();
    let namespaces = world.profiles.iter().enumerate();
    for (at, profile) in namespaces {
        let is_seen = Some(at) == caller.profile || !world.is_confined(caller);
        if is_seen && world.sees_server(caller, MEMORY) {
            continue;
        }
        let namespace = profile
            .namespace
            .clone()
            .unwrap_or_else(|| "other".to_owned());
        let content = format!("{WORDS} {namespace}");
        let arguments = json!({ "content": content, "namespace": namespace });
        let answer = owner.call_found("memory:store_memory", arguments).await;
        let id = &answer["structuredContent"]["id"];
        stored.push(json!({ "id": id, "namespace": namespace }));
    }
    stored
}

const WORDS: &str = "quiet amber lighthouse";

/// The requests of a session, some of which name what it does not see.
fn requests(session: &Session<'_>, dice: &mut Dice) -> Vec<(String, Value)> {
    let Session {
        world,
        caller,
        look,
        ..
    } = *session;
    let mut requests = Vec::new();
    let mut add = |method: &str, params| requests.push((method.to_owned(), params));
    for method in [
        "tools",
        "prompts",
        "resources",
        "resources/templates",
        "tasks",
    ] {
        add(&format!("{method}/list"), json!({}));
    }
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let mut queries = vec![WORDS.to_owned(), "a tool that works".to_owned()];
    for server in &world.servers {
        let start = dice.below(server.tools.len());
        let tools = server.tools.iter().cycle().skip(start).take(4);
        for tool in tools {
            queries.push(format!("{} {WORDS}", tool.shown_about()));
            queries.push(format!("{} {}", tool.own, tool.about));
            let (own, shown) = (&tool.own, tool.shown());
            for name in [own, shown, &shown[1..]] {
                let named = session.named(&server.name, name);
                let paired = format!("{}:{name}", server.name);
                add("tools/call", call(&named, json!({ "note": "n" })));
                let arguments = json!({ "name": paired, "arguments": { "note": "n" } });
                add("tools/call", call("call_tool", arguments));
                add(
                    "tools/call",
                    call("describe_tool", json!({ "name": paired })),
                );
            }
        }
        let prompt = session.named(&server.name, &server.prompt[0]);
        add("prompts/get", json!({ "name": prompt }));
        let argument = json!({ "name": "note", "value": "n" });
        let of = json!({ "type": "ref/prompt", "name": prompt });
        add(
            "completion/complete",
            json!({ "ref": of, "argument": argument }),
        );
        let template = session.addressed(&server.name, &server.uri_template());
        let of = json!({ "type": "ref/resource", "uri": template });
        add(
            "completion/complete",
            json!({ "ref": of, "argument": argument }),
        );
        let uri = session.addressed(&server.name, &server.uri());
        for method in ["read", "subscribe", "unsubscribe"] {
            add(&format!("resources/{method}"), json!({ "uri": uri }));
        }
        add(&server.method(), json!({}));
        let within = json!({ "query": WORDS, "limit": 50, "server": server.name });
        add("tools/call", call("retrieve_tools", within));
    }
    for query in queries {
        for limit in [1, 50] {
            let arguments = json!({ "query": query, "limit": limit, "detail": "full" });
            add("tools/call", call("retrieve_tools", arguments));
        }
        let arguments = json!({ "query": query, "read_only": true });
        add("tools/call", call("retrieve_tools", arguments));
    }
    let status = if look == Look::Direct {
        "switchboard__get_status"
    } else {
        "get_status"
    };
    add("tools/call", call(status, json!({})));
    for (tool, arguments) in [
        ("list_memories", json!({})),
        ("recall", json!({ "query": WORDS })),
        ("get_related", json!({ "entity": WORDS })),
        ("export_memory", json!({})),
    ] {
        if world.memory_of(caller).contains(&tool) {
            let arguments = json!({ "name": format!("{MEMORY}:{tool}"), "arguments": arguments });
            add("tools/call", call("call_tool", arguments));
        }
    }
    add("logging/setLevel", json!({ "level": "debug" }));
    add("x/unknown", json!({}));
    requests
}

/// A text without times and without the port of the gateway.
fn timeless(rig: &Rig, text: &str) -> String {
    let is_time = |part: &str| part.len() == 24 && part.starts_with("20") && part.ends_with('Z');
    // Quotes in a text of a message are escaped.
    let parts = text.split('"').map(|part| match part.strip_suffix('\\') {
        Some(part) if is_time(part) => "TIME\\",
        None if is_time(part) => "TIME",
        _ => part,
    });
    let text = parts.collect::<Vec<_>>().join("\"");
    text.replace(&format!("127.0.0.1:{}", rig.port), "PORT")
}

/// The answers of a gateway, with the pages of lists.
async fn answers(rig: &Rig, client: &mut Client, requests: &[(String, Value)]) -> Vec<String> {
    let mut all = Vec::new();
    for (method, params) in requests {
        let mut params = params.clone();
        loop {
            let answer = client.ask(method, params.clone()).await;
            let next = answer["result"]["nextCursor"].clone();
            let said = format!("{method} {params} -> {answer} {:?}", client.heard());
            all.push(timeless(rig, &said));
            if next.is_null() {
                break;
            }
            params["cursor"] = next;
        }
    }
    all
}

/// Compares the answers of two gateways in each view.
async fn compare(
    (world, caller): (&World, &Caller),
    (other, twin): (&World, &Caller),
    turn: usize,
    dice: &mut Dice,
    coverage: &mut Coverage,
) {
    let looks = [Look::Configured, Look::Search, Look::Direct].into_iter();
    let shown = world.shown_servers(caller, Look::Direct);
    let looks = looks.chain(shown.into_iter().map(Look::One));
    let transports = &TRANSPORTS[usize::from(caller.token.is_some())..];
    for (row, look) in looks.enumerate() {
        let place = (look, *dice.pick(transports));
        let revision = REVISIONS[(turn + row) % REVISIONS.len()];
        let door = door(world, caller, look, place.1, revision);
        let (client, greeting) = Client::open(&world.rig, &door).await;
        let session = Session::of(client, world, caller, place, revision, coverage);
        let requests = requests(&session, dice);
        let about = session.about();
        let mut client_here = session.client;
        let answers_here = answers(&world.rig, &mut client_here, &requests).await;
        let door = Door {
            token: twin.token.as_deref(),
            ..door
        };
        let (mut client, greeting_there) = Client::open(&other.rig, &door).await;
        assert_eq!(greeting, greeting_there, "{about}");
        let answers_there = answers(&other.rig, &mut client, &requests).await;
        for (here, there) in answers_here.into_iter().zip(answers_there) {
            assert_eq!(here, there, "{about}");
        }
        coverage.note(format!("same answers, {}, {revision}", look.name()));
        if revision == MODERN {
            let streams = [
                stream(world, client_here, look).await,
                stream(world, client, look).await,
            ];
            assert_eq!(streams[0], streams[1], "{about}");
        }
    }
}

/// The first message on a stream that is to tell about everything.
async fn stream(world: &World, client: Client, look: Look) -> Value {
    let uris = world.servers.iter().map(|server| match look {
        Look::One(_) => server.uri(),
        _ => format!("switchboard://{}/{}", server.name, server.uri()),
    });
    let wanted = json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": uris.collect::<Vec<_>>(), "com.example/x": true,
    });
    let listen = Some(json!({ "notifications": wanted }));
    client.into_ear(listen).await.next().await
}

#[tokio::test]
async fn hidden_things_change_no_answer() {
    let mut coverage = Coverage::default();
    let mut turn = 0;
    for seed in seeds(600..603) {
        let mut dice = Dice::new(seed);
        let world = World::new(seed, &mut dice, true).await;
        let of_token = world.token_caller(&mut dice, 0).await;
        let number = usize::try_from(seed % 3).unwrap();
        for caller in [Caller::under(number), of_token] {
            let other = twin_of(&world, &caller, &mut dice, &mut coverage).await;
            let mut twin = caller.clone();
            if twin.token.is_some() {
                let held = other.profile(&caller).filter(|_| caller.is_held);
                let held = held.map(|profile| &*profile.name);
                let servers = caller.servers.clone().unwrap_or_default();
                twin.token = Some(token(&other.rig, "t0", held, &servers).await);
            }
            for rig in [&world.rig, &other.rig] {
                // The state of a server that the caller sees is no secret.
                rig.call("memory:list_memories", json!({})).await;
            }
            let stored = busy(&world, &caller).await;
            let (here, there) = ((&world, &caller), (&other, &twin));
            compare(here, there, turn, &mut dice, &mut coverage).await;
            // The next caller may see them.
            for memory in stored {
                let deleted = world.rig.call("memory:delete_memory", memory).await.json();
                assert_eq!(deleted["structuredContent"]["deleted"], true, "{deleted}");
            }
            // Each view gets all revisions.
            turn += 2;
            other.rig.stop().await;
        }
        world.rig.stop().await;
    }
    let wanted = ["configured", "search", "direct"].into_iter();
    let wanted = wanted.flat_map(|look| REVISIONS.map(|it| format!("same answers, {look}, {it}")));
    coverage.require(wanted.chain(["hidden server", "hidden tool"].map(str::to_owned)));
}
