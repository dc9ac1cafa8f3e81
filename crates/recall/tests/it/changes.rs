//! Random changes: no hit is from outside the filter, and nothing removed is remembered.

use proptest::prelude::*;
use switchboard_embed::Quantised;
use switchboard_recall::{Channels, Filter, Library, Query};

use crate::world::{Change, MODEL, World, any_change, any_question, ask, change, memory, rows};

fn followed(changes: &[Change]) -> (World, Library) {
    let mut world = World::default();
    let mut library = world.library();
    for one in changes {
        follow(&mut world, &mut library, one);
    }
    (world, library)
}

fn follow(world: &mut World, library: &mut Library, one: &Change) {
    world.apply(one);
    change(library, one);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn updated_library_answers_like_a_rebuilt_one(
        changes in prop::collection::vec(any_change(), 0..60),
        asked in prop::collection::vec(any_question(), 1..6),
    ) {
        let (world, library) = followed(&changes);
        let anew = world.library();
        prop_assert_eq!(library.len(), world.memories.len());
        for one in &asked {
            prop_assert_eq!(library.recall(&one.query()), anew.recall(&one.query()));
        }
    }

    #[test]
    fn no_hit_is_outside_the_filter(
        changes in prop::collection::vec(any_change(), 0..60),
        asked in prop::collection::vec(any_question(), 1..6),
    ) {
        let (world, library) = followed(&changes);
        for one in &asked {
            let hits = library.recall(&one.query());
            let admitted = world.admitted(&one.filter);
            for hit in &hits {
                prop_assert!(admitted.contains(&hit.row), "{:?}", hit);
                for score in [Some(hit.score), hit.lexical, hit.vector, hit.graph].into_iter().flatten() {
                    prop_assert!((0.0..=1.0).contains(&score), "{:?}", hit);
                }
                let content = world.memories[&hit.row].content.to_lowercase();
                prop_assert!(hit.words.iter().all(|word| content.contains(word.as_str())));
            }
            prop_assert!(hits.is_sorted_by(|one, other| one.score >= other.score));
            let mut different = rows(&hits);
            different.sort_unstable();
            different.dedup();
            prop_assert_eq!(different.len(), hits.len());
        }
    }

    /// Not even the frequency of a word in other scopes makes a difference.
    #[test]
    fn other_scopes_make_no_difference(
        changes in prop::collection::vec(any_change(), 0..60),
        asked in prop::collection::vec(any_question(), 1..6),
    ) {
        let (world, library) = followed(&changes);
        for one in &asked {
            let alone = world.within(&one.filter.scope).library();
            prop_assert_eq!(library.recall(&one.query()), alone.recall(&one.query()));
        }
    }

    /// Every memory has the word, so exactly the memories that pass are found.
    #[test]
    fn time_filters_agree_with_the_naive_model(
        changes in prop::collection::vec(any_change(), 0..60),
        asked in any_question(),
    ) {
        let (mut world, _) = followed(&changes);
        for memory in world.memories.values_mut() {
            memory.content.push_str(" everywhere");
        }
        let hits = world.library().recall(&ask("everywhere", asked.filter));
        let mut found = rows(&hits);
        found.sort_unstable();
        prop_assert_eq!(found, world.admitted(&asked.filter));
    }

    /// A filter only reduces the vectors that are compared; nothing is approximate.
    #[test]
    fn recall_by_vectors_is_exact_under_any_filter(
        changes in prop::collection::vec(any_change(), 0..60),
        asked in any_question(),
    ) {
        let (mut world, _) = followed(&changes);
        for (row, memory) in &mut world.memories {
            // No memory has neighbours.
            memory.valid.0 = Some(i64::try_from(*row).unwrap() * -100_000_000_000);
        }
        let mut asked = asked;
        asked.channels = Channels { lexical: false, vector: true, graph: false };
        let length: f32 = asked.vector.iter().map(|number| number * number).sum();
        prop_assume!(length > 0.1);
        let hits = world.library().recall(&asked.query());
        let near = |row: &u64| {
            let vector = world.memories[row].vector.as_ref()?;
            let vector = Quantised::from_vector(vector).to_vector();
            let product: f32 = vector.iter().zip(&asked.vector).map(|(a, b)| a * b).sum();
            Some(product / length)
        };
        let admitted = world.admitted(&asked.filter);
        for row in &admitted {
            let hit = hits.iter().find(|hit| hit.row == *row);
            match (near(row), hit) {
                (Some(near), Some(hit)) => {
                    prop_assert!((hit.vector.unwrap() - near.clamp(0.0, 1.0)).abs() < 0.02);
                }
                (Some(near), None) => prop_assert!(near < 0.22),
                (None, hit) => prop_assert!(hit.is_none()),
            }
        }
    }

    #[test]
    fn similar_versions_are_current_and_of_same_scope(
        changes in prop::collection::vec(any_change(), 0..60),
        least in 0_u8..=10,
    ) {
        let (mut world, mut library) = followed(&changes);
        // A memory learned long after all others.
        let mut last = memory("last of all");
        last.learned_at = i64::MAX / 2;
        let last = Change::Add(1000, last);
        world.apply(&last);
        change(&mut library, &last);
        let anew = world.library();
        let least = f32::from(least) / 10.0;
        for (row, own) in &world.memories {
            let alike = library.alike(*row, i64::MAX, least, 100);
            prop_assert_eq!(&alike, &anew.alike(*row, i64::MAX, least, 100));
            for (other, similarity) in alike {
                let found = &world.memories[&other];
                prop_assert!(other != *row && found.scope == own.scope);
                prop_assert!(found.learned_until.is_none() && found.valid.1.is_none());
                prop_assert!((least..=1.0).contains(&similarity));
            }
        }
    }
}

