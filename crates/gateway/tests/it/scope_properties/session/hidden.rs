//! Requests for what a caller does not see: each gets the same answer as one for something that is not there.

use super::*;

/// A request for something that the caller does not see, and for something that is not there.
struct Probe {
    /// The kind of request.
    what: &'static str,
    method: &'static str,
    params: Value,
    hidden: String,
    missing: String,
}

/// A text without the name that it suggests, which depends on how similar names that the caller sees are.
fn without_suggestion(text: &str, check: &dyn Fn(&str)) -> String {
    const START: &str = "did you mean `";
    let Some((before, rest)) = text.split_once(START) else {
        return text.to_owned();
    };
    let (name, after) = rest.split_once("`?").unwrap();
    check(name);
    let rest = match (before.strip_suffix("; "), after.strip_prefix(' ')) {
        (_, Some(after)) => format!("{before}{after}"),
        (Some(before), None) => format!("{before}{after}"),
        (None, None) => panic!("{text}"),
    };
    without_suggestion(&rest, check)
}

impl Session<'_> {
    /// The names of tools of a server that a caller cannot use in this view.
    fn unusable(&self, server: &Server) -> Vec<(String, &'static str)> {
        let (world, caller) = (self.world, self.caller);
        let mut names = Vec::new();
        for tool in &server.tools {
            let would_see = world.would_see_tool(caller, server, tool);
            let why = if !world.sees_server(caller, &server.name) {
                "tool of a hidden server"
            } else if would_see {
                "old name of a tool"
            } else if server.is_displaced(tool) {
                "tool whose name another one has"
            } else if server.shows(tool) {
                "tool that a profile leaves out"
            } else if tool.hidden {
                "tool that an override hides"
            } else {
                "tool that its server's entry leaves out"
            };
            let own = Some(&tool.own).filter(|_| !would_see || tool.new_name.is_some());
            let new = tool.new_name.as_ref().filter(|_| !would_see);
            let both = own.into_iter().chain(new);
            names.extend(both.map(|name| (name.clone(), why)));
            let former = tool.former.iter();
            names.extend(former.map(|name| (name.clone(), "former name of a tool")));
        }
        let is_used = |name: &String| {
            let mut tools = server.tools.iter();
            tools.any(|tool| tool.shown() == name && world.would_see_tool(caller, server, tool))
        };
        names.retain(|(name, _)| !is_used(name));
        names
    }

    /// The names by which the caller can call tools in this view.
    pub(super) fn callable(&self) -> BTreeSet<String> {
        let (world, caller) = (self.world, self.caller);
        let shown = world.shown_tools(caller, self.look).into_iter();
        let mut names: Vec<_> = shown
            .map(|(server, tool)| (&*server.name, tool.shown()))
            .collect();
        if !self.is_one() {
            names.extend(
                world
                    .memory_of(caller)
                    .into_iter()
                    .map(|tool| (MEMORY, tool)),
            );
            names.extend(["get_status", "read_result"].map(|tool| ("switchboard", tool)));
        }
        let named = names.iter().map(|(server, tool)| self.named(server, tool));
        let paired = names
            .iter()
            .map(|(server, tool)| format!("{server}:{tool}"));
        let menu = ["retrieve_tools", "describe_tool", "call_tool"].map(str::to_owned);
        named.chain(paired).chain(menu).collect()
    }

    fn probe_tool(&self, probes: &mut Vec<Probe>, pairs: [(String, String); 2]) {
        let arguments = json!({ "note": ASTRAY });
        let call = json!({ "name": "NAME", "arguments": arguments });
        let describe = json!({ "name": "NAME" });
        let menu = |tool: &str, arguments: &Value| json!({ "name": tool, "arguments": arguments });
        let [by_name, by_pair] = pairs;
        let mut add = |what, params: Value, (hidden, missing): (String, String)| {
            probes.push(Probe {
                what,
                method: "tools/call",
                params,
                hidden,
                missing,
            });
        };
        if self.look.has_menu() {
            for pair in [&by_name, &by_pair] {
                add("call_tool", menu("call_tool", &call), pair.clone());
                add(
                    "describe_tool",
                    menu("describe_tool", &describe),
                    pair.clone(),
                );
            }
        }
        add("tools/call", call, by_name);
    }

    /// Requests for the other items of a server that the caller does not see.
    fn probe_server(&self, probes: &mut Vec<Probe>, server: &Server, other: &str) {
        let mut add = |what, method, params: Value, name: &dyn Fn(&str) -> String| {
            probes.push(Probe {
                what,
                method,
                params,
                hidden: name(&server.name),
                missing: name(other),
            });
        };
        let arguments = json!({ "note": ASTRAY });
        let prompt = |name: &str| format!("{name}__{}", server.prompt[0]);
        let params = json!({ "name": "NAME", "arguments": arguments });
        add("prompts/get", "prompts/get", params, &prompt);
        let complete = "completion/complete";
        let argument = json!({ "name": "note", "value": ASTRAY });
        let of = json!({ "type": "ref/prompt", "name": "NAME" });
        let params = json!({ "ref": of, "argument": argument });
        add("ref/prompt", complete, params, &prompt);
        let template = |name: &str| format!("switchboard://{name}/{}", server.uri_template());
        let of = json!({ "type": "ref/resource", "uri": "NAME" });
        let params = json!({ "ref": of, "argument": argument });
        add("ref/resource", complete, params, &template);
        let listed = |name: &str| format!("switchboard://{name}/{}", server.uri());
        let unlisted = |name: &str| format!("switchboard://{name}/{ASTRAY}");
        for uri in [&listed as &dyn Fn(&str) -> String, &unlisted] {
            let params = json!({ "uri": "NAME" });
            let mut about = vec!["resources/read"];
            if self.revision != MODERN {
                about.extend(["resources/subscribe", "resources/unsubscribe"]);
            }
            for method in about {
                add(method, method, params.clone(), uri);
            }
        }
        if self.look.has_menu() {
            let arguments = json!({ "query": "anything", "server": "NAME" });
            let params = json!({ "name": "retrieve_tools", "arguments": arguments });
            add("search within", "tools/call", params, &str::to_owned);
        }
    }

    fn probes(&mut self, dice: &mut Dice) -> Vec<Probe> {
        let mut probes = Vec::new();
        let spell = |dice: &mut Dice, name: &str| match dice.below(6) {
            0 => name.to_uppercase(),
            _ => name.to_owned(),
        };
        let world = self.world;
        if let Look::One(at) = self.look {
            for (name, why) in self.unusable(&world.servers[at]) {
                let pair = (spell(dice, &name), dice.item());
                self.probe_tool(&mut probes, [pair.clone(), pair]);
                self.coverage.note(why);
            }
            return probes;
        }
        for server in &world.servers {
            let is_seen = world.sees_server(self.caller, &server.name);
            let other = if is_seen {
                server.name.clone()
            } else {
                dice.word(SERVER_LETTERS)
            };
            for (name, why) in self.unusable(server) {
                let (name, missing) = (spell(dice, &name), dice.item());
                let pairs = ["__", ":"].map(|between| {
                    let hidden = format!("{}{between}{name}", server.name);
                    (hidden, format!("{other}{between}{missing}"))
                });
                self.probe_tool(&mut probes, pairs);
                self.coverage.note(why);
            }
            if !is_seen {
                self.probe_server(&mut probes, server, &other);
            }
        }
        let memory = world.memory_of(self.caller);
        let hidden = world.memory_tools.keys();
        for name in hidden.filter(|name| !memory.contains(&name.as_str())) {
            let missing = dice.word(name.len());
            let pairs = ["__", ":"].map(|between| {
                let named = |name: &str| format!("{MEMORY}{between}{name}");
                (named(name), named(&missing))
            });
            self.probe_tool(&mut probes, pairs);
            self.coverage.note("tool of the memory");
        }
        probes
    }

    /// Checks that some hidden things, of all kinds, look like missing ones.
    async fn compare(&mut self, probe: &Probe, callable: &BTreeSet<String>) {
        let about = self.about();
        let Probe { what, method, .. } = probe;
        let mut answers = Vec::new();
        for name in [&probe.hidden, &probe.missing] {
            let params = probe.params.to_string().replace("NAME", name);
            let params = serde_json::from_str(&params).unwrap();
            let mut answer = self.ask(method, params, Some(name)).await;
            let hint = answer["error"]["data"]["hint"].as_str();
            if hint.is_some_and(|hint| hint.starts_with("did you mean")) {
                answer["error"].as_object_mut().unwrap().remove("data");
            }
            let check = |near: &str| assert!(callable.contains(near), "{about}: {near}");
            let answer = without_suggestion(&answer.to_string(), &check);
            answers.push(serde_json::from_str::<Value>(&answer).unwrap());
        }
        let (answer, hidden) = (&answers[0], &probe.hidden);
        assert_eq!(*answer, answers[1], "{about}: {method} {hidden}");
        let is_refusal = answer.get("error").is_some()
            || answer["result"]["isError"] == true
            || *method == "resources/unsubscribe";
        assert!(is_refusal, "{about}: {method} {hidden} {answer}");
        self.note("hidden", what);
    }

    pub(super) async fn check_hidden(&mut self, dice: &mut Dice, count: usize) {
        let mut probes = self.probes(dice);
        dice.shuffle(&mut probes);
        let mut kinds = BTreeSet::new();
        probes.retain(|probe| kinds.insert(probe.what));
        let callable = self.callable();
        for probe in probes.iter().take(count) {
            self.compare(probe, &callable).await;
        }
    }

    /// Checks that a held tool that the caller would see is refused as such.
    pub(super) async fn check_held(&mut self) {
        let world = self.world;
        for at in world.shown_servers(self.caller, self.look) {
            let server = &world.servers[at];
            for tool in server.tools.iter().filter(|tool| tool.is_held) {
                let is_other = |other: &Tool| other.own == tool.shown() && other.own != tool.own;
                // If another tool had its name, there may be no mention of it.
                if !world.would_see_tool(self.caller, server, tool)
                    || server.tools.iter().any(is_other)
                {
                    continue;
                }
                let name = self.named(&server.name, tool.shown());
                let call = json!({ "name": name, "arguments": { "note": ASTRAY } });
                // The client has named the tool itself. It does not learn the server's own name.
                self.forbidden.remove(tool.shown());
                let refusal = self.ask("tools/call", call, Some(&name)).await.to_string();
                self.forbidden = world.forbidden(self.caller, self.look);
                let is_held = refusal.contains("held until the user approves it");
                assert!(is_held, "{} {refusal}", self.about());
                self.coverage.note("held tool");
            }
        }
    }
}
