//! What servers of the older revisions ask while they work, and whose call it is that they ask for.
//!
//! Over Streamable HTTP a question comes on the stream of its call. Over a pipe nothing says where it
//! belongs: then it goes to the one client that has calls under way. If there are several, it waits for
//! their calls to end, and is refused if that takes too long. A client that has been asked already and is
//! to come back is not counted, unless it is another principal's: a server that waits for an answer
//! asks nothing else as a rule.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use switchboard_client::{Asked, ErrorObject, Raw};
use switchboard_wire::{code, method};
use tokio::{
    sync::{Notify, oneshot},
    time::{timeout, timeout_at},
};

use crate::{
    caller::{Caller, Principal, answers},
    line::Line,
};

/// A question of a server, and where its answer goes.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) method: String,
    pub(crate) params: Option<Raw>,
    /// What the server calls it, if that is a word.
    pub(crate) name: Option<String>,
    pub(crate) reply: oneshot::Sender<Result<Raw, ErrorObject>>,
}

impl Question {
    /// Nobody can answer it.
    pub(crate) fn refuse(self) {
        let refused = unanswerable(&self.method);
        let _ = self.reply.send(Err(refused));
    }
}

/// The calls to one server of an older revision that are under way.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    last: AtomicU64,
    open: Mutex<BTreeMap<u64, Arc<Open>>>,
    changed: Notify,
    /// The client that said last that its roots have changed.
    roots: Mutex<Option<(Principal, Line)>>,
}

/// A call under way.
#[derive(Debug)]
struct Open {
    client: u64,
    principal: Principal,
    capabilities: Raw,
    asked: Mutex<VecDeque<Question>>,
    rung: Notify,
    /// Its client has been asked and is to come back: the server waits for it, and asks nothing else as a
    /// rule.
    away: AtomicBool,
}

/// How long a question waits that could be for one of several clients.
const AMBIGUOUS: Duration = Duration::from_secs(10);
/// How long a client may take to say where it works, if no call waits for that.
const ROOTS_PATIENCE: Duration = Duration::from_secs(10);

impl Questions {
    /// A call of this client begins. It is over when the registration is dropped.
    pub(crate) fn open(self: &Arc<Self>, caller: &Caller, capabilities: Raw) -> Ear {
        let tag = self.last.fetch_add(1, Relaxed) + 1;
        let open = Arc::new(Open {
            client: caller.key,
            principal: caller.principal,
            capabilities,
            asked: Mutex::default(),
            rung: Notify::new(),
            away: AtomicBool::new(false),
        });
        self.lock().insert(tag, Arc::clone(&open));
        Ear {
            questions: Arc::clone(self),
            tag,
            open,
        }
    }

    /// Whoever is on this line is asked for roots when no call says otherwise. The owner's word stands
    /// against anyone's.
    pub(crate) fn set_roots(&self, principal: Principal, line: Line) {
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let owned = |roots: &(Principal, Line)| roots.0 == Principal::Owner && roots.1.is_open();
        if principal == Principal::Owner || !roots.as_ref().is_some_and(owned) {
            *roots = Some((principal, line));
        }
    }

    /// Whether no call is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether all calls under way are this principal's.
    pub(crate) fn all_of(&self, principal: Principal) -> bool {
        let open = self.lock();
        open.values().all(|call| call.principal == principal)
    }

    /// Has a question of the server answered. Dropping the future takes it back.
    pub(crate) async fn answer(&self, asked: Asked) -> Result<Raw, ErrorObject> {
        let owner = match asked.tag {
            Some(tag) => self.lock().get(&tag).cloned(),
            None => self.owner(&asked.method).await,
        };
        let Some(owner) = owner else {
            return match self.roots().filter(|_| asked.method == method::ROOTS_LIST) {
                Some(line) => {
                    let asking = line.ask(&asked.method, asked.params.as_ref());
                    let late = |_| Err(unanswerable(&asked.method));
                    timeout(ROOTS_PATIENCE, asking).await.unwrap_or_else(late)
                }
                None => Err(unanswerable(&asked.method)),
            };
        };
        if !answers(&owner.capabilities, &asked.method, asked.params.as_ref()) {
            return Err(unanswerable(&asked.method));
        }
        let (reply, answer) = oneshot::channel();
        owner.ask(Question {
            method: asked.method.clone(),
            params: asked.params,
            name: asked.name,
            reply,
        });
        drop(owner);
        // An error means that the call is over, and nobody there to answer.
        answer
            .await
            .unwrap_or_else(|_| Err(unanswerable(&asked.method)))
    }

    fn roots(&self) -> Option<Line> {
        let roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        roots.as_ref().map(|(_, line)| line.clone())
    }

