//! Embedding models: the built-in one, and a better one if its files are present.
//!
//! Users of a model call [`Models::best`] on a thread that may block, and call it again after every change.
//! The weights are in memory only once, regardless of the number of users.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use switchboard_base::health::{Part, PartState};
use switchboard_config::Embeddings;
use switchboard_embed::{Embedder, Joined, MiniLm, ModelError, Role, StaticTable};
use switchboard_files::{Links, read, write_private};
use switchboard_search::{Cache, Tool, Vectors};
use switchboard_wire::with_hint;
use tokio::{sync::watch, time::Instant};

use crate::fetch;

/// The largest file of vectors that is read, in bytes.
const CACHE_BYTES: u64 = 512 * 1024 * 1024;

/// The base of the pause after a failed download; it doubles with each failure, from 1 minute up to 32.
const FETCH_PAUSE: Duration = Duration::from_secs(30);

/// A model.
pub enum Model {
    /// The table that is part of the program.
    BuiltIn(&'static StaticTable),
    /// The built-in table together with a sentence model.
    Sentences(Box<Joined>),
}

impl Model {
    /// The model that is part of the program.
    pub fn built_in() -> Self {
        Self::BuiltIn(StaticTable::built_in())
    }

    /// The embedder that finds tools.
    fn embedder(&self) -> &dyn Embedder {
        match self {
            Self::BuiltIn(table) => *table,
            Self::Sentences(model) => &**model,
        }
    }

    /// The model alone, without the table that helps to find tools: the dot products of its vectors measure
    /// the similarity of two texts.
    #[cfg(feature = "memory")]
    pub(crate) fn alone(&self) -> Arc<dyn Embedder> {
        match self {
            Self::BuiltIn(table) => Arc::new(*table),
            Self::Sentences(model) => Arc::clone(model.sentences()) as _,
        }
    }

    /// Identifies the model that made a vector.
    pub fn fingerprint(&self) -> &str {
        self.embedder().fingerprint()
    }

    /// Tests if it reads sentences, which is slow.
    pub fn is_sentences(&self) -> bool {
        matches!(self, Self::Sentences(_))
    }

    /// The weight of a query's words relative to its meaning.
    pub fn words_beside(&self) -> f32 {
        match self {
            Self::BuiltIn(_) => switchboard_search::WORDS_BESIDE_TABLE,
            Self::Sentences(_) => switchboard_search::WORDS_BESIDE_SENTENCES,
        }
    }

    /// The embedding of a query for tools; `None` if the model fails.
    pub fn embed(&self, text: &str) -> Option<Vec<f32>> {
        self.embedder().embed(Role::Query, text).ok().flatten()
    }

