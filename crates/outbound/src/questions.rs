//! What servers of the older revisions ask while they work, and whose call it is that they ask for.
//!
//! Over Streamable HTTP a question comes on the stream of its call, and one on the stream of a request that is no
//! call, or is over, is put to no client. A question may also name the task that it belongs to. Over a pipe nothing
//! else says where it belongs: then it goes to the one client that has calls under way when the question is read. If
//! there are several of one principal, it waits for the server to answer the calls of all but one; if that takes too
//! long, if one of the calls ends otherwise, or if there are two principals, it is put to no client. It may also belong
//! to a call that was withdrawn: once the owner has called, it is never put to another principal. A client that has been
//! asked already and is to come back is not counted: a server that waits for an answer asks nothing else as a rule.

use std::{
    collections::VecDeque,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use switchboard_base::{
    backchannel::Backchannel,
    caller::{Caller, Principal},
    tasks::related_task,
};
use switchboard_client::{Asked, ErrorObject, Raw};
use switchboard_config::Approvals;
use switchboard_wire::code;
use tokio::{
    sync::{Notify, oneshot},
    time::timeout_at,
};

/// A question of a server, and where its answer goes.
#[derive(Debug)]
pub struct Question {
    /// What is asked.
    pub method: String,
    /// Its parameters.
    pub params: Option<Raw>,
    /// What the server calls it, if that is a word.
    pub name: Option<String>,
    /// The rule under which a person answers it in the client's place, if a person does.
    pub to_person: Option<Ruling>,
    /// Whether it is certain that it is asked for this very call.
    pub is_sure: bool,
    /// What the call has asked for so far.
    pub count: Arc<CallCount>,
    /// The receiver of the answer.
    pub reply: oneshot::Sender<Result<Raw, ErrorObject>>,
}

impl Question {
    /// Nobody can answer it.
    pub fn refuse(self) {
        let refused = unanswerable(&self.method);
        let _ = self.reply.send(Err(refused));
    }
}

/// The rule for a question that no rule denies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ruling {
    /// No rule is about it.
    #[default]
    Unruled,
    /// This rule wants a person to answer it.
    Ask(Arc<str>),
    /// This rule allows it.
    Allow(Arc<str>),
}

impl Ruling {
    /// The rule, as it is written.
    pub fn rule(&self) -> Option<&Arc<str>> {
        match self {
            Self::Unruled => None,
            Self::Ask(rule) | Self::Allow(rule) => Some(rule),
        }
    }
}

/// What one call has asked for so far.
#[derive(Debug, Default)]
pub struct CallCount {
    questions: AtomicU64,
    /// The answers of a model among them.
    pub sampled: AtomicU64,
}

/// A limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exceeded {
    /// The key of the configuration that sets it.
    pub key: &'static str,
    /// The limit.
    pub most: f64,
}

impl Exceeded {
    /// The limit of this key is reached.
    #[allow(clippy::cast_precision_loss)] // Limits are far from where that begins.
    pub fn new(key: &'static str, most: u64) -> Self {
        let most = most as f64;
        Self { key, most }
    }
}

impl CallCount {
    /// Takes in a question of this call.
    pub fn question(&self, settings: &Approvals) -> Result<(), Exceeded> {
        let most = settings.questions_per_call;
        if self.questions.fetch_add(1, Relaxed) >= most {
            return Err(Exceeded::new("approvals.questionsPerCall", most));
        }
        Ok(())
    }
}

/// The calls to one server of an older revision that are under way.
#[derive(Debug, Default)]
pub struct Questions {
    last: AtomicU64,
    open: Mutex<FxHashMap<u64, Arc<Open>>>,
    changed: Notify,
    /// Whether a call was the owner's so far.
    owned: AtomicBool,
    /// The client that said last that its roots have changed.
    roots: Mutex<Option<(Principal, Backchannel)>>,
}

/// A call under way.
#[derive(Debug)]
pub struct Open {
    /// Who called.
    pub caller: Caller,
    /// The tool, if it is a call of one.
    pub tool: Option<Arc<str>>,
    /// The capabilities of the client, which say what it can be asked.
    pub capabilities: Raw,
    asked: Mutex<VecDeque<Question>>,
    rung: Notify,
    /// Its client has been asked and is to come back: the server waits for it, and asks nothing else as a
    /// rule.
    away: AtomicBool,
    /// The task that the call is about or has become, by the server's name for it.
    task: OnceLock<String>,
    /// The server is to say which task the call has become.
    becomes_task: AtomicBool,
    /// Whether nobody can be asked for it.
    is_mute: bool,
    /// Its client sees this server alone, and is asked by requests.
    is_alone: AtomicBool,
    /// The server has answered it.
    is_answered: AtomicBool,
    /// Made when the server first asks, which few do.
    count: OnceLock<Arc<CallCount>>,
}

