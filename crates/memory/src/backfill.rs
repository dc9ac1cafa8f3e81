//! The embedding backfill: a thread that embeds the texts without a vector, a few at a time.
//!
//! Vectors of another model than the one in use are put into the store beside them. When every text has one,
//! the library takes them all at once, and those of the old model go: no search ever compares vectors of two
//! models.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use switchboard_embed::{Quantised, Role};
use switchboard_store::memory::{Memories, Vector};
use switchboard_wire::with_hint;
use tokio::runtime::Handle;

use crate::{
    error::Error,
    index_thread::{IndexThread, News},
    service::Model,
};

/// So many texts are read by the model before it looks up again.
const BATCH: usize = 32;
/// After a batch the processor is left to others for a share of the time that it took.
const REST_SHARE: u32 = 4;
/// When something failed, it is tried again after so long, or when there is news.
const PAUSE: Duration = Duration::from_secs(30);

/// A handle to the thread. Clones share it.
#[derive(Clone)]
pub(crate) struct Backfill {
    shared: Arc<Shared>,
}

struct Shared {
    memories: Memories,
    index: IndexThread,
    wanted: Box<dyn Fn() -> Option<Model> + Send + Sync>,
    runtime: Handle,
    state: Mutex<State>,
    stirred: Condvar,
    /// The thread is to end.
    resting: AtomicBool,
}

#[derive(Default)]
struct State {
    is_running: bool,
    /// Something has changed since the thread last looked.
    has_news: bool,
    /// The model whose vectors are compared.
    serving: Option<Model>,
    /// The model whose vectors are being made.
    filling: Option<Model>,
    problem: Option<Arc<str>>,
    /// Whether the thread has looked for a model.
    has_looked: bool,
    /// Vectors on their way into the store and from there into the library.
    in_hand: u64,
}

/// How the vectors are.
#[derive(Debug, Clone)]
pub(crate) struct Outlook {
    /// The model whose vectors are compared.
    pub(crate) serving: Option<String>,
    /// The model whose vectors are being made.
    pub(crate) filling: Option<String>,
    pub(crate) problem: Option<Arc<str>>,
    pub(crate) has_looked: bool,
    /// Vectors that the store may have and the library has not.
    pub(crate) in_hand: u64,
}

impl Backfill {
    pub(crate) fn new(
        memories: Memories,
        index: IndexThread,
        wanted: Box<dyn Fn() -> Option<Model> + Send + Sync>,
    ) -> Self {
        let shared = Arc::new(Shared {
            memories,
            index,
            wanted,
            runtime: Handle::current(),
            state: Mutex::default(),
            stirred: Condvar::new(),
            resting: AtomicBool::new(false),
        });
        Self { shared }
    }

    /// There may be something to do.
    pub(crate) fn nudge(&self) {
        let mut state = self.shared.state.lock();
        state.has_news = true;
        self.shared.resting.store(false, Relaxed);
        if !state.is_running {
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().name("vectors".to_owned());
            state.is_running = thread.spawn(move || shared.work()).is_ok();
        }
        drop(state);
        self.shared.stirred.notify_all();
    }

    /// Nobody needs it any more.
    pub(crate) fn rest(&self) {
        self.shared.resting.store(true, Relaxed);
        // With the lock, so that the thread is either before its look or asleep.
        drop(self.shared.state.lock());
        self.shared.stirred.notify_all();
    }

    /// The model whose vectors are compared.
    pub(crate) fn serving(&self) -> Option<Model> {
        self.shared.state.lock().serving.clone()
    }

    pub(crate) fn outlook(&self) -> Outlook {
        let state = self.shared.state.lock();
        let name = |model: &Option<Model>| model.as_ref().map(|model| model.name().to_owned());
        Outlook {
            serving: name(&state.serving),
            filling: name(&state.filling),
            problem: state.problem.clone(),
            has_looked: state.has_looked,
            in_hand: state.in_hand,
        }
    }
}

impl fmt::Debug for Backfill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Backfill").field(&self.outlook()).finish()
    }
}

impl Shared {
    fn is_resting(&self) -> bool {
        self.resting.load(Relaxed)
    }

    /// What the thread does: looks, does what there is, sleeps until there is news.
    fn work(self: &Arc<Self>) {
        loop {
            let pause = match self.fill() {
                Ok(()) => {
                    self.state.lock().problem = None;
                    None
                }
                Err(trouble) => {
                    self.state.lock().problem = Some(trouble.text().into());
                    Some(PAUSE)
                }
            };
            let is_idle = |state: &mut State| !state.has_news && !self.is_resting();
            let mut state = self.state.lock();
            match pause {
                None => self.stirred.wait_while(&mut state, is_idle),
                Some(pause) => {
                    self.stirred.wait_while_for(&mut state, is_idle, pause);
                }
            }
            if self.is_resting() {
                *state = State::default();
                return;
            }
            state.has_news = false;
        }
    }

