//! Resources that clients watch: each is asked for once of its server, however many watch it, and again
//! of every new connection.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use switchboard_catalog::Kind;
use switchboard_client::{Client, Error, Raw};
use switchboard_wire::method;
use tokio::time::timeout;

use crate::{
    call::gate::may_hear,
    caller::{Caller, Principal},
    context::Context,
    failure::Failure,
    live::Live,
    mailbox::{Mailbox, News},
    translate,
    upstream::{Admission, Upstream},
};

/// What is watched of one server.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    last: AtomicU64,
    by_uri: Mutex<BTreeMap<String, Vec<Watcher>>>,
    /// Held while the server is asked, so that what it was asked last is what is wanted.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct Watcher {
    number: u64,
    caller: Caller,
    mailbox: Arc<Mailbox>,
    /// Whether it knows the resource by the name that the gateway gives it.
    exposed: bool,
}

/// A resource that a client watches, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    upstream: Weak<Upstream>,
    uri: String,
    number: u64,
    _place: Place,
}

/// The room for what clients watch of all servers, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Room {
    owner: AtomicUsize,
    strangers: AtomicUsize,
}

/// The room for what the owner's clients watch.
const OWNER_BYTES: usize = 32 * 1024 * 1024;
/// That for all others, who leave room at every server for the owner.
const STRANGERS_BYTES: usize = 4 * 1024 * 1024;
/// What a resource takes beside its URI.
const PLACE_BYTES: usize = 512;
const _: () =
    assert!(STRANGERS_BYTES / PLACE_BYTES < WATCHED_MAX && STRANGERS_BYTES < WATCHED_BYTES);

impl Room {
    /// Takes a place for a resource; `None` if there is none left for this principal.
    fn take(self: &Arc<Self>, principal: Principal, uri: &str) -> Option<Place> {
        let bytes = PLACE_BYTES + uri.len();
        let (taken, limit) = self.of(principal);
        let more = |taken: usize| Some(taken + bytes).filter(|sum| *sum <= limit);
        taken.try_update(Relaxed, Relaxed, more).ok()?;
        Some(Place {
            room: Arc::clone(self),
            principal,
            bytes,
        })
    }

    fn of(&self, principal: Principal) -> (&AtomicUsize, usize) {
        match principal {
            Principal::Owner => (&self.owner, OWNER_BYTES),
            Principal::Anyone => (&self.strangers, STRANGERS_BYTES),
        }
    }
}

/// A place in the room, given back when it is dropped.
#[derive(Debug)]
struct Place {
    room: Arc<Room>,
    principal: Principal,
    bytes: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        let (taken, _) = self.room.of(self.principal);
        taken.fetch_sub(self.bytes, Relaxed);
    }
}

/// How long the second connection is waited for.
const OTHER_PATIENCE: Duration = Duration::from_secs(5);

/// The most resources of one server that are watched.
const WATCHED_MAX: usize = 10_000;
/// The most bytes of their URIs.
const WATCHED_BYTES: usize = 16 * 1024 * 1024;

impl Watched {
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Asks a new connection for everything that is watched.
    pub(crate) async fn restore(&self, server: &str, client: &Client) {
        let _asking = self.asking.lock().await;
        let uris: Vec<String> = self.lock().keys().cloned().collect();
        for uri in uris {
            if let Err(error) = client.subscribe(&uri).await {
                tracing::warn!(%server, %uri, %error, "Cannot watch a resource again.");
            }
        }
    }

