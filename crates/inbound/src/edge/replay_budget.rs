//! The budget for streams that can be resumed, shared by all sessions of a principal: bounded in
//! bytes, oldest dropped first.

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::event_stream::EventStream;

/// The most bytes of all streams of the owner together.
pub(super) const STOCK_BYTES: usize = 64 * 1024 * 1024;
/// The bytes that a stream counts in addition to its events.
pub(super) const TAPE_BYTES: usize = 512;
/// The time to keep a stream that has ended and is not being played.
pub(super) const KEPT_FOR: Duration = Duration::from_mins(5);
/// The fewest entries at which dropped streams are removed.
const PRUNE_MIN: usize = 64;

/// The streams of all sessions of a principal.
#[derive(Debug)]
pub(crate) struct Stock {
    most: usize,
    bytes: AtomicUsize,
    streams: Mutex<Streams>,
}

#[derive(Debug, Default)]
struct Streams {
    /// Oldest first.
    queue: VecDeque<Weak<EventStream>>,
    /// The length at which dropped streams are removed.
    prune_at: usize,
}

impl Stock {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            bytes: AtomicUsize::new(0),
            streams: Mutex::default(),
        })
    }

    /// Adds a stream whose bytes have been counted.
    pub(super) fn put(&self, events: &Arc<EventStream>) {
        let mut streams = self.streams.lock();
        if streams.queue.len() >= streams.prune_at {
            streams.queue.retain(|events| events.strong_count() > 0);
            streams.prune_at = PRUNE_MIN.max(2 * streams.queue.len());
        }
        streams.queue.push_back(Arc::downgrade(events));
    }

    pub(super) fn grow(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    pub(super) fn shrink(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Relaxed);
    }

    /// Returns `true` if the budget is exceeded.
    pub(super) fn is_over(&self) -> bool {
        self.bytes.load(Relaxed) > self.most
    }

    /// Drops the oldest streams until the budget is met. Must not be called while a stream is
    /// locked.
    pub(super) fn make_room(&self) {
        while self.is_over() {
            let Some(oldest) = self.streams.lock().queue.pop_front() else {
                return;
            };
            if let Some(events) = oldest.upgrade() {
                events.forget();
            }
        }
    }

    /// Drops the streams that ended some time ago and are not being played.
    pub(super) fn sweep(&self, now: Instant) {
        let mut over: Vec<_> = self
            .streams
            .lock()
            .queue
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        over.retain(|events| events.is_over(now, KEPT_FOR));
        let dropped: HashSet<_> = over.iter().map(Arc::as_ptr).collect();
        let mut streams = self.streams.lock();
        streams
            .queue
            .retain(|events| events.strong_count() > 0 && !dropped.contains(&events.as_ptr()));
        drop(streams);
        for events in over {
            events.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, task::Poll};

    use switchboard_base::backchannel::Sink as _;

    use super::*;
    use crate::edge::event_stream::Replay;

    const LONG: usize = 3 * 1024;
    /// Room for four long streams.
    const MOST: usize = 16 * 1024;

    fn kept(stock: &Arc<Stock>, number: u64) -> (Arc<EventStream>, Replay) {
        let events = EventStream::named(number, true);
        let replay = events.play();
        events.keep_in(stock);
        (events, replay)
    }

    /// A stream with a long response that was not read.
    fn unread(stock: &Arc<Stock>, number: u64) -> Arc<EventStream> {
        let (events, replay) = kept(stock, number);
        events.finish(&vec![b'x'; LONG]);
        drop(replay);
        events
    }

    async fn bytes_of(replay: &mut Replay) -> usize {
        let mut bytes = 0;
        while let Some(event) = poll_fn(|cx| replay.poll_next(cx)).await {
            bytes += event.len();
        }
        bytes
    }

    #[tokio::test]
    async fn oldest_streams_are_dropped_for_new_ones() {
        let stock = Stock::new(MOST);
        let streams: Vec<_> = (1..=60).map(|number| unread(&stock, number)).collect();
        assert!(!stock.is_over());
        let bytes: usize = streams.iter().map(|events| events.bytes()).sum();
        assert!(bytes <= MOST, "{bytes}");
        // The remaining streams can be resumed, and the others report that they are gone.
        for events in &streams[56..] {
            assert!(bytes_of(&mut events.replay(0).unwrap()).await >= LONG);
        }
        assert!(
            streams[..56]
                .iter()
                .all(|events| events.replay(0).is_none())
        );
        drop(streams);
        assert_eq!(stock.bytes.load(Relaxed), 0);
    }

    #[tokio::test]
    async fn dropped_stream_is_played_to_its_end() {
        let stock = Stock::new(MOST);
        let (events, mut replay) = kept(&stock, 1);
        events.finish(&vec![b'x'; LONG]);
        let _others: Vec<_> = (2..=10).map(|number| unread(&stock, number)).collect();
        assert!(bytes_of(&mut replay).await >= LONG);
        drop(replay);
        assert_eq!(events.bytes(), 0);
    }

    #[tokio::test]
    async fn dropped_stream_takes_no_messages_unless_played() {
        let stock = Stock::new(1024);
        let (events, replay) = kept(&stock, 0);
        drop(replay);
        events.put(vec![b'x'; LONG].into());
        assert!(!stock.is_over());
        events.put(vec![b'x'; LONG].into());
        assert_eq!(events.bytes(), 0);
        let mut again = events.play();
        events.keep_in(&stock);
        events.put("1".into());
        let event = poll_fn(|cx| again.poll_next(cx)).await.unwrap();
        assert!(event.starts_with(b"id: 0_3\n"), "{event:?}");
        assert!(poll_fn(|cx| Poll::Ready(again.poll_next(cx).is_pending())).await);
    }

    #[tokio::test]
    async fn ended_stream_is_kept_for_minutes() {
        let stock = Stock::new(STOCK_BYTES);
        let ended = unread(&stock, 1);
        let (goes_on, replay) = kept(&stock, 2);
        goes_on.put("1".into());
        drop(replay);
        let (played, replay) = kept(&stock, 3);
        played.finish(b"1");
        let now = Instant::now();
        stock.sweep(now);
        assert!(ended.bytes() >= LONG);
        stock.sweep(now + KEPT_FOR);
        assert_eq!(ended.bytes(), 0);
        assert!(goes_on.bytes() > 0 && played.bytes() > 0);
        assert_eq!(stock.streams.lock().queue.len(), 2);
        drop(replay);
    }

    #[tokio::test]
    async fn dropped_streams_leave_no_entries() {
        let stock = Stock::new(STOCK_BYTES);
        for number in 0..1_000 {
            drop(unread(&stock, number));
        }
        assert!(stock.streams.lock().queue.len() <= PRUNE_MIN);
    }
}
