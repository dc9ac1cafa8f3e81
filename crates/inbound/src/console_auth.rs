//! Who may use the console: keys that open it once, and the sessions that they are changed for.
//!
//! A key is part of a link that the gateway's owner is given. It is good once, for a day, and in this run of the
//! gateway. So is a session, until it is ended: sessions are kept in memory only, so that a restart, which a
//! new token needs, ends all of them.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use hmac::{Hmac, KeyInit, Mac};
use parking_lot::{Mutex, MutexGuard};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use switchboard_base::{random::secret, time};
use switchboard_rest::console as rest;
use switchboard_text::hex;
use tokio::{sync::watch, time::timeout};

/// The most keys at a time: the next one takes the place of the oldest.
const KEYS_MAX: usize = 16;
/// The most sessions at a time, likewise.
const SESSIONS_MAX: usize = 32;
/// How long a key is good.
const KEY_LIFE: Duration = Duration::from_hours(24);
/// How long a session is good.
const SESSION_LIFE: Duration = Duration::from_hours(24);
/// The length of a session's ID.
const ID_CHARS: usize = 16;
/// Stands in front of a nonce that is signed, so that the signature is good for nothing else.
const PROOF: &str = "switchboard console\n";

/// The domain whose names are this machine for every browser.
const DOMAIN: &str = "localhost";
/// The port that browsers leave out.
const HTTP_PORT: u16 = 80;

/// Why there is no console.
pub fn no_console(taken: SocketAddr) -> String {
    format!("another program listens on {taken}, where a browser may look for the console")
}
/// What a person can do about it.
pub const NO_CONSOLE_HINT: &str = "end that program and start the gateway again, or choose another port with `listen` in the configuration or `serve --listen`";

/// The name of the console in this run, the keys that have been given out, and the sessions.
pub struct Console {
    /// What a browser keeps for an address, it keeps for this name, which no other program had.
    name: String,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The oldest first.
    keys: VecDeque<Key>,
    /// The oldest first.
    sessions: VecDeque<Session>,
}

struct Key {
    secret: String,
    until: SystemTime,
    /// The session that asked for it. It ends with that.
    by: Option<Arc<str>>,
}

struct Session {
    id: Arc<str>,
    secret: String,
    since: SystemTime,
    until: SystemTime,
    used: SystemTime,
    /// Closed when the session ends.
    end: watch::Sender<()>,
}

/// The session of a request.
#[derive(Debug, Clone)]
pub struct Signed {
    /// The name of the session, which opens nothing.
    pub id: Arc<str>,
    left: Duration,
    end: watch::Receiver<()>,
}

impl Signed {
    /// Waits until the session has ended.
    pub(crate) async fn ended(mut self) {
        // Nothing is ever sent: the sender goes with the session.
        let _ = timeout(self.left, self.end.changed()).await;
    }
}

/// A new session.
#[derive(Debug)]
pub struct SignedIn {
    /// The name of the session, which opens nothing.
    pub id: Arc<str>,
    /// The ID and the secret, with a dot between them.
    pub token: String,
    /// When it ends.
    pub until: SystemTime,
}

/// Why nobody is signed in.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// The key was never good, or is not any more.
    Key,
    /// There is no randomness.
    Random,
}

impl Console {
    /// `None` if there is no randomness.
    pub(crate) fn new() -> Option<Self> {
        Some(Self {
            name: format!("{}.{DOMAIN}", secret()?),
            inner: Mutex::default(),
        })
    }

    /// The name and this port, as browsers send them.
    pub(crate) fn host(&self, port: u16) -> Box<str> {
        match port {
            HTTP_PORT => self.name.as_str().into(),
            port => format!("{}:{port}", self.name).into(),
        }
    }

    /// A new key, which ends with the session that asks for it; `None` if there is no randomness.
    pub(crate) fn key(&self, by: Option<&Signed>, now: SystemTime) -> Option<String> {
        let secret = secret()?;
        let mut inner = self.lock(now);
        if inner.keys.len() == KEYS_MAX {
            inner.keys.pop_front();
        }
        inner.keys.push_back(Key {
            secret: secret.clone(),
            until: now + KEY_LIFE,
            by: by.map(|session| Arc::clone(&session.id)),
        });
        Some(secret)
    }

    /// Whether this is a key that is still good. A key has 128 random bits, so that guesses need not be counted.
    pub fn is_key(&self, key: &str, now: SystemTime) -> bool {
        self.lock(now).find(key).is_some()
    }

