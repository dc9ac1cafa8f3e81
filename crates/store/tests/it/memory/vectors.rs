//! Vectors of memories, and their models.

use switchboard_store::StoreError;
use switchboard_store::memory::{Memories, MemoryChange, ModelRow, Vector};
use switchboard_test_support::until_async;

use super::{add, assert_sound, delete, memory, sizes, write, write_one};
use crate::{Place, within};

fn vector(row: u64, number: i8) -> Vector {
    Vector {
        row,
        scale: 0.25,
        numbers: vec![number, -128, 127],
    }
}

async fn fill(memories: &Memories, model: &str, rows: impl IntoIterator<Item = u64>) {
    let vectors = rows.into_iter().map(|row| vector(row, 1)).collect();
    within(memories.put_vectors(model, vectors)).await.unwrap();
}

async fn rows(memories: &Memories, model: &str) -> Vec<u64> {
    let found = within(memories.vectors_after(model, 0, 9999))
        .await
        .unwrap();
    found.iter().map(|vector| vector.row).collect()
}

async fn lacking(memories: &Memories, model: &str, after: u64) -> Vec<u64> {
    let found = within(memories.lacking(model, after, 9999)).await.unwrap();
    for (row, content) in &found {
        let version = within(memories.versions(vec![*row]))
            .await
            .unwrap()
            .remove(0);
        assert_eq!(version.content, *content);
    }
    found.iter().map(|(row, _)| *row).collect()
}

async fn three(place: &Place) -> Memories {
    let memories = place.open().memories();
    for id in ["a", "b", "c"] {
        write_one(&memories, add(memory(id))).await;
    }
    memories
}

#[tokio::test]
async fn vectors_round_trip_and_missing_ones_are_listed() {
    let place = Place::new();
    let memories = three(&place).await;
    within(memories.add_model("m", 3)).await.unwrap();
    assert_eq!(lacking(&memories, "m", 0).await, [1, 2, 3]);
    assert_eq!(lacking(&memories, "m", 2).await, [3]);
    let gone = vector(99, 0);
    let put = vec![vector(1, 5), vector(3, 6), gone];
    within(memories.put_vectors("m", put)).await.unwrap();
    within(memories.put_vectors("m", vec![vector(3, -7)]))
        .await
        .unwrap();
    let kept = within(memories.vectors_after("m", 0, 9)).await.unwrap();
    assert_eq!(kept, [vector(1, 5), vector(3, -7)]);
    let later = within(memories.vectors_after("m", 1, 9)).await.unwrap();
    assert_eq!(later, [vector(3, -7)]);
    assert_eq!(lacking(&memories, "m", 0).await, [2]);
    fill(&memories, "m", [2]).await;
    assert_eq!(lacking(&memories, "m", 0).await, [0; 0]);
    write(&memories, [add(memory("d")), delete("b")]).await;
    assert_eq!(lacking(&memories, "m", 0).await, [4]);
    assert_eq!(rows(&memories, "m").await, [1, 3]);
    assert_sound(&place);
}

#[tokio::test]
async fn counts_refer_to_the_active_model() {
    let place = Place::new();
    let memories = three(&place).await;
    let counts = async || {
        let counts = within(memories.counts()).await.unwrap();
        (counts.vectors_of_active, counts.lacking)
    };
    assert_eq!(counts().await, (0, 3));
    within(memories.add_model("m", 3)).await.unwrap();
    fill(&memories, "m", [1, 2]).await;
    assert_eq!(counts().await, (0, 3));
    within(memories.activate("m")).await.unwrap();
    assert_eq!(counts().await, (2, 1));
    within(memories.add_model("n", 3)).await.unwrap();
    fill(&memories, "n", [1]).await;
    let row = |fingerprint: &str, vectors, active| ModelRow {
        fingerprint: fingerprint.into(),
        dimensions: 3,
        vectors,
        active,
    };
    let models = within(memories.models()).await.unwrap();
    assert_eq!(models, [row("m", 2, true), row("n", 1, false)]);
    write(&memories, [delete("a")]).await;
    let models = within(memories.models()).await.unwrap();
    assert_eq!(models, [row("m", 1, true), row("n", 0, false)]);
    assert_eq!(counts().await, (1, 1));
    write(&memories, [MemoryChange::Clear]).await;
    assert_eq!(counts().await, (0, 0));
    assert_sound(&place);
}

