//! One request, from the client to the server that answers it.
//!
//! The server may ask back while it works. A server of an older revision sends requests of its own;
//! one of 2026-07-28 returns questions as its result, and expects the request again with the
//! answers. A client of an older revision is asked over its back channel and never sees that its
//! request was repeated. A client of 2026-07-28 gets the questions as the result of its request; if
//! the server is older, the call is suspended until the client comes back.

pub mod approval;
pub(crate) mod completion;
pub(crate) mod extension;
pub(crate) mod human;
mod in_flight;
mod input_requests;
pub(crate) mod question_rules;
mod record;
pub(crate) mod resumable;
mod rounds;
pub(crate) mod server_requests;
mod sign_in;
mod unasked_answers;

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
    time::Instant,
};

use switchboard_base::{
    backchannel::Backchannel,
    caller::{Caller, Guest, Realm},
    error::Error,
    extensions::is_foreign,
    health::Reason,
    view::View,
};
use switchboard_catalog::Kind;
use switchboard_client::{self as client, CallError, InputRequired, Raw, Revision};
use switchboard_config::Server;
use switchboard_outbound::{
    instance::{Admission, Items},
    limiter::Permit,
    live::Live,
    memory,
    questions::Question,
    upstream::{Lease, Upstream},
};
use switchboard_wire::{Era, Name, RawError, code, method};
use tokio::time::timeout_at;

use self::{
    approval::Pass,
    human::{AskSignal, Opening},
    in_flight::{InFlight, Next},
    record::Record,
    rounds::Rounds,
};
use crate::{
    core::Core,
    dispatch::handshake,
    relay::LastProgress,
    roots,
    scope::{Changes, Scope},
    suspended::{ResumeKey, refused, request_digest},
    translate,
};

/// A request to a server.
#[derive(Debug)]
pub(crate) struct UpstreamRequest<'a> {
    pub(crate) guest: &'a Guest,
    pub(crate) backchannel: Option<&'a Backchannel>,
    pub(crate) view: &'a View,
    pub(crate) method: Cow<'static, str>,
    /// The tool, prompt or resource, under the server's own name.
    pub(crate) name: Arc<str>,
    pub(crate) params: Option<Raw>,
    /// The changes to the tool that is called, which have been applied to the parameters.
    pub(crate) changes: Changes,
    /// The scope and the settings of the server under which the request was permitted.
    pub(crate) permitted: (Arc<Scope>, Arc<Server>),
    /// Signals that a person is asked, for clients that are not kept waiting.
    pub(crate) ask_signal: Option<&'a Arc<AskSignal>>,
    /// The request may be a repetition that carries answers. Others are not searched for a
    /// `requestState` again.
    pub(crate) returns: bool,
}

impl UpstreamRequest<'_> {
    /// The name that the client knows the item by, which an override may have changed.
    pub(crate) fn shown_name(&self) -> Arc<str> {
        let new_name = self
            .changes
            .iter()
            .find_map(|changes| changes.name.as_deref());
        new_name.map_or_else(|| Arc::clone(&self.name), Arc::from)
    }

    /// The items of the server that the request names. A completion may name a template or a
    /// resource.
    pub(crate) fn items(&self) -> Items<'_> {
        let named = |kind| [Some((kind, Cow::Borrowed(&*self.name))), None, None];
        match &*self.method {
            method::TOOLS_CALL => named(Kind::Tool),
            method::PROMPTS_GET => named(Kind::Prompt),
            method::RESOURCES_READ => named(Kind::Resource),
            method::COMPLETE => {
                let of = self.params.as_ref().and_then(|params| params.member("ref"));
                let text = |member| -> Option<Cow<'_, str>> {
                    Some(of.as_ref()?.member(member)?.to_text()?.into())
                };
                [
                    text("name").map(|name| (Kind::Prompt, name)),
                    text("uri").map(|uri| (Kind::Template, uri)),
                    text("uri").map(|uri| (Kind::Resource, uri)),
                ]
            }
            method if is_foreign(method) => {
                let params = self.params.as_ref();
                let uri = params.and_then(|params| params.member("uri")?.to_text());
                let uri = uri.map(|uri| (Kind::Resource, uri.into()));
                [uri, None, None]
            }
            _ => [None, None, None],
        }
    }
}