    /// Changes a key for a session.
    pub fn sign_in(&self, key: &str, now: SystemTime) -> Result<SignedIn, Refused> {
        let secret = secret().ok_or(Refused::Random)?;
        let mut id = self::secret().ok_or(Refused::Random)?;
        id.truncate(ID_CHARS);
        let mut inner = self.lock(now);
        let at = inner.find(key);
        at.and_then(|at| inner.keys.remove(at))
            .ok_or(Refused::Key)?;
        if inner.sessions.len() == SESSIONS_MAX {
            inner.sessions.pop_front();
        }
        let until = now + SESSION_LIFE;
        let token = format!("{id}.{secret}");
        let id = Arc::<str>::from(id);
        inner.sessions.push_back(Session {
            id: Arc::clone(&id),
            secret,
            since: now,
            until,
            used: now,
            end: watch::Sender::new(()),
        });
        Ok(SignedIn { id, token, until })
    }

    /// The session with this token, if it is still good.
    pub(crate) fn session(&self, token: &str, now: SystemTime) -> Option<Signed> {
        let (id, secret) = token.split_once('.')?;
        let mut inner = self.lock(now);
        let mut sessions = inner.sessions.iter_mut();
        let session = sessions.find(|session| *session.id == *id)?;
        if !is_same(&session.secret, secret) {
            return None;
        }
        session.used = now;
        Some(Signed {
            id: Arc::clone(&session.id),
            left: session.until.duration_since(now).unwrap_or_default(),
            end: session.end.subscribe(),
        })
    }

    /// Proves to the page of a session that this is the gateway which opened it; `None` if there is no such session.
    pub fn prove(&self, id: &str, nonce: &str, now: SystemTime) -> Option<String> {
        let inner = self.lock(now);
        let session = inner.sessions.iter().find(|session| *session.id == *id)?;
        // Any key will do for HMAC.
        let mut mac = Hmac::<Sha256>::new_from_slice(session.secret.as_bytes()).ok()?;
        mac.update(PROOF.as_bytes());
        mac.update(nonce.as_bytes());
        Some(hex::encode(&mac.finalize().into_bytes()))
    }

    /// Every session.
    pub fn sessions(&self, now: SystemTime) -> Vec<rest::Session> {
        let inner = self.lock(now);
        let sessions = inner.sessions.iter().map(|session| rest::Session {
            id: session.id.to_string(),
            signed_in_at: time::shown(session.since),
            used_at: time::shown(session.used),
            expires_at: time::shown(session.until),
        });
        sessions.collect()
    }

    /// Ends the session of this ID, or all with all keys; gives the IDs of those that ended.
    pub fn sign_out(&self, id: Option<&str>, now: SystemTime) -> Vec<Arc<str>> {
        let mut inner = self.lock(now);
        if id.is_none() {
            inner.keys.clear();
        }
        let is_meant = |session: &Session| id.is_none_or(|id| *session.id == *id);
        let (ended, left): (VecDeque<_>, _) = std::mem::take(&mut inner.sessions)
            .into_iter()
            .partition(is_meant);
        inner.sessions = left;
        ended.into_iter().map(|session| session.id).collect()
    }

    /// What is good now.
    fn lock(&self, now: SystemTime) -> MutexGuard<'_, Inner> {
        let mut guard = self.inner.lock();
        let Inner { keys, sessions } = &mut *guard;
        sessions.retain(|session| session.until > now);
        let is_there = |id: &Arc<str>| sessions.iter().any(|session| session.id == *id);
        keys.retain(|key| key.until > now && key.by.as_ref().is_none_or(is_there));
        guard
    }
}

impl Inner {
    /// The place of a key. All of them are compared, each to its end: how long it takes says nothing.
    fn find(&self, key: &str) -> Option<usize> {
        let keys = self.keys.iter();
        let found: Vec<bool> = keys.map(|one| is_same(&one.secret, key)).collect();
        found.into_iter().position(|found| found)
    }
}

