//! Scoped tokens: named credentials for clients and scripts, each with its rights and its scope.
//!
//! A token is `swb_ID_SECRET`. The ID finds its entry. Of the secret, only the hash is stored: the token itself
//! is returned once, when it is created or rotated.
//!
//! ```
//! use std::time::SystemTime;
//! use switchboard_tokens::{New, Right, Tokens, check};
//!
//! let now = SystemTime::now();
//! let mut tokens = Tokens::default();
//! let token = tokens.create(New::named("ci"), now)?;
//! let entry = check(&token, |id| tokens.get(id), now)?;
//! assert!(entry.rights.has(Right::Call) && !entry.rights.has(Right::Approve));
//! tokens.revoke("ci")?;
//! assert!(check(&token, |id| tokens.get(id), now).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod file;
mod right;

use std::{
    collections::HashSet,
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use switchboard_text::{hex, nearest};

pub use self::{
    error::{Rejected, TokenError},
    file::{FileError, read, write},
    right::{Right, Rights},
};

/// Beginning of every token.
pub const PREFIX: &str = "swb_";

/// The most tokens.
const TOKENS_MAX: usize = 1_000;
/// The longest name, in bytes.
const NAME_BYTES: usize = 64;
/// The longest path of a directory, in bytes.
const PROJECT_BYTES: usize = 4096;
/// The most servers of one token.
const SERVERS_MAX: usize = 100;

/// Identifies a token. It is part of the token, and not secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(u64);

/// Sixteen hexadecimal digits.
impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for TokenId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TokenId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = hex::decode(&text).ok_or_else(|| D::Error::custom("not an ID of a token"))?;
        Ok(Self(u64::from_be_bytes(bytes)))
    }
}

/// One token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// The name that its owner gave it.
    pub name: String,
    id: TokenId,
    #[serde(with = "digest")]
    hash: Hash,
    /// The things that it permits.
    pub rights: Rights,
    /// The profile that it is held to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The servers that it is held to; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// The directory that its clients work in: an absolute path without symbolic links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    created_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    used_at: Option<u64>,
    /// The name that its last client gave itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// SHA-256 of a secret. The secret has 128 random bits, so a slow hash would add nothing.
type Hash = [u8; 32];

impl Token {
    /// Its ID.
    pub const fn id(&self) -> TokenId {
        self.id
    }

    /// The time of its creation, or of its last rotation.
    pub fn created_at(&self) -> SystemTime {
        time(self.created_at)
    }

    /// The time from which on it is rejected.
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.expires_at.map(time)
    }

    /// The time of its last use, as far as it is known.
    pub fn used_at(&self) -> Option<SystemTime> {
        self.used_at.map(time)
    }

    /// Returns `true` if it has expired.
    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.expires_at.is_some_and(|end| end <= millis(now))
    }

    /// Records a use.
    pub fn used(&mut self, now: SystemTime, client: Option<&str>) {
        self.used_at = Some(millis(now));
        if let Some(client) = client {
            self.client = Some(client.to_owned());
        }
    }

    /// Returns `true` if the other entry is the same, except for its last use.
    pub fn is_same(&self, other: &Self) -> bool {
        let unused = |token: &Self| Self {
            used_at: None,
            client: None,
            ..token.clone()
        };
        unused(self) == unused(other)
    }
}

/// A token to create.
#[derive(Debug, Clone)]
pub struct New {
    /// Its name.
    pub name: String,
    /// The things that it permits.
    pub rights: Rights,
    /// The profile that it is held to.
    pub profile: Option<String>,
    /// The servers that it is held to; all if empty.
    pub servers: Vec<String>,
    /// The directory that its clients work in: an absolute path without symbolic links.
    pub project: Option<String>,
    /// Time after which it is rejected.
    pub lifetime: Option<Duration>,
}

impl New {
    /// A token with the right to call, without limits.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            rights: Rights::from_iter([Right::Call]),
            profile: None,
            servers: Vec::new(),
            project: None,
            lifetime: None,
        }
    }

    /// Checks that its profile and its servers exist.
    pub fn check_scope<'a>(
        &self,
        profiles: impl Iterator<Item = &'a str>,
        servers: impl Iterator<Item = &'a str>,
    ) -> Result<(), TokenError> {
        let (profiles, servers): (Vec<_>, Vec<_>) = (profiles.collect(), servers.collect());
        let near =
            |name: &str, known: &[&str]| nearest(name, known.iter().copied()).map(str::to_owned);
        let is_unknown = |name: &&String| !servers.contains(&name.as_str());
        if let Some(name) = &self.profile
            && !profiles.contains(&name.as_str())
        {
            let near = near(name, &profiles);
            return Err(TokenError::NoProfile(name.clone(), near));
        }
        match self.servers.iter().find(is_unknown) {
            None => Ok(()),
            Some(name) => Err(TokenError::NoServer(name.clone(), near(name, &servers))),
        }
    }
}

