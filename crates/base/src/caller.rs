//! Callers, and the revision and capabilities that they have declared.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
    mem,
    sync::{Arc, LazyLock},
};

use rustc_hash::FxBuildHasher;
use sha2::{Digest, Sha256};
use switchboard_approvals::{Holder, Session};
use switchboard_client::{Raw, Revision, model::LogLevel};
use switchboard_tokens::TokenId;
use switchboard_wire::{Era, meta, method};

use crate::{actor::PIPE, error::cut, project::Project, self_searching::searches_tools};

/// The authenticated party behind a request. It is never derived from what a client says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Principal {
    /// The user who runs the gateway: presented the gateway's own token, or came over the socket.
    Owner,
    /// A client with a token that the owner created.
    Token(TokenId),
    /// Any user of this machine, where the gateway requires no token.
    Anyone,
}

impl Principal {
    /// Returns `true` if both take from the same limits. All tokens share theirs, so that many tokens are not more
    /// than one.
    pub fn shares_limits_with(self, other: Self) -> bool {
        mem::discriminant(&self) == mem::discriminant(&other)
    }
}

/// A principal under a profile. Sessions, tasks and results of one realm cannot be used by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Realm {
    /// The authenticated party.
    pub principal: Principal,
    /// The profile that it is held to; `None` if it sees everything.
    pub profile: Option<ProfileId>,
}

/// Identifies a profile: a hash of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProfileId(u64);

impl ProfileId {
    /// The ID of the profile with this name, which is the same in every run.
    pub fn of(name: &str) -> Self {
        let digest = Sha256::digest(name);
        let first = digest.iter().take(8);
        Self(first.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

impl fmt::Display for ProfileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Realm {
    /// The owner without a profile, who sees everything.
    pub const OWNER: Self = Self {
        principal: Principal::Owner,
        profile: None,
    };
}

impl From<Principal> for Realm {
    fn from(principal: Principal) -> Self {
        Self {
            principal,
            profile: None,
        }
    }
}

/// Its name in records and in signed tokens, which is the same in every run.
impl fmt::Display for Realm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.principal {
            Principal::Owner => f.write_str("owner"),
            Principal::Token(id) => write!(f, "token-{id}"),
            Principal::Anyone => f.write_str("anyone"),
        }?;
        match self.profile {
            None => Ok(()),
            Some(profile) => write!(f, "@{profile}"),
        }
    }
}

/// The interface through which a caller reached the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A client of MCP, which states its name.
    Mcp,
    /// REST, where the gateway assigns it a display name.
    Rest(&'static str),
    /// The console, reading data that it is about to show: not counted as a call of a client.
    Page,
}

/// The caller of a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Distinguishes clients where they take turns.
    pub key: u64,
    /// Distinguishes clients where one has to be asked. A client of 2026-07-28 over HTTP may use any number
    /// of connections, and is identified by its description of itself.
    pub person: u64,
    /// The client whose share of the room for approval requests its calls use.
    pub holder: Holder,
    /// The name that the client gives itself, as rules see it.
    pub client: Arc<str>,
    /// The client searches tools itself, according to its name and version.
    pub searches_tools: bool,
    /// The interface through which it reached the gateway.
    pub origin: Origin,
    /// The door that it came in by, in records.
    pub door: &'static str,
    /// The party that the request belongs to, and the profile that it is held to.
    pub realm: Realm,
    /// The directory that the client works in.
    pub project: Project,
}

impl Caller {
    /// Creates a caller that is identified by the same number everywhere.
    pub fn new(key: u64, client: Arc<str>, realm: impl Into<Realm>) -> Self {
        let realm = realm.into();
        Self {
            key,
            person: key,
            holder: Holder {
                client: match realm.principal {
                    // All clients with one token have the share of one client.
                    Principal::Token(_) => FxBuildHasher.hash_one(realm.principal),
                    Principal::Owner | Principal::Anyone => key,
                },
                is_web: false,
                is_stranger: realm.principal == Principal::Anyone,
            },
            client,
            searches_tools: false,
            origin: Origin::Mcp,
            door: PIPE,
            realm,
            project: Project::default(),
        }
    }