    /// The server says that a resource has changed. Clients hear of those that rules allow them.
    pub(crate) fn updated(&self, context: &Context, server: &str, params: &Raw) {
        let Some(uri) = params.member("uri").and_then(|uri| uri.to_text()) else {
            return;
        };
        let about: Arc<str> = format!("{server} {uri}").into();
        let exposed = switchboard_catalog::expose_updated(server, params);
        let concerned: Vec<Watcher> = {
            let by_uri = self.lock();
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
        let permitted = |watcher: &&Watcher| may_hear(context, &watcher.caller, server, &uri);
        for watcher in concerned.iter().filter(permitted) {
            let news = if watcher.exposed { &exposed } else { &own };
            watcher.mailbox.tell(news);
        }
    }

    fn add(&self, uri: &str, caller: &Caller, mailbox: &Arc<Mailbox>, exposed: bool) -> u64 {
        let number = self.last.fetch_add(1, Relaxed) + 1;
        self.lock()
            .entry(uri.to_owned())
            .or_default()
            .push(Watcher {
                number,
                caller: caller.clone(),
                mailbox: Arc::clone(mailbox),
                exposed,
            });
        number
    }

    /// Whether nobody watches it any more.
    fn remove(&self, uri: &str, number: u64) -> bool {
        let mut by_uri = self.lock();
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

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Watcher>>> {
        self.by_uri.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether who watches the one hears of the other: a part of it, as 2026-07-28 allows.
pub(crate) fn covers(watched: &str, uri: &str) -> bool {
    uri.strip_prefix(watched).is_some_and(|rest| {
        rest.is_empty() || watched.ends_with('/') || rest.starts_with(['/', '?', '#'])
    })
}

impl Upstream {
    /// Watches a resource. The server is started if need be, and asked unless it has been.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        context: &Context,
        caller: &Caller,
        uri: &str,
        mailbox: &Arc<Mailbox>,
        exposed: bool,
    ) -> Result<Watch, Failure> {
        let until = Instant::now() + self.request_timeout();
        let live = self.ready(context, until, None, None).await?;
        let resource = [Some((Kind::Resource, Cow::Borrowed(uri))), None, None];
        if self.admit(context, &live, &resource, until).await? != Admission::Yes {
            return Err(self.initializing());
        }
        let place = context.watched.take(caller.principal, uri);
        let place = place.ok_or_else(|| {
            Failure::invalid_params(
                "clients watch too many resources already; unsubscribe from some",
            )
        })?;
        let _asking = self.watched.asking.lock().await;
        let (known, crowded) = {
            let by_uri = self.watched.lock();
            let bytes: usize = by_uri.keys().map(String::len).sum();
            let crowded = by_uri.len() >= WATCHED_MAX || bytes + uri.len() > WATCHED_BYTES;
            (by_uri.contains_key(uri), crowded)
        };
        if !known && crowded {
            let message = "too many resources of this server are watched already";
            return Err(Failure::invalid_params(message));
        }
        // Before the server is asked: it may report a change in the same breath as its answer.
        let mut watch = Watch {
            upstream: Arc::downgrade(self),
            uri: uri.to_owned(),
            number: self.watched.add(uri, caller, mailbox, exposed),
            _place: place,
        };
        // A server may ask meanwhile, and not for another client.
        let ear = (!known).then(|| self.questions.open_mute(caller));
        let asked = match &ear {
            None => Ok(()),
            Some(_) => self.subscribe(&live, uri).await,
        };
        if let (Some(ear), Ok(()) | Err(Error::Server(_))) = (&ear, &asked) {
            ear.set_answered();
        }
        if let Err(error) = asked {
            // There is nothing to take back from the server.
            self.watched.remove(uri, watch.number);
            watch.upstream = Weak::new();
            return Err(match error {
                Error::NotOffered { what } => {
                    Failure::invalid_params(format!("the server does not offer {what}"))
                }
                Error::Server(error) if error.code == translate::URL_ELICITATION_REQUIRED => {
                    let message = "the server wants a person to open an address first, and nobody is asked for a subscription";
                    Failure::invalid_params(message)
                }
                error => Failure::of(&self.name, error),
            });
        }
        Ok(watch)
    }

    /// Asks this connection and the server's other one: a change that a call makes there is told there. One of them is
    /// enough.
    async fn subscribe(&self, live: &Arc<Live>, uri: &str) -> Result<(), Error> {
        let asking = live.client().subscribe(uri);
        let Some(other) = self.lives().find(|other| !Arc::ptr_eq(other, live)) else {
            return asking.await;
        };
        let elsewhere = timeout(OTHER_PATIENCE, other.client().subscribe(uri));
        let (asked, elsewhere) = tokio::join!(asking, elsewhere);
        match elsewhere {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => asked,
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(upstream) = self.upstream.upgrade() else {
            return;
        };
        if !upstream.watched.remove(&self.uri, self.number) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let uri = std::mem::take(&mut self.uri);
        runtime.spawn(async move {
            let _asking = upstream.watched.asking.lock().await;
            let wanted = upstream.watched.lock().contains_key(&uri);
            for live in upstream.lives().filter(|_| !wanted) {
                // A server that does not want to know will be heard and not listened to.
                let _ = live.client().unsubscribe(&uri).await;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_back_and_kept_apart() {
        let room = Arc::new(Room::default());
        let long = "x".repeat(STRANGERS_BYTES / 2 - PLACE_BYTES);
        let one = room.take(Principal::Anyone, &long).unwrap();
        let _two = room.take(Principal::Anyone, &long).unwrap();
        assert!(room.take(Principal::Anyone, "").is_none());
        assert!(room.take(Principal::Owner, &long).is_some());
        drop(one);
        assert!(room.take(Principal::Anyone, &long).is_some());
    }

    #[test]
    fn a_part_of_what_is_watched_is_heard_of() {
        assert!(covers("file:///a", "file:///a"));
        assert!(covers("file:///a", "file:///a/b"));
        assert!(covers("file:///a/", "file:///a/b"));
        assert!(covers("file:///a", "file:///a#x"));
        assert!(!covers("file:///a", "file:///ab"));
        assert!(!covers("file:///a/b", "file:///a"));
    }
}