/// All tokens, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    tokens: Vec<Token>,
}

impl Tokens {
    /// All tokens, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Token> {
        self.tokens.iter()
    }

    /// The token with this ID.
    pub fn get(&self, id: TokenId) -> Option<&Token> {
        self.tokens.iter().find(|token| token.id == id)
    }

    /// The token with this ID, to record its use.
    pub fn get_mut(&mut self, id: TokenId) -> Option<&mut Token> {
        self.tokens.iter_mut().find(|token| token.id == id)
    }

    /// Creates a token, and returns it.
    pub fn create(&mut self, mut new: New, now: SystemTime) -> Result<String, TokenError> {
        check_name(&new.name)?;
        new.servers.sort_unstable();
        new.servers.dedup();
        if self.find(&new.name).is_ok() {
            return Err(TokenError::Taken(new.name));
        }
        if self.tokens.len() >= TOKENS_MAX {
            return Err(TokenError::TooMany(TOKENS_MAX));
        }
        if new.servers.len() > SERVERS_MAX {
            return Err(TokenError::TooManyServers(SERVERS_MAX));
        }
        check_rights(new.rights, new.profile.as_ref(), &new.servers)?;
        check_project(new.project.as_deref())?;
        let expires_at = new.lifetime.map(|life| end(now, life)).transpose()?;
        let id = TokenId(u64::from_be_bytes(random()?));
        let (token, hash) = issue(id)?;
        self.tokens.push(Token {
            name: new.name,
            id,
            hash,
            rights: new.rights,
            profile: new.profile,
            servers: new.servers,
            project: new.project,
            created_at: millis(now),
            expires_at,
            used_at: None,
            client: None,
        });
        Ok(token)
    }

    /// Removes a token.
    pub fn revoke(&mut self, name: &str) -> Result<Token, TokenError> {
        let at = self.find(name)?;
        Ok(self.tokens.remove(at))
    }

    /// Gives a token a new secret, and returns it. The old one is rejected from now on. A token that expires is
    /// valid for as long as it was when it was created.
    pub fn rotate(&mut self, name: &str, now: SystemTime) -> Result<String, TokenError> {
        let at = self.find(name)?;
        let token = &mut self.tokens[at];
        let lifetime = token
            .expires_at
            .map(|end| Duration::from_millis(end.saturating_sub(token.created_at)));
        let expires_at = lifetime.map(|life| end(now, life)).transpose()?;
        let (shown, hash) = issue(token.id)?;
        token.hash = hash;
        token.created_at = millis(now);
        token.expires_at = expires_at;
        Ok(shown)
    }

    /// Checks entries that were not created here.
    pub(crate) fn validate(&self) -> Result<(), TokenError> {
        let (mut names, mut ids) = (HashSet::new(), HashSet::new());
        for token in &self.tokens {
            check_name(&token.name)?;
            check_rights(token.rights, token.profile.as_ref(), &token.servers)?;
            check_project(token.project.as_deref())?;
            if !names.insert(&token.name) || !ids.insert(token.id) {
                return Err(TokenError::Taken(token.name.clone()));
            }
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Result<usize, TokenError> {
        let at = self.tokens.iter().position(|token| token.name == name);
        at.ok_or_else(|| TokenError::Missing(name.to_owned()))
    }
}

/// Checks the token that a client presents. `find` looks up the entry with its ID.
pub fn check<T: Entry>(
    shown: &str,
    find: impl FnOnce(TokenId) -> Option<T>,
    now: SystemTime,
) -> Result<T, Rejected> {
    let (id, secret) = parse(shown).ok_or(Rejected::Unknown)?;
    let found = find(id).ok_or(Rejected::Unknown)?;
    if !found.has_secret(secret) {
        return Err(Rejected::Unknown);
    }
    if found.token().is_expired(now) {
        return Err(Rejected::Expired);
    }
    Ok(found)
}

/// An entry against which a token can be checked.
pub trait Entry {
    /// The token without its secret.
    fn token(&self) -> &Token;

    /// Returns `true` if this is its secret. Takes the same time for every secret of the same length.
    fn has_secret(&self, secret: &str) -> bool {
        hash(secret).ct_eq(&self.token().hash).into()
    }
}

impl Entry for &Token {
    fn token(&self) -> &Token {
        self
    }
}

/// The ID and the secret of a token; `None` for any other text.
fn parse(shown: &str) -> Option<(TokenId, &str)> {
    let (id, secret) = shown.strip_prefix(PREFIX)?.split_once('_')?;
    Some((TokenId(u64::from_be_bytes(hex::decode(id)?)), secret))
}

/// A new secret: the token, and the hash of the secret.
fn issue(id: TokenId) -> Result<(String, Hash), TokenError> {
    let secret = hex::encode(&random::<16>()?);
    Ok((format!("{PREFIX}{id}_{secret}"), hash(&secret)))
}

fn hash(secret: &str) -> Hash {
    Sha256::digest(secret).into()
}

fn random<const N: usize>() -> Result<[u8; N], TokenError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| TokenError::Random)?;
    Ok(bytes)
}

