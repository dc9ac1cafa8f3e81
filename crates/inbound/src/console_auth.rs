//! Console authentication: one-time keys, and the sessions that they are exchanged for.
//!
//! A key is part of a link that the owner of the gateway receives. It is valid once, for a day, and
//! in this run of the gateway. A session is valid for a day and in this run, too, until it is
//! ended. Sessions are kept in memory only, so that a restart, which a new token requires, ends all
//! of them.

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

/// The most keys at a time. A new key replaces the oldest.
const KEYS_MAX: usize = 16;
/// The most sessions at a time. A new session replaces the oldest.
const SESSIONS_MAX: usize = 32;
/// Validity of a key.
const KEY_LIFE: Duration = Duration::from_hours(24);
/// Validity of a session.
const SESSION_LIFE: Duration = Duration::from_hours(24);
/// The length of a session ID.
const ID_CHARS: usize = 16;
/// Prefix of a nonce before it is signed, so that the signature is valid for no other purpose.
const PROOF: &str = "switchboard console\n";

/// The domain whose names every browser resolves to this machine.
const DOMAIN: &str = "localhost";
/// The port that browsers leave out.
const HTTP_PORT: u16 = 80;

/// The reason why there is no console.
pub fn no_console(taken: SocketAddr) -> String {
    format!("another program listens on {taken}, where a browser may look for the console")
}
/// Advice for the user.
pub const NO_CONSOLE_HINT: &str = "stop that program and restart the gateway, or choose another port with `listen` in the configuration or `serve --listen`";

/// The console of this run: its host name, the keys that were issued, and the sessions.
pub struct Console {
    /// The host name, new in each run. Browsers store data per host name, and no other program has
    /// used this one.
    name: String,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Oldest first.
    keys: VecDeque<Key>,
    /// Oldest first.
    sessions: VecDeque<Session>,
}

struct Key {
    secret: String,
    until: SystemTime,
    /// The session that requested the key. The key ends with it.
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
    /// The session ID, which is not a credential.
    pub id: Arc<str>,
    left: Duration,
    end: watch::Receiver<()>,
}

impl Signed {
    /// Waits until the session has ended.
    pub(crate) async fn ended(mut self) {
        // No value is ever sent: the sender is dropped with the session.
        let _ = timeout(self.left, self.end.changed()).await;
    }
}

/// A new session.
#[derive(Debug)]
pub struct SignedIn {
    /// The session ID, which is not a credential.
    pub id: Arc<str>,
    /// The ID and the secret, separated by a dot.
    pub token: String,
    /// Time when the session ends.
    pub until: SystemTime,
}

/// The reason why a sign-in failed.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// The key is unknown, used or expired.
    Key,
    /// The system provides no random numbers.
    Random,
}

impl Console {
    /// `None` if the system provides no random numbers.
    pub(crate) fn new() -> Option<Self> {
        Some(Self {
            name: format!("{}.{DOMAIN}", secret()?),
            inner: Mutex::default(),
        })
    }

    /// The host name with this port, as browsers send it.
    pub(crate) fn host(&self, port: u16) -> Box<str> {
        match port {
            HTTP_PORT => self.name.as_str().into(),
            port => format!("{}:{port}", self.name).into(),
        }
    }

    /// A new key, which ends with the session that requested it; `None` if the system provides no
    /// random numbers.
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

    /// Tests if a key is valid. A key has 128 random bits, so attempts need not be counted.
    pub fn is_key(&self, key: &str, now: SystemTime) -> bool {
        self.lock(now).find(key).is_some()
    }

    /// Exchanges a key for a session.
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

    /// The session with this token, if it is valid.
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

    /// Proves to the page of a session that this is the gateway that opened it; `None` if there is
    /// no such session.
    pub fn prove(&self, id: &str, nonce: &str, now: SystemTime) -> Option<String> {
        let inner = self.lock(now);
        let session = inner.sessions.iter().find(|session| *session.id == *id)?;
        // HMAC accepts keys of any length.
        let mut mac = Hmac::<Sha256>::new_from_slice(session.secret.as_bytes()).ok()?;
        mac.update(PROOF.as_bytes());
        mac.update(nonce.as_bytes());
        Some(hex::encode(&mac.finalize().into_bytes()))
    }

    /// All sessions.
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

    /// Ends the session with this ID, or all sessions and all keys. Returns the IDs of the ended
    /// sessions.
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

    /// Locks the keys and sessions, and removes the expired ones.
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
    /// The index of a key. Every key is compared to its end, so that the time reveals nothing.
    fn find(&self, key: &str) -> Option<usize> {
        let keys = self.keys.iter();
        let found: Vec<bool> = keys.map(|one| is_same(&one.secret, key)).collect();
        found.into_iter().position(|found| found)
    }
}

/// Compares in constant time.
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
    fn key_is_valid_once() {
        let (console, now) = rig();
        let key = console.key(None, now).unwrap();
        assert_eq!(key.len(), 32);
        let session = console.sign_in(&key, now).unwrap();
        assert!(is_session(&console, &session.token, now));
        let again = console.sign_in(&key, now).unwrap_err();
        assert_eq!(again, Refused::Key);
    }

    #[test]
    fn keys_and_sessions_expire_after_a_day() {
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
    fn oldest_of_too_many_keys_is_dropped() {
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
    fn ended_session_is_invalid() {
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
    fn keys_end_with_their_session() {
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
    async fn waiting_request_sees_session_end() {
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
    fn only_the_issuing_gateway_can_prove_session() {
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
    fn forged_session_tokens_are_rejected() {
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
