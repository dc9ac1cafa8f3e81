//! Requests that servers of older revisions send during calls (questions), and the calls that they belong to.
//!
//! Over Streamable HTTP, a question arrives on the stream of its call. A question on the stream of a request
//! that is not a call, or is over, is not put to any client. A question may also name the task that it
//! belongs to. Over a pipe, nothing else identifies its call: it goes to the one client that has calls in
//! flight when the question is read. If several clients of one principal have calls in flight, it waits until
//! the server has answered the calls of all but one. If that takes too long, if one of the calls ends in
//! another way, or if there are two principals, it is not put to any client. It may also belong to a call
//! that was withdrawn: once the owner has called, it is never put to another principal. A client that has
//! already been asked and is expected to come back does not count: a server that waits for an answer usually
//! asks nothing else.

use std::{
    collections::VecDeque,
    hash::{BuildHasher as _, Hash},
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
            fence,
        },
    },
    time::Duration,
};

use parking_lot::Mutex;
use rustc_hash::{FxBuildHasher, FxHashMap};
use switchboard_base::{
    backchannel::Backchannel,
    caller::{Caller, Principal, Realm},
    tasks::related_task,
};
use switchboard_client::{Asked, ErrorObject, Raw};
use switchboard_config::Approvals;
use switchboard_wire::code;
use tokio::{
    sync::{Notify, oneshot},
    time::timeout_at,
};

use crate::clock;

/// A question of a server, and the receiver of its answer.
#[derive(Debug)]
pub struct Question {
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Option<Raw>,
    /// The server's name for the question (its ID or its key), if that is a string.
    pub name: Option<String>,
    /// The rule under which a user answers in place of the client; `None` if the client answers.
    pub to_person: Option<Ruling>,
    /// It is certain that the question belongs to this call.
    pub is_sure: bool,
    /// The counts of the call's questions so far.
    pub count: Arc<CallCount>,
    /// Set when the call takes the question, so that its client or a person is asked.
    pub is_taken: Arc<AtomicBool>,
    /// The receiver of the answer.
    pub reply: oneshot::Sender<Result<Raw, ErrorObject>>,
}

impl Question {
    /// Answers that there is no client or user to answer it.
    pub fn refuse(self) {
        let refused = unanswerable(&self.method);
        let _ = self.reply.send(Err(refused));
    }
}

/// The rule that applies to a question that no rule denies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ruling {
    /// No rule matches.
    #[default]
    Unruled,
    /// This rule requires an answer by a user.
    Ask(Arc<str>),
    /// This rule allows it.
    Allow(Arc<str>),
}

impl Ruling {
    /// The text of the rule.
    pub fn rule(&self) -> Option<&Arc<str>> {
        match self {
            Self::Unruled => None,
            Self::Ask(rule) | Self::Allow(rule) => Some(rule),
        }
    }
}

/// The counts of one call's questions so far.
#[derive(Debug, Default)]
pub struct CallCount {
    questions: AtomicU64,
    /// The number of model answers among them.
    pub sampled: AtomicU64,
}

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exceeded {
    /// The configuration key of the limit.
    pub key: &'static str,
    /// The limit.
    pub most: f64,
}

impl Exceeded {
    /// Creates the error for the limit of this key.
    #[allow(clippy::cast_precision_loss)] // Limits are far below the precision of `f64`.
    pub fn new(key: &'static str, most: u64) -> Self {
        let most = most as f64;
        Self { key, most }
    }
}

impl CallCount {
    /// Counts a question of this call.
    pub fn question(&self, settings: &Approvals) -> Result<(), Exceeded> {
        let most = settings.questions_per_call;
        if self.questions.fetch_add(1, Relaxed) >= most {
            return Err(Exceeded::new("approvals.questionsPerCall", most));
        }
        Ok(())
    }
}

/// The calls in flight to one server of an older revision.
#[derive(Debug, Default)]
pub struct Questions {
    last: AtomicU64,
    open: Mutex<FxHashMap<u64, Arc<Open>>>,
    changed: Notify,
    /// A call of the owner has been made.
    owned: AtomicBool,
    /// The client that has made, or is about to make, all calls so far.
    user: Sole,
    /// The client that last reported a change of its roots.
    roots: Mutex<Option<(Caller, Backchannel)>>,
}

