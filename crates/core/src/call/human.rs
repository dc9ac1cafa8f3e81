//! Asks a person for a call: before it begins, or while it is in flight.
//!
//! While the person decides, the client receives a sign of life every ten seconds, and the call's
//! own time does not run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use switchboard_approvals::{Ask, Outcome, broker::SAMPLING_BYTES, form::Form};
use switchboard_base::{
    backchannel::{Backchannel, Sink},
    error::{Error, codes},
    view::View,
};
use switchboard_client::{ErrorObject, InputRequired, Raw, Reason};
use switchboard_config::Route;
use switchboard_outbound::{
    identity::identity_hash,
    questions::{CallCount, Ruling},
};
use switchboard_wire::{Era, code, meta, method};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit},
    time::{MissedTickBehavior, interval_at, timeout},
};

use super::{
    CallContext,
    question_rules::{self, Asker, REJECTED},
};
use crate::{approvals::question::About, core::Core, relay::LastProgress};

/// Interval of the signs of life that a client receives.
pub(super) const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// Time after which a client that asked for progress learns that its server is starting.
const START_SIGN: Duration = Duration::from_secs(1);
/// Time to wait for an answer before the client is sent away to come back later.
const AT_ONCE: Duration = Duration::from_millis(100);
/// The party that answers a server's question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answerer {
    Client,
    Person,
    Nobody,
}

impl Answerer {
    /// The party that answers this question. A rule that asks a person takes precedence over the
    /// route.
    pub(crate) fn of(route: Route, question: &str, client_can: bool, ruling: &Ruling) -> Self {
        let person_can = matches!(question, method::SAMPLING | method::ELICITATION);
        match route {
            _ if person_can && matches!(ruling, Ruling::Ask(_)) => Self::Person,
            Route::Human if person_can => Self::Person,
            _ if client_can => Self::Client,
            Route::Auto if person_can => Self::Person,
            Route::Auto | Route::Client | Route::Human => Self::Nobody,
        }
    }
}

/// The addresses that a server wants opened, as elicitation parameters.
pub(super) fn addresses(error: &ErrorObject) -> Vec<Raw> {
    let said = error
        .data
        .as_ref()
        .and_then(|data| data.member("elicitations"));
    let said = said.and_then(|said| said.elements()).unwrap_or_default();
    let asked = said.iter().take(InputRequired::QUESTIONS_MAX);
    asked.filter_map(address).collect()
}

/// An address that a server wants opened, as elicitation parameters.
fn address(said: &Raw) -> Option<Raw> {
    let bare = said.without(&["mode"]);
    bare.with_member("mode", &Raw::string("url")).ok()
}

/// Addresses that may be opened, and the error that reports them to a client.
pub(super) struct Opening {
    error: ErrorObject,
    /// Each as elicitation parameters.
    addresses: Vec<(Raw, Ruling)>,
}

impl Opening {
    /// The error for the client, if no person opens the addresses, or one has done so before.
    pub(super) fn into_failure(self) -> Error {
        let mut rulings = self.addresses.iter().map(|(_, ruling)| ruling);
        if rulings.any(|ruling| matches!(ruling, Ruling::Ask(_))) {
            return Error::advised(
                "the server asks the user again to open URLs, which a rule leaves to an approver",
                "send the call again",
            );
        }
        Error::Answered(self.error)
    }
}

/// Signals that a person is asked, so that the client can be sent away instead of waiting.
#[derive(Debug, Default)]
pub(crate) struct AskSignal {
    rung: Notify,
    /// The client was sent away and receives nothing until it comes back.
    away: AtomicBool,
}

impl AskSignal {
    pub(super) async fn rung(&self) {
        self.rung.notified().await;
    }

    pub(super) fn send_away(&self) {
        self.away.store(true, Relaxed);
    }

    /// The same back channel, muted once the client has been sent away.
    pub(super) fn backchannel(
        self: &Arc<Self>,
        backchannel: &Backchannel,
        reason: &Reason,
    ) -> Backchannel {
        let sink = Muted {
            backchannel: backchannel.clone(),
            ask_signal: Arc::clone(self),
        };
        Backchannel::new(Arc::new(sink), None, Arc::clone(reason))
    }
}

struct Muted {
    backchannel: Backchannel,
    ask_signal: Arc<AskSignal>,
}

impl Sink for Muted {
    fn put(&self, message: Bytes) -> bool {
        !self.ask_signal.away.load(Relaxed) && self.backchannel.put(message)
    }

