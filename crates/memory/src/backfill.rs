//! The embedding backfill: a thread that embeds the texts without a vector, a few at a time.
//!
//! Vectors of a new model are stored beside the ones of the model in use. When every text has one, the
//! library switches to all of them at once, and the vectors of the old model are removed: no search ever
//! compares vectors of two models.

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

/// The number of texts that the model embeds before the thread checks for changes.
const BATCH: usize = 32;
/// The divisor for the pause after a batch, relative to the time the batch took, which leaves the processor
/// to others.
const REST_SHARE: u32 = 4;
/// Time until a retry after an error, unless something changes before.
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
    /// Tells the thread to end.
    resting: AtomicBool,
}

#[derive(Default)]
struct State {
    is_running: bool,
    /// Something has changed since the thread last looked.
    has_news: bool,
    /// Model that searches use.
    serving: Option<Model>,
    /// Model whose vectors are being computed.
    filling: Option<Model>,
    problem: Option<Arc<str>>,
    /// The thread has looked for a model.
    has_looked: bool,
    /// Number of vectors on their way into the store, and from there into the library.
    in_hand: u64,
}

/// The state of the vectors.
#[derive(Debug, Clone)]
pub(crate) struct Outlook {
    /// Model that searches use.
    pub(crate) serving: Option<String>,
    /// Model whose vectors are being computed.
    pub(crate) filling: Option<String>,
    pub(crate) problem: Option<Arc<str>>,
    pub(crate) has_looked: bool,
    /// Number of vectors that the store may have and the library does not.
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

    /// Wakes the thread, or starts it, because there may be work.
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

    /// Ends the thread, because it is not needed any more.
    pub(crate) fn rest(&self) {
        self.shared.resting.store(true, Relaxed);
        // Taking the lock ensures that the thread has not checked yet, or is asleep already.
        drop(self.shared.state.lock());
        self.shared.stirred.notify_all();
    }

    /// Returns the model that searches use.
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

    /// Runs the thread: does the work there is, and sleeps until something changes.
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

    /// Computes a vector of the wanted model for every text, and puts the model to use.
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
            // A model that is no longer wanted serves until its successor is complete, unless no model is
            // wanted.
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
        // A switch that was interrupted may have left other models behind.
        if !is_active || models.len() > 1 {
            self.runtime
                .block_on(self.memories.activate(&fingerprint))?;
        }
        // The library is asked only now: one that is built meanwhile picks up this model itself.
        let used = self.index.ask(|library| library.model().map(Arc::from));
        if self.runtime.block_on(used)? != Some(Arc::clone(&fingerprint)) {
            let shared = Arc::clone(self);
            let in_use = self.index.use_model(fingerprint, dimensions, move || {
                shared.state.lock().serving = Some(model);
            });
            self.runtime.block_on(in_use)?;
            // Texts stored since then have no vector.
            self.state.lock().has_news = true;
        }
        Ok(())
    }

    /// Returns `true` if this is still the wanted model; it only checks if something has changed.
    fn is_wanted(&self, fingerprint: &str) -> bool {
        if !self.state.lock().has_news {
            return true;
        }
        let wanted = (self.wanted)();
        wanted.is_some_and(|wanted| wanted.fingerprint() == fingerprint)
    }

    /// Computes vectors for the next few texts. Returns the row of the last one, if there was any.
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
                // A text in which the model knows nothing gets a zero vector, which is similar to no other.
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
