//! The models that say what tools mean: the one that is built in, and a better one if its files are there.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use switchboard_config::Embeddings;
use switchboard_embed::{Embedder, Joined, MiniLm, ModelError, Role, StaticTable};
use switchboard_search::{Cache, Tool, Vectors};

use crate::{fetch, health::PartState, private, status::Part};

/// A file of vectors with more bytes is none of ours.
const CACHE_BYTES: u64 = 512 * 1024 * 1024;

/// A model.
pub(crate) enum Model {
    /// Part of the program.
    BuiltIn(&'static StaticTable),
    Sentences(Box<Joined>),
}

impl Model {
    /// The one that is part of the program.
    pub(crate) fn built_in() -> Self {
        Self::BuiltIn(StaticTable::built_in())
    }

    fn embedder(&self) -> &dyn Embedder {
        match self {
            Self::BuiltIn(table) => *table,
            Self::Sentences(model) => &**model,
        }
    }

    /// What tells its vectors from those of others.
    pub(crate) fn fingerprint(&self) -> &str {
        self.embedder().fingerprint()
    }

    /// How much the words of a query count beside its meaning.
    pub(crate) fn words_beside(&self) -> f32 {
        match self {
            Self::BuiltIn(_) => switchboard_search::WORDS_BESIDE_TABLE,
            Self::Sentences(_) => switchboard_search::WORDS_BESIDE_SENTENCES,
        }
    }

    /// What a query means. A model that fails is not heard.
    pub(crate) fn embed(&self, text: &str) -> Option<Vec<f32>> {
        self.embedder().embed(Role::Query, text).ok().flatten()
    }

    /// What the tools of a server mean.
    pub(crate) fn vectors(
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

/// Where models come from. Its methods read files: they are for threads that may wait.
#[derive(Debug)]
pub(crate) struct Models {
    /// `models` of the home.
    folder: PathBuf,
    /// Where vectors are kept.
    kept: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The sentence model, and the folder it came from.
    loaded: Option<(PathBuf, Arc<Model>)>,
    /// Why there is none.
    problem: Option<Arc<str>>,
    /// A folder that could not be used is not tried again by itself.
    refused: Option<PathBuf>,
}

impl State {
    fn refuse(&mut self, folder: &Path, error: &ModelError) {
        tracing::warn!(folder = %folder.display(), %error, "The sentence model cannot be used.");
        self.problem = Some(format!("{}: {error}", folder.display()).into());
        self.refused = Some(folder.to_owned());
    }
}

impl Models {
    pub(crate) fn new(folder: PathBuf, kept: PathBuf) -> Self {
        Self {
            folder,
            kept,
            state: Mutex::default(),
        }
    }

    /// The folder of the sentence model that these settings want, and from where it can be had.
    pub(crate) fn wanted(&self, settings: &Embeddings) -> Option<(PathBuf, Option<fetch::Source>)> {
        let own = || self.folder.join(fetch::MINILM);
        match settings {
            Embeddings::Off | Embeddings::BuiltIn => None,
            Embeddings::Auto => Some((own(), None)),
            Embeddings::MiniLm => Some((own(), Some(fetch::Source::published()))),
            Embeddings::Folder(folder) => Some(match fetch::Source::at(folder) {
                Some(source) => (self.folder.join(source.folder_name()), Some(source)),
                None => (PathBuf::from(folder), None),
            }),
        }
    }

    /// The sentence model in this folder, if there is one that can be used.
    pub(crate) fn load(&self, folder: &Path, is_said: bool) -> Option<Arc<Model>> {
        {
            let state = self.lock();
            if let Some((from, model)) = &state.loaded
                && from == folder
            {
                return Some(Arc::clone(model));
            }
            if state.refused.as_deref() == Some(folder) || !(is_said || folder.is_dir()) {
                return None;
            }
        }
        // It takes a while, and others ask how it stands.
        let opened = MiniLm::open(folder);
        let mut state = self.lock();
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

    /// The model in this folder failed at its work.
    pub(crate) fn failed(&self, folder: &Path, error: &ModelError) {
        let mut state = self.lock();
        state.loaded = None;
        state.refuse(folder, error);
    }

    /// There is no model, for this reason.
    pub(crate) fn set_problem(&self, problem: Option<Arc<str>>) {
        self.lock().problem = problem;
    }

    /// Settings have changed: what was refused is tried again.
    pub(crate) fn pardon(&self) {
        *self.lock() = State::default();
    }

    /// The vectors that were kept of this model.
    pub(crate) fn read_cache(&self, model: &Model) -> Cache {
        let file = self.cache_file(model);
        let found = private::read(&file, CACHE_BYTES);
        let cache = found.and_then(|bytes| Cache::decode(&bytes));
        cache.unwrap_or_else(|| Cache::new(model.embedder().dimensions()))
    }

    /// Keeps vectors for the next start.
    pub(crate) fn write_cache(&self, model: &Model, cache: &Cache) {
        let file = self.cache_file(model);
        if let Err(error) = private::write(&file, &cache.encode()) {
            tracing::warn!(%error, file = %file.display(), "Cannot keep vectors for the next start.");
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

    /// How it is.
    pub(crate) fn part(&self, used: Option<&Model>, settings: &Embeddings) -> Part {
        let state = self.lock();
        let name = "embeddings".to_owned();
        let uses = match used {
            Some(Model::BuiltIn(_)) => "the built-in vectors",
            Some(Model::Sentences(model)) => model.name(),
            None if *settings == Embeddings::Off => "words alone",
            None => "the built-in vectors",
        };
        if let Some(message) = &state.problem {
            return Part {
                name,
                state: PartState::Error {
                    message: Arc::clone(message),
                },
                note: Some(format!("tools are found with {uses} meanwhile").into()),
            };
        }
        let is_coming = state.loaded.is_some() && !matches!(used, Some(Model::Sentences(_)));
        Part {
            name,
            state: if is_coming && *settings != Embeddings::Off {
                PartState::Initializing
            } else {
                PartState::Ready
            },
            note: Some(format!("tools are found with {uses}").into()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