impl Open {
    /// The count of what the server has asked for during this call.
    pub fn count(&self) -> &Arc<CallCount> {
        self.count.get_or_init(Arc::default)
    }

    /// Tests if its client sees this server alone.
    pub fn is_alone(&self) -> bool {
        self.is_alone.load(Relaxed)
    }
}

/// How long a question waits that could be for one of several clients.
const AMBIGUOUS: Duration = Duration::from_secs(10);

impl Questions {
    /// A call of this client begins, of this tool if it is one. It is over when the registration is dropped.
    pub fn open(
        self: &Arc<Self>,
        caller: &Caller,
        tool: Option<&Arc<str>>,
        capabilities: Raw,
    ) -> CallQuestions {
        self.begin(caller, tool, capabilities, false)
    }

    /// The same for a request of this client for which nobody can be asked. A question may be for it.
    pub(crate) fn open_mute(self: &Arc<Self>, caller: &Caller) -> CallQuestions {
        self.note(caller.principal);
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
            asked: Mutex::default(),
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

    /// Whoever is on this back channel is asked for roots when no call says otherwise. The owner's word stands
    /// against anyone's.
    pub(crate) fn set_roots(&self, principal: Principal, backchannel: Backchannel) {
        let mut roots = self.roots.lock();
        let owned =
            |roots: &(Principal, Backchannel)| roots.0 == Principal::Owner && roots.1.is_open();
        if principal == Principal::Owner || !roots.as_ref().is_some_and(owned) {
            *roots = Some((principal, backchannel));
        }
    }

    /// Whether no call is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.lock().is_empty()
    }

    /// Takes note of whose calls there are.
    pub fn note(&self, principal: Principal) {
        if principal == Principal::Owner && !self.owned.load(Relaxed) {
            self.owned.store(true, Relaxed);
        }
    }

    /// Tests if what the server says of no call may be about this principal's: all calls under way are, and what may be
    /// about one of the owner's that is over is for the owner.
    pub fn may_concern(&self, principal: Principal) -> bool {
        if self.is_for_owner(principal) {
            return false;
        }
        let open = self.open.lock();
        open.values().all(|call| call.caller.principal == principal)
    }

