//! Renewals that no request waits for, that requests no longer wait for, and that another process does.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::SystemTime,
};

use parking_lot::Mutex;
use serde_json::json;
use switchboard_client::auth::{
    Credential, Error, Lock, Renewal, Renewed, Renewing, State, Store, Stored,
};
use switchboard_test_support::until_async;

use crate::{
    auth::{Book, Place, Shared, sign_in},
    modern,
};

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_secs()
}

fn access(store: &Shared) -> String {
    let stored = store.0.credential.lock().clone().unwrap();
    stored.tokens.unwrap().access.expose().to_owned()
}

#[tokio::test]
async fn token_is_renewed_before_it_expires() {
    let place = Place::new(Book::default()).await;
    let store = Shared::default();
    sign_in(&place.oauth(store.clone())).await;
    {
        let mut stored = store.0.credential.lock();
        let tokens = stored.as_mut().unwrap().tokens.as_mut().unwrap();
        // It is due within three seconds.
        (tokens.issued, tokens.expires) = (now() - 34, Some(now() + 6));
    }
    place.book.lock().requests.clear();
    let oauth = place.oauth(store.clone());
    until_async("the token is renewed", async || {
        access(&store) == "access-2"
    })
    .await;
    // No request needed it.
    let book = place.book.lock();
    assert_eq!(book.requests, ["/token"]);
    assert!(matches!(oauth.state(), State::SignedIn { .. }));
}

#[tokio::test]
async fn renewal_outlives_the_request() {
    let place = Place::new(Book::default()).await;
    let store = Shared::default();
    let oauth = place.oauth(store.clone());
    sign_in(&oauth).await;
    place.expire();
    place.book.lock().holds_tokens = true;
    let mut wire = place.wire(&oauth).await;
    wire.send(modern(1, "tools/list", json!({})));
    until_async("the refresh token is used", async || {
        place.book.lock().renewals == 1
    })
    .await;
    drop(wire);
    place.book.lock().holds_tokens = false;
    until_async("the new token is stored", async || {
        access(&store) == "access-2"
    })
    .await;
    let mut wire = place.wire(&oauth).await;
    wire.send(modern(2, "tools/list", json!({})));
    assert_eq!(wire.message().await["id"], 2);
    let book = place.book.lock();
    assert_eq!((book.renewals, book.reused.len()), (1, 0));
}

/// A store whose tokens another process renews.
#[derive(Clone, Default)]
struct Delegating {
    shared: Shared,
    /// The process cannot be started.
    is_alone: bool,
    /// The store of the other process.
    other: Shared,
    outcomes: Arc<Mutex<Vec<Result<(), Error>>>>,
}

impl Delegating {
    fn new() -> Self {
        let shared = Shared::default();
        Self {
            other: shared.clone(),
            shared,
            ..Self::default()
        }
    }
}

impl Store for Delegating {
    fn load(&self) -> Stored<'_, Option<Credential>> {
        self.shared.load()
    }

    fn save(&self, credential: Credential) -> Stored<'_, ()> {
        self.shared.save(credential)
    }

    fn lock(&self) -> Stored<'_, Lock> {
        self.shared.lock()
    }

    fn renew(&self, renewal: Renewal) -> Renewing {
        // The order and the answer pass through pipes.
        let order = serde_json::to_vec(&renewal).unwrap();
        let (other, is_alone) = (self.other.clone(), self.is_alone);
        let outcomes = Arc::clone(&self.outcomes);
        Box::pin(async move {
            if is_alone {
                return None;
            }
            let renewal: Renewal = serde_json::from_slice(&order).unwrap();
            let answer = serde_json::to_vec(&renewal.run(other).await).unwrap();
            let renewed: Renewed = serde_json::from_slice(&answer).unwrap();
            outcomes.lock().push(renewed.outcome.clone());
            Some(renewed)
        })
    }
}

