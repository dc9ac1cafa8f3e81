//! The audit log of events outside of the approvals broker: denied calls, sign-ins, changed servers.
//!
//! Events pass through a bounded queue to one task, which writes them in batches. Events that others cause
//! are recorded without blocking: the gateway counts events that do not fit or cannot be written, and the
//! next batch says how many are missing. An action of the owner reserves its place in the queue before it is
//! performed, and fails if there is none. Events that can be caused at will are limited to a number of
//! entries per source and minute; the rest become one entry with their count.

use std::{
    collections::HashMap,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use switchboard_store::{Change, Entry, Store, StoreError};
use switchboard_wire::with_hint;
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{sleep, sleep_until, timeout},
};

use crate::scrub;

/// The most events that wait for the store.
const QUEUE: usize = 1_024;
/// The most events in one write.
const BATCH: usize = 64;
/// Time to wait for the store when the gateway stops.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Time that an action waits for room in the queue.
const ROOM_TIMEOUT: Duration = Duration::from_secs(5);
/// The most attempts of a write with actions while the store is busy, and the pause between them.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// The kinds of events that can be caused at will: by servers and unauthenticated clients, and console links,
/// which change nothing. The owner's other actions are written one by one.
const AT_WILL: [&str; 4] = ["denied", "link-made", "peer-refused", "refused"];
/// The most events of such a kind and one source that are written one by one in a minute.
const SINGLE: u64 = 30;
/// The most calls that await approval, of all clients, that are written one by one in a minute. It bounds
/// them in total because a client can take any name.
const ASKED: u64 = 300;
/// Time after which events that were only counted become an entry.
const COUNTED: Duration = Duration::from_mins(1);
/// The most sources per kind that are counted separately; the rest are counted together.
const SOURCES: usize = 256;

/// A handle to the audit log.
#[derive(Debug)]
pub struct Audit {
    queue: mpsc::Sender<Order>,
    missed: Arc<AtomicU64>,
    repeats: Arc<Mutex<Repeats>>,
    /// Notified when an event that bypasses the queue is only counted.
    counted: Arc<Notify>,
}

/// Separates events that are written from events that are only counted. Time is an argument.
#[derive(Debug, Default)]
struct Repeats {
    sources: HashMap<(&'static str, Arc<str>), Counted>,
    /// Calls that await approval and are written one by one.
    asked: Option<Counted>,
}

/// The events of one kind and source since a time.
#[derive(Debug, Clone, Copy)]
struct Counted {
    since: Instant,
    events: u64,
}

impl Repeats {
    /// Counts an event. Returns `true` if it should be written.
    fn admit(&mut self, now: Instant, what: &'static str, subject: &str) -> bool {
        if !AT_WILL.contains(&what) {
            return true;
        }
        let source = subject
            .split_once(':')
            .map_or(subject, |(server, _)| server);
        self.count(now, what, source, false)
    }

    /// Counts a call of this client that awaits approval. Returns `true` if it should be written.
    fn admit_asked(&mut self, now: Instant, client: &str) -> bool {
        let fresh = Counted {
            since: now,
            events: 0,
        };
        let mut all = self
            .asked
            .filter(|all| now < all.since + COUNTED)
            .unwrap_or(fresh);
        let admitted = self.count(now, "asked", client, all.events >= ASKED);
        all.events += u64::from(admitted);
        self.asked = Some(all);
        admitted
    }

    /// Counts an event. Returns `true` if it should be written; if `full`, it is only counted.
    fn count(&mut self, now: Instant, what: &'static str, source: &str, full: bool) -> bool {
        let mut key = (what, Arc::from(source));
        if self.sources.len() >= SOURCES && !self.sources.contains_key(&key) {
            // Per kind: the sources of one kind must not use up the entries of another.
            let alike = self.sources.keys().filter(|(known, _)| *known == what);
            if alike.count() >= SOURCES {
                key.1 = "others".into();
            }
        }
        let counted = self.sources.entry(key).or_insert(Counted {
            since: now,
            events: 0,
        });
        if counted.events <= SINGLE && now >= counted.since + COUNTED {
            *counted = Counted {
                since: now,
                events: 0,
            };
        }
        if full {
            counted.events = counted.events.max(SINGLE);
        }
        counted.events += 1;
        counted.events <= SINGLE
    }