/// A call in flight.
#[derive(Debug)]
pub struct Open {
    /// The caller.
    pub caller: Caller,
    /// The tool, if this is a tool call.
    pub tool: Option<Arc<str>>,
    /// The capabilities of the client, which determine what it can be asked.
    pub capabilities: Raw,
    /// Questions that wait to be taken; `None` after the end of the call.
    asked: Mutex<Option<VecDeque<Question>>>,
    rung: Notify,
    /// Its client has been asked and is expected to come back: the server waits for the answer, and usually
    /// asks nothing else.
    away: AtomicBool,
    /// The task that the call is about or has become, under the server's ID.
    task: OnceLock<String>,
    /// The server has yet to report the task that the call becomes.
    becomes_task: AtomicBool,
    /// No client or user can be asked on behalf of the request.
    is_mute: bool,
    /// Its client sees only this server, and is asked by requests.
    is_alone: AtomicBool,
    /// The server has answered it.
    is_answered: AtomicBool,
    /// Created when the server first asks, which is rare.
    count: OnceLock<Arc<CallCount>>,
}

impl Open {
    /// The counts of this call's questions.
    pub fn count(&self) -> &Arc<CallCount> {
        self.count.get_or_init(Arc::default)
    }

    /// The number of its questions so far.
    fn questions(&self) -> u64 {
        let count = self.count.get();
        count.map_or(0, |count| count.questions.load(Relaxed))
    }

    /// Tests if the server has answered the call.
    pub fn is_answered(&self) -> bool {
        self.is_answered.load(Relaxed)
    }

    /// Tests if the call has ended without an answer of the server, such as by the end of its client.
    pub fn is_withdrawn(&self) -> bool {
        !self.is_answered() && self.asked.lock().is_none()
    }

    /// Tests if it is a call of this client.
    pub fn is_of(&self, caller: &Caller) -> bool {
        user(&self.caller) == user(caller)
    }

    /// Tests if its client sees only this server.
    pub fn is_alone(&self) -> bool {
        self.is_alone.load(Relaxed)
    }
}

/// The one of whom all calls are, as long as there is only one: [`UNUSED`], [`SEVERAL`] or a hash.
#[derive(Debug, Default)]
struct Sole(AtomicU64);

/// There was no call.
const UNUSED: u64 = 0;
/// There were calls of several.
const SEVERAL: u64 = 1;

impl Sole {
    fn note(&self, one: impl Hash) {
        let (one, former) = (hash(one), self.0.load(SeqCst));
        if former != one && former != SEVERAL {
            let only = self.0.compare_exchange(UNUSED, one, SeqCst, SeqCst);
            if only.is_err_and(|other| other != one) {
                self.0.store(SEVERAL, SeqCst);
            }
        }
    }

    fn is(&self, one: impl Hash) -> bool {
        self.0.load(SeqCst) == hash(one)
    }

    /// Notes one if there was none yet, and tests if it is the only one.
    fn claim(&self, one: impl Hash) -> bool {
        let one = hash(one);
        let former = self.0.compare_exchange(UNUSED, one, SeqCst, SeqCst);
        former.is_ok() || former == Err(one)
    }
}

fn hash(one: impl Hash) -> u64 {
    FxBuildHasher.hash_one(one) | 2
}

/// Identifies a client.
fn user(caller: &Caller) -> (Realm, u64, Option<&Arc<str>>) {
    (caller.realm, caller.person, caller.project.given())
}

/// Time for which a question waits that could belong to several clients.
const AMBIGUOUS: Duration = Duration::from_secs(10);

impl Questions {
    /// Registers a call of this client, with its tool if it is a tool call. The call is over when the
    /// registration is dropped.
    pub fn open(
        self: &Arc<Self>,
        caller: &Caller,
        tool: Option<&Arc<str>>,
        capabilities: Raw,
    ) -> CallQuestions {
        self.begin(caller, tool, capabilities, false)
    }

