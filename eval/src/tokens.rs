//! `cargo xtask bench tokens`: compares the context that an agent needs with every tool listed, and with the
//! menu and searches.
//!
//! An agent uses five tools, four times each. The text that its model reads and writes counts: the name,
//! description and input schema of a definition, the text of a result (the structured content repeats it),
//! the name and arguments of a call. The figures are means over several agents.

mod agent;
mod corpus;

use std::{collections::BTreeMap, fs, time::Duration};

use agent::Agent;
use corpus::{Definition, Tool};
use serde::Serialize;
use serde_json::{Map, Value, json};
use switchboard_results::estimate_tokens;
use switchboard_wire::Raw;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const COUNTS: [usize; 8] = [5, 10, 20, 40, 60, 100, 1_000, 10_000];
const AGENTS: usize = 20;
const TOOLS: usize = 5;
const CALLS: usize = 4;
/// With this number of tools, every tool is searched for.
const SURVEYED: usize = 1_000;

pub(crate) fn run(arguments: &[String]) -> std::result::Result<(), String> {
    measure(arguments).map_err(|error| error.to_string())
}

fn measure(arguments: &[String]) -> Result<()> {
    let mut corpora = vec![("made-up tools", corpus::made_up())];
    let mut json = None;
    for option in arguments.chunks(2) {
        match option {
            [name, file] if name == "--tools" => {
                corpora.push((file, serde_json::from_slice(&fs::read(file)?)?));
            }
            [name, file] if name == "--json" => json = Some(file),
            _ => return Err("usage: switchboard-eval tokens [--tools FILE] [--json FILE]".into()),
        }
    }
    let mut all = Vec::new();
    for (title, corpus) in corpora {
        let mut sizes: Vec<usize> = corpus.iter().map(|one| one.tool.as_bytes().len()).collect();
        sizes.sort_unstable();
        println!("\n## {title}: {}\n", spread(&sizes));
        let rows = COUNTS
            .iter()
            .map(|count| row(&corpus, *count))
            .collect::<Result<Vec<Row>>>()?;
        print(&rows);
        all.push(json!({"corpus": title, "sizes": spread(&sizes), "rows": rows}));
    }
    if let Some(json) = json {
        fs::write(json, serde_json::to_vec_pretty(&all)?)?;
    }
    Ok(())
}

/// Measurements with one number of tools.
#[derive(Default, Serialize)]
struct Row {
    tools: usize,
    /// Bytes of the definitions as the servers write them.
    definitions: usize,
    /// Tokens and bytes that an agent spends, by purpose.
    spent: BTreeMap<&'static str, [usize; 2]>,
    /// Events, counted over all agents, and bytes on the wire.
    counts: BTreeMap<&'static str, usize>,
    /// Sizes of the answers in bytes, if every tool was searched for: of the text, and of the whole result.
    answers: [Vec<usize>; 2],
}

impl Row {
    fn new(tools: usize) -> Self {
        Self {
            tools,
            ..Self::default()
        }
    }

    /// Tokens or bytes spent on all these parts.
    fn sum(&self, parts: &[&str], unit: usize) -> usize {
        let spent = parts.iter().filter_map(|on| self.spent.get(on));
        spent.map(|spent| spent[unit]).sum()
    }

    fn spend(&mut self, on: &'static str, text: &str) {
        let spent = self.spent.entry(on).or_default();
        spent[0] += estimate_tokens(text);
        spent[1] += text.len();
    }

    fn count(&mut self, what: &'static str, is_so: bool) {
        *self.counts.entry(what).or_default() += usize::from(is_so);
    }

    /// Lists the tools and counts the text that a model sees: their definitions, and the instructions.
    fn open(&mut self, on: &'static str, agent: &mut Agent) -> Result<Vec<Value>> {
        let tools = agent.list()?;
        for tool in &tools {
            let [name, description, schema] =
                ["name", "description", "inputSchema"].map(|of| &tool[of]);
            let shown = json!({"name": name, "description": description, "inputSchema": schema});
            self.spend(on, &shown.to_string());
        }
        self.spend(on, &agent.instructions);
        Ok(tools)
    }

