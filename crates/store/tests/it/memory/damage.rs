//! Memories in damaged files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use switchboard_store::memory::{
    Memories, MemoryChange, NewVersion, Piece, SALVAGED_NAMESPACE, Salvaged, Scope, Vector,
    Version, salvage,
};
use switchboard_store::{Store, StoreError};

use super::{
    NOW, add, assert_sound, everything, found, memory, mentioning, revise, said, text, user, write,
};
use crate::{Place, all, approval, close, names, new, ready, record, within};

const PAGE: usize = 4096;

/// Number of memories in the file that is damaged below. Each has two versions.
const MEMORIES: u64 = 600;

/// Versions by memory ID and number, which are the same in every file.
type Told = BTreeMap<(String, u32), Version>;

/// Removes the row numbers, which differ between files.
fn told(versions: Vec<Version>) -> Told {
    let plain = |mut version: Version| {
        version.row = 0;
        for mention in &mut version.mentions {
            mention.entity = 0;
        }
        version.mentions.sort_by(|a, b| a.name.cmp(&b.name));
        ((version.id.to_string(), version.version), version)
    };
    versions.into_iter().map(plain).collect()
}

/// Creates and closes a file with many objects of every type.
async fn filled(place: &Place) -> Told {
    let store = place.open();
    let memories = store.memories();
    for part in 0..MEMORIES / 100 {
        let changes = (part * 100..part * 100 + 100).flat_map(|number| {
            let scope = match number % 3 {
                0 => Scope::default(),
                1 => user(&format!("user {}", number % 40)),
                _ => Scope {
                    run: text(&format!("run {}", number % 70)),
                    ..user("ada")
                },
            };
            let first = NewVersion {
                scope,
                // Sometimes longer than a page.
                content: "Something to remember. "
                    .repeat(if number % 50 == 0 { 500 } else { 9 })
                    .into(),
                ..memory(&format!("memory {number}"))
            };
            let second = NewVersion {
                learned_at: NOW + 1,
                ..first.clone()
            };
            // The same name exists once per scope, so the entities need unique IDs.
            let mut mentions = [
                said(&format!("thing {}", number % 200)),
                found(&format!("place {number}")),
            ];
            mentions[0].id = format!("thing of {number}").into();
            [mentioning(first, mentions), revise(1, second)]
        });
        write(&memories, changes.collect::<Vec<_>>()).await;
    }
    let relations = (1..200).map(|number| MemoryChange::Relation {
        id: format!("relation {number}").into(),
        from: number,
        to: number + 1,
        kind: "next to".into(),
        weight: 0.5,
        learned_at: NOW,
    });
    write(&memories, relations.collect::<Vec<_>>()).await;
    within(memories.add_model("m", 64)).await.unwrap();
    let vectors = (1..=MEMORIES).map(|row| Vector {
        row,
        scale: 1.0,
        numbers: vec![1; 64],
    });
    within(memories.put_vectors("m", vectors.collect()))
        .await
        .unwrap();
    let told = told(everything(&memories).await);
    close(&store).await;
    told
}

fn damage(file: &Path, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(file).unwrap();
    how(&mut bytes);
    std::fs::write(file, bytes).unwrap();
}

/// Opens a damaged file and checks that memory reports the damage and everything else works.
async fn open_damaged(place: &Place) -> (Store, Memories) {
    let store = place.open();
    let memories = store.memories();
    let refused = loop {
        // Damage in the middle of the file is detected when a query reaches it.
        match within(memories.versions_after(0, 1000)).await {
            Err(error) => break error,
            Ok(_) => {
                for version in 0..MEMORIES {
                    drop(within(memories.history(&format!("memory {version}"))).await);
                }
            }
        }
    };
    let StoreError::Damaged { aside } = &refused else {
        panic!("{refused:?}");
    };
    assert!(aside.contains("switchboard.db.damaged-"), "{aside}");
    let hint = refused.hint().unwrap();
    assert!(hint.contains("switchboard memory repair"), "{hint}");
    assert!(!refused.is_retryable());
    assert_eq!(
        within(memories.damaged()).await.unwrap().as_ref(),
        Some(aside)
    );
    for refused in [
        within(memories.write(vec![add(memory("a"))]))
            .await
            .map(drop),
        within(memories.counts()).await.map(drop),
        within(memories.add_model("m", 3)).await,
        within(memories.activate("m")).await,
        within(memories.put_vectors("m", Vec::new())).await,
    ] {
        assert!(
            matches!(refused, Err(StoreError::Damaged { .. })),
            "{refused:?}"
        );
    }
    assert!(ready(&store).await.is_some());
    within(store.write(vec![new(approval("k1"))]))
        .await
        .unwrap();
    record(&store, 0..2);
    assert_eq!(names(&store, all()).await.len(), 2);
    (store, memories)
}

