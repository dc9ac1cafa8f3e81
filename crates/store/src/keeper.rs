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

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use crate::error::StoreError;
use crate::limits::{DAMAGED_FILES, RETRY_FIRST, RETRY_LONGEST};
use crate::queue::Queue;
use crate::sqlite::{Database, Trouble, put_aside};
use crate::status::Status;
use crate::store::Retention;

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

#[derive(Clone)]
struct Complaint {
    message: Arc<str>,
    action: Arc<str>,
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
            let work = if more_to_trim {
                self.queue.next_now()
            } else {
                self.queue.next()
            };
            let commits = !work.records.is_empty();
            if commits && let Err(trouble) = database.append(&work.records) {
                self.queue.put_back(work.records);
                self.queue.ask_again(work.questions);
                return Err(trouble);
            }
            if commits {
                self.works();
            }
            let mut questions = work.questions.into_iter();
            while let Some(question) = questions.next() {
                if question.answer.is_closed() {
                    continue;
                }
                match database.activity(&question.query) {
                    // Whoever asked may have gone meanwhile.
                    Ok(found) => drop(question.answer.send(Ok(found))),
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
                let oldest = SystemTime::now().checked_sub(self.retention.age);
                more_to_trim = database.trim(self.retention.rows, oldest.unwrap_or(UNIX_EPOCH))?;
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

impl Complaint {
    fn about(path: &Path, trouble: &Trouble) -> Self {
        let path = path.display();
        let action = match trouble {
            Trouble::Locked => "close the program that uses it, or wait".to_owned(),
            Trouble::Damaged(_) => "check the disk; several new files were damaged too".to_owned(),
            Trouble::Newer { .. } => {
                format!("use that newer Switchboard, or move {path} away to begin anew")
            }
            Trouble::Foreign => format!("choose another home, or move {path} away"),
            Trouble::Full => "make room on its disk".to_owned(),
            Trouble::ReadOnly | Trouble::Make(_) => {
                "check the permissions of the file and its folder".to_owned()
            }
            Trouble::Other(_) => "check that the disk works and is not full".to_owned(),
        };
        let cause = std::error::Error::source(trouble);
        let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
        Self {
            message: format!("{path} cannot be used: {trouble}{cause}").into(),
            action: action.into(),
        }
    }

    fn with_action(self, action: &str) -> Self {
        Self {
            action: action.into(),
            ..self
        }
    }

    fn status(self, retrying: bool) -> Status {
        Status::Failed {
            message: self.message,
            action: self.action,
            retrying,
        }
    }

    fn error(self) -> StoreError {
        StoreError::Unavailable {
            message: self.message,
            action: self.action,
        }
    }
}
