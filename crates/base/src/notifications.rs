//! Notifications that belong to no request of a client, queued until the client reads them.

use std::{
    cell::OnceCell,
    collections::VecDeque,
    sync::{Arc, LazyLock},
};

use bytes::Bytes;
use parking_lot::Mutex;
use switchboard_client::{Raw, throttle::Limited};
use switchboard_wire::{encode, meta};
use tokio::sync::Notify;

use crate::backchannel::Sink;

/// A client's queue of notifications. A notification with the same key as a queued one replaces it.
#[derive(Debug, Default)]
pub struct NotificationQueue {
    queue: Mutex<Queue>,
    rung: Notify,
    /// ID of the stream that the notifications belong to, which 2026-07-28 requires in each of them.
    subscription: Option<Raw>,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Queued>,
    /// Total size of the messages.
    bytes: usize,
}

#[derive(Debug)]
struct Queued {
    about: Option<Arc<str>>,
    message: Bytes,
}

/// The most messages, and bytes, queued for a client that does not read them.
const QUEUED_MAX: usize = 1_024;
const QUEUED_BYTES: usize = 256 * 1024;
/// The longest message, in bytes.
const MESSAGE_BYTES: usize = 64 * 1024;

/// A notification for any number of queues, which share its bytes.
#[derive(Debug)]
pub struct News<'a> {
    /// Key: a newer notification with the same key replaces this one.
    about: Option<Arc<str>>,
    method: &'a str,
    params: Option<&'a Raw>,
    message: OnceCell<Bytes>,
}

impl<'a> News<'a> {
    /// Creates a notification; `None`, which is logged, if it is longer than a message may be.
    pub fn new(about: Option<Arc<str>>, method: &'a str, params: Option<&'a Raw>) -> Option<Self> {
        let bytes = params.map_or(0, |params| params.as_bytes().len());
        if bytes > MESSAGE_BYTES {
            report_dropped(method, bytes);
            return None;
        }
        Some(Self {
            about,
            method,
            params,
            message: OnceCell::new(),
        })
    }

    fn message(&self) -> Bytes {
        let encode = || encode::notification(self.method, self.params);
        self.message.get_or_init(encode).clone()
    }

    /// The notification, with the ID of this subscription.
    fn stamped(&self, subscription: &Raw) -> Bytes {
        let stamp = [(meta::SUBSCRIPTION_ID, subscription.clone())];
        match meta::stamp(self.params, &stamp) {
            Ok(params) => encode::notification(self.method, Some(&params)),
            Err(_) => self.message(),
        }
    }
}

fn report_dropped(method: &str, bytes: usize) {
    static DROPPED: LazyLock<Limited> = LazyLock::new(Limited::default);
    DROPPED.report(|missed| {
        tracing::warn!(
            method,
            bytes,
            most = MESSAGE_BYTES,
            missed,
            "Dropped a notification from a server, because it is too long."
        );
    });
}

impl NotificationQueue {
    /// A queue for the listen stream with this ID.
    pub fn of_stream(subscription: Raw) -> Self {
        Self {
            subscription: Some(subscription),
            ..Self::default()
        }
    }

    /// Queues a notification. Returns `true` if there was room for it.
    pub fn tell(&self, news: &News<'_>) -> bool {
        let message = match &self.subscription {
            Some(subscription) => news.stamped(subscription),
            None => news.message(),
        };
        let taken = self.queue.lock().put(news.about.clone(), message);
        if taken {
            self.rung.notify_one();
        }
        taken
    }

    /// Waits for the next message.
    pub async fn next(&self) -> Bytes {
        loop {
            if let Some(message) = self.queue.lock().take() {
                return message;
            }
            self.rung.notified().await;
        }
    }
}