    /// Adopts the description that the client gives of itself.
    pub fn introduce(&mut self, info: Option<&Raw>) {
        self.client = client_name(info);
        self.searches_tools = searches_tools(&self.client, info);
    }

    /// The directory that the client works in, if it is known.
    pub fn project(&self) -> Option<&Arc<str>> {
        self.project.path()
    }

    /// The display name of the client.
    pub fn shown(&self) -> Arc<str> {
        match self.origin {
            Origin::Mcp => Arc::clone(&self.client),
            Origin::Rest(name) => name.into(),
            Origin::Page => "console".into(),
        }
    }

    /// The session for which a decision about it may be remembered.
    pub fn session(&self) -> Session {
        // One connection may carry requests of several tokens.
        static TOKENS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let principal = self.realm.principal;
        Session {
            number: match principal {
                Principal::Owner | Principal::Anyone => self.person,
                Principal::Token(_) => TOKENS.hash_one((self.person, principal)),
            },
            is_owner: principal == Principal::Owner,
        }
    }

    /// Marks the client as connected over HTTP, through this door.
    #[must_use]
    pub const fn over_http(mut self, door: &'static str) -> Self {
        self.holder.is_web = true;
        self.door = door;
        self
    }
}

/// The client of a request, as a server may see it.
#[derive(Debug, Clone)]
pub enum Guest {
    /// It has described itself once, in the handshake.
    Legacy {
        /// Its description of itself.
        about: Arc<About>,
        /// Lowest level of the log messages that it wants, if it has set one.
        level: Option<LogLevel>,
    },
    /// Each of its requests describes it.
    Modern,
}

/// The description that a client of an older revision gave of itself in the handshake.
#[derive(Debug)]
pub struct About {
    /// The negotiated revision.
    pub revision: Revision,
    /// Its capabilities, in the form of 2026-07-28.
    pub capabilities: Raw,
    /// Its `clientInfo`.
    pub info: Option<Raw>,
}

/// The log messages of a request that its client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logs {
    /// No messages.
    None,
    /// All messages that the server sends.
    All,
    /// Messages of this level and above.
    From(LogLevel),
}

impl Guest {
    /// A client of an older revision that has not described itself.
    pub fn stranger() -> Self {
        static STRANGER: LazyLock<Arc<About>> = LazyLock::new(|| {
            Arc::new(About {
                revision: Revision::LATEST_LEGACY,
                capabilities: Raw::empty_object(),
                info: None,
            })
        });
        Self::Legacy {
            about: Arc::clone(&STRANGER),
            level: None,
        }
    }

    /// The revision that the client speaks.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Legacy { about, .. } => about.revision,
            Self::Modern => Revision::LATEST,
        }
    }

    /// The era of that revision.
    pub fn era(&self) -> Era {
        self.revision().era()
    }

    /// The client's capabilities for the server of this request.
    pub fn capabilities(&self, params: Option<&Raw>) -> Raw {
        match self {
            Self::Legacy { about, .. } => about.capabilities.clone(),
            Self::Modern => said(params, meta::CLIENT_CAPABILITIES)
                .filter(Raw::is_object)
                .unwrap_or_else(Raw::empty_object),
        }
    }

    /// The description that the client of this request gives of itself.
    pub fn info(&self, params: Option<&Raw>) -> Option<Raw> {
        match self {
            Self::Legacy { about, .. } => about.info.clone(),
            Self::Modern => said(params, meta::CLIENT_INFO),
        }
    }

    /// The log messages of this request that the client wants.
    pub fn logs(&self, params: Option<&Raw>) -> Logs {
        match self {
            Self::Legacy { level, .. } => level.map_or(Logs::All, Logs::From),
            Self::Modern => said(params, meta::LOG_LEVEL)
                .and_then(|level| read_level(&level))
                .map_or(Logs::None, Logs::From),
        }
    }
}

