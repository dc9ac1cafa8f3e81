//! A connection to a server while it is ready, and what there is to know of it.

use std::sync::Arc;

use parking_lot::Mutex;
use switchboard_catalog::Kind;
use switchboard_client::{Client, Era, Revision, Session, model::LogLevel};

use crate::judgement::Judgements;

/// A connection that is ready.
#[derive(Debug)]
pub struct Live {
    client: Client,
    session: Arc<Session>,
    logs: bool,
    tasks: bool,
    /// From which level on it sends messages, if it was told.
    level: Mutex<Option<LogLevel>>,
    /// Which of its lists have been judged since it was connected.
    pub(crate) judgements: Arc<Judgements>,
}

impl Live {
    pub(crate) fn new(client: Client, session: Arc<Session>, judgements: Arc<Judgements>) -> Self {
        let has = |what: &str| session.capabilities.member(what).is_some();
        Self {
            logs: has("logging"),
            tasks: session.revision.facts().core_tasks && has("tasks"),
            client,
            session,
            level: Mutex::default(),
            judgements,
        }
    }

    /// The client that speaks to the server.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The revision that is spoken.
    pub fn revision(&self) -> Revision {
        self.session.revision
    }

    /// The era of that revision.
    pub fn era(&self) -> Era {
        self.session.revision.era()
    }

    /// Whether it tells when the list of this kind changes.
    pub(crate) fn tells_changes(&self, kind: Kind) -> bool {
        let what = match kind {
            Kind::Tool => "tools",
            Kind::Prompt => "prompts",
            Kind::Resource | Kind::Template => "resources",
        };
        let said = self.session.capabilities.member(what);
        said.and_then(|said| said.member("listChanged"))
            .is_some_and(|tells| tells.as_str() == "true")
    }

    /// Whether it sends log messages.
    pub fn logs(&self) -> bool {
        self.logs
    }

    /// Whether it may send log messages: one of 2026-07-28 does if a request asks for them, whatever it
    /// says of itself.
    pub fn may_log(&self) -> bool {
        self.logs || self.era() == Era::Modern
    }

    /// Whether it has tasks in the way of 2025-11-25.
    pub fn tasks(&self) -> bool {
        self.tasks
    }

    /// Has a server of an older revision send messages from this level on, at least. What is more than
    /// a client wants is kept from it here.
    pub async fn want_level(&self, level: LogLevel) {
        let known = |wanted: &Mutex<Option<LogLevel>>| {
            let mut wanted = wanted.lock();
            let known = wanted.is_some_and(|wanted| wanted <= level);
            if !known {
                *wanted = Some(level);
            }
            known
        };
        if self.era() == Era::Modern || !self.logs || known(&self.level) {
            return;
        }
        if let Err(error) = self.client.set_log_level(level).await {
            tracing::debug!(%error, "A server does not take a log level.");
        }
    }
}
