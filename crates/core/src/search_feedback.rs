//! Search feedback: the queries of clients, the tools that were called next, and the file that
//! stores them.

use std::{
    collections::{HashMap, VecDeque},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use parking_lot::{Mutex, RwLock};
use switchboard_files::{Links, read, write_private};
use switchboard_search::{Hit, Language, Learnt};

/// The feedback of searches.
#[derive(Debug)]
pub struct SearchFeedback {
    file: PathBuf,
    learnt: RwLock<Learnt>,
    /// The latest queries of each client, newest last.
    asked: Mutex<HashMap<u64, VecDeque<Asked>>>,
    unwritten: AtomicBool,
    /// Held while the file is written or removed.
    writing: Mutex<()>,
}

#[derive(Debug)]
struct Asked {
    at: Instant,
    question: Arc<str>,
    answers: Vec<(Arc<str>, Arc<str>)>,
}

/// A call later than this after a search is not related to it.
const MEMORY: Duration = Duration::from_mins(10);
/// The most clients, and the most searches of each, to remember.
const CLIENTS: usize = 1_024;
const SEARCHES: usize = 4;
/// The most bytes of a query to remember.
const QUESTION_BYTES: usize = 1_024;
/// The largest file to read. The gateway does not write larger ones.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

impl SearchFeedback {
    /// Feedback that is stored in this file, which is read when the first search begins.
    pub fn new(file: PathBuf) -> Self {
        Self {
            file,
            learnt: RwLock::default(),
            asked: Mutex::default(),
            unwritten: AtomicBool::new(false),
            writing: Mutex::default(),
        }
    }

    /// Reads the feedback of earlier runs from the file.
    pub(crate) fn load(&self) {
        let Ok(file) = read(&self.file, FILE_BYTES, Links::Follow) else {
            return;
        };
        match Learnt::decode(&file) {
            Ok(learnt) => *self.learnt.write() = learnt,
            Err(error) => {
                tracing::warn!(%error, file = %self.file.display(), "Cannot read the search feedback; the ranking starts without it.");
            }
        }
    }

    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&Learnt) -> T) -> T {
        use_it(&self.learnt.read())
    }

    /// Number of learned pairs of query and tool.
    pub fn count(&self) -> usize {
        self.with(Learnt::len)
    }

    /// Records a client's search and its results.
    pub(crate) fn asked(&self, client: u64, question: &str, hits: &[Hit]) {
        let question = &question[..question.floor_char_boundary(QUESTION_BYTES)];
        let mut all = self.asked.lock();
        let now = Instant::now();
        if all.len() >= CLIENTS && !all.contains_key(&client) {
            all.retain(|_, asked| asked.back().is_some_and(|last| now - last.at < MEMORY));
            if all.len() >= CLIENTS {
                return;
            }
        }
        let asked = all.entry(client).or_default();
        if asked.len() >= SEARCHES {
            asked.pop_front();
        }
        let answers = hits
            .iter()
            .map(|hit| (hit.server.clone(), hit.name.clone()));
        asked.push_back(Asked {
            at: now,
            question: question.into(),
            answers: answers.collect(),
        });
    }

    /// The query after which a client calls this tool, if the tool was one of its results.
    pub(crate) fn question(&self, client: u64, server: &str, tool: &str) -> Option<Arc<str>> {
        let all = self.asked.lock();
        let answered = |asked: &&Asked| {
            let answers = &asked.answers;
            asked.at.elapsed() < MEMORY
                && answers
                    .iter()
                    .any(|(of, name)| **of == *server && **name == *tool)
        };
        let asked = all.get(&client)?.iter().rev().find(answered)?;
        Some(Arc::clone(&asked.question))
    }

    /// Records a call that succeeded as feedback for the query.
    pub(crate) fn learn(&self, language: &Language, question: &str, server: &str, tool: &str) {
        let mut learnt = self.learnt.write();
        learnt.learn(language, question, server, tool);
        self.unwritten.store(true, Relaxed);
    }

    /// Discards everything, also on disk.
    pub fn forget(&self) -> std::io::Result<()> {
        let _writing = self.writing.lock();
        *self.learnt.write() = Learnt::default();
        self.asked.lock().clear();
        self.unwritten.store(false, Relaxed);
        match std::fs::remove_file(&self.file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes new feedback to the file.
    pub(crate) fn keep(&self) {
        let _writing = self.writing.lock();
        if !self.unwritten.swap(false, Relaxed) {
            return;
        }
        if let Err(error) = write_private(&self.file, &self.with(Learnt::encode)) {
            tracing::warn!(%error, file = %self.file.display(), "Cannot save the search feedback.");
        }
    }
}