impl About {
    /// Size of the stored data, in bytes.
    pub fn bytes(&self) -> usize {
        let info = self.info.as_ref().map_or(0, |info| info.as_bytes().len());
        self.capabilities.as_bytes().len() + info
    }

    /// Reads the parameters of `initialize`.
    pub fn read(params: Option<&Raw>, revision: Revision) -> Self {
        let member = |name: &str| params.and_then(|params| params.member(name));
        let capabilities = member("capabilities").filter(Raw::is_object);
        Self {
            revision,
            // Detached, because it is stored long after the frame that it came in.
            capabilities: capabilities
                .map_or_else(Raw::empty_object, |said| modern(&said).detached()),
            info: member("clientInfo")
                .filter(Raw::is_object)
                .map(|info| info.detached()),
        }
    }
}

impl Logs {
    /// Tests if a message is wanted. A message without a known level is wanted if any is.
    pub fn wants(self, params: &Raw) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::From(least) => params
                .member("level")
                .and_then(|level| read_level(&level))
                .is_none_or(|level| level >= least),
        }
    }
}

/// The capabilities of an older client in the form of 2026-07-28, without the ones that this revision no
/// longer has.
fn modern(capabilities: &Raw) -> Raw {
    let capabilities = capabilities.without(&["tasks"]);
    match capabilities.member("roots").filter(Raw::is_object) {
        None => capabilities,
        Some(roots) => capabilities
            .with_member("roots", &roots.without(&["listChanged"]))
            .unwrap_or(capabilities),
    }
}

/// Parses a log level.
pub fn read_level(level: &Raw) -> Option<LogLevel> {
    level.read().ok()
}

/// A member of `_meta`, in which a request of 2026-07-28 describes itself.
pub fn said(params: Option<&Raw>, name: &str) -> Option<Raw> {
    params?.member(meta::META)?.member(name)
}

/// Tests if a client with these capabilities can answer this question of a server.
pub fn answers(capabilities: &Raw, question: &str, params: Option<&Raw>) -> bool {
    let has = |name: &str| capabilities.member(name).filter(Raw::is_object);
    match question {
        method::SAMPLING => has("sampling").is_some_and(|kinds| {
            let tools = |params: &Raw| {
                params.member("tools").is_some() || params.member("toolChoice").is_some()
            };
            !params.is_some_and(tools) || kinds.member("tools").is_some()
        }),
        method::ROOTS_LIST => has("roots").is_some(),
        method::ELICITATION => has("elicitation").is_some_and(|kinds| {
            let url = kinds.member("url").is_some();
            // A client that names no kind supports forms.
            if asks_for_url(params) {
                url
            } else {
                kinds.member("form").is_some() || !url
            }
        }),
        _ => false,
    }
}

/// The capabilities of a client if the user answers in its place the questions that it cannot answer; `None`
/// if they are the same.
pub fn with_person(capabilities: &Raw) -> Option<Raw> {
    let nothing = Raw::empty_object;
    let mut wider = None;
    let mut add = |name: &str, kinds: &[&str]| {
        let known = wider.as_ref().unwrap_or(capabilities).clone();
        let said = known.member(name).filter(Raw::is_object);
        if let Some(said) = &said
            && kinds.iter().all(|kind| said.member(kind).is_some())
        {
            return;
        }
        let said = said.unwrap_or_else(nothing);
        let all = kinds.iter().fold(said, |said, kind| {
            said.with_member(kind, &nothing()).unwrap_or(said)
        });
        // Capabilities with a duplicate member are left as they are.
        wider = known.with_member(name, &all).ok().or(wider.take());
    };
    add("sampling", &[]);
    add("elicitation", &["form", "url"]);
    wider
}