    fn begin(&self) {
        if !self.ask_signal.away.load(Relaxed) {
            self.backchannel.begin();
        }
    }
}

/// Asks a person on behalf of one call.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    core: Arc<Core>,
    about: About,
    client: Client,
    ask_signal: Option<Arc<AskSignal>>,
    /// Counts the questions of the call.
    count: Arc<CallCount>,
}

/// The client that waits for the call.
#[derive(Debug, Clone, Default)]
pub(super) struct Client {
    backchannel: Option<Backchannel>,
    token: Option<Raw>,
    told: Option<Arc<LastProgress>>,
}

impl Client {
    pub(super) fn new(
        backchannel: Option<&Backchannel>,
        token: Option<Raw>,
        told: Option<Arc<LastProgress>>,
    ) -> Self {
        Self {
            backchannel: backchannel.cloned(),
            token,
            told,
        }
    }

    /// Awaits a future, and sends the client a sign of life with these words at intervals.
    pub(super) async fn wait<T>(&self, words: &str, what: impl Future<Output = T>) -> T {
        self.wait_from(SIGN_OF_LIFE, words, what).await
    }

    /// The same for the start of a server. A client that asked for progress soon learns why it
    /// waits.
    pub(super) async fn wait_for_start<T>(&self, words: &str, what: impl Future<Output = T>) -> T {
        let first = match (&self.token, &self.told) {
            (Some(_), Some(_)) => START_SIGN,
            _ => SIGN_OF_LIFE,
        };
        self.wait_from(first, words, what).await
    }

    async fn wait_from<T>(&self, first: Duration, words: &str, what: impl Future<Output = T>) -> T {
        let mut what = std::pin::pin!(what);
        let first = tokio::time::Instant::now() + first;
        let mut signs = interval_at(first, SIGN_OF_LIFE);
        signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                done = &mut what => return done,
                _ = signs.tick() => self.show_life(words),
            }
        }
    }

    fn show_life(&self, words: &str) {
        let Some(backchannel) = &self.backchannel else {
            return;
        };
        backchannel.begin();
        if let (Some(token), Some(told)) = (&self.token, &self.told)
            && let Some(sign) = told.sign()
            && let Ok(progress) = Raw::from_value(&sign)
        {
            let params = Raw::object([
                (meta::PROGRESS_TOKEN, token.clone()),
                ("progress", progress),
                ("message", Raw::string(words)),
            ]);
            backchannel.tell(method::PROGRESS, &params);
        }
    }
}

impl Person {
    /// Asks on behalf of no call in particular.
    pub(crate) fn alone(core: &Arc<Core>, server: &Arc<str>) -> Self {
        Self {
            core: Arc::clone(core),
            about: About {
                identity: identity_of(core, server),
                server: Arc::clone(server),
                tool: None,
                caller: None,
                principal: None,
                client_info: None,
            },
            client: Client::default(),
            ask_signal: None,
            count: Arc::default(),
        }
    }

    /// Asks about the item with this name.
    pub(super) fn naming(mut self, name: &Arc<str>) -> Self {
        self.about.tool = Some(Arc::clone(name));
        self
    }

    /// Counts the questions together with earlier ones of the same call.
    pub(super) fn counting(mut self, count: &Arc<CallCount>) -> Self {
        self.count = Arc::clone(count);
        self
    }

    /// Drops the tool, for a question that cannot be assigned to one call.
    pub(super) fn forget_tool(&mut self) {
        self.about.tool = None;
    }

    pub(super) fn about(&self) -> &About {
        &self.about
    }

    /// Asks a person. Dropping the future withdraws the request.
    pub(super) async fn ask(&self, ask: Ask) -> Outcome {
        let mut asking = std::pin::pin!(self.core.approvals.ask(ask));
        if let Some(ask_signal) = &self.ask_signal {
            // A stored answer arrives at once.
            match timeout(AT_ONCE, &mut asking).await {
                Ok(outcome) => return outcome,
                Err(_) => ask_signal.rung.notify_one(),
            }
        }
        self.client
            .wait("waiting for an approver to answer", asking)
            .await
    }

