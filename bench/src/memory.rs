//! The cost of memories: the built-in memory with 1,000 to 300,000 of them, through the real program, in
//! every state of its store, compared with the reference server in the same run.

mod client;
mod fill;
mod meanings;
mod operations;
mod peer;
mod starts;
mod texts;

use std::{path::Path, path::PathBuf};

use crate::{
    Effort, Result,
    gateway::{Bound, GOALS, goal, process},
    report::{Cell, Report, Table},
};
use fill::Home;
use meanings::Meanings;
use operations as of;
use peer::Peer;
use starts::{Said, Started};
use texts::Texts;

/// The default numbers of memories.
const SIZES: [u64; 4] = [1_000, 10_000, 100_000, 300_000];
const QUICK_SIZES: [u64; 1] = [2_000];
/// The most milliseconds that a start may take longer than `cat`.
const AT_MOST: f64 = 10.0;
/// The share of the results of an exact search that has to be found.
const OF_EXACT: f64 = 0.95;

/// Settings of the measurement.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) effort: Effort,
    /// The measured program.
    pub(crate) switchboard: PathBuf,
    /// Numbers of memories; if empty, the defaults.
    pub(crate) sizes: Vec<u64>,
    /// The directory of a sentence model; `None` for the built-in one.
    pub(crate) model: Option<PathBuf>,
    /// The directory of tools, where the reference server is installed.
    pub(crate) tools: Option<PathBuf>,
}

/// The extent of the measurement, and its inputs.
struct Plan<'a> {
    switchboard: &'a Path,
    model: Option<&'a Path>,
    texts: &'a Texts,
    meanings: &'a Meanings<'a>,
    starts: usize,
    /// Rounds of each kind.
    searches: usize,
    reads: usize,
    writes: usize,
    /// Number of searches that are compared with exact ones.
    compared: usize,
}

impl<'a> Plan<'a> {
    fn new(settings: &'a Settings, texts: &'a Texts, meanings: &'a Meanings<'a>) -> Self {
        let (starts, searches, reads, writes, compared) = match settings.effort {
            Effort::Quick => (3, 20, 20, 20, 20),
            Effort::Full => (30, 200, 200, 300, 100),
        };
        Self {
            switchboard: &settings.switchboard,
            model: settings.model.as_deref(),
            texts,
            meanings,
            starts,
            searches,
            reads,
            writes,
            compared,
        }
    }
}