    /// Registers a request for which no client or user can be asked. A question may still belong to it.
    pub(crate) fn open_mute(self: &Arc<Self>, caller: &Caller) -> CallQuestions {
        self.note(caller);
        self.begin(caller, None, Raw::empty_object(), true)
    }

    fn begin(
        self: &Arc<Self>,
        caller: &Caller,
        tool: Option<&Arc<str>>,
        capabilities: Raw,
        is_mute: bool,
    ) -> CallQuestions {
        let tag = self.last.fetch_add(1, Relaxed) + 1;
        let open = Arc::new(Open {
            caller: caller.clone(),
            tool: tool.cloned(),
            capabilities,
            asked: Mutex::new(Some(VecDeque::new())),
            rung: Notify::new(),
            away: AtomicBool::new(false),
            task: OnceLock::new(),
            becomes_task: AtomicBool::new(false),
            is_mute,
            is_alone: AtomicBool::new(false),
            is_answered: AtomicBool::new(false),
            count: OnceLock::new(),
        });
        self.open.lock().insert(tag, Arc::clone(&open));
        CallQuestions {
            questions: Arc::clone(self),
            tag,
            open,
        }
    }

    /// Records the client that is asked for roots when no call determines it: the last one, unless an earlier one is the
    /// only user.
    pub fn set_roots(&self, caller: &Caller, backchannel: Backchannel) {
        let mut roots = self.roots.lock();
        let is_user = |client: &Caller| self.user.is(user(client));
        let has_precedence = |(client, line): &(Caller, Backchannel)| {
            line.is_open() && is_user(client) && !is_user(caller)
        };
        if !roots.as_ref().is_some_and(has_precedence) {
            *roots = Some((caller.clone(), backchannel));
        }
    }

    /// Forgets the client that is asked for roots if it has left. Its connection would stay open otherwise.
    pub(crate) fn forget_left(&self) {
        self.roots
            .lock()
            .take_if(|(_, backchannel)| !backchannel.is_open());
    }

