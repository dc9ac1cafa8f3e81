//! The requests of a client in one view, with the responses that it must get.

mod checks;
mod hidden;

use super::{client::Door, *};

/// The requests that may have reached the servers.
#[derive(Default)]
struct Reached {
    /// Calls and requests for other items, with all that identifies them.
    requests: Vec<(usize, String)>,
    /// Subscriptions, which several clients can share.
    subscriptions: BTreeSet<(usize, String)>,
    /// Servers that may have been told a log level.
    levels: BTreeSet<usize>,
}

/// An argument of every request that must not reach a server.
const ASTRAY: &str = "qqastrayqq";

/// A client in a view.
struct Session<'a> {
    world: &'a World,
    caller: &'a Caller,
    look: Look,
    revision: &'static str,
    transport: Transport,
    forbidden: BTreeSet<&'a str>,
    client: Client,
    /// The configuration has changed since it connected, so that it may hear of changed lists at any time.
    is_old: bool,
    coverage: &'a mut Coverage,
}

/// The way in for a caller.
fn door<'a>(
    world: &'a World,
    caller: &'a Caller,
    look: Look,
    transport: Transport,
    revision: &'static str,
) -> Door<'a> {
    let profile = world.profile(caller).filter(|_| caller.is_addressed);
    let one = match look {
        Look::One(at) => Some(&*world.servers[at].name),
        _ => None,
    };
    Door {
        transport,
        token: caller.token.as_deref(),
        profile: profile.map(|profile| &*profile.name),
        look,
        one,
        revision,
    }
}

impl<'a> Session<'a> {
    async fn open(
        world: &'a World,
        caller: &'a Caller,
        (look, transport): (Look, Transport),
        revision: &'static str,
        coverage: &'a mut Coverage,
    ) -> Self {
        let door = door(world, caller, look, transport, revision);
        let (client, greeting) = Client::open(&world.rig, &door).await;
        coverage.note(format!("{} view, {revision}, {transport:?}", look.name()));
        let place = (look, transport);
        let session = Self::of(client, world, caller, place, revision, coverage);
        session.inspect("the greeting", &greeting);
        session
    }

    /// A client that has connected before.
    fn of(
        client: Client,
        world: &'a World,
        caller: &'a Caller,
        (look, transport): (Look, Transport),
        revision: &'static str,
        coverage: &'a mut Coverage,
    ) -> Self {
        Self {
            world,
            caller,
            look,
            revision,
            transport,
            forbidden: world.forbidden(caller, look),
            client,
            is_old: false,
            coverage,
        }
    }

    /// Lets the client do what it may, and what it may not.
    async fn check_all(&mut self, dice: &mut Dice, reached: &mut Reached) {
        self.check_tools().await;
        self.check_other_lists().await;
        self.check_call(dice, reached).await;
        self.check_menu(dice).await;
        self.check_memory(dice).await;
        self.check_other_items(dice, reached).await;
        self.check_extension(reached).await;
        self.check_status().await;
        self.check_search(dice).await;
        self.check_held().await;
        self.check_hidden(dice, 6).await;
    }

    fn about(&self) -> String {
        let Caller {
            profile,
            servers,
            token,
            ..
        } = self.caller;
        format!(
            "seed {}, {} {:?}, {:?}, profile {profile:?}, servers {servers:?}, token {}",
            self.world.seed,
            self.revision,
            self.look,
            self.transport,
            token.is_some()
        )
    }

    /// Counts a request.
    fn note(&mut self, what: &str, method: &str) {
        self.coverage
            .note(format!("{what} {method}, {}", self.revision));
    }

    /// Checks that a text has no word that the caller must not know.
    #[track_caller]
    fn inspect(&self, what: &str, text: &str) {
        let found = self.forbidden.iter().find(|word| text.contains(**word));
        assert_eq!(found, None, "{}: {what}: {text}", self.about());
    }

    /// The response to a request, and the messages that came with it. `own` is the part of them that the client
    /// has sent, and is replaced.
    async fn ask_loudly(
        &mut self,
        method: &str,
        params: Value,
        own: Option<&str>,
    ) -> (Value, Vec<Value>) {
        let sent = params.to_string();
        let mut answer = self.client.ask(method, params).await.to_string();
        if let Some(own) = own {
            answer = answer.replace(own, "NAME");
        }
        let mut heard = self.client.heard();
        let what = format!("{method} {sent}");
        self.inspect(&what, &answer);
        for said in &heard {
            self.inspect(&what, &said.to_string());
        }
        let is_of_lists = |said: &Value| said["method"].as_str().unwrap().ends_with("list_changed");
        heard.retain(|said| !self.is_old || !is_of_lists(said));
        (serde_json::from_str(&answer).unwrap(), heard)
    }

