//! A call in flight on a server's connection.

use std::{
    borrow::Cow,
    future::{IntoFuture, pending},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use switchboard_base::{
    backchannel::Backchannel, caller::Logs, error::Error, tasks::is_about_task,
};
use switchboard_client::{
    self as client, Answering, Call, CallError, Client, ErrorObject, Id, Raw, Reason,
};
use switchboard_outbound::{
    instances::Key,
    limiter::Permit,
    live::Live,
    questions::{CallQuestions, Question},
    upstream::{Lease, Upstream},
};
use switchboard_wire::{Era, Name, RawError, code, meta, method};
use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{sleep, sleep_until, timeout},
};

use super::{
    CallContext, Record, RequestError,
    input_requests::with_links,
    outcome,
    rounds::{answers_in, hand_in},
};
use crate::relay::Relay;

/// A call in flight. Dropping it withdraws the call.
#[derive(Debug)]
pub(crate) struct InFlight {
    upstream: Arc<Upstream>,
    /// Keeps the instance from making room for another.
    _instance: Lease,
    live: Arc<Live>,
    call: Sent,
    wants: Wants,
    /// The reason to send when the call is withdrawn.
    reason: Reason,
    /// Receives the questions of a server of an older revision.
    questions: Option<CallQuestions>,
    relay: Option<Arc<Relay>>,
    task: Option<Task>,
    record: Record,
    /// The server's deadline, and the time by which a progress report extends it.
    deadline: Instant,
    patience: Duration,
    /// The longest time that a client may take to answer a question.
    ask_patience: Duration,
    /// Released while the client is away, because the server waits and does not work.
    place: Option<Permit>,
    /// The questions that wait for a client or a person. Created on the first question, since few
    /// servers ask.
    asking: Option<JoinSet<()>>,
}

/// The next step of a call.
pub(super) enum Next {
    /// The server asks these questions, each under a key.
    Asked(Vec<(String, Question)>),
    Ended(Result<Raw, RequestError>),
}

/// The notifications that the client wants during the call.
#[derive(Debug, Clone, Copy)]
struct Wants {
    progress: bool,
    logs: bool,
}

/// A request that was sent.
#[derive(Debug)]
enum Sent {
    Call(Answering<Raw>),
    /// A request that creates a task.
    Creation(oneshot::Receiver<Result<Created, client::Error>>),
}

impl Future for Sent {
    type Output = Result<Created, client::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Call(call) => Pin::new(call).poll(cx).map_ok(Created::Result),
            Self::Creation(created) => {
                // A result is always sent, unless the runtime shuts down.
                let lost = |_| Err(CallError::Shutdown { sent: true }.into());
                let created = Pin::new(created).poll(cx);
                created.map(|created| created.unwrap_or_else(lost))
            }
        }
    }
}

/// Bounds a call that reports progress: each report grants a full time limit, up to this many
/// limits in total.
const PROGRESS_PATIENCE: u32 = 10;
/// Time without a message after which the client receives a sign of life.
const SILENCE: Duration = Duration::from_secs(20);
/// Questions that arrive within this time of the first are asked together.
const TOGETHER: Duration = Duration::from_millis(30);