pub(crate) fn run(settings: &Settings) -> Result<Report> {
    let load_before = process::load_average();
    let texts = Texts::new();
    let meanings = Meanings::new(&texts, settings.model.as_deref())?;
    let plan = Plan::new(settings, &texts, &meanings);
    let sizes = match (settings.sizes.as_slice(), settings.effort) {
        ([], Effort::Full) => SIZES.to_vec(),
        ([], Effort::Quick) => QUICK_SIZES.to_vec(),
        (sizes, _) => sizes.to_vec(),
    };
    let peer = settings.tools.as_deref().and_then(Peer::find);
    let mut found = Vec::new();
    let mut peers = Vec::new();
    let mut largest = None;
    for memories in &sizes {
        let home = Home::new(settings.model.as_deref())?;
        let filled = fill::fill(&home, *memories, &texts, &meanings)?;
        found.push(of::measure(&plan, &home, *memories, filled)?);
        if let Some(peer) = &peer {
            peers.push(peer.measure(&plan, *memories)?);
        }
        largest = Some(home);
    }
    let largest = largest.ok_or("no sizes are given")?;
    let (cats, started, said) = starts::race(&plan, &largest)?;

    let mut goals = Vec::new();
    for found in &found {
        goals.extend(goals_of(found));
    }
    goals.extend(started.iter().map(|started| {
        let more = started.times.at(50) - cats.at(50);
        let name = format!("exec to tools/list, {}: ms more than cat", started.name);
        goal(&name, Some(more), Bound::AtMost(AT_MOST))
    }));
    goals.extend(said.iter().map(|said| {
        let wrong = f64::from(u8::from(!said.is_right));
        let name = format!("{}: not told, or not how to mend it", said.name);
        goal(&name, Some(wrong), Bound::AtMost(0.0))
    }));
    let mut tables = vec![
        Table {
            title: "Memory: goals",
            columns: GOALS.to_vec(),
            rows: goals,
        },
        times_table(&found),
        sizes_table(&found),
        starts_table(&cats, &started),
        said_table(&said),
    ];
    if !peers.is_empty() {
        tables.push(peers_table(&found, &peers));
    }
    let mut notes = vec![
        format!(
            "Texts of 15 to 30 words with natural word frequencies, half of them about one of 600 names, in {} namespaces; the filter selects one namespace. Vectors of {}.{}",
            texts::NAMESPACES,
            meanings.model().name(),
            if settings.model.is_some() {
                " The model has embedded 1,000 of the texts; the vectors of the others are mixtures of these. It embeds all questions."
            } else {
                ""
            }
        ),
        format!(
            "{} alternating searches of each kind, {} reads, {} writes; every write is acknowledged after it is on disk, and the table also shows the time of the disk alone. {} filtered searches by vector and {} others are compared with an exact search in 32-bit numbers, ten results each.",
            plan.searches,
            plan.reads,
            plan.writes,
            plan.compared,
            plan.compared / 4
        ),
        format!(
            "{} starts in each situation, alternating with `cat`, with the largest store. Leaving is the time from the end of input to the exit of the process.",
            plan.starts
        ),
    ];
    match &peer {
        Some(peer) => notes.push(format!(
            "The peer is @modelcontextprotocol/server-memory {} with the same texts. It does not wait for the disk, and finds only texts that contain the query verbatim, so its queries are one rare word.",
            peer.version
        )),
        None => notes.push(
            "Without the peer: it is not installed (scripts/tools.sh installs it).".to_owned(),
        ),
    }
    notes.push(format!(
        "Load average before {load_before}, after {}. Above the number of cores, other programs disturbed the run: trust ratios before times.",
        process::load_average()
    ));
    Ok(Report { tables, notes })
}

fn goals_of(found: &of::Found) -> Vec<Vec<Cell>> {
    let memories = found.memories;
    let p50 = |operation: &str| {
        let times = found.of(operation);
        times
            .filter(|times| !times.is_empty())
            .map(|times| times.at(50))
    };
    let time = |operation: &str, most: f64| {
        let name = format!("{memories} memories: {operation}, p50 ms");
        goal(&name, p50(operation), Bound::AtMost(most))
    };
    vec![
        time(of::STORE, 1.0),
        time(of::LEXICAL_1, 10.0),
        time(of::FUSED_1, 25.0),
        time(of::LEXICAL, 10.0),
        time(of::FUSED, 25.0),
        goal(
            &format!("{memories} memories: vectors with filter, of exact search"),
            Some(found.exact_filtered),
            Bound::AtLeast(OF_EXACT),
        ),
        goal(
            &format!("{memories} memories: vectors without, of exact search"),
            Some(found.exact),
            Bound::AtLeast(OF_EXACT),
        ),
    ]
}

fn times_table(found: &[of::Found]) -> Table {
    let mut rows = Vec::new();
    for found in found {
        for (operation, times) in &found.times {
            rows.push(vec![
                Cell::from(*operation),
                Cell::Count(usize::try_from(found.memories).unwrap_or(usize::MAX)),
                times.count().into(),
                times.at(50).into(),
                times.at(90).into(),
                times.at(99).into(),
                times.at(100).into(),
                times.cpu().into(),
            ]);
        }
    }
    Table {
        title: "Operations, ms",
        columns: vec![
            "operation",
            "memories",
            "times",
            "p50",
            "p90",
            "p99",
            "most",
            "CPU p50",
        ],
        rows,
    }
}