    /// Tests if no call is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.lock().is_empty()
    }

    /// Records that this caller has made a call.
    pub fn note(&self, caller: &Caller) {
        if caller.realm.principal == Principal::Owner && !self.owned.load(Relaxed) {
            self.owned.store(true, Relaxed);
        }
        self.expect(caller);
    }

    /// Records that this caller is about to make a call.
    pub(crate) fn expect(&self, caller: &Caller) {
        self.user.note(user(caller));
    }

    /// Forgets all callers, with whose process the state that they had there has ended. If one has begun to use the next
    /// process meanwhile, several count as having used it.
    pub(crate) fn forget_users(&self, is_unused: impl FnOnce() -> bool) {
        let was_owned = self.owned.swap(false, SeqCst);
        self.user.0.store(UNUSED, SeqCst);
        // A caller takes its lease before it is recorded.
        fence(SeqCst);
        if !is_unused() {
            self.user.0.store(SEVERAL, SeqCst);
            self.owned.fetch_or(was_owned, SeqCst);
        }
    }

    /// Tests if no other client has made a call, or is about to. If there was none at all, this client counts as one
    /// that is about to.
    pub(crate) fn is_only_user(&self, caller: &Caller) -> bool {
        self.user.claim(user(caller))
    }

    /// Tests if a message that belongs to no call may concern this realm: all calls in flight must be its own,
    /// and a message that may concern an earlier call of the owner is only for the owner.
    pub fn may_concern(&self, realm: Realm) -> bool {
        if self.is_for_owner(realm.principal) {
            return false;
        }
        let open = self.open.lock();
        open.values().all(|call| call.caller.realm == realm)
    }

    /// Finds the call that a question belongs to, among the calls that were in flight when it was read.
    pub async fn locate(&self, asked: &Asked, under_way: &UnderWay) -> Located {
        let tagged = asked
            .tag
            .and_then(|tag| self.open.lock().get(&tag).cloned());
        let task = asked.params.as_ref().and_then(related_task);
        let is_named = tagged.is_some() || task.is_some();
        let is_sure = is_named || under_way.is_one_call;
        let is_of_one = is_named || under_way.is_one_client;
        let owner = match (tagged, &task) {
            (Some(call), _) => Owner::Call(call),
            (None, Some(task)) => self.owner_of(task).await,
            // The call is over, or the request was not a call.
            (None, None) if asked.of_request => Owner::Nobody,
            (None, None) => self.owner(&under_way.candidates).await,
        };
        Located {
            owner,
            task,
            is_sure,
            is_of_one,
            is_named,
        }
    }

    /// The client to ask for roots when no call determines it.
    pub fn roots(&self) -> Option<(Caller, Backchannel)> {
        let roots = self.roots.lock();
        let known = roots.as_ref();
        known
            .filter(|(caller, line)| line.is_open() && !self.is_for_owner(caller.realm.principal))
            .cloned()
    }

    /// Tests if messages that belong to no particular call are withheld from this principal, because they may
    /// concern a call of the owner, even one that is over.
    pub fn is_for_owner(&self, principal: Principal) -> bool {
        principal != Principal::Owner && self.owned.load(Relaxed)
    }

    /// The call that a question belongs to, if it can be determined, now or after a wait. It is one of the
    /// calls that were in flight when the question was read.
    ///
    /// A call that the server has answered is not the one. A call that ended in another way may have been,
    /// and across principals even an answer proves nothing: while calls of several principals are in flight, a
    /// question is put to none of them. Once the owner has used the server, it is put to no other principal.
    async fn owner(&self, candidates: &[(u64, Arc<Open>)]) -> Owner {
        let until = clock::now() + AMBIGUOUS;
        let mut principals = candidates
            .iter()
            .map(|(_, call)| call.caller.realm.principal);
        let first = principals.next();
        if principals.any(|other| Some(other) != first)
            || first.is_some_and(|principal| self.is_for_owner(principal))
        {
            return Owner::Several;
        }
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // From here on, changes are noticed.
            changed.as_mut().enable();
            let (left, gone): (Vec<_>, Vec<_>) = {
                let open = self.open.lock();
                let is_left = |(tag, _): &&(u64, Arc<Open>)| open.contains_key(tag);
                candidates.iter().partition(is_left)
            };
            if gone.iter().any(|(_, call)| !call.is_answered()) {
                return Owner::Several;
            }
            let left: Vec<_> = left.iter().map(|(_, call)| Arc::clone(call)).collect();
            match only_one(&left) {
                Owner::Several => {}
                found => return found,
            }
            if timeout_at(until.into(), changed).await.is_err() {
                return Owner::Several;
            }
        }
    }

    /// The call that is about this task, if there is one. The server may ask before the gateway knows which
    /// task a call has become.
    async fn owner_of(&self, task: &str) -> Owner {
        let until = clock::now() + AMBIGUOUS;
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // From here on, changes are noticed.
            changed.as_mut().enable();
            let (found, may_come) = {
                let open = self.open.lock();
                let is_it = |call: &Open| call.task.get().is_some_and(|own| own == task);
                let mut found: Vec<_> = open.iter().filter(|(_, call)| is_it(call)).collect();
                // Oldest first: a request for the result waits longer than one for the status.
                found.sort_unstable_by_key(|(tag, _)| **tag);
                let found: Vec<_> = found.iter().map(|(_, call)| Arc::clone(call)).collect();
                let mut calls = open.values();
                let may_come = calls.any(|call| call.becomes_task.load(Relaxed));
                (found, may_come)
            };
            match only_one(&found) {
                Owner::Call(call) => return Owner::Call(call),
                Owner::Nobody if !may_come => return Owner::Nobody,
                Owner::Nobody | Owner::Several => {}
            }
            if timeout_at(until.into(), changed).await.is_err() {
                return Owner::Nobody;
            }
        }
    }

    /// The calls in flight at this moment. Taken when a question is read, before the connection reads on, so
    /// that a response that the server sent after the question has not ended any of them.
    pub(crate) fn under_way(&self) -> UnderWay {
        let open = self.open.lock();
        let mut calls: Vec<_> = open
            .iter()
            .map(|(tag, call)| (*tag, Arc::clone(call)))
            .collect();
        drop(open);
        // Oldest first.
        calls.sort_unstable_by_key(|(tag, _)| *tag);
        let first = calls.first().map(|(_, call)| call.client());
        let is_one_call = calls.len() == 1;
        let is_one_client = calls.iter().all(|(_, call)| Some(call.client()) == first);
        let mut principals = calls.iter().map(|(_, call)| call.caller.realm.principal);
        let principal = principals.next();
        let is_here = |(_, call): &(u64, Arc<Open>)| !call.away.load(Relaxed);
        if principals.all(|other| Some(other) == principal) && calls.iter().any(is_here) {
            calls.retain(is_here);
        }
        UnderWay {
            is_one_call,
            is_one_client,
            candidates: calls,
        }
    }
}

