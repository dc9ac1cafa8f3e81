//! Entities and relations: their creation and deletion.

use switchboard_store::StoreError;
use switchboard_store::memory::{Made, MemoryChange, Mention, NewVersion, Scope};

use super::{
    NOW, assert_sound, delete, found, get, memory, mentioning, said, sizes, text, user, write,
};
use crate::{Place, within};

#[tokio::test]
async fn each_scope_has_one_entity_per_key() {
    let place = Place::new();
    let memories = place.open().memories();
    let of_ada = |id| NewVersion {
        scope: user("ada"),
        ..memory(id)
    };
    let mentions = [found("tea"), said("tea"), found("oslo")];
    let made = write(&memories, [mentioning(of_ada("a"), mentions)]).await;
    let [
        Made::Version {
            mentions,
            new_entities,
            ..
        },
    ] = &made[..]
    else {
        panic!("{made:?}");
    };
    let named = |entity: &Mention| (entity.name.to_string(), entity.explicit);
    let named: Vec<_> = mentions.iter().map(named).collect();
    assert_eq!(
        named,
        [("TEA".to_owned(), true), ("OSLO".to_owned(), false)]
    );
    assert_eq!(new_entities.len(), 2);
    let kept = within(memories.entities_after(0, 9)).await.unwrap();
    assert_eq!(&kept, new_entities);
    assert!(!kept[0].found && kept[1].found);

    let others = [
        mentioning(of_ada("b"), [found("oslo")]),
        mentioning(memory("c"), [found("rome")]),
    ];
    write(&memories, others).await;
    let places = within(memories.entity(&Scope::default(), "oslo"))
        .await
        .unwrap();
    assert_eq!(places, kept[1..]);
    let by_id = within(memories.entity(&user("ada"), "id of oslo"))
        .await
        .unwrap();
    assert_eq!(by_id, places);
    let elsewhere = within(memories.entity(&user("bob"), "oslo")).await.unwrap();
    assert_eq!(elsewhere, []);
    let version = get(&memories, "b").await.unwrap();
    assert_eq!(version.mentions[0].entity, places[0].row);
    assert_eq!(within(memories.counts()).await.unwrap().entities, 3);
    assert_sound(&place);
}

#[tokio::test]
async fn found_entities_are_deleted_with_their_memory() {
    let place = Place::new();
    let memories = place.open().memories();
    let scoped = NewVersion {
        scope: user("ada"),
        ..memory("a")
    };
    let made = write(
        &memories,
        [
            mentioning(scoped.clone(), [found("tea"), found("oslo"), said("ada")]),
            MemoryChange::Revise {
                id: "a".into(),
                was: 1,
                version: scoped.clone(),
                mentions: vec![found("rome")],
            },
            mentioning(
                NewVersion {
                    id: "b".into(),
                    ..scoped
                },
                [found("oslo")],
            ),
        ],
    )
    .await;
    let Made::Version {
        new_entities,
        row: first,
        ..
    } = &made[0]
    else {
        panic!("{made:?}");
    };
    let Made::Version {
        new_entities: later,
        row: second,
        ..
    } = &made[1]
    else {
        panic!("{made:?}");
    };
    let deleted = write(&memories, [delete("a"), delete("a")]).await;
    let gone = Made::Deleted {
        rows: vec![*first, *second],
        entities: vec![new_entities[0].row, later[0].row],
        relations: Vec::new(),
    };
    assert_eq!(deleted, [gone, Made::Nothing]);
    let left = within(memories.entities_after(0, 9)).await.unwrap();
    let left: Vec<_> = left.iter().map(|entity| &*entity.key).collect();
    assert_eq!(left, ["oslo", "ada"]);
    assert_sound(&place);

    write(&memories, [delete("b")]).await;
    let [ada] = &within(memories.entities_after(0, 9)).await.unwrap()[..] else {
        panic!();
    };
    let gone = write(&memories, [MemoryChange::DeleteEntity { row: ada.row }]).await;
    let expected = Made::Deleted {
        rows: Vec::new(),
        entities: vec![ada.row],
        relations: Vec::new(),
    };
    assert_eq!(gone, [expected]);
    let empty = [("memory_counts".to_owned(), 1)];
    let left: Vec<_> = sizes(&place)
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    assert_eq!(left, empty);
    assert_sound(&place);
}

