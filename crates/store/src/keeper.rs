//! The thread that keeps the file: opens it, commits what is queued, answers questions, removes
//! what is too old, and says how it fares.
//!
//! ```text
//! opening ──ok──▶ serving ──closed──▶ gone
//!    ▲  │            │
//!    │  └─ locked, full, …: says so, waits, tries again ─┘
//!    └──── damaged: the file is put aside
//! opening ──newer, foreign──▶ gone, the file left alone
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::complaint::Complaint;
use crate::error::StoreError;
use crate::limits::{DAMAGED_FILES, RETRY_FIRST, RETRY_LONGEST};
use crate::queue::Queue;
use crate::sqlite::{Database, Trouble, put_aside};
use crate::status::Status;
use crate::store::Retention;
use crate::write::Write;

#[derive(Debug)]
pub(crate) struct Keeper {
    path: PathBuf,
    retention: Retention,
    queue: Arc<Queue>,
    status: watch::Sender<Status>,
    /// What a ready store tells all the same.
    note: Option<Arc<str>>,
    damaged_files: u32,
    pause: Duration,
}

/// Why the keeper stops.
enum End {
    /// It was asked to.
    Closed,
    /// There is no use in going on.
    GivenUp(Complaint),
}

impl Keeper {
    pub(crate) fn new(
        path: PathBuf,
        retention: Retention,
        queue: Arc<Queue>,
        status: watch::Sender<Status>,
    ) -> Self {
        Self {
            path,
            retention,
            queue,
            status,
            note: None,
            damaged_files: 0,
            pause: RETRY_FIRST,
        }
    }

    pub(crate) fn run(mut self) {
        let end = loop {
            let step = self
                .open()
                .and_then(|mut database| match self.serve(&mut database) {
                    Ok(()) => {
                        database.close();
                        Err(End::Closed)
                    }
                    Err(trouble) => {
                        drop(database);
                        self.overcome(&trouble)
                    }
                });
            if let Err(end) = step {
                break end;
            }
        };
        self.leave(end);
    }

    /// Opens the file, however long it takes.
    fn open(&mut self) -> Result<Database, End> {
        loop {
            match Database::open(&self.path) {
                Ok(database) => {
                    self.works();
                    return Ok(database);
                }
                Err(trouble) => self.overcome(&trouble)?,
            }
        }
    }

    /// Serves until asked to close, or until the file must be opened anew.
    fn serve(&mut self, database: &mut Database) -> Result<(), Trouble> {
        let mut more_to_trim = true;
        loop {
            let mut work = if more_to_trim {
                self.queue.next_now()
            } else {
                self.queue.next()
            };
            let commits = !work.records.is_empty() || !work.writes.is_empty();
            if commits {
                match database.commit(&work.records, &mut work.writes) {
                    Ok(()) => {
                        self.works();
                        work.writes.into_iter().for_each(Write::answer);
                    }
                    Err(trouble) => {
                        self.queue.put_back(work);
                        return Err(trouble);
                    }
                }
            }
            let mut questions = work.questions.into_iter();
            while let Some(mut question) = questions.next() {
                if question.is_gone() {
                    continue;
                }
                match question.answer(database) {
                    Ok(()) => {}
                    // That is about one row: the file is fine otherwise.
                    Err(trouble @ Trouble::Unreadable(_)) => {
                        question.refuse(Complaint::about(&self.path, &trouble).error());
                    }
                    Err(trouble) => {
                        let rest = std::iter::once(question).chain(questions).collect();
                        self.queue.ask_again(rest);
                        return Err(trouble);
                    }
                }
            }
            if work.closing {
                return Ok(());
            }
            if commits || more_to_trim {
                more_to_trim = database.trim(self.retention.rows, self.retention.oldest())?;
                let Retention { rows, .. } = Retention::APPROVALS;
                more_to_trim |= database.trim_approvals(rows, Retention::APPROVALS.oldest())?;
                more_to_trim |= database.trim_vectors()?;
            }
        }
    }

    /// Does what there is to do about a trouble: `Ok` means to try again now.
    fn overcome(&mut self, trouble: &Trouble) -> Result<(), End> {
        let complaint = Complaint::about(&self.path, trouble);
        tracing::warn!(message = %complaint.message, "The store does not work.");
        match trouble {
            Trouble::Newer { .. } | Trouble::Foreign => Err(End::GivenUp(complaint)),
            Trouble::Damaged(_) if self.damaged_files < DAMAGED_FILES => {
                self.damaged_files += 1;
                match put_aside(&self.path) {
                    Ok(aside) => {
                        let note = format!(
                            "{} was damaged; it is now {} and a new one was begun",
                            self.path.display(),
                            aside.display()
                        );
                        self.note = Some(note.into());
                        Ok(())
                    }
                    Err(error) => self.wait(&complaint.with_action(&format!(
                        "move it away yourself, since that failed here ({error})"
                    ))),
                }
            }
            Trouble::Damaged(_)
            | Trouble::Locked
            | Trouble::Full
            | Trouble::ReadOnly
            | Trouble::Make(_)
            | Trouble::Read(_)
            | Trouble::Unreadable(_)
            | Trouble::Other(_) => self.wait(&complaint),
        }
    }

    /// Says what is wrong and lets some time pass.
    fn wait(&mut self, complaint: &Complaint) -> Result<(), End> {
        self.status.send_replace(complaint.clone().status(true));
        let pause = self.pause;
        self.pause = (self.pause * 2).min(RETRY_LONGEST);
        if self.queue.refuse_for(pause, &complaint.clone().error()) {
            // There may be a last chance; it is not worth waiting for another.
            if let Ok(mut database) = Database::open(&self.path)
                && self.serve(&mut database).is_ok()
            {
                database.close();
            }
            return Err(End::Closed);
        }
        Ok(())
    }

    fn works(&mut self) {
        self.pause = RETRY_FIRST;
        let ready = Status::Ready {
            note: self.note.clone(),
        };
        self.status.send_if_modified(|status| {
            let news = *status != ready;
            *status = ready;
            news
        });
    }

    fn leave(&self, end: End) {
        let (status, error) = match end {
            End::Closed => (Status::Closed, StoreError::Closed),
            End::GivenUp(complaint) => (complaint.clone().status(false), complaint.error()),
        };
        // In this order: whoever sees the status finds the queue shut already.
        self.queue.abandon(&error);
        self.status.send_replace(status);
    }
}

impl Drop for Keeper {
    /// However the keeper goes, nobody is left waiting for it.
    fn drop(&mut self) {
        let gone = matches!(
            &*self.status.borrow(),
            Status::Closed
                | Status::Failed {
                    retrying: false,
                    ..
                }
        );
        if !gone {
            self.leave(End::GivenUp(Complaint {
                message: "the thread of the store is gone".into(),
                action: "start Switchboard again, and report this with its log".into(),
            }));
        }
    }
}
