//! Stored data: lessons, and vectors of slow models.

use std::sync::Arc;

use switchboard_embed::{Embedder, ModelError, Role, StaticTable};
use switchboard_search::{Cache, Filter, Index, Language, Learnt, Vectors};

use crate::{definition, names, search, segment, tools};

#[test]
fn called_tool_ranks_first_for_similar_queries() {
    let definitions = [
        definition("file_search", "Search files"),
        definition("web_search", "Search the web"),
    ];
    let index = Index::default().with("s", Some(segment("s", &definitions)));
    let mut learnt = Learnt::default();
    let ask = |learnt: &Learnt, text: &str| {
        let found = search(&index, learnt, text, Filter::default(), None);
        names(&found)[0].to_owned()
    };
    assert_eq!(ask(&learnt, "search for quarterly numbers"), "file_search");
    for _ in 0..3 {
        learnt.learn(
            &Language::built_in(),
            "search for quarterly numbers",
            "s",
            "web_search",
        );
    }
    assert_eq!(ask(&learnt, "search the quarterly numbers"), "web_search");
    // Unrelated queries are not affected.
    assert_eq!(ask(&learnt, "search files of my project"), "file_search");

    let again = Learnt::decode(&learnt.encode()).unwrap();
    assert_eq!(ask(&again, "search the quarterly numbers"), "web_search");
    assert_eq!(again.encode(), learnt.encode());
}

#[test]
fn lessons_are_limited_and_latest_are_kept() {
    let language = Language::built_in();
    let mut learnt = Learnt::default();
    for n in 0..6_000 {
        learnt.learn(&language, &format!("question number{n}"), "s", "t");
    }
    assert!(
        learnt.len() <= 4_096 && learnt.len() > 3_000,
        "{}",
        learnt.len()
    );
    let file = String::from_utf8(learnt.encode()).unwrap();
    assert!(file.contains("number5999") && !file.contains("\"number1\""));
}

#[test]
fn damaged_lessons_are_an_error() {
    let mut learnt = Learnt::default();
    learnt.learn(&Language::built_in(), "weather", "s", "t");
    let file = learnt.encode();
    for wrong in [&file[..file.len() / 2], b"", b"{}", b"[1]"] {
        assert!(Learnt::decode(wrong).is_err());
    }
}

/// Counts the texts that it embeds.
struct Counting(std::sync::atomic::AtomicUsize);

impl Embedder for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn fingerprint(&self) -> &'static str {
        "counting"
    }

    fn dimensions(&self) -> usize {
        StaticTable::built_in().dimensions()
    }

    fn embed(&self, role: Role, text: &str) -> Result<Option<Vec<f32>>, ModelError> {
        StaticTable::built_in().embed(role, text)
    }

    fn embed_all(&self, role: Role, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        self.0
            .fetch_add(texts.len(), std::sync::atomic::Ordering::Relaxed);
        StaticTable::built_in().embed_all(role, texts)
    }
}

#[test]
fn each_text_is_embedded_once() {
    let definitions: Vec<_> = (0..40)
        .map(|n| definition(&format!("tool_{n}"), &format!("Reads file number {n}")))
        .collect();
    let model = Counting(0.into());
    let mut cache = Cache::new(model.dimensions());
    let make = |cache: &mut Cache| {
        Vectors::new(&tools(&definitions), &model, cache, &|| true)
            .unwrap()
            .unwrap()
    };
    make(&mut cache);
    let asked = || model.0.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(asked(), 80);
    assert!(cache.is_changed());
    let mut again = Cache::decode(&cache.encode()).unwrap();
    assert!(!again.is_changed());
    let vectors = make(&mut again);
    assert_eq!(asked(), 80);
    // Cached vectors give the same result.
    let part = segment("s", &definitions);
    let index = Index::default()
        .with("s", Some(Arc::clone(&part)))
        .with_vectors(&part, vectors);
    let vector = model
        .embed(Role::Query, "Reads file number 7")
        .unwrap()
        .unwrap();
    let meaning = switchboard_search::Meaning {
        model: "counting",
        vector: &vector,
        words: 0.0,
    };
    let found = search(
        &index,
        &Learnt::default(),
        "Reads file number 7",
        Filter::default(),
        Some(meaning),
    );
    assert!(names(&found).contains(&"tool_7"), "{found:?}");
}

#[test]
fn cancelled_work_and_damaged_cache_give_none() {
    let definitions = [definition("a", "b")];
    let table = StaticTable::built_in();
    let vectors = Vectors::new(&tools(&definitions), table, &mut Cache::none(), &|| false);
    assert!(vectors.unwrap().is_none());
    let mut cache = Cache::new(table.dimensions());
    Vectors::new(&tools(&definitions), table, &mut cache, &|| true).unwrap();
    let file = cache.encode();
    for at in 0..file.len() {
        let mut wrong = file.clone();
        wrong[at] ^= 1;
        assert!(Cache::decode(&wrong).is_none(), "{at}");
    }
    assert!(Cache::decode(&file[..40]).is_none());
}