/// In the same time wherever they differ.
fn is_same(secret: &str, shown: &str) -> bool {
    bool::from(secret.as_bytes().ct_eq(shown.as_bytes()))
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Console")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);
    const SECOND: Duration = Duration::from_secs(1);

    fn rig() -> (Console, SystemTime) {
        (Console::new().unwrap(), SystemTime::now())
    }

    fn session(console: &Console, now: SystemTime) -> SignedIn {
        let key = console.key(None, now).unwrap();
        console.sign_in(&key, now).unwrap()
    }

    fn is_session(console: &Console, token: &str, now: SystemTime) -> bool {
        console.session(token, now).is_some()
    }

    #[test]
    fn name_is_new_in_each_run() {
        let [one, two] = [(); 2].map(|()| Console::new().unwrap());
        assert_ne!(one.name, two.name);
        let label = one.name.strip_suffix(".localhost").unwrap();
        assert!(label.len() == 32 && label.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(*one.host(7777), format!("{}:7777", one.name));
        assert_eq!(*one.host(80), one.name);
    }

    #[test]
    fn a_key_opens_once() {
        let (console, now) = rig();
        let key = console.key(None, now).unwrap();
        assert_eq!(key.len(), 32);
        let session = console.sign_in(&key, now).unwrap();
        assert!(is_session(&console, &session.token, now));
        let again = console.sign_in(&key, now).unwrap_err();
        assert_eq!(again, Refused::Key);
    }

    #[test]
    fn a_key_is_good_for_a_day_and_so_is_a_session() {
        let (console, now) = rig();
        let early = console.key(None, now).unwrap();
        let late = console.key(None, now).unwrap();
        let session = console
            .sign_in(&early, now + DAY.checked_sub(SECOND).unwrap())
            .unwrap();
        let refused = console.sign_in(&late, now + DAY).unwrap_err();
        assert_eq!(refused, Refused::Key);
        let last = session.until - 2 * SECOND;
        assert!(is_session(&console, &session.token, last));
        assert!(!is_session(&console, &session.token, session.until));
    }

    #[test]
    fn the_oldest_of_too_many_keys_is_forgotten() {
        let (console, now) = rig();
        let keys: Vec<_> = (0..=KEYS_MAX)
            .map(|_| console.key(None, now).unwrap())
            .collect();
        assert!(console.sign_in(&keys[0], now).is_err());
        for key in &keys[1..] {
            assert!(console.sign_in(key, now).is_ok());
        }
    }

    #[test]
    fn wrong_keys_do_not_lock_the_owner_out() {
        let (console, now) = rig();
        let key = console.key(None, now).unwrap();
        for _ in 0..1_000 {
            let refused = console.sign_in("wrong", now).unwrap_err();
            assert_eq!(refused, Refused::Key);
        }
        assert!(console.sign_in(&key, now).is_ok());
    }

    #[test]
    fn ended_session_is_good_no_more() {
        let (console, now) = rig();
        let (one, two, three) = (
            session(&console, now),
            session(&console, now),
            session(&console, now),
        );
        assert_eq!(console.sessions(now).len(), 3);
        assert_eq!(
            console.sign_out(Some(&two.id), now),
            std::slice::from_ref(&two.id)
        );
        assert!(console.sign_out(Some(&two.id), now).is_empty());
        assert!(!is_session(&console, &two.token, now));
        for left in [&one, &three] {
            assert!(is_session(&console, &left.token, now));
        }
        assert_eq!(console.sign_out(None, now).len(), 2);
        assert!(!is_session(&console, &one.token, now));
    }

    #[test]
    fn ended_session_takes_its_keys_along() {
        let (console, now) = rig();
        let thief = session(&console, now);
        let signed = console.session(&thief.token, now).unwrap();
        let theirs = console.key(Some(&signed), now).unwrap();
        let owners = console.key(None, now).unwrap();
        assert!(console.is_key(&theirs, now) && console.is_key(&owners, now));
        console.sign_out(Some(&thief.id), now);
        assert_eq!(console.sign_in(&theirs, now).unwrap_err(), Refused::Key);
        assert!(console.is_key(&owners, now));
        assert!(console.sign_out(None, now).is_empty());
        assert_eq!(console.sign_in(&owners, now).unwrap_err(), Refused::Key);
    }

    #[tokio::test(start_paused = true)]
    async fn end_of_session_is_seen() {
        let (console, now) = rig();
        let (one, two) = (session(&console, now), session(&console, now));
        let ended = |of: &SignedIn| console.session(&of.token, now).unwrap().ended();
        let (first, second) = (ended(&one), ended(&two));
        console.sign_out(Some(&one.id), now);
        let began = tokio::time::Instant::now();
        first.await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        second.await;
        assert_eq!(began.elapsed().as_secs(), SESSION_LIFE.as_secs());
    }

    #[test]
    fn sessions_are_bounded() {
        let (console, now) = rig();
        let all: Vec<_> = (0..=SESSIONS_MAX).map(|_| session(&console, now)).collect();
        assert_eq!(console.sessions(now).len(), SESSIONS_MAX);
        assert!(!is_session(&console, &all[0].token, now));
        assert!(is_session(&console, &all[1].token, now));
    }

    #[test]
    fn only_the_gateway_of_a_session_can_prove_it() {
        let (console, now) = rig();
        let one = session(&console, now);
        let proof = console.prove(&one.id, "nonce", now).unwrap();
        assert_eq!(proof.len(), 64);
        assert_ne!(console.prove(&one.id, "other", now).unwrap(), proof);
        let other = session(&console, now);
        assert_ne!(console.prove(&other.id, "nonce", now).unwrap(), proof);
        assert_eq!(Console::new().unwrap().prove(&one.id, "nonce", now), None);
    }

    #[test]
    fn a_session_is_nothing_that_anybody_else_can_make() {
        let (console, now) = rig();
        let one = session(&console, now);
        let (id, secret) = one.token.split_once('.').unwrap();
        assert!(Console::new().unwrap().session(&one.token, now).is_none());
        for wrong in [
            String::new(),
            id.to_owned(),
            format!("{id}."),
            format!("{id}.{}", &secret[1..]),
            format!("x.{secret}"),
            secret.to_owned(),
            "x".repeat(10_000),
        ] {
            assert!(!is_session(&console, &wrong, now), "{wrong}");
        }
    }
}
