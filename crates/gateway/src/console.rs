//! Who may use the console: keys that open it once, and the sessions that they are changed for.
//!
//! A key is part of a link that the gateway's owner is given. It is good once, for a day, and in this life
//! of the gateway. A session is a word under seal: nothing is kept of it, and it is good for a day also
//! after a restart.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use subtle::{Choice, ConstantTimeEq};

use crate::{random::secret, seal::Seal};

/// The most keys at a time: the next one takes the place of the oldest.
const KEYS_MAX: usize = 16;
/// How long a key is good.
const KEY_LIFE: Duration = Duration::from_hours(24);
/// How long a session is good.
const SESSION_LIFE: Duration = Duration::from_hours(24);
/// After so many wrong keys within this long, no key is looked at until it is over.
const WRONG_MAX: u32 = 30;
const WRONG_WITHIN: Duration = Duration::from_mins(1);
/// What a seal over a session is made for.
const PURPOSE: &str = "console";
/// The longest word that can be a session.
const SESSION_CHARS_MAX: usize = 128;

/// The keys that have been given out.
#[derive(Debug, Default)]
pub(crate) struct Console(Mutex<Keys>);

#[derive(Default)]
struct Keys {
    /// The oldest first.
    good: VecDeque<Key>,
    wrong: u32,
    /// The first of the wrong ones.
    wrong_since: Option<SystemTime>,
}

struct Key {
    secret: String,
    until: SystemTime,
}

/// Somebody who is signed in.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) token: String,
    pub(crate) until: SystemTime,
}

/// Why somebody is not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The key was never good, or is not any more.
    Key,
    /// Too many wrong keys were tried; it can be tried again after this long.
    Crowded(Duration),
    /// There is no randomness.
    Random,
}

impl Console {
    /// A new key; `None` if there is no randomness.
    pub(crate) fn key(&self, now: SystemTime) -> Option<String> {
        let secret = secret()?;
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.good.retain(|key| key.until > now);
        if keys.good.len() == KEYS_MAX {
            keys.good.pop_front();
        }
        keys.good.push_back(Key {
            secret: secret.clone(),
            until: now + KEY_LIFE,
        });
        Some(secret)
    }

    /// Changes a key for a session.
    pub(crate) fn sign_in(
        &self,
        seal: &Seal,
        key: &str,
        now: SystemTime,
    ) -> Result<Session, Refused> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(key, now)?;
        let mut payload = [0; 24];
        let until = now + SESSION_LIFE;
        payload[..8].copy_from_slice(&seconds(until).to_be_bytes());
        getrandom::fill(&mut payload[8..]).map_err(|_| Refused::Random)?;
        let token = seal.close(PURPOSE, &payload);
        Ok(Session { token, until })
    }
}

impl Keys {
    /// Takes a key away, if it is good.
    fn take(&mut self, shown: &str, now: SystemTime) -> Result<(), Refused> {
        let since = self.wrong_since.and_then(|at| now.duration_since(at).ok());
        let since = since.filter(|since| *since < WRONG_WITHIN);
        if since.is_none() {
            self.wrong = 0;
        }
        if self.wrong >= WRONG_MAX {
            let left = WRONG_WITHIN.saturating_sub(since.unwrap_or_default());
            return Err(Refused::Crowded(left));
        }
        self.good.retain(|key| key.until > now);
        // All of them are compared, each to its end: how long it takes says nothing.
        let found: Vec<Choice> = self
            .good
            .iter()
            .map(|key| key.secret.as_bytes().ct_eq(shown.as_bytes()))
            .collect();
        if let Some(at) = found.into_iter().position(bool::from) {
            self.good.remove(at);
            return Ok(());
        }
        if self.wrong == 0 {
            self.wrong_since = Some(now);
        }
        self.wrong += 1;
        Err(Refused::Key)
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys")
            .field("good", &self.good.len())
            .finish_non_exhaustive()
    }
}

/// Whether this is a session that is still good.
pub(crate) fn is_session(seal: &Seal, token: &str, now: SystemTime) -> bool {
    let until = (token.len() <= SESSION_CHARS_MAX)
        .then(|| seal.open(PURPOSE, token))
        .flatten()
        .and_then(|payload| Some(u64::from_be_bytes(*payload.first_chunk()?)));
    until.is_some_and(|until| until > seconds(now))
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);
    const SECOND: Duration = Duration::from_secs(1);

    fn rig() -> (Console, Seal, SystemTime) {
        let console = Console::default();
        (console, Seal::new().unwrap(), SystemTime::now())
    }

    #[test]
    fn a_key_opens_once() {
        let (console, seal, now) = rig();
        let key = console.key(now).unwrap();
        assert_eq!(key.len(), 32);
        let session = console.sign_in(&seal, &key, now).unwrap();
        assert!(is_session(&seal, &session.token, now));
        let again = console.sign_in(&seal, &key, now).unwrap_err();
        assert_eq!(again, Refused::Key);
    }

    #[test]
    fn a_key_is_good_for_a_day_and_so_is_a_session() {
        let (console, seal, now) = rig();
        let early = console.key(now).unwrap();
        let late = console.key(now).unwrap();
        let session = console
            .sign_in(&seal, &early, now + DAY.checked_sub(SECOND).unwrap())
            .unwrap();
        let refused = console.sign_in(&seal, &late, now + DAY).unwrap_err();
        assert_eq!(refused, Refused::Key);
        let last = session.until - 2 * SECOND;
        assert!(is_session(&seal, &session.token, last));
        assert!(!is_session(&seal, &session.token, session.until));
    }

    #[test]
    fn the_oldest_of_too_many_keys_is_forgotten() {
        let (console, seal, now) = rig();
        let keys: Vec<_> = (0..=KEYS_MAX).map(|_| console.key(now).unwrap()).collect();
        assert!(console.sign_in(&seal, &keys[0], now).is_err());
        for key in &keys[1..] {
            assert!(console.sign_in(&seal, key, now).is_ok());
        }
    }

    #[test]
    fn who_guesses_is_not_heard_for_a_while() {
        let (console, seal, now) = rig();
        let key = console.key(now).unwrap();
        for _ in 0..WRONG_MAX {
            let refused = console.sign_in(&seal, "wrong", now).unwrap_err();
            assert_eq!(refused, Refused::Key);
        }
        let refused = console.sign_in(&seal, &key, now + SECOND).unwrap_err();
        assert_eq!(refused, Refused::Crowded(Duration::from_secs(59)));
        assert!(console.sign_in(&seal, &key, now + WRONG_WITHIN).is_ok());
    }

    #[test]
    fn a_session_is_nothing_that_anybody_else_can_make() {
        let (console, seal, now) = rig();
        let key = console.key(now).unwrap();
        let token = console.sign_in(&seal, &key, now).unwrap().token;
        assert!(!is_session(&Seal::new().unwrap(), &token, now));
        let far = [0xff; 24];
        for wrong in [
            seal.close("other", &far),
            seal.close(PURPOSE, b"short"),
            String::new(),
            key,
            "x".repeat(10_000),
        ] {
            assert!(!is_session(&seal, &wrong, now), "{wrong}");
        }
    }
}