impl Queue {
    fn put(&mut self, about: Option<Arc<str>>, message: Bytes) -> bool {
        let full = self.messages.len() >= QUEUED_MAX;
        let same = about.as_ref().and_then(|about| {
            let mut queue = self.messages.iter_mut();
            queue.find(|queued| queued.about.as_ref() == Some(about))
        });
        let replaced = same.as_ref().map_or(0, |queued| queued.message.len());
        let bytes = self.bytes - replaced + message.len();
        match same {
            // A message with the same key is queued: the client learns of the change in any case.
            Some(_) if bytes > QUEUED_BYTES => return true,
            Some(queued) => queued.message = message,
            None if full || bytes > QUEUED_BYTES => return false,
            None => self.messages.push_back(Queued { about, message }),
        }
        self.bytes = bytes;
        true
    }

    fn take(&mut self) -> Option<Bytes> {
        let next = self.messages.pop_front()?;
        self.bytes -= next.message.len();
        Some(next.message)
    }
}

impl Sink for NotificationQueue {
    fn put(&self, message: Bytes) -> bool {
        let taken = self.queue.lock().put(None, message);
        if taken {
            self.rung.notify_one();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tell(notifications: &NotificationQueue, about: Option<&Arc<str>>, method: &str) -> bool {
        let news = News::new(about.cloned(), method, None).unwrap();
        notifications.tell(&news)
    }

    fn params(bytes: usize) -> Raw {
        Raw::object([("data", Raw::string(&"x".repeat(bytes)))])
    }

    #[tokio::test]
    async fn notification_replaces_one_with_the_same_key() {
        let notifications = NotificationQueue::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        assert!(tell(&notifications, Some(&a), "one"));
        assert!(tell(&notifications, Some(&b), "two"));
        assert!(tell(&notifications, Some(&a), "three"));
        let mut said = Vec::new();
        for _ in 0..2 {
            said.push(String::from_utf8(notifications.next().await.to_vec()).unwrap());
        }
        assert!(
            said[0].contains("three") && said[1].contains("two"),
            "{said:?}"
        );
        assert_eq!(notifications.queue.lock().bytes, 0);
    }

    #[tokio::test]
    async fn stream_id_is_added_and_queue_is_bounded() {
        let notifications = NotificationQueue::of_stream(Raw::number(7));
        while tell(&notifications, None, "x") {}
        assert_eq!(notifications.queue.lock().messages.len(), QUEUED_MAX);
        let said = notifications.next().await;
        assert!(
            String::from_utf8_lossy(&said)
                .contains(r#""_meta":{"io.modelcontextprotocol/subscriptionId":7}"#),
            "{said:?}"
        );
    }

    #[tokio::test]
    async fn queue_is_bounded_in_bytes() {
        let notifications = NotificationQueue::default();
        let params = params(10_000);
        let news = News::new(None, "x", Some(&params)).unwrap();
        let taken = (0..QUEUED_MAX)
            .take_while(|_| notifications.tell(&news))
            .count();
        assert_eq!(taken, QUEUED_BYTES / news.message().len());
        assert!(!notifications.put(news.message()));
        notifications.next().await;
        assert!(notifications.put(news.message()));
        assert!(News::new(None, "x", Some(&self::params(MESSAGE_BYTES))).is_none());
    }

    #[test]
    fn replaced_message_counts_once() {
        let notifications = NotificationQueue::default();
        let about: Arc<str> = "a".into();
        let params = params(MESSAGE_BYTES - 100);
        let news = News::new(Some(about), "x", Some(&params)).unwrap();
        for _ in 0..100 {
            assert!(notifications.tell(&news));
        }
        assert_eq!(notifications.queue.lock().bytes, news.message().len());
    }

    #[tokio::test]
    async fn queues_share_the_bytes_of_a_notification() {
        let boxes = [NotificationQueue::default(), NotificationQueue::default()];
        let params = params(100);
        let news = News::new(None, "x", Some(&params)).unwrap();
        assert!(boxes.iter().all(|notifications| notifications.tell(&news)));
        let (one, other) = (boxes[0].next().await, boxes[1].next().await);
        assert_eq!(one.as_ptr(), other.as_ptr());
    }
}
