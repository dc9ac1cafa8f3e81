//! Searches: tools that are found, and tools that are not.

use std::sync::Arc;

use proptest::{collection::vec, prelude::*, sample::select};
use switchboard_embed::StaticTable;
use switchboard_search::{Filter, Index, Language, Learnt, Segment, Tool};
use switchboard_wire::Raw;

use crate::{ask, definition, meaning, names, search, segment, vectors};

fn some() -> Vec<(String, Raw)> {
    vec![
        definition("readFile", "Reads a text document from disk"),
        definition("get_weather", "The forecast for a city"),
        definition("sendMail", "Sends a message to somebody"),
        definition("查询天气", "查询某个城市的天气预报"),
    ]
}

fn index() -> Index {
    Index::default().with("some", Some(segment("some", &some())))
}

#[test]
fn tools_are_found_by_names_and_synonyms() {
    let index = index();
    let table = [
        ("read file", "readFile"),
        ("reading documents", "readFile"),
        ("weather in Paris?", "get_weather"),
        ("will it rain tomorrow", "get_weather"),
        ("email my colleague", "sendMail"),
        ("查询天气", "查询天气"),
        ("SENDMAIL", "sendMail"),
        ("📧", "sendMail"),
    ];
    for (query, expected) in table {
        let found = ask(&index, query, Filter::default());
        assert_eq!(names(&found).first(), Some(&expected), "{query}");
    }
}

#[test]
fn queries_in_other_scripts_find_english_tools() {
    let english = Index::default().with("some", Some(segment("some", &some()[..3])));
    for query in ["巴黎的天气", "東京の天気は？", "🌦"] {
        let found = ask(&english, query, Filter::default());
        assert_eq!(names(&found).first(), Some(&"get_weather"), "{query}");
    }
}

#[test]
fn meaningless_query_finds_nothing() {
    let index = index();
    let long = "zzqx ".repeat(200_000);
    for query in ["", "   ", "the of and", "\u{0}\u{1}", "¡¿", &long] {
        assert!(ask(&index, query, Filter::default()).hits.is_empty());
    }
}

#[test]
fn long_query_is_searched_by_rarest_words() {
    let filler = "please could you tell me something about the thing that they want ".repeat(60);
    let long = format!("{filler} weather forecast {}", filler.repeat(25));
    assert!(long.len() > 100_000);
    let found = ask(&index(), &long, Filter::default());
    assert_eq!(names(&found).first(), Some(&"get_weather"));
}

#[test]
fn explanation_names_words_and_fields() {
    let found = ask(&index(), "weather forecast", Filter::default());
    let why = found.hits[0].why.as_ref().unwrap();
    let matched: Vec<_> = why.matches.iter().map(|one| one.word.as_str()).collect();
    assert!(matched.contains(&"weather") && matched.contains(&"forecast"));
    let weather = why
        .matches
        .iter()
        .find(|one| one.word == "weather")
        .unwrap();
    assert!(weather.fields.iter().any(|field| field.as_str() == "name"));
}

#[test]
fn meaning_finds_what_words_do_not() {
    let definitions = [
        definition("alpha", "Book a table for dinner at an eatery"),
        definition("beta", "Compile the sources of a kernel module"),
        definition("gamma", "Rotate the pages of a scanned contract"),
    ];
    let part = segment("s", &definitions);
    let index = Index::default()
        .with("s", Some(Arc::clone(&part)))
        .with_vectors(&part, vectors(&definitions));
    let query = "hungry, somewhere nice for supper tonight";
    let vector = StaticTable::built_in().vector(query).unwrap();
    let with = |meaning| {
        search(
            &index,
            &Learnt::default(),
            query,
            Filter::default(),
            meaning,
        )
    };
    let found = with(Some(meaning(&vector)));
    assert!(found.by_meaning);
    assert_eq!(names(&found).first(), Some(&"alpha"));
    // Vectors of different models are never compared.
    let mut other = meaning(&vector);
    other.model = "another";
    assert!(!with(Some(other)).by_meaning);
}