/// A unique word for each number, made of letters.
fn word(round: u64, n: u16) -> String {
    let letters = format!("{round:03}{n:03}").into_bytes();
    let letters = letters
        .into_iter()
        .map(|digit| char::from(digit - b'0' + b'k'));
    letters.collect()
}

#[test]
fn removed_memories_leave_no_trace() {
    let mut world = World::default();
    let mut library = world.library();
    let mut most = 0;
    for round in 0..12_u64 {
        let user = if round % 2 == 0 { "even" } else { "odd" };
        let scope = [None, Some(user), None, None];
        let entity = Change::PutEntity(round, scope, "Bob");
        follow(&mut world, &mut library, &entity);
        for n in 0..400_u16 {
            let mut one = memory(&format!("{} common", word(round, n)));
            one.scope = scope;
            one.vector = Some(vec![1.0, f32::from(n % 5), 0.0, 0.0]);
            one.mentions = vec![round];
            let row = round * 1000 + u64::from(n);
            follow(&mut world, &mut library, &Change::Add(row, one));
        }
        most = most.max(library.bytes());
        if round > 0 {
            for row in world.memories.clone().into_keys().take(400) {
                follow(&mut world, &mut library, &Change::Remove(row));
            }
            follow(&mut world, &mut library, &Change::RemoveEntity(round - 1));
        }
        assert_eq!(library.len(), 400);
        let anew = world.library();
        let own = word(round, 7);
        for text in [&word(0, 7), &own, "common Bob"] {
            for user in [None, Some("even"), Some("odd")] {
                let query = Query {
                    meaning: Some((MODEL, &[0.6, 0.8, 0.0, 0.0])),
                    filter: Filter {
                        scope: [None, user, None, None],
                        ..Filter::default()
                    },
                    ..ask(text, Filter::default())
                };
                assert_eq!(
                    library.recall(&query),
                    anew.recall(&query),
                    "{round} {text}"
                );
            }
        }
    }
    assert!(
        library
            .recall(&ask(&word(0, 7), Filter::default()))
            .is_empty()
    );
    // Nearly five thousand were added, but never more than eight hundred at once.
    assert!(most < 2_000_000, "{most}");
}

#[test]
fn model_is_used_after_use_model() {
    let mut library = Library::default();
    change(&mut library, &Change::Add(1, memory("tea")));
    assert_eq!(library.model(), None);
    library.add_model("old", 2);
    library.add_model("new", 3);
    assert_eq!(library.model(), Some("old"));
    library.set_vector("old", 1, &Quantised::from_vector(&[1.0, 0.0]));
    library.set_vector("new", 1, &Quantised::from_vector(&[0.0, 0.0, 1.0]));
    let found = |library: &Library, model: &str, vector: &[f32]| {
        let query = Query {
            meaning: Some((model, vector)),
            ..ask("", Filter::default())
        };
        library.recall(&query).len()
    };
    assert_eq!(found(&library, "old", &[1.0, 0.0]), 1);
    library.use_model("new");
    assert_eq!(library.model(), Some("new"));
    assert_eq!(found(&library, "old", &[1.0, 0.0]), 0);
    assert_eq!(found(&library, "new", &[0.0, 0.0, 1.0]), 1);
}
