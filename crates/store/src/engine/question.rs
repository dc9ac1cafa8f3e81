//! What somebody wants to know, whatever it is.

use std::fmt;

use tokio::sync::oneshot;

use crate::engine::sqlite::{Database, SqliteError};
use crate::types::error::StoreError;

/// A question that waits for its answer.
pub(crate) trait Question: Send {
    /// Whether whoever asked has gone.
    fn is_gone(&self) -> bool;

    /// Answers it. After a trouble it can be asked again.
    fn answer(&mut self, database: &Database) -> Result<(), SqliteError>;

    /// Answers it with an error.
    fn refuse(&mut self, error: StoreError);
}

type Answer<T> = Result<T, StoreError>;

/// A question that is answered by reading, and where its answer arrives.
pub(crate) fn ask<T, R>(read: R) -> (Box<dyn Question>, oneshot::Receiver<Answer<T>>)
where
    T: Send + 'static,
    R: Fn(&Database) -> Result<T, SqliteError> + Send + 'static,
{
    let (answer, answered) = oneshot::channel();
    let answer = Some(answer);
    (Box::new(Asked { read, answer }), answered)
}

struct Asked<T, R> {
    read: R,
    /// Gone once it is used.
    answer: Option<oneshot::Sender<Answer<T>>>,
}

impl<T, R> Asked<T, R> {
    fn send(&mut self, answer: Answer<T>) {
        if let Some(sender) = self.answer.take() {
            // Whoever asked may have gone.
            drop(sender.send(answer));
        }
    }
}

impl<T, R> Question for Asked<T, R>
where
    T: Send,
    R: Fn(&Database) -> Result<T, SqliteError> + Send,
{
    fn is_gone(&self) -> bool {
        self.answer.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    fn answer(&mut self, database: &Database) -> Result<(), SqliteError> {
        let found = (self.read)(database)?;
        self.send(Ok(found));
        Ok(())
    }

    fn refuse(&mut self, error: StoreError) {
        self.send(Err(error));
    }
}

impl fmt::Debug for dyn Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Question").finish_non_exhaustive()
    }
}
