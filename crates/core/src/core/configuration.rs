//! The configuration while the gateway runs: reloaded when its file changes, and edited on behalf
//! of a user.

use std::{
    borrow::Cow,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use switchboard_base::{
    audit::{Actor, NoRoom, Reservation},
    scrub,
};
use switchboard_config::{Config, ConfigError, ConfigLock, EditError, LockError, Written};
use switchboard_outbound::{memory, start_approval};
use switchboard_rest::{events::ConfigEvent, trust::Start};
use switchboard_wire::with_hint;
use tokio::{
    sync::{Mutex, OwnedMutexGuard, mpsc, watch},
    time::{sleep, timeout},
};

use super::Core;

/// Editors write a file in several steps; it is read after this time without a change.
const QUIET: Duration = Duration::from_millis(150);
/// The most such pauses to wait for before the file is read anyway.
const QUIET_MAX: u32 = 20;

/// A change of the configuration that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The text cannot be edited that way.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The file cannot be read or written.
    #[error("cannot change {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// Another process holds the lock of the file, or the lock cannot be taken.
    #[error("cannot change the configuration: {0}")]
    Lock(#[from] LockError),
    /// The text of the file, or the edited text, is not a valid configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The audit log has no room for the change.
    #[error("cannot change the configuration: the audit log is full")]
    Audit,
}

impl ChangeError {
    /// Advice for the user, apart from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Edit(error) => error.hint(),
            Self::Config(error) => error.hint(),
            Self::Lock(_) | Self::Audit => Some("try again".into()),
            Self::File { .. } => None,
        }
    }
}

/// Serializes changes of the configuration.
#[derive(Debug)]
pub struct Configuration {
    /// Held from reading the file until it is applied, so that no change undoes another.
    changing: Arc<Mutex<()>>,
    /// Notifies of every configuration that was applied.
    applied: watch::Sender<()>,
    /// The reason why the last version of the file is not applied.
    problem: parking_lot::Mutex<Option<Arc<str>>>,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            changing: Arc::default(),
            applied: watch::Sender::new(()),
            problem: parking_lot::Mutex::default(),
        }
    }
}

impl Configuration {
    /// Subscribes to every configuration that is applied from now on.
    pub fn applied(&self) -> watch::Receiver<()> {
        self.applied.subscribe()
    }

    /// The reason why the last version of the file is not applied.
    pub fn problem(&self) -> Option<Arc<str>> {
        let problem = self.problem.lock();
        problem.clone()
    }

    fn set_problem(&self, problem: Option<Arc<str>>) {
        let mut known = self.problem.lock();
        *known = problem;
    }

    async fn changing(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.changing).lock_owned().await
    }
}

impl Core {
    /// Applies a configuration: starts, stops and changes servers to match it.
    pub async fn apply(&self, config: Config) {
        // The file has been changed already, so there is no act to refuse.
        let room = self.audit.room().await.ok();
        self.apply_as(config, None, room).await;
    }

    /// The same on behalf of an actor.
    async fn apply_as(&self, config: Config, actor: Option<Actor>, room: Option<Reservation>) {
        self.configuration.set_problem(None);
        let config = memory::included(config);
        let embeddings = config.search.embeddings.clone();
        let before = self.config.load().search.embeddings.clone();
        // A task of its own, so that it completes even if the caller leaves.
        let servers = Arc::clone(&self.servers);
        let applying = async move { servers.apply(config, actor.as_ref(), room).await };
        let applying = tokio::spawn(applying);
        // An error means that the runtime shuts down.
        let _ = applying.await;
        if let Some(memory) = &self.deps().memory {
            memory.set(&self.config.load());
        }
        if embeddings != before {
            self.finder.settings_changed();
        }
        self.configuration.applied.send_replace(());
        self.events.tell("config.applied", || serde_json::json!({}));
    }

    /// Reports a configuration file that was changed and cannot be applied. The previous
    /// configuration stays in force.
    pub fn refuse_config(&self, problem: &str) {
        tracing::error!(%problem, "Cannot apply the changed configuration; the gateway keeps the previous one.");
        let told = scrub::shared(problem.into());
        self.configuration.set_problem(Some(told));
        self.events.tell("config.refused", || ConfigEvent {
            problem: problem.to_string(),
        });
    }

    /// Reads the configuration file and applies it. If it cannot be applied, the previous
    /// configuration stays in force.
    pub async fn reload(&self) -> Result<(), ConfigError> {
        let _changing = self.configuration.changing().await;
        let path = self.home.config_file().to_owned();
        let loaded = tokio::task::spawn_blocking(move || Config::load(&path)).await;
        match loaded {
            Ok(Ok(config)) => {
                if config != **self.config.load() || self.configuration.problem().is_some() {
                    self.apply(config).await;
                }
                Ok(())
            }
            Ok(Err(error)) => {
                self.refuse_config(&with_hint(&error, error.hint()));
                Err(error)
            }
            // Reading it panicked, or the runtime shuts down.
            Err(_) => Ok(()),
        }
    }

    /// Handles a change of the file by another program. A missing file is a mistake, or an editor
    /// at work, and does not mean that the user wants no servers.
    async fn file_changed(&self) {
        let path = self.home.config_file();
        let file = path.to_owned();
        let read = tokio::task::spawn_blocking(move || switchboard_config::read_trusted(&file));
        let lost = match read.await {
            // A full disk, or an editor at work, may leave the file empty.
            Ok(Ok(text)) => text.is_none_or(|text| text.trim_ascii().is_empty()),
            Ok(Err(_)) => false,
            // The runtime shuts down.
            Err(_) => return,
        };
        if !lost {
            // A file that cannot be applied has been reported.
            let _ = self.reload().await;
        } else if **self.config.load() != Config::default() {
            let problem = format!(
                "{} is missing or empty, so the gateway keeps the previous configuration",
                path.display()
            );
            self.refuse_config(&problem);
        }
    }

