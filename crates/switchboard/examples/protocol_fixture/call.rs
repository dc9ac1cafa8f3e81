//! One call as a tool or a prompt sees it, whichever era it came from.
//!
//! A tool asks the client with [`Call::ask`]. In a session that is a request to the client; in the
//! newest revision the call ends with what is asked, and runs again from its beginning when the
//! answer has come; within a task it is noted there until the answer comes.

use std::sync::Arc;

use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    feed::Feed,
    options::Revision,
    rpc::{self, Answer, Fault},
    seal,
    session::Session,
    tasks::Task,
    world::World,
};

pub(crate) struct Call {
    pub(crate) world: Arc<World>,
    pub(crate) revision: Revision,
    pub(crate) client_info: Value,
    pub(crate) capabilities: Value,
    pub(crate) log_level: Option<String>,
    pub(crate) progress_token: Option<Value>,
    /// Where messages go that belong to this call.
    pub(crate) feed: Arc<Feed>,
    pub(crate) name: String,
    pub(crate) arguments: Value,
    pub(crate) raw_arguments: Option<Box<RawValue>>,
    pub(crate) asks: Asks,
}

/// How the client is asked.
pub(crate) enum Asks {
    Session(Arc<Session>),
    Retry(Retry),
    Task(Arc<Task>),
}

/// What came with a call that may be the repetition of another.
pub(crate) struct Retry {
    pub(crate) responses: Map<String, Value>,
    /// What the sealed state held, if there was one.
    pub(crate) state: Option<(u64, Map<String, Value>)>,
    pub(crate) digest: String,
}

/// A question to the client.
pub(crate) struct Input {
    pub(crate) key: &'static str,
    pub(crate) method: &'static str,
    pub(crate) params: Value,
}

/// Whether answers count only together with the state that was handed out with the question.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Needed,
    None,
}

/// Why a call has no result of its own.
pub(crate) enum Stop {
    Fault(Fault),
    /// The client has to answer first.
    Input {
        requests: Map<String, Value>,
        state: Option<String>,
    },
    /// The tool failed, and says so.
    Failed(String),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Stop {
    /// The end of a call that can ask nobody any more.
    pub(crate) fn into_result(self) -> Result<Answer, Fault> {
        match self {
            Self::Fault(fault) => Err(fault),
            Self::Input { .. } => Err(Fault::new(-32603, "asked where nobody can answer")),
            Self::Failed(text) => Ok(failed(&text)),
        }
    }
}

/// The result of a tool that failed.
pub(crate) fn failed(text: &str) -> Answer {
    json!({ "content": [{ "type": "text", "text": text }], "isError": true }).into()
}

impl Input {
    pub(crate) fn elicit(key: &'static str, message: &str, properties: &Value) -> Self {
        let required: Vec<&String> = properties
            .as_object()
            .into_iter()
            .flat_map(Map::keys)
            .collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        Self::form(key, message, &schema)
    }

    pub(crate) fn form(key: &'static str, message: &str, schema: &Value) -> Self {
        let params = json!({ "message": message, "requestedSchema": schema });
        Self {
            key,
            method: "elicitation/create",
            params,
        }
    }

    pub(crate) fn url(key: &'static str, message: &str, url: &str) -> Self {
        let params = json!({ "mode": "url", "message": message, "url": url });
        Self {
            key,
            method: "elicitation/create",
            params,
        }
    }

    pub(crate) fn sample(key: &'static str, prompt: &str, max_tokens: u32) -> Self {
        let content = json!({ "type": "text", "text": prompt });
        let messages = json!([{ "role": "user", "content": content }]);
        Self {
            key,
            method: "sampling/createMessage",
            params: json!({ "messages": messages, "maxTokens": max_tokens }),
        }
    }

    pub(crate) fn roots(key: &'static str) -> Self {
        Self {
            key,
            method: "roots/list",
            params: json!({}),
        }
    }

    /// The capability that a client needs in order to answer, if it has not declared it.
    fn lacking(&self, capabilities: &Value) -> Option<Value> {
        let declared = |name: &str| capabilities[name].is_object();
        match self.method {
            "sampling/createMessage" => (!declared("sampling")).then(|| json!({ "sampling": {} })),
            "roots/list" => (!declared("roots")).then(|| json!({ "roots": {} })),
            _ if self.params["mode"] == "url" => (!capabilities["elicitation"]["url"].is_object())
                .then(|| json!({ "elicitation": { "url": {} } })),
            _ => {
                let modes = capabilities["elicitation"].as_object();
                let form = modes
                    .is_some_and(|modes| modes.contains_key("form") || !modes.contains_key("url"));
                (!form).then(|| json!({ "elicitation": {} }))
            }
        }
    }

    /// Whether this is an answer to it at all.
    fn fits(&self, answer: &Value) -> bool {
        match self.method {
            "sampling/createMessage" => answer["role"].is_string() && !answer["content"].is_null(),
            "roots/list" => answer["roots"].is_array(),
            _ => matches!(
                answer["action"].as_str(),
                Some("accept" | "decline" | "cancel")
            ),
        }
    }

    fn as_request(&self) -> Value {
        json!({ "method": self.method, "params": self.params })
    }
}

impl Call {
    /// Says how far it is, if the client wants to know.
    pub(crate) fn progress(&self, progress: u64, total: u64) {
        let (Some(token), false) = (&self.progress_token, self.in_task()) else {
            return;
        };
        let mut params = json!({ "progressToken": token, "progress": progress, "total": total });
        if self.revision >= Revision::V2025_03_26 {
            params["message"] = json!(format!("Completed step {progress} of {total}"));
        }
        self.feed
            .push(rpc::notification("notifications/progress", &params));
    }

