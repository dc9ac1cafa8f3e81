//! Sessions of older revisions over HTTP. Each is identified by a secret, and its streams can be
//! resumed.

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use switchboard_base::{
    caller::{Caller, Principal, Realm},
    random::secret,
    view::View,
};
use switchboard_core::{
    dispatch::handshake, list_fingerprints::ListFingerprints, session::Session,
};
use tokio::time::Instant;

use super::{
    event_stream::EventStream,
    replay_budget::{STOCK_BYTES, Stock},
};

/// A session over HTTP.
#[derive(Debug)]
pub(crate) struct HttpSession {
    pub(crate) id: Arc<str>,
    pub(crate) session: Arc<Session>,
    /// The lists that the client has seen, for change notifications on its stream.
    pub(crate) shown: Mutex<ListFingerprints>,
    /// The stream of messages that belong to no request. Its number is 0.
    pub(crate) general: Arc<EventStream>,
    /// The streams of the latest requests, oldest first.
    streams: Mutex<VecDeque<(u64, Arc<EventStream>)>>,
    stock: Arc<Stock>,
    last_stream: AtomicU64,
    /// Milliseconds since the creation of [`Sessions`].
    last_seen: AtomicU64,
}

/// The most streams that can be resumed, and the most bytes of them.
const STREAMS_MAX: usize = 32;
const STREAMS_BYTES: usize = 16 * 1024 * 1024;

/// Time without a request or a stream after which a client no longer counts as connected. Its
/// session stays.
const SILENT_MS: u64 = 2 * 60 * 1000;

impl HttpSession {
    /// A stream for the messages before the response to a request.
    pub(crate) fn events(&self) -> (u64, Arc<EventStream>) {
        let number = self.last_stream.fetch_add(1, Relaxed) + 1;
        let primes = self.session.about().revision.facts().priming_events;
        (number, EventStream::named(number, primes))
    }

    /// Keeps a stream that is being played, so that it can be resumed.
    pub(crate) fn keep(&self, number: u64, events: Arc<EventStream>) {
        events.keep_in(&self.stock);
        let mut streams = self.streams.lock();
        streams.retain(|(_, events)| !events.is_gone());
        streams.push_back((number, events));
        let crowded = |streams: &VecDeque<(u64, Arc<EventStream>)>| {
            let bytes: usize = streams.iter().map(|(_, events)| events.bytes()).sum();
            streams.len() > STREAMS_MAX || bytes > STREAMS_BYTES
        };
        while streams.len() > 1 && crowded(&streams) {
            streams.pop_front();
        }
    }

    /// The stream with this number.
    pub(crate) fn stream(&self, number: u64) -> Option<Arc<EventStream>> {
        if number == 0 {
            return Some(Arc::clone(&self.general));
        }
        let streams = self.streams.lock();
        let found = streams.iter().find(|(known, _)| *known == number);
        found.map(|(_, events)| Arc::clone(events))
    }

    /// Keeps the stream of messages that belong to no request, while it is being played.
    pub(crate) fn keep_general(&self) {
        self.general.keep_in(&self.stock);
    }

    fn is_busy(&self) -> bool {
        self.session.is_busy() || Arc::strong_count(&self.general) > 1
    }
}

/// All sessions over HTTP.
#[derive(Debug)]
pub(crate) struct Sessions {
    /// The ids are random and made by the gateway, so clients cannot choose colliding ones.
    by_id: RwLock<FxHashMap<Arc<str>, Arc<HttpSession>>>,
    /// The budgets of the streams of the owner, of clients with tokens, and of other clients. None
    /// can use another's.
    stock: Arc<Stock>,
    tokens: Arc<Stock>,
    strangers: Arc<Stock>,
    began: Instant,
    /// Called with the client of each session that has ended.
    left: Left,
}

struct Left(Box<dyn Fn(&Caller) + Send + Sync>);

impl fmt::Debug for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Left")
    }
}

/// The most sessions of a principal; all tokens count as one. Beyond that, the client with the most sessions loses the one
/// that has been silent the longest.
const SESSIONS_MAX: usize = 10_000;
/// Likewise, the most bytes that the clients of a principal have sent about themselves.
const SAID_BYTES: usize = 32 * 1024 * 1024;
/// Clients with no more bytes than this are exempt from that limit.
const SHORT_BYTES: usize = 1024;
/// The number of sessions that always fit into that.
const SESSIONS_SURE: usize = SAID_BYTES / handshake::SAID_BYTES;
/// The longest and the shortest interval between sweeps for idle sessions and ended streams.
const SWEEP_RARELY: Duration = Duration::from_mins(1);
const SWEEP_OFTEN: Duration = Duration::from_secs(1);