    /// Edits the text of the configuration file and applies the result.
    pub async fn change_config_as(
        &self,
        actor: Option<Actor>,
        edit: impl FnOnce(&str) -> Result<String, EditError> + Send + 'static,
    ) -> Result<(), ChangeError> {
        let path = self.home.config_file().to_owned();
        let changing = self.configuration.changing().await;
        let room = self.audit.room().await;
        let room = room.map_err(|NoRoom| ChangeError::Audit)?;
        // The caller may leave before the file is written, so the work holds the lock itself.
        let work = move || (change_file(path, edit), changing);
        let (config, _changing) = match tokio::task::spawn_blocking(work).await {
            Ok((changed, changing)) => (changed?, changing),
            Err(_) => return Ok(()),
        };
        self.apply_as(config, actor, Some(room)).await;
        Ok(())
    }

    /// Watches the configuration file until the gateway stops.
    pub fn watch_config(self: &Arc<Self>) {
        let core = Arc::clone(self);
        let (sender, mut changes) = mpsc::channel(1);
        let file = core.home.config_file().to_owned();
        let name = file.file_name().map(ToOwned::to_owned);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let concerns = match &event {
                Ok(event) => {
                    !event.kind.is_access()
                        && event
                            .paths
                            .iter()
                            .any(|path| path.file_name() == name.as_deref())
                }
                // Events were missed: read the file to be sure.
                Err(_) => true,
            };
            if concerns {
                // Full: a check is pending already.
                let _ = sender.try_send(());
            }
        });
        // Watches the directory, because editors replace the file rather than write to it.
        let dir = file.parent().map(ToOwned::to_owned).unwrap_or_default();
        let watching = watcher.and_then(|mut watcher: RecommendedWatcher| {
            watcher.watch(&dir, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        let watcher = match watching {
            Ok(watcher) => watcher,
            Err(error) => {
                tracing::warn!(%error, "Cannot watch the configuration; send SIGHUP to reload it.");
                return;
            }
        };
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    change = changes.recv() => if change.is_none() { return },
                    () = core.lifecycle.stopped() => break,
                }
                for _ in 0..QUIET_MAX {
                    match timeout(QUIET, changes.recv()).await {
                        Ok(Some(())) => sleep(QUIET).await,
                        _ => break,
                    }
                }
                core.file_changed().await;
            }
            drop(watcher);
        });
    }
}

impl Core {
    /// Starts a held server, if its entry still has this fingerprint. Returns `true` if it has.
    pub async fn release(
        &self,
        name: &str,
        fingerprint: &str,
        actor: Option<Actor>,
    ) -> Result<bool, ChangeError> {
        let release = |text: &str, name: &str, start: &Start| {
            let file = start.settings.get("file");
            let file = file.map(|file| file.as_str().unwrap_or_default());
            switchboard_config::release_server(text, name, file)
        };
        self.change_held(name, fingerprint, actor, release).await
    }

    /// Disables a held server, if its entry still has this fingerprint. Returns `true` if it has.
    pub(crate) async fn refuse(
        &self,
        name: &str,
        fingerprint: &str,
        actor: Option<Actor>,
    ) -> Result<bool, ChangeError> {
        let off =
            |text: &str, name: &str, _: &Start| switchboard_config::set_enabled(text, name, false);
        self.change_held(name, fingerprint, actor, off).await
    }

    async fn change_held(
        &self,
        name: &str,
        fingerprint: &str,
        actor: Option<Actor>,
        change: fn(&str, &str, &Start) -> Result<String, EditError>,
    ) -> Result<bool, ChangeError> {
        let (name, fingerprint) = (name.to_owned(), fingerprint.to_owned());
        let deps = Arc::clone(self.deps());
        let changed = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&changed);
        self.change_config_as(actor, move |text| {
            let config = switchboard_config::parse(text, "switchboard.json").ok();
            let server = config.as_ref().and_then(|config| config.servers.get(&name));
            let waiting = server.and_then(|server| start_approval::waiting(&name, server, &deps));
            let Some(waiting) = waiting.filter(|waiting| waiting.fingerprint == fingerprint) else {
                return Ok(text.to_owned());
            };
            done.store(true, Relaxed);
            change(text, &name, &waiting)
        })
        .await?;
        Ok(changed.load(Relaxed))
    }
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn change_file(
    path: PathBuf,
    edit: impl FnOnce(&str) -> Result<String, EditError>,
) -> Result<Config, ChangeError> {
    let lock = ConfigLock::take(&path)?;
    let text = match switchboard_config::read_trusted(&path)?.map(text_of) {
        Some(Ok(text)) => text,
        None => "{}\n".to_owned(),
        Some(Err(source)) => return Err(ChangeError::File { path, source }),
    };
    let name = path.display().to_string();
    let edited = edit(&text)?;
    let config = switchboard_config::parse(&edited, &name).map_err(|problems| {
        // Report the positions in the text that the user sees, if that has problems itself.
        let problems = switchboard_config::parse(&text, &name)
            .err()
            .unwrap_or(problems);
        ConfigError::Invalid { problems }
    })?;
    match lock.write(&edited) {
        Ok(Written::SameMode) => Ok(config),
        Ok(Written::Narrowed) => {
            tracing::warn!(file = %path.display(), "The configuration contains secrets in plain text, so the gateway made it readable by you only.");
            Ok(config)
        }
        Err(source) => Err(ChangeError::File { path, source }),
    }
}
