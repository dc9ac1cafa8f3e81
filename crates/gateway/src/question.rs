//! What servers of the older revisions ask while they work, and whose call it is that they ask for.
//!
//! Over Streamable HTTP a question comes on the stream of its call. Over a pipe nothing says where it
//! belongs: then it goes to the one client that has calls under way. If there are several, it waits for
//! their calls to end, and is refused if that takes too long. A client that has been asked already and is
//! to come back is not counted, unless it is another principal's: a server that waits for an answer
//! asks nothing else as a rule.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use rustc_hash::FxHashMap;
use switchboard_client::{Asked, ErrorObject, Raw};
use switchboard_wire::{code, method};
use tokio::{
    sync::{Notify, oneshot},
    time::{timeout, timeout_at},
};

use crate::{
    asking::CallCount,
    call::{
        human::{Answerer, Person},
        ruling::{self, Asker, Ruling},
    },
    caller::{Caller, Principal, answers},
    context::Context,
    line::Line,
};

/// A question of a server, and where its answer goes.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) method: String,
    pub(crate) params: Option<Raw>,
    /// What the server calls it, if that is a word.
    pub(crate) name: Option<String>,
    /// The rule under which a person answers it in the client's place, if a person does.
    pub(crate) to_person: Option<Ruling>,
    /// Whether it is certain that it is asked for this very call.
    pub(crate) is_sure: bool,
    /// What the call has asked for so far.
    pub(crate) count: Arc<CallCount>,
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
    open: Mutex<FxHashMap<u64, Arc<Open>>>,
    changed: Notify,
    /// The client that said last that its roots have changed.
    roots: Mutex<Option<(Principal, Line)>>,
}

/// A call under way.
#[derive(Debug)]
struct Open {
    caller: Caller,
    tool: Option<Arc<str>>,
    capabilities: Raw,
    asked: Mutex<VecDeque<Question>>,
    rung: Notify,
    /// Its client has been asked and is to come back: the server waits for it, and asks nothing else as a
    /// rule.
    away: AtomicBool,
    /// Made when the server first asks, which few do.
    count: OnceLock<Arc<CallCount>>,
}

impl Open {
    fn count(&self) -> &Arc<CallCount> {
        self.count.get_or_init(Arc::default)
    }
}

/// How long a question waits that could be for one of several clients.
const AMBIGUOUS: Duration = Duration::from_secs(10);
/// How long a client may take to say where it works, if no call waits for that.
const ROOTS_PATIENCE: Duration = Duration::from_secs(10);

