//! Cuts results that are too long for an agent, and serves the rest on request.

use std::{
    path::PathBuf,
    sync::{Arc, LazyLock, OnceLock},
    time::SystemTime,
};

use serde::Deserialize;
use switchboard_base::{
    caller::{Principal, Realm},
    error::Error,
    health::Reason,
    tasks,
    view::View,
};
use switchboard_client::{Raw, throttle::Limited};
use switchboard_config::Config;
use switchboard_outbound::builtin;
use switchboard_results::{Budget, Fit, Limits, Reader, ResultId, Store, Structured, fit};
use switchboard_wire::{RawError, with_hint};

use super::Dispatch;
use crate::{core::Core, tool_result, translate};

/// The full text of results that were cut. Clients without a token have a store of their own, so
/// that they can evict only their own results.
#[derive(Debug)]
pub struct Results {
    owner: LazyStore,
    tokens: LazyStore,
    strangers: LazyStore,
}

/// A store that is opened when the first result is cut.
#[derive(Debug)]
struct LazyStore {
    folder: PathBuf,
    store: OnceLock<Store>,
    limits: Limits,
}

/// The subfolder for the results of clients with tokens that the owner created.
const TOKENS: &str = "tokens";
/// The subfolder for the results of clients without a token.
const STRANGERS: &str = "strangers";

/// Longer results are processed on a blocking thread, so that other tasks do not wait.
const QUICK_BYTES: usize = 32 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    id: String,
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    limit: Option<usize>,
}

impl Results {
    pub(crate) fn new(folder: PathBuf) -> Self {
        let all = Limits::default();
        let half = Limits {
            memory_bytes: all.memory_bytes / 2,
            disk_bytes: all.disk_bytes / 2,
            ..all
        };
        Self {
            tokens: LazyStore::new(folder.join(TOKENS), half),
            strangers: LazyStore::new(folder.join(STRANGERS), half),
            owner: LazyStore::new(folder, all),
        }
    }

    fn of(&self, principal: Principal) -> &LazyStore {
        match principal {
            Principal::Owner => &self.owner,
            Principal::Token(_) => &self.tokens,
            Principal::Anyone => &self.strangers,
        }
    }

    /// Removes expired results, also those of an earlier process. Deletes files.
    pub fn sweep(&self, config: &Config) {
        for store in [&self.owner, &self.tokens, &self.strangers] {
            store.sweep(config);
        }
    }
}

impl LazyStore {
    fn new(folder: PathBuf, limits: Limits) -> Self {
        Self {
            folder,
            store: OnceLock::new(),
            limits,
        }
    }

    /// The store. Reads files on first use.
    fn store(&self, config: &Config) -> &Store {
        self.store.get_or_init(|| {
            let limits = Limits {
                ttl: config.results.keep,
                ..self.limits
            };
            Store::open(&self.folder, limits, SystemTime::now())
        })
    }

    fn sweep(&self, config: &Config) {
        let holds_some =
            std::fs::read_dir(&self.folder).is_ok_and(|mut files| files.next().is_some());
        if holds_some {
            self.store(config).sweep(SystemTime::now());
        }
    }
}

