//! The thread that owns the file: it opens the file, commits queued work, answers queries, removes
//! expired rows, and reports its status.
//!
//! ```text
//! opening ──ok──▶ serving ──closed──▶ gone
//!    ▲  │            │
//!    │  └─ locked, full, …: reports it, waits, retries ──┘
//!    │               └── full, locked, read-only: answers queries, refuses writes, retries
//!    └──── damaged: the file is set aside
//! opening ──newer, foreign──▶ gone, the file untouched
//! ```

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::engine::advice::Advice;
use crate::engine::question::Question;
use crate::engine::queue::Queue;
use crate::engine::sqlite::{Database, SqliteError, put_aside};
use crate::engine::store::Retention;
use crate::engine::write::Write;
use crate::types::error::StoreError;
use crate::types::limits::{DAMAGED_FILES, RETRY_FIRST, RETRY_LONGEST};
use crate::types::status::Status;

#[derive(Debug)]
pub(crate) struct WriterThread {
    path: PathBuf,
    retention: Retention,
    queue: Arc<Queue>,
    status: watch::Sender<Status>,
    /// Message shown even while the store is ready.
    note: Option<Arc<str>>,
    damaged_files: u32,
    pause: Duration,
}

/// The reason why the thread stops.
enum End {
    /// The store was closed.
    Closed,
    /// Retrying is pointless.
    GivenUp(Advice),
}

impl WriterThread {
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

    /// Opens the file, retrying for as long as necessary.
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

    /// Serves until the store is closed, or until the file must be reopened.
    fn serve(&mut self, database: &mut Database) -> Result<(), SqliteError> {
        let mut more_to_trim = true;
        loop {
            match self.serve_next(database, &mut more_to_trim) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(()),
                Err(trouble) if trouble.leaves_reading() => self.read_on(database, trouble)?,
                Err(trouble) => return Err(trouble),
            }
        }
    }

    /// Serves one batch of work. Returns `Break` if the store is to be closed.
    fn serve_next(
        &mut self,
        database: &mut Database,
        more_to_trim: &mut bool,
    ) -> Result<ControlFlow<()>, SqliteError> {
        let mut work = if *more_to_trim {
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
        self.answer(database, work.questions)?;
        if work.closing {
            return Ok(ControlFlow::Break(()));
        }
        if commits || *more_to_trim {
            *more_to_trim = database.trim(self.retention.rows, self.retention.oldest())?;
            let Retention { rows, .. } = Retention::APPROVALS;
            *more_to_trim |= database.trim_approvals(rows, Retention::APPROVALS.oldest())?;
            *more_to_trim |= database.trim_vectors()?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Answers queries. After an error, the remaining ones are queued again.
    fn answer(
        &self,
        database: &Database,
        questions: Vec<Box<dyn Question>>,
    ) -> Result<(), SqliteError> {
        let mut questions = questions.into_iter();
        while let Some(mut question) = questions.next() {
            if question.is_gone() {
                continue;
            }
            match question.answer(database) {
                Ok(()) => {}
                // The error concerns a single row; the rest of the file is fine.
                Err(trouble @ SqliteError::Unreadable(_)) => {
                    question.refuse(Advice::about(&self.path, &trouble).error());
                }
                Err(trouble) => {
                    let rest = std::iter::once(question).chain(questions).collect();
                    self.queue.ask_again(rest);
                    return Err(trouble);
                }
            }
        }
        Ok(())
    }

    /// Answers queries and refuses writes until the file can be written to again. Returns the error if
    /// the file must be reopened, or if the store is to be closed.
    fn read_on(
        &mut self,
        database: &mut Database,
        mut trouble: SqliteError,
    ) -> Result<(), SqliteError> {
        loop {
            let complaint = Advice::about(&self.path, &trouble);
            self.complain(&complaint, true);
            let until = Instant::now() + self.lengthen_pause();
            loop {
                let error = complaint.clone().error();
                match self.queue.questions_until(until, &error) {
                    Some(questions) if questions.is_empty() => break,
                    Some(questions) => self.answer(database, questions)?,
                    None => return Err(trouble),
                }
            }
            match database.probe() {
                Ok(()) => {
                    self.works();
                    return Ok(());
                }
                Err(next) if next.leaves_reading() => trouble = next,
                Err(next) => return Err(next),
            }
        }
    }

    /// Handles an error; `Ok` means to retry now.
    fn overcome(&mut self, trouble: &SqliteError) -> Result<(), End> {
        let complaint = Advice::about(&self.path, trouble);
        match trouble {
            SqliteError::Newer { .. } | SqliteError::Foreign => {
                warn(&complaint);
                Err(End::GivenUp(complaint))
            }
            SqliteError::Damaged(_) if self.damaged_files < DAMAGED_FILES => {
                warn(&complaint);
                self.damaged_files += 1;
                match put_aside(&self.path) {
                    Ok(aside) => {
                        let note = format!(
                            "{} was damaged: it was renamed to {}, and a new file was created",
                            self.path.display(),
                            aside.display()
                        );
                        self.note = Some(note.into());
                        Ok(())
                    }
                    Err(error) => self.wait(&complaint.with_action(&format!(
                        "move the file away; Switchboard could not rename it ({error})"
                    ))),
                }
            }
            SqliteError::Damaged(_)
            | SqliteError::Locked
            | SqliteError::Full
            | SqliteError::ReadOnly
            | SqliteError::Make(_)
            | SqliteError::Read(_)
            | SqliteError::Unreadable(_)
            | SqliteError::Other(_) => self.wait(&complaint),
        }
    }

    /// Reports the problem and waits.
    fn wait(&mut self, complaint: &Advice) -> Result<(), End> {
        self.complain(complaint, false);
        let pause = self.lengthen_pause();
        if self.queue.refuse_for(pause, &complaint.clone().error()) {
            // Try once more before closing; waiting for another attempt is not worthwhile.
            if let Ok(mut database) = Database::open(&self.path)
                && self.serve(&mut database).is_ok()
            {
                database.close();
            }
            return Err(End::Closed);
        }
        Ok(())
    }

    /// Updates the status, and logs the problem if the status has changed.
    fn complain(&self, complaint: &Advice, readable: bool) {
        let failed = Status::Failed {
            message: Arc::clone(&complaint.message),
            action: Arc::clone(&complaint.action),
            retrying: true,
            readable,
        };
        let is_news = self.status.send_if_modified(|status| {
            let is_news = *status != failed;
            *status = failed;
            is_news
        });
        if is_news {
            warn(complaint);
        }
    }

    /// Returns the pause before the next attempt, and doubles the one after it.
    fn lengthen_pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(RETRY_LONGEST);
        pause
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
            End::GivenUp(complaint) => {
                let status = Status::Failed {
                    message: Arc::clone(&complaint.message),
                    action: Arc::clone(&complaint.action),
                    retrying: false,
                    readable: false,
                };
                (status, complaint.error())
            }
        };
        // The order matters: a caller that sees the status must find the queue shut already.
        self.queue.abandon(&error);
        self.status.send_replace(status);
    }
}

fn warn(complaint: &Advice) {
    tracing::warn!(message = %complaint.message, "The store is not available.");
}

impl Drop for WriterThread {
    /// However the thread ends, no caller is left waiting for it.
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
            self.leave(End::GivenUp(Advice {
                message: "the thread of the store has ended unexpectedly".into(),
                action: "restart Switchboard, and report this with its log".into(),
            }));
        }
    }
}
