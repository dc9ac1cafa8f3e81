//! `cargo xtask eval search`: measures how often the right tool is found, channel by channel.
//!
//! The set of queries is a JSON document `{tools: [{name, description, …}], queries: [{query, tool}]}`. All
//! tools are indexed as tools of one server; every query asks for one tool.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Deserialize;
use switchboard_embed::{Embedder, Joined, MiniLm, Role, StaticTable};
use switchboard_search::{
    Cache, Filter, Index, Language, Learnt, Meaning, Query, Segment, Tool, Vectors,
    WORDS_BESIDE_SENTENCES, WORDS_BESIDE_TABLE,
};
use switchboard_wire::Raw;

const HELP: &str = "usage: switchboard-eval search SET.json [--model FOLDER]";

#[derive(Deserialize)]
struct Set {
    tools: Vec<Raw>,
    queries: Vec<Asked>,
}

#[derive(Deserialize)]
struct Asked {
    query: String,
    tool: String,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let mut arguments = arguments.iter();
    let mut set = std::env::var_os("SWITCHBOARD_QUERIES").map(PathBuf::from);
    let mut model = std::env::var_os("SWITCHBOARD_MODEL").map(PathBuf::from);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--model" => model = Some(arguments.next().ok_or(HELP)?.into()),
            other if other.starts_with('-') => return Err(HELP.to_owned()),
            path => set = Some(path.into()),
        }
    }
    let set = set.ok_or(HELP)?;
    let file = std::fs::read(&set).map_err(|error| format!("{}: {error}", set.display()))?;
    let set: Set = serde_json::from_slice(&file).map_err(|error| error.to_string())?;
    measure(&set, model.as_deref())
}

fn measure(set: &Set, model: Option<&Path>) -> Result<(), String> {
    let names: Vec<String> = set
        .tools
        .iter()
        .map(|tool| {
            tool.member("name")
                .and_then(|name| name.to_text())
                .unwrap_or_default()
        })
        .collect();
    let tools: Vec<Tool<'_>> = names
        .iter()
        .zip(&set.tools)
        .map(|(name, definition)| Tool {
            name,
            definition,
            trusted: true,
        })
        .collect();
    println!("{} tools, {} queries", tools.len(), set.queries.len());
    println!("| channel | hit@1 | hit@5 | nDCG@5 | per query |");
    println!("|---|---|---|---|---|");
    let bench = Bench::new(set, &tools);
    bench.row("words", None, 1.0);
    let table = StaticTable::built_in();
    bench.row_of("built-in vectors", table, 0.0)?;
    bench.row_of("words + built-in vectors", table, WORDS_BESIDE_TABLE)?;
    if let Some(folder) = model {
        let open = || MiniLm::open(folder).map_err(|error| error.to_string());
        let sentences = open()?;
        bench.row_of("sentence model", &sentences, 0.0)?;
        bench.row_of("words + sentence model", &sentences, WORDS_BESIDE_SENTENCES)?;
        let joined = Joined::new(sentences);
        bench.row_of(
            "words + sentence model + built-in",
            &joined,
            WORDS_BESIDE_SENTENCES,
        )?;
    }
    bench.lessons();
    Ok(())
}

struct Bench<'a> {
    set: &'a Set,
    tools: &'a [Tool<'a>],
    language: Language,
    segment: Arc<Segment>,
    index: Index,
}

impl<'a> Bench<'a> {
    fn new(set: &'a Set, tools: &'a [Tool<'a>]) -> Self {
        let language = Language::built_in();
        let segment = Arc::new(Segment::new("tools", &language, tools.iter().copied()));
        Self {
            set,
            tools,
            index: Index::default().with("tools", Some(Arc::clone(&segment))),
            language,
            segment,
        }
    }

    fn row_of(&self, name: &str, model: &dyn Embedder, words: f32) -> Result<(), String> {
        let vectors = Vectors::new(self.tools, model, &mut Cache::none(), &|| true);
        let vectors = vectors.map_err(|error| error.to_string())?;
        let Some(vectors) = vectors else {
            return Ok(());
        };
        let with = Self {
            index: self.index.with_vectors(&self.segment, vectors),
            language: Language::built_in(),
            segment: Arc::clone(&self.segment),
            ..*self
        };
        with.row(name, Some(model), words);
        Ok(())
    }

    fn row(&self, name: &str, model: Option<&dyn Embedder>, words: f32) {
        let learnt = Learnt::default();
        let mut score = Score::default();
        let mut spent = Duration::ZERO;
        for asked in &self.set.queries {
            let started = Instant::now();
            let place = self.place(asked, model, words, &learnt);
            spent += started.elapsed();
            score.add(place);
        }
        let each = spent / u32::try_from(self.set.queries.len().max(1)).unwrap_or(u32::MAX);
        println!("| {name} | {score} | {each:.0?} |");
    }

    /// Measures the effect of learning: learns from every other query, and asks the rest.
    fn lessons(&self) {
        let mut learnt = Learnt::default();
        for asked in self.set.queries.iter().step_by(2) {
            learnt.learn(&self.language, &asked.query, "tools", &asked.tool);
        }
        let table = StaticTable::built_in();
        let vectors = Vectors::new(self.tools, table, &mut Cache::none(), &|| true);
        let Ok(Some(vectors)) = vectors else {
            return;
        };
        let with = Self {
            index: self.index.with_vectors(&self.segment, vectors),
            language: Language::built_in(),
            segment: Arc::clone(&self.segment),
            ..*self
        };
        let untaught = Learnt::default();
        for (name, learnt) in [
            ("the other half, without feedback", &untaught),
            ("with feedback", &learnt),
        ] {
            let mut score = Score::default();
            for asked in self.set.queries.iter().skip(1).step_by(2) {
                score.add(with.place(asked, Some(table), WORDS_BESIDE_TABLE, learnt));
            }
            println!("| {name} | {score} | |");
        }
        println!("({} feedback entries were kept)", learnt.len());
    }

    /// The rank of the right tool.
    fn place(
        &self,
        asked: &Asked,
        model: Option<&dyn Embedder>,
        words: f32,
        learnt: &Learnt,
    ) -> Option<usize> {
        let vector = model.and_then(|model| model.embed(Role::Query, &asked.query).ok().flatten());
        let meaning = model.zip(vector.as_deref()).map(|(model, vector)| Meaning {
            model: model.fingerprint(),
            vector,
            words,
        });
        let query = Query {
            text: &asked.query,
            limit: 5,
            filter: Filter::default(),
            explain: false,
        };
        let found = self.index.search(&self.language, learnt, meaning, &query);
        found.hits.iter().position(|hit| *hit.name == *asked.tool)
    }
}

#[derive(Default)]
struct Score {
    count: f64,
    first: f64,
    fifth: f64,
    gain: f64,
}

impl Score {
    #[allow(clippy::cast_precision_loss, reason = "a place is below 5")]
    fn add(&mut self, place: Option<usize>) {
        self.count += 1.0;
        if let Some(place) = place {
            self.fifth += 1.0;
            self.first += f64::from(u8::from(place == 0));
            self.gain += 1.0 / (place as f64 + 2.0).log2();
        }
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.count.max(1.0);
        write!(
            f,
            "{:.3} | {:.3} | {:.3}",
            self.first / count,
            self.fifth / count,
            self.gain / count
        )
    }
}