    fn call(
        &mut self,
        on: &'static str,
        agent: &mut Agent,
        name: &str,
        arguments: &Value,
    ) -> Result<Value> {
        let request = json!({"name": name, "arguments": arguments});
        let result = agent.ask("tools/call", &request)?;
        self.spend(on, &request.to_string());
        self.spend(on, text(&result));
        self.count("refused", result["isError"] == true);
        Ok(result)
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn row(corpus: &[Definition], count: usize) -> Result<Row> {
    let tools = corpus::draw(corpus, count, (count / 50).max(25))?;
    let home = tempfile::tempdir()?;
    let own = std::env::current_exe()?;
    let mut row = Row::new(count);
    let mut servers = Map::new();
    for tools in tools.chunk_by(|one, other| one.server == other.server) {
        let file = home.path().join(format!("tools-{}.json", servers.len()));
        let list = Raw::array(tools.iter().map(|tool| tool.raw.clone()));
        row.definitions += list.as_bytes().len();
        fs::write(&file, list.as_bytes())?;
        let entry = json!({"command": own, "args": ["serve", file], "trust": "always"});
        servers.insert(tools[0].server.clone(), entry);
    }
    row.counts.insert("servers", servers.len());
    // The searches of one agent must not help the next.
    let search = json!({"learn": false});
    let config = json!({"listen": "127.0.0.1:0", "search": search, "mcpServers": servers});
    fs::write(home.path().join("switchboard.json"), config.to_string())?;

    let start = |view| Agent::start(&own.with_file_name("switchboard"), home.path(), view);
    let mut host = start("direct")?;
    while host.list()?.len() < count {
        std::thread::sleep(Duration::from_millis(200));
    }
    let (mut direct, mut search) = (start("direct")?, start("search")?);
    let listed = row.open("list", &mut direct)?;
    row.open("menu", &mut search)?;
    let opened = (direct.wire, search.wire);
    for at in 0..AGENTS * TOOLS {
        let tool = &tools[at * count / (AGENTS * TOOLS)];
        let arguments = corpus::sample(&tool.value["inputSchema"], &tool.value["inputSchema"], 0);
        let exposed = exposed(tool, &listed).ok_or("a tool is not listed")?;
        for _ in 0..CALLS {
            row.call("direct calls", &mut direct, exposed, &arguments)?;
        }
        find_and_call(&mut row, &mut search, (tool, &tools), &arguments)?;
    }
    let several = row
        .spent
        .iter_mut()
        .filter(|(on, _)| !matches!(**on, "list" | "menu"));
    several.for_each(|(_, spent)| *spent = spent.map(|much| much / AGENTS));
    let wire = |opened: usize, all: usize| opened + (all - opened) / AGENTS;
    row.counts
        .insert("wire, listing", wire(opened.0, direct.wire));
    row.counts
        .insert("wire, searching", wire(opened.1, search.wire));
    for tool in tools.iter().filter(|_| count == SURVEYED) {
        let asked = json!({"name": "retrieve_tools", "arguments": {"query": corpus::query(tool)}});
        let answer = search.ask("tools/call", &asked)?;
        row.answers[0].push(text(&answer).len());
        row.answers[1].push(answer.to_string().len());
        row.count("survey found", find(&answer, tool, &tools).is_some());
    }
    row.answers
        .iter_mut()
        .for_each(|sizes| sizes.sort_unstable());
    [direct, search, host]
        .into_iter()
        .try_for_each(Agent::leave)?;
    Ok(row)
}

/// The name under which a tool is listed. A shortened name is recognised by the tool's description.
fn exposed<'a>(tool: &Tool, listed: &'a [Value]) -> Option<&'a str> {
    let whole = format!("{}__{}", tool.server, tool.name);
    let exact = listed.iter().find(|one| one["name"] == *whole);
    let mut others = listed.iter();
    let same = || others.find(|one| one["description"] == tool.value["description"]);
    exact.or_else(same)?["name"].as_str()
}

/// Finds a tool by searching, and calls it.
fn find_and_call(
    row: &mut Row,
    search: &mut Agent,
    (tool, tools): (&Tool, &[Tool]),
    arguments: &Value,
) -> Result<()> {
    let mut asked = json!({"query": corpus::query(tool)});
    let mut answer = row.call("searches", search, "retrieve_tools", &asked)?;
    let mut found = find(&answer, tool, tools);
    row.count("searched again", found.is_none());
    if found.is_none() {
        asked["limit"] = json!(15);
        answer = row.call("searches", search, "retrieve_tools", &asked)?;
        found = find(&answer, tool, tools);
    }
    row.count("not found", found.is_none());
    let unfound = json!({"name": format!("{}:{}", tool.server, tool.name), "parameters": "…"});
    let found = found.unwrap_or(&unfound);
    let takes = found["parameters"].as_str();
    let all = tool.value["inputSchema"]["properties"].as_object();
    let has_some = all.is_some_and(|all| !all.is_empty());
    let is_short = takes.map_or(has_some, |takes| takes.contains('…'));
    row.count("described", is_short);
    if is_short {
        let named = json!({"name": found["name"]});
        row.call("descriptions", search, "describe_tool", &named)?;
    }
    let wrapped = json!({"name": found["name"], "arguments": arguments});
    for _ in 0..CALLS {
        row.call("calls", search, "call_tool", &wrapped)?;
    }
    Ok(())
}