/// The questions of a server, with their keys.
type Questions = Vec<(String, Question)>;

/// The state of a call while its client is away.
#[derive(Debug)]
pub(crate) enum SuspendedCall {
    /// The server waits for these answers.
    Waiting {
        in_flight: Box<InFlight>,
        asked: Questions,
    },
    /// The server refused the call until a person has opened these addresses. The call then starts
    /// from scratch.
    Again {
        asked: Vec<(String, Raw)>,
        /// The arguments as the approver edited them.
        arguments: Option<Raw>,
    },
}

/// Forwards a request to the server and returns its response, translated to the client's revision.
/// Dropping the future withdraws the request.
pub(crate) async fn carry(
    core: &Arc<Core>,
    caller: &Caller,
    upstream: &Arc<Upstream>,
    outgoing: UpstreamRequest<'_>,
) -> Result<Raw, Error> {
    // A request that can be answered with questions can also be answered with "come back".
    let comes_back = matches!(
        &*outgoing.method,
        method::TOOLS_CALL | method::PROMPTS_GET | method::RESOURCES_READ
    ) || is_foreign(&outgoing.method);
    match outgoing.guest.era() {
        Era::Modern if comes_back => resumable::carry(core, caller, upstream, outgoing).await,
        Era::Modern | Era::Legacy => walk(core, caller, upstream, outgoing).await,
    }
}

async fn walk(
    core: &Arc<Core>,
    caller: &Caller,
    upstream: &Arc<Upstream>,
    outgoing: UpstreamRequest<'_>,
) -> Result<Raw, Error> {
    let mut record = Record::new(core, caller, upstream, &outgoing);
    let context = match CallContext::new(core, caller, upstream, &outgoing) {
        Ok(context) => context,
        Err(failure) => return record.finish(Err(failure)),
    };
    let pass = match context.gate(&mut record).await {
        Ok(pass) => pass,
        Err(failure) => return record.finish(Err(failure)),
    };
    // A resource that may not be read may not be read from the cache either.
    if let Some(kept) = context.remembered() {
        return record.finish(Ok(kept));
    }
    let mut lost = None;
    let patience = core.config.load().approvals.long_timeout;
    // The time in which a person is asked does not count.
    let mut rounds = Rounds::new(pass.params.clone(), patience, Instant::now());
    if pass.suspended
        && outgoing.returns
        && let Err(result) = context.again(&mut rounds)
    {
        return record.finish(result);
    }
    loop {
        let (live, place) = match context.arrive(rounds.since, lost.take()).await {
            Ok(found) => found,
            // The suspended call stays, with what its approver decided.
            Err(failure) if pass.suspended && outgoing.returns && !rounds.consented => {
                return record.finish(Err(failure));
            }
            // Boxed, like every path that few calls take.
            Err(failure) => {
                match Box::pin(context.overcome(&mut rounds, failure, &mut record)).await {
                    Ok(()) => continue,
                    Err(result) => return record.finish(result),
                }
            }
        };
        let params = rounds.params();
        // The client receives the server's questions as the result of its request.
        let asks_later = outgoing.guest.era() == Era::Modern && live.era() == Era::Legacy;
        let is_kept = (asks_later || pass.suspended) && outgoing.returns;
        let comes_back = is_kept && returns(params.as_ref());
        if comes_back {
            let (in_flight, asked) = match context.kept(params.as_ref()) {
                Ok(kept) => kept,
                Err(failure) => return record.finish(Err(failure)),
            };
            // The suspended call has its own record. Boxed, so that other calls need not carry space for this.
            record.forget();
            return Box::pin(context.resume(*in_flight, place, asked)).await;
        }
        let params = match context.sent(&live, &pass, params).await {
            Ok(params) => params,
            Err(failure) => return record.finish(Err(failure)),
        };
        let mut in_flight =
            InFlight::begin(&context, &live, place, params, record, rounds.since).await;
        let ended = if asks_later {
            match in_flight.with_answers(&context, rounds.consented).await {
                Next::Ended(ended) => ended,
                Next::Asked(asked) => return context.suspend(in_flight, asked),
            }
        } else {
            in_flight.accompany(&context).await
        };
        record = in_flight.into_record();
        let (asks, wants_person) = match context.asks(&live, &ended) {
            Ok(found) => found,
            Err(failure) => return record.finish(Err(failure)),
        };
        let result = match ended {
            // The server was lost before it received the request: send it to the next connection.
            Err(RequestError { unsent: true, .. }) => {
                lost = Some(live);
                continue;
            }
            Err(RequestError { failure, .. }) => {
                match Box::pin(context.overcome(&mut rounds, failure, &mut record)).await {
                    Ok(()) => continue,
                    Err(result) => return record.finish(result),
                }
            }
            Ok(result)
                if live.era() == Era::Modern
                    && (outgoing.guest.era() == Era::Legacy || wants_person) =>
            {
                match Box::pin(rounds.take(&context, &pass, result, &mut record)).await {
                    Ok(Some(result)) => Ok(result),
                    Ok(None) => continue,
                    Err(failure) => Err(failure),
                }
            }
            Ok(result) if asks => Box::pin(rounds::permit(&context, &pass, result)).await,
            Ok(result) if outgoing.guest.era() == Era::Modern && pass.asked => {
                context.with_pass(result, &pass, None)
            }
            ended => ended.map_err(|failed| failed.failure),
        };
        return record.finish(context.arrived(&live, result));
    }
}