/// The calls in flight when a question was read.
#[derive(Debug)]
pub struct UnderWay {
    is_one_call: bool,
    /// All of them belong to one client, including calls whose client is away.
    is_one_client: bool,
    /// The calls that the question could belong to, oldest first.
    candidates: Vec<(u64, Arc<Open>)>,
}

impl UnderWay {
    /// Tests if this holds for one of the calls that the question could belong to.
    pub fn any(&self, is_it: impl Fn(&Open) -> bool) -> bool {
        self.candidates.iter().any(|(_, call)| is_it(call))
    }

    /// Tests if a question may be for this client without belonging to a call: no call of another one can have led to
    /// it.
    pub fn may_concern(&self, caller: &Caller) -> bool {
        let mut calls = self.candidates.iter();
        calls.all(|(_, call)| call.is_of(caller))
    }
}

/// A question, and the call that it belongs to.
#[derive(Debug)]
pub struct Located {
    /// The owner of the question.
    pub owner: Owner,
    /// The task that the question names.
    pub task: Option<String>,
    /// It is certain that the question belongs to this call.
    pub is_sure: bool,
    /// All calls that it could belong to are of one client.
    pub is_of_one: bool,
    /// The message itself names its call or its task.
    pub is_named: bool,
}

/// The owner of a question.
#[derive(Debug)]
pub enum Owner {
    /// It belongs to this call.
    Call(Arc<Open>),
    /// It belongs to no call.
    Nobody,
    /// It could belong to several clients.
    Several,
}

/// The call, if all are of one client: the one with the fewest questions, since the limit applies to each call.
fn only_one(calls: &[Arc<Open>]) -> Owner {
    let Some(first) = calls.first() else {
        return Owner::Nobody;
    };
    if calls.iter().any(|call| call.client() != first.client()) {
        return Owner::Several;
    }
    let waiting = |call: &Open| call.asked.lock().as_ref().map_or(usize::MAX, VecDeque::len);
    let hearing = calls.iter().filter(|call| !call.is_mute);
    match hearing.min_by_key(|call| (waiting(call), call.questions())) {
        Some(call) => Owner::Call(Arc::clone(call)),
        None => Owner::Nobody,
    }
}

impl Open {
    /// The client, as far as clients can be distinguished: two connections that identify themselves alike may
    /// be two programs.
    fn client(&self) -> (u64, u64, Realm) {
        (self.caller.key, self.caller.person, self.caller.realm)
    }

    /// Puts a question to the client, or to the user who answers in its place. After the end of the call the
    /// question is dropped, which tells its sender that there is no answer.
    pub fn ask(&self, question: Question) {
        if let Some(asked) = &mut *self.asked.lock() {
            asked.push_back(question);
            self.rung.notify_one();
        }
    }
}

/// Receives the questions of one call.
#[derive(Debug)]
pub struct CallQuestions {
    questions: Arc<Questions>,
    tag: u64,
    open: Arc<Open>,
}

impl CallQuestions {
    /// The tag of the call.
    pub const fn tag(&self) -> u64 {
        self.tag
    }

    /// Records that the client sees only this server, so that it may receive requests of extensions if it has
    /// declared one.
    pub fn set_alone(&self) {
        self.open.is_alone.store(true, Relaxed);
    }

