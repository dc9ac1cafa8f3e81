//! Changes that wait to be written, together or not at all.

use tokio::sync::oneshot;

use crate::change::Change;
use crate::error::StoreError;

#[derive(Debug)]
pub(crate) struct Write {
    changes: Vec<Change>,
    bytes: usize,
    answer: oneshot::Sender<Result<(), StoreError>>,
}

impl Write {
    /// A write, and where its answer arrives.
    pub(crate) fn new(changes: Vec<Change>) -> (Self, oneshot::Receiver<Result<(), StoreError>>) {
        let bytes = changes.iter().map(Change::bytes).sum();
        let (answer, answered) = oneshot::channel();
        let write = Self {
            changes,
            bytes,
            answer,
        };
        (write, answered)
    }

    pub(crate) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// About how much room it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn answer(self, fate: Result<(), StoreError>) {
        // Whoever wrote may have gone.
        drop(self.answer.send(fate));
    }
}