    /// The end of the first minute among the sources.
    fn due(&self) -> Option<Instant> {
        let minutes = self.sources.values().map(|counted| counted.since + COUNTED);
        minutes.min()
    }

    /// Takes the entries that are due by then: kind, source, and the number of events that were only counted.
    fn take(&mut self, by: Instant) -> Vec<(&'static str, Arc<str>, u64)> {
        let mut taken = Vec::new();
        self.sources.retain(|(what, source), counted| {
            let over = by >= counted.since + COUNTED;
            if over && counted.events > SINGLE {
                taken.push((*what, Arc::clone(source), counted.events - SINGLE));
            }
            !over
        });
        taken
    }
}

/// An event for the audit log.
#[derive(Debug)]
pub struct Event {
    /// The verb, such as `denied` or `signed-in`.
    pub what: &'static str,
    /// The thing it happened to: a server, a tool as `server:tool`, a request.
    pub subject: Arc<str>,
    /// The party that caused it; `None` for the gateway itself.
    pub actor: Option<Actor>,
    /// Additional members of the entry, as a JSON object. The caller redacts payloads.
    pub details: Value,
}

/// The party behind a change or a decision, as the gateway identified it on arrival.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Actor {
    /// `owner`, `token` with its name, or `anyone`. `None` if it was refused before it was known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Arc<str>>,
    /// `pipe`, `socket`, `tcp` or `console`.
    pub door: &'static str,
    /// The process at the other end, where the system reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerProcess>,
}

/// The process at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PeerProcess {
    /// Its process ID.
    pub pid: u32,
    /// Path of its program, if it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Arc<str>>,
}

/// A place in the queue for the entries of one action.
#[derive(Debug)]
pub struct Reservation {
    place: mpsc::OwnedPermit<Order>,
    repeats: Arc<Mutex<Repeats>>,
}

/// The queue has no room.
#[derive(Debug, thiserror::Error)]
#[error(
    "nothing was done: the audit log is full, because earlier entries are still waiting to be \
     written"
)]
pub struct NoRoom;

impl Reservation {
    /// Records the action.
    pub fn record(self, events: impl IntoIterator<Item = Event>) {
        let now = Instant::now();
        let mut repeats = self.repeats.lock();
        let events = events.into_iter();
        let events: Vec<_> = events
            .filter(|event| repeats.admit(now, event.what, &event.subject))
            .collect();
        drop(repeats);
        if !events.is_empty() {
            self.place.send(Order::Act(SystemTime::now(), events));
        }
    }
}

#[derive(Debug)]
enum Order {
    Record(SystemTime, Event),
    /// All events of an action of the owner.
    Act(SystemTime, Vec<Event>),
    Flush(oneshot::Sender<()>),
}

impl Audit {
    /// Starts the task that writes. Must be called in a runtime.
    pub fn start(store: Store) -> Self {
        let (queue, orders) = mpsc::channel(QUEUE);
        let missed = Arc::new(AtomicU64::new(0));
        let repeats = Arc::<Mutex<Repeats>>::default();
        let counted = Arc::new(Notify::new());
        tokio::spawn(write(
            store,
            orders,
            Arc::clone(&missed),
            Arc::clone(&repeats),
            Arc::clone(&counted),
        ));
        Self {
            queue,
            missed,
            repeats,
            counted,
        }
    }

    /// Reserves room for an action of the owner; waits for it up to a limit.
    pub async fn room(&self) -> Result<Reservation, NoRoom> {
        let place = timeout(ROOM_TIMEOUT, self.queue.clone().reserve_owned());
        // An error means that there was no room in time, or that the gateway is shutting down.
        let place = place.await.ok().and_then(Result::ok).ok_or(NoRoom)?;
        Ok(Reservation {
            place,
            repeats: Arc::clone(&self.repeats),
        })
    }

    /// Records an event that others cause, without waiting.
    pub fn record(&self, event: Event) {
        if !self
            .repeats
            .lock()
            .admit(Instant::now(), event.what, &event.subject)
        {
            return;
        }
        let order = Order::Record(SystemTime::now(), event);
        if self.queue.try_send(order).is_err() {
            self.missed.fetch_add(1, Relaxed);
        }
    }

    /// Counts a call of this client that awaits approval. Returns `true` if it gets an entry of its own.
    pub fn admits_asked(&self, client: &str) -> bool {
        let client = scrub::brief(client);
        let admitted = self.repeats.lock().admit_asked(Instant::now(), &client);
        if !admitted {
            self.counted.notify_one();
        }
        admitted
    }

