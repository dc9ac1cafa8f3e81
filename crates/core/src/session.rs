//! The session of a client of an older revision, from `initialize` to its end, on any transport.

use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::SystemTime,
};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use switchboard_base::{
    backchannel::{Asks, Backchannel, Cancel, Cancelled, ELICITATION_ID},
    caller::{self, About, Caller, Guest, Logs},
    notifications::{News, NotificationQueue},
    project::Project,
    view::View,
};
use switchboard_client::{Id, Raw, Reason, model::LogLevel};
use switchboard_outbound::{deps::Source, instance::Watch};
use switchboard_wire::method;

use crate::roots;

/// A client that has sent `initialize`.
#[derive(Debug)]
pub struct Session {
    /// The servers that the client sees.
    pub view: View,
    /// The client as a caller.
    pub caller: Caller,
    about: Arc<About>,
    /// Time of the connection.
    pub opened: SystemTime,
    level: Mutex<Option<LogLevel>>,
    /// Requests to the client that it has not answered yet.
    pub asks: Arc<Asks>,
    /// Notifications queued for the client.
    pub notifications: Arc<NotificationQueue>,
    /// At most [`IN_FLIGHT_MAX`] entries, so colliding ids cost their client little.
    in_flight: Mutex<FxHashMap<Id, Cancel>>,
    /// Changed under the lock of `in_flight`, so that no request is registered after the end.
    has_ended: AtomicBool,
    watches: Mutex<HashMap<String, Watch>>,
}

/// The most requests in flight per session.
const IN_FLIGHT_MAX: usize = 256;
/// The most resources that a client may watch.
const WATCHES_MAX: usize = 1_000;
/// The most bytes of their URIs.
const WATCHES_BYTES: usize = 1024 * 1024;

/// The reason why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    /// Its id is in use.
    SameId,
    /// Too many requests are in flight.
    TooMany,
}

impl Session {
    /// Opens a session from the parameters of `initialize`.
    pub fn open(view: View, mut caller: Caller, params: Option<&Raw>) -> Arc<Self> {
        let about = About::read(params, caller::negotiate(params));
        caller.introduce(about.info.as_ref());
        if caller.project().is_none() && roots::are_told(&caller, &about) {
            caller.project = Project::of_roots();
        }
        Arc::new(Self {
            view,
            caller,
            about: Arc::new(about),
            opened: SystemTime::now(),
            level: Mutex::default(),
            asks: Arc::default(),
            notifications: Arc::default(),
            in_flight: Mutex::default(),
            has_ended: AtomicBool::new(false),
            watches: Mutex::default(),
        })
    }

    /// The client's description of itself.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The client, as described to the server of its next request.
    pub fn guest(&self) -> Guest {
        Guest::Legacy {
            about: Arc::clone(&self.about),
            level: self.level(),
        }
    }

    pub(crate) fn level(&self) -> Option<LogLevel> {
        *self.level.lock()
    }

    pub(crate) fn set_level(&self, level: LogLevel) {
        *self.level.lock() = Some(level);
    }

    /// The back channel for messages that belong to no request.
    pub fn backchannel(&self) -> Backchannel {
        let asks = Some(Arc::clone(&self.asks));
        Backchannel::new(
            Arc::<NotificationQueue>::clone(&self.notifications),
            asks,
            Reason::default(),
        )
    }

    /// Tests if the client can be asked for its roots.
    pub fn has_roots(&self) -> bool {
        roots::are_told(&self.caller, &self.about)
    }

    /// Number of requests that have not been answered.
    pub fn in_flight(&self) -> usize {
        let in_flight = self.in_flight.lock();
        in_flight
            .values()
            .filter(|cancel| !cancel.is_over())
            .count()
    }

    /// Registers a request, so that it can be cancelled.
    pub fn take_in(&self, id: &Id) -> Result<(Cancelled, Reason), NotTaken> {
        let mut in_flight = self.in_flight.lock();
        if in_flight.get(id).is_some_and(|cancel| !cancel.is_over()) {
            return Err(NotTaken::SameId);
        }
        if in_flight.len() >= IN_FLIGHT_MAX {
            return Err(NotTaken::TooMany);
        }
        let (cancel, cancelled) = Cancel::new();
        let reason = cancel.reason();
        // The request of an ended session is cancelled at once.
        if !self.has_ended.load(Relaxed) {
            in_flight.insert(id.clone(), cancel);
        }
        Ok((cancelled, reason))
    }

