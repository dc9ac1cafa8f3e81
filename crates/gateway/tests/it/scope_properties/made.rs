//! Random servers and tools. Every name and text is a word that occurs nowhere else, unless it collides on purpose.

use super::*;

/// A generator of numbers (xorshift).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % u64::try_from(end).unwrap()).unwrap()
    }

    pub(super) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub(super) fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at + 1));
        }
    }

    /// A word that is not like any other, so that no name is suggested in place of another.
    pub(super) fn word(&mut self, length: usize) -> String {
        let letters = b"bcdfghjklmnpqrstvwxz";
        let letters = (0..length).map(|_| char::from(*self.pick(letters)));
        letters.collect()
    }

    pub(super) fn item(&mut self) -> String {
        self.word(ITEM_LETTERS)
    }
}

/// Lists of patterns: `tools` of a server or of a profile.
#[derive(Clone)]
pub(super) struct Filter {
    pub(super) allow: Option<Vec<String>>,
    pub(super) deny: Vec<String>,
}

impl Filter {
    /// Tests if it lets an item with these names through.
    pub(super) fn passes(&self, names: &[String]) -> bool {
        let is_in = |patterns: &[String]| {
            let mut patterns = patterns.iter();
            patterns.any(|pattern| names.iter().any(|name| matches(pattern, name)))
        };
        !is_in(&self.deny) && self.allow.as_ref().is_none_or(|allow| is_in(allow))
    }

    pub(super) fn entry(&self) -> Value {
        let mut entry = json!({ "deny": self.deny });
        if let Some(allow) = &self.allow {
            entry["allow"] = json!(allow);
        }
        entry
    }
}

/// Tests if `*` in a pattern can stand for some characters each, so that it is the text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_at_checked(1) {
        None => text.is_empty(),
        Some(("*", rest)) => (0..=text.len()).any(|at| matches(rest, &text[at..])),
        Some((letter, rest)) => text
            .strip_prefix(letter)
            .is_some_and(|text| matches(rest, text)),
    }
}

/// The change of the owner to an argument.
#[derive(Clone)]
pub(super) enum Change {
    Fixed(String),
    Hidden,
}

/// A tool, as its server has it and as the owner has changed it.
#[derive(Clone)]
pub(super) struct Tool {
    pub(super) own: String,
    pub(super) about: String,
    pub(super) result: String,
    /// A log message that the server sends with its result.
    pub(super) log: String,
    pub(super) new_name: Option<String>,
    pub(super) new_about: Option<String>,
    /// Names that it had for clients before the configuration was changed.
    pub(super) former: Vec<String>,
    /// An argument of the server that clients neither see nor set.
    pub(super) changed: Option<(String, Change)>,
    pub(super) hidden: bool,
    /// The scan holds its definition.
    pub(super) is_held: bool,
    /// Its server no longer has it. Its override stays.
    pub(super) is_gone: bool,
}

impl Tool {
    fn plain(dice: &mut Dice) -> Self {
        Self {
            own: dice.item(),
            about: dice.item(),
            result: dice.item(),
            log: dice.item(),
            new_name: None,
            new_about: None,
            former: Vec::new(),
            changed: None,
            hidden: false,
            is_held: false,
            is_gone: false,
        }
    }

    fn new(dice: &mut Dice) -> Self {
        let mut tool = Self::plain(dice);
        let mut word = |chance: usize| dice.percent(chance).then(|| dice.item());
        tool.new_name = word(35);
        tool.new_about = word(30);
        let value = word(60).map_or(Change::Hidden, Change::Fixed);
        tool.changed = word(45).map(|name| (name, value));
        tool.hidden = dice.percent(15);
        tool.is_held = dice.percent(20);
        tool
    }

    /// A tool with the same names and another content, or none.
    fn other(&self, dice: &mut Dice) -> Self {
        Self {
            own: self.own.clone(),
            new_name: self.new_name.clone(),
            hidden: self.hidden,
            is_gone: dice.percent(50),
            // A tool whose name another one has may have no override.
            changed: self.changed.as_ref().map(|_| (dice.item(), Change::Hidden)),
            ..Self::plain(dice)
        }
    }

    pub(super) fn shown(&self) -> &str {
        self.new_name.as_ref().unwrap_or(&self.own)
    }

    pub(super) fn shown_about(&self) -> &str {
        self.new_about.as_ref().unwrap_or(&self.about)
    }

    fn definition(&self) -> Value {
        let mut properties = json!({ "note": { "type": "string" } });
        let mut required = vec!["note"];
        if let Some((name, change)) = &self.changed {
            properties[name] = json!({ "type": "string" });
            if let Change::Fixed(_) = change {
                required.push(name);
            }
        }
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        // The scan finds invisible letters.
        let more = if self.is_held { " a\u{200b}b" } else { "" };
        let about = format!("{}{more}", self.about);
        json!({
            "name": self.own, "description": about, "inputSchema": schema,
            "execution": { "taskSupport": "optional" },
        })
    }

