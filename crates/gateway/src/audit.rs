//! The audit log of what the approvals machine does not see: denied calls, sign-ins, changed servers.
//!
//! Recording never waits: events pass through a bounded queue to one task, which writes them in batches. Events that
//! do not fit or cannot be written are counted, and the next batch says how many are missing. Of an event that servers
//! and strangers can cause at will, one source gets a number of entries per minute; the rest become one entry that
//! counts them.

use std::{
    collections::HashMap,
    future::pending,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

use serde::Serialize;
use serde_json::{Value, json};
use switchboard_store::{Change, Entry, Store};
use switchboard_wire::with_hint;
use tokio::{
    sync::{mpsc, oneshot},
    time::{sleep_until, timeout},
};

use crate::scrub;

/// Events that wait for the store.
const QUEUE: usize = 1_024;
/// Events in one write.
const BATCH: usize = 64;
/// The wait for the store when the gateway stops.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The kinds of events that servers and strangers can cause at will. The owner's own acts are always written.
const AT_WILL: [&str; 3] = ["denied", "peer-refused", "refused"];
/// Events of such a kind and one source that are written one by one in a minute.
const SINGLE: u64 = 30;
/// The time after which events that were only counted become an entry.
const COUNTED: Duration = Duration::from_mins(1);
/// Kinds and sources that are told apart; the rest are counted together.
const SOURCES: usize = 256;

/// The way into the audit log.
#[derive(Debug)]
pub(crate) struct Audit {
    queue: mpsc::Sender<Order>,
    missed: Arc<AtomicU64>,
    repeats: Arc<Mutex<Repeats>>,
}

/// Tells events that are written from those that are only counted. Time is handed in.
#[derive(Debug, Default)]
struct Repeats(HashMap<(&'static str, Arc<str>), Counted>);

/// The events of one kind and source since a time.
#[derive(Debug)]
struct Counted {
    since: Instant,
    events: u64,
}

impl Repeats {
    /// Takes in an event. `true` says that it is to be written.
    fn admit(&mut self, now: Instant, what: &'static str, subject: &str) -> bool {
        if !AT_WILL.contains(&what) {
            return true;
        }
        let source = subject
            .split_once(':')
            .map_or(subject, |(server, _)| server);
        let mut key = (what, Arc::from(source));
        if self.0.len() >= SOURCES && !self.0.contains_key(&key) {
            key = ("", "others".into());
        }
        let counted = self.0.entry(key).or_insert(Counted {
            since: now,
            events: 0,
        });
        if counted.events <= SINGLE && now >= counted.since + COUNTED {
            *counted = Counted {
                since: now,
                events: 0,
            };
        }
        counted.events += 1;
        counted.events <= SINGLE
    }

    /// When the next minute of a source is over.
    fn due(&self) -> Option<Instant> {
        let minutes = self.0.values().map(|counted| counted.since + COUNTED);
        minutes.min()
    }

    /// The entries that are due by then: kind, source, and the number of events that were only counted.
    fn take(&mut self, by: Instant) -> Vec<(&'static str, Arc<str>, u64)> {
        let mut taken = Vec::new();
        self.0.retain(|(what, source), counted| {
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
pub(crate) struct Event {
    /// The verb, such as `denied` or `signed-in`.
    pub(crate) what: &'static str,
    /// The thing it happened to: a server, a tool as `server:tool`, a request.
    pub(crate) subject: Arc<str>,
    /// The party that caused it; none for the gateway itself.
    pub(crate) actor: Option<Actor>,
    /// Further members of the entry, as a JSON object. The caller redacts payloads.
    pub(crate) details: Value,
}

/// The party behind a change or a decision, as the gateway established it at the door.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Actor {
    /// `socket`, `tcp` or `console`.
    pub(crate) door: &'static str,
    /// The process at the other end, where the system tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer: Option<PeerProcess>,
}

/// The process at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PeerProcess {
    pub(crate) pid: u32,
    /// The path of its program, if it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) program: Option<Arc<str>>,
}

enum Order {
    Record(SystemTime, Event),
    Flush(oneshot::Sender<()>),
}

impl Audit {
    /// Starts the task that writes. Must be called in a runtime.
    pub(crate) fn start(store: Store) -> Self {
        let (queue, orders) = mpsc::channel(QUEUE);
        let missed = Arc::new(AtomicU64::new(0));
        let repeats = Arc::<Mutex<Repeats>>::default();
        tokio::spawn(write(
            store,
            orders,
            Arc::clone(&missed),
            Arc::clone(&repeats),
        ));
        Self {
            queue,
            missed,
            repeats,
        }
    }

    /// Records an event without waiting.
    pub(crate) fn record(&self, event: Event) {
        if !lock(&self.repeats).admit(Instant::now(), event.what, &event.subject) {
            return;
        }
        let order = Order::Record(SystemTime::now(), event);
        if self.queue.try_send(order).is_err() {
            self.missed.fetch_add(1, Relaxed);
        }
    }

    /// Waits until everything recorded so far is in the store, for a bounded time.
    pub(crate) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        let flush = async {
            if self.queue.send(Order::Flush(done)).await.is_ok() {
                // An error means that the task has ended, and there is nothing to wait for.
                let _ = flushed.await;
            }
        };
        if timeout(FLUSH_TIMEOUT, flush).await.is_err() {
            tracing::error!("The audit log could not be written in time.");
        }
    }
}

/// Writes events until the gateway is gone.
async fn write(
    store: Store,
    mut orders: mpsc::Receiver<Order>,
    missed: Arc<AtomicU64>,
    repeats: Arc<Mutex<Repeats>>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut open = true;
    while open {
        let due = lock(&repeats).due();
        let minute = async {
            match due {
                Some(due) => sleep_until(due.into()).await,
                // An event that is only counted comes after some that were written.
                None => pending().await,
            }
        };
        tokio::select! {
            received = orders.recv_many(&mut batch, BATCH) => open = received > 0,
            () = minute => {}
        }
        let mut changes = Vec::with_capacity(batch.len() + 1);
        let mut flushed = Vec::new();
        for order in batch.drain(..) {
            match order {
                Order::Record(at, event) => changes.push(Change::Audit(entry(at, event))),
                Order::Flush(done) => flushed.push(done),
            }
        }
        let flushing = !flushed.is_empty() || !open;
        let by = Instant::now() + if flushing { COUNTED } else { Duration::ZERO };
        let repeated = lock(&repeats).take(by);
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
            && let Err(error) = store.write(changes).await
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

/// The entry of an event, without known secrets.
pub(crate) fn entry(at: SystemTime, event: Event) -> Entry {
    let mut body = event.details;
    if let (Some(actor), Value::Object(members)) = (event.actor, &mut body) {
        // Plain data always becomes JSON.
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

fn lock(repeats: &Mutex<Repeats>) -> std::sync::MutexGuard<'_, Repeats> {
    repeats.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn entry_has_no_known_secret_in_its_subject() {
        scrub::register(&[switchboard_redact::Secret::new("k", "subject-secret-7Hq2")]);
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
        let wanted =
            json!({ "rule": "deny bank:*", "actor": { "door": "socket", "peer": { "pid": 7 } } });
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
    async fn acts_of_the_owner_are_all_written() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("audit.db"));
        let audit = Audit::start(store.clone());
        for n in 0..3 * SINGLE {
            audit.record(Event {
                what: "trust",
                ..denied(&format!("bank:tool{n}"))
            });
        }
        audit.flush().await;
        assert_eq!(entries(&store).await.len() as u64, 3 * SINGLE);
    }

    #[tokio::test]
    async fn events_that_cannot_be_written_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("audit.db"));
        let audit = Audit::start(store.clone());
        // The store refuses a write of this length, and with it all of the batch.
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
        // A new minute, and few events: nothing is counted, and nothing is kept for long.
        assert_eq!(flood(&mut repeats, began + COUNTED, 5), 5);
        assert!(repeats.take(began + 2 * COUNTED).is_empty());
        assert!(repeats.0.is_empty());
    }

    #[tokio::test]
    async fn events_that_do_not_fit_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("audit.db"));
        let audit = Audit::start(store.clone());
        // The task cannot run in between: nothing here awaits.
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
