//! Measures the speed of tool search and the size of the index, at 1,000, 10,000 and 100,000 tools.

use std::{path::Path, sync::Arc, time::Duration};

use switchboard_embed::{Embedder, Joined, MiniLm, ModelError, Role, StaticTable};
use switchboard_search::{
    Cache, Filter, Index, Language, Learnt, Meaning, Query, Segment, Tool, Vectors,
    WORDS_BESIDE_SENTENCES, WORDS_BESIDE_TABLE,
};
use switchboard_wire::Raw;

/// Number of tools per server.
const SERVER: usize = 200;
/// Number of queries per measurement.
const QUERIES: usize = 400;

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let most = if arguments.iter().any(|one| one == "--quick") {
        10_000
    } else {
        100_000
    };
    let language = Language::built_in();
    let table = StaticTable::built_in();
    let model = std::env::var_os("SWITCHBOARD_MODEL");
    let model = model
        .map(|folder| MiniLm::open(Path::new(&folder)))
        .transpose();
    let model = model.map_err(|error| error.to_string())?.map(Joined::new);
    println!(
        "| tools | index | vectors | memory | words p50 | p99 | built-in p50 | p99 | sentence model p50 | p99 |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for count in [1_000, 10_000, 100_000]
        .into_iter()
        .filter(|count| *count <= most)
    {
        let definitions = corpus(count);
        let servers: Vec<Vec<Tool<'_>>> = definitions
            .chunks(SERVER)
            .map(|tools| tools.iter().map(|(name, raw)| tool(name, raw)).collect())
            .collect();
        let before = resident();
        let started = processor_time();
        let segments: Vec<Arc<Segment>> = servers
            .iter()
            .enumerate()
            .map(|(at, tools)| {
                let name = format!("server{at}");
                Arc::new(Segment::new(&name, &language, tools.iter().copied()))
            })
            .collect();
        let mut index = Index::from_segments(segments.iter().cloned());
        let words = processor_time().saturating_sub(started);
        let started = processor_time();
        for (segment, tools) in segments.iter().zip(&servers) {
            let vectors = Vectors::new(tools, table, &mut Cache::none(), &|| true);
            if let Ok(Some(vectors)) = vectors {
                index = index.with_vectors(segment, vectors);
            }
        }
        let vectors = processor_time().saturating_sub(started);
        let memory = resident().saturating_sub(before) / 1024;
        let queries = queries(&definitions);
        let bare = Index::from_segments(segments.iter().cloned());
        let by_words = times(&queries, |query| find(&bare, &language, query, None));
        let by_table = times(&queries, |query| {
            let vector = table.vector(query);
            find(
                &index,
                &language,
                query,
                meaning(table, vector.as_deref(), WORDS_BESIDE_TABLE),
            );
        });
        let by_model = model.as_ref().filter(|_| count == 10_000).map(|model| {
            // The values of a vector do not affect the time of a comparison.
            let mut index = bare.clone();
            for (segment, tools) in segments.iter().zip(&servers) {
                let same = Same(model);
                let vectors = Vectors::new(tools, &same, &mut Cache::none(), &|| true);
                if let Ok(Some(vectors)) = vectors {
                    index = index.with_vectors(segment, vectors);
                }
            }
            times(&queries, |query| {
                let vector = model.embed(Role::Query, query).ok().flatten();
                let meaning = meaning(model, vector.as_deref(), WORDS_BESIDE_SENTENCES);
                find(&index, &language, query, meaning);
            })
        });
        let last = by_model.map_or_else(
            || "| |".to_owned(),
            |(p50, p99)| format!("{p50:.1?} | {p99:.1?} |"),
        );
        println!(
            "| {count} | {words:.0?} | {vectors:.0?} | {memory} MB | {:.0?} | {:.0?} | {:.0?} | {:.0?} | {last}",
            by_words.0, by_words.1, by_table.0, by_table.1,
        );
    }
    Ok(())
}

/// A model that gives every tool the same vector, with the dimensions of another model.
struct Same<'a>(&'a Joined);

impl Embedder for Same<'_> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn fingerprint(&self) -> &str {
        self.0.fingerprint()
    }

    fn dimensions(&self) -> usize {
        self.0.dimensions()
    }

    fn embed(&self, _: Role, _: &str) -> Result<Option<Vec<f32>>, ModelError> {
        Ok(Some(vec![0.04; self.dimensions()]))
    }

    fn embed_all(&self, role: Role, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        texts.iter().map(|text| self.embed(role, text)).collect()
    }
}

fn tool<'a>(name: &'a str, definition: &'a Raw) -> Tool<'a> {
    Tool {
        name,
        definition,
        trusted: true,
    }
}

