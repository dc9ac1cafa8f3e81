//! Event streams to HTTP clients, which can be resumed where they broke.
//!
//! A writer appends messages to a stream and never waits; the body of an HTTP response plays it. If
//! the client is disconnected, the stream continues, and another response can play the rest.

use std::{
    collections::VecDeque,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::{Mutex, MutexGuard};
use switchboard_base::backchannel::Sink;
use tokio::{
    sync::Notify,
    time::{Instant, Interval, interval_at},
};

use super::replay_budget::{Stock, TAPE_BYTES};

/// A stream of events.
#[derive(Debug)]
pub(crate) struct EventStream {
    inner: Mutex<Inner>,
    /// The name in the IDs of its events. A stream with a name can be resumed.
    name: Option<u64>,
    primes: bool,
    /// Notified when a reader comes or goes, or has drained a full stream.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<Bytes>,
    /// Number of the first event in `events`.
    first: u64,
    /// Number of the first event that has not been played.
    unplayed: u64,
    /// Total bytes of `events`.
    bytes: usize,
    begun: bool,
    finished: bool,
    /// The current reader. A new one ends the one before.
    replay: u64,
    playing: bool,
    /// Time when the stream ended or its last reader left.
    left: Option<Instant>,
    keeping: Keeping,
    waker: Option<Waker>,
}

/// The budget that the bytes of a stream count against.
#[derive(Debug, Default)]
enum Keeping {
    /// The budget of the request that it belongs to.
    #[default]
    Own,
    /// The budget of streams that can be resumed.
    Stock(Arc<Stock>),
    /// No budget: if it is being played, it is played to its end, and it is not kept.
    Dropped,
}

/// The most bytes and events that are kept after they were played, for resumption.
const KEPT_BYTES: usize = 256 * 1024;
const KEPT_EVENTS: usize = 512;
/// The most bytes of unplayed events. Later ones are lost.
const UNPLAYED_BYTES: usize = 16 * 1024 * 1024;
/// The buffered bytes beyond which responses wait for the reader.
const FULL_BYTES: usize = 4 * 1024 * 1024;
/// The delay after which a client is to reconnect if its stream breaks.
const RETRY_MS: u32 = 1_000;
const KEEP_ALIVE: Duration = Duration::from_secs(25);

impl EventStream {
    /// A stream that is played once.
    pub(crate) fn new() -> Arc<Self> {
        Self::build(None, false)
    }

    /// A stream that can be resumed by the IDs of its events. If it `primes`, the first event is
    /// empty and has only an ID, so that there is an ID from the beginning.
    pub(crate) fn named(name: u64, primes: bool) -> Arc<Self> {
        Self::build(Some(name), primes)
    }

    fn build(name: Option<u64>, primes: bool) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::default(),
            name,
            primes,
            changed: Notify::new(),
        })
    }

    /// Ready when the stream has begun.
    pub(crate) fn poll_begun(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.inner.lock();
        if inner.begun {
            return Poll::Ready(());
        }
        inner.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns `true` if the stream has not begun.
    pub(crate) fn is_blank(&self) -> bool {
        !self.inner.lock().begun
    }

    /// Appends the last message, even if the stream is full.
    pub(crate) fn finish(&self, message: &[u8]) {
        let mut inner = self.inner.lock();
        self.write(&mut inner, message);
        inner.finished = true;
        inner.left = Some(Instant::now());
        written(inner);
    }

    /// Moves it to the budget of streams that can be resumed, unless it is there.
    pub(super) fn keep_in(self: &Arc<Self>, stock: &Arc<Stock>) {
        let mut inner = self.inner.lock();
        if matches!(inner.keeping, Keeping::Stock(_)) {
            return;
        }
        stock.grow(inner.bytes + TAPE_BYTES);
        inner.keeping = Keeping::Stock(Arc::clone(stock));
        drop(inner);
        stock.put(self);
    }

    /// Drops its events. A stream that is being played loses them as they are played.
    pub(super) fn forget(&self) {
        let mut inner = self.inner.lock();
        inner.leave_stock();
        inner.keeping = Keeping::Dropped;
        if !inner.playing {
            inner.clear();
        }
    }

    /// Returns `true` if it was dropped and is not being played.
    pub(super) fn is_gone(&self) -> bool {
        let inner = self.inner.lock();
        matches!(inner.keeping, Keeping::Dropped) && !inner.playing
    }

    /// Returns `true` if it has ended and has not been played for this long.
    pub(super) fn is_over(&self, now: Instant, long: Duration) -> bool {
        let inner = self.inner.lock();
        let left = inner.left.filter(|_| inner.finished && !inner.playing);
        left.is_some_and(|left| now.duration_since(left) >= long)
    }

    /// Number of buffered bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.inner.lock().bytes
    }

    /// Ends the stream without a further message.
    pub(crate) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.finished = true;
        inner.left = Some(Instant::now());
        inner.wake();
    }

    fn force(&self, message: &[u8]) {
        let mut inner = self.inner.lock();
        // No client can read it, now or later.
        if self.name.is_none() && inner.replay > 0 && !inner.playing {
            return;
        }
        self.write(&mut inner, message);
        written(inner);
    }

    /// Appends an event that is not a message.
    pub(crate) fn announce(&self, kind: &str, data: &str) {
        let mut inner = self.inner.lock();
        let event = format!("event: {kind}\ndata: {data}\n\n");
        inner.push(event.into());
        inner.wake();
    }

    /// Plays the stream from the first unplayed event.
    pub(crate) fn play(self: &Arc<Self>) -> Replay {
        let mut inner = self.inner.lock();
        self.begin(&mut inner)
    }

    /// Plays the stream from after the event with this number; `None` if later events have been
    /// dropped.
    pub(crate) fn replay(self: &Arc<Self>, after: u64) -> Option<Replay> {
        let mut inner = self.inner.lock();
        let next = after.saturating_add(1);
        if next < inner.first {
            return None;
        }
        inner.unplayed = next.min(inner.next());
        Some(self.begin(&mut inner))
    }

    fn begin(self: &Arc<Self>, inner: &mut Inner) -> Replay {
        inner.replay += 1;
        inner.playing = true;
        // The previous reader ends when it is polled.
        inner.wake();
        self.changed.notify_waiters();
        Replay {
            events: Arc::clone(self),
            number: inner.replay,
            alive: interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE),
        }
    }

    /// Waits until the stream has no reader.
    pub(crate) async fn abandoned(&self) {
        self.until(|inner| !inner.playing).await;
    }

    /// Waits until this reader has left or was replaced.
    pub(crate) async fn left_by(&self, replay: u64) {
        self.until(|inner| !inner.playing || inner.replay != replay)
            .await;
    }

    /// Returns `true` if responses have to wait.
    pub(crate) fn is_full(&self) -> bool {
        let inner = self.inner.lock();
        inner.bytes > FULL_BYTES && inner.playing
    }

    /// Waits until there is room or no reader.
    pub(crate) async fn room(&self) {
        self.until(|inner| inner.bytes <= FULL_BYTES || !inner.playing)
            .await;
    }

    async fn until(&self, come: impl Fn(&Inner) -> bool) {
        loop {
            // Created before the check, so that a later change is not missed.
            let changed = self.changed.notified();
            if come(&self.inner.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Appends a message when there is room for it, or no reader.
    pub(crate) async fn say(&self, message: &[u8]) {
        self.room().await;
        self.force(message);
    }

    fn prime(&self, inner: &mut Inner) {
        inner.begun = true;
        if !self.primes || inner.next() > 0 {
            return;
        }
        let name = self.name.unwrap_or_default();
        let event = format!("id: {name}_0\nretry: {RETRY_MS}\ndata: \n\n");
        inner.push(event.into());
    }

    fn write(&self, inner: &mut Inner, message: &[u8]) {
        self.prime(inner);
        let name = self.name.map(|name| (name, inner.next()));
        inner.push(event(name, message));
    }
}

/// Wakes the reader of a stream that was written to, and makes room in the budget.
fn written(mut inner: MutexGuard<'_, Inner>) {
    inner.wake();
    let stock = match &inner.keeping {
        Keeping::Stock(stock) if stock.is_over() => Some(Arc::clone(stock)),
        _ => None,
    };
    drop(inner);
    if let Some(stock) = stock {
        stock.make_room();
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.inner.lock().leave_stock();
    }
}

impl Sink for EventStream {
    fn put(&self, message: Bytes) -> bool {
        let mut inner = self.inner.lock();
        if inner.finished || inner.bytes > UNPLAYED_BYTES {
            return false;
        }
        self.write(&mut inner, &message);
        written(inner);
        true
    }

    fn begin(&self) {
        let mut inner = self.inner.lock();
        self.prime(&mut inner);
        inner.wake();
    }
}

impl Inner {
    fn next(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    fn push(&mut self, event: Bytes) {
        if matches!(self.keeping, Keeping::Dropped) && !self.playing {
            self.first += 1;
            self.unplayed = self.first;
            return;
        }
        self.bytes += event.len();
        if let Keeping::Stock(stock) = &self.keeping {
            stock.grow(event.len());
        }
        self.events.push_back(event);
    }

    /// Removes the oldest event.
    fn pop(&mut self) -> bool {
        let Some(old) = self.events.pop_front() else {
            return false;
        };
        self.first += 1;
        self.bytes -= old.len();
        if let Keeping::Stock(stock) = &self.keeping {
            stock.shrink(old.len());
        }
        true
    }

    fn clear(&mut self) {
        while self.pop() {}
        self.events = VecDeque::new();
        self.unplayed = self.unplayed.max(self.first);
    }

    /// Stops counting its bytes in the shared budget.
    fn leave_stock(&mut self) {
        if let Keeping::Stock(stock) = std::mem::take(&mut self.keeping) {
            stock.shrink(self.bytes + TAPE_BYTES);
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Returns `true` if more is kept than necessary. The last event is always kept, because it may
    /// have been lost on its way.
    fn is_crowded(&self) -> bool {
        self.events.len() > 1 && (self.bytes > KEPT_BYTES || self.events.len() > KEPT_EVENTS)
    }

    /// The next event to play.
    fn take(&mut self, keeps: bool) -> Option<Bytes> {
        let at = usize::try_from(self.unplayed.checked_sub(self.first)?).ok()?;
        let event = self.events.get(at)?.clone();
        self.unplayed += 1;
        while self.first < self.unplayed && (!keeps || self.is_crowded()) && self.pop() {}
        Some(event)
    }
}

/// Plays a stream as the body of a response, with periodic comments as signs of life.
#[derive(Debug)]
pub(crate) struct Replay {
    events: Arc<EventStream>,
    number: u64,
    alive: Interval,
}

impl Replay {
    /// Distinguishes this reader from others.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        {
            let mut inner = self.events.inner.lock();
            if inner.replay != self.number {
                return Poll::Ready(None);
            }
            if let Some(event) = inner.take(self.events.name.is_some()) {
                let full = inner.bytes + event.len() > FULL_BYTES;
                drop(inner);
                if full {
                    self.events.changed.notify_waiters();
                }
                self.alive.reset();
                return Poll::Ready(Some(event));
            }
            if inner.finished {
                return Poll::Ready(None);
            }
            inner.waker = Some(cx.waker().clone());
        }
        std::task::ready!(self.alive.poll_tick(cx));
        Poll::Ready(Some(Bytes::from_static(b":\n\n")))
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        let mut inner = self.events.inner.lock();
        if inner.replay == self.number {
            inner.playing = false;
            inner.left = Some(Instant::now());
            if matches!(inner.keeping, Keeping::Dropped) {
                inner.clear();
            }
            drop(inner);
            self.events.changed.notify_waiters();
        }
    }
}

/// A message as an event. JSON on one line needs no splitting.
fn event(name: Option<(u64, u64)>, message: &[u8]) -> Bytes {
    let mut event = BytesMut::with_capacity(message.len() + 48);
    if let Some((stream, number)) = name {
        event.put_slice(format!("id: {stream}_{number}\n").as_bytes());
    }
    event.put_slice(b"event: message\ndata: ");
    // A line end in a JSON message can only be white space between tokens.
    event.extend(message.iter().map(|byte| match byte {
        b'\n' | b'\r' => b' ',
        other => *other,
    }));
    event.put_slice(b"\n\n");
    event.freeze()
}

/// The stream and the number in the ID of an event.
pub(crate) fn read_name(name: &str) -> Option<(u64, u64)> {
    let (stream, number) = name.split_once('_')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn next(replay: &mut Replay) -> Option<String> {
        let event = poll_fn(|cx| replay.poll_next(cx)).await?;
        Some(String::from_utf8(event.to_vec()).unwrap())
    }

    fn put(events: &EventStream, message: &'static str) -> bool {
        events.put(Bytes::from_static(message.as_bytes()))
    }

    #[test]
    fn message_is_one_event() {
        let event = event(None, b"{\"a\":\n1}\r\n");
        assert_eq!(&event[..], b"event: message\ndata: {\"a\": 1}  \n\n");
    }

    #[tokio::test]
    async fn broken_stream_is_resumed() {
        let events = EventStream::named(7, true);
        put(&events, "1");
        put(&events, "2");
        let mut replay = events.play();
        assert_eq!(
            next(&mut replay).await.unwrap(),
            "id: 7_0\nretry: 1000\ndata: \n\n"
        );
        assert!(next(&mut replay).await.unwrap().starts_with("id: 7_1\n"));
        assert!(next(&mut replay).await.unwrap().starts_with("id: 7_2\n"));
        drop(replay);
        events.abandoned().await;
        events.finish(b"3");
        let mut again = events.replay(1).unwrap();
        assert!(next(&mut again).await.unwrap().contains("data: 2"));
        assert!(next(&mut again).await.unwrap().contains("data: 3"));
        assert_eq!(next(&mut again).await, None);
        // A number after the end, or before the beginning, is no error.
        assert_eq!(next(&mut events.replay(u64::MAX).unwrap()).await, None);
        assert!(next(&mut events.replay(0).unwrap()).await.is_some());
    }

    #[tokio::test]
    async fn long_response_can_be_replayed() {
        let events = EventStream::named(7, false);
        put(&events, "1");
        events.finish(&vec![b'x'; 2 * KEPT_BYTES]);
        let mut replay = events.play();
        while next(&mut replay).await.is_some() {}
        let mut again = events.replay(0).unwrap();
        assert!(next(&mut again).await.unwrap().len() > KEPT_BYTES);
    }

    #[tokio::test]
    async fn replay_of_dropped_events_is_refused() {
        let events = EventStream::named(7, false);
        for _ in 0..2 * KEPT_EVENTS {
            put(&events, "1");
        }
        let mut replay = events.play();
        for _ in 0..2 * KEPT_EVENTS {
            next(&mut replay).await.unwrap();
        }
        assert!(events.replay(1).is_none());
        assert!(events.replay(2 * KEPT_EVENTS as u64 - 2).is_some());
    }

    #[tokio::test]
    async fn writer_waits_only_for_a_reader() {
        let events = EventStream::new();
        let mut replay = events.play();
        let long = vec![b'x'; FULL_BYTES + 1];
        events.say(&long).await;
        let mut waits = Box::pin(events.say(b"1"));
        assert!(poll_fn(|cx| Poll::Ready(waits.as_mut().poll(cx).is_pending())).await);
        next(&mut replay).await.unwrap();
        waits.await;
        events.say(&long).await;
        drop(replay);
        // Without a reader, writers do not wait.
        events.say(b"2").await;
    }

    #[tokio::test]
    async fn new_reader_ends_the_previous() {
        let events = EventStream::named(0, false);
        let mut one = events.play();
        let mut other = events.play();
        assert_eq!(next(&mut one).await, None);
        put(&events, "1");
        assert!(next(&mut other).await.is_some());
        drop(one);
        assert!(events.inner.lock().playing);
    }

    #[tokio::test]
    async fn unnamed_stream_keeps_nothing_and_is_bounded() {
        let events = EventStream::new();
        put(&events, "1");
        let mut replay = events.play();
        next(&mut replay).await.unwrap();
        assert_eq!(events.inner.lock().bytes, 0);
        let long = Bytes::from(vec![b'x'; 1024 * 1024]);
        let taken = (0..64).take_while(|_| events.put(long.clone())).count();
        assert!((16..20).contains(&taken), "{taken}");
        events.finish(b"end");
        assert!(!put(&events, "late"));
    }
}
