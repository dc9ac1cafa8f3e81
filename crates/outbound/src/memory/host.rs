//! The memory as one of the servers.

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

use arc_swap::ArcSwap;
use switchboard_catalog::{Held, Offers, Snapshot};
use switchboard_client::{Raw, memory::Memory as Connector};
use switchboard_config::{Config, Embeddings, Memory as Wanted, Server};
use switchboard_memory::{Memory, Settings};
use switchboard_store::{Store, StoreError, memory::Salvaged};
use tokio::{sync::Mutex, time::timeout};

use crate::model::Models;

/// The most messages that wait in each direction: its concurrency limit, and some more.
const DEPTH: usize = 128;

/// The memory, and the way to connect to it.
#[derive(Debug)]
pub struct Host {
    memory: Memory,
    models: Arc<Models>,
    /// The configured model.
    wanted: Arc<ArcSwap<Embeddings>>,
    /// Held while a damaged file is repaired.
    mending: Arc<Mutex<()>>,
}

impl Host {
    /// Creates the memory on this store; `None` in a build without it.
    pub fn new(store: Store, config: &Config, models: Arc<Models>) -> Option<Self> {
        let wanted = Arc::new(ArcSwap::from_pointee(config.search.embeddings.clone()));
        let (source, best) = (Arc::clone(&models), Arc::clone(&wanted));
        let model = move || source.best(&best.load()).map(|model| model.alone());
        let memory = Memory::new(store, settings(config), model);
        let looking = memory.clone();
        tokio::spawn(async move { looking.look_for_damage().await });
        Some(Self {
            memory,
            models,
            wanted,
            mending: Arc::default(),
        })
    }

    /// Connects to the memory like to any other server.
    pub(crate) fn connector(&self) -> Connector {
        let (connector, connections) = Connector::new(DEPTH);
        let serving = self.memory.clone().serve(connections);
        let (memory, models) = (self.memory.clone(), Arc::clone(&self.models));
        let wanted = Arc::clone(&self.wanted);
        tokio::spawn(async move {
            let mut changes = models.changes();
            let following = async {
                // The sender lives as long as the models.
                while changes.changed().await.is_ok() {
                    memory.model_changed();
                }
            };
            let mut wishes = models.changes();
            let fetching = async {
                loop {
                    let pause = models.fetch(&wanted.load_full()).await;
                    // The configuration may have changed by then.
                    let changed = wishes.changed();
                    let is_over = match pause {
                        Some(pause) => timeout(pause, changed)
                            .await
                            .is_ok_and(|told| told.is_err()),
                        None => changed.await.is_err(),
                    };
                    if is_over {
                        return;
                    }
                }
            };
            tokio::select! {
                () = serving => {}
                () = following => {}
                () = fetching => {}
            }
        });
        connector
    }

    /// Recovers the readable part of a damaged file, or starts without it.
    pub async fn repair(&self, discard: bool) -> Result<Salvaged, StoreError> {
        let memory = self.memory.clone();
        let one_at_a_time = Arc::clone(&self.mending);
        // A task of its own, so that the repair completes even if the caller disconnects.
        let mending = tokio::spawn(async move {
            let _alone = one_at_a_time.lock().await;
            if discard {
                memory.discard_damaged().await?;
                return Ok(Salvaged::default());
            }
            memory.repair().await
        });
        mending.await.unwrap_or(Err(StoreError::Closed))
    }

    /// A problem of the memory that does not affect the whole store, and the advice for it.
    pub fn problem(&self) -> Option<(Arc<str>, Arc<str>)> {
        self.memory.problem()
    }

    /// Applies a new configuration.
    pub fn set(&self, config: &Config) {
        self.memory.set(settings(config));
        self.wanted
            .store(Arc::new(config.search.embeddings.clone()));
        self.memory.model_changed();
    }
}

fn settings(config: &Config) -> Settings {
    Settings {
        extract: config.memory.extract,
        wait: config.wait,
    }
}

/// The definitions that merged views list instead of all tools of the memory.
#[expect(
    clippy::unnecessary_wraps,
    reason = "builds without the memory have none"
)]
pub(super) fn compact() -> Option<&'static [Raw]> {
    Some(&switchboard_memory::offers().compact)
}

/// Tests if a tool has an argument for the namespace.
pub(super) fn takes_namespace(tool: &str) -> bool {
    static TAKING: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let tools = &switchboard_memory::offers().tools;
        let taking = tools.iter().filter_map(|tool| {
            let properties = tool.member("inputSchema")?.member("properties")?;
            properties.member("namespace")?;
            tool.member("name")?.to_text()
        });
        taking.collect()
    });
    TAKING.contains(tool)
}

/// The snapshot of the memory's definitions, which are known without a connection.
#[expect(
    clippy::unnecessary_wraps,
    reason = "builds without the memory have none"
)]
pub(super) fn snapshot(server: &Server, fingerprint: fn(&Server) -> String) -> Option<Snapshot> {
    let offers = switchboard_memory::offers().clone();
    Some(Snapshot {
        server: Wanted::NAME.to_owned(),
        fingerprint: fingerprint(server),
        held: Held::default(),
        offers: Arc::new(Offers {
            meta: None,
            tools: offers.tools,
            prompts: offers.prompts,
            resources: offers.resources,
            templates: offers.templates,
            capabilities: Some(offers.capabilities),
            server_info: Some(offers.server_info),
            instructions: Some(offers.instructions.to_owned()),
            era: Some(offers.revision.era()),
            revision: Some(offers.revision),
            unlisted: false,
            asks_back: false,
            directories: Vec::new(),
            apart: Vec::new(),
        }),
    })
}
