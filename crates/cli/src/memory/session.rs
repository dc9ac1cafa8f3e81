//! The connection to the memory: through the running gateway, or one that runs only for this command.

use std::{
    io,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_admin::status::describe;
use switchboard_client::{
    self as client, CallError, Client, ErrorObject, Lossless,
    model::{CallToolResult, ElicitationAnswer, ElicitationRequest},
    stdio::{Process, ProcessGuard, Spawn, Spawning, Stdio},
};
use switchboard_config::{Config, Home, Memory};
use switchboard_gateway::{Gateway, View};
use switchboard_host::{
    runtime::{self, Lock},
    stdio::{self, Reader, Writer},
};
use switchboard_terminal::{error::Error, print};
use switchboard_wire::Raw;
use tokio::time::{Instant, sleep, timeout};

use super::{super::call, super::list, scope::Wish};
use crate::link::Link;

/// Time to wait for a process that is about to become the gateway or to stop, and for a memory that is
/// starting.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit for `initialize`, to which a running gateway responds at once.
const GREETING: Duration = Duration::from_secs(10);
/// Time limit for a call, which may wait for an approver.
const CALL: Duration = Duration::from_mins(10);
const PAUSE: Duration = Duration::from_millis(20);
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Bytes buffered between this client and a gateway in the same process.
const LOCAL_BYTES: usize = 256 * 1024;
/// The longest response, in bytes. It comes from the user's own gateway, and may contain many long memories.
const ANSWER_BYTES: usize = 256 * 1024 * 1024;
/// Error code: the memory is not ready yet, or does not work.
const INITIALIZING: i64 = -32002;

/// The user's answer to the question that the memory asks before it deletes everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    Given,
    NotAsked,
}

/// A connection to the memory.
pub(super) struct Session {
    client: Client,
    home: Home,
    /// The gateway, if it runs in this process.
    hosted: Option<Hosted>,
}

struct Hosted {
    gateway: Arc<Gateway>,
    #[expect(dead_code, reason = "held, not read")]
    lock: Lock,
}

/// Runs `work` with a connection to the memory.
pub(super) fn with<T>(
    home: &Home,
    work: impl AsyncFnOnce(&Session) -> Result<T, Error>,
) -> Result<T, Error> {
    with_consent(home, Consent::NotAsked, work)
}

/// Like [`with`], for a user who may already have agreed to what the memory asks.
pub(super) fn with_consent<T>(
    home: &Home,
    consent: Consent,
    work: impl AsyncFnOnce(&Session) -> Result<T, Error>,
) -> Result<T, Error> {
    runtime::block_on(async {
        let session = Session::open(home, consent).await?;
        let done = tokio::select! {
            done = work(&session) => done,
            _ = tokio::signal::ctrl_c() => {
                Err(Error::new("interrupted before the command finished"))
            }
        };
        session.close().await;
        done
    })?
}

/// Checks that the built-in memory is among the servers of a configuration that no gateway uses yet.
pub(super) fn check_config(home: &Home, config: &Config) -> Result<(), Error> {
    let own = config.servers.get(Memory::NAME);
    check(home, config.memory.enabled, own.map(|own| describe(own).0))
}

/// Checks that it is among the servers of the running gateway. Returns `None` if no gateway runs.
pub(super) fn check_running(home: &Home) -> Result<Option<()>, Error> {
    let Some(link) = Link::find(home)? else {
        return Ok(None);
    };
    let Ok(servers) = link.get("/api/v1/servers") else {
        // The gateway is stopping.
        return Ok(None);
    };
    let servers = list::rows(&servers)?;
    let kind = servers
        .iter()
        .find(|server| server.name == Memory::NAME)
        .map(|server| &*server.kind);
    check(
        home,
        kind.is_some(),
        kind.filter(|kind| *kind != "built-in"),
    )?;
    Ok(Some(()))
}

/// Fails if the built-in memory is not available: it is disabled, or a configured server has its name.
fn check(home: &Home, enabled: bool, own: Option<&str>) -> Result<(), Error> {
    let file = home.config_file().display();
    if own.is_some() {
        return Err(Error::new(format!(
            "the server `memory` in {file} replaces the built-in memory"
        ))
        .hint(
            "rename that server in `mcpServers`, or use it with `switchboard call memory:TOOL`",
        ));
    }
    if !enabled {
        return Err(Error::new(format!("the memory is disabled in {file}"))
            .hint("set `enabled` of `memory` to true there, or remove it"));
    }
    Ok(())
}