fn meaning<'a>(
    model: &'a dyn Embedder,
    vector: Option<&'a [f32]>,
    words: f32,
) -> Option<Meaning<'a>> {
    vector.map(|vector| Meaning {
        model: model.fingerprint(),
        vector,
        words,
    })
}

fn find(index: &Index, language: &Language, text: &str, meaning: Option<Meaning<'_>>) {
    let query = Query {
        text,
        limit: 5,
        filter: Filter::default(),
        explain: false,
    };
    std::hint::black_box(index.search(language, &Learnt::default(), meaning, &query));
}

/// The CPU time of this thread. Other processes do not affect it.
fn processor_time() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(spent).unwrap_or_default()
}

/// The median and the 99th percentile of the CPU time.
fn times(queries: &[String], mut run: impl FnMut(&str)) -> (Duration, Duration) {
    queries.iter().take(20).for_each(|query| run(query));
    let mut times: Vec<Duration> = queries
        .iter()
        .map(|query| {
            let started = processor_time();
            run(query);
            processor_time().saturating_sub(started)
        })
        .collect();
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

pub(crate) const ACTS: [&str; 24] = [
    "create",
    "delete",
    "list",
    "update",
    "search",
    "get",
    "send",
    "upload",
    "download",
    "archive",
    "assign",
    "close",
    "open",
    "merge",
    "deploy",
    "restart",
    "export",
    "import",
    "translate",
    "summarize",
    "schedule",
    "cancel",
    "approve",
    "convert",
];
pub(crate) const THINGS: [&str; 48] = [
    "issue",
    "repository",
    "branch",
    "commit",
    "file",
    "folder",
    "document",
    "page",
    "message",
    "channel",
    "email",
    "calendar event",
    "meeting",
    "contact",
    "customer",
    "invoice",
    "payment",
    "order",
    "product",
    "coupon",
    "ticket",
    "flight",
    "hotel",
    "recipe",
    "song",
    "playlist",
    "video",
    "image",
    "database table",
    "query",
    "index",
    "cluster",
    "container",
    "log entry",
    "metric",
    "alert",
    "dashboard",
    "report",
    "spreadsheet",
    "presentation",
    "note",
    "reminder",
    "task",
    "project",
    "milestone",
    "webhook",
    "secret",
    "token",
];
pub(crate) const DETAILS: [&str; 16] = [
    "in the given workspace",
    "for the current user",
    "by its identifier",
    "with optional filters",
    "and returns the result as JSON",
    "including archived ones",
    "in the given time zone",
    "with pagination",
    "matching a text",
    "from a template",
    "as a background job",
    "with the given permissions",
    "and notifies its owner",
    "sorted by date",
    "in bulk",
    "without confirmation",
];

/// Generated tools that differ from each other, with four parameters each.
fn corpus(count: usize) -> Vec<(String, Raw)> {
    (0..count)
        .map(|n| {
            let act = ACTS[n % ACTS.len()];
            let thing = THINGS[n / ACTS.len() % THINGS.len()];
            let detail = |by: usize| DETAILS[(n / by + n) % DETAILS.len()];
            let name = format!("{act}_{}_{n}", thing.replace(' ', "_"));
            let definition = serde_json::json!({
                "name": name,
                "description": format!("{act} a {thing} {}, {} and {}. Number {n} of its kind.", detail(3), detail(7), detail(11)),
                "inputSchema": {"type": "object", "properties": {
                    "id": {"type": "string", "description": format!("The identifier of the {thing}")},
                    "workspace": {"type": "string", "description": "The workspace to look in"},
                    "limit": {"type": "integer", "description": "How many results to return"},
                    "filter": {"type": "string", "enum": ["open", "closed", "all"], "description": "Which ones"},
                }, "required": ["id"]},
            });
            (name, Raw::from_value(&definition).unwrap_or_else(|_| Raw::empty_object()))
        })
        .collect()
}

/// Queries in natural language.
fn queries(tools: &[(String, Raw)]) -> Vec<String> {
    (0..QUERIES)
        .map(|n| {
            let at = n * 7919 % tools.len();
            let act = ACTS[at % ACTS.len()];
            let thing = THINGS[at / ACTS.len() % THINGS.len()];
            match n % 3 {
                0 => format!("{act} {thing}"),
                1 => format!("I would like to {act} the {thing} that my colleague mentioned yesterday, can you help?"),
                _ => format!("How do I {act} several {thing}s {}?", DETAILS[n % DETAILS.len()]),
            }
        })
        .collect()
}

/// Resident memory, in kilobytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