    /// Gives every text a vector of the wanted model, and has them used.
    fn fill(self: &Arc<Self>) -> Result<(), Error> {
        let wanted = (self.wanted)();
        let models = self.runtime.block_on(self.memories.models())?;
        let active = models.iter().find(|model| model.active);
        {
            let mut state = self.state.lock();
            state.has_looked = true;
            state.filling.clone_from(&wanted);
            let is_active =
                |model: &Model| active.is_some_and(|is| *is.fingerprint == *model.fingerprint());
            if wanted.as_ref().is_some_and(is_active) {
                state.serving.clone_from(&wanted);
            }
            // What is not wanted any more serves on until its successor is whole, unless none is wanted.
            if wanted.is_none() || !state.serving.as_ref().is_some_and(is_active) {
                state.serving = None;
            }
        }
        let Some(model) = wanted else { return Ok(()) };
        let fingerprint: Arc<str> = model.fingerprint().into();
        let dimensions = u32::try_from(model.dimensions()).unwrap_or(u32::MAX);
        let is_known = models.iter().any(|known| known.fingerprint == fingerprint);
        if !is_known {
            self.runtime
                .block_on(self.memories.add_model(&fingerprint, dimensions))?;
        }
        let is_active = active.is_some_and(|active| active.fingerprint == fingerprint);
        let mut after = 0;
        while let Some(last) = self.fill_some(&model, &fingerprint, after, is_active)? {
            after = last;
            if self.is_resting() || !self.is_wanted(&fingerprint) {
                return Ok(());
            }
        }
        // Of a swap that was cut short something may be left.
        if !is_active || models.len() > 1 {
            self.runtime
                .block_on(self.memories.activate(&fingerprint))?;
        }
        // Only now: a library that is made meanwhile takes this one too.
        let used = self.index.ask(|library| library.model().map(Arc::from));
        if self.runtime.block_on(used)? != Some(Arc::clone(&fingerprint)) {
            let shared = Arc::clone(self);
            let in_use = self.index.use_model(fingerprint, dimensions, move || {
                shared.state.lock().serving = Some(model);
            });
            self.runtime.block_on(in_use)?;
            // What was stored since is without a vector.
            self.state.lock().has_news = true;
        }
        Ok(())
    }

    /// Whether this is still the model that is wanted, if there is a reason to look.
    fn is_wanted(&self, fingerprint: &str) -> bool {
        if !self.state.lock().has_news {
            return true;
        }
        let wanted = (self.wanted)();
        wanted.is_some_and(|wanted| wanted.fingerprint() == fingerprint)
    }

    /// Gives the next few texts a vector; says which was the last, if there was any.
    fn fill_some(
        &self,
        model: &Model,
        fingerprint: &Arc<str>,
        after: u64,
        is_active: bool,
    ) -> Result<Option<u64>, Error> {
        let lacking = self.memories.lacking(fingerprint, after, BATCH);
        let lacking = self.runtime.block_on(lacking)?;
        let Some((last, _)) = lacking.last() else {
            return Ok(None);
        };
        let last = *last;
        let texts: Vec<&str> = lacking.iter().map(|(_, text)| &**text).collect();
        let begun = std::time::Instant::now();
        let made = model.embed_all(Role::Passage, &texts);
        let made = made.map_err(|error| Error::Internal(with_hint(&error, error.hint())))?;
        let took = begun.elapsed();
        let rows = lacking.iter().map(|(row, _)| *row);
        let vectors: Vec<Vector> = rows
            .zip(made)
            .map(|(row, vector)| {
                // A text without anything that the model knows is like nothing else.
                let vector = vector.unwrap_or_else(|| vec![0.0; model.dimensions()]);
                let Quantised { scale, numbers } = Quantised::from_vector(&vector);
                Vector {
                    row,
                    scale,
                    numbers,
                }
            })
            .collect();
        self.state.lock().in_hand = vectors.len() as u64;
        let put = self.memories.put_vectors(fingerprint, vectors.clone());
        let put = self.runtime.block_on(put);
        if put.is_ok() && is_active {
            self.index
                .tell(News::Vectors(Arc::clone(fingerprint), vectors));
        }
        self.state.lock().in_hand = 0;
        put?;
        thread::sleep(took / REST_SHARE);
        Ok(Some(last))
    }
}