/// Checks that everything found is unchanged and in its own scope or the salvaged one.
fn assert_part_of(found: &Told, whole: &Told) {
    for (key, version) in found {
        // A blank page in the middle of a text is visible only in the text.
        if version.content.contains('\0') {
            continue;
        }
        let mut expected = whole[key].clone();
        if version.scope.namespace.as_deref() == Some(SALVAGED_NAMESPACE) {
            expected.scope = version.scope.clone();
        }
        expected
            .mentions
            .retain(|mention| version.mentions.contains(mention));
        // Mentions from lost pages are not known any more.
        assert_eq!(*version, expected);
    }
}

async fn repair(memories: &Memories) -> Salvaged {
    let mut told = Vec::new();
    let salvaged = within(memories.repair(|so_far| told.push(so_far.versions)))
        .await
        .unwrap();
    assert!(told.is_sorted());
    assert_eq!(told.last().copied().unwrap_or(0), salvaged.versions);
    assert_eq!(within(memories.damaged()).await.unwrap(), None);
    salvaged
}

#[tokio::test]
async fn damaged_beginning_loses_nothing() {
    for length in [16, 100, PAGE] {
        let place = Place::new();
        let whole = filled(&place).await;
        damage(&place.file, |bytes| bytes[..length].fill(0x5a));
        let (store, memories) = open_damaged(&place).await;
        let salvaged = repair(&memories).await;
        assert_eq!(salvaged.problems.len(), 1, "{salvaged:?}");
        assert_eq!(salvaged.versions, 2 * MEMORIES);
        let counts = within(memories.counts()).await.unwrap();
        assert_eq!(salvaged.entities, counts.entities);
        assert!(counts.entities > MEMORIES);
        assert_eq!((salvaged.relations, counts.relations), (199, 199));
        assert_eq!(told(everything(&memories).await), whole);
        write(&memories, [add(memory("new"))]).await;
        close(&store).await;
        assert_sound(&place);

        let again = place.open().memories();
        assert_eq!(within(again.damaged()).await.unwrap(), None);
        assert_eq!(everything(&again).await.len(), whole.len() + 1);
        assert_eq!(place.names("switchboard.db.damaged-"), [""; 0]);
        assert_eq!(place.names("switchboard.db.salvaged-").len(), 1);
    }
}

/// For any page: everything read is unchanged, no more is lost than was on the page, and the loss is
/// reported.
#[tokio::test]
async fn blank_page_loses_only_its_own_contents() {
    let place = Place::new();
    let whole = filled(&place).await;
    let sound = std::fs::read(&place.file).unwrap();
    let pages = sound.len() / PAGE;
    assert!(pages > 200, "{pages}");
    let (mut most_lost, mut blank) = (0, 0);
    // The first pages locate the others; of the rest, a sample is enough.
    for page in (0..pages).filter(|page| *page < 50 || page % 5 == 0) {
        let file = place.folder.path().join("wreck.db");
        let mut bytes = sound.clone();
        bytes[page * PAGE..][..PAGE].fill(0);
        std::fs::write(&file, bytes).unwrap();
        let mut versions = Vec::new();
        let salvaged = salvage(&file, |piece| {
            if let Piece::Version(version) = piece {
                versions.push(version);
            }
        })
        .unwrap();
        let lost = whole.len() - versions.len();
        let gaps = versions
            .iter()
            .any(|version| version.content.contains('\0'));
        assert_part_of(&told(versions), &whole);
        assert!((lost == 0 && !gaps) || !salvaged.problems.is_empty());
        blank += u32::from(gaps);
        most_lost = most_lost.max(lost);
    }
    assert!(blank > 0);
    // A page cannot hold more versions of this length.
    assert!((1..20).contains(&most_lost), "{most_lost}");
    assert_eq!(place.names("wreck.db."), [""; 0], "copies are removed");
}