/// Checks a name: it is part of addresses and of commands.
fn check_name(name: &str) -> Result<(), TokenError> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let begins = |byte: u8| byte.is_ascii_alphanumeric();
    let is_name = name.len() <= NAME_BYTES
        && name.bytes().next().is_some_and(begins)
        && name.bytes().all(is_fit)
        && !name.starts_with(PREFIX);
    is_name.then_some(()).ok_or(TokenError::Name)
}

/// Checks that there is a right, and that the right to administer is not limited.
fn check_rights(
    rights: Rights,
    profile: Option<&String>,
    servers: &[String],
) -> Result<(), TokenError> {
    if rights.is_empty() {
        return Err(TokenError::NoRight);
    }
    if rights.has(Right::Admin) && (profile.is_some() || !servers.is_empty()) {
        return Err(TokenError::LimitedAdmin);
    }
    Ok(())
}

/// Checks the form of a directory.
fn check_project(project: Option<&str>) -> Result<(), TokenError> {
    let is_path = |path: &str| path.starts_with('/') && path.len() <= PROJECT_BYTES;
    match project.filter(|path| !is_path(path)) {
        None => Ok(()),
        Some(_) => Err(TokenError::Project),
    }
}

/// The end of a lifetime.
fn end(now: SystemTime, lifetime: Duration) -> Result<u64, TokenError> {
    let life = u64::try_from(lifetime.as_millis()).ok();
    let life = life.filter(|life| (1..=LIFETIME_MAX).contains(life));
    Ok(millis(now) + life.ok_or(TokenError::Lifetime)?)
}

/// A hundred years, in milliseconds.
const LIFETIME_MAX: u64 = 36_525 * 24 * 60 * 60 * 1_000;

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX / 2)
}

fn time(millis: u64) -> SystemTime {
    UNIX_EPOCH
        .checked_add(Duration::from_millis(millis))
        .unwrap_or(UNIX_EPOCH)
}

/// A hash in the file.
mod digest {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use switchboard_text::hex;

    use super::Hash;