    /// The response to a request that leads to no other message.
    async fn ask(&mut self, method: &str, params: Value, own: Option<&str>) -> Value {
        let (answer, heard) = self.ask_loudly(method, params, own).await;
        assert_eq!(heard, Vec::<Value>::new(), "{} {method}", self.about());
        answer
    }

    async fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params, None).await;
        let result = answer.get("result").cloned();
        result.unwrap_or_else(|| panic!("{}: {method}: {answer}", self.about()))
    }

    /// All items of a list, by this member.
    async fn list(&mut self, method: &str, list: &str, key: &str) -> BTreeMap<String, Value> {
        let mut items = BTreeMap::new();
        let mut params = json!({});
        loop {
            let page = self.result(method, params).await;
            for item in page[list].as_array().unwrap() {
                let name = item[key].as_str().unwrap().to_owned();
                let other = items.insert(name, item.clone());
                assert_eq!(other, None, "{} {page}", self.about());
            }
            if page["nextCursor"].is_null() {
                return items;
            }
            params = json!({ "cursor": page["nextCursor"] });
        }
    }

    fn is_one(&self) -> bool {
        matches!(self.look, Look::One(_))
    }

    /// The name of a tool or prompt in this view.
    fn named(&self, server: &str, name: &str) -> String {
        if self.is_one() {
            return name.to_owned();
        }
        format!("{server}__{name}")
    }

    /// The address of a resource in this view.
    fn addressed(&self, server: &str, uri: &str) -> String {
        if self.is_one() {
            return uri.to_owned();
        }
        format!("switchboard://{server}/{uri}")
    }

    async fn check_tools(&mut self) {
        let tools = self.list("tools/list", "tools", "name").await;
        let names: BTreeSet<_> = tools.keys().cloned().collect();
        let (world, caller) = (self.world, self.caller);
        if world.is_menu(caller, self.look) {
            let menu = [
                "call_tool",
                "describe_tool",
                "get_status",
                "read_result",
                "retrieve_tools",
            ];
            assert!(names.iter().eq(menu.iter()), "{} {names:?}", self.about());
            return;
        }
        let mut expected = BTreeSet::new();
        for (server, tool) in world.shown_tools(caller, self.look) {
            let name = self.named(&server.name, tool.shown());
            let definition = tools.get(&name).unwrap_or_else(|| {
                panic!("{}: no {name} in {names:?}", self.about());
            });
            assert_eq!(definition["description"], tool.shown_about());
            let schema = &definition["inputSchema"];
            let note = json!({ "note": { "type": "string" } });
            assert_eq!(schema["properties"], note, "{definition}");
            assert_eq!(schema["required"], json!(["note"]), "{definition}");
            expected.insert(name);
        }
        if !self.is_one() {
            expected
                .extend(["switchboard__get_status", "switchboard__read_result"].map(Into::into));
            let memory = world.memory_of(caller);
            for name in &memory {
                if let Some(tool) = tools.get(&format!("{MEMORY}__{name}")) {
                    let namespace = &tool["inputSchema"]["properties"]["namespace"];
                    let is_fixed = namespace.is_null() || !world.is_confined(caller);
                    assert!(is_fixed, "{} {tool}", self.about());
                }
            }
            let memory = memory.iter().filter(|name| COMPACT.contains(name));
            expected.extend(memory.map(|name| format!("{MEMORY}__{name}")));
        }
        assert_eq!(names, expected, "{}", self.about());
    }

    async fn check_other_lists(&mut self) {
        let prompts = self.list("prompts/list", "prompts", "name").await;
        let resources = self.list("resources/list", "resources", "uri").await;
        let templates = "resources/templates/list";
        let templates = self
            .list(templates, "resourceTemplates", "uriTemplate")
            .await;
        let found = [prompts, resources, templates];
        let found = found.map(|list| list.into_keys().collect::<BTreeSet<_>>());
        let mut expected = [const { BTreeSet::new() }; 3];
        for at in self.world.shown_servers(self.caller, self.look) {
            let server = &self.world.servers[at];
            expected[0].insert(self.named(&server.name, &server.prompt[0]));
            expected[1].insert(self.addressed(&server.name, &server.uri()));
            expected[2].insert(self.addressed(&server.name, &server.uri_template()));
        }
        if !self.is_one() && self.world.sees_memory_items(self.caller) {
            expected[0].insert(self.named(MEMORY, "memory_digest"));
            let marks = "memory://digest{?namespace,user_id,agent_id,run_id}";
            for (list, uri) in [
                (1, "memory://digest"),
                (2, marks),
                (2, "memory://memories/{id}"),
            ] {
                expected[list].insert(self.addressed(MEMORY, uri));
            }
        }
        assert_eq!(found, expected, "{}", self.about());
    }

    /// Calls a tool that the caller sees, in each of the ways that the view has.
    async fn check_call(&mut self, dice: &mut Dice, reached: &mut Reached) {
        let shown = self.world.shown_tools(self.caller, self.look);
        if shown.is_empty() {
            return;
        }
        // One of many tools without an override would be called nearly always.
        let is_changed = |(_, tool): &&(&Server, &Tool)| tool.has_override();
        let changed: Vec<_> = shown.iter().filter(is_changed).copied().collect();
        let from = if changed.is_empty() || dice.percent(30) {
            &shown
        } else {
            &changed
        };
        let (server, tool) = *dice.pick(from);
        let mut ways = vec![(self.named(&server.name, tool.shown()), "tools/call")];
        if self.look.has_menu() {
            ways.push((format!("{}:{}", server.name, tool.shown()), "call_tool"));
        }
        for (name, way) in ways {
            let note = dice.word(6);
            let mut call = json!({ "name": name, "arguments": { "note": note } });
            if way == "call_tool" {
                call = json!({ "name": "call_tool", "arguments": call });
            }
            let (answer, heard) = self.ask_loudly("tools/call", call, None).await;
            let text = text_of(&answer["result"]);
            assert_eq!(text, tool.result, "{}", self.about());
            let logs: Vec<_> = heard.iter().map(|said| &said["params"]["data"]).collect();
            // It may be about an earlier call of a caller that sees more.
            let is_told = !logs.is_empty() || self.caller.profile.is_none();
            let expected = is_told.then_some(&tool.log);
            assert_eq!(logs, Vec::from_iter(expected), "{} {heard:?}", self.about());
            let mut arguments = json!({ "note": note });
            if let Some((name, Change::Fixed(value))) = &tool.changed {
                arguments[name] = json!(value);
            }
            reached.note(self.world, server, &format!("{} {arguments}", tool.own));
            self.note("visible", way);
        }
        let coverage = &mut *self.coverage;
        coverage.note_if(tool.new_name.is_some(), "call of a renamed tool");
        let other = server.tools.iter().find(|other| other.own == tool.shown());
        let has_name_of_other = other.is_some_and(|other| other.own != tool.own);
        coverage.note_if(has_name_of_other, "call of a tool by the name of another");
        if let Some((name, change)) = &tool.changed {
            coverage.note(match change {
                Change::Fixed(_) => "call with a fixed argument",
                Change::Hidden => "call without a hidden argument",
            });
            let arguments = json!({ "note": ASTRAY, name: ASTRAY });
            let call =
                json!({ "name": self.named(&server.name, tool.shown()), "arguments": arguments });
            let refused = self.ask("tools/call", call, Some(name)).await.to_string();
            let expected = "`NAME` is not an argument of this tool";
            assert!(refused.contains(expected), "{} {refused}", self.about());
        }
    }

    /// Finds and describes a tool that the caller sees, with the menu.
    async fn check_menu(&mut self, dice: &mut Dice) {
        let shown = self.world.shown_tools(self.caller, self.look);
        if !self.look.has_menu() || shown.is_empty() {
            return;
        }
        let (server, tool) = *dice.pick(&shown);
        let name = format!("{}:{}", server.name, tool.shown());
        let within = dice.percent(50);
        let word = if dice.percent(50) {
            tool.shown()
        } else {
            tool.shown_about()
        };
        let mut arguments = json!({ "query": word, "limit": 50 });
        if within {
            arguments["server"] = json!(server.name);
        }
        let call = json!({ "name": "retrieve_tools", "arguments": arguments });
        let found = names_of(&self.result("tools/call", call).await);
        assert!(found.contains(&name), "{} {name} {found:?}", self.about());
        let mut strange = found.iter();
        let start = format!("{}:", server.name);
        let is_strange = strange.any(|found| within && !found.starts_with(&start));
        assert!(!is_strange, "{} {found:?}", self.about());
        self.note("visible", "retrieve_tools");
        self.check_place(dice, word).await;
        let call = json!({ "name": "describe_tool", "arguments": { "name": name } });
        let described = text_of(&self.result("tools/call", call).await);
        let is_described = described.contains(tool.shown_about()) && described.contains("note");
        assert!(is_described, "{} {described}", self.about());
        self.note("visible", "describe_tool");
    }

    /// Checks that a tool that the caller does not see takes no place among the best.
    async fn check_place(&mut self, dice: &mut Dice, word: &str) {
        let (world, caller) = (self.world, self.caller);
        let servers = world.servers.iter();
        let tools = servers.flat_map(|server| server.tools.iter().map(move |tool| (server, tool)));
        let hidden = tools
            .filter(|(server, tool)| server.offers(tool) && !world.sees_tool(caller, server, tool));
        let hidden: Vec<_> = hidden.collect();
        if hidden.is_empty() {
            return;
        }
        let (_, tool) = dice.pick(&hidden);
        let query = format!("{} {} {word}", tool.shown(), tool.shown_about());
        let arguments = json!({ "query": query, "limit": 1 });
        let call = json!({ "name": "retrieve_tools", "arguments": arguments });
        let found = names_of(&self.result("tools/call", call).await);
        let callable = self.callable();
        let is_seen = found.len() == 1 && callable.contains(&found[0]);
        assert!(is_seen, "{} {query} {found:?}", self.about());
        self.note("hidden", "place in a search");
    }

    /// Searches for what the caller does not see.
    async fn check_search(&mut self, dice: &mut Dice) {
        if !self.look.has_menu() {
            return;
        }
        let shown = self.world.shown_tools(self.caller, self.look);
        let memory = self.world.memory_of(self.caller);
        let mut known: BTreeSet<_> = shown
            .iter()
            .map(|(server, tool)| format!("{}:{}", server.name, tool.shown()))
            .collect();
        known.extend(memory.iter().map(|name| format!("{MEMORY}:{name}")));
        known.extend(["get_status", "read_result"].map(|name| format!("switchboard:{name}")));
        let server = dice.pick(&self.world.servers);
        let tool = dice.pick(&server.tools);
        let query = format!("{} {} {}", tool.own, tool.about, tool.shown());
        let detail = *dice.pick(&["compact", "full"]);
        let arguments = json!({ "query": query, "limit": 50, "detail": detail });
        let call = json!({ "name": "retrieve_tools", "arguments": arguments });
        let found = names_of(&self.result("tools/call", call).await);
        let strange: Vec<_> = found.iter().filter(|name| !known.contains(*name)).collect();
        assert_eq!(strange, Vec::<&String>::new(), "{}", self.about());
        if !self.world.sees_tool(self.caller, server, tool) {
            self.note("hidden", "retrieve_tools");
        }
    }

    /// Uses the memory, if the caller sees a tool that reads.
    async fn check_memory(&mut self, dice: &mut Dice) {
        let is_confined = self.world.is_confined(self.caller);
        let memory = self.world.memory_of(self.caller);
        let Some(name) = memory.iter().find(|name| **name == "list_memories") else {
            return;
        };
        if !self.look.has_menu() {
            return;
        }
        let named = format!("{MEMORY}:{name}");
        let call = |arguments: Value| {
            let call = json!({ "name": named, "arguments": arguments });
            json!({ "name": "call_tool", "arguments": call })
        };
        let listed = self.result("tools/call", call(json!({}))).await;
        assert_ne!(listed["isError"], true, "{} {listed}", self.about());
        let namespace = dice.word(6);
        let other = call(json!({ "namespace": namespace }));
        let answer = self.ask("tools/call", other, None).await;
        let is_refused = answer["error"].is_object();
        assert_eq!(is_refused, is_confined, "{} {answer}", self.about());
        self.note(if is_confined { "confined" } else { "free" }, "memory");
    }

    /// Uses the prompt, the resource and the template of a server that the caller sees.
    async fn check_other_items(&mut self, dice: &mut Dice, reached: &mut Reached) {
        let shown = self.world.shown_servers(self.caller, self.look);
        if shown.is_empty() {
            return;
        }
        let at = *dice.pick(&shown);
        let world = self.world;
        let server = &world.servers[at];
        let mut note = async |session: &mut Self, method: &str, params: Value, what: String| {
            let result = session.result(method, params).await.to_string();
            assert!(
                result.contains(&server.text),
                "{} {result}",
                session.about()
            );
            reached.note(world, server, &what);
            session.note("visible", method);
        };
        let prompt = self.named(&server.name, &server.prompt[0]);
        let arguments = json!({ "note": dice.word(6) });
        let params = json!({ "name": prompt, "arguments": arguments });
        let what = format!("{} {arguments}", server.prompt[0]);
        note(self, "prompts/get", params, what).await;
        let argument = json!({ "name": "note", "value": dice.word(6) });
        let template = server.uri_template();
        for (of, own) in [
            (
                json!({ "type": "ref/prompt", "name": prompt }),
                &server.prompt[0],
            ),
            (
                json!({ "type": "ref/resource", "uri": self.addressed(&server.name, &template) }),
                &template,
            ),
        ] {
            let kind = of["type"].as_str().unwrap().to_owned();
            let params = json!({ "ref": of, "argument": argument });
            let what = format!("{own} {argument}");
            note(self, "completion/complete", params, what).await;
            self.note("visible", &kind);
        }
        let uri = self.addressed(&server.name, &server.uri());
        let params = json!({ "uri": uri });
        note(self, "resources/read", params.clone(), server.uri()).await;
        if self.revision != MODERN {
            reached.subscriptions.insert((at, server.uri()));
            for method in ["resources/subscribe", "resources/unsubscribe"] {
                self.result(method, params.clone()).await;
                self.note("visible", method);
            }
            let level = json!({ "level": "debug" });
            self.result("logging/setLevel", level).await;
            reached.levels.extend(shown);
            self.result("ping", json!({})).await;
        }
    }

    /// Sends the method of an extension, at the address of its server.
    async fn check_extension(&mut self, reached: &mut Reached) {
        let Look::One(at) = self.look else {
            return;
        };
        let server = &self.world.servers[at];
        let method = server.method();
        let answer = self.ask(&method, json!({}), Some(&method)).await;
        if self.world.sees_method(self.caller, server) {
            let extra = &answer["result"]["extra"];
            assert_eq!(*extra, server.extra[1], "{} {answer}", self.about());
            reached.note(self.world, server, &method);
            self.note("visible", "extension");
        } else {
            assert_eq!(answer["error"]["code"], -32601, "{}", self.about());
            self.note("hidden", "extension");
        }
    }

    async fn check_status(&mut self) {
        let name = match self.look {
            Look::Search | Look::Configured => "get_status",
            Look::Direct => "switchboard__get_status",
            Look::One(_) => return,
        };
        let call = json!({ "name": name, "arguments": {} });
        let status = self.result("tools/call", call).await["structuredContent"].clone();
        let servers = status["servers"].as_array().unwrap().iter();
        let found: BTreeMap<_, _> = servers
            .map(|server| (server["name"].as_str().unwrap(), server["tools"].clone()))
            .collect();
        let (world, caller) = (self.world, self.caller);
        let shown = world.shown_servers(caller, self.look);
        let shown = shown.iter().map(|at| &world.servers[*at]);
        let mut expected: BTreeMap<_, _> = shown
            .map(|server| {
                let tools = server.tools.iter();
                let tools = tools.filter(|tool| world.sees_tool(caller, server, tool));
                (&*server.name, json!(tools.count()))
            })
            .collect();
        if world.sees_server(caller, MEMORY) {
            expected.insert(MEMORY, json!(world.memory_of(caller).len()));
        }
        assert_eq!(found, expected, "{}", self.about());
    }
}

