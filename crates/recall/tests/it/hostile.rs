//! Hostile input does no harm.

use switchboard_embed::Quantised;
use switchboard_recall::{Channels, Document, Filter, Library, Query, extract, limits};

use crate::world::{Change, ask, change, memory, rows};

fn texts() -> Vec<String> {
    vec![
        String::new(),
        " \n\t".to_owned(),
        "x".repeat(1_000_000),
        "ab ".repeat(300_000),
        "天".repeat(100_000),
        "👩‍👩‍👧‍👦".repeat(1000),
        "\u{0}\u{1}\u{202e}evil\u{feff}".to_owned(),
        (0..20_000).map(|n| n.to_string() + "w ").collect(),
        "2023-99-99 31 February 0 May last last week ago".to_owned(),
        "İİİ ﬃ ß ǅ".to_owned(),
    ]
}

#[test]
fn any_text_can_be_stored_and_queried() {
    let mut library = Library::default();
    for (row, text) in (1..).zip(texts()) {
        change(&mut library, &Change::Add(row, memory(&text)));
        library.put_entity(row, [None; 4], &text);
    }
    for text in texts() {
        let hits = library.recall(&ask(&text, Filter::default()));
        assert!(hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)));
        let found = extract::entities(&text);
        assert!(found.len() <= limits::ENTITIES);
        assert!(found.iter().all(|one| one.name.len() <= limits::NAME_BYTES));
    }
    for row in 0..20 {
        let _ = library.alike(row, 0, 0.5, 10);
        let _ = library.alike(row, 0, f32::NAN, 10);
    }
}

#[test]
fn extreme_numbers_do_no_harm() {
    let mut library = Library::default();
    library.add_model("model", 2);
    library.add_model("none", 0);
    for (row, importance) in (1..).zip([f32::NAN, f32::INFINITY, -5.0, 0.5]) {
        library.add(&Document {
            row,
            scope: [None; 4],
            kind: "",
            content: "tea",
            importance,
            valid_from: Some(i64::MIN),
            valid_until: Some(i64::MAX),
            learned_at: i64::MIN,
            learned_until: None,
            mentions: &[u64::MAX, u64::MAX, 0],
        });
    }
    library.add(&Document {
        row: u64::MAX,
        scope: [Some(""); 4],
        kind: "",
        content: "tea",
        importance: 0.5,
        valid_from: Some(i64::MAX),
        valid_until: Some(i64::MIN),
        learned_at: i64::MAX,
        learned_until: Some(i64::MAX),
        mentions: &[],
    });
    library.put_entity(0, [None; 4], "");
    library.put_relation(0, 0, 0, f32::NAN);
    library.put_relation(1, 0, u64::MAX, -1.0);
    for vector in [
        &[f32::NAN, 1.0][..],
        &[0.0, 0.0],
        &[f32::INFINITY, 1.0],
        &[1.0],
        &[1.0, 0.0],
    ] {
        library.set_vector("model", 1, &Quantised::from_vector(vector));
        library.set_vector("nobody", 1, &Quantised::from_vector(vector));
        library.set_vector("model", 99, &Quantised::from_vector(vector));
        for limit in [0, 1, usize::MAX] {
            let query = Query {
                text: "tea last week",
                meaning: Some(("model", vector)),
                filter: Filter {
                    now: i64::MAX,
                    ..Filter::default()
                },
                limit,
                channels: Channels::default(),
            };
            let hits = library.recall(&query);
            assert!(hits.len() <= limit.min(4));
            assert!(
                hits.iter().all(|hit| (0.0..=1.0).contains(&hit.score)),
                "{hits:?}"
            );
        }
    }
    let odd = Quantised {
        scale: f32::NAN,
        numbers: vec![1, 2],
    };
    library.set_vector("model", 2, &odd);
    let _ = library.alike(1, 0, 0.1, 10);
    assert!(library.alike(12345, 0, 0.1, 10).is_empty());
    library.close(12345, 0);
    library.remove(12345);
    library.remove_entity(12345);
    library.remove_relation(12345);
    assert_eq!(library.len(), 5);
}

#[test]
fn empty_library_or_query_finds_nothing() {
    let mut library = Library::default();
    assert!(library.is_empty() && library.recall(&ask("tea", Filter::default())).is_empty());
    change(&mut library, &Change::Add(1, memory("tea")));
    assert!(library.recall(&ask("", Filter::default())).is_empty());
    assert_eq!(rows(&library.recall(&ask("tea", Filter::default()))), [1]);
}