#[tokio::test]
async fn existing_entity_gains_kind_and_description() {
    let place = Place::new();
    let memories = place.open().memories();
    write(
        &memories,
        [mentioning(memory("a"), [found("tea"), found("oslo")])],
    )
    .await;
    let entity = |id: &str, key: &str, kind, description| MemoryChange::Entity {
        id: id.into(),
        scope: Scope::default(),
        name: key.into(),
        key: key.into(),
        kind,
        description,
        learned_at: NOW,
        found: false,
    };
    let made = write(
        &memories,
        [
            entity("x", "tea", text("drink"), None),
            entity("y", "tea", None, text("hot")),
            entity("z", "cup", None, None),
        ],
    )
    .await;
    let of = |row, id: &str, name: &str, created| Made::Entity {
        row,
        id: id.into(),
        name: name.into(),
        created,
    };
    assert_eq!(
        made,
        [
            of(1, "id of tea", "TEA", false),
            of(1, "id of tea", "TEA", false),
            of(3, "z", "cup", true)
        ]
    );
    let tea = within(memories.entity(&Scope::default(), "tea"))
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        (tea.kind, tea.description, tea.found),
        (text("drink"), text("hot"), false)
    );
    assert_eq!(&*tea.name, "TEA");

    let taken = within(memories.write(vec![entity("z", "pot", None, None)])).await;
    assert!(matches!(taken, Err(StoreError::Conflict)), "{taken:?}");
    assert_sound(&place);
}

#[tokio::test]
async fn relations_are_unique_and_keep_their_entities() {
    let place = Place::new();
    let memories = place.open().memories();
    let mentions = [found("tea"), found("oslo"), said("cup")];
    write(&memories, [mentioning(memory("a"), mentions)]).await;
    let relation = |id: &str, from, to, weight| MemoryChange::Relation {
        id: id.into(),
        from,
        to,
        kind: "in".into(),
        weight,
        learned_at: NOW,
    };
    let made = write(
        &memories,
        [
            relation("r", 1, 3, 0.5),
            relation("s", 1, 3, 0.75),
            relation("t", 3, 1, 1.0),
            relation("u", 2, 2, 1.0),
        ],
    )
    .await;
    let of = |row, id: &str, created| Made::Relation {
        row,
        id: id.into(),
        created,
    };
    assert_eq!(
        made,
        [
            of(1, "r", true),
            of(1, "r", false),
            of(2, "t", true),
            of(3, "u", true)
        ]
    );
    let kept = within(memories.relations_after(0, 9)).await.unwrap();
    assert_eq!((kept[0].from, kept[0].to, kept[0].weight), (1, 3, 0.75));
    let dangling = within(memories.write(vec![relation("v", 1, 99, 1.0)])).await;
    assert!(
        matches!(dangling, Err(StoreError::Conflict)),
        "{dangling:?}"
    );

    // Both ends of a relation are permanent, even if they were only found in a text before.
    write(&memories, [delete("a")]).await;
    assert_eq!(within(memories.counts()).await.unwrap().entities, 3);
    let gone = write(
        &memories,
        [
            MemoryChange::DeleteEntity { row: 1 },
            MemoryChange::DeleteRelation { row: 3 },
        ],
    )
    .await;
    let of = |entities: &[u64], relations: &[u64]| Made::Deleted {
        rows: Vec::new(),
        entities: entities.to_vec(),
        relations: relations.to_vec(),
    };
    assert_eq!(gone, [of(&[1], &[1, 2]), of(&[], &[3])]);
    assert_sound(&place);
}
