//! `cargo xtask eval memory`: measures the share of relevant memories that are recalled, channel by channel.
//!
//! The set is a JSON document `{conversations: [{conversation, turns: [{id, when, speaker, text}], questions:
//! [{question, evidence: [id]}]}]}`. Every turn is a memory, `Speaker: text`, in the namespace of its
//! conversation. It is valid from the time it was said, and learned in the order of the turns; its entities
//! are those found in its text. The recall of a question is the share of its evidence among the first hits.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::Deserialize;
use switchboard_embed::{Embedder, Joined, MiniLm, Quantised, Role, StaticTable};
use switchboard_recall::{Channels, Document, Filter, Library, Query, extract};

use crate::recall_speed;

const HELP: &str = "usage: switchboard-eval memory SET.json [--model FOLDER] | memory --size COUNT";

#[derive(Deserialize)]
struct Set {
    conversations: Vec<Conversation>,
}

#[derive(Deserialize)]
struct Conversation {
    #[serde(rename = "conversation")]
    id: String,
    turns: Vec<Turn>,
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Turn {
    id: String,
    when: String,
    speaker: String,
    text: String,
}

#[derive(Deserialize)]
struct Question {
    question: String,
    evidence: Vec<String>,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let mut arguments = arguments.iter();
    let mut set = std::env::var_os("SWITCHBOARD_MEMORIES").map(PathBuf::from);
    let mut model = std::env::var_os("SWITCHBOARD_MODEL").map(PathBuf::from);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--size" => {
                let size = arguments.next().and_then(|size| size.parse().ok());
                recall_speed::measure(size.ok_or(HELP)?);
                return Ok(());
            }
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

const LEXICAL: Channels = Channels {
    lexical: true,
    vector: false,
    graph: false,
};
const VECTOR: Channels = Channels {
    lexical: false,
    vector: true,
    graph: false,
};
const GRAPH: Channels = Channels {
    lexical: false,
    vector: false,
    graph: true,
};
const ALL: Channels = Channels {
    lexical: true,
    vector: true,
    graph: true,
};

fn measure(set: &Set, model: Option<&Path>) -> Result<(), String> {
    let mut bench = Bench::new(set)?;
    let turns: usize = set.conversations.iter().map(|one| one.turns.len()).sum();
    let questions = set.conversations.iter().map(|one| one.questions.len());
    let questions: usize = questions.sum();
    println!("{turns} memories, {questions} questions");
    let names = set.conversations.iter().map(|one| &*one.id);
    let names: Vec<&str> = names.collect();
    println!(
        "| channel | recall@5 | recall@10 | @10 in {} | per query |",
        names.join(" | ")
    );
    println!("|---|---|---|{}---|", "---|".repeat(names.len()));
    bench.row("words", LEXICAL, None);
    bench.row("graph", GRAPH, None);
    bench.row("words + graph", ALL, None);
    let table = StaticTable::built_in();
    bench.rows_of("built-in vectors", table)?;
    if let Some(folder) = model {
        let sentences = MiniLm::open(folder).map_err(|error| error.to_string())?;
        bench.rows_of("sentence model", &sentences)?;
        let joined = Joined::new(sentences);
        bench.rows_of("sentence model + built-in", &joined)?;
    }
    Ok(())
}

struct Bench<'a> {
    set: &'a Set,
    library: Library,
    /// For each conversation: the turn of every row, and the time of the last turn.
    rows: Vec<(BTreeMap<u64, &'a str>, i64)>,
    contents: Vec<(u64, String)>,
}

impl<'a> Bench<'a> {
    fn new(set: &'a Set) -> Result<Self, String> {
        let mut bench = Self {
            set,
            library: Library::default(),
            rows: Vec::new(),
            contents: Vec::new(),
        };
        let mut entities: HashMap<(&str, String), u64> = HashMap::new();
        let mut row = 0;
        for conversation in &set.conversations {
            let namespace = &*conversation.id;
            let scope = [Some(namespace), None, None, None];
            let mut rows = BTreeMap::new();
            let mut last = 0;
            for turn in &conversation.turns {
                row += 1;
                let when =
                    time(&turn.when).ok_or_else(|| format!("invalid time: {}", turn.when))?;
                let content = format!("{}: {}", turn.speaker, turn.text);
                let mut mentions = Vec::new();
                for found in extract::entities(&content) {
                    let next = entities.len() as u64 + 1;
                    let key = (namespace, extract::key(&found.name));
                    let entity = *entities.entry(key).or_insert(next);
                    if entity == next {
                        bench.library.put_entity(entity, scope, &found.name);
                    }
                    mentions.push(entity);
                }
                bench.library.add(&Document {
                    row,
                    scope,
                    kind: "episodic",
                    content: &content,
                    importance: 0.5,
                    valid_from: Some(when),
                    valid_until: None,
                    learned_at: row.cast_signed(),
                    learned_until: None,
                    mentions: &mentions,
                });
                rows.insert(row, &*turn.id);
                last = last.max(when);
                bench.contents.push((row, content));
            }
            bench.rows.push((rows, last));
        }
        Ok(bench)
    }