    /// Waits until everything recorded so far is in the store, up to a limit.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        let flush = async {
            if self.queue.send(Order::Flush(done)).await.is_ok() {
                // An error means that the task has ended, so there is nothing to wait for.
                let _ = flushed.await;
            }
        };
        if timeout(FLUSH_TIMEOUT, flush).await.is_err() {
            tracing::error!("The gateway could not write the audit log in time.");
        }
    }
}

/// Writes events until the gateway ends.
async fn write(
    store: Store,
    mut orders: mpsc::Receiver<Order>,
    missed: Arc<AtomicU64>,
    repeats: Arc<Mutex<Repeats>>,
    counted_elsewhere: Arc<Notify>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut open = true;
    while open {
        let due = repeats.lock().due();
        let minute = async {
            match due {
                Some(due) => sleep_until(due.into()).await,
                // Nothing is counted yet: the next event comes through the queue, or wakes the task with
                // `counted_elsewhere`.
                None => pending().await,
            }
        };
        tokio::select! {
            received = orders.recv_many(&mut batch, BATCH) => open = received > 0,
            () = minute => {}
            () = counted_elsewhere.notified() => {}
        }
        let mut changes = Vec::with_capacity(batch.len() + 1);
        let mut flushed = Vec::new();
        let mut acts = false;
        for order in batch.drain(..) {
            match order {
                Order::Record(at, event) => changes.push(Change::Audit(entry(at, event))),
                Order::Act(at, events) => {
                    acts = true;
                    let entries = events.into_iter().map(|event| entry(at, event));
                    changes.extend(entries.map(Change::Audit));
                }
                Order::Flush(done) => flushed.push(done),
            }
        }
        let flushing = !flushed.is_empty() || !open;
        let by = Instant::now() + if flushing { COUNTED } else { Duration::ZERO };
        let repeated = repeats.lock().take(by);
        let mut events = u64::try_from(changes.len()).unwrap_or(u64::MAX);
        events += repeated.iter().map(|(_, _, events)| events).sum::<u64>();
        changes.extend(
            repeated
                .into_iter()
                .map(|(what, source, events)| Change::Audit(counted(what, source, events))),
        );
        let lost = missed.swap(0, Relaxed);
        if lost > 0 {
            changes.push(Change::Audit(gap(lost)));
        }
        if !changes.is_empty()
            && let Err(error) = commit(&store, changes, acts).await
        {
            tracing::error!(error = %with_hint(&error, error.hint()), "Cannot write to the audit log.");
            missed.fetch_add(lost + events, Relaxed);
        }
        for done in flushed {
            // The gateway may have stopped waiting.
            let _ = done.send(());
        }
    }
}

/// Writes the entries. If there are actions among them, retries while the store is busy.
async fn commit(store: &Store, changes: Vec<Change>, acts: bool) -> Result<(), StoreError> {
    if acts {
        for _ in 0..TRIES {
            match store.write(changes.clone()).await {
                Err(StoreError::Busy) => sleep(PAUSE).await,
                written => return written,
            }
        }
    }
    store.write(changes).await
}

/// The entry of an event, without known secrets.
pub fn entry(at: SystemTime, event: Event) -> Entry {
    let mut body = event.details;
    if let (Some(actor), Value::Object(members)) = (event.actor, &mut body) {
        // Plain data always serializes.
        let actor = serde_json::to_value(actor).unwrap_or_default();
        members.insert("actor".to_owned(), actor);
    }
    Entry {
        at,
        what: event.what.into(),
        subject: scrub::shared(event.subject),
        body: scrub::json(&body.to_string()).into(),
    }
}

/// The entry in place of events that were only counted.
fn counted(what: &'static str, source: Arc<str>, events: u64) -> Entry {
    let kind = if what.is_empty() { "repeated" } else { what };
    Entry {
        at: SystemTime::now(),
        what: kind.into(),
        subject: source,
        body: json!({ "repeated": events }).to_string().into(),
    }
}