    /// Removes a request that has been answered. A new request that has reused the id after a
    /// cancellation stays.
    pub fn done(&self, id: &Id) {
        let mut in_flight = self.in_flight.lock();
        if in_flight.get(id).is_some_and(Cancel::is_over) {
            in_flight.remove(id);
        }
    }

    /// Cancels a request on behalf of the client.
    pub fn withdraw(&self, id: &Id, why: Option<&str>) {
        if let Some(cancel) = self.in_flight.lock().remove(id) {
            cancel.cancel(why);
        }
    }

    /// Tests if a request is in flight.
    pub fn is_busy(&self) -> bool {
        !self.in_flight.lock().is_empty()
    }

    /// Keeps watching a resource. Returns `false` if there was no room.
    pub(crate) fn keep_watching(&self, uri: &str, watch: Watch) -> bool {
        let mut watches = self.watches.lock();
        let room = has_room(&watches, uri);
        if room {
            watches.insert(uri.to_owned(), watch);
        }
        room
    }

    pub(crate) fn is_watching(&self, uri: &str) -> bool {
        self.watches.lock().contains_key(uri)
    }

    pub(crate) fn stop_watching(&self, uri: &str) {
        let watch = self.watches.lock().remove(uri);
        drop(watch);
    }

    /// Ends the session and all its requests. Returns the IDs of the questions that the client has
    /// not answered.
    pub fn end(&self) -> Vec<u64> {
        let open = self.asks.close();
        {
            let mut in_flight = self.in_flight.lock();
            self.has_ended.store(true, Relaxed);
            in_flight.clear();
        }
        let watches = std::mem::take(&mut *self.watches.lock());
        drop(watches);
        open
    }
}

/// The clients that can receive unsolicited notifications.
#[derive(Debug, Default)]
pub struct Audience {
    /// Clients of older revisions.
    sessions: Mutex<HashMap<u64, Weak<Session>>>,
    /// Streams of 2026-07-28 that receive the notifications of a server's extensions.
    streams: Mutex<Vec<Stream>>,
}

/// A stream that receives the notifications of a server's extensions, until its queue is dropped.
#[derive(Debug)]
struct Stream {
    server: Arc<str>,
    caller: Caller,
    notifications: Weak<NotificationQueue>,
}

impl Audience {
    /// Adds a session.
    pub fn join(&self, session: &Arc<Session>) {
        let mut members = self.sessions.lock();
        if members.len() % 64 == 63 {
            members.retain(|_, session| session.strong_count() > 0);
        }
        members.insert(session.caller.key, Arc::downgrade(session));
    }

    /// All current sessions.
    pub fn members(&self) -> Vec<Arc<Session>> {
        self.sessions
            .lock()
            .values()
            .filter_map(Weak::upgrade)
            .collect()
    }

    /// Removes sessions that have ended.
    pub fn prune(&self) {
        let mut members = self.sessions.lock();
        members.retain(|_, session| session.strong_count() > 0);
        members.shrink_to_fit();
    }

    /// Forwards a notification of a server that belongs to no known call. Clients that it might not
    /// be meant for do not receive it.
    pub(crate) fn hear(
        &self,
        from: Source<'_>,
        said: &str,
        params: Option<&Raw>,
        is_meant: &dyn Fn(&Caller) -> bool,
    ) {
        let Some(news) = News::new(None, said, params) else {
            return;
        };
        // A reader could take a duplicate, or a member in another letter case.
        let id = |params: &Raw| params.distinct_member(&[ELICITATION_ID]).ok()??.to_text();
        let ended = match said {
            method::ELICITATION_COMPLETE => params.and_then(id),
            _ => None,
        };
        for session in self.sessions() {
            let is_meant = session.view.sees(from.server) && is_meant(&session.caller);
            let wants = match said {
                // A client that has not set a level receives only the messages of its own calls.
                method::LOG_MESSAGE => session
                    .level()
                    .zip(params)
                    .is_some_and(|(level, params)| Logs::From(level).wants(params)),
                _ => true,
            };
            if is_meant
                && wants
                && (said != method::ELICITATION_COMPLETE
                    || session.asks.ended(from.server, ended.as_deref()))
            {
                session.notifications.tell(&news);
            }
        }
    }
}