/// The interval between sweeps, for this idle time.
pub(crate) fn sweep_pause(idle: Duration) -> Duration {
    (idle / 4).clamp(SWEEP_OFTEN, SWEEP_RARELY)
}

impl Sessions {
    /// Creates the sessions. `left` is called with the client of each session that has ended.
    pub(crate) fn new(left: impl Fn(&Caller) + Send + Sync + 'static) -> Self {
        Self {
            by_id: RwLock::default(),
            stock: Stock::new(STOCK_BYTES),
            tokens: Stock::new(STOCK_BYTES / 4),
            strangers: Stock::new(STOCK_BYTES / 4),
            began: Instant::now(),
            left: Left(Box::new(left)),
        }
    }

    /// Opens a session; `None` if there are too many, or the system provides no random numbers.
    pub(crate) fn open(
        &self,
        session: Arc<Session>,
        shown: ListFingerprints,
    ) -> Option<Arc<HttpSession>> {
        let id: Arc<str> = secret()?.into();
        let primes = session.about().revision.facts().priming_events;
        let stock = match session.caller.realm.principal {
            Principal::Owner => &self.stock,
            Principal::Token(_) => &self.tokens,
            Principal::Anyone => &self.strangers,
        };
        let session = Arc::new(HttpSession {
            id: Arc::clone(&id),
            session,
            shown: Mutex::new(shown),
            general: EventStream::named(0, primes),
            streams: Mutex::default(),
            stock: Arc::clone(stock),
            last_stream: AtomicU64::new(0),
            last_seen: AtomicU64::new(self.now()),
        });
        let mut by_id = self.by_id.write();
        let mut ended = Vec::new();
        let has_room = loop {
            let Some(crowd) = Crowd::of(&by_id, &session) else {
                by_id.insert(id, Arc::clone(&session));
                break true;
            };
            match crowd.dispensable().and_then(|id| by_id.remove(&id)) {
                Some(one) => ended.push(one),
                None => break false,
            }
        };
        drop(by_id);
        for ended in ended {
            self.close(&ended);
        }
        has_room.then_some(session)
    }

    /// Ends the sessions that have been idle for this long: without a new request, a request in
    /// flight or an open stream. Also drops streams that ended some time ago. Returns the number of
    /// ended sessions.
    pub(crate) fn sweep(&self, idle: Duration) -> usize {
        for stock in [&self.stock, &self.tokens, &self.strangers] {
            stock.sweep(Instant::now());
        }
        let idle = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
        let now = self.now();
        let stays = |session: &HttpSession| {
            if session.is_busy() {
                // The idle time starts with the last sweep that found the session busy.
                session.last_seen.store(now, Relaxed);
            }
            now.saturating_sub(session.last_seen.load(Relaxed)) < idle
        };
        let ended: Vec<_> = {
            let mut by_id = self.by_id.write();
            let ended = by_id.extract_if(|_, session| !stays(session)).collect();
            if by_id.len() < by_id.capacity() / 4 {
                by_id.shrink_to_fit();
            }
            ended
        };
        for (_, session) in &ended {
            self.close(session);
        }
        ended.len()
    }

    /// The session with this id, if it belongs to this view and realm. Counts as a sign of life
    /// of its client.
    pub(crate) fn get(&self, id: &str, view: &View, realm: Realm) -> Option<Arc<HttpSession>> {
        let by_id = self.by_id.read();
        let session = by_id
            .get(id)
            .filter(|known| known.session.view == *view && known.session.caller.realm == realm)?;
        session.last_seen.store(self.now(), Relaxed);
        Some(Arc::clone(session))
    }

    /// Ends the session and its requests.
    pub(crate) fn end(&self, id: &str) {
        let ended = {
            let mut by_id = self.by_id.write();
            by_id.remove(id)
        };
        if let Some(ended) = ended {
            self.close(&ended);
            ended.general.close();
        }
    }

    fn close(&self, session: &HttpSession) {
        session.session.end();
        (self.left.0)(client_of(session));
    }

    /// Ends all sessions of a principal, and their requests.
    pub(crate) fn end_of(&self, principal: Principal) {
        let is_own = |session: &HttpSession| client_of(session).realm.principal == principal;
        let ended: Vec<_> = {
            let mut by_id = self.by_id.write();
            by_id.extract_if(|_, session| is_own(session)).collect()
        };
        for (_, ended) in ended {
            self.close(&ended);
            ended.general.close();
        }
    }

