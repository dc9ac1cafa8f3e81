//! The frames on their way to the transport: offered, waiting for a retry, or behind an earlier
//! frame of their caller.
//!
//! Only one frame of a lane is offered at a time, so that a later frame never overtakes a retry.
//! Lanes do not wait for each other.

use std::{collections::VecDeque, time::Duration};

use rustc_hash::FxHashMap;

use crate::{
    event::{Outgoing, SendOutcome},
    random::Random,
};

/// The purpose of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The call with this id.
    Call(u64),
    /// The handshake request with this id.
    Handshake(u64),
    /// The notification that ends the handshake.
    Confirm,
    /// A response to a request of the server.
    Answer,
    /// The cancellation of a call, which is offered only once.
    Cancel,
}

/// The consequence of a send result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The transport has accepted the frame.
    Accepted(Purpose),
    /// Offer the frame again after this delay.
    Again { delay: Duration, attempts: u32 },
    /// The frame was offered the maximum number of times.
    GivenUp { purpose: Purpose, attempts: u32 },
    /// The transport has ended.
    Closed(Purpose),
}

#[derive(Debug)]
struct Item {
    lane: Lane,
    purpose: Purpose,
    outgoing: Outgoing,
    attempts: u32,
    /// Offered, and the result is not known yet.
    offered: bool,
}

/// A queue of frames that are sent in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Lane {
    /// The frames of a caller.
    Caller(u64),
    /// The frames of the machine itself: handshake and responses.
    Own,
    /// Cancellations, which do not wait for other frames.
    Cancel(u64),
}

#[derive(Debug)]
struct Queue {
    head: u64,
    behind: VecDeque<u64>,
}

const JITTER_PERCENT: u32 = 50;

#[derive(Debug)]
pub(crate) struct Outbox {
    attempts_max: u32,
    delay: Duration,
    next_ticket: u64,
    items: FxHashMap<u64, Item>,
    lanes: FxHashMap<Lane, Queue>,
}

impl Outbox {
    pub(crate) fn new(attempts_max: u32, delay: Duration) -> Self {
        Self {
            attempts_max,
            delay,
            next_ticket: 0,
            items: FxHashMap::default(),
            lanes: FxHashMap::default(),
        }
    }