    fn overrides(&self) -> Value {
        let mut changes = json!({});
        if let Some(name) = &self.new_name {
            changes["name"] = json!(name);
        }
        if let Some(about) = &self.new_about {
            changes["description"] = json!(about);
        }
        match &self.changed {
            None => {}
            Some((name, Change::Fixed(value))) => {
                changes["arguments"] = json!({ name: { "value": value } });
            }
            Some((name, Change::Hidden)) => {
                changes["arguments"] = json!({ name: { "hidden": true } });
            }
        }
        if self.hidden {
            changes["hidden"] = json!(true);
        }
        changes
    }

    pub(super) fn has_override(&self) -> bool {
        self.overrides() != json!({})
    }

    /// The words that a client who sees it may read.
    pub(super) fn seen_words(&self) -> [&str; 4] {
        [self.shown(), self.shown_about(), &self.result, &self.log]
    }

    pub(super) fn words(&self) -> Vec<&str> {
        let mut words = vec![&*self.own, &*self.about, &*self.result, &*self.log];
        words.extend(self.new_name.as_deref());
        words.extend(self.new_about.as_deref());
        words.extend(self.former.iter().map(String::as_str));
        if let Some((name, change)) = &self.changed {
            words.push(name);
            if let Change::Fixed(value) = change {
                words.push(value);
            }
        }
        words
    }
}

/// A server with a prompt, a resource, a template and a method of an extension besides its tools.
pub(super) struct Server {
    pub(super) name: String,
    pub(super) instructions: String,
    pub(super) info: String,
    pub(super) tools: Vec<Tool>,
    pub(super) filter: Option<Filter>,
    pub(super) prompt: [String; 2],
    pub(super) resource: [String; 2],
    pub(super) template: [String; 2],
    /// The text in its responses other than those to calls.
    pub(super) text: String,
    /// The name of its method, and the text in the response.
    pub(super) extra: [String; 2],
    pub(super) stage: Stage,
    /// The scan judges its definitions, even if it holds none.
    always_scanned: bool,
}

/// More tools than `auto` lists.
const LONG: usize = 42;

impl Server {
    /// A server whose first tool may have a given name.
    pub(super) fn new(dice: &mut Dice, shared: Option<&str>, is_long: bool) -> Self {
        let count = 3 + dice.below(3);
        let mut tools: Vec<_> = (0..count).map(|_| Tool::new(dice)).collect();
        if let Some(shared) = shared {
            shared.clone_into(&mut tools[0].own);
        }
        if dice.percent(50) {
            // One tool gets the name that another one had, or has without any override.
            tools[1].new_name = Some(tools[2].own.clone());
            if tools[2].new_name.is_none() {
                let own = tools[2].own.clone();
                tools[2] = Tool {
                    own,
                    ..Tool::plain(dice)
                };
            }
        }
        if is_long {
            tools.extend((0..LONG).map(|_| Tool::plain(dice)));
        }
        let filter = dice.percent(35).then(|| filter(dice, &tools));
        let mut item = || [dice.item(), dice.item()];
        let [prompt, resource, template, extra] = [item(), item(), item(), item()];
        let made = Self {
            name: dice.word(SERVER_LETTERS),
            instructions: dice.item(),
            info: dice.item(),
            stage: Stage::new(&[]),
            tools,
            filter,
            prompt,
            resource,
            template,
            text: dice.item(),
            extra,
            always_scanned: false,
        };
        made.set_stage();
        made
    }

    /// A server like this one with other tools in place of some, or without these.
    pub(super) fn without(&self, dice: &mut Dice, is_other: &dyn Fn(&Tool) -> bool) -> Self {
        let tools = self.tools.iter().map(|tool| match tool {
            tool if !is_other(tool) => tool.clone(),
            tool => tool.other(dice),
        });
        let made = Self {
            name: self.name.clone(),
            instructions: self.instructions.clone(),
            info: self.info.clone(),
            tools: tools.collect(),
            filter: self.filter.clone(),
            prompt: self.prompt.clone(),
            resource: self.resource.clone(),
            template: self.template.clone(),
            text: self.text.clone(),
            extra: self.extra.clone(),
            stage: Stage::new(&[]),
            always_scanned: self.is_scanned(),
        };
        made.set_stage();
        made
    }

    fn is_scanned(&self) -> bool {
        self.always_scanned || self.tools.iter().any(|tool| tool.is_held)
    }

