//! Sessions of the older revisions over HTTP: each is known by a secret, and its streams can be heard
//! again.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use rustc_hash::FxHashMap;

use super::tape::Tape;
use crate::{caller::Principal, random::secret, session::Session, shown::Shown, view::View};

/// A session over HTTP.
#[derive(Debug)]
pub(crate) struct HttpSession {
    pub(crate) id: Arc<str>,
    pub(crate) session: Arc<Session>,
    /// What the client has been shown, which its stream goes by.
    pub(crate) shown: Mutex<Shown>,
    /// The stream of what belongs to no request. Its number is 0.
    pub(crate) general: Arc<Tape>,
    /// The streams of the last requests, the oldest first.
    streams: Mutex<VecDeque<(u64, Arc<Tape>)>>,
    last_stream: AtomicU64,
    /// Milliseconds since the sessions began.
    last_seen: AtomicU64,
}

/// So many streams can be heard again, as long as they are not more than this.
const STREAMS_MAX: usize = 32;
const STREAMS_BYTES: usize = 16 * 1024 * 1024;

impl HttpSession {
    /// A tape for what is said ahead of the answer to a request.
    pub(crate) fn tape(&self) -> (u64, Arc<Tape>) {
        let number = self.last_stream.fetch_add(1, Relaxed) + 1;
        let primes = self.session.about().revision.facts().priming_events;
        (number, Tape::named(number, primes))
    }

    /// The tape is being played, and may have to be played again.
    pub(crate) fn keep(&self, number: u64, tape: Arc<Tape>) {
        let mut streams = lock(&self.streams);
        streams.push_back((number, tape));
        let crowded = |streams: &VecDeque<(u64, Arc<Tape>)>| {
            let bytes: usize = streams.iter().map(|(_, tape)| tape.bytes()).sum();
            streams.len() > STREAMS_MAX || bytes > STREAMS_BYTES
        };
        while streams.len() > 1 && crowded(&streams) {
            streams.pop_front();
        }
    }

    /// The stream of this number.
    pub(crate) fn stream(&self, number: u64) -> Option<Arc<Tape>> {
        if number == 0 {
            return Some(Arc::clone(&self.general));
        }
        let streams = lock(&self.streams);
        let found = streams.iter().find(|(known, _)| *known == number);
        found.map(|(_, tape)| Arc::clone(tape))
    }

    fn is_busy(&self) -> bool {
        self.session.is_busy() || Arc::strong_count(&self.general) > 1
    }
}

/// All sessions over HTTP.
#[derive(Debug)]
pub(crate) struct Sessions {
    /// The ids are random and ours, so that nobody can choose them to collide.
    by_id: RwLock<FxHashMap<Arc<str>, Arc<HttpSession>>>,
    began: Instant,
}

/// The most sessions at a time; beyond it those that have been silent the longest end.
const SESSIONS_MAX: usize = 10_000;
/// A session without a sign of life for so long is ended.
const SILENT: Duration = Duration::from_hours(1);
/// How often the silent ones are looked for.
pub(crate) const SWEEP: Duration = Duration::from_mins(10);

impl Sessions {
    pub(crate) fn new() -> Self {
        Self {
            by_id: RwLock::default(),
            began: Instant::now(),
        }
    }

    /// Opens a session; `None` if there are too many, or no randomness for its name.
    pub(crate) fn open(&self, session: Arc<Session>, shown: Shown) -> Option<Arc<HttpSession>> {
        let id: Arc<str> = secret()?.into();
        let primes = session.about().revision.facts().priming_events;
        let session = Arc::new(HttpSession {
            id: Arc::clone(&id),
            session,
            shown: Mutex::new(shown),
            general: Tape::named(0, primes),
            streams: Mutex::default(),
            last_stream: AtomicU64::new(0),
            last_seen: AtomicU64::new(self.now()),
        });
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        let mut ended = None;
        if by_id.len() >= SESSIONS_MAX {
            let oldest = by_id
                .values()
                .filter(|session| !session.is_busy())
                .min_by_key(|session| session.last_seen.load(Relaxed))
                .map(|session| Arc::clone(&session.id));
            ended = by_id.remove(&oldest?);
        }
        by_id.insert(id, Arc::clone(&session));
        drop(by_id);
        if let Some(ended) = ended {
            ended.session.end();
        }
        Some(session)
    }

    /// Ends the sessions that have been silent for too long.
    pub(crate) fn sweep(&self) {
        let silent = u64::try_from(SILENT.as_millis()).unwrap_or(u64::MAX);
        let now = self.now();
        let stays = |session: &HttpSession| {
            session.is_busy() || now.saturating_sub(session.last_seen.load(Relaxed)) < silent
        };
        let ended: Vec<_> = {
            let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
            by_id.extract_if(|_, session| !stays(session)).collect()
        };
        for (_, session) in ended {
            session.session.end();
        }
    }

    /// The session of this name in this view, if it is this principal's. Its client has given a sign
    /// of life.
    pub(crate) fn get(
        &self,
        id: &str,
        view: &View,
        principal: Principal,
    ) -> Option<Arc<HttpSession>> {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        let session = by_id.get(id).filter(|known| {
            known.session.view == *view && known.session.caller.principal == principal
        })?;
        session.last_seen.store(self.now(), Relaxed);
        Some(Arc::clone(session))
    }

    /// Ends the session, and with it what it has under way.
    pub(crate) fn end(&self, id: &str) {
        let ended = {
            let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
            by_id.remove(id)
        };
        if let Some(ended) = ended {
            ended.session.end();
            ended.general.close();
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;
    use crate::view::Face;

    const OWNER: Principal = Principal::Owner;

    fn open(sessions: &Sessions) -> Option<Arc<HttpSession>> {
        let caller = Caller::new(1, "a".into(), OWNER);
        sessions.open(
            Session::open(View::All(Face::Direct), caller, None),
            Shown::NOTHING,
        )
    }

    #[test]
    fn a_session_is_known_in_its_own_view_to_its_own_principal_and_ends_for_good() {
        let sessions = Sessions::new();
        let session = open(&sessions).unwrap();
        let get = |view, principal| sessions.get(&session.id, &view, principal).is_some();
        assert!(get(View::All(Face::Direct), OWNER));
        assert!(!get(View::Server("a".into()), OWNER));
        assert!(!get(View::All(Face::Direct), Principal::Anyone));
        sessions.end(&session.id);
        assert!(!get(View::All(Face::Direct), OWNER));
    }

    #[test]
    fn the_silent_make_room_and_the_busy_stay() {
        let sessions = Sessions::new();
        let busy = open(&sessions).unwrap();
        let _stream = Arc::clone(&busy.general);
        for _ in 0..SESSIONS_MAX + 10 {
            assert!(open(&sessions).is_some());
        }
        assert_eq!(sessions.count(), SESSIONS_MAX);
        assert!(
            sessions
                .get(&busy.id, &View::All(Face::Direct), OWNER)
                .is_some()
        );
    }

    #[test]
    fn only_the_last_streams_can_be_heard_again() {
        let sessions = Sessions::new();
        let session = open(&sessions).unwrap();
        for _ in 0..=STREAMS_MAX {
            let (number, tape) = session.tape();
            session.keep(number, tape);
        }
        assert!(session.stream(1).is_none());
        assert!(session.stream(2).is_some());
        assert!(session.stream(0).is_some());
    }
}
