//! The events of the gateway, for its watchers.
//!
//! The last events are kept in a ring, and each reader has its own position in it. A publisher therefore
//! never waits for a reader, a reader that reconnects continues at its old position, and there is no gap
//! between missed and new events. A reader whose position has dropped out of the ring is notified of that,
//! and continues with the next event.

use std::{
    collections::{HashMap, VecDeque},
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::SystemTime,
};

use bytes::Bytes;
use parking_lot::Mutex;
use serde::Serialize;
use switchboard_rest::events::{InstanceEvent, ServerEvent};
use tokio::sync::Notify;

use crate::{health::Health, scrub, time};

/// The most events kept, and their most bytes. The last event is kept even if it is longer.
const KEPT_EVENTS: usize = 1_024;
const KEPT_BYTES: usize = 4 * 1024 * 1024;
/// The number of readers to wake before yielding to other tasks.
const AT_A_TIME: usize = 64;
/// The kind of the last event that readers receive.
const STOPPING: &str = "gateway.stopping";

/// The stream of events of the gateway.
#[derive(Debug, Clone)]
pub struct Events(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    ring: Mutex<Ring>,
    readers: AtomicUsize,
    /// Notified when a reader arrives.
    watched: Notify,
    /// Notified when an event was published.
    told: Notify,
}

#[derive(Debug)]
struct Ring {
    /// The last events, in order; their numbers have no gaps.
    kept: VecDeque<Event>,
    bytes: usize,
    /// Number of the first event of this gateway. It is the time in microseconds, so that numbers do not
    /// repeat after a restart.
    first: u64,
    /// Number of the next event.
    next: u64,
    /// Number of the event after which readers receive nothing more.
    last: Option<u64>,
    /// Wakers of readers that have read everything, by reader number.
    waiting: HashMap<u64, Waker>,
    next_reader: u64,
}

/// An event in the form that readers receive.
#[derive(Debug)]
struct Event {
    kind: &'static str,
    frame: Bytes,
}

impl Default for Events {
    fn default() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = u64::try_from(now.unwrap_or_default().as_micros());
        Self::starting_at(now.unwrap_or_default().max(1))
    }
}

impl Events {
    fn starting_at(first: u64) -> Self {
        Self(Arc::new(Shared {
            ring: Mutex::new(Ring {
                kept: VecDeque::new(),
                bytes: 0,
                first,
                next: first,
                last: None,
                waiting: HashMap::new(),
                next_reader: 0,
            }),
            readers: AtomicUsize::new(0),
            watched: Notify::new(),
            told: Notify::new(),
        }))
    }

    /// Publishes an event to current and later readers, without blocking.
    pub fn tell<T: Serialize>(&self, kind: &'static str, data: impl FnOnce() -> T) {
        // Plain data always serializes.
        let data = serde_json::to_value(data()).unwrap_or_default();
        self.tell_json(kind, &data.to_string());
    }

    /// Publishes an event whose data is JSON already; JSON that servers wrote is kept as it is.
    pub fn tell_json(&self, kind: &'static str, data: &str) {
        let at = time::format(SystemTime::now());
        let data = &*scrub::json(data);
        if data.contains(['\n', '\r']) {
            // Between tokens a space is equivalent, and strings contain no raw line breaks.
            let line = data.replace(['\n', '\r'], " ");
            self.0.ring.lock().push(kind, &at, &line);
        } else {
            self.0.ring.lock().push(kind, &at, data);
        }
        self.0.told.notify_one();
    }

    /// Wakes waiting readers until the last event was published, so that publishers do not have to.
    pub fn usher(&self) -> impl Future<Output = ()> + use<> {
        let shared = Arc::clone(&self.0);
        async move {
            loop {
                shared.told.notified().await;
                let (waiting, last) = {
                    let mut ring = shared.ring.lock();
                    (std::mem::take(&mut ring.waiting), ring.last)
                };
                for (count, waker) in waiting.into_values().enumerate() {
                    waker.wake();
                    if count % AT_A_TIME == AT_A_TIME - 1 {
                        tokio::task::yield_now().await;
                    }
                }
                if last.is_some() {
                    return;
                }
            }
        }
    }

    /// Publishes the state of a server.
    pub fn server(&self, name: &str, health: &Health) {
        self.tell("server.state", || ServerEvent {
            health: health.shown(),
            name: name.to_owned(),
        });
    }

    /// Publishes the state of an instance of a server.
    pub fn instance(&self, name: &str, number: u64, health: &Health) {
        self.tell("server.instance", || InstanceEvent {
            health: health.shown(),
            name: name.to_owned(),
            number,
        });
    }

    /// Reads events from now on or, given the last event that was seen, from the one after it.
    pub fn read(&self, since: Since) -> Reader {
        let mut ring = self.0.ring.lock();
        let number = ring.next_reader;
        ring.next_reader += 1;
        let (next, lost) = match since {
            Since::Now => (ring.next, false),
            Since::Unknown => (ring.next, true),
            Since::Event(id) => match id.checked_add(1) {
                Some(next) if (ring.first..=ring.next).contains(&next) => (next, false),
                _ => (ring.next, true),
            },
        };
        drop(ring);
        self.0.readers.fetch_add(1, Relaxed);
        self.0.watched.notify_one();
        Reader {
            shared: Arc::clone(&self.0),
            number,
            next,
            lost,
        }
    }