    /// Has a person answer a question of the server that the rules do not deny.
    pub(crate) async fn answer(
        &self,
        asked: &str,
        params: Option<&Raw>,
        ruling: &Ruling,
    ) -> Result<Raw, ErrorObject> {
        let refused = |code, message: &str| Err(ErrorObject::new(code, message));
        if params.is_some_and(|params| params.as_bytes().len() > SAMPLING_BYTES) {
            return refused(
                code::INVALID_PARAMS,
                "the request is too long to show to an approver",
            );
        }
        let settings = self.core.config.load().approvals.clone();
        let Some(mut ask) = self.about.question(&settings, asked, params) else {
            return refused(
                code::METHOD_NOT_FOUND,
                "an approver cannot answer this request",
            );
        };
        if asked == method::SAMPLING && self.core.config.load().sampling.provider.is_none() {
            let warning = "no model is configured: answer it yourself, or set `sampling.provider`";
            ask.warnings.push(warning.to_owned());
        }
        let (asking, server) = (&self.core.approvals.question_limits, &self.about.server);
        asking
            .question(server, &settings)
            .map_err(|exceeded| asking.refuse(server, asked, exceeded))?;
        ask.rule = ruling.rule().cloned();
        // A rule can let a model answer; it cannot fill in a form.
        if asked == method::SAMPLING && matches!(ruling, Ruling::Allow(_)) {
            ask.allowed_by = ask.rule.clone();
        }
        let _place = match &ask.allowed_by {
            Some(_) => self.within_budget(asked, &ask).await?,
            None => None,
        };
        match self.ask(ask).await {
            Outcome::Answer(answer) => Ok(answer.unwrap_or_else(Raw::empty_object)),
            Outcome::Rejected(reason) => {
                let mut message = match asked {
                    method::SAMPLING => "User rejected sampling request".to_owned(),
                    _ => "User rejected the request".to_owned(),
                };
                if let Some(reason) = reason {
                    message = format!("{message}: {reason}");
                }
                refused(REJECTED, &message)
            }
            Outcome::TimedOut(after) => {
                let message = format!("no approver answered within {} s", after / 1_000);
                refused(codes::TIMEOUT, &message)
            }
            // Only the approver learns the reason, which may contain private details.
            Outcome::Failed(_) => refused(code::INTERNAL, "the model failed to answer"),
            Outcome::Unavailable(why) => refused(
                code::INTERNAL,
                &format!("the gateway could not ask an approver: {why}"),
            ),
        }
    }

    /// Waits for a sampling slot, if the budget for unapproved sampling is not used up.
    async fn within_budget(
        &self,
        asked: &str,
        ask: &Ask,
    ) -> Result<Option<OwnedSemaphorePermit>, ErrorObject> {
        let core = &self.core;
        let budget = core.config.load().sampling.budget;
        let bytes = ask.request.as_bytes().len();
        let admitted = core
            .approvals
            .question_limits
            .sample(&ask.server, &budget, &self.count, bytes)
            .await;
        admitted.map_err(|exceeded| {
            core.approvals
                .question_limits
                .refuse(&ask.server, asked, exceeded)
        })
    }
}

/// The fingerprint of the server with this name.
pub(crate) fn identity_of(core: &Core, server: &str) -> Option<Arc<str>> {
    let config = core.config.load();
    config
        .servers
        .get(server)
        .map(|server| identity_hash(server).into())
}