    fn rows_of(&mut self, name: &str, model: &dyn Embedder) -> Result<(), String> {
        let fingerprint = model.fingerprint();
        self.library.add_model(fingerprint, model.dimensions());
        for some in self.contents.chunks(64) {
            let texts: Vec<&str> = some.iter().map(|(_, content)| &**content).collect();
            let vectors = model
                .embed_all(Role::Passage, &texts)
                .map_err(|error| error.to_string())?;
            for ((row, _), vector) in some.iter().zip(vectors) {
                if let Some(vector) = vector {
                    let vector = Quantised::from_vector(&vector);
                    self.library.set_vector(fingerprint, *row, &vector);
                }
            }
        }
        self.library.use_model(fingerprint);
        let conversations = self.set.conversations.iter();
        let questions = conversations.flat_map(|one| &one.questions);
        let questions: Vec<&str> = questions.map(|one| &*one.question).collect();
        let mut vectors = Vec::new();
        for some in questions.chunks(64) {
            let some = model.embed_all(Role::Query, some);
            vectors.extend(some.map_err(|error| error.to_string())?);
        }
        let meanings = Some((fingerprint, &*vectors));
        self.row(name, VECTOR, meanings);
        self.row(&format!("words + {name} + graph"), ALL, meanings);
        Ok(())
    }

    /// Asks every question. A model comes with the vectors of all questions.
    fn row(&self, name: &str, channels: Channels, model: Option<(&str, &[Option<Vec<f32>>])>) {
        let mut spent = Duration::ZERO;
        let mut of_each = Vec::new();
        let mut all = Score::default();
        let mut asked = 0;
        for (conversation, (rows, now)) in self.set.conversations.iter().zip(&self.rows) {
            let mut score = Score::default();
            for question in &conversation.questions {
                let meaning = model.and_then(|(fingerprint, vectors)| {
                    Some((fingerprint, vectors.get(asked)?.as_deref()?))
                });
                asked += 1;
                let query = Query {
                    text: &question.question,
                    meaning,
                    filter: Filter {
                        scope: [Some(&conversation.id), None, None, None],
                        now: *now,
                        ..Filter::default()
                    },
                    limit: 10,
                    channels,
                };
                let started = Instant::now();
                let hits = self.library.recall(&query);
                spent += started.elapsed();
                let found: Vec<&str> = hits
                    .iter()
                    .filter_map(|hit| rows.get(&hit.row).copied())
                    .collect();
                score.add(question, &found);
            }
            of_each.push(format!("{:.3}", score.tenth / score.count.max(1.0)));
            all.merge(&score);
        }
        let each = spent.div_f64(all.count.max(1.0));
        println!(
            "| {name} | {:.3} | {:.3} | {} | {each:.0?} |",
            all.fifth / all.count.max(1.0),
            all.tenth / all.count.max(1.0),
            of_each.join(" | ")
        );
    }
}

#[derive(Default)]
struct Score {
    count: f64,
    fifth: f64,
    tenth: f64,
}

impl Score {
    #[allow(clippy::cast_precision_loss, reason = "a question has few answers")]
    fn add(&mut self, question: &Question, found: &[&str]) {
        let share = |among: &[&str]| {
            let evidence = question.evidence.iter();
            let found = evidence.filter(|id| among.contains(&id.as_str())).count();
            found as f64 / question.evidence.len().max(1) as f64
        };
        self.count += 1.0;
        self.fifth += share(&found[..found.len().min(5)]);
        self.tenth += share(found);
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.fifth += other.fifth;
        self.tenth += other.tenth;
    }
}

/// Parses a time such as `1:56 pm on 8 May, 2023` into microseconds since 1970.
fn time(text: &str) -> Option<i64> {
    let (clock, date) = text.split_once(" on ")?;
    let (clock, half) = clock.split_once(' ')?;
    let (hour, minute) = clock.split_once(':')?;
    let hour = hour.parse::<i64>().ok()? % 12 + if half == "pm" { 12 } else { 0 };
    let minute: i64 = minute.parse().ok()?;
    let mut words = date.split_whitespace();
    let day: i64 = words.next()?.parse().ok()?;
    let month = words.next()?.trim_end_matches(',');
    let year: i64 = words.next()?.parse().ok()?;
    let names = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let month = i64::try_from(names.iter().position(|name| *name == month)?).ok()?;
    // Days since 1970, with years that start in March.
    let (year, month) = if month < 2 {
        (year - 1, month + 10)
    } else {
        (year, month - 2)
    };
    let days =
        365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    Some(((days * 24 + hour) * 60 + minute) * 60_000_000)
}