/// The entry in place of events that did not fit into the queue or could not be written.
fn gap(lost: u64) -> Entry {
    Entry {
        at: SystemTime::now(),
        what: "missed".into(),
        subject: "audit".into(),
        body: json!({ "events": lost }).to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(subject: &str) -> Event {
        Event {
            what: "denied",
            subject: subject.into(),
            actor: Some(Actor {
                principal: Some("owner".into()),
                door: "socket",
                peer: Some(PeerProcess {
                    pid: 7,
                    program: None,
                }),
            }),
            details: json!({ "rule": "deny bank:*" }),
        }
    }

    async fn entries(store: &Store) -> Vec<Entry> {
        let mut entries = Vec::new();
        loop {
            let since = u64::try_from(entries.len()).unwrap();
            let page = store.audit(since, 500).await.unwrap();
            if page.is_empty() {
                return entries;
            }
            entries.extend(page.into_iter().map(|one| one.entry));
        }
    }

    #[test]
    fn subject_of_an_entry_is_scrubbed() {
        let secret = switchboard_redact::Secret::new("k", "subject-secret-7Hq2");
        scrub::register(scrub::Owner::Server("k"), &[secret]).unwrap();
        let entry = entry(SystemTime::now(), denied("bank:subject-secret-7Hq2"));
        assert_eq!(&*entry.subject, "bank:[secret k]");
    }

    #[tokio::test]
    async fn recorded_event_names_door_and_process() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("audit.db"));
        let audit = Audit::start(store.clone());
        audit.record(denied("bank:pay"));
        audit.flush().await;
        let entries = entries(&store).await;
        assert_eq!(entries.len(), 1);
        assert_eq!(
            (&*entries[0].what, &*entries[0].subject),
            ("denied", "bank:pay")
        );
        let body: Value = serde_json::from_str(&entries[0].body).unwrap();
        let wanted = json!({ "rule": "deny bank:*", "actor": { "principal": "owner", "door": "socket", "peer": { "pid": 7 } } });
        assert_eq!(body, wanted);
    }

    #[tokio::test]
    async fn repeated_event_is_counted_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("audit.db"));
        let audit = Audit::start(store.clone());
        for n in 0..10_000 {
            audit.record(denied(&format!("bank:tool{n}")));
        }
        audit.record(denied("other:pay"));
        audit.flush().await;
        let entries = entries(&store).await;
        assert_eq!(entries.len() as u64, SINGLE + 2);
        let count = entries.last().unwrap();
        assert_eq!((&*count.what, &*count.subject), ("denied", "bank"));
        let wanted = format!(r#"{{"repeated":{}}}"#, 10_000 - SINGLE);
        assert_eq!(&*count.body, wanted);
    }

    #[tokio::test]
    async fn every_action_of_the_owner_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("audit.db"));
        let audit = Audit::start(store.clone());
        for n in 0..3 * SINGLE {
            let room = audit.room().await.unwrap();
            room.record([Event {
                what: "trust",
                ..denied(&format!("bank:tool{n}"))
            }]);
        }
        audit.flush().await;
        assert_eq!(entries(&store).await.len() as u64, 3 * SINGLE);
    }

    #[tokio::test]
    async fn action_is_written_despite_a_full_queue() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("audit.db"));
        let audit = Audit::start(store.clone());
        // The task cannot run in between, because there is no await here.
        for n in 0..QUEUE + 100 {
            audit.record(denied(&format!("bank{}:pay", n % 100)));
        }
        let act = |what, subject: &str| Event {
            what,
            ..denied(subject)
        };
        let room = audit.room().await.unwrap();
        room.record([act("server-added", "a"), act("server-removed", "b")]);
        audit.flush().await;
        let entries = entries(&store).await;
        let has = |what: &str| entries.iter().any(|entry| &*entry.what == what);
        assert!(has("missed") && has("server-added") && has("server-removed"));
    }

    #[tokio::test(start_paused = true)]
    async fn action_without_room_is_refused_in_time() {
        let (queue, _orders) = mpsc::channel(1);
        let audit = Audit {
            queue,
            missed: Arc::default(),
            repeats: Arc::default(),
            counted: Arc::default(),
        };
        let taken = audit.room().await.unwrap();
        assert!(audit.room().await.is_err());
        // An action that fails returns its room.
        drop(taken);
        audit.room().await.unwrap();
    }

    #[tokio::test]
    async fn repeated_console_link_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("audit.db"));
        let audit = Audit::start(store.clone());
        for _ in 0..2_000 {
            let room = audit.room().await.unwrap();
            room.record([Event {
                what: "link-made",
                ..denied("console")
            }]);
        }
        audit.flush().await;
        let entries = entries(&store).await;
        assert_eq!(entries.len() as u64, SINGLE + 1);
        let wanted = format!(r#"{{"repeated":{}}}"#, 2_000 - SINGLE);
        assert_eq!(&*entries.last().unwrap().body, wanted);
    }

    #[tokio::test]
    async fn events_that_cannot_be_written_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("audit.db"));
        let audit = Audit::start(store.clone());
        // The store refuses a write of this length, and the whole batch with it.
        let long = "x".repeat(switchboard_store::QUEUED_WRITE_BYTES);
        for subject in ["bank:pay", &long, "bank:pay"] {
            audit.record(denied(subject));
        }
        audit.flush().await;
        audit.record(denied("bank:pay"));
        audit.flush().await;
        let entries = entries(&store).await;
        let kinds: Vec<_> = entries.iter().map(|entry| &*entry.what).collect();
        assert_eq!(kinds, ["denied", "missed"]);
        assert_eq!(&*entries[1].body, r#"{"events":3}"#);
    }

    #[test]
    fn each_minute_has_its_own_count() {
        let began = Instant::now();
        let mut repeats = Repeats::default();
        let flood = |repeats: &mut Repeats, now, count: u64| {
            (0..count)
                .filter(|_| repeats.admit(now, "denied", "a:b"))
                .count() as u64
        };
        assert_eq!(flood(&mut repeats, began, 100), SINGLE);
        assert_eq!(repeats.due(), Some(began + COUNTED));
        assert!(repeats.take(began + COUNTED / 2).is_empty());
        let taken = repeats.take(began + COUNTED);
        assert_eq!(taken, [("denied", "a".into(), 100 - SINGLE)]);
        // A new minute with few events: none is only counted, and none is kept for long.
        assert_eq!(flood(&mut repeats, began + COUNTED, 5), 5);
        assert!(repeats.take(began + 2 * COUNTED).is_empty());
        assert!(repeats.sources.is_empty());
    }

    #[test]
    fn sources_of_one_kind_leave_entries_for_another() {
        let now = Instant::now();
        let mut repeats = Repeats::default();
        for client in 0..10 * SOURCES {
            repeats.admit_asked(now, &client.to_string());
        }
        assert!(repeats.sources.len() <= SOURCES + 1);
        assert!(repeats.admit(now, "denied", "bank:pay"));
        for source in 0..10 * SOURCES {
            repeats.admit(now, "denied", &source.to_string());
        }
        assert!(repeats.sources.len() <= 2 * (SOURCES + 1));
        let counts = repeats.take(now + COUNTED);
        let others = |what| {
            let mut counts = counts.iter();
            counts.any(|(kind, source, _)| *kind == what && &**source == "others")
        };
        assert!(others("asked") && others("denied"), "{counts:?}");
    }

    #[test]
    fn asked_calls_are_bounded_per_client_and_total() {
        let began = Instant::now();
        let mut repeats = Repeats::default();
        let mut flood = |now, client: &str| {
            (0..100)
                .filter(|_| repeats.admit_asked(now, client))
                .count() as u64
        };
        for client in 0..ASKED / SINGLE {
            assert_eq!(flood(began, &client.to_string()), SINGLE);
        }
        assert_eq!(flood(began, "another"), 0);
        assert_eq!(flood(began + COUNTED, "yet another"), SINGLE);
        let counts = repeats.take(began + COUNTED);
        let of = |client: &str| {
            let of = counts.iter().find(|(_, source, _)| &**source == client);
            of.map(|(what, _, events)| (*what, *events))
        };
        assert_eq!(of("0"), Some(("asked", 100 - SINGLE)));
        assert_eq!(of("another"), Some(("asked", 100)));
    }

    #[tokio::test]
    async fn events_that_do_not_fit_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("audit.db"));
        let audit = Audit::start(store.clone());
        // The task cannot run in between, because there is no await here.
        for n in 0..QUEUE + 3 {
            audit.record(denied(&format!("bank{}:pay", n % 100)));
        }
        audit.flush().await;
        let entries = entries(&store).await;
        assert_eq!(entries.len(), QUEUE + 1);
        let gap = entries
            .iter()
            .find(|entry| &*entry.what == "missed")
            .unwrap();
        assert_eq!(&*gap.body, r#"{"events":3}"#);
    }
}