/// Tests if an elicitation asks the user to open an address, and not to fill in a form.
pub fn asks_for_url(params: Option<&Raw>) -> bool {
    let mode = params.and_then(|params| params.member("mode")?.to_text());
    mode.as_deref() == Some("url")
}

/// The revision to answer `initialize` with: the requested one, if it starts with that handshake.
pub fn negotiate(params: Option<&Raw>) -> Revision {
    params
        .and_then(|params| params.member("protocolVersion"))
        .and_then(|asked| Revision::parse(&asked.to_text()?))
        .filter(|revision| revision.era() == Era::Legacy)
        .unwrap_or(Revision::LATEST_LEGACY)
}

/// The name that a client gives itself.
pub fn client_name(info: Option<&Raw>) -> Arc<str> {
    let name = info
        .and_then(|info| info.member("name"))
        .and_then(|name| name.to_text());
    match name {
        Some(name) if !name.is_empty() => cut(&name).into(),
        _ => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &'static str) -> Raw {
        Raw::parse(json).unwrap()
    }

    #[test]
    fn clients_answer_only_the_kinds_they_declared() {
        let form = raw(r#"{"mode":"form"}"#);
        let url = raw(r#"{"mode":"url"}"#);
        let elicits = |capabilities: &'static str, params: &Raw| {
            answers(&raw(capabilities), method::ELICITATION, Some(params))
        };
        assert!(elicits(r#"{"elicitation":{}}"#, &form));
        assert!(!elicits(r#"{"elicitation":{}}"#, &url));
        assert!(elicits(r#"{"elicitation":{"url":{}}}"#, &url));
        assert!(!elicits(r#"{"elicitation":{"url":{}}}"#, &form));
        assert!(!elicits("{}", &form));
        assert!(answers(&raw(r#"{"roots":{}}"#), method::ROOTS_LIST, None));
        assert!(!answers(&raw("{}"), method::SAMPLING, None));
        let with_tools = raw(r#"{"tools":[]}"#);
        let samples =
            |capabilities| answers(&raw(capabilities), method::SAMPLING, Some(&with_tools));
        assert!(!samples(r#"{"sampling":{}}"#));
        assert!(samples(r#"{"sampling":{"tools":{}}}"#));
        assert!(!answers(&raw(r#"{"other/thing":{}}"#), "other/thing", None));
    }

    #[test]
    fn client_description_is_stored_without_its_frame() {
        let params = raw(r#"{"capabilities":{"sampling":{}},"clientInfo":{"name":"a"},"x":"y"}"#);
        let frame = params.as_bytes().as_ptr_range();
        let about = About::read(Some(&params), Revision::V2025_06_18);
        for kept in [about.capabilities, about.info.unwrap()] {
            assert!(!frame.contains(&kept.as_bytes().as_ptr()), "{kept}");
        }
    }

    #[test]
    fn older_capabilities_are_converted_to_the_newer_form() {
        let params = raw(
            r#"{"capabilities":{"roots":{"listChanged":true},"tasks":{},"sampling":{},"x":1}}"#,
        );
        let about = About::read(Some(&params), Revision::V2025_06_18);
        assert_eq!(
            about.capabilities.as_str(),
            r#"{"roots":{},"sampling":{},"x":1}"#
        );
    }

    #[test]
    fn tokens_on_one_connection_have_separate_sessions() {
        let token = |id: &str| {
            let id = serde_json::from_value(id.into()).unwrap();
            Caller::new(7, "a".into(), Principal::Token(id))
        };
        let [one, two] = ["0000000000000001", "0000000000000002"].map(token);
        assert_ne!(one.session(), two.session());
        assert_eq!(one.session(), one.session());
        assert_ne!(one.holder.client, two.holder.client);
        let owner = Caller::new(7, "a".into(), Realm::OWNER);
        assert_ne!(owner.session(), one.session());
    }
}