impl InFlight {
    /// Sends the request.
    pub(super) async fn begin(
        context: &CallContext<'_>,
        live: &Arc<Live>,
        place: Permit,
        params: Option<Raw>,
        record: Record,
        since: Instant,
    ) -> Self {
        let CallContext {
            outgoing,
            upstream,
            instance,
            core,
            ..
        } = context;
        let patience = upstream.request_timeout();
        let questions = &instance.questions;
        questions.note(context.caller);
        let questions = (live.era() == Era::Legacy)
            .then(|| questions.open(context.caller, context.tool(), context.capabilities()));
        if let Some(questions) = questions
            .as_ref()
            .filter(|_| is_about_task(&outgoing.method))
        {
            questions.set_task(outgoing.name.to_string());
        }
        if let Some(questions) = questions.as_ref().filter(|_| context.is_alone()) {
            questions.set_alone();
        }
        let progress = context.told.is_some();
        let wanted = match outgoing.backchannel {
            Some(_) if live.may_log() => outgoing.guest.logs(outgoing.params.as_ref()),
            _ => Logs::None,
        };
        if let Logs::From(level) = wanted {
            Box::pin(live.want_level(level)).await;
        }
        // An older server that was not asked for a level logs as it likes; only this client
        // receives that.
        let logs = wanted != Logs::None || (outgoing.backchannel.is_some() && live.logs());
        let wants = Wants { progress, logs };
        let relay = (progress || logs).then(|| {
            Relay::new(
                context.hears_unnamed(),
                outgoing.backchannel.cloned(),
                progress_token(outgoing.params.as_ref()),
                context.told.clone(),
                wanted,
                outgoing.guest.era(),
                live.revision(),
            )
        });
        let reason = outgoing
            .backchannel
            .map_or_else(Reason::default, |backchannel| {
                Arc::clone(backchannel.reason())
            });
        let send = |method: Cow<'static, str>, params, wants| {
            let call = request(live, method, params, questions.as_ref());
            heard(call, relay.as_ref(), wants).reason(&reason)
        };
        let call = if context.wants_task(live) {
            if let Some(questions) = &questions {
                questions.becomes_task();
            }
            let wants = Wants {
                progress: false,
                ..wants
            };
            let creation = send(
                method::TOOLS_CALL.into(),
                Some(Task::asked_for(params)),
                wants,
            );
            Sent::Creation(Task::create(live, creation, patience))
        } else {
            Sent::Call(send(outgoing.method.clone(), params, wants).into_future())
        };
        Self {
            upstream: Arc::clone(upstream),
            _instance: instance.clone(),
            live: Arc::clone(live),
            call,
            wants,
            reason,
            questions,
            relay,
            task: None,
            deadline: since + patience,
            record,
            patience,
            ask_patience: core.config.load().approvals.long_timeout,
            place: Some(place),
            asking: None,
        }
    }

    pub(super) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live)
    }

    fn is_asking(&self) -> bool {
        self.asking
            .as_ref()
            .is_some_and(|asking| !asking.is_empty())
    }

    /// Waits for the response. Questions of the server go to the client on the back channel, or to
    /// a person.
    pub(super) async fn accompany(
        &mut self,
        context: &CallContext<'_>,
    ) -> Result<Raw, RequestError> {
        let backchannel = context.outgoing.backchannel;
        let mut silent = Some(Instant::now() + SILENCE);
        loop {
            let is_asking = self.is_asking();
            // The time in which a client or a person is asked does not count.
            let deadline = (!is_asking).then(|| self.deadline());
            let wake = deadline.into_iter().chain(silent).min();
            tokio::select! {
                biased;
                result = &mut self.call => if let Some(ended) = self.settled(result) {
                    return ended;
                },
                question = next_question(context, self.questions.as_ref()) => match (&question.to_person, backchannel) {
                    (Some(_), _) => self.ask_person(context, question),
                    (None, Some(backchannel)) => {
                        self.record.begin_wait();
                        let asking = self.asking.get_or_insert_default();
                        let server = Arc::clone(&self.upstream.name);
                        asking.spawn(ask(backchannel.clone(), server, question, self.ask_patience));
                    }
                    (None, None) => question.refuse(),
                },
                () = one_of(self.asking.as_mut()), if is_asking => self.renew(),
                () = at(wake) => {
                    show_life(&mut silent, backchannel);
                    if deadline.is_some() && let Some(overdue) = self.overdue() {
                        return Err(overdue.into());
                    }
                }
            }
        }
    }

    /// Waits for the response, or for questions that the request does not answer already, since a
    /// client may know in advance what it will be asked. The answers of a client that comes back
    /// belong to earlier questions.
    pub(super) async fn with_answers(
        &mut self,
        context: &CallContext<'_>,
        consented: bool,
    ) -> Next {
        // Answers that were for the gateway are not for the server.
        let given = context.outgoing.params.as_ref().filter(|_| !consented);
        let mut given = answers_in(given);
        loop {
            let asked = match self.until_asked(context).await {
                Next::Asked(asked) => asked,
                ended @ Next::Ended(_) => return ended,
            };
            let unanswered = hand_in(&mut given, asked);
            if !unanswered.is_empty() {
                return Next::Asked(unanswered);
            }
        }
    }

    /// Waits for the response, or for questions.
    pub(super) async fn until_asked(&mut self, context: &CallContext<'_>) -> Next {
        let backchannel = context.outgoing.backchannel;
        let mut asked: Vec<(String, Question)> = Vec::new();
        let mut all_by = None;
        let mut silent = Some(Instant::now() + SILENCE);
        loop {
            let is_asking = self.is_asking();
            // The time in which a person is asked does not count.
            let deadline = all_by.or_else(|| (!is_asking).then(|| self.deadline()));
            let wake = deadline.into_iter().chain(silent).min();
            tokio::select! {
                biased;
                result = &mut self.call => if let Some(ended) = self.settled(result) {
                    return Next::Ended(ended);
                },
                question = next_question(context, self.questions.as_ref()) => {
                    if question.to_person.is_some() {
                        self.ask_person(context, question);
                        continue;
                    }
                    let key = key(&question, &asked);
                    asked.push((key, question));
                    all_by.get_or_insert_with(|| Instant::now() + TOGETHER);
                }
                () = one_of(self.asking.as_mut()), if is_asking => self.renew(),
                () = at(wake) => {
                    show_life(&mut silent, backchannel);
                    if deadline.is_none_or(|deadline| deadline > Instant::now()) {
                        continue;
                    }
                    // The server may have cancelled some in the meantime.
                    asked.retain(|(_, question)| !question.reply.is_closed());
                    all_by = None;
                    if !asked.is_empty() {
                        return Next::Asked(asked);
                    }
                    if !is_asking && let Some(overdue) = self.overdue() {
                        return Next::Ended(Err(overdue.into()));
                    }
                }
            }
        }
    }

    /// Has a person answer a question, concurrently with the call.
    fn ask_person(&mut self, context: &CallContext<'_>, question: Question) {
        let mut person = context.person().counting(&question.count);
        if !question.is_sure {
            person.forget_tool();
        }
        self.record.begin_wait();
        self.asking.get_or_insert_default().spawn(async move {
            let Question {
                method,
                params,
                to_person,
                mut reply,
                ..
            } = question;
            let ruling = to_person.unwrap_or_default();
            let answer = tokio::select! {
                answer = person.answer(&method, params.as_ref(), &ruling) => answer,
                // The server has cancelled its question.
                () = reply.closed() => return,
            };
            let _ = reply.send(answer);
        });
    }

    /// Disconnects the call from its client, which is away for now.
    pub(super) fn hang_up(&mut self) {
        self.place = None;
        self.record.begin_wait();
        if let Some(questions) = &self.questions {
            questions.set_away(true);
        }
        if let Some(relay) = &self.relay {
            relay.hang_up();
        }
    }

    /// Reconnects the call to its client, which came back with this request.
    pub(super) fn take_up(&mut self, context: &CallContext<'_>, place: Permit) {
        let outgoing = context.outgoing;
        self.place = Some(place);
        self.renew();
        if let Some(questions) = &self.questions {
            questions.set_away(false);
        }
        if let Some(relay) = &self.relay {
            let params = outgoing.params.as_ref();
            let token = progress_token(params);
            let logs = outgoing.guest.logs(params);
            relay.take_up(
                outgoing.backchannel.cloned(),
                token,
                context.told.clone(),
                logs,
            );
        }
    }

    pub(super) fn into_record(mut self) -> Record {
        self.record.end_wait();
        self.record
    }

    /// The end of the call. `None` if it has only become a task, whose result is requested now.
    fn settled(
        &mut self,
        result: Result<Created, client::Error>,
    ) -> Option<Result<Raw, RequestError>> {
        let result = match result {
            Ok(Created::Task(task)) => {
                if let (Some(questions), Some(id)) = (&self.questions, task.id.to_text()) {
                    questions.set_task(id);
                }
                let params = Some(task.params());
                let call = request(
                    &self.live,
                    method::TASKS_RESULT,
                    params,
                    self.questions.as_ref(),
                );
                let call = heard(call, self.relay.as_ref(), self.wants).reason(&self.reason);
                self.call = Sent::Call(call.into_future());
                self.task = Some(*task);
                return None;
            }
            Ok(Created::Result(result)) => Ok(result),
            Err(error) => Err(error),
        };
        if let (Some(questions), Ok(_) | Err(client::Error::Server(_))) = (&self.questions, &result)
        {
            questions.set_answered();
        }
        let mut ended = outcome(&self.upstream, result);
        if let Some(task) = &mut self.task {
            task.over = true;
            // The server has received the call itself.
            if let Err(failed) = &mut ended {
                failed.unsent = false;
            }
        }
        Some(ended)
    }

    fn deadline(&self) -> Instant {
        let Some(heard) = self.relay.as_ref().and_then(|relay| relay.heard()) else {
            return self.deadline;
        };
        let last = self.record.started + self.patience.saturating_mul(PROGRESS_PATIENCE);
        (heard + self.patience).min(last).max(self.deadline)
    }

    /// Grants the server a full time limit from now on.
    fn renew(&mut self) {
        if !self.is_asking() {
            self.record.end_wait();
        }
        self.deadline = self.deadline.max(Instant::now() + self.patience);
    }

    fn overdue(&self) -> Option<Error> {
        if self.deadline() > Instant::now() {
            return None;
        }
        // No other reason has been set.
        let _ = self.reason.set("deadline passed".into());
        Some(Error::TimedOut {
            server: Arc::clone(&self.upstream.name),
            after: self.record.started.elapsed(),
        })
    }
}

