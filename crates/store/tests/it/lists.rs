//! Lists of approvals, compared with a naive model.

use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use switchboard_store::{
    Approval, BYTES_PER_ANSWER, Change, ROWS_PER_ANSWER, STATUSES_PER_QUESTION, StoreError, Which,
};

use super::{Place, approval, new, within, write};

const WORDS: [&str; 4] = ["a", "b", "A", ""];

fn word() -> impl Strategy<Value = Arc<str>> {
    (0..WORDS.len()).prop_map(|index| WORDS[index].into())
}

/// An approval with few distinct values per field, so that many approvals share them.
fn row() -> impl Strategy<Value = Approval> {
    let id = "[a-c]{1,2}";
    (id, word(), word(), word(), any::<bool>(), 0_u64..4).prop_map(
        |(id, kind, status, server, open, created)| {
            let plain = approval(&id);
            Approval {
                kind,
                status,
                server,
                open,
                created: plain.created + Duration::from_micros(created),
                ..plain
            }
        },
    )
}

fn which() -> impl Strategy<Value = Which> {
    let before = prop::option::of("[a-c]{1,2}".prop_map(Arc::from));
    let word = || prop::option::of(word());
    (
        vec(self::word(), 0..3),
        any::<Option<bool>>(),
        word(),
        word(),
        before,
        0_usize..8,
    )
        .prop_map(|(statuses, open, kind, server, before, limit)| Which {
            statuses,
            open,
            kind,
            server,
            before,
            limit,
        })
}

/// The expected answer.
fn model(rows: &[Approval], which: &Which) -> Vec<Approval> {
    let place = |row: &Approval| (row.created, row.id.clone());
    let mut found = rows.to_vec();
    found.sort_by_key(|row| std::cmp::Reverse(place(row)));
    if let Some(before) = &which.before {
        let Some(bound) = rows.iter().find(|row| row.id == *before).map(place) else {
            return Vec::new();
        };
        found.retain(|row| place(row) < bound);
    }
    found.retain(|row| {
        (which.statuses.is_empty() || which.statuses.contains(&row.status))
            && which.open.is_none_or(|open| row.open == open)
            && which.kind.as_ref().is_none_or(|kind| row.kind == *kind)
            && which
                .server
                .as_ref()
                .is_none_or(|server| row.server == *server)
    });
    found.truncate(which.limit);
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// The rows are written in order, and a repeated ID becomes a newer version.
    #[test]
    fn lists_agree_with_the_model(rows in vec(row(), 0..25), asked in vec(which(), 1..25)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let place = Place::new();
            let store = place.open();
            let mut known: Vec<Approval> = Vec::new();
            let mut changes = Vec::new();
            for row in rows {
                let last = known.iter().position(|known| known.id == row.id);
                let was = last.map_or(0, |last| known.swap_remove(last).version);
                let row = Approval { version: was + 1, ..row };
                known.push(row.clone());
                changes.push(Change::Approval { row, was });
            }
            write(&store, changes).await.unwrap();
            for which in asked {
                let found = within(store.approvals(which.clone())).await.unwrap();
                assert_eq!(found, model(&known, &which), "{which:?}");
            }
        });
    }
}

#[tokio::test]
async fn pages_have_no_gaps_or_overlaps() {
    let place = Place::new();
    let store = place.open();
    let rows: Vec<_> = (0..2500)
        .map(|number| approval(&format!("{number:04}")))
        .collect();
    write(&store, rows.iter().cloned().map(new).collect::<Vec<_>>())
        .await
        .unwrap();
    let mut before = None;
    let mut found = Vec::new();
    loop {
        let which = Which {
            before,
            limit: usize::MAX,
            ..Which::default()
        };
        let page = within(store.approvals(which)).await.unwrap();
        assert!(page.len() <= ROWS_PER_ANSWER);
        let Some(last) = page.last() else { break };
        before = Some(last.id.clone());
        found.extend(page);
    }
    assert!(found.iter().eq(rows.iter().rev()));
}

#[tokio::test]
async fn long_approvals_shorten_but_never_empty_an_answer() {
    let place = Place::new();
    let store = place.open();
    let body: Arc<str> = "x".repeat(BYTES_PER_ANSWER / 2 - 4096).into();
    for id in ["k1", "k2", "k3"] {
        let row = Approval {
            body: Arc::clone(&body),
            ..approval(id)
        };
        write(&store, [new(row)]).await.unwrap();
    }
    let ids = |before: Option<&str>| {
        let which = Which {
            before: before.map(Arc::from),
            ..Which::default()
        };
        let store = &store;
        async move {
            let found = within(store.approvals(which)).await.unwrap();
            found
                .into_iter()
                .map(|row| row.id.to_string())
                .collect::<Vec<_>>()
        }
    };
    assert_eq!(ids(None).await, ["k3", "k2"]);
    assert_eq!(ids(Some("k2")).await, ["k1"]);
    assert_eq!(ids(Some("k1")).await, [""; 0]);
}

#[tokio::test]
async fn too_many_statuses_are_refused_and_duplicates_merged() {
    let place = Place::new();
    let store = place.open();
    write(&store, [new(approval("k1"))]).await.unwrap();
    let asked = |statuses| {
        within(store.approvals(Which {
            statuses,
            ..Which::default()
        }))
    };
    let same: Vec<Arc<str>> = vec!["pending".into(); 10_000];
    assert_eq!(asked(same).await.unwrap().len(), 1);
    let other = (0..=STATUSES_PER_QUESTION).map(|number| number.to_string().into());
    let refused = asked(other.collect()).await;
    assert!(
        matches!(refused, Err(StoreError::TooLarge { .. })),
        "{refused:?}"
    );
}