impl Reached {
    /// Notes a request that a server has to receive.
    fn note(&mut self, world: &World, server: &Server, what: &str) {
        let mut at = world.servers.iter();
        let at = at.position(|one| one.name == server.name).unwrap();
        self.requests.push((at, what.to_owned()));
    }

    /// Checks that the servers have received these requests, and no others.
    fn check(mut self, world: &World) {
        let mut found = Vec::new();
        for (at, server) in world.servers.iter().enumerate() {
            for line in server.stage.asked() {
                assert!(!line.contains(ASTRAY), "seed {}: {line}", world.seed);
                let (method, params) = line.split_once(' ').unwrap();
                let params: Value = serde_json::from_str(params).unwrap();
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                match method {
                    "tools/call" | "prompts/get" => {
                        let what = format!("{} {}", text(&params["name"]), params["arguments"]);
                        found.push((at, what));
                    }
                    "completion/complete" => {
                        let of = &params["ref"];
                        let name = text(of.get("name").unwrap_or(&of["uri"]));
                        found.push((at, format!("{name} {}", params["argument"])));
                    }
                    "resources/read" => found.push((at, text(&params["uri"]))),
                    "resources/subscribe" => {
                        let one = (at, text(&params["uri"]));
                        let is_known = self.subscriptions.contains(&one);
                        assert!(is_known, "seed {}: {line}", world.seed);
                    }
                    "logging/setLevel" => {
                        assert!(self.levels.contains(&at), "seed {}: {line}", world.seed);
                    }
                    _ if method.starts_with("x/") => found.push((at, method.to_owned())),
                    _ => {}
                }
            }
        }
        found.sort();
        self.requests.sort();
        assert_eq!(found, self.requests, "seed {}", world.seed);
    }
}