#[test]
fn vectors_of_replaced_segment_are_dropped() {
    let old = segment("s", &some());
    let index = Index::default().with("s", Some(Arc::clone(&old)));
    let next = index.with("s", Some(segment("s", &some()[..1])));
    let late = next.with_vectors(&old, vectors(&some()));
    let model = meaning(&[]).model;
    assert_eq!(late.without_vectors(model).count(), 1);
}

const WORDS: [&str; 12] = [
    "read", "write", "file", "issue", "weather", "send", "mail", "create", "list", "query", "city",
    "table",
];

fn text() -> impl Strategy<Value = String> {
    vec(select(&WORDS[..]), 1..6).prop_map(|words| words.join(" "))
}

/// Servers with their tools: a name, a description, read-only, trusted.
fn servers() -> impl Strategy<Value = Vec<Vec<(String, String, bool, bool)>>> {
    vec(
        vec((text(), text(), any::<bool>(), any::<bool>()), 0..6),
        1..5,
    )
}

fn build(servers: &[Vec<(String, String, bool, bool)>]) -> Vec<Arc<Segment>> {
    let language = Language::built_in();
    let segment = |(at, tools): (usize, &Vec<(String, String, bool, bool)>)| {
        let definitions: Vec<_> = tools
            .iter()
            .enumerate()
            .map(|(n, (name, says, read_only, trusted))| {
                let name = format!("{}_{n}", name.replace(' ', "_"));
                let raw = serde_json::json!({
                    "name": name, "description": says,
                    "annotations": { "readOnlyHint": read_only },
                });
                (name, Raw::from_value(&raw).unwrap(), *trusted)
            })
            .collect();
        let tools = definitions.iter().map(|(name, definition, trusted)| Tool {
            name,
            definition,
            trusted: *trusted,
        });
        Arc::new(Segment::new(&format!("server{at}"), &language, tools))
    };
    servers.iter().enumerate().map(segment).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn incremental_index_equals_rebuilt_index(servers in servers(), query in text(), gone in 0_usize..5) {
        let segments = build(&servers);
        let mut grown = Index::default();
        for segment in segments.iter().rev() {
            grown = grown.with(segment.server(), Some(Arc::clone(segment)));
        }
        let made = Index::from_segments(segments.iter().cloned());
        prop_assert_eq!(ask(&grown, &query, Filter::default()), ask(&made, &query, Filter::default()));
        let name = format!("server{gone}");
        let left = segments.iter().filter(|segment| **segment.server() != *name).cloned();
        let left = Index::from_segments(left);
        prop_assert_eq!(ask(&made.with(&name, None), &query, Filter::default()), ask(&left, &query, Filter::default()));
    }

    #[test]
    fn filters_keep_exactly_the_matching_tools(servers in servers(), query in text(), read_only: bool, trusted: bool) {
        let made = Index::from_segments(build(&servers));
        let filter = Filter { server: Some("server0"), read_only, trusted };
        let found = ask(&made, &query, filter);
        let fits = servers[0].iter().enumerate().filter(|(_, tool)| (tool.2 || !read_only) && (tool.3 || !trusted));
        let fits: Vec<_> = fits.collect();
        for hit in &found.hits {
            prop_assert_eq!(&*hit.server, "server0");
            let n: usize = hit.name.rsplit('_').next().unwrap().parse().unwrap();
            prop_assert!(fits.iter().any(|(at, _)| *at == n), "{}", hit.name);
            prop_assert!(hit.score > 0.0 && hit.score <= 1.0);
        }
        prop_assert!(found.hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
        let shares = |tool: &(String, String, bool, bool)| query.split(' ').any(|word| tool.0.contains(word) || tool.1.contains(word));
        let expected = fits.iter().filter(|(_, tool)| shares(tool)).count().min(5);
        prop_assert!(found.hits.len() >= expected, "{} of {}", found.hits.len(), expected);
    }

    #[test]
    fn arbitrary_text_has_finite_scores(name in ".{0,30}", says in ".{0,200}", query in ".{0,200}") {
        let made = Index::default().with("s", Some(segment("s", &[definition(&name, &says)])));
        let found = ask(&made, &query, Filter::default());
        prop_assert!(found.hits.iter().all(|hit| hit.score.is_finite()));
    }
}