impl Audience {
    /// Subscribes this stream to the notifications of the server's extensions.
    pub fn listen(
        &self,
        server: &Arc<str>,
        caller: &Caller,
        notifications: &Arc<NotificationQueue>,
    ) {
        let mut streams = self.streams.lock();
        streams.retain(|stream| stream.notifications.strong_count() > 0);
        streams.push(Stream {
            server: Arc::clone(server),
            caller: caller.clone(),
            notifications: Arc::downgrade(notifications),
        });
    }

    /// Forwards a notification of an extension to the clients that are connected to this server
    /// alone. Clients that it might not be meant for do not receive it.
    pub(crate) fn hand_on(
        &self,
        from: Source<'_>,
        said: &str,
        params: Option<&Raw>,
        is_meant: &dyn Fn(&Caller) -> bool,
    ) {
        let Some(news) = News::new(None, said, params) else {
            return;
        };
        let is_alone = |view: &View| matches!(view, View::Server(name) if *name == *from.server);
        for session in self.sessions() {
            if is_alone(&session.view) && is_meant(&session.caller) {
                session.notifications.tell(&news);
            }
        }
        let streams: Vec<_> = {
            let streams = self.streams.lock();
            let meant = streams
                .iter()
                .filter(|stream| stream.server == *from.server && is_meant(&stream.caller));
            meant
                .filter_map(|stream| stream.notifications.upgrade())
                .collect()
        };
        for notifications in streams {
            notifications.tell(&news);
        }
    }

    fn sessions(&self) -> Vec<Arc<Session>> {
        let sessions = self.sessions.lock();
        sessions.values().filter_map(Weak::upgrade).collect()
    }
}

/// Tests if one more URI can be watched.
fn has_room<W>(watches: &HashMap<String, W>, uri: &str) -> bool {
    let bytes: usize = watches.keys().map(String::len).sum();
    let fits = watches.len() < WATCHES_MAX && bytes + uri.len() <= WATCHES_BYTES;
    fits || watches.contains_key(uri)
}

#[cfg(test)]
mod tests {
    use switchboard_base::{caller::Realm, view::Face};

    use super::*;

    fn session() -> Arc<Session> {
        let caller = Caller::new(1, "a".into(), Realm::OWNER);
        Session::open(View::All(Face::Direct), caller, None)
    }

    #[test]
    fn watched_uris_are_bounded_in_bytes() {
        let long = "x".repeat(WATCHES_BYTES / 2);
        let watches = HashMap::from([(long.clone(), 1), ("a".to_owned(), 2)]);
        assert!(has_room(&watches, &long));
        assert!(has_room(&watches, &long[2..]));
        assert!(!has_room(&watches, &"y".repeat(WATCHES_BYTES / 2)));
        let many = (0..WATCHES_MAX).map(|n| (n.to_string(), n)).collect();
        assert!(!has_room(&many, "a"));
    }

    #[test]
    fn id_in_use_is_rejected() {
        let session = session();
        let id = Id::from(7);
        let (mut cancelled, reason) = session.take_in(&id).unwrap();
        assert_eq!(session.take_in(&id).err(), Some(NotTaken::SameId));
        session.withdraw(&id, Some("enough"));
        assert_eq!(reason.get().map(|why| &**why), Some("enough"));
        assert_eq!(cancelled.try_recv(), Ok(()));
        let again = session.take_in(&id);
        assert!(again.is_ok());
        // The first request ends late, and leaves the second alone.
        session.done(&id);
        assert_eq!(session.take_in(&id).err(), Some(NotTaken::SameId));
        drop(again);
        session.done(&id);
        assert!(session.take_in(&id).is_ok());
    }
}