fn sizes_table(found: &[of::Found]) -> Table {
    let rows = found.iter().map(|found| {
        vec![
            Cell::Count(usize::try_from(found.memories).unwrap_or(usize::MAX)),
            found.filled.into(),
            found.megabytes.into(),
            found.index_ready.into(),
            found.vectors_ready.into(),
            found.resident.into(),
            found.peak.into(),
            found.index_megabytes.into(),
            found.resident_after.into(),
        ]
    });
    Table {
        title: "Sizes in MB, and seconds from the start until ready",
        columns: vec![
            "memories",
            "filled/s",
            "on disk",
            "index ready",
            "vectors ready",
            "RSS",
            "peak RSS",
            "index says",
            "RSS after all",
        ],
        rows: rows.collect(),
    }
}

fn starts_table(cats: &client::Times, started: &[Started]) -> Table {
    let mut rows = vec![vec![
        Cell::from("/bin/cat"),
        cats.at(0).into(),
        cats.at(50).into(),
        cats.at(90).into(),
        cats.cpu().into(),
        Cell::Nothing,
        Cell::Nothing,
    ]];
    rows.extend(started.iter().map(|started| {
        vec![
            Cell::from(started.name),
            started.times.at(0).into(),
            started.times.at(50).into(),
            started.times.at(90).into(),
            started.times.cpu().into(),
            (started.times.at(50) - cats.at(50)).into(),
            started.leaving.at(50).into(),
        ]
    }));
    Table {
        title: "From exec to the response to tools/list, ms",
        columns: vec![
            "start",
            "least",
            "p50",
            "p90",
            "CPU p50",
            "p50 more than cat",
            "leaving",
        ],
        rows,
    }
}

fn said_table(said: &[Said]) -> Table {
    let mut rows = Vec::new();
    for said in said {
        let recovered = said
            .recovered
            .map(|seconds| format!("{seconds:.2} s after its end"));
        let told = [
            ("get_status", &said.status),
            ("a call, 2025-11-25", &said.legacy),
            ("a call, 2026-07-28", &said.modern),
        ];
        for (whom, text) in told {
            rows.push(vec![
                Cell::from(said.name),
                whom.into(),
                Cell::Text(text.clone()),
            ]);
        }
        if let Some(recovered) = recovered {
            rows.push(vec![
                Cell::from(said.name),
                "works again".into(),
                Cell::Text(recovered),
            ]);
        }
    }
    Table {
        title: "Reports of a store that does not work",
        columns: vec!["store", "by", "what"],
        rows,
    }
}

fn peers_table(found: &[of::Found], peers: &[peer::Found]) -> Table {
    let mut rows = Vec::new();
    for peer in peers {
        let ours = found.iter().find(|found| found.memories == peer.memories);
        let rivals = peer
            .times
            .iter()
            .flat_map(|(operation, held_against, times)| {
                held_against
                    .iter()
                    .map(move |ours| (operation, ours, times))
            });
        for (operation, held_against, times) in rivals {
            let own = ours.and_then(|ours| ours.of(held_against));
            let own = own
                .filter(|times| !times.is_empty())
                .map(|times| times.at(50));
            let theirs = (!times.is_empty()).then(|| times.at(50));
            rows.push(vec![
                Cell::Text(format!("{operation} / {held_against}")),
                Cell::Count(usize::try_from(peer.memories).unwrap_or(usize::MAX)),
                times.count().into(),
                theirs.zip(own).map(|(theirs, own)| theirs / own).into(),
                theirs.into(),
                (!times.is_empty()).then(|| times.at(99)).into(),
                own.into(),
                peer.resident.into(),
                Cell::Text(peer.cut_off.clone().unwrap_or_default()),
            ]);
        }
    }
    Table {
        title: "The reference server relative to this one: p50 in ms",
        columns: vec![
            "theirs / ours",
            "memories",
            "times",
            "ratio",
            "theirs",
            "theirs p99",
            "ours",
            "its RSS, MB",
            "cut off",
        ],
        rows,
    }
}