/// A request to the server. It has no timeout of its own, because the time in which a person is
/// asked does not count.
fn request(
    live: &Live,
    method: impl Into<Cow<'static, str>>,
    params: Option<Raw>,
    questions: Option<&CallQuestions>,
) -> Call<Raw> {
    let client = live.client();
    let call = client.request(method, params).no_timeout().fail_fast();
    match questions {
        Some(questions) => call.tag(questions.tag()),
        None => call,
    }
}

/// Forwards the progress and log messages of the call.
fn heard(mut call: Call<Raw>, relay: Option<&Arc<Relay>>, wants: Wants) -> Call<Raw> {
    if let Some(relay) = relay.filter(|_| wants.progress) {
        let relay = Arc::clone(relay);
        call = call.on_raw_progress(move |params| relay.progress(&params));
    }
    if let Some(relay) = relay.filter(|_| wants.logs) {
        let relay = Arc::clone(relay);
        call = call.on_raw_log(move |message| relay.log(&message));
    }
    call
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time.into()).await,
        None => pending().await,
    }
}

/// Sends the client a sign of life, once, when it is due.
fn show_life(silent: &mut Option<Instant>, backchannel: Option<&Backchannel>) {
    let due = silent.take_if(|silent| *silent <= Instant::now());
    if let Some(backchannel) = backchannel.filter(|_| due.is_some()) {
        backchannel.begin();
    }
}

