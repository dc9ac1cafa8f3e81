//! The tokens of clients while the gateway runs: their check at the door, their last uses, and their ends.

mod end;

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc, LazyLock, OnceLock, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use subtle::ConstantTimeEq;
use switchboard_base::caller::Principal;
use switchboard_tokens::{
    Entry, FileError, New, Rejected, Rights, Token, TokenError, TokenId, Tokens, check, read, write,
};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use self::end::{End, Ended};
use crate::scope::Scopes;

/// The longest pause between two looks at the clock, which may be set, and between two records of uses.
const PAUSE: Duration = Duration::from_mins(1);

/// The clients that have to leave when their token ends.
pub trait Clients: fmt::Debug + Send + Sync {
    /// Ends all sessions and streams of a principal.
    fn expel(&self, principal: Principal);
}

/// The tokens, as requests need them.
#[derive(Debug)]
pub struct LiveTokens {
    path: PathBuf,
    scopes: Arc<Scopes>,
    by_id: ArcSwap<FxHashMap<TokenId, Arc<LiveToken>>>,
    /// Held while the file is replaced.
    changing: tokio::sync::Mutex<()>,
    changes: watch::Sender<()>,
    clients: OnceLock<Weak<dyn Clients>>,
}

#[derive(Debug)]
struct LiveToken {
    token: Token,
    /// The secret, once a client has presented it: hashing it for each request would be the most expensive part of
    /// the check. Only in memory.
    secret: OnceLock<Secret>,
    profile: Option<Arc<str>>,
    project: Option<Arc<str>>,
    /// `token` and its name.
    title: Arc<str>,
    /// The last use in this run.
    used: Mutex<Option<Use>>,
    /// The second of that use. Most requests are made in the same one.
    second: AtomicU64,
    /// The reason why the token has ended.
    end: End,
}

/// The secret of a token.
struct Secret(Box<[u8]>);

