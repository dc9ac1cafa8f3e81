//! Memories found through the entities that they mention.

use switchboard_recall::{Channels, Filter, Library};

use crate::world::{Change, Memory, ask, change, memory, rows};

const HOME: [Option<&str>; 4] = [Some("home"), None, None, None];
const OTHER: [Option<&str>; 4] = [Some("other"), None, None, None];

fn at(
    scope: [Option<&'static str>; 4],
    learned_at: i64,
    content: &str,
    mentions: &[u64],
) -> Memory {
    Memory {
        scope,
        // A day apart, so that no memory is found through a neighbour.
        learned_at: learned_at * 86_400_000_000,
        mentions: mentions.to_vec(),
        ..memory(content)
    }
}

/// Alice (1) works at Acme (2); one memory is about Acme only.
fn library() -> Library {
    let mut library = Library::default();
    for (row, one) in [
        (1, at(HOME, 1, "Alice moved into the green house", &[1])),
        (2, at(HOME, 2, "the office closes at noon on Fridays", &[2])),
        (3, at(HOME, 3, "the bakery is out of bread", &[])),
        (
            4,
            at(OTHER, 4, "the office closes at noon on Fridays", &[3]),
        ),
    ] {
        change(&mut library, &Change::Add(row, one));
    }
    library.put_entity(1, HOME, "Alice");
    library.put_entity(2, HOME, "Acme Corp");
    library.put_entity(3, OTHER, "Acme Corp");
    library.put_relation(1, 1, 2, 1.0);
    library
}

fn home() -> Filter<'static> {
    Filter {
        scope: HOME,
        ..Filter::default()
    }
}

#[test]
fn memory_is_found_through_an_existing_relation() {
    let mut library = library();
    let hits = library.recall(&ask("What about alice?", home()));
    assert_eq!(rows(&hits), [1, 2]);
    assert!(hits[1].graph.is_some() && hits[1].lexical.is_none());
    assert_eq!(hits[1].entities, ["Alice", "Acme Corp"]);
    library.remove_relation(1);
    assert_eq!(
        rows(&library.recall(&ask("What about alice?", home()))),
        [1]
    );
    library.put_relation(1, 2, 1, 0.5);
    assert_eq!(
        rows(&library.recall(&ask("What about alice?", home()))),
        [1, 2]
    );
    library.remove_entity(2);
    assert_eq!(
        rows(&library.recall(&ask("What about alice?", home()))),
        [1]
    );
}

#[test]
fn relation_in_another_scope_is_not_followed() {
    let mut library = library();
    library.remove_relation(1);
    library.put_entity(4, OTHER, "Alice");
    library.put_relation(2, 4, 3, 1.0);
    assert_eq!(rows(&library.recall(&ask("alice", home()))), [1]);
    // Where both scopes are visible, the name is one node.
    assert_eq!(
        rows(&library.recall(&ask("alice", Filter::default()))),
        [1, 4, 2]
    );
}

#[test]
fn longest_known_name_wins() {
    let mut library = library();
    change(
        &mut library,
        &Change::Add(5, at(HOME, 9, "closed for repairs", &[5])),
    );
    library.put_entity(5, HOME, "Acme");
    let graph = Channels {
        lexical: false,
        vector: false,
        graph: true,
    };
    let found = |text: &str| {
        let mut query = ask(text, home());
        query.channels = graph;
        rows(&library.recall(&query))
    };
    assert_eq!(found("is ACME  corp's office open?"), [2, 1]);
    assert_eq!(found("is acme open?"), [5]);
    assert_eq!(found("is acmes open?"), Vec::<u64>::new());
}

#[test]
fn entity_with_many_relations_passes_on_little() {
    let mut library = library();
    let through_alice = |library: &Library| {
        let hits = library.recall(&ask("alice", home()));
        hits.iter()
            .find(|hit| hit.row == 2)
            .and_then(|hit| hit.graph)
            .unwrap()
    };
    let before = through_alice(&library);
    for n in 10..40 {
        library.put_entity(n, HOME, &format!("Person {n}"));
        library.put_relation(n, 1, n, 1.0);
    }
    assert!(through_alice(&library) < before / 3.0);
}

#[test]
fn names_in_a_script_without_spaces_are_found() {
    let mut library = library();
    change(
        &mut library,
        &Change::Add(5, at(HOME, 9, "ゆっくり話す", &[5])),
    );
    library.put_entity(5, HOME, "田中");
    assert_eq!(rows(&library.recall(&ask("昨日の田中さん", home()))), [5]);
}