    /// Sends a log message, if the client wants those of this level.
    pub(crate) fn log(&self, level: &str, data: impl Into<Value>) {
        let wanted = match &self.log_level {
            Some(least) => severity(level) >= severity(least),
            // A session gets everything until it says otherwise; nowadays silence means none.
            None => self.revision < Revision::MODERN,
        };
        if wanted && !self.in_task() {
            let params = json!({ "level": level, "logger": "fixture", "data": data.into() });
            self.feed
                .push(rpc::notification("notifications/message", &params));
        }
    }

    pub(crate) fn in_task(&self) -> bool {
        matches!(self.asks, Asks::Task(_))
    }

    pub(crate) fn declared(&self, capability: &str) -> bool {
        self.capabilities[capability].is_object()
    }

    /// Stops unless the client can sample.
    pub(crate) fn needs_sampling(&self) -> Result<(), Stop> {
        let input = Input::sample("sampling", "", 1);
        self.needs(&input)
    }

    fn needs(&self, input: &Input) -> Result<(), Stop> {
        let Some(lacking) = input.lacking(&self.capabilities) else {
            return Ok(());
        };
        Err(if self.revision == Revision::MODERN {
            Stop::Fault(Fault::lacking(&lacking))
        } else {
            Stop::Failed(format!("The client does not support {}", input.method))
        })
    }

    pub(crate) async fn ask(&self, input: Input) -> Result<Value, Stop> {
        let answers = self.ask_all(vec![input], State::None).await?;
        Ok(answers.into_iter().next().unwrap_or_default())
    }

    /// Asks several things at once, and returns the answers in the order of the questions.
    pub(crate) async fn ask_all(
        &self,
        inputs: Vec<Input>,
        state: State,
    ) -> Result<Vec<Value>, Stop> {
        for input in &inputs {
            self.needs(input)?;
        }
        match &self.asks {
            Asks::Session(session) => self.ask_session(session, &inputs).await,
            Asks::Retry(retry) => self.ask_retry(retry, &inputs, state),
            Asks::Task(task) => {
                let requests = inputs
                    .iter()
                    .map(|input| (input.key.to_owned(), input.as_request()));
                Ok(task.ask(requests.collect()).await)
            }
        }
    }

    /// Asks several things at once, and does without what the client refuses.
    pub(crate) async fn ask_any(&self, inputs: Vec<Input>) -> Result<Vec<Value>, Stop> {
        let Asks::Session(session) = &self.asks else {
            return self.ask_all(inputs, State::None).await;
        };
        let answers = self.ask_each(session, &inputs).await;
        Ok(answers.into_iter().filter_map(Result::ok).collect())
    }

    async fn ask_session(
        &self,
        session: &Arc<Session>,
        inputs: &[Input],
    ) -> Result<Vec<Value>, Stop> {
        let answers = self.ask_each(session, inputs).await;
        answers.into_iter().collect()
    }

    async fn ask_each(&self, session: &Arc<Session>, inputs: &[Input]) -> Vec<Result<Value, Stop>> {
        let mut asked = Vec::new();
        for input in inputs {
            let (session, feed) = (session.clone(), self.feed.clone());
            let (method, mut params) = (input.method, input.params.clone());
            if params["mode"] == "url" {
                params["elicitationId"] = json!(World::random());
            }
            asked.push(tokio::spawn(async move {
                session.ask(&feed, method, &params).await
            }));
        }
        let mut answers = Vec::new();
        for (asked, input) in asked.into_iter().zip(inputs) {
            answers.push(match asked.await {
                Ok(Ok(answer)) if input.fits(&answer) => Ok(answer),
                Ok(Ok(answer)) => Err(Stop::Failed(format!("No answer: {answer}"))),
                Ok(Err(error)) => Err(Stop::Failed(format!("The client refused: {error}"))),
                Err(error) => Err(Stop::Failed(error.to_string())),
            });
        }
        answers
    }

    fn ask_retry(&self, retry: &Retry, inputs: &[Input], state: State) -> Result<Vec<Value>, Stop> {
        let (round, mut known) = retry.state.clone().unwrap_or_default();
        if state == State::None || retry.state.is_some() {
            known.extend(retry.responses.clone());
        }
        let fits = |input: &&Input| {
            known
                .get(input.key)
                .is_some_and(|answer| input.fits(answer))
        };
        if inputs.iter().all(|input| fits(&input)) {
            return Ok(inputs
                .iter()
                .map(|input| known[input.key].clone())
                .collect());
        }
        let missing = inputs.iter().filter(|input| !fits(input));
        let requests = missing.map(|input| (input.key.to_owned(), input.as_request()));
        let sealed = state == State::Needed || !known.is_empty();
        Err(Stop::Input {
            requests: requests.collect(),
            state: sealed.then(|| seal::seal(&self.world.key, &retry.digest, round + 1, &known)),
        })
    }
}

pub(crate) fn severity(level: &str) -> Option<usize> {
    const LEVELS: [&str; 8] = [
        "debug",
        "info",
        "notice",
        "warning",
        "error",
        "critical",
        "alert",
        "emergency",
    ];
    LEVELS.iter().position(|known| *known == level)
}
