//! Writes that wait to be committed, each whole or not at all.

use std::fmt;

use tokio::sync::oneshot;

use crate::engine::sqlite::{Commit, CommitTask, SqliteError};
use crate::types::error::{Fate, StoreError};

/// A write, whatever it is.
pub(crate) struct Write {
    bytes: usize,
    lasting: bool,
    task: Box<dyn Task>,
}

/// What is to be done, and who is to be told.
trait Task: Send {
    /// Does it; `false` if that is not to be. After a trouble it can be done again.
    fn make(&mut self, commit: &mut Commit<'_>) -> Result<bool, SqliteError>;

    /// Tells what it came to. Whoever waited may have gone.
    fn answer(self: Box<Self>, refusal: Option<StoreError>);
}

impl Write {
    /// A write that takes about so much room while it waits, and where its answer arrives. What it did
    /// is undone if it comes to an error.
    pub(crate) fn new<T, M>(bytes: usize, make: M) -> (Self, oneshot::Receiver<Fate<T>>)
    where
        T: Send + 'static,
        M: FnMut(&mut Commit<'_>) -> Result<Fate<T>, SqliteError> + Send + 'static,
    {
        Self::followed(bytes, make, |_| ())
    }

    /// The same, with somebody who is told what was made on the thread of the store, before anybody else
    /// and in the order of commits.
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

    /// The same, which a loss of power may undo: it can be made again.
    pub(crate) fn passing(self) -> Self {
        Self {
            lasting: false,
            ..self
        }
    }

    /// About how much room it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Says what it came to, once that is committed.
    pub(crate) fn answer(self) {
        self.task.answer(None);
    }

    /// Says that it was not made.
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
    /// Not there until it was made.
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
            // It is only asked for after it was made.
            None => self.fate.unwrap_or(Err(StoreError::Closed)),
        };
        if let Ok(made) = &fate {
            (self.follow)(made);
        }
        drop(self.answer.send(fate));
    }
}
