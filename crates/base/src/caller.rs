//! Who asks, and how much of the protocol it knows.

use std::sync::{Arc, LazyLock};

use switchboard_approvals::{Holder, Session};
use switchboard_client::{Raw, Revision, model::LogLevel};
use switchboard_wire::{Era, meta, method};

use crate::error::cut;

/// Whose request it is. What belongs to one principal does not exist for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Principal {
    /// The user whose gateway this is: has shown the token, or came over the socket.
    Owner,
    /// Somebody on this machine, where the gateway asks for no token.
    Anyone,
}

/// How a caller came to the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// As a client of MCP, which says its name.
    Mcp,
    /// Over REST, where the gateway gives it a name for people.
    Rest(&'static str),
    /// As the console, which reads what it is about to show: not a call of anyone.
    Page,
}

/// Who asks.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Tells clients apart where they take turns.
    pub key: u64,
    /// Tells them apart where one is to be asked. A client of 2026-07-28 over HTTP may use as many
    /// connections as it likes, and is known by what it says of itself.
    pub person: u64,
    /// The client whose share of the room for requests to a person its calls take.
    pub holder: Holder,
    /// What the client calls itself, as rules know it.
    pub client: Arc<str>,
    /// The way by which it came to the gateway.
    pub origin: Origin,
    /// Whose request it is.
    pub principal: Principal,
    /// The folder that the client works in, if it has said so.
    pub project: Option<Arc<str>>,
}

impl Caller {
    /// A client that is told apart in the same way everywhere.
    pub const fn new(key: u64, client: Arc<str>, principal: Principal) -> Self {
        Self {
            key,
            person: key,
            holder: Holder {
                client: key,
                is_web: false,
                is_stranger: matches!(principal, Principal::Anyone),
            },
            client,
            origin: Origin::Mcp,
            principal,
            project: None,
        }
    }

    /// The name of the client for people.
    pub fn shown(&self) -> Arc<str> {
        match self.origin {
            Origin::Mcp => Arc::clone(&self.client),
            Origin::Rest(name) => name.into(),
            Origin::Page => "console".into(),
        }
    }

    /// The session in which a decision may be remembered for it.
    pub fn session(&self) -> Session {
        Session {
            number: self.person,
            is_owner: self.principal == Principal::Owner,
        }
    }

    /// The same client over HTTP.
    #[must_use]
    pub const fn over_http(mut self) -> Self {
        self.holder.is_web = true;
        self
    }
}

/// The client of a request, as a server may know it.
#[derive(Debug, Clone)]
pub enum Guest {
    /// It has said once who it is and what it can do.
    Legacy {
        /// Its description of itself, from the handshake.
        about: Arc<About>,
        /// From which level on it wants log messages, if it has said so.
        level: Option<LogLevel>,
    },
    /// Each of its requests says it.
    Modern,
}

/// What a client of an older revision said when it opened.
#[derive(Debug)]
pub struct About {
    /// The revision that was agreed on.
    pub revision: Revision,
    /// As 2026-07-28 spells them.
    pub capabilities: Raw,
    /// Its `clientInfo`.
    pub info: Option<Raw>,
}

/// Which log messages of a request its client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logs {
    /// No messages.
    None,
    /// Whatever the server sends.
    All,
    /// Messages of this level and above.
    From(LogLevel),
}

impl Guest {
    /// A client of an older revision that has not said anything of itself.
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

    /// What the client can do for the server of this request.
    pub fn capabilities(&self, params: Option<&Raw>) -> Raw {
        match self {
            Self::Legacy { about, .. } => about.capabilities.clone(),
            Self::Modern => said(params, meta::CLIENT_CAPABILITIES)
                .filter(Raw::is_object)
                .unwrap_or_else(Raw::empty_object),
        }
    }

    /// What the client of this request says of itself.
    pub fn info(&self, params: Option<&Raw>) -> Option<Raw> {
        match self {
            Self::Legacy { about, .. } => about.info.clone(),
            Self::Modern => said(params, meta::CLIENT_INFO),
        }
    }