/// Waits until one of the questions is answered.
async fn one_of(asking: Option<&mut JoinSet<()>>) {
    if let Some(asking) = asking {
        asking.join_next().await;
    }
}

async fn next_question(context: &CallContext<'_>, questions: Option<&CallQuestions>) -> Question {
    let Some(questions) = questions else {
        return pending().await;
    };
    let question = questions.next().await;
    if question.to_person.is_some() {
        return question;
    }
    let params = question.params.as_ref();
    let params = params.map(|params| with_links(context, &question.method, params));
    Question { params, ..question }
}

/// Asks the client, and forwards its answer to the server.
async fn ask(backchannel: Backchannel, server: Arc<str>, question: Question, patience: Duration) {
    let Question {
        method,
        params,
        mut reply,
        ..
    } = question;
    let answer = tokio::select! {
        answer = timeout(patience, backchannel.ask(&server, &method, params.as_ref())) => answer,
        // The server has cancelled its question.
        () = reply.closed() => return,
    };
    let late = |_| {
        Err(ErrorObject::new(
            code::INTERNAL,
            "the client did not answer in time",
        ))
    };
    let _ = reply.send(answer.unwrap_or_else(late));
}

/// The key of a question: the server's name for it, if that is a word and not taken.
fn key(question: &Question, asked: &[(String, Question)]) -> String {
    let is_free = |name: &str| asked.iter().all(|(key, _)| key != name);
    let is_word = |name: &str| {
        (1..=64).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    match &question.name {
        Some(name) if is_word(name) && is_free(name) => name.clone(),
        _ => {
            let kind = question.method.split('/').next().unwrap_or_default();
            let names = (1..).map(|n| format!("{kind}_{n}"));
            // One of these names is free: there are fewer questions than names.
            names
                .take(asked.len() + 1)
                .find(|name| is_free(name))
                .unwrap_or_default()
        }
    }
}

/// Tests if a client asked for progress. Its token must not reach the server even if no progress is
/// forwarded: the gateway's own tokens are numbers as well, and the server's reports could be taken
/// for those of another call.
///
/// Parameters with two tokens, or with one in another letter case, are rejected: servers differ in
/// which one they take, and some ignore letter case.
pub(super) fn names_progress(params: Option<&Raw>) -> Result<bool, Error> {
    static PROGRESS_TOKEN: Name = Name::any_case(meta::PROGRESS_TOKEN);
    let Some(params) = params.filter(|params| params.may_name(&PROGRESS_TOKEN)) else {
        return Ok(false);
    };
    let unclear = |error: RawError| Error::invalid_params(error.to_string());
    let said = params.distinct_member(&[meta::META]).map_err(unclear)?;
    let token = said.map(|said| said.distinct_member(&[meta::PROGRESS_TOKEN]));
    Ok(token.transpose().map_err(unclear)?.flatten().is_some())
}

/// Removes the client's progress token, for a request whose progress is not forwarded.
pub(super) fn without_progress_token(params: Raw) -> Raw {
    if !names_progress(Some(&params)).unwrap_or_default() {
        return params;
    }
    let meta = params.member(meta::META).unwrap_or_else(Raw::empty_object);
    let meta = meta.without(&[meta::PROGRESS_TOKEN]);
    params.with_member(meta::META, &meta).unwrap_or(params)
}

/// The token under which a client wants to receive progress.
pub(super) fn progress_token(params: Option<&Raw>) -> Option<Raw> {
    let token = params?.member(meta::META)?.member(meta::PROGRESS_TOKEN)?;
    // A string or a number; other values could not be matched.
    Id::from_raw(token.clone()).is_some().then_some(token)
}

/// A task of a server of 2025-11-25 that offers the work only as a task. The gateway creates it, so
/// that any client can use the tool.
#[derive(Debug)]
struct Task {
    client: Client,
    id: Raw,
    over: bool,
}

#[derive(Debug)]
enum Created {
    Task(Box<Task>),
    /// The server returned the result at once.
    Result(Raw),
}

impl Task {
    /// The parameters of a call that is to become a task.
    fn asked_for(params: Option<Raw>) -> Raw {
        let params = without_progress_token(params.unwrap_or_else(Raw::empty_object));
        // The connection rejects parameters that are not an object.
        params
            .with_member("task", &Raw::empty_object())
            .unwrap_or(params)
    }

    /// Creates a task. If the client leaves before the task has an ID, it is cancelled once it has
    /// one.
    fn create(
        live: &Live,
        call: Call<Raw>,
        patience: Duration,
    ) -> oneshot::Receiver<Result<Created, client::Error>> {
        let (mut created, receiver) = oneshot::channel();
        let client = live.client().clone();
        tokio::spawn(async move {
            let left = async {
                created.closed().await;
                sleep(patience).await;
            };
            let result = tokio::select! {
                result = call.into_future() => result,
                () = left => return,
            };
            let of = |result: Raw| {
                let id = result.member("task").and_then(|task| task.member("taskId"));
                match id {
                    None => Created::Result(result),
                    Some(id) => Created::Task(Box::new(Self {
                        client,
                        id,
                        over: false,
                    })),
                }
            };
            // Dropping a task cancels it.
            drop(created.send(result.map(of)));
        });
        receiver
    }

    fn params(&self) -> Raw {
        Raw::object([("taskId", self.id.clone())])
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let cancel = self.client.request(method::TASKS_CANCEL, self.params());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // The server may refuse; there is nothing more to do about it.
            runtime.spawn(async move { drop(cancel.fail_fast().await) });
        }
    }
}