    /// The sessions whose client may have left: over HTTP, a client need not announce that.
    pub(crate) fn silent(&self) -> Vec<Arc<Session>> {
        let now = self.now();
        let is_silent = |session: &HttpSession| {
            let last = session.last_seen.load(Relaxed);
            !session.is_busy() && now.saturating_sub(last) >= SILENT_MS
        };
        let by_id = self.by_id.read();
        let silent = by_id.values().filter(|session| is_silent(session));
        silent.map(|session| Arc::clone(&session.session)).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.by_id.read().len()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The sessions of a principal that leave no room for one more.
struct Crowd<'a>(Vec<&'a Arc<HttpSession>>);

impl<'a> Crowd<'a> {
    fn of(by_id: &'a FxHashMap<Arc<str>, Arc<HttpSession>>, session: &HttpSession) -> Option<Self> {
        let bytes_of = |known: &HttpSession| known.session.about().bytes();
        let is_short = bytes_of(session) <= SHORT_BYTES;
        // So few sessions always fit, however long their clients' descriptions are.
        if by_id.len() < SESSIONS_SURE || (is_short && by_id.len() < SESSIONS_MAX) {
            return None;
        }
        let principal = client_of(session).realm.principal;
        let is_own =
            |known: &&Arc<_>| (client_of(known).realm.principal).shares_limits_with(principal);
        let own: Vec<_> = by_id.values().filter(is_own).collect();
        let bytes: usize = own.iter().map(|known| bytes_of(known)).sum();
        let is_over = !is_short && bytes + bytes_of(session) > SAID_BYTES;
        (own.len() >= SESSIONS_MAX || is_over).then_some(Self(own))
    }

    /// The session to end: of the client with the most sessions, the one that has been silent the
    /// longest.
    fn dispensable(&self) -> Option<Arc<str>> {
        let mut of_client = HashMap::<&str, usize>::new();
        for known in &self.0 {
            *of_client.entry(&client_of(known).client).or_default() += 1;
        }
        let crowds = |known: &&&Arc<HttpSession>| {
            let last_seen = known.last_seen.load(Relaxed);
            (of_client[&*client_of(known).client], Reverse(last_seen))
        };
        let idle = self.0.iter().filter(|known| !known.is_busy());
        idle.max_by_key(crowds).map(|known| Arc::clone(&known.id))
    }
}

/// The client of a session.
fn client_of(session: &HttpSession) -> &Caller {
    &session.session.caller
}

#[cfg(test)]
mod tests {
    use switchboard_base::{caller::ProfileId, view::Face};
    use switchboard_client::Raw;

    use super::*;

    const OWNER: Realm = Realm::OWNER;

    fn open(sessions: &Sessions) -> Option<Arc<HttpSession>> {
        open_as(sessions, "a", OWNER)
    }

    fn open_as(
        sessions: &Sessions,
        client: &str,
        realm: impl Into<Realm>,
    ) -> Option<Arc<HttpSession>> {
        let caller = Caller::new(1, "".into(), realm);
        let params = serde_json::json!({ "clientInfo": { "name": client, "version": "1" } });
        let params = Raw::from_value(&params).unwrap();
        let session = Session::open(View::All(Face::Direct), caller, Some(&params));
        sessions.open(session, ListFingerprints::default())
    }

    #[test]
    fn session_is_bound_to_view_and_realm() {
        let sessions = Sessions::new(|_| ());
        let session = open(&sessions).unwrap();
        let get = |view, realm: Realm| sessions.get(&session.id, &view, realm).is_some();
        assert!(get(View::All(Face::Direct), OWNER));
        assert!(!get(View::Server("a".into()), OWNER));
        assert!(!get(View::All(Face::Direct), Principal::Anyone.into()));
        let work = Realm {
            profile: Some(ProfileId::of("work")),
            ..OWNER
        };
        assert!(!get(View::All(Face::Direct), work));
        sessions.end(&session.id);
        assert!(!get(View::All(Face::Direct), OWNER));
    }

    const IDLE: Duration = Duration::from_mins(30);
    const ALMOST: Duration = Duration::from_secs(30 * 60 - 1);