/// The entry for a tool in an answer, or for an identical tool.
fn find<'a>(answer: &'a Value, tool: &Tool, tools: &[Tool]) -> Option<&'a Value> {
    let mut found = answer["structuredContent"]["tools"].as_array()?.iter();
    found.find(|found| {
        let is_named = |one: &Tool| found["name"] == format!("{}:{}", one.server, one.name);
        let mut same = tools.iter().filter(|one| one.origin == tool.origin);
        same.any(is_named)
    })
}

const DIRECT: [&str; 2] = ["list", "direct calls"];
const SEARCH: [&str; 4] = ["menu", "searches", "descriptions", "calls"];

fn print(rows: &[Row]) {
    for (unit, name) in ["tokens", "bytes"].into_iter().enumerate() {
        let (direct, search) = (DIRECT.join(" | "), SEARCH.join(" | "));
        println!("| {name}: tools | definitions | {direct} | all | {search} | all | ratio |");
        println!("|---|---|---|---|---|---|---|---|---|---|---|");
        for row in rows {
            print!("| {} | {} B |", row.tools, row.definitions);
            for part in DIRECT
                .chunks(1)
                .chain([&DIRECT[..]])
                .chain(SEARCH.chunks(1))
                .chain([&SEARCH[..]])
            {
                print!(" {} |", row.sum(part, unit));
            }
            let percent = row.sum(&DIRECT, unit) * 100 / row.sum(&SEARCH, unit);
            println!(" {}.{:02} |", percent / 100, percent % 100);
        }
        println!();
    }
    for row in rows {
        println!("{} tools, of 100 used: {:?}", row.tools, row.counts);
        let [text, whole] = &row.answers;
        if !whole.is_empty() {
            println!(
                "One default search for each tool: {} (goal: at most 1536 B)",
                spread(whole)
            );
            println!("Its text: {}", spread(text));
        }
    }
    let menu = rows.iter().map(|row| row.sum(&["menu"], 1)).max();
    println!(
        "Menu and instructions: {} B (goal: at most 6144 B)",
        menu.unwrap_or_default()
    );
    break_even("without calls", rows, &DIRECT[..1], &SEARCH[..3]);
    break_even("with calls", rows, &DIRECT, &SEARCH);
}

/// Percentiles of sizes, which are sorted.
fn spread(sizes: &[usize]) -> String {
    let count = sizes.len();
    let [p10, p50, p90, p99] =
        [10, 50, 90, 99].map(|part| sizes.get(count * part / 100).unwrap_or(&0));
    let (mean, most) = (
        sizes.iter().sum::<usize>() / count.max(1),
        sizes.last().unwrap_or(&0),
    );
    format!(
        "{count} sizes: p10 {p10}, p50 {p50}, p90 {p90}, p99 {p99}, mean {mean}, largest {most} B"
    )
}

/// Prints the number of tools, and of bytes of definitions, at which both ways cost the same, by linear
/// interpolation.
#[expect(clippy::cast_precision_loss, reason = "no figure is that large")]
fn break_even(what: &str, rows: &[Row], listing: &[&str], searching: &[&str]) {
    let gain = |row: &Row| row.sum(listing, 0) as f64 - row.sum(searching, 0) as f64;
    let Some([before, after]) = rows.array_windows().find(|[_, row]| gain(row) > 0.0) else {
        return;
    };
    let part = gain(before) / (gain(before) - gain(after));
    let at = |from: usize, to: usize| from as f64 + (to as f64 - from as f64) * part;
    let (tools, bytes) = (
        at(before.tools, after.tools),
        at(before.definitions, after.definitions),
    );
    println!("Break-even in tokens, {what}: {tools:.1} tools, {bytes:.0} B of definitions");
}