/// The `requestState` of a request that repeats an earlier one.
fn request_state(params: Option<&Raw>) -> Result<String, Error> {
    let state = params.and_then(|params| params.member("requestState")?.to_text());
    state.ok_or_else(|| Error::invalid_params("`requestState` must be a string"))
}

/// Tests if a request of 2026-07-28 carries a `requestState`, and so repeats an earlier one.
fn returns(params: Option<&Raw>) -> bool {
    static REQUEST_STATE: Name = Name::new("requestState");
    // Most do not, which a search in the bytes shows.
    let params = params.filter(|params| params.may_name(&REQUEST_STATE));
    params.is_some_and(|params| params.member("requestState").is_some())
}

/// The context of one request.
pub(crate) struct CallContext<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) caller: &'a Caller,
    pub(crate) upstream: &'a Arc<Upstream>,
    /// The instance of the server that serves this caller.
    pub(crate) instance: Lease,
    pub(crate) outgoing: &'a UpstreamRequest<'a>,
    /// The generation of the cache of resources when the call began.
    reads: u64,
    /// The last progress reported to the client, if it asked for progress.
    told: Option<Arc<LastProgress>>,
    /// The arguments as the approver edited them.
    edited: OnceLock<Raw>,
}

impl<'a> CallContext<'a> {
    fn new(
        core: &'a Arc<Core>,
        caller: &'a Caller,
        upstream: &'a Arc<Upstream>,
        outgoing: &'a UpstreamRequest<'a>,
    ) -> Result<Self, Error> {
        let names_progress = in_flight::names_progress(outgoing.params.as_ref())?;
        let instance = upstream.instance(caller)?;
        roots::offer(&instance, caller, outgoing.guest, outgoing.backchannel);
        Ok(Self {
            core,
            caller,
            upstream,
            instance,
            outgoing,
            reads: upstream.deps.reads.generation(),
            told: names_progress.then(Arc::default),
            edited: OnceLock::new(),
        })
    }
}