impl Secret {
    /// Compares in constant time, except for the length, which all secrets share.
    fn is(&self, shown: &str) -> bool {
        self.0.ct_eq(shown.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[derive(Debug)]
struct Use {
    at: SystemTime,
    client: Option<Arc<str>>,
    /// It is in the file.
    is_saved: bool,
}

/// A token that a client has presented, and that was valid then.
#[derive(Debug, Clone)]
pub struct Grant(Arc<LiveToken>);

impl Entry for Grant {
    fn token(&self) -> &Token {
        &self.0.token
    }

    fn has_secret(&self, secret: &str) -> bool {
        let known = &self.0.secret;
        if let Some(known) = known.get() {
            return known.is(secret);
        }
        let is_same = (&self.0.token).has_secret(secret);
        if is_same {
            known.get_or_init(|| Secret(secret.as_bytes().into()));
        }
        is_same
    }
}

impl AsRef<End> for Grant {
    fn as_ref(&self) -> &End {
        &self.0.end
    }
}

impl Grant {
    /// Its principal.
    pub fn principal(&self) -> Principal {
        Principal::Token(self.0.token.id())
    }

    /// The rights that it gives.
    pub fn rights(&self) -> Rights {
        self.0.token.rights
    }

    /// Its name in records.
    pub fn title(&self) -> &Arc<str> {
        &self.0.title
    }

    /// The name of the profile that it is held to.
    pub fn profile(&self) -> Option<&Arc<str>> {
        self.0.profile.as_ref()
    }

    /// The directory that its clients work in.
    pub fn project(&self) -> Option<&Arc<str>> {
        self.0.project.as_ref()
    }

    /// The reason to reject it, if it was revoked or rotated, or has expired.
    pub fn end(&self) -> Option<Rejected> {
        self.0.end.why()
    }

    /// Waits until the token is revoked, is rotated or expires, and returns the reason to reject it.
    pub async fn ended(self) -> Rejected {
        Ended::new(self).await
    }
}

/// The reason why the tokens were not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The request is wrong.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The gateway is stopping.
    #[error("the gateway is stopping")]
    Stopping,
}

impl LiveTokens {
    /// Reads the file. If that fails, no token is valid, and the file stays as it is.
    pub(crate) fn open(path: PathBuf, scopes: Arc<Scopes>) -> Self {
        let tokens = read(&path).unwrap_or_else(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::error!(%error, cause, "No token is accepted, except the gateway's own.");
            Tokens::default()
        });
        let now = SystemTime::now();
        scopes.set_tokens(tokens.iter().filter(|token| !token.is_expired(now)));
        let by_id = tokens.iter().map(LiveToken::new).collect();
        Self {
            path,
            scopes,
            by_id: ArcSwap::from_pointee(by_id),
            changing: tokio::sync::Mutex::default(),
            changes: watch::Sender::new(()),
            clients: OnceLock::new(),
        }
    }

    /// Sets the clients that have to leave when their token ends.
    pub fn set_clients(&self, clients: Weak<dyn Clients>) {
        // Set once, by the assembly.
        let _ = self.clients.set(clients);
    }

    /// Checks the token that a client presents, and records its use.
    pub fn check(&self, shown: &str, now: SystemTime) -> Result<Grant, Rejected> {
        let find = |id| self.by_id.load().get(&id).map(Arc::clone);
        let grant = check(shown, |id| find(id).map(Grant), now)?;
        grant.0.record(now, None);
        Ok(grant)
    }

    /// Records the client that uses a token.
    pub fn used_by(&self, principal: Principal, client: &Arc<str>) {
        if let Principal::Token(id) = principal
            && let Some(live) = self.by_id.load().get(&id)
        {
            live.record(SystemTime::now(), Some(client));
        }
    }

    /// The name of a principal in records.
    pub fn title(&self, principal: Principal) -> Arc<str> {
        static OWNER: LazyLock<Arc<str>> = LazyLock::new(|| "owner".into());
        static ANYONE: LazyLock<Arc<str>> = LazyLock::new(|| "anyone".into());
        match principal {
            Principal::Owner => Arc::clone(&OWNER),
            Principal::Anyone => Arc::clone(&ANYONE),
            Principal::Token(id) => match self.by_id.load().get(&id) {
                Some(live) => Arc::clone(&live.title),
                None => format!("token {id}").into(),
            },
        }
    }

    /// All tokens, oldest first, with their last uses.
    pub fn list(&self) -> Vec<Token> {
        let by_id = self.by_id.load();
        let mut all: Vec<_> = by_id.values().map(|live| live.current()).collect();
        all.sort_by(|one, other| {
            let key = |token: &Token| (token.created_at(), token.id());
            key(one).cmp(&key(other))
        });
        all
    }

    /// Creates a token, and returns it.
    pub async fn create(&self, new: New) -> Result<String, ChangeError> {
        let create = |tokens: &mut Tokens| tokens.create(new, SystemTime::now());
        self.change(create).await
    }

    /// Revokes a token. Its clients are disconnected.
    pub async fn revoke(&self, name: &str) -> Result<Token, ChangeError> {
        self.change(|tokens| tokens.revoke(name)).await
    }

    /// Gives a token a new secret, and returns it. Clients with the old one are disconnected.
    pub async fn rotate(&self, name: &str) -> Result<String, ChangeError> {
        let rotate = |tokens: &mut Tokens| tokens.rotate(name, SystemTime::now());
        self.change(rotate).await
    }

    /// Changes the tokens in the file, and then those in use. Must not be cancelled in between.
    async fn change<T>(
        &self,
        change: impl FnOnce(&mut Tokens) -> Result<T, TokenError>,
    ) -> Result<T, ChangeError> {
        let _changing = self.changing.lock().await;
        let mut tokens = self.stored().await?;
        let done = change(&mut tokens);
        if done.is_ok() {
            self.store(tokens.clone()).await?;
        }
        // The file counts, also if it was changed by hand.
        self.adopt(&tokens);
        Ok(done?)
    }

    /// Puts the tokens of the file to use.
    fn adopt(&self, tokens: &Tokens) {
        let before = self.by_id.load_full();
        let live = |token: &Token| {
            let known = before.get(&token.id());
            match known.filter(|known| known.token.is_same(token)) {
                Some(known) => (token.id(), Arc::clone(known)),
                None => LiveToken::new(token),
            }
        };
        let after: FxHashMap<_, _> = tokens.iter().map(live).collect();
        let is_over = |(id, known): &(&TokenId, &Arc<LiveToken>)| {
            !after.get(*id).is_some_and(|live| Arc::ptr_eq(live, known))
        };
        let over: Vec<_> = before
            .iter()
            .filter(is_over)
            .map(|(_, live)| live)
            .collect();
        // The old secrets are rejected before the clients that came in with them are disconnected.
        self.by_id.store(Arc::new(after));
        self.set_scopes(SystemTime::now());
        for live in over {
            self.end(live, Rejected::Unknown);
        }
        self.changes.send_replace(());
    }

    /// Gives each token that has not expired its scopes.
    fn set_scopes(&self, now: SystemTime) {
        let by_id = self.by_id.load();
        let tokens = by_id.values().map(|live| &live.token);
        self.scopes
            .set_tokens(tokens.filter(|token| !token.is_expired(now)));
    }

    /// Disconnects the clients of a token.
    fn end(&self, live: &LiveToken, why: Rejected) {
        live.end.set(Some(why));
        if let Some(clients) = self.clients.get().and_then(Weak::upgrade) {
            clients.expel(Principal::Token(live.token.id()));
        }
    }

    /// The tokens in the file, with their last uses.
    async fn stored(&self) -> Result<Tokens, ChangeError> {
        let path = self.path.clone();
        let reading = tokio::task::spawn_blocking(move || read(&path)).await;
        let mut tokens = reading.map_err(|_| ChangeError::Stopping)??;
        for live in self.by_id.load().values() {
            if let (Some(token), Some(last)) = (tokens.get_mut(live.token.id()), &*live.used.lock())
            {
                token.used(last.at, last.client.as_deref());
            }
        }
        Ok(tokens)
    }

    async fn store(&self, tokens: Tokens) -> Result<(), ChangeError> {
        let path = self.path.clone();
        let last = SystemTime::now();
        let writing = tokio::task::spawn_blocking(move || write(&path, &tokens)).await;
        writing.map_err(|_| ChangeError::Stopping)??;
        for live in self.by_id.load().values() {
            if let Some(used) = &mut *live.used.lock() {
                used.is_saved |= used.at <= last;
            }
        }
        Ok(())
    }

    /// Writes the last uses to the file, if there are any.
    pub(crate) async fn save(&self) {
        let _changing = self.changing.lock().await;
        let is_new = |live: &Arc<LiveToken>| {
            let used = live.used.lock();
            used.as_ref().is_some_and(|used| !used.is_saved)
        };
        if !self.by_id.load().values().any(is_new) {
            return;
        }
        let saved = match self.stored().await {
            Ok(tokens) => self.store(tokens).await,
            Err(error) => Err(error),
        };
        if let Err(error) = saved {
            tracing::warn!(%error, "Cannot save the last use of tokens.");
        }
    }

    /// Ends tokens that expire, and saves the last uses from time to time.
    pub async fn watch(tokens: Weak<Self>) {
        let mut saved = Instant::now();
        loop {
            let Some(live) = tokens.upgrade() else { return };
            let mut changes = live.changes.subscribe();
            let pause = live.expire(SystemTime::now()).await.min(PAUSE);
            if saved.elapsed() >= PAUSE {
                live.save().await;
                saved = Instant::now();
            }
            drop(live);
            // The next round ends if the sender was dropped.
            let _ = timeout(pause, changes.changed()).await;
        }
    }

    /// Ends the tokens that have expired. Returns the time until the next one does.
    async fn expire(&self, now: SystemTime) -> Duration {
        let _changing = self.changing.lock().await;
        let mut next = Duration::MAX;
        let mut is_changed = false;
        let mut over = Vec::new();
        let by_id = self.by_id.load_full();
        for live in by_id.values() {
            let Some(end) = live.token.expires_at() else {
                continue;
            };
            let has_ended = live.end.why().is_some();
            let is_expired = live.token.is_expired(now);
            is_changed |= is_expired != has_ended;
            match (is_expired, has_ended) {
                (true, false) => over.push(live),
                (true, true) => {}
                // The clock was set back.
                (false, true) => live.end.set(None),
                (false, false) => next = next.min(end.duration_since(now).unwrap_or_default()),
            }
        }
        if is_changed {
            self.set_scopes(now);
        }
        for live in over {
            self.end(live, Rejected::Expired);
        }
        next
    }
}

impl LiveToken {
    fn new(token: &Token) -> (TokenId, Arc<Self>) {
        let live = Self {
            secret: OnceLock::new(),
            profile: token.profile.as_deref().map(Arc::from),
            project: token.project.as_deref().map(Arc::from),
            title: format!("token {}", token.name).into(),
            token: token.clone(),
            used: Mutex::default(),
            second: AtomicU64::new(0),
            end: End::default(),
        };
        (token.id(), Arc::new(live))
    }