impl Dispatch<'_> {
    /// Prepares a tool's result for this view: the names of tasks and addresses lead back to the
    /// server, the content fits the client's revision, and the length fits an agent. A task that
    /// programs would read in different ways is an error.
    pub(super) async fn deliver(
        &self,
        server: &str,
        result: Raw,
        own_bytes: Option<usize>,
        structured: Structured,
    ) -> Result<Raw, Error> {
        if !self.is_task(server, &result)? {
            return Ok(self.shown(server, result, own_bytes, structured).await);
        }
        if let Some(upstream) = self.core.upstream(server) {
            upstream.begun.add(self.caller.realm, &result);
        }
        let task = self.expose_tasks(server, result);
        Box::pin(self.deliver_task(server, task)).await
    }

    /// Prepares the state of a task for this view, with its result if it has one.
    pub(super) async fn deliver_task(&self, server: &str, task: Raw) -> Result<Raw, Error> {
        let unclear = |error: RawError| tasks::unclear(server, &error);
        let inner = task.distinct_member(&["result", "error"]);
        let inner = inner.map_err(unclear)?;
        let mut task = tasks::without_opening(task);
        if let Some(inner) = inner.filter(Raw::is_object) {
            if self.is_task(server, &inner)? {
                return Err(Error::Broken {
                    server: server.into(),
                    reason: Reason::plain("the result of its task is a task"),
                });
            }
            let inner = self.shown(server, inner, None, Structured::Keep).await;
            task = task.with_member("result", &inner).map_err(unclear)?;
        }
        Ok(self.shown(server, task, None, Structured::Keep).await)
    }

    /// Tests if the result of a call is a task.
    fn is_task(&self, server: &str, result: &Raw) -> Result<bool, Error> {
        let is_task = translate::is_task(result, self.guest.era());
        is_task.map_err(|error| tasks::unclear(server, &error))
    }

    async fn shown(
        &self,
        server: &str,
        result: Raw,
        own_bytes: Option<usize>,
        structured: Structured,
    ) -> Raw {
        let revision = self.guest.revision();
        match self.view {
            View::Server(_) => translate::content(result, revision),
            View::All(_) => {
                let result = switchboard_catalog::expose_content(server, &result);
                let result = translate::content(result, revision);
                self.fit(server, result, own_bytes, structured).await
            }
        }
    }

    /// Cuts the result of a server's tool if it is too long for the agent. A result that cannot be
    /// stored is not cut, so that nothing is lost.
    async fn fit(
        &self,
        server: &str,
        result: Raw,
        own_bytes: Option<usize>,
        structured: Structured,
    ) -> Raw {
        let budget = self.budget(Some(server), own_bytes);
        if result.as_bytes().len() <= QUICK_BYTES
            && matches!(fit(&result, &budget, structured), Fit::Whole)
        {
            return result;
        }
        let core = Arc::clone(self.core);
        let realm = self.caller.realm;
        let whole = result.clone();
        let tool = self.reading_tool();
        let cutting = move || cut(&core, realm, tool, &result, &budget, structured);
        match tokio::task::spawn_blocking(cutting).await {
            Ok(Some(cut)) => cut,
            Ok(None) | Err(_) => whole,
        }
    }

    /// Reads more of a result that was cut.
    pub(super) async fn read_result(&self, params: &Raw) -> Result<Raw, Error> {
        let arguments = params.member("arguments");
        let asked = arguments.and_then(|arguments| arguments.read_owned::<Asked>().ok());
        let Some(asked) = asked else {
            let text = "`read_result` needs the `id` that the truncated result names; `offset` and `limit` are in bytes: {\"id\": \"r_…\", \"offset\": 0}";
            return Ok(tool_result::error(text));
        };
        let Some(id) = ResultId::parse(&asked.id) else {
            let text = "The `id` is invalid; the last lines of the truncated result name it.";
            return Ok(tool_result::error(text));
        };
        let budget = self.budget(None, None);
        let core = Arc::clone(self.core);
        let (realm, tool) = (self.caller.realm, self.reading_tool());
        let reading = tokio::task::spawn_blocking(move || {
            let results = core.results.of(realm.principal);
            let store = results.store(&core.config.load());
            let kept = store.get(&realm.to_string(), &asked.id, SystemTime::now())?;
            let page = kept.read(asked.offset, asked.limit, &budget);
            Ok::<_, switchboard_results::StoreError>(page.to_result(Reader { tool, id: &id }))
        });
        Ok(match reading.await {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => tool_result::error(&with_hint(&error, error.hint())),
            Err(_) => tool_result::error("cannot read the result; try again"),
        })
    }

    /// The name under which the agent calls the tool that reads on.
    fn reading_tool(&self) -> &'static str {
        if self.choice().is_menu {
            builtin::READ_RESULT
        } else {
            builtin::READ_RESULT_EXPOSED
        }
    }

    /// The most that an agent is given at once: the limit of the call, else of its server, else of
    /// the configuration.
    fn budget(&self, server: Option<&str>, own_bytes: Option<usize>) -> Budget {
        let all = self.core.config.load().results;
        let server = server.and_then(|server| self.core.upstream(server));
        let settings = server.map(|server| server.settings());
        let bytes = settings.as_ref().and_then(|server| server.max_result_bytes);
        let tokens = settings
            .as_ref()
            .and_then(|server| server.max_result_tokens);
        let bytes = bytes.unwrap_or(all.max_bytes);
        Budget {
            bytes: own_bytes.map_or(bytes, |own| own.min(bytes)),
            tokens: tokens.unwrap_or(all.max_tokens),
            ..Budget::default()
        }
    }
}

/// The part of a result to show; `None` to show all of it.
fn cut(
    core: &Core,
    realm: Realm,
    tool: &str,
    result: &Raw,
    budget: &Budget,
    structured: Structured,
) -> Option<Raw> {
    let Fit::Cut(cut) = fit(result, budget, structured) else {
        return None;
    };
    let results = core.results.of(realm.principal);
    let store = results.store(&core.config.load());
    match store.put(
        &realm.to_string(),
        Arc::clone(cut.kept()),
        SystemTime::now(),
    ) {
        Ok(id) => Some(cut.shown(Some(Reader { tool, id: &id }))),
        Err(error) => {
            static TOLD: LazyLock<Limited> = LazyLock::new(Limited::default);
            TOLD.report(|missed| {
                tracing::warn!(error = %with_hint(&error, error.hint()), missed, "Cannot store a long result, so the gateway passes it on in full.");
            });
            None
        }
    }
}