    /// Finds the call that a question of the server is asked for, among those that were under way
    /// when it was read.
    pub async fn locate(&self, asked: &Asked, under_way: UnderWay) -> Located {
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
            // The call is over, or it was none.
            (None, None) if asked.of_request => Owner::Nobody,
            (None, None) => self.owner(under_way.candidates).await,
        };
        Located {
            owner,
            task,
            is_sure,
            is_of_one,
        }
    }

    /// The client to ask for roots when no call says otherwise.
    pub fn roots(&self) -> Option<Backchannel> {
        let roots = self.roots.lock();
        let known = roots.as_ref();
        let (_, backchannel) = known.filter(|(principal, _)| !self.is_for_owner(*principal))?;
        Some(backchannel.clone())
    }

    /// Tests if what the server says of no call in particular is kept from this principal: it may be about a call of
    /// the owner, also one that is over.
    fn is_for_owner(&self, principal: Principal) -> bool {
        principal != Principal::Owner && self.owned.load(Relaxed)
    }

    /// The call that a question belongs to, if that can be told, now or in a while. It is one of those
    /// that were under way when it came.
    ///
    /// A call that the server has answered is not the one that it asks for. One that ends otherwise may have been, and
    /// across principals even an answer proves nothing: what one says is never put to the other.
    async fn owner(&self, candidates: Vec<(u64, Arc<Open>)>) -> Owner {
        let until = Instant::now() + AMBIGUOUS;
        let mut principals = candidates.iter().map(|(_, call)| call.caller.principal);
        let first = principals.next();
        if principals.any(|other| Some(other) != first)
            || first.is_some_and(|first| self.is_for_owner(first))
        {
            return Owner::Several;
        }
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // From here on a change is noticed.
            changed.as_mut().enable();
            let (left, gone): (Vec<_>, Vec<_>) = {
                let open = self.open.lock();
                let is_left = |(tag, _): &&(u64, Arc<Open>)| open.contains_key(tag);
                candidates.iter().partition(is_left)
            };
            if gone.iter().any(|(_, call)| !call.is_answered.load(Relaxed)) {
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

    /// The call that is about this task, if there is one. The server may ask before it is known here which task a call
    /// has become.
    async fn owner_of(&self, task: &str) -> Owner {
        let until = Instant::now() + AMBIGUOUS;
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // From here on a change is noticed.
            changed.as_mut().enable();
            let (found, may_come) = {
                let open = self.open.lock();
                let is_it = |call: &Open| call.task.get().is_some_and(|own| own == task);
                let mut found: Vec<_> = open.iter().filter(|(_, call)| is_it(call)).collect();
                // The oldest first: what asks for the result waits longer than what asks how the task is.
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

    /// The calls under way at this instant. Taken when a question is read, before the connection reads on: an answer
    /// that the server sent after the question has ended none of them.
    pub(crate) fn under_way(&self) -> UnderWay {
        let open = self.open.lock();
        let mut calls: Vec<_> = open
            .iter()
            .map(|(tag, call)| (*tag, Arc::clone(call)))
            .collect();
        drop(open);
        // The oldest first.
        calls.sort_unstable_by_key(|(tag, _)| *tag);
        let first = calls.first().map(|(_, call)| call.client());
        let is_one_call = calls.len() == 1;
        let is_one_client = calls.iter().all(|(_, call)| Some(call.client()) == first);
        let mut principals = calls.iter().map(|(_, call)| call.caller.principal);
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

/// The calls under way when a question was read.
#[derive(Debug)]
pub struct UnderWay {
    is_one_call: bool,
    /// All of them are of one client, also those whose client is away.
    is_one_client: bool,
    /// Those that the question could be for, the oldest first.
    candidates: Vec<(u64, Arc<Open>)>,
}

/// A question, and the call that it is asked for.
#[derive(Debug)]
pub struct Located {
    /// Whose question it is.
    pub owner: Owner,
    /// The task that the question names.
    pub task: Option<String>,
    /// Whether it is certain that it is asked for this very call.
    pub is_sure: bool,
    /// True if all calls that it could be asked for are of one client.
    pub is_of_one: bool,
}

/// Whose question it is.
#[derive(Debug)]
pub enum Owner {
    /// It is asked for this call.
    Call(Arc<Open>),
    /// It belongs to no call.
    Nobody,
    /// It could be for one of several clients.
    Several,
}

/// The call that it must be, if all are of one client: of several, one that has not been asked for yet.
fn only_one(calls: &[Arc<Open>]) -> Owner {
    let Some(first) = calls.first() else {
        return Owner::Nobody;
    };
    if calls.iter().any(|call| call.client() != first.client()) {
        return Owner::Several;
    }
    let mut hearing = calls.iter().filter(|call| !call.is_mute);
    let Some(first) = hearing.next() else {
        return Owner::Nobody;
    };
    let mut hearing = std::iter::once(first).chain(hearing);
    let free = hearing.find(|call| call.asked.lock().is_empty());
    Owner::Call(Arc::clone(free.unwrap_or(first)))
}

impl Open {
    /// The client, as far as clients can be told apart: two that say the same of themselves, on a connection each, may
    /// be two programs.
    fn client(&self) -> (u64, u64, Principal) {
        (self.caller.key, self.caller.person, self.caller.principal)
    }

    /// Puts a question to its client, or to the person who answers in the client's place.
    pub fn ask(&self, question: Question) {
        self.asked.lock().push_back(question);
        self.rung.notify_one();
    }
}

/// Hears what is asked for one call.
#[derive(Debug)]
pub struct CallQuestions {
    questions: Arc<Questions>,
    tag: u64,
    open: Arc<Open>,
}

impl CallQuestions {
    /// What the call is to be tagged with.
    pub const fn tag(&self) -> u64 {
        self.tag
    }

    /// The client sees this server alone: it may be asked what extensions ask, if it has declared one.
    pub fn set_alone(&self) {
        self.open.is_alone.store(true, Relaxed);
    }

    /// The client has been asked, and is to come back; or it is back.
    pub fn set_away(&self, away: bool) {
        self.open.away.store(away, Relaxed);
        self.questions.changed.notify_waiters();
    }

    /// The server has answered the call.
    pub fn set_answered(&self) {
        self.open.is_answered.store(true, Relaxed);
    }

    /// The server is to say which task the call has become.
    pub fn becomes_task(&self) {
        self.open.becomes_task.store(true, Relaxed);
    }

    /// The call is about this task.
    pub fn set_task(&self, task: String) {
        // A call is about one.
        let _ = self.open.task.set(task);
        self.open.becomes_task.store(false, Relaxed);
        self.questions.changed.notify_waiters();
    }

    /// The next question.
    pub async fn next(&self) -> Question {
        loop {
            if let Some(question) = self.open.asked.lock().pop_front() {
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
        // Whoever asked is told that nobody answers.
        self.open.asked.lock().clear();
    }
}

/// The error for a question that no client answers.
pub fn unanswerable(question: &str) -> ErrorObject {
    let message = format!("the client of this call does not answer `{question}`, or there is none");
    ErrorObject::new(code::METHOD_NOT_FOUND, message)
}

#[cfg(test)]
mod tests {
    use switchboard_wire::method;

    use super::*;

    fn caller(key: u64, principal: Principal) -> Caller {
        Caller::new(key, "c".into(), principal)
    }

    fn open(questions: &Arc<Questions>, key: u64) -> CallQuestions {
        questions.open(&caller(key, Principal::Owner), None, Raw::empty_object())
    }

    /// The client that is asked; 0 if there are several.
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
        assert!(opened.iter().all(|call| call.asked.lock().len() == 1));
    }

    /// What two programs say of themselves over HTTP can be the same.
    #[test]
    fn connections_and_principals_are_told_apart() {
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
    fn a_request_without_an_ear_is_counted_and_not_asked() {
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
    fn the_owners_news_is_not_for_strangers() {
        let questions = Arc::new(Questions::default());
        assert!(questions.may_concern(Principal::Anyone));
        questions.note(Principal::Anyone);
        let stranger = questions.open(&caller(9, Principal::Anyone), None, Raw::empty_object());
        assert!(questions.may_concern(Principal::Anyone));
        assert!(!questions.may_concern(Principal::Owner));
        drop(stranger);
        // From the first call of the owner on, also between calls.
        questions.note(Principal::Owner);
        assert!(questions.may_concern(Principal::Owner));
        assert!(!questions.may_concern(Principal::Anyone));
    }

    /// The server may be faster than whoever waits for its answer.
    #[tokio::test(start_paused = true)]
    async fn a_task_that_begins_is_waited_for() {
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
    async fn a_call_that_begins_after_a_question_cannot_be_the_one_that_asks() {
        let questions = Arc::new(Questions::default());
        let (one, other) = (open(&questions, 1), open(&questions, 2));
        let asking = Arc::clone(&questions);
        let owner = tokio::spawn(async move { asking.owner(asking.under_way().candidates).await });
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

    /// A client may hang up, or the call may take too long, while its question waits.
    #[tokio::test(start_paused = true)]
    async fn question_of_a_call_that_was_not_answered_is_put_to_none() {
        let questions = Arc::new(Questions::default());
        let (one, _other) = (open(&questions, 1), open(&questions, 2));
        let asking = Arc::clone(&questions);
        let owner = tokio::spawn(async move { asking.owner(asking.under_way().candidates).await });
        tokio::task::yield_now().await;
        drop(one);
        assert!(matches!(owner.await, Ok(Owner::Several)));
    }

    #[tokio::test(start_paused = true)]
    async fn question_of_one_principal_is_never_put_to_another() {
        let questions = Arc::new(Questions::default());
        let one = open(&questions, 1);
        let _stranger = questions.open(&caller(9, Principal::Anyone), None, Raw::empty_object());
        let asking = Arc::clone(&questions);
        let owner = tokio::spawn(async move { asking.owner(asking.under_way().candidates).await });
        tokio::task::yield_now().await;
        one.set_answered();
        drop(one);
        assert!(matches!(owner.await, Ok(Owner::Several)));
    }

    /// A call may be answered before its question is judged.
    #[tokio::test(start_paused = true)]
    async fn question_is_judged_as_of_when_it_was_read() {
        let questions = Arc::new(Questions::default());
        let one = open(&questions, 1);
        let _stranger = questions.open(&caller(9, Principal::Anyone), None, Raw::empty_object());
        let under_way = questions.under_way();
        one.set_answered();
        drop(one);
        assert!(!under_way.is_one_call && !under_way.is_one_client);
        let owner = questions.owner(under_way.candidates).await;
        assert!(matches!(owner, Owner::Several));
    }

    #[tokio::test(start_paused = true)]
    async fn stranger_is_not_asked_once_the_owner_called() {
        let questions = Arc::new(Questions::default());
        let _stranger = questions.open(&caller(9, Principal::Anyone), None, Raw::empty_object());
        let owner = questions.owner(questions.under_way().candidates).await;
        assert!(matches!(owner, Owner::Call(_)));
        questions.note(Principal::Owner);
        let owner = questions.owner(questions.under_way().candidates).await;
        assert!(matches!(owner, Owner::Several));
    }

    #[test]
    fn client_that_is_away_keeps_another_from_being_known() {
        let questions = Arc::new(Questions::default());
        let _one = open(&questions, 1);
        assert!(questions.under_way().is_one_client);
        let away = open(&questions, 2);
        away.set_away(true);
        assert!(!questions.under_way().is_one_client);
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_could_be_for_several_is_put_to_none() {
        let questions = Arc::new(Questions::default());
        let _calls = [open(&questions, 1), open(&questions, 2)];
        assert!(matches!(
            questions.owner(questions.under_way().candidates).await,
            Owner::Several
        ));
    }
}