    /// Adds a frame. Returns its ticket, and the frame if it must be offered now.
    pub(crate) fn push(
        &mut self,
        lane: Lane,
        purpose: Purpose,
        outgoing: Outgoing,
    ) -> (u64, Option<Outgoing>) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let item = Item {
            lane,
            purpose,
            outgoing,
            attempts: 0,
            offered: false,
        };
        self.items.insert(ticket, item);
        if let Some(queue) = self.lanes.get_mut(&lane) {
            queue.behind.push_back(ticket);
            return (ticket, None);
        }
        let queue = Queue {
            head: ticket,
            behind: VecDeque::new(),
        };
        self.lanes.insert(lane, queue);
        (ticket, self.offer(ticket))
    }

    /// Offers a frame again. Returns `None` if the frame is gone, and there is nothing to do.
    pub(crate) fn offer(&mut self, ticket: u64) -> Option<Outgoing> {
        let item = self.items.get_mut(&ticket)?;
        item.attempts += 1;
        item.offered = true;
        Some(item.outgoing.clone())
    }

    /// Handles the result of an offer. Returns `None` if the frame was removed meanwhile.
    pub(crate) fn result(
        &mut self,
        ticket: u64,
        outcome: SendOutcome,
        random: &mut Random,
    ) -> Option<Sent> {
        let item = self.items.get_mut(&ticket)?;
        item.offered = false;
        let attempts = item.attempts;
        let once = item.purpose == Purpose::Cancel;
        if outcome == SendOutcome::Busy && attempts < self.attempts_max && !once {
            let delay = random.jitter(self.delay, JITTER_PERCENT);
            return Some(Sent::Again { delay, attempts });
        }
        let purpose = item.purpose.clone();
        Some(match outcome {
            SendOutcome::Accepted => Sent::Accepted(purpose),
            SendOutcome::Busy => Sent::GivenUp { purpose, attempts },
            SendOutcome::Closed => Sent::Closed(purpose),
        })
    }

    /// Returns `true` if a frame has been offered and the result is not known yet.
    pub(crate) fn is_offered(&self, ticket: u64) -> bool {
        self.items.get(&ticket).is_some_and(|item| item.offered)
    }

    /// Returns a handshake request that the transport has not accepted yet, if there is one.
    pub(crate) fn question(&self) -> Option<u64> {
        let asks = |item: &Item| matches!(item.purpose, Purpose::Handshake(_));
        let mut items = self.items.iter();
        items.find_map(|(ticket, item)| asks(item).then_some(*ticket))
    }

    /// Removes a frame. Returns the next frame of its lane, if it must be offered now.
    pub(crate) fn remove(&mut self, ticket: u64) -> Option<(u64, Outgoing)> {
        let item = self.items.remove(&ticket)?;
        let queue = self.lanes.get_mut(&item.lane)?;
        if queue.head != ticket {
            queue.behind.retain(|behind| *behind != ticket);
            return None;
        }
        let Some(next) = queue.behind.pop_front() else {
            self.lanes.remove(&item.lane);
            return None;
        };
        queue.head = next;
        self.offer(next).map(|outgoing| (next, outgoing))
    }

    /// Removes all frames. Returns their tickets, so that their timers can be stopped.
    pub(crate) fn clear(&mut self) -> Vec<u64> {
        self.lanes.clear();
        self.items.drain().map(|(ticket, _)| ticket).collect()
    }

    /// Returns the number of frames in a lane that have not been accepted.
    pub(crate) fn len_of(&self, lane: Lane) -> usize {
        self.lanes
            .get(&lane)
            .map_or(0, |queue| queue.behind.len() + 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.lanes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::event::OutgoingKind;

    fn frame(text: &'static str) -> Outgoing {
        Outgoing {
            frame: Bytes::from_static(text.as_bytes()),
            kind: OutgoingKind::Answer,
            headers: Arc::from([]),
        }
    }

    #[test]
    fn lane_keeps_its_order_without_blocking_others() {
        let mut random = Random::new(1);
        let mut outbox = Outbox::new(3, Duration::from_millis(10));
        let (a, sent) = outbox.push(Lane::Caller(1), Purpose::Call(1), frame("a"));
        assert!(sent.is_some());
        assert!(matches!(
            outbox.result(a, SendOutcome::Busy, &mut random),
            Some(Sent::Again { attempts: 1, .. })
        ));
        let (_, behind) = outbox.push(Lane::Caller(1), Purpose::Call(2), frame("b"));
        assert!(behind.is_none(), "b may not overtake a");
        let (_, other) = outbox.push(Lane::Caller(2), Purpose::Call(3), frame("c"));
        assert!(other.is_some(), "c is another caller's");
        assert!(outbox.offer(a).is_some());
        assert_eq!(
            outbox.result(a, SendOutcome::Accepted, &mut random),
            Some(Sent::Accepted(Purpose::Call(1)))
        );
        let (_, next) = outbox.remove(a).unwrap();
        assert_eq!(next.frame, "b");
    }

    #[test]
    fn third_busy_result_is_final() {
        let mut random = Random::new(1);
        let mut outbox = Outbox::new(3, Duration::from_millis(10));
        let (ticket, _) = outbox.push(Lane::Caller(1), Purpose::Call(1), frame("a"));
        for _ in 0..2 {
            let Some(Sent::Again { delay, .. }) =
                outbox.result(ticket, SendOutcome::Busy, &mut random)
            else {
                panic!("given up early");
            };
            assert!((5..=15).contains(&delay.as_millis()));
            outbox.offer(ticket);
        }
        assert_eq!(
            outbox.result(ticket, SendOutcome::Busy, &mut random),
            Some(Sent::GivenUp {
                purpose: Purpose::Call(1),
                attempts: 3
            })
        );
    }
}