impl Session {
    async fn open(home: &Home, consent: Consent) -> Result<Self, Error> {
        let seat = stdio::Client::here(View::Server(Memory::NAME.into()));
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(ends) = stdio::join(home, &seat).await {
                if check_running(home)?.is_some()
                    && let Some(session) = Self::greet(home, ends, None, consent).await
                {
                    return Ok(session);
                }
            } else {
                home.create()?;
                if let Ok(lock) = Lock::take(home)? {
                    return Self::host(home, lock, consent).await;
                }
            }
            // Another process is about to become the gateway, or to stop.
            if Instant::now() >= until {
                return Err(Error::unreachable("the gateway does not respond")
                    .hint("run `switchboard doctor` to find the cause"));
            }
            sleep(PAUSE).await;
        }
    }

    /// Runs the gateway for this client only. All servers are disabled in it: no client here calls them, and
    /// it would start the ones that were never listed.
    async fn host(home: &Home, lock: Lock, consent: Consent) -> Result<Self, Error> {
        let mut config = Config::load(home.config_file())?;
        check_config(home, &config)?;
        for server in config.servers.values_mut() {
            server.enabled = false;
        }
        let view = View::Server(Memory::NAME.into());
        let seat = stdio::Client::here(view.clone());
        let gateway = runtime::start(Arc::new(home.clone()), config, seat.environment())?;
        let (here, there) = tokio::io::duplex(LOCAL_BYTES);
        let serving = Arc::clone(&gateway);
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(there);
            // A pipe in memory does not fail.
            let _ = serving
                .serve_pipe(view, seat.project(), reader, writer)
                .await;
        });
        let (reader, writer) = tokio::io::split(here);
        let ends: (Reader, Writer) = (Box::new(reader), Box::new(writer));
        let hosted = Hosted { gateway, lock };
        Self::greet(home, ends, Some(hosted), consent)
            .await
            .ok_or_else(|| {
                Error::new("the memory does not respond")
                    .hint("run `switchboard doctor` to find the cause")
            })
    }

    async fn greet(
        home: &Home,
        ends: (Reader, Writer),
        hosted: Option<Hosted>,
        consent: Consent,
    ) -> Option<Self> {
        let pipe = Stdio::new(Pipe(Mutex::new(Some(ends)))).frame_limit(ANSWER_BYTES);
        let mut builder = Client::builder("switchboard-cli", env!("CARGO_PKG_VERSION"));
        if consent == Consent::Given {
            builder = builder.on_elicitation(|question| async move { Ok(agree(&question)) });
        }
        let session = Self {
            client: builder.request_timeout(CALL).connect(pipe),
            home: home.clone(),
            hosted,
        };
        let greeted = timeout(GREETING, session.client.ready()).await;
        if matches!(greeted, Ok(Ok(_))) {
            return Some(session);
        }
        session.close().await;
        None
    }

    async fn close(self) {
        self.client.stop().await;
        if let Some(hosted) = self.hosted {
            hosted.gateway.stop().await;
        }
    }

    /// Returns `true` if the memory was started for this connection.
    pub(super) fn is_fresh(&self) -> bool {
        self.hosted.is_some()
    }

    /// Calls a tool of the memory. Waits for a memory that is starting.
    pub(super) async fn call(&self, tool: &str, wish: &Wish) -> Result<Raw, Error> {
        let until = Instant::now() + PATIENCE;
        let mut told = false;
        loop {
            let error = match self.ask(tool, wish).await {
                Ok(result) if result.is_error => return Err(refused(&result)),
                Ok(result) => {
                    let none = || Error::new(format!("`{tool}` returned no result"));
                    return result.structured_content.clone().ok_or_else(none);
                }
                Err(error) => error,
            };
            if !is_initializing(&error) || Instant::now() >= until {
                return Err(failed(&error));
            }
            if !told {
                print::say("the memory is starting; waiting for it");
                told = true;
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    async fn ask(
        &self,
        tool: &str,
        wish: &Wish,
    ) -> Result<Lossless<CallToolResult>, client::Error> {
        let began = jiff::Timestamp::now();
        let calling = self.client.call_tool(tool, wish);
        let mut calling = pin!(calling.into_future());
        if let Ok(answer) = timeout(call::LONG, &mut calling).await {
            return answer;
        }
        if self.hosted.is_none() {
            let home = self.home.clone();
            // The call does not wait for this message.
            tokio::task::spawn_blocking(move || {
                call::tell_if_asked(&home, call::is_of_memory, began);
            });
        }
        calling.await
    }

    /// Calls a tool and parses its result.
    pub(super) async fn read<T: serde::de::DeserializeOwned>(
        &self,
        tool: &str,
        wish: &Wish,
    ) -> Result<T, Error> {
        let answer = self.call(tool, wish).await?;
        understood(&answer)
    }
}

/// Parses a response.
pub(super) fn understood<T: serde::de::DeserializeOwned>(answer: &Raw) -> Result<T, Error> {
    answer
        .read_owned()
        .map_err(|error| Error::new(format!("cannot parse the memory's response: {error}")))
}

/// Answers the memory's question with the consent that the user gave here.
fn agree(question: &ElicitationRequest) -> ElicitationAnswer {
    const FORGET: &str = "forget";
    let schema = question.requested_schema.as_ref();
    let fields = schema.and_then(|schema| schema.member("properties"));
    if fields.is_none_or(|fields| fields.member(FORGET).is_none()) {
        return ElicitationAnswer::cancel();
    }
    let yes = Map::from_iter([(FORGET.to_owned(), Value::Bool(true))]);
    ElicitationAnswer::accept(yes)
}

fn is_initializing(error: &client::Error) -> bool {
    matches!(error, client::Error::Server(error) if error.code == INITIALIZING)
}

/// The error that a tool reports in its result.
fn refused(result: &CallToolResult) -> Error {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "switchboard/error")]
        error: Told,
    }
    #[derive(Deserialize)]
    struct Told {
        kind: String,
        message: String,
        hint: Option<String>,
    }
    let told = result.meta.as_ref();
    let Some(Answer { error }) = told.and_then(|told| told.read_owned().ok()) else {
        return Error::new(result.text());
    };
    let failure = match &*error.kind {
        "invalid" => Error::usage(error.message),
        // The memory's own hint names tools rather than commands.
        "not_found" => Error::new(error.message)
            .hint("`switchboard memory list` and `switchboard memory recall` show the IDs"),
        _ => Error::new(error.message),
    };
    match error.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn failed(error: &client::Error) -> Error {
    match error {
        client::Error::Server(error) => complained(error),
        client::Error::Call(CallError::ConnectionLost { sent: true, .. }) => Error::unreachable(
            "lost the connection to the gateway during the call, which may have completed",
        )
        .hint("check whether it did before you run the command again"),
        client::Error::Call(
            CallError::ConnectionLost { .. }
            | CallError::Failed { .. }
            | CallError::Shutdown { .. },
        ) => Error::unreachable("lost the connection to the gateway").hint("run the command again"),
        client::Error::Call(CallError::Timeout { after, .. }) => Error::unreachable(format!(
            "the gateway did not respond within {} s",
            after.as_secs()
        ))
        .hint("check with `switchboard status` that it is running"),
        other => Error::from_error(other, None),
    }
}