    /// Records that the client has been asked and is expected to come back, or that it is back.
    pub fn set_away(&self, away: bool) {
        self.open.away.store(away, Relaxed);
        self.questions.changed.notify_waiters();
    }

    /// Records that the server has answered the call.
    pub fn set_answered(&self) {
        self.open.is_answered.store(true, Relaxed);
    }

    /// Records that the server has yet to report the task that the call becomes.
    pub fn becomes_task(&self) {
        self.open.becomes_task.store(true, Relaxed);
    }

    /// Records the task that the call is about.
    pub fn set_task(&self, task: String) {
        // A call is about one task.
        let _ = self.open.task.set(task);
        self.open.becomes_task.store(false, Relaxed);
        self.questions.changed.notify_waiters();
    }

    /// The next question.
    pub async fn next(&self) -> Question {
        loop {
            let question = self
                .open
                .asked
                .lock()
                .as_mut()
                .and_then(VecDeque::pop_front);
            if let Some(question) = question {
                question.is_taken.store(true, Relaxed);
                return question;
            }
            self.open.rung.notified().await;
        }
    }
}

impl Drop for CallQuestions {
    fn drop(&mut self) {
        self.questions.open.lock().remove(&self.tag);
        self.questions.changed.notify_waiters();
        // Dropping the questions tells their senders that there is no answer.
        *self.open.asked.lock() = None;
    }
}

/// The error for a question that no client answers.
pub fn unanswerable(question: &str) -> ErrorObject {
    let message = format!(
        "no client answers `{question}`: the client of the call does not support it, or there is \
         no such call"
    );
    ErrorObject::new(code::METHOD_NOT_FOUND, message)
}

#[cfg(test)]
mod tests {
    use switchboard_base::{backchannel::Asks, notifications::NotificationQueue, project::Project};
    use switchboard_client::Reason;
    use switchboard_wire::method;

    use super::*;

    fn caller(key: u64, principal: Principal) -> Caller {
        Caller::new(key, "c".into(), principal)
    }

    fn open(questions: &Arc<Questions>, key: u64) -> CallQuestions {
        questions.open(&caller(key, Principal::Owner), None, Raw::empty_object())
    }

    /// The person of the client that is asked; 0 if there are several.
    fn owner(questions: &Questions) -> Option<u64> {
        let candidates = questions.under_way().candidates;
        let candidates: Vec<_> = candidates.into_iter().map(|(_, call)| call).collect();
        match only_one(&candidates) {
            Owner::Call(owner) => Some(owner.caller.person),
            Owner::Nobody => None,
            Owner::Several => Some(0),
        }
    }

    #[test]
    fn question_goes_to_the_only_calling_client() {
        let questions = Arc::new(Questions::default());
        assert_eq!(owner(&questions), None);
        let one = open(&questions, 1);
        assert_eq!(owner(&questions), Some(1));
        let other = open(&questions, 3);
        assert_eq!(owner(&questions), Some(0));
        // A client that is expected to come back is not asked for others.
        other.set_away(true);
        assert_eq!(owner(&questions), Some(1));
        let stranger = questions.open(&caller(9, Principal::Anyone), None, Raw::empty_object());
        assert_eq!(owner(&questions), Some(0));
        stranger.set_away(true);
        assert_eq!(owner(&questions), Some(0));
        drop(stranger);
        drop(one);
        // Unless there is no other client.
        assert_eq!(owner(&questions), Some(3));
        drop(other);
        assert_eq!(owner(&questions), None);
    }

