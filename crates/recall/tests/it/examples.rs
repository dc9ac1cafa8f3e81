//! Examples with the results that a person would expect.

use switchboard_recall::{Filter, Hit, Library};

use crate::world::{Change, Memory, ask, change, memory, rows};

const DAY: i64 = 86_400_000_000;
/// 8 May 2023.
const MAY: i64 = 19_485 * DAY;

/// A library of memories that are a day apart.
fn library(contents: &[&str]) -> Library {
    let mut library = Library::default();
    for (row, content) in (1_u64..).zip(contents) {
        let one = Memory {
            learned_at: row.cast_signed() * DAY,
            ..memory(content)
        };
        change(&mut library, &Change::Add(row, one));
    }
    library
}

fn recall(library: &Library, text: &str) -> Vec<Hit> {
    library.recall(&ask(text, Filter::default()))
}

#[test]
fn memory_with_the_answer_comes_first() {
    let library = library(&[
        "Anna prefers green tea in the morning",
        "The deploy key of the staging server is in the vault",
        "Bob is allergic to peanuts",
        "The production server runs in Frankfurt",
        "Anna's birthday is on the third of June",
    ]);
    for (text, first) in [
        ("what does Anna like to drink, tea?", 1),
        ("where is the deploy key for staging", 2),
        ("is anybody allergic?", 3),
        ("which city does the production server run in?", 4),
        ("When is Anna's birthday?", 5),
    ] {
        let hits = recall(&library, text);
        assert_eq!(
            hits.first().map(|hit| hit.row),
            Some(first),
            "{text}: {hits:?}"
        );
    }
}

#[test]
fn hit_lists_its_matching_words() {
    let library = library(&["Anna prefers green tea"]);
    let hits = recall(&library, "Which teas does Anna prefer, black or white?");
    assert_eq!(hits[0].words, ["teas", "anna", "prefer"]);
    assert!(hits[0].vector.is_none() && hits[0].graph.is_none());
}

#[test]
fn score_does_not_depend_on_library_size() {
    let few = library(&["Anna prefers green tea"]);
    let filler: Vec<String> = (0..5000)
        .map(|n| format!("item {n} stands on shelf {}", n % 97))
        .collect();
    let mut contents: Vec<&str> = vec!["Anna prefers green tea"];
    contents.extend(filler.iter().map(String::as_str));
    let many = library(&contents);
    for text in ["green tea", "Anna's tea cup", "who is Anna"] {
        let (one, other) = (&recall(&few, text)[0], &recall(&many, text)[0]);
        assert_eq!((one.row, other.row), (1, 1));
        assert!(
            (one.score - other.score).abs() < 0.15,
            "{text}: {one:?} {other:?}"
        );
    }
    assert!(recall(&many, "green tea")[0].score > 0.9);
}

#[test]
fn answer_is_found_by_the_preceding_question() {
    let mut library = Library::default();
    let session = |scope: Option<&'static str>, minutes: i64, content: &str| Memory {
        scope: [scope, None, None, None],
        learned_at: minutes * 60_000_000,
        ..memory(content)
    };
    for (row, one) in (1..).zip([
        session(Some("a"), 0, "Anna: which instrument do you play?"),
        session(Some("a"), 1, "Bob: mostly the old violin of my aunt"),
        session(Some("b"), 1, "Carl: nothing at all"),
        session(Some("a"), 200, "Bob: good morning"),
    ]) {
        change(&mut library, &Change::Add(row, one));
    }
    let hits = recall(&library, "what instrument does Bob play");
    assert_eq!(rows(&hits[..2]), [2, 1], "{hits:?}");
    // A memory that matches only through a neighbour scores lower than the neighbour.
    let hits = recall(&library, "instrument");
    assert_eq!(rows(&hits), [1, 2]);
    assert!(hits[1].score < 0.6 * hits[0].score && hits[1].words.is_empty());
    // A neighbour that does not pass the filter contributes nothing.
    library.close(1, 5);
    assert!(recall(&library, "instrument").is_empty());
}