#[tokio::test]
async fn truncated_file_is_salvaged_up_to_the_cut() {
    let place = Place::new();
    let whole = filled(&place).await;
    damage(&place.file, |bytes| {
        bytes.truncate(bytes.len() * 6 / 10 + 77);
    });
    let (store, memories) = open_damaged(&place).await;
    let salvaged = repair(&memories).await;
    assert!(!salvaged.problems.is_empty());
    let back = told(everything(&memories).await);
    assert_part_of(&back, &whole);
    assert!(
        back.len() > whole.len() / 4,
        "{} of {}",
        back.len(),
        whole.len()
    );
    assert_eq!(salvaged.versions, back.len() as u64);
    close(&store).await;
    assert_sound(&place);
}

#[tokio::test]
async fn damaged_middle_is_detected_and_repaired() {
    let place = Place::new();
    let whole = filled(&place).await;
    damage(&place.file, |bytes| {
        let middle = bytes.len() / 2 / PAGE * PAGE;
        bytes[middle..middle + 3 * PAGE].fill(0);
    });
    let (store, memories) = open_damaged(&place).await;
    repair(&memories).await;
    let back = told(everything(&memories).await);
    assert_part_of(&back, &whole);
    assert!(
        back.len() > whole.len() - 150,
        "{} of {}",
        back.len(),
        whole.len()
    );
    close(&store).await;
    assert_sound(&place);
}

#[tokio::test]
async fn damaged_memories_can_be_discarded() {
    let place = Place::new();
    filled(&place).await;
    damage(&place.file, |bytes| bytes.fill(0x5a));
    let (store, memories) = open_damaged(&place).await;
    within(memories.discard_damaged()).await.unwrap();
    assert_eq!(within(memories.damaged()).await.unwrap(), None);
    assert_eq!(everything(&memories).await, []);
    write(&memories, [add(memory("a"))]).await;
    assert_eq!(place.names("switchboard.db.discarded-").len(), 1);
    close(&store).await;
    assert_sound(&place);
    // A file created later has no damaged file to report.
    std::fs::remove_file(&place.file).unwrap();
    assert_eq!(
        within(place.open().memories().damaged()).await.unwrap(),
        None
    );
}

/// The process was killed after setting a file aside and before creating a new one.
#[tokio::test]
async fn new_file_reports_damaged_file_beside_it() {
    let place = Place::new();
    let whole = filled(&place).await;
    let aside = place
        .folder
        .path()
        .join("switchboard.db.damaged-1794718800");
    std::fs::rename(&place.file, &aside).unwrap();
    let (store, memories) = open_damaged_anew(&place).await;
    close(&store).await;
    drop(memories);
    let (_store, memories) = open_damaged_anew(&place).await;
    let salvaged = repair(&memories).await;
    assert_eq!(salvaged.problems, []);
    assert_eq!(told(everything(&memories).await), whole);
}

async fn open_damaged_anew(place: &Place) -> (Store, Memories) {
    let store = place.open();
    let memories = store.memories();
    let refused = within(memories.get("a")).await;
    assert!(
        matches!(refused, Err(StoreError::Damaged { .. })),
        "{refused:?}"
    );
    (store, memories)
}

/// The second file was created because the first was damaged, and the first was not repaired yet.
#[tokio::test]
async fn two_damaged_files_are_reported_and_restored() {
    let place = Place::new();
    let whole = filled(&place).await;
    damage(&place.file, |bytes| bytes[..PAGE].fill(0));
    let (store, _) = open_damaged(&place).await;
    close(&store).await;
    damage(&place.file, |bytes| bytes[..PAGE].fill(0));
    let (_store, memories) = open_damaged(&place).await;
    assert_eq!(place.names("switchboard.db.damaged-").len(), 2);
    repair(&memories).await;
    assert_eq!(told(everything(&memories).await), whole);
    assert_eq!(place.names("switchboard.db.salvaged-").len(), 2);
}

#[tokio::test]
async fn repair_reports_a_damaged_file_that_disappeared() {
    let place = Place::new();
    std::fs::write(&place.file, "This is no database.".repeat(300)).unwrap();
    let (_store, memories) = open_damaged_anew(&place).await;
    let aside: PathBuf = place
        .folder
        .path()
        .join(&place.names("switchboard.db.damaged-")[0]);
    std::fs::remove_file(&aside).unwrap();
    let refused = within(memories.repair(|_| ())).await;
    let Err(StoreError::Unavailable { message, action }) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        message.contains("damaged-") && action.contains("exists"),
        "{message}; {action}"
    );
    within(memories.discard_damaged()).await.unwrap();
    write(&memories, [add(memory("a"))]).await;
}