    fn record(&self, now: SystemTime, client: Option<&Arc<str>>) {
        // Requests follow each other, and their times are shown to the second.
        let second = now
            .duration_since(UNIX_EPOCH)
            .map_or(0, |now| now.as_secs());
        let is_known = self.second.swap(second, Relaxed) == second;
        if is_known && client.is_none() {
            return;
        }
        let mut used = self.used.lock();
        let has_client = |known: &Use| known.client.as_ref() == client;
        if is_known && used.as_ref().is_some_and(has_client) {
            return;
        }
        let known = used.take().and_then(|known| known.client);
        *used = Some(Use {
            at: now,
            client: client.map(Arc::clone).or(known),
            is_saved: false,
        });
    }

    /// The token with its last use.
    fn current(&self) -> Token {
        let mut token = self.token.clone();
        if let Some(last) = &*self.used.lock() {
            token.used(last.at, last.client.as_deref());
        }
        token
    }
}

#[cfg(test)]
mod tests {
    use switchboard_config::Config;

    use super::*;

    #[derive(Debug, Default)]
    struct Expelled(Mutex<Vec<Principal>>);

    impl Clients for Expelled {
        fn expel(&self, principal: Principal) {
            self.0.lock().push(principal);
        }
    }

    #[tokio::test]
    async fn expired_token_ends_its_clients() {
        let folder = tempfile::tempdir().unwrap();
        let scopes = Arc::new(Scopes::new(&Config::default()));
        let path = folder.path().join("tokens.json");
        let tokens = LiveTokens::open(path, Arc::clone(&scopes));
        let expelled = Arc::new(Expelled::default());
        let clients: Arc<dyn Clients> = Arc::clone(&expelled) as _;
        tokens.set_clients(Arc::downgrade(&clients));
        let new = New {
            lifetime: Some(Duration::from_hours(1)),
            ..New::named("t")
        };
        let token = tokens.create(new).await.unwrap();
        let now = SystemTime::now();
        let grant = tokens.check(&token, now).unwrap();
        let realm = grant.principal().into();
        let left = tokens.expire(now).await;
        assert!(left <= Duration::from_hours(1), "{left:?}");
        assert!(scopes.of(realm).is_ok() && expelled.0.lock().is_empty());
        let later = now + Duration::from_hours(2);
        for _ in 0..2 {
            tokens.expire(later).await;
            assert_eq!(*expelled.0.lock(), [grant.principal()]);
        }
        assert!(scopes.of(realm).is_err());
        assert_eq!(tokens.check(&token, later).unwrap_err(), Rejected::Expired);
        assert_eq!(grant.clone().ended().await, Rejected::Expired);
        // If the clock is set back, the token is valid again.
        tokens.expire(now).await;
        assert!(scopes.of(realm).is_ok());
        assert!(grant.end().is_none());
    }
}
