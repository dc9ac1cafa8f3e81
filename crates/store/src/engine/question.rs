//! A query.

use std::fmt;

use tokio::sync::oneshot;

use crate::engine::sqlite::{Database, SqliteError};
use crate::types::error::StoreError;

/// A query that waits for its answer.
pub(crate) trait Question: Send {
    /// Returns `true` if the caller no longer waits.
    fn is_gone(&self) -> bool;

    /// Runs the query and sends the answer. After an error, the query can be run again.
    fn answer(&mut self, database: &Database) -> Result<(), SqliteError>;

    /// Answers with an error.
    fn refuse(&mut self, error: StoreError);
}

type Answer<T> = Result<T, StoreError>;

/// Returns a query that runs `read`, and the channel that receives its answer.
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
    /// `None` once the answer was sent.
    answer: Option<oneshot::Sender<Answer<T>>>,
}

impl<T, R> Asked<T, R> {
    fn send(&mut self, answer: Answer<T>) {
        if let Some(sender) = self.answer.take() {
            // The caller may have stopped waiting.
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
