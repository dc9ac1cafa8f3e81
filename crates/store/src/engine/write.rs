//! Queued writes, each of which is atomic.

use std::fmt;

use tokio::sync::oneshot;

use crate::engine::sqlite::{Commit, CommitTask, SqliteError};
use crate::types::error::{Fate, StoreError};

/// A write of any type.
pub(crate) struct Write {
    bytes: usize,
    lasting: bool,
    task: Box<dyn Task>,
}

/// An operation and the channel for its result.
trait Task: Send {
    /// Runs the operation; `Ok(false)` means that its effects are to be rolled back. After an error, it
    /// can be run again.
    fn make(&mut self, commit: &mut Commit<'_>) -> Result<bool, SqliteError>;

    /// Sends the result. The caller may have stopped waiting.
    fn answer(self: Box<Self>, refusal: Option<StoreError>);
}

impl Write {
    /// Returns a write with an approximate size in bytes, and the channel that receives its result. If
    /// the operation returns an error, its effects are rolled back.
    pub(crate) fn new<T, M>(bytes: usize, make: M) -> (Self, oneshot::Receiver<Fate<T>>)
    where
        T: Send + 'static,
        M: FnMut(&mut Commit<'_>) -> Result<Fate<T>, SqliteError> + Send + 'static,
    {
        Self::followed(bytes, make, |_| ())
    }

    /// Like [`new`](Self::new), but calls `follow` with the result on the store's thread, before the
    /// caller receives it and in commit order.
    pub(crate) fn followed<T, M, F>(
        bytes: usize,
        make: M,
        follow: F,
    ) -> (Self, oneshot::Receiver<Fate<T>>)
    where
        T: Send + 'static,
        M: FnMut(&mut Commit<'_>) -> Result<Fate<T>, SqliteError> + Send + 'static,
        F: FnOnce(&T) + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let task = Box::new(Made {
            make,
            follow,
            fate: None,
            answer,
        });
        let lasting = true;
        let write = Self {
            bytes,
            lasting,
            task,
        };
        (write, answered)
    }

    /// Marks the write as one that a loss of power may undo, because it can be repeated.
    pub(crate) fn passing(self) -> Self {
        Self {
            lasting: false,
            ..self
        }
    }

    /// Approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sends the result, once it is committed.
    pub(crate) fn answer(self) {
        self.task.answer(None);
    }

    /// Reports that the write was not applied.
    pub(crate) fn refuse(self, error: StoreError) {
        self.task.answer(Some(error));
    }
}

impl CommitTask for Write {
    fn is_lasting(&self) -> bool {
        self.lasting
    }

    fn make(&mut self, commit: &mut Commit<'_>) -> Result<bool, SqliteError> {
        self.task.make(commit)
    }
}

impl fmt::Debug for Write {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Write")
            .field("bytes", &self.bytes)
            .field("lasting", &self.lasting)
            .finish_non_exhaustive()
    }
}

struct Made<T, M, F> {
    make: M,
    follow: F,
    /// `None` until the operation has run.
    fate: Option<Fate<T>>,
    answer: oneshot::Sender<Fate<T>>,
}

impl<T, M, F> Task for Made<T, M, F>
where
    T: Send,
    M: FnMut(&mut Commit<'_>) -> Result<Fate<T>, SqliteError> + Send,
    F: FnOnce(&T) + Send,
{
    fn make(&mut self, commit: &mut Commit<'_>) -> Result<bool, SqliteError> {
        let fate = (self.make)(commit)?;
        let made = fate.is_ok();
        self.fate = Some(fate);
        Ok(made)
    }

    fn answer(self: Box<Self>, refusal: Option<StoreError>) {
        let fate = match refusal {
            Some(error) => Err(error),
            // The result is only sent after the operation has run.
            None => self.fate.unwrap_or(Err(StoreError::Closed)),
        };
        if let Ok(made) = &fate {
            (self.follow)(made);
        }
        drop(self.answer.send(fate));
    }
}
