//! Sessions of the older revisions over HTTP.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use switchboard_client::{Id, Revision};
use tokio::sync::{oneshot, watch};

use super::client_key;
use crate::{call::Caller, desk::View};

/// A client that has opened with `initialize`.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: Arc<str>,
    pub(crate) view: View,
    pub(crate) revision: Revision,
    pub(crate) caller: Caller,
    in_flight: Mutex<HashMap<Id, oneshot::Sender<()>>>,
    /// Counts the streams opened with GET: a new one ends the one before.
    streams: watch::Sender<u64>,
    /// Milliseconds since the sessions began.
    last_seen: AtomicU64,
}

/// A client of this many requests at a time is told to wait.
const IN_FLIGHT_MAX: usize = 256;

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// Its id is in use.
    SameId,
    /// There are too many.
    TooMany,
}

impl Session {
    /// Takes a request in, so that it can be withdrawn.
    pub(crate) fn take_in(&self, id: &Id) -> Result<oneshot::Receiver<()>, NotTaken> {
        let mut in_flight = self.in_flight();
        if in_flight.contains_key(id) {
            return Err(NotTaken::SameId);
        }
        if in_flight.len() >= IN_FLIGHT_MAX {
            return Err(NotTaken::TooMany);
        }
        let (cancel, cancelled) = oneshot::channel();
        in_flight.insert(id.clone(), cancel);
        Ok(cancelled)
    }

    /// The request has been answered. One that has taken its id since, after it was withdrawn, stays.
    pub(crate) fn done(&self, id: &Id) {
        let mut in_flight = self.in_flight();
        if in_flight.get(id).is_some_and(oneshot::Sender::is_closed) {
            in_flight.remove(id);
        }
    }

    /// The client withdraws the request.
    pub(crate) fn withdraw(&self, id: &Id) {
        if let Some(cancel) = self.in_flight().remove(id) {
            let _ = cancel.send(());
        }
    }

    /// Opens the stream of what the gateway has to say unasked. Ready when another one is opened.
    pub(crate) fn open_stream(&self) -> watch::Receiver<u64> {
        self.streams.send_modify(|streams| *streams += 1);
        let mut replaced = self.streams.subscribe();
        replaced.borrow_and_update();
        replaced
    }

    fn in_flight(&self) -> MutexGuard<'_, HashMap<Id, oneshot::Sender<()>>> {
        self.in_flight
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn is_busy(&self) -> bool {
        !self.in_flight().is_empty() || self.streams.receiver_count() > 0
    }
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: RwLock<HashMap<Arc<str>, Arc<Session>>>,
    began: Instant,
}

/// The most sessions at a time; beyond it those that have been silent the longest end.
const SESSIONS_MAX: usize = 10_000;
/// A session without a sign of life for so long may be ended to make room.
const SILENT: Duration = Duration::from_hours(1);
/// The silent ones are looked for once in so many sessions.
const CROWDED: usize = 1_000;

impl Sessions {
    pub(crate) fn new() -> Self {
        Self {
            by_id: RwLock::default(),
            began: Instant::now(),
        }
    }

    /// Opens a session; `None` if there are too many, or no randomness for its name.
    pub(crate) fn open(
        &self,
        view: View,
        revision: Revision,
        client: Arc<str>,
    ) -> Option<Arc<Session>> {
        let id: Arc<str> = secret()?.into();
        let session = Arc::new(Session {
            id: Arc::clone(&id),
            view,
            revision,
            caller: Caller {
                key: client_key(),
                client,
            },
            in_flight: Mutex::default(),
            streams: watch::Sender::new(0),
            last_seen: AtomicU64::new(self.now()),
        });
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        if by_id.len() % CROWDED == CROWDED - 1 {
            let silent = u64::try_from(SILENT.as_millis()).unwrap_or(u64::MAX);
            let now = self.now();
            by_id.retain(|_, session| {
                session.is_busy() || now.saturating_sub(session.last_seen.load(Relaxed)) < silent
            });
        }
        if by_id.len() >= SESSIONS_MAX {
            let oldest = by_id
                .values()
                .filter(|session| !session.is_busy())
                .min_by_key(|session| session.last_seen.load(Relaxed))
                .map(|session| Arc::clone(&session.id));
            by_id.remove(&oldest?);
        }
        by_id.insert(id, Arc::clone(&session));
        Some(session)
    }

    /// The session of this name in this view. Its client has given a sign of life.
    pub(crate) fn get(&self, id: &str, view: &View) -> Option<Arc<Session>> {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        let session = by_id.get(id).filter(|session| session.view == *view)?;
        session.last_seen.store(self.now(), Relaxed);
        Some(Arc::clone(session))
    }

    /// Ends the session, and with it what it has under way.
    pub(crate) fn end(&self, id: &str) {
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = by_id.remove(id) {
            session.open_stream();
            session.in_flight().clear();
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.by_id
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// 128 random bits in hexadecimal digits.
pub(crate) fn secret() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_known_in_its_own_view_only_and_ends_for_good() {
        let sessions = Sessions::new();
        let session = sessions
            .open(View::Direct, Revision::LATEST_LEGACY, "a".into())
            .unwrap();
        assert!(sessions.get(&session.id, &View::Direct).is_some());
        assert!(
            sessions
                .get(&session.id, &View::Server("a".into()))
                .is_none()
        );
        sessions.end(&session.id);
        assert!(sessions.get(&session.id, &View::Direct).is_none());
    }

    #[test]
    fn the_silent_make_room_and_the_busy_stay() {
        let sessions = Sessions::new();
        let open = || sessions.open(View::Direct, Revision::LATEST_LEGACY, "a".into());
        let busy = open().unwrap();
        let _stream = busy.open_stream();
        for _ in 0..SESSIONS_MAX + 10 {
            assert!(open().is_some());
        }
        assert_eq!(sessions.count(), SESSIONS_MAX);
        assert!(sessions.get(&busy.id, &View::Direct).is_some());
    }

    #[test]
    fn an_id_is_used_once_at_a_time() {
        let sessions = Sessions::new();
        let session = sessions
            .open(View::Direct, Revision::LATEST_LEGACY, "a".into())
            .unwrap();
        let id = Id::from(7);
        let mut cancelled = session.take_in(&id).unwrap();
        assert_eq!(session.take_in(&id).err(), Some(NotTaken::SameId));
        session.withdraw(&id);
        assert_eq!(cancelled.try_recv(), Ok(()));
        let again = session.take_in(&id);
        assert!(again.is_ok());
        // The first one ends late, and leaves the second alone.
        session.done(&id);
        assert_eq!(session.take_in(&id).err(), Some(NotTaken::SameId));
        drop(again);
        session.done(&id);
        assert!(session.take_in(&id).is_ok());
    }
}
