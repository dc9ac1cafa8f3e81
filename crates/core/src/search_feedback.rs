//! What searches teach: who asked what, what was called next, and the file in which that is kept.

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

/// What searches teach.
#[derive(Debug)]
pub struct SearchFeedback {
    file: PathBuf,
    learnt: RwLock<Learnt>,
    /// What each client has asked lately, the latest last.
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

/// A call so long after a search has nothing to do with it.
const MEMORY: Duration = Duration::from_mins(10);
/// Of so many clients, so many searches are remembered.
const CLIENTS: usize = 1_024;
const SEARCHES: usize = 4;
/// Of a question so much is remembered.
const QUESTION_BYTES: usize = 1_024;
/// A file with more is none of ours.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

impl SearchFeedback {
    /// Feedback that is kept in this file, and read when the first search begins.
    pub fn new(file: PathBuf) -> Self {
        Self {
            file,
            learnt: RwLock::default(),
            asked: Mutex::default(),
            unwritten: AtomicBool::new(false),
            writing: Mutex::default(),
        }
    }

    /// Reads what was learnt before. It reads a file.
    pub(crate) fn load(&self) {
        let Ok(file) = read(&self.file, FILE_BYTES, Links::Follow) else {
            return;
        };
        match Learnt::decode(&file) {
            Ok(learnt) => *self.learnt.write() = learnt,
            Err(error) => tracing::warn!(%error, file = %self.file.display(), "Searching anew."),
        }
    }

    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&Learnt) -> T) -> T {
        use_it(&self.learnt.read())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.with(Learnt::len)
    }

    /// A client has searched, and this is what it was told.
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

    /// The question after which a client calls this tool, if it was an answer to one.
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

    /// The call went well: that is a lesson.
    pub(crate) fn learn(&self, language: &Language, question: &str, server: &str, tool: &str) {
        let mut learnt = self.learnt.write();
        learnt.learn(language, question, server, tool);
        self.unwritten.store(true, Relaxed);
    }

    /// Forgets everything, also on disk.
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

    /// Writes down what is new. It writes a file.
    pub(crate) fn keep(&self) {
        let _writing = self.writing.lock();
        if !self.unwritten.swap(false, Relaxed) {
            return;
        }
        if let Err(error) = write_private(&self.file, &self.with(Learnt::encode)) {
            tracing::warn!(%error, file = %self.file.display(), "Cannot keep what searches have taught.");
        }
    }
}
