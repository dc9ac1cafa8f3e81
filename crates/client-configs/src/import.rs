//! Converts an entry of a client to the form of `switchboard.json`.
//!
//! The clients differ in names more than in meaning, so every file may use the names of all clients.
//! Keys that are not understood are reported, never silently dropped.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::locations::{Dirs, is_home_or_above};
use crate::variables::{PROJECT, Translator, Variables, env, is_name};

/// The longest timeout that is carried over: one day.
const LONGEST_MS: f64 = 86_400_000.0;

/// Keys without information that is needed.
const SUPERFLUOUS: [&str; 5] = ["type", "transport", "source", "name", "$schema"];

/// A server imported from a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// Its name in the client's file.
    pub name: String,
    /// The entry for `mcpServers` in `switchboard.json`.
    pub entry: Value,
    /// Notes on parts that could not be carried over or that need the user's attention.
    pub notes: Vec<String>,
    /// The first of the notes on a part that starts or reaches the server and has no counterpart in the entry.
    pub gap: Option<String>,
    /// The keys that lead to it in the file. Claude Code may have the same server in several projects.
    pub(crate) places: Vec<Vec<String>>,
}

/// The beginning of every token of a gateway.
const TOKEN_PREFIX: &str = "swb_";

impl Imported {
    /// Tests if the client uses the server.
    pub fn is_enabled(&self) -> bool {
        self.entry.get("enabled") != Some(&json!(false))
    }

    /// The program and its arguments, for a server that is a program.
    pub(crate) fn command(&self) -> Option<(&str, Vec<&str>)> {
        let program = self.entry.get("command")?.as_str()?;
        let args = self.entry.get("args").and_then(Value::as_array);
        let args = args.into_iter().flatten().filter_map(Value::as_str);
        Some((program, args.collect()))
    }

    /// The token that the entry sends, if it is one for a gateway on this machine.
    pub(crate) fn token(&self) -> Option<&str> {
        let url = self.entry.get("url")?.as_str()?;
        let host = url.strip_prefix("http://")?;
        let is_local = ["127.", "[::1]", "localhost"];
        is_local.iter().find(|local| host.starts_with(**local))?;
        let headers = self.entry.get("headers")?.as_object()?;
        let mut headers = headers.iter();
        let is_it = |name: &str| name.eq_ignore_ascii_case("authorization");
        let (_, value) = headers.find(|(name, _)| is_it(name))?;
        let token = value.as_str()?.strip_prefix("Bearer ")?;
        token.starts_with(TOKEN_PREFIX).then_some(token)
    }

    /// Tests if the entry is the gateway itself: a Switchboard that serves on its standard input, or one that the
    /// client reaches over HTTP with a token.
    pub(crate) fn is_gateway(&self) -> bool {
        self.token().is_some()
            || self.command().is_some_and(|(program, args)| {
                let file = program.rsplit(['/', '\\']).next().unwrap_or(program);
                let stem = file.strip_suffix(".exe").unwrap_or(file);
                stem.eq_ignore_ascii_case("switchboard") && args.contains(&"stdio")
            })
    }
}

/// Converts an entry, or returns the reason why it cannot be used. `owner` is the server's name if the
/// file belongs to a repository.
pub(crate) fn import(
    client: Option<Client>,
    owner: Option<&str>,
    name: &str,
    entry: &Value,
) -> Result<Imported, String> {
    let Some(members) = entry.as_object() else {
        return Err("it is not an object".to_owned());
    };
    let mut reader = Reader {
        members: members.clone(),
        entry: Map::new(),
        client,
        translator: Translator {
            variables: client.map_or(Variables::Any, Client::variables),
            owner: owner.map(str::to_owned),
            notes: Vec::new(),
            gap: None,
        },
    };
    reader.transport()?;
    reader.switches();
    reader.rest();
    Ok(Imported {
        name: name.to_owned(),
        entry: Value::Object(reader.entry),
        notes: reader.translator.notes,
        gap: reader.translator.gap,
        places: Vec::new(),
    })
}

impl Imported {
    /// Gives each project an instance of its own.
    pub(crate) fn share_in_projects(&mut self) {
        if let Some(entry) = self.entry.as_object_mut() {
            entry.insert("share".to_owned(), "project".into());
        }
    }

    /// Adapts the server of a single project to a gateway for all of them. An entry that `is_bound` to the project
    /// keeps the path; so does one for the home directory or a directory above it, where no client has a project.
    pub(crate) fn leave_project(
        &mut self,
        project: &str,
        dirs: &Dirs,
        is_bound: &dyn Fn(&str, &Value) -> bool,
    ) {
        let (own, general) = of_project(&self.entry, project);
        if is_home_or_above(Path::new(project), dirs) {
            let note = format!(
                "it was configured only for {project}, which is no project; behind the gateway, it is for all directories"
            );
            if own == general {
                self.notes.push(note);
            } else {
                self.lose(note);
            }
            self.entry = own;
        } else if is_bound(project, &general) {
            self.lose(format!(
                "it was configured only for the project {project}, and uses files there; behind the gateway, it is \
                 for all directories"
            ));
            self.entry = own;
        } else {
            self.notes.push(format!(
                "it was configured only for the project {project}; behind the gateway, each project gets its own process"
            ));
            self.entry = general;
            self.share_in_projects();
        }
    }

