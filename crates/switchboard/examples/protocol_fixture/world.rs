//! What is true of the whole server: counters, who listens, and what the lists hold.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use serde_json::{Value, json};

use crate::{
    feed::{Feed, held},
    options::Options,
    rpc, seal,
    session::Session,
    tasks::Task,
};

/// The server.
pub(crate) struct World {
    pub(crate) options: Options,
    /// With which `requestState` is sealed.
    pub(crate) key: [u8; 32],
    counts: Mutex<BTreeMap<String, u64>>,
    sessions: Mutex<Vec<Weak<Session>>>,
    listeners: Mutex<Vec<Arc<Listener>>>,
    pub(crate) tasks: Mutex<BTreeMap<String, Arc<Task>>>,
    /// How many waiting calls were cancelled.
    pub(crate) cancelled: AtomicU64,
    /// Whether the tool that comes and goes is there, and the prompt likewise.
    pub(crate) extra_tool: AtomicBool,
    pub(crate) extra_prompt: AtomicBool,
}

/// An open `subscriptions/listen`.
pub(crate) struct Listener {
    pub(crate) id: Value,
    pub(crate) wanted: Value,
    pub(crate) feed: Arc<Feed>,
}

/// What can change.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    Tools,
    Prompts,
}

impl World {
    pub(crate) fn new(options: Options) -> io::Result<Arc<Self>> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        Ok(Arc::new(Self {
            options,
            key,
            counts: Mutex::default(),
            sessions: Mutex::default(),
            listeners: Mutex::default(),
            tasks: Mutex::default(),
            cancelled: AtomicU64::new(0),
            extra_tool: AtomicBool::new(false),
            extra_prompt: AtomicBool::new(false),
        }))
    }

    /// A name that nobody can guess.
    pub(crate) fn random() -> String {
        let mut bytes = [0; 16];
        // Without randomness a constant key and a constant name are all there is; the test will see.
        let _ = getrandom::fill(&mut bytes);
        seal::hex(&bytes)
    }

    pub(crate) fn count(&self, method: &str) {
        *held(&self.counts).entry(method.to_owned()).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> Value {
        json!(*held(&self.counts))
    }

    pub(crate) fn info() -> Value {
        json!({ "name": "protocol-fixture", "version": "1.0.0" })
    }

    pub(crate) fn add_session(&self, session: &Arc<Session>) {
        let mut sessions = held(&self.sessions);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(session));
    }

    /// Those who have shaken hands.
    fn sessions(&self) -> Vec<Arc<Session>> {
        let sessions = held(&self.sessions);
        let sessions = sessions.iter().filter_map(Weak::upgrade);
        sessions
            .filter(|session| session.revision().is_some())
            .collect()
    }

    pub(crate) fn listen(&self, listener: &Arc<Listener>) {
        held(&self.listeners).push(listener.clone());
    }

    pub(crate) fn unlisten(&self, listener: &Arc<Listener>) {
        held(&self.listeners).retain(|known| !Arc::ptr_eq(known, listener));
    }

    /// Changes a list, and tells everyone who wants to know.
    pub(crate) fn change(&self, change: Change) {
        let (extra, wanted, method) = match change {
            Change::Tools => (
                &self.extra_tool,
                "toolsListChanged",
                "notifications/tools/list_changed",
            ),
            Change::Prompts => (
                &self.extra_prompt,
                "promptsListChanged",
                "notifications/prompts/list_changed",
            ),
        };
        extra.fetch_xor(true, Ordering::SeqCst);
        for session in self.sessions() {
            session.feed.push(rpc::notification(method, &json!({})));
        }
        self.tell(method, json!({}), |listener| {
            listener.wanted[wanted] == json!(true)
        });
    }

    /// Says that a resource has changed, to those who subscribed to it.
    pub(crate) fn updated(&self, uri: &str) {
        let method = "notifications/resources/updated";
        for session in self.sessions() {
            if held(&session.subscriptions).contains(uri) {
                let said = rpc::notification(method, &json!({ "uri": uri }));
                session.feed.push(said);
            }
        }
        self.tell(method, json!({ "uri": uri }), |listener| {
            let wanted = listener.wanted["resourceSubscriptions"].as_array();
            wanted.is_some_and(|wanted| wanted.iter().any(|wanted| wanted == uri))
        });
    }

    fn tell(&self, method: &str, mut params: Value, wants: impl Fn(&Listener) -> bool) {
        for listener in held(&self.listeners).iter().filter(|known| wants(known)) {
            params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": listener.id });
            listener.feed.push(rpc::notification(method, &params));
        }
    }
}