    fn set_stage(&self) {
        let stage = &self.stage;
        self.set_tools();
        for tool in &self.tools {
            self.set_result(tool);
            let said = json!({ "level": "warning", "data": tool.log });
            let log = json!({ "jsonrpc": "2.0", "method": LOG, "params": said });
            stage.set(&format!("results/{}.before", tool.own), &log.to_string());
        }
        self.set_prompts();
        self.set_resources();
        self.set_templates();
        let changes = json!({ "listChanged": true });
        let tasks = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
        let capabilities = json!({
            "tools": changes, "prompts": changes, "completions": {}, "logging": {}, "tasks": tasks,
            "resources": { "listChanged": true, "subscribe": true },
            "extensions": { "com.example/x": {} },
        });
        let result = |result: Value| format!("\"result\":{result}");
        let greeting = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "serverInfo": { "name": self.info, "version": "1" },
            "instructions": self.instructions,
        });
        stage.set_answer("initialize", &result(greeting));
        let text = json!({ "type": "text", "text": self.text });
        let messages = json!([{ "role": "user", "content": text }]);
        stage.set_answer("prompts/get", &result(json!({ "messages": messages })));
        let completion = json!({ "values": [self.text] });
        let completion = json!({ "completion": completion });
        stage.set_answer("completion/complete", &result(completion));
        let contents = json!([{ "uri": self.uri(), "text": self.text }]);
        stage.set_answer("resources/read", &result(json!({ "contents": contents })));
        stage.set_answer(&self.method(), &result(json!({ "extra": self.extra[1] })));
    }

    /// Gives the server its tools.
    pub(super) fn set_tools(&self) {
        let there = self.tools.iter().filter(|tool| !tool.is_gone);
        let definitions: Vec<_> = there.map(Tool::definition).collect();
        self.stage.set_tools(&definitions);
    }

    /// Gives a tool its usual result.
    pub(super) fn set_result(&self, tool: &Tool) {
        let text = json!([{ "type": "text", "text": tool.result }]);
        let result = json!({ "content": text });
        self.stage.set_result(&tool.own, &result.to_string());
    }

    pub(super) fn set_prompts(&self) {
        let [name, about] = &self.prompt;
        let prompt = json!({ "name": name, "description": about });
        self.stage.set_prompts(&json!([prompt]));
    }

    pub(super) fn set_resources(&self) {
        let [name, about] = &self.resource;
        let resource = json!({ "uri": self.uri(), "name": name, "description": about });
        self.stage.set_resources(&json!([resource]));
    }

    pub(super) fn set_templates(&self) {
        let [name, about] = &self.template;
        let uri = self.uri_template();
        let template = json!({ "uriTemplate": uri, "name": name, "description": about });
        self.stage.set_templates(&json!([template]));
    }

    pub(super) fn uri(&self) -> String {
        format!("x:{}", self.resource[0])
    }

    pub(super) fn uri_template(&self) -> String {
        format!("y:{}/{{n}}", self.template[0])
    }

    /// The method of its extension.
    pub(super) fn method(&self) -> String {
        format!("x/{}", self.extra[0])
    }

    fn lets_through(&self, names: &[String]) -> bool {
        self.filter
            .as_ref()
            .is_none_or(|filter| filter.passes(names))
    }

    /// Tests if its entry lets clients send the method of its extension.
    pub(super) fn shows_method(&self) -> bool {
        self.lets_through(&[self.method()])
    }

    /// Tests if an override gives the name of a tool to another one.
    pub(super) fn is_displaced(&self, tool: &Tool) -> bool {
        let mut others = self.tools.iter();
        tool.new_name.is_none() && others.any(|other| other.new_name.as_ref() == Some(&tool.own))
    }

    /// Tests if its entry shows a tool to clients, once it is approved.
    pub(super) fn shows(&self, tool: &Tool) -> bool {
        let names = [tool.own.clone(), tool.shown().to_owned()];
        !tool.hidden && !tool.is_gone && !self.is_displaced(tool) && self.lets_through(&names)
    }

    pub(super) fn offers(&self, tool: &Tool) -> bool {
        self.shows(tool) && !tool.is_held
    }

    pub(super) fn entry(&self) -> Value {
        let changed = self.tools.iter().filter(|tool| tool.has_override());
        let overrides = changed.map(|tool| (&tool.own, tool.overrides()));
        let overrides: BTreeMap<_, _> = overrides.collect();
        let trust = if self.is_scanned() { "first" } else { "always" };
        let mut settings = json!({ "trust": trust, "overrides": overrides });
        if let Some(filter) = &self.filter {
            settings["tools"] = filter.entry();
        }
        self.stage.entry_with(&settings)
    }

    /// The words besides those of its tools.
    pub(super) fn words(&self) -> Vec<&str> {
        let items = [&self.prompt, &self.resource, &self.template];
        let items = items.into_iter().flatten();
        let all = [&self.name, &self.instructions, &self.info, &self.text];
        items.chain(all).map(String::as_str).collect()
    }
}

/// Patterns for the tools of one server.
fn filter(dice: &mut Dice, tools: &[Tool]) -> Filter {
    let mut pattern = |_| {
        let tool = dice.pick(tools);
        let name = if dice.percent(50) {
            tool.shown()
        } else {
            &tool.own
        };
        match dice.below(4) {
            0 => format!("{}*", &name[..1]),
            1 => format!("*{}", &name[ITEM_LETTERS - 1..]),
            _ => name.to_owned(),
        }
    };
    let mut deny: Vec<_> = (0..2).map(&mut pattern).collect();
    let mut allow: Vec<_> = (0..4).map(&mut pattern).collect();
    allow.extend(dice.percent(50).then(|| "x/*".to_owned()));
    deny.truncate(dice.below(3));
    Filter {
        allow: dice.percent(50).then_some(allow),
        deny,
    }
}