#[test]
fn date_in_query_finds_memories_from_then() {
    let mut library = Library::default();
    for (row, day) in (1..).zip([-400, -30, 0, 2, 30]) {
        let one = Memory {
            valid: (Some(MAY + day * DAY), None),
            ..memory("we went swimming")
        };
        change(&mut library, &Change::Add(row, one));
    }
    let now = MAY + 60 * DAY;
    let first = |text: &str| {
        let filter = Filter {
            now,
            ..Filter::default()
        };
        rows(&library.recall(&ask(text, filter)))[0]
    };
    assert_eq!(first("who went swimming on 8 May 2023?"), 3);
    assert_eq!(first("swimming on 2023-04-08"), 2);
    assert_eq!(first("did we go swimming in June?"), 5);
    assert_eq!(first("swimming in 2022"), 1);
    assert_eq!(first("swimming 60 days ago"), 3);
}

#[test]
fn date_in_memory_matches_any_spelling() {
    let library = library(&[
        "The lease was signed on 2023-05-08",
        "The lease was signed by Anna",
        "The lease was signed on 9 June 2024",
    ]);
    let first = |text: &str| recall(&library, text)[0].row;
    assert_eq!(first("who signed the lease on May 8th, 2023?"), 1);
    assert_eq!(first("was a lease signed in June 2024"), 3);
}

#[test]
fn ended_or_replaced_memories_are_found_on_request() {
    let mut library = Library::default();
    let mut old = memory("Anna lives in Oslo");
    old.valid = (Some(0), Some(10));
    old.learned_at = 1;
    old.learned_until = Some(20);
    let mut new = memory("Anna lives in Rome");
    new.valid = (Some(10), None);
    new.learned_at = 20;
    change(&mut library, &Change::Add(1, old));
    change(&mut library, &Change::Add(2, new));
    let found = |filter: Filter<'_>| rows(&library.recall(&ask("where does Anna live", filter)));
    let now = Filter {
        now: 100,
        ..Filter::default()
    };
    assert_eq!(found(now), [2]);
    assert_eq!(
        found(Filter {
            known_at: Some(19),
            ended: true,
            ..now
        }),
        [1]
    );
    assert_eq!(
        found(Filter {
            known_at: Some(19),
            ..now
        }),
        Vec::<u64>::new()
    );
    assert_eq!(
        found(Filter {
            known_at: Some(19),
            as_of: Some(5),
            ..now
        }),
        [1]
    );
    assert_eq!(
        found(Filter {
            as_of: Some(5),
            ..now
        }),
        Vec::<u64>::new()
    );
}

#[test]
fn near_duplicates_are_distinguished_from_opposites() {
    let library = library(&[
        "The staging server is called heron",
        "Staging server is called: Heron!",
        "the production server is called osprey",
        "Anna likes tea",
    ]);
    assert_eq!(library.alike(1, 0, 0.9, 10), [(2, 1.0)]);
    let some: Vec<u64> = library
        .alike(1, 0, 0.3, 10)
        .iter()
        .map(|(row, _)| *row)
        .collect();
    assert_eq!(some, [2, 3]);
    assert!(library.alike(4, 0, 0.1, 10).is_empty());
    assert_eq!(library.alike(1, 0, 0.1, 1).len(), 1);
}

#[test]
fn importance_breaks_ties() {
    let mut library = Library::default();
    for (row, importance) in [(1, 0.9), (2, 0.1)] {
        library.add(&switchboard_recall::Document {
            row,
            scope: [None; 4],
            kind: "semantic",
            content: "buy milk",
            importance,
            valid_from: None,
            valid_until: None,
            learned_at: 0,
            learned_until: None,
            mentions: &[],
        });
    }
    assert_eq!(rows(&recall(&library, "milk")), [1, 2]);
}