impl Questions {
    /// A call of this client begins, of this tool if it is one. It is over when the registration is dropped.
    pub(crate) fn open(
        self: &Arc<Self>,
        caller: &Caller,
        tool: Option<&Arc<str>>,
        capabilities: Raw,
    ) -> Ear {
        let tag = self.last.fetch_add(1, Relaxed) + 1;
        let open = Arc::new(Open {
            caller: caller.clone(),
            tool: tool.cloned(),
            capabilities,
            asked: Mutex::default(),
            rung: Notify::new(),
            away: AtomicBool::new(false),
            count: OnceLock::new(),
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
        open.values().all(|call| call.caller.principal == principal)
    }

    /// Has a question of the server answered. Dropping the future takes it back.
    pub(crate) async fn answer(
        &self,
        context: &Arc<Context>,
        server: &Arc<str>,
        asked: Asked,
    ) -> Result<Raw, ErrorObject> {
        if context.shelf.permits(server, None).is_err() {
            let message =
                "nothing of this server is approved yet, so nothing that it asks is answered";
            return Err(ErrorObject::new(code::METHOD_NOT_FOUND, message));
        }
        let answerer = |client_can, ruling: &Ruling| {
            let route = context.config.load().approvals.route;
            Answerer::of(route, &asked.method, client_can, ruling)
        };
        let refused = |exceeded| {
            context
                .asking
                .refuse(context, server, &asked.method, exceeded)
        };
        let is_sure = asked.tag.is_some() || self.lock().len() == 1;
        let owner = match asked.tag {
            Some(tag) => {
                let open = self.lock().get(&tag).cloned();
                open.map_or(Owner::Nobody, Owner::Call)
            }
            None => self.owner().await,
        };
        let call = match &owner {
            Owner::Call(owner) => Some(owner),
            Owner::Several | Owner::Nobody => None,
        };
        if let Some(call) = call {
            let counted = call.count().question(&context.config.load().approvals);
            counted.map_err(refused)?;
        }
        let asker = Asker {
            server,
            tool: call.and_then(|call| call.tool.as_deref().filter(|_| is_sure)),
            caller: call.map(|call| &call.caller),
        };
        let params = asked.params.as_ref();
        let ruling = ruling::judge(context, asker, &asked.method, params).await?;
        let owner = match owner {
            Owner::Call(owner) => owner,
            Owner::Several | Owner::Nobody if answerer(false, &ruling) == Answerer::Person => {
                let person = Person::alone(context, server);
                return person.answer(&asked.method, params, &ruling).await;
            }
            Owner::Several => {
                tracing::warn!(%server, question = %asked.method, "Cannot tell which client a question is for.");
                let message = "several clients have calls under way, and nothing says for which of them this is; ask again when there are fewer";
                return Err(ErrorObject::new(code::INTERNAL, message));
            }
            Owner::Nobody => {
                return match self.roots().filter(|_| asked.method == method::ROOTS_LIST) {
                    Some(line) => {
                        // There is no call whose count could bound it.
                        let settings = &context.config.load().approvals;
                        let counted = context.asking.question(server, settings);
                        counted.map_err(refused)?;
                        let asking = line.ask(server, &asked.method, asked.params.as_ref());
                        let late = |_| Err(unanswerable(&asked.method));
                        timeout(ROOTS_PATIENCE, asking).await.unwrap_or_else(late)
                    }
                    None => Err(unanswerable(&asked.method)),
                };
            }
        };
        let client_can = answers(&owner.capabilities, &asked.method, params);
        let to_person = match answerer(client_can, &ruling) {
            Answerer::Client => None,
            Answerer::Person => Some(ruling),
            Answerer::Nobody => return Err(unanswerable(&asked.method)),
        };
        let (reply, answer) = oneshot::channel();
        owner.ask(Question {
            method: asked.method.clone(),
            params: asked.params,
            name: asked.name,
            to_person,
            is_sure,
            count: Arc::clone(owner.count()),
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

    /// The call that a question belongs to, if that can be told, now or in a while. It is one of those
    /// that were under way when it came.
    async fn owner(&self) -> Owner {
        let until = Instant::now() + AMBIGUOUS;
        let candidates = self.candidates();
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // From here on a change is noticed.
            changed.as_mut().enable();
            let left: Vec<_> = {
                let open = self.lock();
                let left = candidates.iter().filter_map(|tag| open.get(tag));
                left.cloned().collect()
            };
            match only_one(&left) {
                Owner::Several => {}
                found => return found,
            }
            if timeout_at(until.into(), changed).await.is_err() {
                return Owner::Several;
            }
        }
    }

    /// The calls that a question could be for.
    fn candidates(&self) -> Vec<u64> {
        let open = self.lock();
        let mut principals = open.values().map(|call| call.caller.principal);
        let first = principals.next();
        let one_principal = principals.all(|other| Some(other) == first);
        let all = || open.iter();
        let here = || all().filter(|(_, call)| !call.away.load(Relaxed));
        let mut tags: Vec<_> = if one_principal && here().next().is_some() {
            here().map(|(tag, _)| *tag).collect()
        } else {
            all().map(|(tag, _)| *tag).collect()
        };
        // The oldest first.
        tags.sort_unstable();
        tags
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<u64, Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose question it is.
enum Owner {
    Call(Arc<Open>),
    Nobody,
    /// It could be for one of several clients.
    Several,
}

/// The call that it must be, if all are of one client: of several, one that has not been asked for yet.
fn only_one(calls: &[Arc<Open>]) -> Owner {
    let Some(first) = calls.first() else {
        return Owner::Nobody;
    };
    let is_other = |call: &Arc<Open>| call.caller.person != first.caller.person;
    if calls.iter().any(is_other) {
        return Owner::Several;
    }
    let free = calls.iter().find(|call| call.lock().is_empty());
    Owner::Call(Arc::clone(free.unwrap_or(first)))
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
    let message = format!("the client of this call does not answer `{question}`, or there is none");
    ErrorObject::new(code::METHOD_NOT_FOUND, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(key: u64, principal: Principal) -> Caller {
        Caller::new(key, "c".into(), principal)
    }

    fn open(questions: &Arc<Questions>, key: u64) -> Ear {
        questions.open(&caller(key, Principal::Owner), None, Raw::empty_object())
    }

    /// The client that is asked; 0 if there are several.
    fn owner(questions: &Questions) -> Option<u64> {
        let open = questions.lock();
        let candidates: Vec<_> = {
            drop(open);
            let tags = questions.candidates();
            let open = questions.lock();
            tags.iter().map(|tag| Arc::clone(&open[tag])).collect()
        };
        match only_one(&candidates) {
            Owner::Call(owner) => Some(owner.caller.person),
            Owner::Nobody => None,
            Owner::Several => Some(0),
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
        let stranger = questions.open(&caller(9, Principal::Anyone), None, Raw::empty_object());
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
        let calls = [open(&questions, 1), open(&questions, 1)];
        let opened = calls.each_ref().map(|call| Arc::clone(&call.open));
        for _ in 0..2 {
            let Owner::Call(owner) = only_one(&opened) else {
                panic!("there is one client");
            };
            let (reply, _) = oneshot::channel();
            owner.ask(Question {
                method: method::ELICITATION.to_owned(),
                params: None,
                name: None,
                to_person: None,
                is_sure: true,
                count: Arc::default(),
                reply,
            });
        }
        assert!(opened.iter().all(|call| call.lock().len() == 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_begins_after_a_question_cannot_be_the_one_that_asks() {
        let questions = Arc::new(Questions::default());
        let (one, other) = (open(&questions, 1), open(&questions, 2));
        let asking = Arc::clone(&questions);
        let owner = tokio::spawn(async move { asking.owner().await });
        tokio::task::yield_now().await;
        let late = open(&questions, 3);
        drop(one);
        let Ok(Owner::Call(owner)) = owner.await else {
            panic!("there is one client left of those that it can be for");
        };
        assert_eq!(owner.caller.person, 2);
        drop((other, late));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_could_be_for_several_is_put_to_none() {
        let questions = Arc::new(Questions::default());
        let _calls = [open(&questions, 1), open(&questions, 2)];
        assert!(matches!(questions.owner().await, Owner::Several));
    }
}