    /// Which log messages of this request the client wants.
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
    /// The bytes that it keeps.
    pub fn bytes(&self) -> usize {
        let info = self.info.as_ref().map_or(0, |info| info.as_bytes().len());
        self.capabilities.as_bytes().len() + info
    }

    /// What a client said with `initialize`.
    pub fn read(params: Option<&Raw>, revision: Revision) -> Self {
        let member = |name: &str| params.and_then(|params| params.member(name));
        let capabilities = member("capabilities").filter(Raw::is_object);
        Self {
            revision,
            // On its own: it is kept long after the frame that it came in.
            capabilities: capabilities
                .map_or_else(Raw::empty_object, |said| modern(&said).detached()),
            info: member("clientInfo")
                .filter(Raw::is_object)
                .map(|info| info.detached()),
        }
    }
}

impl Logs {
    /// Whether a message of this level is wanted. One of no known level is, if any is.
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

/// The capabilities of an older client as 2026-07-28 spells them: without what it has no more.
fn modern(capabilities: &Raw) -> Raw {
    let capabilities = capabilities.without(&["tasks"]);
    match capabilities.member("roots").filter(Raw::is_object) {
        None => capabilities,
        Some(roots) => capabilities
            .with_member("roots", &roots.without(&["listChanged"]))
            .unwrap_or(capabilities),
    }
}

/// A level of log messages.
pub fn read_level(level: &Raw) -> Option<LogLevel> {
    level.read().ok()
}

/// What a request of 2026-07-28 says of itself.
pub fn said(params: Option<&Raw>, name: &str) -> Option<Raw> {
    params?.member(meta::META)?.member(name)
}

/// Whether a client of these capabilities can answer this question of a server.
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
            // To say nothing of kinds is to mean forms.
            if asks_for_url(params) {
                url
            } else {
                kinds.member("form").is_some() || !url
            }
        }),
        _ => false,
    }
}

/// What a client can do if a person answers in its place what it does not answer itself; `None` if that
/// makes no difference.
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
        // One that has a member twice stays as it is.
        wider = known.with_member(name, &all).ok().or(wider.take());
    };
    add("sampling", &[]);
    add("elicitation", &["form", "url"]);
    wider
}

/// Whether a question to a person is one about an address, not a form.
pub fn asks_for_url(params: Option<&Raw>) -> bool {
    let mode = params.and_then(|params| params.member("mode")?.to_text());
    mode.as_deref() == Some("url")
}

/// The revision to answer `initialize` with: the one that was asked for, if it opens that way.
pub fn negotiate(params: Option<&Raw>) -> Revision {
    params
        .and_then(|params| params.member("protocolVersion"))
        .and_then(|asked| Revision::parse(&asked.to_text()?))
        .filter(|revision| revision.era() == Era::Legacy)
        .unwrap_or(Revision::LATEST_LEGACY)
}

/// What a client calls itself.
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
    fn a_client_is_asked_only_what_it_said_it_answers() {
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
    fn introduction_is_kept_without_its_frame() {
        let params = raw(r#"{"capabilities":{"sampling":{}},"clientInfo":{"name":"a"},"x":"y"}"#);
        let frame = params.as_bytes().as_ptr_range();
        let about = About::read(Some(&params), Revision::V2025_06_18);
        for kept in [about.capabilities, about.info.unwrap()] {
            assert!(!frame.contains(&kept.as_bytes().as_ptr()), "{kept}");
        }
    }

    #[test]
    fn what_an_older_client_can_do_is_said_in_newer_words() {
        let params = raw(
            r#"{"capabilities":{"roots":{"listChanged":true},"tasks":{},"sampling":{},"x":1}}"#,
        );
        let about = About::read(Some(&params), Revision::V2025_06_18);
        assert_eq!(
            about.capabilities.as_str(),
            r#"{"roots":{},"sampling":{},"x":1}"#
        );
    }
}