impl CallContext<'_> {
    /// Tests if a server of 2026-07-28 asks a client of that revision for input, and if a person has to give it.
    fn asks(&self, live: &Live, ended: &Result<Raw, RequestError>) -> Result<(bool, bool), Error> {
        let is_modern = self.outgoing.guest.era() == Era::Modern && live.era() == Era::Modern;
        match ended {
            Ok(result) if is_modern && InputRequired::may_be_in(result) => {
                Ok((true, rounds::wants_person(self, result)?))
            }
            _ => Ok((false, false)),
        }
    }

    /// The parameters that are sent on this connection: in its revision, and without answers that
    /// the client must not give.
    async fn sent(
        &self,
        live: &Live,
        pass: &Pass,
        mut params: Option<Raw>,
    ) -> Result<Option<Raw>, Error> {
        if live.era() == Era::Modern {
            unasked_answers::check(self, live, pass).await?;
            let confined = params.map(|params| roots::confined(params, self.caller));
            let unclear = |error: RawError| Error::invalid_params(error.to_string());
            params = confined.transpose().map_err(unclear)?;
        }
        let (guest, person) = (self.outgoing.guest, self.has_person());
        Ok(translate::request(params, guest, live.era(), person))
    }

    /// Waits for a permit and for the server, on a connection in the client's era if there can be
    /// one.
    ///
    /// The permit comes first, because a server with permits in use is not stopped for being idle.
    async fn arrive(
        &self,
        started: Instant,
        mut lost: Option<Arc<Live>>,
    ) -> Result<(Arc<Live>, Permit), Error> {
        let instance = &*self.instance;
        let deadline = started + instance.request_timeout();
        let era = self.outgoing.guest.era();
        // The server could not be reached in that era, or does not list the item there.
        let mut is_bridged = false;
        let mut kept = None;
        let items = self.outgoing.items();
        loop {
            let place = match kept.take() {
                Some(place) => place,
                None => self.place(started, deadline).await?,
            };
            let alone = instance.other_with(&items).filter(|_| !is_bridged);
            let is_alone = alone.is_some();
            let other = alone.or_else(|| {
                let for_era = || instance.other_for(era, || self.may_be_asked());
                (!is_bridged).then(for_era).flatten()
            });
            let chosen = other.as_ref().unwrap_or(instance);
            let live = chosen.live();
            let live =
                live.filter(|live| lost.as_ref().is_none_or(|lost| !Arc::ptr_eq(live, lost)));
            if let Some(live) = live {
                let admitting = chosen.admit(&live, &items, deadline);
                match admitting.await? {
                    Admission::Yes => {
                        self.is_still_permitted()?;
                        return Ok((live, place));
                    }
                    Admission::Ended => lost = Some(live),
                    // The first connection does not list it, either.
                    Admission::Elsewhere if is_alone => return Err(chosen.unheard()),
                    Admission::Elsewhere => {
                        is_bridged = true;
                        kept = Some(place);
                        continue;
                    }
                }
            }
            drop(place);
            // Leave time for the first connection.
            let now = Instant::now();
            let until = match other {
                None => deadline,
                Some(_) => now + deadline.saturating_duration_since(now) / 2,
            };
            let ready = chosen.ready(until, lost.as_ref(), Some(era));
            // Boxed, like every path that few calls take.
            match Box::pin(self.while_starting(ready)).await {
                Ok(_) => {}
                Err(_) if other.is_some() && !is_alone => is_bridged = true,
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Waits for a permit until the deadline.
    async fn place(&self, started: Instant, deadline: Instant) -> Result<Permit, Error> {
        let upstream = self.upstream;
        let acquiring = self.instance.limiter.acquire(self.caller.key);
        let acquiring = acquiring.map_err(|full| Error::Busy {
            server: Arc::clone(&upstream.name),
            waiting: full.waiting,
        })?;
        let place = timeout_at(deadline.into(), acquiring).await.ok();
        // `timeout_at` returns a free permit even after the deadline.
        let place = place.filter(|_| Instant::now() < deadline);
        place.ok_or_else(|| Error::TimedOut {
            server: Arc::clone(&upstream.name),
            after: started.elapsed(),
        })
    }

    /// Tests if the server may ask the client, or a person, while it works on this request, in the
    /// way of the client's revision. Always `true` for a client of 2026-07-28, which has more
    /// features that only servers of its revision support.
    fn may_be_asked(&self) -> bool {
        let can = |capabilities: &Raw| {
            let mut kinds = ["elicitation", "sampling", "roots"].into_iter();
            kinds.any(|kind| capabilities.member(kind).is_some())
        };
        match self.outgoing.guest {
            Guest::Modern => true,
            Guest::Legacy { about, .. } => can(&about.capabilities) || self.has_person(),
        }
    }

    /// Waits for the server to start, and reports that as progress if the client asked for
    /// progress.
    async fn while_starting<T>(&self, start: impl Future<Output = T>) -> T {
        let token = in_flight::progress_token(self.outgoing.params.as_ref());
        let client = human::Client::new(self.outgoing.backchannel, token, self.told.clone());
        let words = format!("starting {}", self.upstream.name);
        client.wait_for_start(&words, start).await
    }

    fn capabilities(&self) -> Raw {
        self.outgoing
            .guest
            .capabilities(self.outgoing.params.as_ref())
    }

    /// The server info for results in the client's view.
    fn info(&self) -> Raw {
        handshake::info(self.core, self.caller.realm, self.outgoing.view)
    }

    /// Checks that the caller may still use what it requests. Its profile may have changed while the call waited,
    /// and its token may have ended.
    fn is_still_permitted(&self) -> Result<(), Error> {
        let is_owner = self.caller.realm == Realm::OWNER;
        let is_call = self.outgoing.method == method::TOOLS_CALL;
        if is_owner && !is_call {
            return Ok(());
        }
        let scope = self.core.scopes.of(self.caller.realm)?;
        let (then, settings) = &self.outgoing.permitted;
        if Arc::ptr_eq(&scope, then) && Arc::ptr_eq(&self.upstream.settings(), settings) {
            // Nothing has changed, as for nearly every call. The definition is checked on the connection.
            return Ok(());
        }
        let is_changed = || {
            let now = scope.changes_to(self.upstream, &self.outgoing.name);
            !now.are_called_like(&self.outgoing.changes)
        };
        if is_call && is_changed() {
            let message = "the tool has changed since the call was made, so it was not called";
            return Err(Error::advised(
                message,
                "list the tools again, then call it",
            ));
        }
        if is_owner {
            return Ok(());
        }
        self.core.upstream_in(&scope, &self.upstream.name)?;
        for (kind, name) in self.outgoing.items().iter().flatten() {
            let item = Some((*kind, &**name));
            self.core.may_use(&scope, self.upstream, item)?;
        }
        Ok(())
    }

    fn ticket(&self) -> ResumeKey {
        ticket(self.caller, self.upstream, self.outgoing)
    }

    /// The suspended call that this request resumes.
    fn kept(&self, params: Option<&Raw>) -> Result<(Box<InFlight>, Questions), Error> {
        let state = request_state(params)?;
        match self.core.suspended.take(&state, || self.ticket()) {
            Ok(SuspendedCall::Waiting { in_flight, asked }) => Ok((in_flight, asked)),
            // It was taken up before.
            Ok(SuspendedCall::Again { .. }) => Err(Error::Refused(refused())),
            Err(refused) => Err(Error::Refused(refused)),
        }
    }

    /// Resumes a suspended call: the server receives its answers.
    async fn resume(
        &self,
        mut in_flight: InFlight,
        place: Permit,
        asked: Vec<(String, Question)>,
    ) -> Result<Raw, Error> {
        in_flight.take_up(self, place);
        let mut given = rounds::answers_in(self.outgoing.params.as_ref());
        let unanswered = rounds::hand_in(&mut given, asked);
        if !unanswered.is_empty() {
            return self.suspend(in_flight, unanswered);
        }
        let live = in_flight.live();
        match in_flight.until_asked(self).await {
            Next::Asked(asked) => self.suspend(in_flight, asked),
            Next::Ended(ended) => {
                let ended = match ended.map_err(|failed| failed.failure) {
                    Err(Error::Answered(error)) if error.code == code::URL_ELICITATION_REQUIRED => {
                        // Only a new call can start from scratch once a person has opened them.
                        let opening = self.permitted(error).await;
                        Err(opening.map_or_else(|failure| failure, Opening::into_failure))
                    }
                    ended => ended,
                };
                let record = in_flight.into_record();
                record.finish(self.arrived(&live, ended))
            }
        }
    }

    /// Suspends the call, and returns its questions to the client.
    fn suspend(
        &self,
        mut in_flight: InFlight,
        asked: Vec<(String, Question)>,
    ) -> Result<Raw, Error> {
        in_flight.hang_up();
        let questions = Raw::object(asked.iter().map(|(key, question)| {
            let params = translate::question_for_modern(&question.method, question.params.clone());
            (&**key, rounds::question(&question.method, params))
        }));
        let kept = SuspendedCall::Waiting {
            in_flight: Box::new(in_flight),
            asked,
        };
        self.keep(questions, kept)
    }

    /// Asks the client to have addresses opened and to repeat its request.
    fn park_again(&self, elicitations: Vec<(String, Raw)>) -> Result<Raw, Error> {
        let questions = Raw::object(elicitations.iter().map(|(key, params)| {
            let params = translate::question_for_modern(method::ELICITATION, Some(params.clone()));
            (&**key, rounds::question(method::ELICITATION, params))
        }));
        let kept = SuspendedCall::Again {
            asked: elicitations,
            arguments: self.edited.get().cloned(),
        };
        self.keep(questions, kept)
    }

    /// Restarts the call if it waited for addresses, with the arguments that a person approved before. The error is the
    /// result to return instead.
    fn again(&self, rounds: &mut Rounds) -> Result<(), Result<Raw, Error>> {
        let state = request_state(rounds.params().as_ref()).map_err(Err)?;
        let is_again = |kept: &SuspendedCall| matches!(kept, SuspendedCall::Again { .. });
        let suspended = &self.core.suspended;
        let kept = suspended.take_if(&state, || self.ticket(), is_again);
        let kept = kept.map_err(|refused| Err(Error::Refused(refused)))?;
        let Some(SuspendedCall::Again { asked, arguments }) = kept else {
            return Ok(());
        };
        if let Some(arguments) = arguments {
            let params = approval::with_arguments(rounds.params().as_ref(), &arguments);
            rounds.begin_with(params.map_err(Err)?);
            // If it was set before, it had the same value.
            let _ = self.edited.set(arguments);
        }
        rounds::consent(rounds.params().as_ref(), asked)
            .map_err(|again| again.and_then(|again| self.park_again(again)))?;
        // The state and the answers were for the gateway.
        let bare = rounds.params();
        let bare = bare.map(|bare| bare.without(&["requestState", "inputResponses"]));
        rounds.begin_with(bare);
        rounds.consented = true;
        Ok(())
    }

    fn keep(&self, questions: Raw, kept: SuspendedCall) -> Result<Raw, Error> {
        let patience = self.core.config.load().approvals.long_timeout;
        let server = &self.upstream.name;
        let suspended = &self.core.suspended;
        let state = suspended.put(server, self.ticket(), patience, kept);
        // A call that cannot be kept is dropped, which withdraws it.
        let state = state.map_err(|_| Error::Crowded)?;
        let asked = Raw::object([
            ("resultType", Raw::string("input_required")),
            ("inputRequests", questions),
            ("requestState", Raw::string(&state)),
        ]);
        Ok(translate::modern(asked, || self.info()))
    }

    /// A cached result of an earlier read that may be served again.
    fn remembered(&self) -> Option<Raw> {
        let Self {
            caller,
            upstream,
            outgoing,
            ..
        } = self;
        if outgoing.method != method::RESOURCES_READ
            || returns(outgoing.params.as_ref())
            || !upstream.settings().enabled
        {
            return None;
        }
        let reads = &upstream.deps.reads;
        let (kept, left) = reads.get(&self.instance.id, &outgoing.name, caller.realm)?;
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let kept = kept
            .with_member("ttlMs", &Raw::number(left))
            .unwrap_or(kept);
        let client = outgoing.guest.revision();
        let (of, from) = (&*outgoing.method, Revision::LATEST);
        Some(translate::result(kept, of, from, client, || self.info()))
    }

    /// Caches a resource that was read, if the server permits that. Results that ask questions, may
    /// ask some, or depend on answers are not cached.
    fn remember(&self, live: &Live, result: &Raw) {
        let outgoing = self.outgoing;
        if outgoing.method == method::RESOURCES_READ
            && live.era() == Era::Modern
            && !returns(outgoing.params.as_ref())
            && !InputRequired::may_be_in(result)
            && InputRequired::of(result).is_ok_and(|input| input.is_none())
        {
            let (server, realm) = (&self.instance.id, self.caller.realm);
            let reads = &self.upstream.deps.reads;
            reads.put(self.reads, server, &outgoing.name, realm, result);
        }
    }

    /// The server's result, translated to the client's revision.
    fn arrived(&self, live: &Live, result: Result<Raw, Error>) -> Result<Raw, Error> {
        let (of, client) = (&*self.outgoing.method, self.outgoing.guest.revision());
        match result {
            Ok(result) => {
                self.remember(live, &result);
                let info = || self.info();
                Ok(translate::result(result, of, live.revision(), client, info))
            }
            Err(Error::Answered(error)) => self.refused(error),
            Err(failure) => Err(failure),
        }
    }

    /// The server's error, translated to the client's revision.
    fn refused(&self, error: client::ErrorObject) -> Result<Raw, Error> {
        let (of, era) = (&*self.outgoing.method, self.outgoing.guest.era());
        if error.code == code::URL_ELICITATION_REQUIRED {
            if era == Era::Modern {
                let Some(elicitations) = rounds::addresses(&error, &self.capabilities()) else {
                    let message = format!(
                        "the server asks the user to open a URL, which this client does not support: {}",
                        error.message
                    );
                    return Err(Error::invalid_params(message));
                };
                return self.park_again(elicitations);
            }
            if let Some(backchannel) = self.outgoing.backchannel {
                for address in human::addresses(&error) {
                    backchannel.asked_for(&self.upstream.name, Some(&address));
                }
            }
        }
        Err(Error::Answered(translate::error(error, of, era)))
    }
}

/// The key that a client has to match to resume this request.
fn ticket(caller: &Caller, upstream: &Upstream, outgoing: &UpstreamRequest<'_>) -> ResumeKey {
    let place = format!("{}\0{}", outgoing.view.place(), upstream.place(caller));
    ResumeKey {
        realm: caller.realm,
        request: request_digest(&place, &outgoing.method, outgoing.params.as_ref()),
    }
}

/// The error of a request to a server.
#[derive(Debug)]
struct RequestError {
    failure: Error,
    /// The server cannot have received the request.
    unsent: bool,
}

impl From<Error> for RequestError {
    fn from(failure: Error) -> Self {
        Self {
            failure,
            unsent: false,
        }
    }
}

/// Converts the connection's result.
fn outcome(upstream: &Upstream, result: Result<Raw, client::Error>) -> Result<Raw, RequestError> {
    if result.as_ref().is_ok_and(|result| !result.is_object()) {
        // Some readers take a list for the members of an object in order.
        return Err(RequestError::from(Error::Broken {
            server: Arc::clone(&upstream.name),
            reason: Reason::plain("its result is not an object"),
        }));
    }
    result.map_err(|error| {
        let unsent = is_for_the_next(&error);
        let failure = match error {
            // An error of the built-in memory server is an error of the gateway.
            client::Error::Server(error) if memory::is_built_in(&upstream.settings()) => {
                Error::of_memory(error)
            }
            client::Error::Call(CallError::RequestFailed(failure))
                if upstream.lacks_sign_in(&failure) =>
            {
                let error = client::Error::Call(CallError::RequestFailed(failure));
                let reason = Reason::of(&error);
                let outage = upstream.sign_in_outage();
                outage.unwrap_or_else(|| Error::NeedsSignIn {
                    server: Arc::clone(&upstream.name),
                    reason: Some(reason),
                })
            }
            error => Error::of(&upstream.name, error),
        };
        RequestError { failure, unsent }
    })
}

/// Tests if the server was lost before it can have received the request, so that the next
/// connection may get it.
fn is_for_the_next(error: &client::Error) -> bool {
    matches!(
        error,
        client::Error::Call(
            error @ (CallError::NotReady { .. }
            | CallError::Failed { .. }
            | CallError::Shutdown { .. }
            | CallError::ConnectionLost { .. }
            | CallError::RequestFailed(_))
        ) if error.is_unsent()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_unsent_at_shutdown_is_retried() {
        let stopped = |sent| client::Error::Call(CallError::Shutdown { sent });
        assert!(is_for_the_next(&stopped(false)));
        assert!(!is_for_the_next(&stopped(true)));
        assert!(!is_for_the_next(&client::Error::Call(CallError::Cancelled)));
    }
}
