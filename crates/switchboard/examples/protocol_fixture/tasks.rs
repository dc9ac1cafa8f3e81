//! Tasks: those of 2025-11-25, and those of the extension to 2026-07-28.

use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use tokio::sync::{oneshot, watch};

use crate::{
    call::{Asks, Call},
    feed::held,
    rpc::{Answer, Fault},
    tools,
    world::World,
};

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const TTL_MS: u64 = 60_000;
const POLL_MS: u64 = 100;

pub(crate) struct Task {
    id: String,
    created: String,
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

struct State {
    updated: String,
    pending: Map<String, Value>,
    answers: Map<String, Value>,
    end: Option<End>,
    /// To drop it is to cancel the task.
    running: Option<oneshot::Sender<()>>,
}

enum End {
    Finished(Result<Answer, Fault>),
    Cancelled,
}

impl Task {
    /// Runs the rest of a call as a task. Answers that were given before are known to it.
    pub(crate) fn start(call: Call, answers: Map<String, Value>) -> Arc<Self> {
        let (running, cancelled) = oneshot::channel();
        let now = now();
        let task = Arc::new(Self {
            id: World::random(),
            created: now.clone(),
            state: Mutex::new(State {
                updated: now,
                pending: Map::new(),
                answers,
                end: None,
                running: Some(running),
            }),
            changed: watch::Sender::new(()),
        });
        held(&call.world.tasks).insert(task.id.clone(), task.clone());
        let asks = match call.asks {
            Asks::Session(session) => Asks::Session(session),
            Asks::Retry(_) | Asks::Task(_) => Asks::Task(task.clone()),
        };
        let call = Call { asks, ..call };
        let own = task.clone();
        tokio::spawn(async move {
            let end = tokio::select! {
                result = tools::run(&call) => {
                    End::Finished(result.or_else(crate::call::Stop::into_result))
                }
                _ = cancelled => End::Cancelled,
            };
            own.update(|state| {
                state.pending.clear();
                state.end = Some(end);
            });
        });
        task
    }

    /// Waits until the client has answered all of this.
    pub(crate) async fn ask(&self, requests: Map<String, Value>) -> Vec<Value> {
        let keys: Vec<String> = requests.keys().cloned().collect();
        self.update(|state| {
            let new = |(key, _): &(String, Value)| !state.answers.contains_key(key);
            state.pending = requests.into_iter().filter(new).collect();
        });
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            {
                let state = held(&self.state);
                if state.pending.is_empty() {
                    let answer = |key| state.answers.get(key).cloned().unwrap_or_default();
                    return keys.iter().map(answer).collect();
                }
            }
            // The sender is our own, so it is never gone.
            let _ = changed.changed().await;
        }
    }

    /// Takes answers; those that nobody asked for are ignored.
    pub(crate) fn answer(&self, answers: &Value) {
        self.update(|state| {
            for (key, answer) in answers.as_object().into_iter().flatten() {
                if state.pending.remove(key).is_some() {
                    state.answers.insert(key.clone(), answer.clone());
                }
            }
        });
    }

    /// Cancels it, and waits until it has ended.
    pub(crate) async fn cancel(&self) {
        held(&self.state).running = None;
        self.ended().await;
    }

    pub(crate) async fn ended(&self) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            if held(&self.state).end.is_some() {
                return;
            }
            let _ = changed.changed().await;
        }
    }

    /// How the call ended; `None` if it has not, or was cancelled.
    pub(crate) fn result(&self) -> Option<Result<Answer, Fault>> {
        match &held(&self.state).end {
            Some(End::Finished(Ok(answer))) => Some(Ok(answer.clone())),
            Some(End::Finished(Err(fault))) => {
                Some(Err(Fault::new(fault.code, fault.message.clone())))
            }
            Some(End::Cancelled) | None => None,
        }
    }

    fn status(&self) -> &'static str {
        let state = held(&self.state);
        match &state.end {
            Some(End::Finished(Ok(_))) => "completed",
            Some(End::Finished(Err(_))) => "failed",
            Some(End::Cancelled) => "cancelled",
            None if state.pending.is_empty() => "working",
            None => "input_required",
        }
    }

    /// As 2025-11-25 has it.
    pub(crate) fn core(&self) -> Value {
        json!({
            "taskId": self.id,
            "status": self.status(),
            "createdAt": self.created,
            "lastUpdatedAt": held(&self.state).updated,
            "ttl": TTL_MS,
            "pollInterval": POLL_MS,
        })
    }

    /// As the extension has it.
    pub(crate) fn extended(&self) -> Value {
        json!({
            "taskId": self.id,
            "status": self.status(),
            "createdAt": self.created,
            "lastUpdatedAt": held(&self.state).updated,
            "ttlMs": TTL_MS,
            "pollIntervalMs": POLL_MS,
        })
    }

    /// The same with what there is to tell besides.
    pub(crate) fn detailed(&self) -> Value {
        let mut task = self.extended();
        let state = held(&self.state);
        match &state.end {
            Some(End::Finished(Ok(answer))) => task["result"] = json!(answer),
            Some(End::Finished(Err(fault))) => task["error"] = json!(fault),
            Some(End::Cancelled) => {}
            None if !state.pending.is_empty() => task["inputRequests"] = json!(state.pending),
            None => {}
        }
        task
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        let mut state = held(&self.state);
        change(&mut state);
        state.updated = now();
        drop(state);
        self.changed.send_replace(());
    }
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}