    /// Returns `true` if there are readers.
    pub fn is_watched(&self) -> bool {
        self.0.readers.load(Relaxed) > 0
    }

    /// Waits for a reader. Only one task may wait at a time.
    pub fn watched(&self) -> impl Future<Output = ()> + use<> {
        let shared = Arc::clone(&self.0);
        async move {
            while shared.readers.load(Relaxed) == 0 {
                shared.watched.notified().await;
            }
        }
    }
}

impl Ring {
    fn push(&mut self, kind: &'static str, at: &str, data: &str) {
        let id = self.next;
        self.next += 1;
        // Neither the kind nor the time contains a character that JSON would escape.
        let mut frame = String::with_capacity(data.len() + 2 * kind.len() + 128);
        let _ = write!(
            frame,
            "event: {kind}\nid: {id}\ndata: {{\"id\":{id},\"kind\":\"{kind}\",\"at\":\"{at}\",\"data\":{data}}}\n\n"
        );
        self.bytes += frame.len();
        let frame = frame.into();
        self.kept.push_back(Event { kind, frame });
        while self.kept.len() > 1 && (self.kept.len() > KEPT_EVENTS || self.bytes > KEPT_BYTES) {
            let gone = self.kept.pop_front();
            self.bytes -= gone.map_or(0, |gone| gone.frame.len());
        }
        if kind == STOPPING && self.last.is_none() {
            self.last = Some(id);
        }
    }

    /// Number of the oldest event that is kept.
    fn oldest(&self) -> u64 {
        self.next - self.kept.len() as u64
    }

    fn get(&self, id: u64) -> Option<&Event> {
        let at = id.checked_sub(self.oldest())?;
        self.kept.get(usize::try_from(at).ok()?)
    }
}

/// The position from which a reader starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// The next event.
    Now,
    /// The event after this one.
    Event(u64),
    /// Some event was seen, but it is not known which.
    Unknown,
}

/// A reader of events.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    number: u64,
    /// Number of the next event to read.
    next: u64,
    /// The reader has missed an unknown number of events, and has yet to be notified.
    lost: bool,
}

/// An item that a reader receives.
#[derive(Debug, PartialEq, Eq)]
pub enum Told {
    /// An event, in the format of server-sent events.
    Event(Bytes),
    /// Events were missed. Reading continues after the event `last`.
    Lagged {
        /// Number of missed events, if known.
        missed: Option<u64>,
        /// Number of the event after which reading continues.
        last: u64,
    },
}