    /// Notes a part that has no counterpart.
    fn lose(&mut self, note: String) {
        self.gap.get_or_insert_with(|| note.clone());
        self.notes.push(note);
    }
}

/// The entry of a server with the path of its project, and with that of any project in its place: in all strings
/// that are the path, or begin with it, also after `=`.
fn of_project(entry: &Value, project: &str) -> (Value, Value) {
    let project = project.replace("${", "$${");
    let mut own = entry.clone();
    change_texts(&mut own, &|text| text.replace(PROJECT, &project));
    let project = project.trim_end_matches('/');
    let mut general = own.clone();
    change_texts(&mut general, &|text| {
        let at = match text.split_once('=') {
            Some((option, _)) if !option.contains('/') => option.len() + 1,
            _ => 0,
        };
        let (option, path) = text.split_at(at);
        match path.strip_prefix(project) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                format!("{option}{PROJECT}{rest}")
            }
            _ => text.to_owned(),
        }
    });
    (own, general)
}

/// Replaces all strings in a value.
fn change_texts(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => {
            for item in items {
                change_texts(item, change);
            }
        }
        Value::Object(members) => {
            for item in members.values_mut() {
                change_texts(item, change);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Converts an entry. It removes each member that it has understood.
struct Reader {
    members: Map<String, Value>,
    entry: Map<String, Value>,
    client: Option<Client>,
    translator: Translator,
}

impl Reader {
    /// Converts the program to start, or the address to call.
    fn transport(&mut self) -> Result<(), String> {
        let kind = ["type", "transport"]
            .iter()
            .find_map(|key| self.members.get(*key)?.as_str());
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        if matches!(kind.as_str(), "ws" | "websocket" | "sdk") {
            return Err(format!("its transport `{kind}` is not supported"));
        }
        let command = self
            .members
            .remove("command")
            .filter(|command| !command.is_null());
        let streamable = self.take_text("httpUrl");
        let address = self.take_text("url");
        // Gemini's `url` means the older transport, unless a type says otherwise.
        let is_sse = kind == "sse"
            || (kind.is_empty() && streamable.is_none() && self.client == Some(Client::GeminiCli));
        let url = streamable
            .or(address)
            .or_else(|| self.take_text("serverUrl"));
        match (command, url) {
            (Some(command), url) => {
                if url.is_some() {
                    self.note("its `url` is not imported, because it has a `command`".to_owned());
                }
                self.local(command)
            }
            (None, Some(url)) => {
                self.remote(&url, is_sse);
                Ok(())
            }
            (None, None) if self.members.contains_key("settings") => Err(
                "an extension of the editor starts it, and the file does not contain its command"
                    .to_owned(),
            ),
            (None, None) => Err("it has neither `command` nor `url`".to_owned()),
        }
    }

    fn local(&mut self, command: Value) -> Result<(), String> {
        let mut words = Vec::new();
        match command {
            Value::String(program) => words.push(program),
            Value::Array(given) => words.extend(self.texts(&given, "command")),
            // The format of early Zed versions.
            Value::Object(mut inner) => {
                let path = inner.remove("path");
                words.extend(path.as_ref().and_then(Value::as_str).map(str::to_owned));
                for (key, value) in inner {
                    self.members.entry(key).or_insert(value);
                }
            }
            _ => {}
        }
        let args = self.take_list("args");
        words.extend(args.unwrap_or_default());
        let mut words = words
            .into_iter()
            .map(|word| self.translate(&word))
            .collect::<Vec<_>>();
        if words.first().is_none_or(String::is_empty) {
            return Err("its command is empty".to_owned());
        }
        let args = words.split_off(1);
        self.entry
            .insert("command".to_owned(), words.remove(0).into());
        if !args.is_empty() {
            self.entry.insert("args".to_owned(), args.into());
        }
        let mut variables = self.take_map(&["env", "environment"]);
        for name in self.take_list("env_vars").unwrap_or_default() {
            if is_name(&name) {
                variables
                    .entry(name.clone())
                    .or_insert_with(|| env(&name).into());
            }
        }
        self.put_map("env", variables);
        if let Some(folder) = self.take_text("cwd") {
            let folder = self.translate(&folder);
            self.entry.insert("cwd".to_owned(), folder.into());
        }
        if self.members.remove("envFile").is_some() {
            let note = "its `envFile` is not imported; copy the variables that it needs to `env`"
                .to_owned();
            self.translator.lose(note);
        }
        Ok(())
    }

    fn remote(&mut self, url: &str, is_sse: bool) {
        let url = self.translate(url);
        self.entry.insert("url".to_owned(), url.into());
        if is_sse {
            self.entry.insert("type".to_owned(), json!("sse"));
        }
        let mut headers = self.take_map(&["headers", "http_headers"]);
        for (header, variable) in self.take_object("env_http_headers") {
            if let Some(variable) = variable.as_str().filter(|name| is_name(name)) {
                headers.insert(header, env(variable).into());
            }
        }
        if let Some(variable) = self.take_text("bearer_token_env_var")
            && is_name(&variable)
        {
            let bearer = format!("Bearer {}", env(&variable));
            headers.insert("Authorization".to_owned(), bearer.into());
        }
        self.put_map("headers", headers);
        for key in ["oauth", "auth"] {
            if self
                .members
                .remove(key)
                .is_some_and(|value| value != json!(true))
            {
                let note = format!("its authentication settings (`{key}`) are not imported");
                self.translator.lose(note);
            }
        }
    }

    /// Converts the enabled state, the timeouts and the filters of tools.
    fn switches(&mut self) {
        let enabled = self.members.remove("enabled") != Some(json!(false));
        let disabled = self.members.remove("disabled") == Some(json!(true));
        if !enabled || disabled {
            self.entry.insert("enabled".to_owned(), json!(false));
        }
        // The unit is known for these clients only.
        let unit = match self.client {
            Some(Client::ClaudeCode | Client::GeminiCli | Client::OpenCode) => Some(1.0),
            Some(Client::Zed) => Some(1000.0),
            _ => None,
        };
        for (key, unit, target) in [
            ("timeout", unit, "requestTimeoutMs"),
            ("tool_timeout_sec", Some(1000.0), "requestTimeoutMs"),
            ("startup_timeout_sec", Some(1000.0), "initTimeoutMs"),
            ("startup_timeout_ms", Some(1.0), "initTimeoutMs"),
        ] {
            let Some((unit, given)) = unit.zip(self.members.get(key).and_then(Value::as_f64))
            else {
                continue;
            };
            self.members.remove(key);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is between one and a day"
            )]
            let millis = (given * unit).clamp(1.0, LONGEST_MS) as u64;
            self.entry.insert(target.to_owned(), millis.into());
        }
        let mut tools = Map::new();
        for (key, target) in [
            ("includeTools", "allow"),
            ("enabled_tools", "allow"),
            ("excludeTools", "deny"),
            ("disabled_tools", "deny"),
            ("disabledTools", "deny"),
        ] {
            if let Some(names) = self.take_list(key) {
                tools.insert(target.to_owned(), names.into());
            }
        }
        if !tools.is_empty() {
            self.entry.insert("tools".to_owned(), tools.into());
        }
    }

    /// Reports the members that are left.
    fn rest(&mut self) {
        let left = self.members.keys().map(String::as_str);
        let left: Vec<_> = left.filter(|key| !SUPERFLUOUS.contains(key)).collect();
        if !left.is_empty() {
            let keys = if left.len() == 1 { "key" } else { "keys" };
            let left: Vec<_> = left.iter().map(|key| format!("`{key}`")).collect();
            let note = format!("skipped the unsupported {keys} {}", left.join(", "));
            self.note(note);
        }
    }

    fn take_text(&mut self, key: &str) -> Option<String> {
        match self.members.remove(key) {
            Some(Value::String(text)) if !text.is_empty() => Some(text),
            Some(Value::String(_) | Value::Null) | None => None,
            Some(_) => {
                self.translator.lose(format!(
                    "`{key}` is not imported, because it is not a string"
                ));
                None
            }
        }
    }

    fn take_list(&mut self, key: &str) -> Option<Vec<String>> {
        match self.members.remove(key) {
            Some(Value::Array(values)) => Some(self.texts(&values, key)),
            Some(Value::Null) | None => None,
            Some(_) => {
                self.translator
                    .lose(format!("`{key}` is not imported, because it is not a list"));
                None
            }
        }
    }

    fn take_object(&mut self, key: &str) -> Map<String, Value> {
        match self.members.remove(key) {
            Some(Value::Object(members)) => members,
            Some(Value::Null) | None => Map::new(),
            Some(_) => {
                self.translator.lose(format!(
                    "`{key}` is not imported, because it is not an object"
                ));
                Map::new()
            }
        }
    }

    fn take_map(&mut self, keys: &[&str]) -> Map<String, Value> {
        let mut map = Map::new();
        for key in keys {
            let members = self.take_object(key);
            for (name, value) in members {
                match plain(&value) {
                    Some(text) => {
                        let text = self.translate(&text);
                        map.insert(name, text.into());
                    }
                    None => self.translator.lose(format!(
                        "`{name}` in `{key}` is not imported, because it is not a string"
                    )),
                }
            }
        }
        map
    }

    fn put_map(&mut self, key: &str, map: Map<String, Value>) {
        if !map.is_empty() {
            self.entry.insert(key.to_owned(), map.into());
        }
    }

    fn texts(&mut self, values: &[Value], key: &str) -> Vec<String> {
        let given = values.len();
        let texts: Vec<_> = values.iter().filter_map(plain).collect();
        if texts.len() < given {
            self.translator.lose(format!(
                "a value in `{key}` is not imported, because it is not a string"
            ));
        }
        texts
    }

    fn note(&mut self, note: String) {
        self.translator.notes.push(note);
    }

    fn translate(&mut self, text: &str) -> String {
        self.translator.translate(text)
    }
}

/// Converts a string, number or boolean to text.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
