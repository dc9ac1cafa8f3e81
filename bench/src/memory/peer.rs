//! The same operations with the reference server, `@modelcontextprotocol/server-memory`. It keeps everything
//! in one file of lines, which it reads for every call and rewrites for every change.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use switchboard_wire::Era;
use tempfile::TempDir;

use super::{
    Plan,
    client::{Client, Times},
    operations as ours,
    texts::Dice,
};
use crate::{Result, gateway::process};

/// The longest time for one size, after which the measurement is cut off.
const PATIENCE: Duration = Duration::from_mins(1);
/// Number of rounds of each operation, unless cut off.
const ROUNDS: usize = 100;

/// The installed server.
pub(super) struct Peer {
    node: PathBuf,
    script: PathBuf,
    pub(super) version: String,
}

/// Results at one size.
pub(super) struct Found {
    pub(super) memories: u64,
    /// For each operation: its name there, the operations here that it is compared with, and its durations.
    pub(super) times: Vec<(&'static str, &'static [&'static str], Times)>,
    /// Memory at the end, in MB.
    pub(super) resident: Option<f64>,
    /// The reason that it was cut off.
    pub(super) cut_off: Option<String>,
}

/// Each operation, with the operations that it is compared with.
const OPERATIONS: [(&str, &[&str]); 4] = [
    ("create_entities", &[ours::STORE]),
    ("add_observations", &[ours::UPDATE]),
    ("search_nodes", &[ours::LEXICAL, ours::FUSED]),
    ("open_nodes", &[ours::GET]),
];

impl Peer {
    /// The server in this directory of tools, if it is installed.
    pub(super) fn find(tools: &Path) -> Option<Self> {
        let package = tools.join("peers/node_modules/@modelcontextprotocol/server-memory");
        let about: Value =
            serde_json::from_slice(&fs::read(package.join("package.json")).ok()?).ok()?;
        let peer = Self {
            node: tools.join("node/bin/node"),
            script: package.join("dist/index.js"),
            version: about["version"].as_str()?.to_owned(),
        };
        (peer.node.exists() && peer.script.exists()).then_some(peer)
    }

    pub(super) fn measure(&self, plan: &Plan<'_>, memories: u64) -> Result<Found> {
        let dir = tempfile::Builder::new().prefix("sb-bench-").tempdir()?;
        fill(plan, &dir, memories)?;
        let mut found = Found {
            memories,
            times: OPERATIONS
                .map(|(name, held_against)| (name, held_against, Times::default()))
                .to_vec(),
            resident: None,
            cut_off: None,
        };
        if let Err(error) = self.rounds(plan, &dir, &mut found) {
            found.cut_off = Some(error.to_string());
        }
        Ok(found)
    }

    fn rounds(&self, plan: &Plan<'_>, dir: &TempDir, found: &mut Found) -> Result<()> {
        let mut command = Command::new(&self.node);
        command
            .arg(&self.script)
            .env("MEMORY_FILE_PATH", dir.path().join("memory.jsonl"));
        let begin = Instant::now();
        let mut client = Client::open(command, Era::Legacy, PATIENCE)?;
        for round in 0..ROUNDS {
            let number = Dice::new(round as u64 ^ 0x0bee).roll() % found.memories;
            let new = found.memories + round as u64;
            let calls = [
                json!({"entities": [entity(plan, new)]}),
                json!({"observations": [{
                    "entityName": name(new),
                    "contents": [plan.texts.text(new + 1)],
                }]}),
                json!({"query": plan.texts.rare_word(number)}),
                json!({"names": [name(number)]}),
            ];
            for (arguments, (tool, _, times)) in calls.into_iter().zip(&mut found.times) {
                let left = PATIENCE.saturating_sub(begin.elapsed());
                if left.is_zero() {
                    break;
                }
                times.add(client.call(tool, arguments)?.1);
            }
            found.resident = Some(process::resident(client.pid())?);
            if begin.elapsed() * 10 > PATIENCE * 9 {
                found.cut_off = Some(format!(
                    "after {} of {ROUNDS} rounds, because the time was up",
                    round + 1
                ));
                break;
            }
        }
        client.leave()
    }
}

fn name(number: u64) -> String {
    format!("memory {number}")
}

fn entity(plan: &Plan<'_>, number: u64) -> Value {
    json!({"name": name(number), "entityType": "memory", "observations": [plan.texts.text(number)]})
}

fn fill(plan: &Plan<'_>, dir: &TempDir, memories: u64) -> Result<()> {
    let mut file = BufWriter::new(File::create(dir.path().join("memory.jsonl"))?);
    for number in 0..memories {
        let mut line = entity(plan, number);
        line["type"] = json!("entity");
        writeln!(file, "{line}")?;
    }
    file.flush()?;
    Ok(())
}