    #[test]
    fn call_without_pending_question_is_preferred() {
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
                is_taken: Arc::default(),
                reply,
            });
        }
        let waiting = |call: &Arc<Open>| call.asked.lock().as_ref().map(VecDeque::len);
        assert!(opened.iter().all(|call| waiting(call) == Some(1)));
    }

    /// Two programs may identify themselves alike over HTTP.
    #[test]
    fn connections_and_principals_are_distinguished() {
        let questions = Arc::new(Questions::default());
        let on = |key, principal| {
            let mut caller = caller(key, principal);
            caller.person = 7;
            questions.open(&caller, None, Raw::empty_object())
        };
        let one = on(1, Principal::Owner);
        assert_eq!(owner(&questions), Some(7));
        let other = on(2, Principal::Owner);
        assert_eq!(owner(&questions), Some(0));
        drop(other);
        let _stranger = on(1, Principal::Anyone);
        assert_eq!(owner(&questions), Some(0));
        drop(one);
        assert_eq!(owner(&questions), Some(7));
    }

    #[test]
    fn mute_request_counts_but_is_not_asked() {
        let questions = Arc::new(Questions::default());
        let mute = questions.open_mute(&caller(1, Principal::Owner));
        assert_eq!(owner(&questions), None);
        let same = open(&questions, 1);
        assert_eq!(owner(&questions), Some(1));
        drop(same);
        let _other = open(&questions, 2);
        assert_eq!(owner(&questions), Some(0));
        drop(mute);
        assert_eq!(owner(&questions), Some(2));
    }

    #[test]
    fn only_user_is_the_client_that_called() {
        let questions = Questions::default();
        let (one, two) = (caller(1, Principal::Owner), caller(2, Principal::Owner));
        questions.note(&one);
        questions.note(&one);
        assert!(questions.is_only_user(&one) && !questions.is_only_user(&two));
        assert!(!questions.is_only_user(&caller(1, Principal::Anyone)));
        questions.note(&two);
        questions.note(&one);
        assert!(!questions.is_only_user(&one) && !questions.is_only_user(&two));
        // One that asks for it before any call is about to make one.
        let questions = Questions::default();
        assert!(questions.is_only_user(&one) && !questions.is_only_user(&two));
        let mut elsewhere = one.clone();
        elsewhere.project = Project::known("/p".into());
        assert!(!questions.is_only_user(&elsewhere));
    }

    #[test]
    fn announcement_leaves_roots_with_the_only_user() {
        let questions = Questions::default();
        let line = |asks: &Arc<Asks>| {
            let sink = Arc::<NotificationQueue>::default();
            Backchannel::new(sink, Some(Arc::clone(asks)), Reason::default())
        };
        let [one, two, three] = [1, 2, 3].map(|number| caller(number, Principal::Owner));
        let asked = || questions.roots().map(|(client, _)| client.person);
        let asks: Arc<Asks> = Arc::default();
        questions.set_roots(&three, line(&asks));
        questions.note(&one);
        questions.set_roots(&one, line(&asks));
        questions.set_roots(&two, line(&Arc::default()));
        assert_eq!(asked(), Some(1));
        // A client that has left is not asked.
        asks.close();
        assert_eq!(asked(), None);
        questions.set_roots(&two, line(&Arc::default()));
        assert_eq!(asked(), Some(2));
    }

    #[test]
    fn messages_for_the_owner_are_withheld_from_strangers() {
        let questions = Arc::new(Questions::default());
        let concerns = |principal: Principal| questions.may_concern(principal.into());
        assert!(concerns(Principal::Anyone));
        questions.note(&caller(9, Principal::Anyone));
        let stranger = questions.open(&caller(9, Principal::Anyone), None, Raw::empty_object());
        assert!(concerns(Principal::Anyone));
        assert!(!concerns(Principal::Owner));
        drop(stranger);
        // From the owner's first call on, also between calls.
        questions.note(&caller(1, Principal::Owner));
        assert!(concerns(Principal::Owner));
        assert!(!concerns(Principal::Anyone));
    }

    /// The server may ask before the response with the task is processed.
    #[tokio::test(start_paused = true)]
    async fn question_waits_for_a_starting_task() {
        let questions = Arc::new(Questions::default());
        let (one, _other) = (open(&questions, 1), open(&questions, 2));
        assert!(matches!(questions.owner_of("t").await, Owner::Nobody));
        one.becomes_task();
        let asking = Arc::clone(&questions);
        let owner = tokio::spawn(async move { asking.owner_of("t").await });
        tokio::task::yield_now().await;
        one.set_task("t".to_owned());
        let Ok(Owner::Call(owner)) = owner.await else {
            panic!("the task is known");
        };
        assert_eq!(owner.caller.person, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn later_call_is_not_a_candidate() {
        let questions = Arc::new(Questions::default());
        let (one, other) = (open(&questions, 1), open(&questions, 2));
        let asking = Arc::clone(&questions);
        let owner = tokio::spawn(async move { asking.owner(&asking.under_way().candidates).await });
        tokio::task::yield_now().await;
        let late = open(&questions, 3);
        one.set_answered();
        drop(one);
        let Ok(Owner::Call(owner)) = owner.await else {
            panic!("there is one client left of those that it can be for");
        };
        assert_eq!(owner.caller.person, 2);
        drop((other, late));
    }

    #[test]
    fn call_without_answer_is_withdrawn_when_it_ends() {
        let questions = Arc::new(Questions::default());
        for is_answered in [true, false] {
            let call = open(&questions, 1);
            let opened = Arc::clone(&call.open);
            if is_answered {
                call.set_answered();
            }
            assert!(!opened.is_withdrawn());
            drop(call);
            assert_eq!(opened.is_withdrawn(), !is_answered);
        }
    }

    /// A client may disconnect, or the call may time out, while its question waits.
    #[tokio::test(start_paused = true)]
    async fn question_of_an_unanswered_call_reaches_no_client() {
        let questions = Arc::new(Questions::default());
        let (one, _other) = (open(&questions, 1), open(&questions, 2));
        let asking = Arc::clone(&questions);
        let owner = tokio::spawn(async move { asking.owner(&asking.under_way().candidates).await });
        tokio::task::yield_now().await;
        drop(one);
        assert!(matches!(owner.await, Ok(Owner::Several)));
    }

    #[tokio::test(start_paused = true)]
    async fn question_never_crosses_principals() {
        let questions = Arc::new(Questions::default());
        let one = open(&questions, 1);
        let _stranger = questions.open(&caller(9, Principal::Anyone), None, Raw::empty_object());
        let asking = Arc::clone(&questions);
        let owner = tokio::spawn(async move { asking.owner(&asking.under_way().candidates).await });
        tokio::task::yield_now().await;
        one.set_answered();
        drop(one);
        assert!(matches!(owner.await, Ok(Owner::Several)));
    }

    /// A call may be answered before its question is processed.
    #[tokio::test(start_paused = true)]
    async fn candidates_are_taken_when_question_is_read() {
        let questions = Arc::new(Questions::default());
        let one = open(&questions, 1);
        let _stranger = questions.open(&caller(9, Principal::Anyone), None, Raw::empty_object());
        let under_way = questions.under_way();
        one.set_answered();
        drop(one);
        assert!(!under_way.is_one_call && !under_way.is_one_client);
        let owner = questions.owner(&under_way.candidates).await;
        assert!(matches!(owner, Owner::Several));
    }

    #[tokio::test(start_paused = true)]
    async fn stranger_is_not_asked_once_the_owner_called() {
        let questions = Arc::new(Questions::default());
        let _stranger = questions.open(&caller(9, Principal::Anyone), None, Raw::empty_object());
        let owner = questions.owner(&questions.under_way().candidates).await;
        assert!(matches!(owner, Owner::Call(_)));
        questions.note(&caller(1, Principal::Owner));
        let owner = questions.owner(&questions.under_way().candidates).await;
        assert!(matches!(owner, Owner::Several));
    }

    #[test]
    fn absent_client_makes_the_owner_ambiguous() {
        let questions = Arc::new(Questions::default());
        let _one = open(&questions, 1);
        assert!(questions.under_way().is_one_client);
        let away = open(&questions, 2);
        away.set_away(true);
        assert!(!questions.under_way().is_one_client);
    }

    #[tokio::test(start_paused = true)]
    async fn ambiguous_question_reaches_no_client() {
        let questions = Arc::new(Questions::default());
        let _calls = [open(&questions, 1), open(&questions, 2)];
        assert!(matches!(
            questions.owner(&questions.under_way().candidates).await,
            Owner::Several
        ));
    }
}