    pub(super) fn serialize<S: Serializer>(hash: &Hash, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex::encode(hash))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Hash, D::Error> {
        let text = String::deserialize(from)?;
        hex::decode(&text).ok_or_else(|| D::Error::custom("not a SHA-256 hash"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    impl Tokens {
        fn check(&self, shown: &str, now: SystemTime) -> Result<&Token, Rejected> {
            check(shown, |id| self.get(id), now)
        }
    }

    fn now() -> SystemTime {
        time(1_700_000_000_000)
    }

    #[test]
    fn only_the_whole_token_is_accepted() {
        let mut tokens = Tokens::default();
        let one = tokens.create(New::named("one"), now()).unwrap();
        let two = tokens.create(New::named("two"), now()).unwrap();
        assert_eq!(tokens.check(&one, now()).unwrap().name, "one");
        let (id, _) = one.rsplit_once('_').unwrap();
        let (_, secret) = two.rsplit_once('_').unwrap();
        let mixed = format!("{id}_{secret}");
        let shorter = &one[..one.len() - 1];
        let longer = format!("{one}0");
        let bare = one.strip_prefix(PREFIX).unwrap();
        for wrong in [&*mixed, shorter, &longer, bare, id, "swb_", "swb__", ""] {
            let rejected = tokens.check(wrong, now()).unwrap_err();
            assert_eq!(rejected, Rejected::Unknown, "{wrong}");
        }
    }

    #[test]
    fn token_is_not_in_its_entry() {
        let mut tokens = Tokens::default();
        let token = tokens.create(New::named("ci"), now()).unwrap();
        let (_, secret) = token.rsplit_once('_').unwrap();
        let stored = serde_json::to_string(&tokens).unwrap();
        assert!(!stored.contains(secret) && !format!("{tokens:?}").contains(secret));
        let read: Tokens = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, tokens);
        assert!(read.check(&token, now()).is_ok());
    }

    #[test]
    fn expired_token_is_rejected_as_such() {
        let mut tokens = Tokens::default();
        let new = New {
            lifetime: Some(DAY),
            ..New::named("ci")
        };
        let token = tokens.create(new, now()).unwrap();
        let last = now() + DAY - Duration::from_millis(1);
        assert!(tokens.check(&token, last).is_ok());
        let rejected = tokens.check(&token, now() + DAY).unwrap_err();
        assert_eq!(rejected, Rejected::Expired);
        // The secret is checked first.
        let wrong = format!("{token}x");
        let rejected = tokens.check(&wrong, now() + DAY).unwrap_err();
        assert_eq!(rejected, Rejected::Unknown);
    }

    #[test]
    fn rotated_token_keeps_its_entry() {
        let mut tokens = Tokens::default();
        let new = New {
            lifetime: Some(DAY),
            ..New::named("ci")
        };
        let old = tokens.create(new, now()).unwrap();
        let later = now() + 3 * DAY;
        let new = tokens.rotate("ci", later).unwrap();
        assert_eq!(tokens.check(&old, now()).unwrap_err(), Rejected::Unknown);
        let entry = tokens.check(&new, later).unwrap();
        assert_eq!(entry.expires_at(), Some(later + DAY));
        assert_eq!(parse(&old).unwrap().0, entry.id());
    }

    #[test]
    fn revoked_token_is_gone() {
        let mut tokens = Tokens::default();
        let token = tokens.create(New::named("ci"), now()).unwrap();
        assert_eq!(tokens.revoke("ci").unwrap().name, "ci");
        assert_eq!(tokens.check(&token, now()).unwrap_err(), Rejected::Unknown);
        for error in [
            tokens.revoke("ci").unwrap_err(),
            tokens.rotate("ci", now()).unwrap_err(),
        ] {
            assert_eq!(error, TokenError::Missing("ci".into()));
        }
    }

    #[test]
    fn unfit_tokens_are_not_created() {
        let mut tokens = Tokens::default();
        let named = New::named;
        tokens.create(named("ci"), now()).unwrap();
        let long = "x".repeat(NAME_BYTES + 1);
        for name in ["", "-x", ".", "a b", "a/b", "ä", "swb_1", &*long] {
            let error = tokens.create(named(name), now()).unwrap_err();
            assert_eq!(error, TokenError::Name, "{name}");
        }
        let admin = Rights::from_iter([Right::Call, Right::Admin]);
        let wrong = [
            (named("ci"), TokenError::Taken("ci".into())),
            (
                New {
                    rights: Rights::default(),
                    ..named("a")
                },
                TokenError::NoRight,
            ),
            (
                New {
                    rights: admin,
                    servers: vec!["files".into()],
                    ..named("a")
                },
                TokenError::LimitedAdmin,
            ),
            (
                New {
                    rights: admin,
                    profile: Some("work".into()),
                    ..named("a")
                },
                TokenError::LimitedAdmin,
            ),
            (
                New {
                    lifetime: Some(Duration::ZERO),
                    ..named("a")
                },
                TokenError::Lifetime,
            ),
            (
                New {
                    lifetime: Some(Duration::MAX),
                    ..named("a")
                },
                TokenError::Lifetime,
            ),
        ];
        for (new, error) in wrong {
            assert_eq!(tokens.create(new, now()).unwrap_err(), error);
        }
        assert_eq!(tokens.iter().count(), 1);
    }

    #[test]
    fn scope_has_to_exist() {
        let (profiles, servers) = (["work"].into_iter(), ["files", "github"].into_iter());
        let check = |profile: Option<&str>, names: &[&str]| {
            let new = New {
                profile: profile.map(str::to_owned),
                servers: names.iter().map(ToString::to_string).collect(),
                ..New::named("a")
            };
            new.check_scope(profiles.clone(), servers.clone())
        };
        assert_eq!(check(None, &[]), Ok(()));
        assert_eq!(check(Some("work"), &["github", "files"]), Ok(()));
        let meant = Some("work".to_owned());
        let unknown = TokenError::NoProfile("wrk".into(), meant);
        assert_eq!(check(Some("wrk"), &["files"]), Err(unknown));
        let unknown = TokenError::NoServer("mail".into(), None);
        assert_eq!(check(None, &["files", "mail"]), Err(unknown));
    }

    #[test]
    fn number_of_tokens_is_bounded() {
        let mut tokens = Tokens::default();
        for number in 0..TOKENS_MAX {
            let name = format!("t{number}");
            tokens.create(New::named(&name), now()).unwrap();
        }
        let error = tokens.create(New::named("more"), now()).unwrap_err();
        assert_eq!(error, TokenError::TooMany(TOKENS_MAX));
    }

    proptest! {
        #[test]
        fn other_texts_are_rejected(shown in "(swb_)?[0-9a-f_]{0,60}|\\PC*") {
            let mut tokens = Tokens::default();
            tokens.create(New::named("ci"), now()).unwrap();
            prop_assert!(tokens.check(&shown, now()).is_err());
        }
    }
}