impl CallContext<'_> {
    /// The person to ask on behalf of this call.
    pub(super) fn person(&self) -> Person {
        let outgoing = self.outgoing;
        Person {
            core: Arc::clone(self.core),
            about: About {
                identity: Some(identity_hash(&self.upstream.settings()).into()),
                server: Arc::clone(&self.upstream.name),
                tool: self.tool().cloned(),
                caller: Some(self.caller.clone()),
                principal: Some(self.core.tokens.title(self.caller.realm.principal)),
                client_info: outgoing.guest.info(outgoing.params.as_ref()),
            },
            client: Client::new(
                outgoing.backchannel,
                super::in_flight::progress_token(outgoing.params.as_ref()),
                self.told.clone(),
            ),
            ask_signal: outgoing.ask_signal.cloned(),
            count: Arc::default(),
        }
    }

    /// The tool that is called, if the request is a tool call.
    pub(super) fn tool(&self) -> Option<&Arc<str>> {
        (self.outgoing.method == method::TOOLS_CALL).then_some(&self.outgoing.name)
    }

    /// Judges a question of the server by the rules.
    pub(super) async fn judge(
        &self,
        asked: &str,
        params: Option<&Raw>,
    ) -> Result<Ruling, ErrorObject> {
        let asker = Asker {
            server: &self.upstream.name,
            tool: self.tool().map(|tool| &**tool),
            caller: Some(self.caller),
        };
        question_rules::judge(self.core, asker, asked, params).await
    }

    /// Tests if the server sees the capabilities of a person in addition to the client's. With the
    /// automatic route, a client of 2026-07-28 in the server's own view keeps its own capabilities,
    /// because it declares with each request what it may be asked.
    pub(super) fn has_person(&self) -> bool {
        let is_plain = matches!(self.outgoing.view, View::Server(_))
            && self.outgoing.guest.era() == Era::Modern;
        match self.core.config.load().approvals.route {
            Route::Human => true,
            Route::Auto => !is_plain,
            Route::Client => false,
        }
    }

    /// Tests if a person is to open these addresses.
    pub(super) fn is_for_person(&self, opening: &Opening) -> bool {
        opening.addresses.iter().any(|(params, ruling)| {
            self.answerer(method::ELICITATION, Some(params), ruling) == Answerer::Person
        })
    }

    /// The addresses that a server wants opened, without any that rules deny or a browser must not
    /// open. If none is left, the call fails.
    pub(super) async fn permitted(&self, error: ErrorObject) -> Result<Opening, Error> {
        let data = error.data.clone().unwrap_or_else(Raw::empty_object);
        let said = data.distinct_member(&["elicitations"]);
        let said = said.map_err(|error| Error::invalid_params(error.to_string()))?;
        let said = said.and_then(|said| said.elements()).unwrap_or_default();
        if said.is_empty() {
            let message = "the server asks the user to open a URL, but names none";
            return Err(Error::invalid_params(message));
        }
        let (mut kept, mut addresses, mut refused) = (Vec::new(), Vec::new(), None);
        for one in said.iter().take(InputRequired::QUESTIONS_MAX) {
            let params = address(one).filter(|params| {
                params.distinct_member(&["url"]).is_ok() && Form::read(params).host().is_some()
            });
            let Some(params) = params else {
                refused.get_or_insert_with(|| {
                    "the server asks the user to open a URL that is not a plain http or https URL".to_owned()
                });
                continue;
            };
            match self.judge(method::ELICITATION, Some(&params)).await {
                Ok(ruling) => {
                    kept.push(one.clone());
                    addresses.push((params, ruling));
                }
                Err(denied) => drop(refused.get_or_insert(denied.message)),
            }
        }
        let error = match refused {
            Some(why) if kept.is_empty() => return Err(Error::invalid_params(why)),
            _ if kept.len() == said.len() => error,
            _ => {
                let bare = data.without(&["elicitations"]);
                let data = bare.with_member("elicitations", &Raw::array(kept));
                let data = data.map_err(|error| Error::invalid_params(error.to_string()))?;
                error.with_data(data)
            }
        };
        Ok(Opening { error, addresses })
    }

    /// Asks a person to open these addresses.
    pub(super) async fn have_opened(&self, opening: &Opening) -> Result<(), Error> {
        let person = self.person();
        let refused = |error: ErrorObject| Error::invalid_params(error.message);
        for (params, ruling) in &opening.addresses {
            self.count_question(method::ELICITATION, &person.count)
                .map_err(refused)?;
            let answer = person.answer(method::ELICITATION, Some(params), ruling);
            let answer = answer.await.map_err(refused)?;
            let action = answer.member("action").and_then(|action| action.to_text());
            if action.as_deref() != Some("accept") {
                return Err(Error::invalid_params(
                    "the user declined to open the URL of the server",
                ));
            }
        }
        Ok(())
    }

    /// Counts a question of the server; an error if the server has asked too many.
    pub(super) fn count_question(
        &self,
        question: &str,
        count: &CallCount,
    ) -> Result<(), ErrorObject> {
        let (core, server) = (self.core, &self.upstream.name);
        let settings = &core.config.load().approvals;
        count.question(settings).map_err(|exceeded| {
            core.approvals
                .question_limits
                .refuse(server, question, exceeded)
        })
    }

    /// The party that answers a question of the server.
    pub(super) fn answerer(
        &self,
        question: &str,
        params: Option<&Raw>,
        ruling: &Ruling,
    ) -> Answerer {
        let can = switchboard_base::caller::answers(&self.capabilities(), question, params);
        let route = self.core.config.load().approvals.route;
        Answerer::of(route, question, can, ruling)
    }
}
