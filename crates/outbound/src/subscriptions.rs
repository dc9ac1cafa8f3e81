//! Subscriptions of clients to resources. A server has one subscription per resource, regardless of
//! the number of clients, and receives it again on every new connection.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;
use switchboard_base::{
    caller::{Caller, Principal},
    notifications::{News, NotificationQueue},
};
use switchboard_client::{Client, Raw};
use switchboard_wire::method;

/// The subscriptions to resources of one server.
#[derive(Debug, Default)]
pub struct Subscriptions {
    last: AtomicU64,
    by_uri: Mutex<BTreeMap<String, Vec<Watcher>>>,
    /// Held while the server is asked, so that its state matches the last wish.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct Watcher {
    number: u64,
    caller: Caller,
    notifications: Arc<NotificationQueue>,
    /// The client knows the resource under the URI that the gateway exposes.
    exposed: bool,
}

/// The budget for subscriptions to all servers, in bytes.
#[derive(Debug, Default)]
pub struct Budget {
    owner: AtomicUsize,
    tokens: AtomicUsize,
    strangers: AtomicUsize,
}

/// The budget of the owner's clients.
const OWNER_BYTES: usize = 32 * 1024 * 1024;
/// The budgets of all clients with tokens, and of all others. Together they are small enough to leave room for the
/// owner at every server.
const TOKENS_BYTES: usize = 2 * 1024 * 1024;
const STRANGERS_BYTES: usize = 2 * 1024 * 1024;
const OTHERS_BYTES: usize = TOKENS_BYTES + STRANGERS_BYTES;
/// The cost of a subscription in addition to its URI.
const PLACE_BYTES: usize = 512;
const _: () = assert!(OTHERS_BYTES / PLACE_BYTES < WATCHED_MAX && OTHERS_BYTES < WATCHED_BYTES);

impl Budget {
    /// Reserves room for a resource; `None` if this principal has none left.
    pub(crate) fn take(self: &Arc<Self>, principal: Principal, uri: &str) -> Option<Reservation> {
        let bytes = PLACE_BYTES + uri.len();
        let (taken, limit) = self.of(principal);
        let more = |taken: usize| Some(taken + bytes).filter(|sum| *sum <= limit);
        taken.try_update(Relaxed, Relaxed, more).ok()?;
        Some(Reservation {
            budget: Arc::clone(self),
            principal,
            bytes,
        })
    }

    fn of(&self, principal: Principal) -> (&AtomicUsize, usize) {
        match principal {
            Principal::Owner => (&self.owner, OWNER_BYTES),
            Principal::Token(_) => (&self.tokens, TOKENS_BYTES),
            Principal::Anyone => (&self.strangers, STRANGERS_BYTES),
        }
    }
}

/// Reserved room, returned when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    principal: Principal,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let (taken, _) = self.budget.of(self.principal);
        taken.fetch_sub(self.bytes, Relaxed);
    }
}

/// The most subscribed resources of one server.
const WATCHED_MAX: usize = 10_000;
/// The most bytes of their URIs.
const WATCHED_BYTES: usize = 16 * 1024 * 1024;

impl Subscriptions {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_uri.lock().is_empty()
    }

    /// Renews all subscriptions on a new connection.
    pub(crate) async fn restore(&self, server: &str, client: &Client) {
        let _asking = self.asking.lock().await;
        let uris: Vec<String> = self.by_uri.lock().keys().cloned().collect();
        for uri in uris {
            if let Err(error) = client.subscribe(&uri).await {
                tracing::warn!(%server, %uri, %error, "Cannot renew the subscription to a resource.");
            }
        }
    }

    /// Forwards the server's notification that a resource has changed, to the clients that the rules
    /// permit.
    pub fn updated(&self, server: &str, params: &Raw, may_hear: impl Fn(&Caller, &str) -> bool) {
        let Some(uri) = params.member("uri").and_then(|uri| uri.to_text()) else {
            return;
        };
        let about: Arc<str> = format!("{server} {uri}").into();
        let exposed = switchboard_catalog::expose_updated(server, params);
        let concerned: Vec<Watcher> = {
            let by_uri = self.by_uri.lock();
            let concerned = by_uri.iter().filter(|(watched, _)| covers(watched, &uri));
            concerned
                .flat_map(|(_, watchers)| watchers.iter().cloned())
                .collect()
        };
        let news = |params| {
            let about = Some(Arc::clone(&about));
            News::new(about, method::RESOURCE_UPDATED, Some(params))
        };
        let (Some(own), Some(exposed)) = (news(params), news(&exposed)) else {
            return;
        };
        let permitted = |watcher: &&Watcher| may_hear(&watcher.caller, &uri);
        for watcher in concerned.iter().filter(permitted) {
            let news = if watcher.exposed { &exposed } else { &own };
            watcher.notifications.tell(news);
        }
    }

    /// Waits for the turn to subscribe or unsubscribe at the server.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.asking.lock().await
    }

    /// Tests if a client is subscribed to this resource.
    pub(crate) fn contains(&self, uri: &str) -> bool {
        self.by_uri.lock().contains_key(uri)
    }

    /// Tests if there is no room for one more resource.
    pub(crate) fn is_full(&self, uri: &str) -> bool {
        let by_uri = self.by_uri.lock();
        let bytes: usize = by_uri.keys().map(String::len).sum();
        by_uri.len() >= WATCHED_MAX || bytes + uri.len() > WATCHED_BYTES
    }

    pub(crate) fn add(
        &self,
        uri: &str,
        caller: &Caller,
        notifications: &Arc<NotificationQueue>,
        exposed: bool,
    ) -> u64 {
        let number = self.last.fetch_add(1, Relaxed) + 1;
        self.by_uri
            .lock()
            .entry(uri.to_owned())
            .or_default()
            .push(Watcher {
                number,
                caller: caller.clone(),
                notifications: Arc::clone(notifications),
                exposed,
            });
        number
    }

    /// Removes a subscriber. Returns `true` if it was the last one.
    pub(crate) fn remove(&self, uri: &str, number: u64) -> bool {
        let mut by_uri = self.by_uri.lock();
        let Some(watchers) = by_uri.get_mut(uri) else {
            return false;
        };
        watchers.retain(|watcher| watcher.number != number);
        let last = watchers.is_empty();
        if last {
            by_uri.remove(uri);
        }
        last
    }
}

/// Tests if a subscription to one URI covers the other: the same resource or a part of it, as
/// 2026-07-28 allows.
pub(crate) fn covers(watched: &str, uri: &str) -> bool {
    uri.strip_prefix(watched).is_some_and(|rest| {
        rest.is_empty() || watched.ends_with('/') || rest.starts_with(['/', '?', '#'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_separate_and_returned() {
        let budget = Arc::new(Budget::default());
        let long = "x".repeat(STRANGERS_BYTES / 2 - PLACE_BYTES);
        let one = budget.take(Principal::Anyone, &long).unwrap();
        let _two = budget.take(Principal::Anyone, &long).unwrap();
        assert!(budget.take(Principal::Anyone, "").is_none());
        assert!(budget.take(Principal::Owner, &long).is_some());
        drop(one);
        assert!(budget.take(Principal::Anyone, &long).is_some());
    }

    #[test]
    fn subscription_covers_parts_of_the_resource() {
        assert!(covers("file:///a", "file:///a"));
        assert!(covers("file:///a", "file:///a/b"));
        assert!(covers("file:///a/", "file:///a/b"));
        assert!(covers("file:///a", "file:///a#x"));
        assert!(!covers("file:///a", "file:///ab"));
        assert!(!covers("file:///a/b", "file:///a"));
    }
}