    /// The call that a question belongs to, if that can be told, now or in a while.
    async fn owner(&self, question: &str) -> Option<Arc<Open>> {
        let until = Instant::now() + AMBIGUOUS;
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // From here on a change is noticed.
            changed.as_mut().enable();
            match self.find() {
                Found::Owner(owner) => return Some(owner),
                Found::Nobody => return None,
                Found::Several => {}
            }
            if timeout_at(until.into(), changed).await.is_err() {
                tracing::warn!(%question, "Cannot tell which client a question of a server is for.");
                return None;
            }
        }
    }

    fn find(&self) -> Found {
        let open = self.lock();
        let here = open.values().filter(|call| !call.away.load(Relaxed));
        let mut principals = open.values().map(|call| call.principal);
        let first = principals.next();
        if principals.any(|other| Some(other) != first) {
            return Self::only_one(open.values());
        }
        match Self::only_one(here) {
            Found::Nobody => Self::only_one(open.values()),
            found => found,
        }
    }

    /// The call that it must be, if all are of one client.
    fn only_one<'a>(calls: impl Iterator<Item = &'a Arc<Open>>) -> Found {
        let mut owner: Option<&Arc<Open>> = None;
        for call in calls {
            match owner {
                Some(owner) if owner.client != call.client => return Found::Several,
                // Of several calls of one client, one that has not been asked for yet.
                Some(owner) if !owner.lock().is_empty() => {}
                Some(_) => continue,
                None => {}
            }
            owner = Some(call);
        }
        owner.map_or(Found::Nobody, |owner| Found::Owner(Arc::clone(owner)))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Found {
    Owner(Arc<Open>),
    Nobody,
    Several,
}

impl Open {
    fn ask(&self, question: Question) {
        self.lock().push_back(question);
        self.rung.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Question>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hears what is asked for one call.
#[derive(Debug)]
pub(crate) struct Ear {
    questions: Arc<Questions>,
    tag: u64,
    open: Arc<Open>,
}

impl Ear {
    /// What the call is to be tagged with.
    pub(crate) const fn tag(&self) -> u64 {
        self.tag
    }

    /// The client has been asked, and is to come back; or it is back.
    pub(crate) fn set_away(&self, away: bool) {
        self.open.away.store(away, Relaxed);
        self.questions.changed.notify_waiters();
    }

    /// The next question.
    pub(crate) async fn next(&self) -> Question {
        loop {
            if let Some(question) = self.open.lock().pop_front() {
                return question;
            }
            self.open.rung.notified().await;
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.questions.lock().remove(&self.tag);
        self.questions.changed.notify_waiters();
        // Whoever asked is told that nobody answers.
        self.open.lock().clear();
    }
}

fn unanswerable(question: &str) -> ErrorObject {
    let message = format!("there is no client here that answers `{question}`");
    ErrorObject::new(code::METHOD_NOT_FOUND, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(key: u64, principal: Principal) -> Caller {
        Caller {
            key,
            client: "c".into(),
            principal,
        }
    }

    fn open(questions: &Arc<Questions>, key: u64) -> Ear {
        questions.open(&caller(key, Principal::Owner), Raw::empty_object())
    }

    /// The client that is asked; 0 if there are several.
    fn owner(questions: &Questions) -> Option<u64> {
        match questions.find() {
            Found::Owner(owner) => Some(owner.client),
            Found::Nobody => None,
            Found::Several => Some(0),
        }
    }

    #[test]
    fn a_question_goes_to_the_one_client_that_has_a_call_under_way() {
        let questions = Arc::new(Questions::default());
        assert_eq!(owner(&questions), None);
        let one = open(&questions, 1);
        assert_eq!(owner(&questions), Some(1));
        let other = open(&questions, 3);
        assert_eq!(owner(&questions), Some(0));
        // A client that is to come back is not asked for others.
        other.set_away(true);
        assert_eq!(owner(&questions), Some(1));
        let stranger = questions.open(&caller(9, Principal::Anyone), Raw::empty_object());
        assert_eq!(owner(&questions), Some(0));
        stranger.set_away(true);
        assert_eq!(owner(&questions), Some(0));
        drop(stranger);
        drop(one);
        // Unless there is nobody else.
        assert_eq!(owner(&questions), Some(3));
        drop(other);
        assert_eq!(owner(&questions), None);
    }

    #[test]
    fn of_two_calls_of_one_client_the_one_that_waits_for_nothing_is_asked() {
        let questions = Arc::new(Questions::default());
        let first = open(&questions, 1);
        let second = open(&questions, 1);
        for _ in 0..2 {
            let Found::Owner(owner) = questions.find() else {
                panic!("there is one client");
            };
            let (reply, _) = oneshot::channel();
            owner.ask(Question {
                method: method::ELICITATION.to_owned(),
                params: None,
                name: None,
                reply,
            });
        }
        assert_eq!(first.open.lock().len(), 1);
        assert_eq!(second.open.lock().len(), 1);
    }
}