impl Reader {
    /// Polls for the next wanted event; `None` after the last.
    pub fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        wanted: impl Fn(&str) -> bool,
    ) -> Poll<Option<Told>> {
        let mut ring = self.shared.ring.lock();
        if self.lost || self.next < ring.oldest() {
            // Continuing with the oldest kept event would soon lag again.
            let head = ring.last.filter(|last| *last >= ring.oldest());
            let head = head.unwrap_or(ring.next);
            let missed = (!self.lost).then(|| head - self.next);
            self.lost = false;
            self.next = head;
            let last = head - 1;
            return Poll::Ready(Some(Told::Lagged { missed, last }));
        }
        while let Some(event) = ring.get(self.next) {
            if ring.last.is_some_and(|last| last < self.next) {
                return Poll::Ready(None);
            }
            self.next += 1;
            if wanted(event.kind) {
                return Poll::Ready(Some(Told::Event(event.frame.clone())));
            }
        }
        if ring.last.is_some() {
            return Poll::Ready(None);
        }
        ring.waiting.insert(self.number, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.ring.lock().waiting.remove(&self.number);
        self.shared.readers.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use serde_json::{Value, json};

    use super::*;

    /// An item that a reader has received: the number of an event, or that it lagged.
    #[derive(Debug, PartialEq, Eq, Clone, Copy)]
    enum Seen {
        Event(u64),
        Lagged(Option<u64>),
        End,
    }

    fn drain(reader: &mut Reader, wanted: impl Fn(&str) -> bool) -> Vec<Seen> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut seen = Vec::new();
        loop {
            match reader.poll_next(&mut cx, &wanted) {
                Poll::Ready(Some(Told::Event(frame))) => seen.push(Seen::Event(id(&frame))),
                Poll::Ready(Some(Told::Lagged { missed, .. })) => seen.push(Seen::Lagged(missed)),
                Poll::Ready(None) => {
                    seen.push(Seen::End);
                    return seen;
                }
                Poll::Pending => return seen,
            }
        }
    }

    fn id(frame: &[u8]) -> u64 {
        let text = std::str::from_utf8(frame).unwrap();
        let mut lines = text.lines();
        let kind = lines.next().unwrap().strip_prefix("event: ").unwrap();
        let id = lines.next().unwrap().strip_prefix("id: ").unwrap();
        let data = lines.next().unwrap().strip_prefix("data: ").unwrap();
        assert!(text.ends_with("}\n\n"), "{text}");
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["kind"], kind);
        assert_eq!(data["id"].to_string(), id);
        assert!(data["at"].is_string());
        id.parse().unwrap()
    }

    fn told(events: &Events, count: u64) {
        for _ in 0..count {
            events.tell("a", || json!({}));
        }
    }

    fn all(from: u64, to: u64) -> Vec<Seen> {
        (from..to).map(Seen::Event).collect()
    }

    #[test]
    fn missed_events_are_reported_exactly() {
        // The number of events, the last event seen, and the expected items.
        let kept = KEPT_EVENTS as u64;
        for (count, since, expected) in [
            (0, Since::Now, vec![]),
            (5, Since::Now, vec![]),
            (5, Since::Event(99), all(100, 105)),
            (5, Since::Event(101), all(102, 105)),
            (5, Since::Event(104), vec![]),
            // An event of the future, of the previous gateway, and an unknown one.
            (5, Since::Event(105), vec![Seen::Lagged(None)]),
            (5, Since::Event(98), vec![Seen::Lagged(None)]),
            (5, Since::Event(0), vec![Seen::Lagged(None)]),
            (5, Since::Event(u64::MAX), vec![Seen::Lagged(None)]),
            (5, Since::Unknown, vec![Seen::Lagged(None)]),
            (0, Since::Event(99), vec![]),
            (0, Since::Event(100), vec![Seen::Lagged(None)]),
            // At the limit of the ring, and past it.
            (kept, Since::Event(99), all(100, 100 + kept)),
            (kept + 1, Since::Event(100), all(101, 101 + kept)),
            (
                kept + 1,
                Since::Event(99),
                vec![Seen::Lagged(Some(kept + 1))],
            ),
        ] {
            let events = Events::starting_at(100);
            told(&events, count);
            let mut reader = events.read(since);
            let seen = drain(&mut reader, |_| true);
            assert_eq!(seen, expected, "{count} {since:?}");
            // Later events follow without a gap.
            let next = 100 + count;
            told(&events, 3);
            assert_eq!(drain(&mut reader, |_| true), all(next, next + 3));
        }
    }

    #[test]
    fn ring_is_bounded_in_bytes() {
        let events = Events::starting_at(100);
        for _ in 0..6 {
            events.tell("a", || json!("x".repeat(1024 * 1024)));
        }
        assert_eq!(
            drain(&mut events.read(Since::Event(102)), |_| true),
            all(103, 106)
        );
        let lagged = drain(&mut events.read(Since::Event(101)), |_| true);
        assert_eq!(lagged, [Seen::Lagged(Some(4))]);
        let mut reader = events.read(Since::Now);
        events.tell("a", || json!("x".repeat(2 * KEPT_BYTES)));
        assert_eq!(drain(&mut reader, |_| true), all(106, 107));
        assert_eq!(events.0.ring.lock().kept.len(), 1);
        told(&events, 1);
        assert!(events.0.ring.lock().bytes < 200);
    }

    #[test]
    fn last_event_ends_every_reader() {
        let events = Events::starting_at(100);
        let mut here = events.read(Since::Now);
        let mut filtered = events.read(Since::Now);
        let mut slow = events.read(Since::Now);
        told(&events, 1);
        events.tell(STOPPING, || json!({}));
        told(&events, 1);
        let end = [Seen::Event(100), Seen::Event(101), Seen::End];
        assert_eq!(drain(&mut here, |_| true), end);
        assert_eq!(drain(&mut filtered, |kind| kind == "b"), [Seen::End]);
        assert_eq!(drain(&mut events.read(Since::Now), |_| true), [Seen::End]);
        assert_eq!(drain(&mut events.read(Since::Event(99)), |_| true), end);
        told(&events, KEPT_EVENTS as u64 - 2);
        let late = [Seen::Lagged(Some(1)), Seen::Event(101), Seen::End];
        assert_eq!(drain(&mut slow, |_| true), late);
    }

    #[test]
    fn ids_grow_from_one_gateway_to_the_next() {
        let events = Events::default();
        told(&events, 3);
        let before = events.0.ring.lock().next;
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(Events::default().0.ring.lock().first > before);
        // Script languages can represent it without rounding.
        assert!(before < 1 << 53);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// However publishing and reading interleave, and wherever a reader disconnects and returns, it sees
        /// each event once and in order, unless it is notified that it lagged.
        #[test]
        fn returning_readers_see_every_event_once(
            steps in vec((0_u64..700, any::<bool>()), 1..12)
        ) {
            let events = Events::starting_at(1_000);
            let mut reader = events.read(Since::Now);
            let mut at = 1_000;
            let mut next = 1_000;
            for (count, comes_back) in steps {
                told(&events, count);
                next += count;
                if comes_back {
                    reader = events.read(Since::Event(at - 1));
                }
                if count % 3 == 0 {
                    continue;
                }
                let expected = if next - at > KEPT_EVENTS as u64 {
                    vec![Seen::Lagged(Some(next - at))]
                } else {
                    all(at, next)
                };
                prop_assert_eq!(drain(&mut reader, |_| true), expected);
                at = next;
            }
        }
    }
}
