//! A memory in its own folder, called over its protocol.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use serde_json::{Value, json};
use switchboard_client::memory::ServerEnd;
use switchboard_embed::StaticTable;
use switchboard_memory::{Memory, Model, Settings};
use switchboard_store::Store;
use switchboard_test_support::until_async;
use tokio::sync::{Mutex, mpsc};

pub(crate) struct Rig {
    pub(crate) store: Store,
    pub(crate) memory: Memory,
    to: mpsc::Sender<Bytes>,
    from: Mutex<mpsc::Receiver<Bytes>>,
    ids: AtomicU64,
    #[expect(dead_code, reason = "held, so that the server goes on to accept")]
    connections: mpsc::Sender<ServerEnd>,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ended {
    /// A result, and `true` if it reports an error.
    Result(Value, bool),
    Error(Value),
}

impl Rig {
    pub(crate) fn open(folder: &Path) -> Self {
        Self::with(folder, Settings::default(), || None)
    }

    pub(crate) fn with_vectors(folder: &Path) -> Self {
        Self::with(folder, Settings::default(), || {
            Some(Arc::new(StaticTable::built_in()) as Model)
        })
    }

    pub(crate) fn with(
        folder: &Path,
        settings: Settings,
        model: impl Fn() -> Option<Model> + Send + Sync + 'static,
    ) -> Self {
        let store = Store::open(folder.join("switchboard.db"));
        let memory = Memory::new(store.clone(), settings, model);
        let (connections, accepted) = mpsc::channel(1);
        tokio::spawn(memory.clone().serve(accepted));
        let (to, frames) = mpsc::channel(64);
        let (client, from) = mpsc::channel(64);
        connections.try_send(ServerEnd { frames, client }).unwrap();
        Self {
            store,
            memory,
            to,
            from: Mutex::new(from),
            ids: AtomicU64::new(1),
            connections,
        }
    }

    /// Sends a request and waits for its response; one at a time.
    pub(crate) async fn request(&self, method: &str, params: Value) -> Value {
        let id = self.ids.fetch_add(1, Relaxed);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut from = self.from.lock().await;
        self.to.send(request.to_string().into()).await.unwrap();
        let answer = tokio::time::timeout(Duration::from_mins(1), from.recv());
        let answer = answer.await.unwrap().unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["id"], id);
        answer
    }

    pub(crate) async fn ended(&self, tool: &str, arguments: Value) -> Ended {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.request("tools/call", params).await;
        if let Some(error) = answer.get("error") {
            return Ended::Error(error.clone());
        }
        let result = answer["result"].clone();
        let is_error = result["isError"] == true;
        Ended::Result(result, is_error)
    }

    /// Calls a tool, which must succeed.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        match self.ended(tool, arguments).await {
            Ended::Result(result, false) => result["structuredContent"].clone(),
            other => panic!("{tool}: {other:?}"),
        }
    }

    /// Calls a tool, which must report an error. Returns its text.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value) -> String {
        match self.ended(tool, arguments).await {
            Ended::Result(result, true) => {
                result["content"][0]["text"].as_str().unwrap().to_owned()
            }
            other => panic!("{tool}: {other:?}"),
        }
    }

    pub(crate) async fn store(&self, arguments: Value) -> String {
        let stored = self.call("store_memory", arguments).await;
        stored["id"].as_str().unwrap().to_owned()
    }

    /// Returns the contents of the memories that a tool lists or finds.
    pub(crate) async fn contents(&self, tool: &str, arguments: Value) -> Vec<String> {
        contents(&self.call(tool, arguments).await)
    }

    /// Waits until every memory has a vector that is in use.
    pub(crate) async fn embedded(&self) {
        until_async("every memory has a vector", async || {
            let status = self.call("get_status", json!({})).await;
            let embeddings = &status["parts"]["embeddings"];
            embeddings["state"] == "ready" && embeddings["waiting"] == 0
        })
        .await;
    }
}

pub(crate) fn contents(answer: &Value) -> Vec<String> {
    let memories = answer["memories"].as_array().unwrap();
    let contents = memories.iter().map(|one| one["content"].as_str().unwrap());
    contents.map(str::to_owned).collect()
}