#[tokio::test]
async fn another_process_renews_the_tokens() {
    let place = Place::new(Book::default()).await;
    let store = Delegating::new();
    let oauth = place.oauth(store.clone());
    sign_in(&oauth).await;
    let mut wire = place.wire(&oauth).await;
    for id in 0..3 {
        place.expire();
        wire.send(modern(id, "tools/list", json!({})));
        assert_eq!(wire.message().await["id"], id);
    }
    assert_eq!(*store.outcomes.lock(), [Ok(()), Ok(()), Ok(())]);
    assert_eq!(access(&store.shared), "access-4");
}

#[tokio::test]
async fn tokens_are_renewed_without_another_process() {
    let place = Place::new(Book::default()).await;
    let store = Delegating {
        is_alone: true,
        ..Delegating::new()
    };
    let oauth = place.oauth(store.clone());
    sign_in(&oauth).await;
    let mut wire = place.wire(&oauth).await;
    place.expire();
    wire.send(modern(1, "tools/list", json!({})));
    assert_eq!(wire.message().await["id"], 1);
    assert_eq!(access(&store.shared), "access-2");
}

#[tokio::test]
async fn renewal_by_others_is_not_repeated() {
    let place = Place::new(Book::default()).await;
    let store = Delegating::new();
    let (first, second) = (place.oauth(store.clone()), place.oauth(store.clone()));
    sign_in(&first).await;
    let (mut one, mut two) = (place.wire(&first).await, place.wire(&second).await);
    // Both know the first token.
    two.send(modern(0, "tools/list", json!({})));
    assert_eq!(two.message().await["id"], 0);
    place.expire();
    for id in 1..20 {
        one.send(modern(id, "tools/list", json!({})));
        two.send(modern(id, "tools/list", json!({})));
    }
    for _ in 1..20 {
        assert!(one.message().await.get("result").is_some());
        assert!(two.message().await.get("result").is_some());
    }
    let book = place.book.lock();
    assert_eq!((book.renewals, book.reused.len()), (1, 0));
}

#[tokio::test]
async fn end_of_the_sign_in_is_passed_on() {
    let place = Place::new(Book::default()).await;
    let store = Delegating::new();
    let oauth = place.oauth(store.clone());
    sign_in(&oauth).await;
    place.expire();
    place.book.lock().refresh.clear();
    let mut wire = place.wire(&oauth).await;
    wire.send(modern(1, "tools/list", json!({})));
    assert_eq!(wire.failure().await.1, Some(401));
    assert!(matches!(oauth.state(), State::SignedOut { .. }));
    let stored = store.shared.0.credential.lock().clone().unwrap();
    assert_eq!(stored.tokens, None);
    sign_in(&oauth).await;
    wire.send(modern(2, "tools/list", json!({})));
    assert_eq!(wire.message().await["id"], 2);
}

#[tokio::test]
async fn outage_is_passed_on() {
    let place = Place::new(Book::default()).await;
    let oauth = place.oauth(Delegating::new());
    sign_in(&oauth).await;
    place.expire();
    place.book.lock().is_down = true;
    let mut wire = place.wire(&oauth).await;
    wire.send(modern(1, "tools/list", json!({})));
    assert_eq!(wire.failure().await.1, Some(401));
    let outage = oauth.outage().unwrap();
    assert!(outage.to_string().contains("overloaded"), "{outage}");
    assert!(matches!(oauth.state(), State::SignedIn { .. }));
}

#[tokio::test]
async fn unsaved_tokens_of_others_are_kept() {
    let place = Place::new(Book::default()).await;
    let store = Delegating {
        other: Shared::default(),
        ..Delegating::new()
    };
    let oauth = place.oauth(store.clone());
    sign_in(&oauth).await;
    // The disk is full when the other process saves.
    *store.other.0.credential.lock() = store.shared.0.credential.lock().clone();
    store.other.0.is_full.store(true, Relaxed);
    place.expire();
    let mut wire = place.wire(&oauth).await;
    wire.send(modern(1, "tools/list", json!({})));
    assert_eq!(wire.message().await["id"], 1);
    assert_eq!(access(&store.shared), "access-1");
    assert!(store.shared.0.lock.try_lock().is_err(), "it is locked");
    oauth.settled().await;
    assert_eq!(access(&store.shared), "access-2");
    assert!(store.shared.0.lock.try_lock().is_ok(), "it is unlocked");
}
