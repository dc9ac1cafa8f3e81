//! Measures how fast a large library of memories is built, changed and searched, and its memory usage.

use std::time::Duration;

use switchboard_embed::Quantised;
use switchboard_recall::{Channels, Document, Filter, Library, Query};

const WORDS: usize = 20;
const DIMENSIONS: usize = 384;
const HOUR: i64 = 3_600_000_000;

/// Builds a library of `count` memories of 20 words each, in a hundred namespaces, and measures it.
pub(crate) fn measure(count: u64) {
    let mut chance = Chance(1);
    let vocabulary: Vec<String> = (0..50_000).map(|_| chance.word()).collect();
    let texts: Vec<String> = (0..count).map(|_| chance.text(&vocabulary)).collect();
    let namespaces: Vec<String> = (0..100).map(|n| format!("space {n}")).collect();
    let mut library = Library::default();
    let started = spent();
    for (row, text) in (1..).zip(&texts) {
        library.add(&document(row, text, &namespaces));
    }
    println!(
        "{count} memories of {WORDS} words: generated in {:.2?}",
        spent().saturating_sub(started)
    );
    println!(
        "bytes per memory, words only: {}",
        library.bytes() as u64 / count.max(1)
    );

    library.add_model("model", DIMENSIONS);
    for row in 1..=count {
        let vector = Quantised::from_vector(&chance.vector());
        library.set_vector("model", row, &vector);
    }
    println!(
        "bytes per memory, with vectors: {}",
        library.bytes() as u64 / count.max(1)
    );

    let queries: Vec<(String, Vec<f32>)> = (0..200)
        .map(|_| {
            let words: Vec<&str> = (0..5).map(|_| chance.common(&vocabulary)).collect();
            (words.join(" "), chance.vector())
        })
        .collect();
    let lexical = Channels {
        vector: false,
        ..Channels::default()
    };
    for (name, scope, channels) in [
        ("words, all", None, lexical),
        ("words, 1 %", Some(&*namespaces[7]), lexical),
        ("words and vectors, all", None, Channels::default()),
        (
            "words and vectors, 1 %",
            Some(&*namespaces[7]),
            Channels::default(),
        ),
    ] {
        let times = queries.iter().map(|(text, vector)| {
            let query = Query {
                text,
                meaning: Some(("model", vector)),
                filter: Filter {
                    scope: [scope, None, None, None],
                    ..Filter::default()
                },
                limit: 10,
                channels,
            };
            timed(|| std::hint::black_box(library.recall(&query).len()))
        });
        report(name, times.collect());
    }
    let spread = |step: u64| (0..1000).map(move |n| 1 + (n * step) % count.max(1));
    report(
        "alike",
        spread(211)
            .map(|row| timed(|| library.alike(row, 0, 0.8, 5).len()))
            .collect(),
    );
    report(
        "close",
        spread(17)
            .map(|row| timed(|| library.close(row, HOUR)))
            .collect(),
    );
    report(
        "remove",
        spread(29)
            .map(|row| timed(|| library.remove(row)))
            .collect(),
    );
    let added = (count + 1..).zip(texts.iter().take(1000));
    let added = added.map(|(row, text)| timed(|| library.add(&document(row, text, &namespaces))));
    report("add", added.collect());
    let started = spent();
    let mut longest = Duration::ZERO;
    for row in 1..=count / 2 {
        longest = longest.max(timed(|| library.remove(row)));
    }
    println!(
        "half of the memories removed in {:.2?}, at most {longest:.2?} per removal",
        spent().saturating_sub(started)
    );
}

fn document<'a>(row: u64, content: &'a str, namespaces: &'a [String]) -> Document<'a> {
    let at = usize::try_from(row).unwrap_or_default() % namespaces.len();
    Document {
        row,
        scope: [Some(&namespaces[at]), None, None, None],
        kind: "semantic",
        content,
        importance: 0.5,
        valid_from: None,
        valid_until: None,
        learned_at: row.cast_signed() * HOUR / 1000,
        learned_until: None,
        mentions: &[],
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let started = spent();
    std::hint::black_box(work());
    spent().saturating_sub(started)
}

/// The CPU time of this thread. Other processes do not affect it.
fn spent() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(spent.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(spent.tv_nsec).unwrap_or_default())
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!(
        "{name}: fastest {:.1?}, median {:.1?}, 95 % within {:.1?}",
        at(0),
        at(50),
        at(95)
    );
}

/// A deterministic pseudorandom number generator.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or_default()
    }

    fn word(&mut self) -> String {
        let syllables = [
            "ka", "to", "mi", "ren", "sol", "ba", "dre", "fin", "gu", "lor", "pes", "vi",
        ];
        (0..2 + self.below(3))
            .map(|_| syllables[self.below(syllables.len())])
            .collect()
    }

    /// A word; the first ones are far more frequent than the last, as in a natural language.
    fn common<'a>(&mut self, vocabulary: &'a [String]) -> &'a str {
        let most = vocabulary.len();
        let mut at = self.below(most);
        for _ in 0..self.below(4) {
            at = self.below(at + 1);
        }
        &vocabulary[at]
    }

    fn text(&mut self, vocabulary: &[String]) -> String {
        let words: Vec<&str> = (0..WORDS).map(|_| self.common(vocabulary)).collect();
        words.join(" ")
    }

    #[expect(clippy::cast_precision_loss, reason = "any numbers will do")]
    fn vector(&mut self) -> Vec<f32> {
        let mut vector: Vec<f32> = (0..DIMENSIONS)
            .map(|_| self.below(2001) as f32 - 1000.0)
            .collect();
        let length = vector
            .iter()
            .map(|number| number * number)
            .sum::<f32>()
            .sqrt();
        for number in &mut vector {
            *number /= length;
        }
        vector
    }
}