impl CallContext<'_> {
    /// Tests if no log message of the instance can be about tools that the client does not see.
    fn hears_unnamed(&self) -> bool {
        let (scope, _) = &self.outgoing.permitted;
        let is_its_own = || self.instance.key().is_some_and(Key::is_of_one_client);
        scope.sees_all_of(&self.upstream.name) || is_its_own()
    }

    /// Tests if this tool works only as a task, and this client did not ask for one.
    fn wants_task(&self, live: &Live) -> bool {
        if self.outgoing.method != method::TOOLS_CALL || !live.tasks() {
            return false;
        }
        let catalog = self.core.live_catalog.catalog();
        let tool = catalog
            .server(&self.upstream.name)
            .and_then(|part| part.find(switchboard_catalog::Kind::Tool, &self.outgoing.name));
        let asks = |params: &Raw| params.member("task").is_some();
        tool.is_some_and(|tool| requires_task(tool.raw()))
            && !self.outgoing.params.as_ref().is_some_and(asks)
    }
}

/// Tests if a tool works only as a task, by its definition.
fn requires_task(tool: &Raw) -> bool {
    static TASK_SUPPORT: Name = Name::new("taskSupport");
    if !tool.may_name(&TASK_SUPPORT) {
        return false;
    }
    let support = tool.member("execution");
    let support = support.and_then(|execution| execution.member("taskSupport")?.to_text());
    support.as_deref() == Some("required")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_task_support_is_read() {
        let tool = r#"{"execution":{"task\u0053upport":"required"}}"#;
        assert!(requires_task(&Raw::parse(tool).unwrap()));
    }
}
