//! The cost of operations with a number of memories, through the real program.

use std::{
    fs::File,
    io::Write,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use switchboard_wire::Era;

use super::{
    Plan,
    client::{Client, Times},
    fill::{self, Home},
    meanings::Question,
    texts::{Dice, NAMESPACES, namespace},
};
use crate::{Result, gateway::process};

/// Longer than all measurements of one size take.
const PATIENCE: Duration = Duration::from_mins(30);
/// Number of results that are compared with those of an exact search.
const BEST: usize = 10;

/// Results at one size.
pub(super) struct Found {
    pub(super) memories: u64,
    /// Memories filled in per second.
    pub(super) filled: f64,
    pub(super) megabytes: f64,
    /// Seconds from the start until the index was ready, and until the vectors were.
    pub(super) index_ready: f64,
    pub(super) vectors_ready: f64,
    pub(super) resident: f64,
    pub(super) peak: f64,
    pub(super) index_megabytes: f64,
    pub(super) times: Vec<(&'static str, Times)>,
    /// The share of the results of an exact search that was found, with a filter and without.
    pub(super) exact_filtered: f64,
    pub(super) exact: f64,
    /// Memory at the end, in MB.
    pub(super) resident_after: f64,
}

impl Found {
    pub(super) fn of(&self, operation: &str) -> Option<&Times> {
        let found = self.times.iter().find(|(name, _)| *name == operation);
        found.map(|(_, times)| times)
    }
}

pub(super) const STORE: &str = "store_memory";
pub(super) const UPDATE: &str = "update_memory";
pub(super) const DELETE: &str = "delete_memory";
pub(super) const GET: &str = "get_memory";
pub(super) const LEXICAL: &str = "search_memory text";
pub(super) const LEXICAL_1: &str = "search_memory text, 1 %";
pub(super) const VECTOR: &str = "search_memory vector";
pub(super) const VECTOR_1: &str = "search_memory vector, 1 %";
pub(super) const FUSED: &str = "recall";
pub(super) const FUSED_1: &str = "recall, 1 %";
const LIST: &str = "list_memories";
const LIST_1: &str = "list_memories, 1 %";
const STATUS: &str = "get_status";
const SYNC: &str = "(write and sync 4 KiB)";

/// The kinds of searches: name, tool, mode, and `true` if restricted to one namespace.
const SEARCHES: [(&str, &str, Option<&str>, bool); 6] = [
    (LEXICAL_1, "search_memory", Some("text"), true),
    (FUSED_1, "recall", None, true),
    (VECTOR_1, "search_memory", Some("vector"), true),
    (LEXICAL, "search_memory", Some("text"), false),
    (FUSED, "recall", None, false),
    (VECTOR, "search_memory", Some("vector"), false),
];

pub(super) fn measure(
    plan: &Plan<'_>,
    home: &Home,
    memories: u64,
    filled: Duration,
) -> Result<Found> {
    let megabytes = home.megabytes()?;
    let begin = Instant::now();
    let mut client = Client::open(home.serve(plan.switchboard), Era::Legacy, PATIENCE)?;
    let (index_ready, vectors_ready) = until_ready(&mut client, begin)?;
    let (status, _) = client.call("get_status", json!({}))?;
    if status["memories"] != memories {
        return Err(format!("expected {memories} memories: {status}").into());
    }
    let (resident, peak) = (
        process::resident(client.pid())?,
        process::peak(client.pid())?,
    );
    let mut times: Vec<(&'static str, Times)> = Vec::new();
    let (exact_filtered, exact) = compare(plan, &mut client, memories)?;
    search(plan, &mut client, memories, &mut times)?;
    read(plan, &mut client, memories, &mut times)?;
    write(plan, &mut client, memories, home, &mut times)?;
    let resident_after = process::resident(client.pid())?;
    client.leave()?;
    let bytes = status["parts"]["index"]["bytes"].as_f64().unwrap_or(0.0);
    #[expect(clippy::cast_precision_loss)]
    let filled = memories as f64 / filled.as_secs_f64();
    Ok(Found {
        memories,
        filled,
        megabytes,
        index_ready,
        vectors_ready,
        resident,
        peak,
        index_megabytes: bytes / (1024.0 * 1024.0),
        times,
        exact_filtered,
        exact,
        resident_after,
    })
}

/// Seconds until the index is ready, and until vectors are.
fn until_ready(client: &mut Client, begin: Instant) -> Result<(f64, f64)> {
    let mut index = None;
    loop {
        let (status, _) = client.call("get_status", json!({}))?;
        let parts = &status["parts"];
        if status["status"] == "error" {
            return Err(format!("the memory does not work: {status}").into());
        }
        if index.is_none() && parts["index"]["state"] == "ready" {
            index = Some(begin.elapsed().as_secs_f64());
        }
        if let Some(index) = index
            && parts["embeddings"]["state"] == "ready"
            && parts["embeddings"]["waiting"] == 0
        {
            return Ok((index, begin.elapsed().as_secs_f64()));
        }
        if begin.elapsed() > PATIENCE {
            return Err(format!("the memory is not ready in time: {status}").into());
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// The memory that a search asks about: the same for every kind of search.
fn asked(round: usize, memories: u64) -> u64 {
    Dice::new(round as u64 ^ 0x0a5c).roll() % memories
}

/// The share of the results of an exact search that a vector search finds, within a namespace and in all.
fn compare(plan: &Plan<'_>, client: &mut Client, memories: u64) -> Result<(f64, f64)> {
    let question = |round: usize, filtered: bool| {
        let number = asked(round, memories);
        Question {
            text: plan.texts.question(number),
            namespace: filtered.then_some(number % NAMESPACES),
        }
    };
    let filtered = (0..plan.compared).map(|round| question(round, true));
    let all = (0..plan.compared / 4).map(|round| question(round, false));
    let questions: Vec<Question> = filtered.chain(all).collect();
    let best = plan.meanings.exact(memories, &questions, BEST)?;
    let mut shares = [(0, 0); 2];
    for (question, best) in questions.iter().zip(&best) {
        let mut arguments = json!({"query": question.text, "mode": "vector", "limit": BEST});
        if let Some(of) = question.namespace {
            arguments["namespace"] = json!(namespace(of));
        }
        let (found, _) = client.call("search_memory", arguments)?;
        let found: Vec<u64> = ids(&found).filter_map(fill::number).collect();
        let share = &mut shares[usize::from(question.namespace.is_none())];
        share.0 += best.hits(&found);
        share.1 += best.answers.len();
    }
    #[expect(clippy::cast_precision_loss)]
    let [filtered, all] = shares.map(|(hits, of)| hits as f64 / of.max(1) as f64);
    Ok((filtered, all))
}

fn ids(found: &Value) -> impl Iterator<Item = &str> {
    let memories = found["memories"].as_array().into_iter().flatten();
    memories.filter_map(|memory| memory["id"].as_str())
}

/// Runs searches of every kind in turns, so that other activity on the machine affects all of them alike.
fn search(
    plan: &Plan<'_>,
    client: &mut Client,
    memories: u64,
    times: &mut Vec<(&'static str, Times)>,
) -> Result<()> {
    let mut taken = SEARCHES.map(|(name, ..)| (name, Times::default()));
    for round in 0..plan.searches {
        let number = asked(round + 10_000, memories);
        for ((_, tool, mode, filtered), (_, times)) in SEARCHES.iter().zip(&mut taken) {
            let mut arguments = json!({"query": plan.texts.question(number), "limit": 10});
            if let Some(mode) = mode {
                arguments["mode"] = json!(mode);
            }
            if *filtered {
                arguments["namespace"] = json!(namespace(number));
            }
            let found = client.timed(times, tool, arguments)?;
            if found["memories"].as_array().is_none_or(Vec::is_empty) {
                return Err(format!("{tool} found nothing of memory {number}: {found}").into());
            }
        }
    }
    times.extend(taken);
    Ok(())
}

fn read(
    plan: &Plan<'_>,
    client: &mut Client,
    memories: u64,
    times: &mut Vec<(&'static str, Times)>,
) -> Result<()> {
    let mut taken = [GET, LIST_1, LIST, STATUS].map(|name| (name, Times::default()));
    for round in 0..plan.reads {
        let number = asked(round + 20_000, memories);
        let calls = [
            ("get_memory", json!({"id": fill::id(number)})),
            ("list_memories", json!({"namespace": namespace(number)})),
            ("list_memories", json!({})),
            ("get_status", json!({})),
        ];
        for ((tool, arguments), (_, times)) in calls.into_iter().zip(&mut taken) {
            client.timed(times, tool, arguments)?;
        }
    }
    times.extend(taken);
    Ok(())
}

/// Stores, changes and deletes memories, each of which is acknowledged when it is on disk; and measures the
/// disk itself.
fn write(
    plan: &Plan<'_>,
    client: &mut Client,
    memories: u64,
    home: &Home,
    times: &mut Vec<(&'static str, Times)>,
) -> Result<()> {
    let mut taken = [STORE, UPDATE, DELETE, SYNC].map(|name| (name, Times::default()));
    let mut file = File::create(home.path().join("sync"))?;
    for round in 0..plan.writes as u64 {
        let number = memories + round * 2;
        let [store, update, delete, sync] = &mut taken;
        let arguments = json!({"content": plan.texts.text(number), "namespace": namespace(number)});
        let stored = client.timed(&mut store.1, "store_memory", arguments)?;
        let id = stored["id"]
            .as_str()
            .ok_or("the memory has no ID")?
            .to_owned();
        let content = plan.texts.text(number + 1);
        let change = json!({"id": id, "content": content});
        client.timed(&mut update.1, "update_memory", change)?;
        // Every second memory stays.
        if round % 2 == 0 {
            client.timed(&mut delete.1, "delete_memory", json!({"id": id}))?;
        }
        let begin = Instant::now();
        file.write_all(&[b'x'; 4096])?;
        file.sync_data()?;
        sync.1.add(begin.elapsed());
    }
    times.extend(taken);
    Ok(())
}