/// The error that the memory or the gateway responds with.
fn complained(error: &ErrorObject) -> Error {
    let (message, hint) = error.parts();
    let failure = Error::new(message);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// A pipe to the gateway, which can be taken once.
struct Pipe(Mutex<Option<(Reader, Writer)>>);

impl Spawn for Pipe {
    fn spawn(&self) -> Spawning {
        let ends = self.0.lock().take();
        Box::pin(async move {
            let left = || io::Error::new(io::ErrorKind::InvalidInput, "the gateway disconnected");
            let (stdout, stdin) = ends.ok_or_else(left)?;
            let guard = Box::new(NoProcess);
            Ok(Process {
                stdin,
                stdout,
                guard,
            })
        })
    }

    fn describe(&self) -> String {
        "the memory".to_owned()
    }
}

/// The end of the pipe is the only sign that the other side has ended.
struct NoProcess;

impl ProcessGuard for NoProcess {
    fn poll_exit(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    fn explain(&self) -> String {
        "the gateway disconnected".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_known_question_is_answered() {
        let question = |schema: &Value| -> ElicitationRequest {
            let question = json!({ "message": "?", "requestedSchema": schema });
            serde_json::from_value(question).unwrap()
        };
        let forget = json!({ "properties": { "forget": { "type": "boolean" } } });
        let yes = serde_json::to_value(agree(&question(&forget))).unwrap();
        assert_eq!(
            yes,
            json!({ "action": "accept", "content": { "forget": true } })
        );
        for other in [json!({}), json!({ "properties": { "password": {} } })] {
            let no = serde_json::to_value(agree(&question(&other))).unwrap();
            assert_eq!(no, json!({ "action": "cancel" }));
        }
    }

    #[test]
    fn hint_is_separate_from_the_message() {
        let error = ErrorObject::new(-32003, "initialization failed: no room; none at all");
        let failure = complained(&error.clone().with_hint("free some; space"));
        assert_eq!(
            failure.message(),
            "initialization failed: no room; none at all"
        );
        assert_eq!(failure.advice(), Some("free some; space"));
        assert_eq!(complained(&error).advice(), None);
    }
}
