//! Memories: making, changing and removing them.

use std::sync::Arc;

use switchboard_store::memory::{
    Counts, Made, Memories, MemoryChange, Mention, NewMention, NewVersion, Scope,
};

use super::{Place, within};

/// A memory of some time in 2026 that nobody owns, told after its id.
pub(crate) fn memory(id: &str) -> NewVersion {
    NewVersion {
        id: id.into(),
        version: None,
        scope: Scope::default(),
        kind: "semantic".into(),
        content: format!("What {id} is about.").into(),
        importance: 0.5,
        metadata: None,
        valid_from: None,
        valid_until: None,
        learned_at: 1_794_718_800_000_000,
        learned_until: None,
        reason: None,
        superseded_by: None,
    }
}

pub(crate) fn add(version: NewVersion) -> MemoryChange {
    let mentions = Vec::new();
    MemoryChange::Add { version, mentions }
}

pub(crate) async fn write(memories: &Memories, changes: impl Into<Vec<MemoryChange>>) -> Vec<Made> {
    within(memories.write(changes.into())).await.unwrap()
}

#[tokio::test]
async fn smoke() {
    let place = Place::new();
    let store = place.open();
    let memories = store.memories();
    let made = write(
        &memories,
        [MemoryChange::Add {
            version: memory("a"),
            mentions: vec![NewMention {
                id: "e1".into(),
                name: "Ada".into(),
                key: "ada".into(),
                kind: None,
                explicit: false,
            }],
        }],
    )
    .await;
    println!("{made:?}");
    let found = within(memories.get("a")).await.unwrap().unwrap();
    println!("{found:?}");
    let made = write(&memories, [MemoryChange::Delete { id: "a".into() }]).await;
    println!("{made:?}");
    assert_eq!(within(memories.counts()).await.unwrap(), Counts::default());
    let _: Option<(Arc<str>, Mention)> = None;
}
