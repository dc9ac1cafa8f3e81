//! A connection to a server that is ready.

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
    levels: Mutex<Levels>,
    /// Tracks which of its lists have been judged since it was connected.
    pub(crate) judgements: Arc<Judgements>,
}

/// The log levels of a connection.
#[derive(Debug, Default)]
struct Levels {
    /// The most verbose one that a client has requested.
    wanted: Option<LogLevel>,
    /// The last one that the server has accepted.
    accepted: Option<LogLevel>,
}

impl Live {
    pub(crate) fn new(client: Client, session: Arc<Session>, judgements: Arc<Judgements>) -> Self {
        let has = |what: &str| session.capabilities.member(what).is_some();
        Self {
            logs: has("logging"),
            tasks: session.revision.facts().core_tasks && has("tasks"),
            client,
            session,
            levels: Mutex::default(),
            judgements,
        }
    }

    /// The client that speaks to the server.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The negotiated revision.
    pub fn revision(&self) -> Revision {
        self.session.revision
    }

    /// The era of that revision.
    pub fn era(&self) -> Era {
        self.session.revision.era()
    }

    /// Tests if the server notifies about changes of the list of this kind.
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

    /// Tests if the server declared log messages.
    pub fn logs(&self) -> bool {
        self.logs
    }

    /// Tests if the server may send log messages: a 2026-07-28 server does if a request asks for them,
    /// regardless of its capabilities.
    pub fn may_log(&self) -> bool {
        self.logs || self.era() == Era::Modern
    }

    /// Tests if the server has tasks as defined by 2025-11-25.
    pub fn tasks(&self) -> bool {
        self.tasks
    }

    /// Makes a server of an older revision send log messages from this level on, at least. Messages
    /// that a client does not want are filtered later.
    pub async fn want_level(&self, level: LogLevel) {
        if self.era() == Era::Modern || !self.logs {
            return;
        }
        let level = {
            let mut levels = self.levels.lock();
            let wanted = levels.wanted.map_or(level, |wanted| wanted.min(level));
            levels.wanted = Some(wanted);
            // A level that another client has requested counts when the server has accepted it: until then, a
            // call could arrive at the server before the level does.
            if levels.accepted.is_some_and(|accepted| accepted <= wanted) {
                return;
            }
            wanted
        };
        match self.client.set_log_level(level).await {
            Ok(()) => self.levels.lock().accepted = Some(level),
            Err(error) => tracing::debug!(%error, "A server rejected the log level."),
        }
    }
}