    /// The embeddings of a server's tools.
    pub fn vectors(
        &self,
        tools: &[Tool<'_>],
        cache: &mut Cache,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Vectors>, ModelError> {
        Vectors::new(tools, self.embedder(), cache, go_on)
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Model")
            .field(&self.embedder().name())
            .finish()
    }
}

/// The available models.
#[derive(Debug)]
pub struct Models {
    /// The folder `models` of the home.
    folder: PathBuf,
    /// The folder of cached vectors.
    kept: PathBuf,
    state: Mutex<State>,
    /// Held while a model is read, so that it is read once.
    reading: Mutex<()>,
    /// Held while a model is downloaded, so that it is downloaded once.
    fetching: tokio::sync::Mutex<()>,
    /// Counts the events after which another model may be the best.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    /// The sentence model, and the folder that it was loaded from.
    loaded: Option<(PathBuf, Arc<Model>)>,
    /// The reason why there is none.
    problem: Option<Arc<str>>,
    /// A folder that could not be used. It is not retried automatically.
    refused: Option<PathBuf>,
    /// The number of failed downloads in a row, and the time of the next attempt.
    unfetched: Option<(u32, Instant)>,
}

impl State {
    fn refuse(&mut self, folder: &Path, error: &ModelError) {
        let error = with_hint(error, error.hint());
        tracing::warn!(folder = %folder.display(), %error, "Cannot load the sentence model.");
        self.problem = Some(format!("{}: {error}", folder.display()).into());
        self.refused = Some(folder.to_owned());
    }
}

impl Models {
    /// Uses models in `folder`, and caches vectors in `kept`.
    pub fn new(folder: PathBuf, kept: PathBuf) -> Self {
        Self {
            folder,
            kept,
            state: Mutex::default(),
            reading: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    /// Notifies when another model may be the best: the settings changed, a model was downloaded, or one
    /// failed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The best model that is available and allowed by these settings: the sentence model that they select,
    /// or else the built-in one; `None` if they turn models off. May read files, so call it on a thread that
    /// may block.
    pub fn best(&self, settings: &Embeddings) -> Option<Arc<Model>> {
        if *settings == Embeddings::Off {
            return None;
        }
        let sentences = self.wanted(settings).and_then(|(folder, source)| {
            // A folder that the user configured has to exist; others are optional.
            let is_said = source.is_none() && *settings != Embeddings::Auto;
            self.load(&folder, is_said)
        });
        Some(sentences.unwrap_or_else(|| Arc::new(Model::built_in())))
    }

    /// Downloads the model that these settings select, if it is downloadable and missing. On failure, returns
    /// the time after which to try again; earlier calls do nothing.
    pub async fn fetch(&self, settings: &Embeddings) -> Option<Duration> {
        let (folder, source) = self.wanted(settings)?;
        let source = source?;
        let _fetching = self.fetching.lock().await;
        if folder.is_dir() {
            return None;
        }
        let failures = match self.state.lock().unfetched {
            Some((failures, again)) => {
                let pause = again.saturating_duration_since(Instant::now());
                if !pause.is_zero() {
                    return Some(pause);
                }
                failures
            }
            None => 0,
        };
        let since = *self.changes.borrow();
        let fetched = source.fetch(&folder).await;
        let mut state = self.state.lock();
        // If the settings have changed, the outcome says nothing about the model that they select now.
        let is_wanted = *self.changes.borrow() == since;
        match fetched {
            Ok(()) => {
                if is_wanted {
                    *state = State::default();
                }
                self.tell(&state);
                None
            }
            Err(error) => {
                tracing::warn!(%error, "Cannot download the sentence model.");
                if !is_wanted {
                    return Some(Duration::ZERO);
                }
                let failures = failures + 1;
                let pause = FETCH_PAUSE * 2_u32.pow(failures.min(6));
                state.problem = Some(error.to_string().into());
                state.unfetched = Some((failures, Instant::now() + pause));
                Some(pause)
            }
        }
    }

    /// The folder of the sentence model that these settings select, and its download source.
    fn wanted(&self, settings: &Embeddings) -> Option<(PathBuf, Option<fetch::Source>)> {
        if !cfg!(feature = "model") {
            return None;
        }
        let own = || self.folder.join(fetch::MINILM);
        match settings {
            Embeddings::Off | Embeddings::BuiltIn => None,
            Embeddings::Auto => Some((own(), None)),
            Embeddings::MiniLm => Some((own(), Some(fetch::Source::published()))),
            Embeddings::Folder(folder) => Some(match fetch::Source::at(folder) {
                Some(source) => (self.folder.join(source.folder_name()), Some(source)),
                // A relative path is relative to the folder of models.
                None => (self.folder.join(folder), None),
            }),
        }
    }

    /// The sentence model in this folder, if it can be used.
    fn load(&self, folder: &Path, is_said: bool) -> Option<Arc<Model>> {
        let _reading = self.reading.lock();
        {
            let state = self.state.lock();
            if let Some((from, model)) = &state.loaded
                && from == folder
            {
                return Some(Arc::clone(model));
            }
            if state.refused.as_deref() == Some(folder) || !(is_said || folder.is_dir()) {
                return None;
            }
        }
        // Loading takes a while, and other threads query the state meanwhile.
        let opened = MiniLm::open(folder);
        let mut state = self.state.lock();
        match opened {
            Ok(model) => {
                let model = Arc::new(Model::Sentences(Box::new(Joined::new(model))));
                state.loaded = Some((folder.to_owned(), Arc::clone(&model)));
                state.problem = None;
                Some(model)
            }
            Err(error) => {
                state.refuse(folder, &error);
                None
            }
        }
    }

    /// Reports that the model failed, so that it is not used again.
    pub fn failed(&self, model: &Arc<Model>, error: &ModelError) {
        let mut state = self.state.lock();
        let is_it = |(_, loaded): &mut (PathBuf, Arc<Model>)| Arc::ptr_eq(loaded, model);
        if let Some((folder, _)) = state.loaded.take_if(is_it) {
            state.refuse(&folder, error);
            self.tell(&state);
        }
    }

    /// Resets failures after a change of settings, so that refused models are tried again.
    pub fn pardon(&self) {
        let mut state = self.state.lock();
        *state = State::default();
        self.tell(&state);
    }

    /// Announces a change. The caller holds the state, so that the state and the count stay consistent.
    fn tell(&self, _: &State) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Reads the cached vectors of this model.
    pub fn read_cache(&self, model: &Model) -> Cache {
        let file = self.cache_file(model);
        let found = read(&file, CACHE_BYTES, Links::Follow).ok();
        let cache = found.and_then(|bytes| Cache::decode(&bytes));
        cache.unwrap_or_else(|| Cache::new(model.embedder().dimensions()))
    }

    /// Writes the cached vectors for the next start.
    pub fn write_cache(&self, model: &Model, cache: &Cache) {
        let file = self.cache_file(model);
        if let Err(error) = write_private(&file, &cache.encode()) {
            tracing::warn!(%error, file = %file.display(), "Cannot save vectors for the next start.");
        }
    }

    fn cache_file(&self, model: &Model) -> PathBuf {
        let name: String = model
            .fingerprint()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(80)
            .collect();
        self.kept.join(format!("{name}.vectors"))
    }

    /// The status for display.
    pub fn part(&self, used: Option<&Model>, settings: &Embeddings) -> Part {
        let state = self.state.lock();
        let name = "embeddings".to_owned();
        let uses = match used {
            Some(Model::BuiltIn(_)) => "the built-in vectors",
            Some(Model::Sentences(model)) => model.name(),
            None if *settings == Embeddings::Off => "keywords only",
            None => "the built-in vectors",
        };
        let wants_sentences = matches!(settings, Embeddings::MiniLm | Embeddings::Folder(_));
        let missing = (wants_sentences && !cfg!(feature = "model"))
            .then(|| "this build of Switchboard has no sentence model".into());
        if let Some(message) = state.problem.clone().or(missing) {
            return Part {
                name,
                state: PartState::Error { message },
                note: Some(format!("meanwhile, the search for tools uses {uses}").into()),
            };
        }
        let is_coming = state.loaded.is_some() && matches!(used, Some(Model::BuiltIn(_)));
        Part {
            name,
            state: if is_coming && *settings != Embeddings::Off {
                PartState::Initializing
            } else {
                PartState::Ready
            },
            note: Some(format!("the search for tools uses {uses}").into()),
        }
    }
}

#[cfg(test)]
mod tests;