#[tokio::test]
async fn vectors_that_do_not_fit_are_refused_entirely() {
    let place = Place::new();
    let memories = three(&place).await;
    within(memories.add_model("m", 3)).await.unwrap();
    within(memories.add_model("m", 3)).await.unwrap();
    let refused = within(memories.add_model("m", 4)).await;
    assert!(
        matches!(refused, Err(StoreError::Invalid { .. })),
        "{refused:?}"
    );
    let short = Vector {
        numbers: vec![1],
        ..vector(2, 0)
    };
    let refused = within(memories.put_vectors("m", vec![vector(1, 0), short])).await;
    assert!(
        matches!(refused, Err(StoreError::Invalid { .. })),
        "{refused:?}"
    );
    let endless = Vector {
        scale: f32::INFINITY,
        ..vector(2, 0)
    };
    let refused = within(memories.put_vectors("m", vec![vector(1, 0), endless])).await;
    assert!(
        matches!(refused, Err(StoreError::Invalid { .. })),
        "{refused:?}"
    );
    assert_eq!(rows(&memories, "m").await, [0; 0]);
    let refused = within(memories.put_vectors("x", vec![vector(1, 0)])).await;
    assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
    let refused = within(memories.activate("x")).await;
    assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
    assert_eq!(rows(&memories, "x").await, [0; 0]);
    assert_eq!(lacking(&memories, "x", 0).await, [0; 0]);
}

/// More vectors than one step removes, so that it takes several; removal continues after a restart.
#[tokio::test]
async fn vectors_of_retired_models_are_removed_for_good() {
    let place = Place::new();
    let store = place.open();
    let memories = store.memories();
    let many = (0..1300).map(|number| add(memory(&format!("{number}"))));
    write(&memories, many.collect::<Vec<_>>()).await;
    for model in ["m", "n", "o"] {
        within(memories.add_model(model, 3)).await.unwrap();
        fill(&memories, model, 1..=1300).await;
    }
    within(memories.activate("n")).await.unwrap();
    let models = within(memories.models()).await.unwrap();
    assert_eq!(models.len(), 1);
    assert_eq!(rows(&memories, "m").await, [0; 0]);
    let refused = within(memories.put_vectors("o", vec![vector(1, 0)])).await;
    assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
    crate::close(&store).await;

    let memories = place.open().memories();
    assert_eq!(
        within(memories.counts()).await.unwrap().vectors_of_active,
        1300
    );
    let left = || {
        sizes(&place)
            .into_iter()
            .find(|(name, _)| name == "memory_models")
    };
    until_async("they go", async || {
        left() == Some(("memory_models".to_owned(), 1))
    })
    .await;
    assert_eq!(rows(&memories, "n").await.len(), 1000);
    assert_sound(&place);
}

/// Vectors that were removed already count as missing.
#[tokio::test]
async fn reinstated_model_lacks_the_vectors_removed_meanwhile() {
    let place = Place::new();
    let memories = three(&place).await;
    for model in ["n", "m"] {
        within(memories.add_model(model, 3)).await.unwrap();
        fill(&memories, model, 1..=3).await;
        assert_eq!(lacking(&memories, model, 0).await, [0; 0]);
    }
    within(memories.activate("n")).await.unwrap();
    within(memories.add_model("m", 3)).await.unwrap();
    let there = rows(&memories, "m").await;
    let lacking = lacking(&memories, "m", 0).await;
    let mut all = [there, lacking].concat();
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3]);
    assert_sound(&place);
}