    fn is_known(sessions: &Sessions, session: &HttpSession) -> bool {
        let view = View::All(Face::Direct);
        sessions.get(&session.id, &view, OWNER).is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn idle_session_ends_and_used_one_stays() {
        let sessions = Sessions::new(|_| ());
        let [idle, used] = [(); 2].map(|()| open(&sessions).unwrap());
        tokio::time::advance(ALMOST).await;
        assert_eq!(sessions.sweep(IDLE), 0);
        assert!(is_known(&sessions, &used));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(sessions.sweep(IDLE), 1);
        assert!(!is_known(&sessions, &idle));
        assert!(is_known(&sessions, &used));
        assert_eq!(sessions.count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn silent_client_may_have_left() {
        let sessions = Sessions::new(|_| ());
        let [silent, streaming, asking] = [(); 3].map(|()| open(&sessions).unwrap());
        let stream = streaming.general.play();
        tokio::time::advance(Duration::from_millis(SILENT_MS - 1)).await;
        assert!(is_known(&sessions, &asking));
        assert_eq!(sessions.silent().len(), 0);
        tokio::time::advance(Duration::from_millis(1)).await;
        let left = sessions.silent();
        assert_eq!(left.len(), 1);
        assert!(Arc::ptr_eq(&left[0], &silent.session));
        drop(stream);
        assert_eq!(sessions.silent().len(), 2);
        // The client may come back.
        assert!(is_known(&sessions, &silent));
        assert_eq!(sessions.silent().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn busy_session_is_not_idle() {
        let sessions = Sessions::new(|_| ());
        let [calling, streaming] = [(); 2].map(|()| open(&sessions).unwrap());
        let id = switchboard_client::Id::from(1);
        let call = calling.session.take_in(&id).unwrap();
        let stream = streaming.general.play();
        for _ in 0..3 {
            tokio::time::advance(IDLE).await;
            assert_eq!(sessions.sweep(IDLE), 0);
        }
        drop((call, stream));
        calling.session.done(&id);
        tokio::time::advance(ALMOST).await;
        assert_eq!(sessions.sweep(IDLE), 0);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(sessions.sweep(IDLE), 2);
    }

    #[test]
    fn sweeps_follow_the_idle_time_within_bounds() {
        assert_eq!(sweep_pause(IDLE), SWEEP_RARELY);
        assert_eq!(sweep_pause(Duration::from_secs(1)), SWEEP_OFTEN);
        assert_eq!(sweep_pause(Duration::MAX), SWEEP_RARELY);
    }

    #[test]
    fn silent_sessions_make_room_and_busy_stay() {
        let sessions = Sessions::new(|_| ());
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
    fn sessions_are_bounded_by_client_bytes() {
        let sessions = Sessions::new(|_| ());
        let long = "x".repeat(handshake::SAID_BYTES - 100);
        for _ in 0..SESSIONS_SURE + 10 {
            assert!(open_as(&sessions, &long, Principal::Anyone).is_some());
        }
        assert!(
            sessions.count() <= SESSIONS_SURE + 1,
            "{}",
            sessions.count()
        );
        let before = sessions.count();
        assert!(open(&sessions).is_some());
        assert_eq!(sessions.count(), before + 1);
    }

    #[test]
    fn strangers_cannot_end_owner_sessions() {
        let sessions = Sessions::new(|_| ());
        let idle = open(&sessions).unwrap();
        for _ in 0..SESSIONS_MAX + 10 {
            assert!(open_as(&sessions, "a", Principal::Anyone).is_some());
        }
        assert_eq!(sessions.count(), SESSIONS_MAX + 1);
        let view = View::All(Face::Direct);
        assert!(sessions.get(&idle.id, &view, OWNER).is_some());
    }

    #[test]
    fn client_with_most_sessions_makes_room() {
        let sessions = Sessions::new(|_| ());
        let idle: Vec<_> = (0..2)
            .map(|_| open_as(&sessions, "few", OWNER).unwrap())
            .collect();
        for _ in 0..SESSIONS_MAX + 10 {
            assert!(open_as(&sessions, "many", OWNER).is_some());
        }
        assert_eq!(sessions.count(), SESSIONS_MAX);
        let view = View::All(Face::Direct);
        for idle in idle {
            assert!(sessions.get(&idle.id, &view, OWNER).is_some());
        }
    }

    #[test]
    fn only_latest_streams_can_be_resumed() {
        let sessions = Sessions::new(|_| ());
        let session = open(&sessions).unwrap();
        for _ in 0..=STREAMS_MAX {
            let (number, events) = session.events();
            session.keep(number, events);
        }
        assert!(session.stream(1).is_none());
        assert!(session.stream(2).is_some());
        assert!(session.stream(0).is_some());
    }
}
