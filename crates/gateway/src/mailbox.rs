//! What a client is to be told that belongs to none of its requests, until it can be told.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use switchboard_client::Raw;
use switchboard_wire::{encode, meta};
use tokio::sync::Notify;

use crate::line::Outlet;

/// A client's mailbox. What says the same as something that waits already takes its place.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    letters: Mutex<VecDeque<Letter>>,
    rung: Notify,
    /// The stream that everything in here belongs to, where 2026-07-28 wants it said.
    subscription: Option<Raw>,
}

#[derive(Debug)]
struct Letter {
    about: Option<Arc<str>>,
    message: Bytes,
}

/// A client that does not look is told no more than this.
const LETTERS_MAX: usize = 1_024;

impl Mailbox {
    /// A mailbox of the listen stream of this name.
    pub(crate) fn of_stream(subscription: Raw) -> Self {
        Self {
            subscription: Some(subscription),
            ..Self::default()
        }
    }

    /// Leaves a notification. `about` tells what it makes superfluous.
    pub(crate) fn tell(
        &self,
        about: Option<&Arc<str>>,
        method: &str,
        params: Option<&Raw>,
    ) -> bool {
        let stamped = self.subscription.as_ref().and_then(|subscription| {
            let stamp = [(meta::SUBSCRIPTION_ID, subscription.clone())];
            meta::stamp(params, &stamp).ok()
        });
        let message = encode::notification(method, stamped.as_ref().or(params));
        let mut letters = self.lock();
        if let Some(about) = about
            && let Some(same) = letters
                .iter_mut()
                .find(|letter| letter.about.as_ref() == Some(about))
        {
            same.message = message;
            return true;
        }
        if letters.len() >= LETTERS_MAX {
            return false;
        }
        letters.push_back(Letter {
            about: about.cloned(),
            message,
        });
        drop(letters);
        self.rung.notify_one();
        true
    }

    /// The next letter.
    pub(crate) async fn next(&self) -> Bytes {
        loop {
            if let Some(letter) = self.lock().pop_front() {
                return letter.message;
            }
            self.rung.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Letter>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outlet for Mailbox {
    fn put(&self, message: Bytes) -> bool {
        let mut letters = self.lock();
        if letters.len() >= LETTERS_MAX {
            return false;
        }
        letters.push_back(Letter {
            about: None,
            message,
        });
        drop(letters);
        self.rung.notify_one();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_says_the_same_is_said_once_and_the_rest_in_order() {
        let mailbox = Mailbox::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        assert!(mailbox.tell(Some(&a), "one", None));
        assert!(mailbox.tell(Some(&b), "two", None));
        assert!(mailbox.tell(Some(&a), "three", None));
        let mut said = Vec::new();
        for _ in 0..2 {
            said.push(String::from_utf8(mailbox.next().await.to_vec()).unwrap());
        }
        assert!(
            said[0].contains("three") && said[1].contains("two"),
            "{said:?}"
        );
    }

    #[tokio::test]
    async fn a_stream_has_its_name_on_everything_and_an_end_to_it() {
        let mailbox = Mailbox::of_stream(Raw::number(7));
        while mailbox.tell(None, "x", None) {}
        assert_eq!(mailbox.lock().len(), LETTERS_MAX);
        let said = mailbox.next().await;
        assert!(
            String::from_utf8_lossy(&said)
                .contains(r#""_meta":{"io.modelcontextprotocol/subscriptionId":7}"#),
            "{said:?}"
        );
    }
}
