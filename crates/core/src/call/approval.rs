//! Approval of calls: judges a call by the rules, and asks a person if a rule says so.
//!
//! A client of 2026-07-28 repeats the same request while its server asks for input. So that the
//! approver is not asked again each time, the decision is kept under the state that the client
//! brings back. It can be used once, by the same principal, for the same request.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

use switchboard_approvals::{
    Ask, Outcome,
    broker::REQUEST_BYTES,
    rules::{Action, Case, Guard, Hints, Kind, Verdict},
};
use switchboard_base::{
    audit::{Actor, Event},
    caller::Caller,
    error::{Error, cut},
    extensions::is_foreign,
    scrub,
};
use switchboard_client::{InputRequired, Raw};
use switchboard_outbound::overrides;
use switchboard_wire::{Era, RawError, method};

use super::{
    CallContext, Record,
    completion::{completed, expanded},
    extension::may_pass,
    input_requests::{unclear, with_result_links},
};
use crate::{
    approvals::{
        policy::{hints, hints_in},
        question::About,
    },
    core::Core,
    suspended::refused,
};

/// A call that may go ahead.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// The parameters to send to the server.
    pub(super) params: Option<Raw>,
    /// A person was asked.
    pub(super) asked: bool,
    /// The client came back with a state that the gateway issued.
    pub(super) returned: bool,
    /// The call that it comes back to is suspended.
    pub(super) suspended: bool,
    /// The arguments as the approver edited them.
    arguments: Option<Raw>,
}

/// The state of an approved call while its client answers the server's questions.
#[derive(Debug)]
pub(crate) struct Round {
    arguments: Option<Raw>,
    /// The answers that a person has given. The client must not see them.
    answers: Option<Raw>,
    /// The server's own state.
    state: Option<Raw>,
    /// The keys of the questions that the client was asked, if it may answer no others.
    asked: Option<Vec<String>>,
}

impl CallContext<'_> {
    /// Judges the call, and asks a person if a rule says so.
    pub(super) async fn gate(&self, record: &mut Record) -> Result<Pass, Error> {
        let outgoing = self.outgoing;
        let plain = Pass {
            params: outgoing.params.clone(),
            ..Pass::default()
        };
        if outgoing.guest.era() == Era::Modern && outgoing.returns {
            if let Some(pass) = self.returned()? {
                return Ok(pass);
            }
            // An older server issues no states, so no party issued this one. Refuse it without
            // asking a person.
            let live = self.instance.live();
            let is_older = live.is_some_and(|live| live.era() == Era::Legacy);
            if is_older && !self.instance.may_speak(Era::Modern) {
                return Err(Error::Refused(refused()));
            }
        }
        let Some(kind) = kind_of(&outgoing.method, outgoing.params.as_ref()) else {
            if is_foreign(&outgoing.method) {
                let (upstream, params) = (self.upstream, outgoing.params.as_ref());
                let passing = may_pass(self.core, self.caller, upstream, &outgoing.method, params);
                Box::pin(passing).await?;
            }
            return Ok(plain);
        };
        if is_quiet(self.core, self.caller, kind) {
            return Ok(plain);
        }
        // Boxed, like every path that few calls take.
        Box::pin(self.judged(kind, plain, record)).await
    }

    async fn judged(&self, kind: Kind, mut pass: Pass, record: &mut Record) -> Result<Pass, Error> {
        let (server, name) = (&self.upstream.name, &self.outgoing.name);
        let shown = self.outgoing.shown_name();
        let done = self.done(kind);
        let unasked = |why: &str| Error::Unasked {
            server: Arc::clone(server),
            tool: Arc::clone(&shown),
            done,
            why: why.into(),
            allow: None,
        };
        until_rules_are_known(self.core, server, &shown, done).await?;
        let completes = self.outgoing.method == method::COMPLETE;
        let (subject, arguments) = self.subject(kind, pass.params.as_ref());
        let definition = match kind {
            Kind::ToolCall => Some(self.definition().await?),
            _ => None,
        };
        let case = Case {
            kind,
            arguments: arguments.as_ref(),
            annotations: hints(definition.as_ref()),
            ..case(self.core, self.caller, server, &subject)
        };
        let approvals = &self.core.approvals;
        let verdict = approvals.policy().judge(&case, approvals.now());
        match verdict.action {
            Action::Allow => return Ok(pass),
            Action::Deny => {
                let of = (&**server, &*subject);
                let caller = Some(self.caller);
                record_denied(self.core, &self.outgoing.method, of, caller, &verdict);
                return Err(Error::Denied {
                    server: Arc::clone(server),
                    tool: Arc::clone(&shown),
                    done,
                    for_agents: verdict.denial().into(),
                    why: verdict.why.into(),
                });
            }
            Action::Ask if completes => {
                return Err(Error::Unasked {
                    server: Arc::clone(server),
                    tool: Arc::clone(&shown),
                    done,
                    why: "completions cannot ask for approval".into(),
                    allow: Some(format!("allow {kind} {server}:{name}").into()),
                });
            }
            Action::Ask => {}
        }
        let annotations = definition.and_then(|tool| tool.member("annotations"));
        let person = self.person().naming(name);
        let mut ask = self.question(kind, person.about(), arguments, annotations)?;
        ask.rule = Some(match verdict.rule {
            Some(rule) => rule.text.into(),
            None => verdict.why.into(),
        });
        record.begin_wait();
        let outcome = tokio::select! {
            biased;
            outcome = person.ask(ask) => outcome,
            // The server was removed from the configuration.
            () = self.instance.ended() => return Err(self.upstream.not_connected()),
        };
        record.end_wait();
        match outcome {
            Outcome::Answer(edited) => {
                pass.asked = true;
                let edited = edited.and_then(|edited| edited.member("arguments"));
                if let Some(arguments) = edited {
                    for changes in self.outgoing.changes.iter() {
                        overrides::check(changes, &arguments)?;
                    }
                    pass.params = with_arguments(pass.params.as_ref(), &arguments)?;
                    // A person decides once per call, so this is the first value.
                    let _ = self.edited.set(arguments.clone());
                    pass.arguments = Some(arguments);
                }
                Ok(pass)
            }
            Outcome::Rejected(reason) => Err(Error::Rejected {
                server: Arc::clone(server),
                tool: Arc::clone(&shown),
                done,
                reason,
            }),
            Outcome::TimedOut(after) => Err(Error::Unanswered {
                server: Arc::clone(server),
                tool: Arc::clone(&shown),
                done,
                after: Duration::from_millis(after),
            }),
            Outcome::Failed(why) | Outcome::Unavailable(why) => Err(unasked(&why)),
        }
    }

    /// The name and the arguments that rules match.
    fn subject(&self, kind: Kind, params: Option<&Raw>) -> (String, Option<Raw>) {
        let name = &self.outgoing.name;
        let completes = self.outgoing.method == method::COMPLETE;
        match kind {
            Kind::Resource => {
                let uri = if completes {
                    expanded(name, params)
                } else {
                    name.to_string()
                };
                let arguments = of_resource(&uri);
                (uri, Some(arguments))
            }
            Kind::Prompt if completes => (name.to_string(), Some(completed(params))),
            Kind::ToolCall | Kind::Prompt | Kind::Sampling | Kind::Elicitation => {
                let arguments = params.and_then(|params| params.member("arguments"));
                (name.to_string(), arguments)
            }
        }
    }

    /// The tool's definition.
    async fn definition(&self) -> Result<Raw, Error> {
        self.known().await?;
        let (server, tool) = (&self.upstream.name, &self.outgoing.name);
        let catalog = self.core.live_catalog.catalog();
        let definition = catalog
            .server(server)
            .and_then(|part| part.find(switchboard_catalog::Kind::Tool, tool));
        // Rules match names, so a tool that the server accepts without listing it would escape
        // them.
        definition.map(|tool| tool.raw().clone()).ok_or_else(|| {
            let shown = self.outgoing.shown_name();
            let message = format!("server `{server}` offers no tool `{}`", cut(&shown));
            Error::invalid_params(message)
        })
    }

    /// The verb for the request, such as `called`.
    pub(super) fn verb(&self) -> &'static str {
        let outgoing = &self.outgoing;
        let kind = kind_of(&outgoing.method, outgoing.params.as_ref());
        kind.map_or("called", |kind| self.done(kind))
    }

    /// The verb for the request, such as `called`.
    fn done(&self, kind: Kind) -> &'static str {
        match kind {
            _ if self.outgoing.method == method::COMPLETE => "completed",
            Kind::Resource => "read",
            Kind::Prompt => "given",
            _ => "called",
        }
    }

    /// The question for the approver; an error if it could not show the whole request.
    fn question(
        &self,
        kind: Kind,
        about: &About,
        arguments: Option<Raw>,
        annotations: Option<Raw>,
    ) -> Result<Ask, Error> {
        let unasked = |why: &str| Error::Unasked {
            server: Arc::clone(&self.upstream.name),
            tool: self.outgoing.shown_name(),
            done: self.done(kind),
            why: why.into(),
            allow: None,
        };
        if let Some(arguments) = &arguments {
            if arguments.as_bytes().len() > REQUEST_BYTES {
                return Err(unasked("the arguments are too long to show"));
            }
            if switchboard_approvals::says_twice(arguments) {
                // The approver would not see what the server reads.
                return Err(unasked("the arguments contain a name twice"));
            }
        }
        let settings = self.core.config.load().approvals.clone();
        Ok(match kind {
            Kind::Resource => about.read(&settings),
            Kind::Prompt => about.prompt(&settings, arguments),
            _ => about.call(&settings, arguments, annotations),
        })
    }

    /// Waits until the server's lists are known, because rules match their entries.
    async fn known(&self) -> Result<(), Error> {
        let (live_catalog, server) = (&self.core.live_catalog, &self.upstream.name);
        if live_catalog.catalog().server(server).is_some() {
            return Ok(());
        }
        let until = Instant::now() + self.upstream.request_timeout();
        let era = Some(self.outgoing.guest.era());
        let offered = self.upstream.offered(Some(self.caller), until, era);
        // Boxed, like every path that few calls take.
        Box::pin(self.while_starting(offered)).await.map(drop)
    }

    /// The kept approval of a client that comes back. Each can be used once.
    fn returned(&self) -> Result<Option<Pass>, Error> {
        let params = self.outgoing.params.as_ref();
        let state = params.and_then(|params| params.member("requestState")?.to_text());
        let (Some(params), Some(state)) = (params, state) else {
            return Ok(None);
        };
        if self.core.suspended.knows(&state, || self.ticket()) {
            return Ok(Some(Pass {
                params: Some(params.clone()),
                asked: true,
                returned: true,
                suspended: true,
                arguments: None,
            }));
        }
        if self.core.suspended.origin(&state).is_some() {
            return Err(Error::Refused(refused()));
        }
        if self.core.rounds.origin(&state).is_none() {
            return Ok(None);
        }
        let round = self.core.rounds.take(&state, || self.ticket());
        let round = round.map_err(Error::Refused)?;
        if let Some(asked) = &round.asked {
            answered_only(params, asked)?;
        }
        let pass = resumed(params, round);
        // Cannot fail: these parts were split here and fit together again.
        pass.map(Some).ok_or_else(|| Error::Refused(refused()))
    }

    /// Prepares a result that may ask the client for input: its links lead to the right server, and
    /// its state is one of the gateway's, under which the decision is kept for one use.
    pub(super) fn with_pass(
        &self,
        result: Raw,
        pass: &Pass,
        answers: Option<Raw>,
    ) -> Result<Raw, Error> {
        let result = with_result_links(self, result);
        let is_ruled = self.rules_answers();
        if !pass.asked && answers.is_none() && !is_ruled {
            return Ok(result);
        }
        let input = InputRequired::of(&result).map_err(|error| unclear(self, &error))?;
        let Some(input) = input else {
            return Ok(result);
        };
        let asked = is_ruled.then(|| {
            let keys = input.questions().iter().map(|(key, _)| key.clone());
            keys.collect()
        });
        let patience = self.core.config.load().approvals.long_timeout;
        let round = Round {
            arguments: pass.arguments.clone(),
            answers,
            state: result.member("requestState"),
            asked,
        };
        let (rounds, server) = (&self.core.rounds, &self.upstream.name);
        let state = rounds.put(server, self.ticket(), patience, round);
        let state = state.map_err(|_| Error::Crowded)?;
        let bare = result.without(&["requestState"]);
        Ok(bare
            .with_member("requestState", &Raw::string(&state))
            .unwrap_or(bare))
    }
}

/// Rejects answers to questions that were not asked, and answers that another reader might find
/// under another key.
fn answered_only(params: &Raw, asked: &[String]) -> Result<(), Error> {
    let unclear = |error: RawError| Error::invalid_params(error.to_string());
    let given = params.distinct_member(&["inputResponses"]);
    let Some(given) = given.map_err(unclear)? else {
        return Ok(());
    };
    let given = given
        .members()
        .ok_or_else(|| Error::invalid_params("`inputResponses` must be an object"))?;
    match given.iter().find(|(name, _)| !asked.contains(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let message = format!(
                "`inputResponses` answers `{}`, which is not an open question",
                cut(name)
            );
            Err(Error::invalid_params(message))
        }
    }
}

/// The parameters of a resumed request, with the earlier decisions and answers.
fn resumed(params: &Raw, round: Round) -> Option<Pass> {
    let mut own = params.without(&["requestState"]);
    if let Some(state) = &round.state {
        own = own.with_member("requestState", state).ok()?;
    }
    if let Some(answers) = &round.answers {
        let given = own
            .member("inputResponses")
            .and_then(|given| given.members());
        let mut all = answers.members().unwrap_or_default();
        let is_new = |name: &str| all.iter().all(|(known, _)| known != name);
        let given = given.unwrap_or_default().into_iter();
        let given: Vec<_> = given.filter(|(name, _)| is_new(name)).collect();
        all.extend(given);
        let all = Raw::object(all.iter().map(|(name, answer)| (&**name, answer.clone())));
        own = own
            .without(&["inputResponses"])
            .with_member("inputResponses", &all)
            .ok()?;
    }
    if let Some(arguments) = &round.arguments {
        own = with_arguments(Some(&own), arguments).ok()??;
    }
    Some(Pass {
        params: Some(own),
        asked: true,
        returned: true,
        suspended: false,
        arguments: round.arguments,
    })
}

/// The rule kind of a request; `None` if rules do not apply to it.
fn kind_of(of: &str, params: Option<&Raw>) -> Option<Kind> {
    match of {
        method::TOOLS_CALL => Some(Kind::ToolCall),
        method::RESOURCES_READ => Some(Kind::Resource),
        method::PROMPTS_GET => Some(Kind::Prompt),
        method::COMPLETE => {
            let of = params?.member("ref")?.member("type")?.to_text()?;
            Some(match &*of {
                "ref/resource" => Kind::Resource,
                _ => Kind::Prompt,
            })
        }
        _ => None,
    }
}

/// Checks that a client may subscribe to a resource. A person is not asked, because a subscription
/// has no end to wait for.
pub async fn may_watch(
    core: &Core,
    caller: &Caller,
    server: &Arc<str>,
    uri: &str,
) -> Result<(), Error> {
    if is_quiet(core, caller, Kind::Resource) {
        return Ok(());
    }
    until_rules_are_known(core, server, uri, "watched").await?;
    let verdict = judged_resource(core, caller, server, uri);
    match verdict.action {
        Action::Allow => Ok(()),
        Action::Deny => {
            let of = (&**server, uri);
            let asked = method::RESOURCES_SUBSCRIBE;
            record_denied(core, asked, of, Some(caller), &verdict);
            Err(Error::Denied {
                server: Arc::clone(server),
                tool: uri.into(),
                done: "watched",
                for_agents: verdict.denial().into(),
                why: verdict.why.into(),
            })
        }
        Action::Ask => Err(Error::Unasked {
            server: Arc::clone(server),
            tool: uri.into(),
            done: "watched",
            why: "subscriptions cannot ask for approval".into(),
            allow: Some(format!("allow resources {server}:{uri}").into()),
        }),
    }
}

/// Tests if a client that watches a resource may be notified that this one, possibly a part of it,
/// has changed.
pub(crate) fn may_hear(core: &Core, caller: &Caller, server: &str, uri: &str) -> bool {
    let scope = core.scopes.of(caller.realm);
    scope.is_ok_and(|scope| scope.permits(switchboard_catalog::Kind::Resource, server, uri))
        && (is_quiet(core, caller, Kind::Resource)
            || judged_resource(core, caller, server, uri).action == Action::Allow)
}

pub(super) fn judged_resource(core: &Core, caller: &Caller, server: &str, uri: &str) -> Verdict {
    let arguments = of_resource(uri);
    let case = Case {
        kind: Kind::Resource,
        arguments: Some(&arguments),
        ..case(core, caller, server, uri)
    };
    let approvals = &core.approvals;
    approvals.policy().judge(&case, approvals.now())
}

/// Records a request that a rule denied, or a question of a server about the caller's request.
pub(super) fn record_denied(
    core: &Core,
    method: &str,
    (server, name): (&str, &str),
    caller: Option<&Caller>,
    verdict: &Verdict,
) {
    let name = scrub::brief(name);
    let client = caller.map(Caller::shown).unwrap_or_default();
    core.audit.record(Event {
        what: "denied",
        subject: format!("{server}:{name}").into(),
        actor: caller.map(|caller| Actor {
            principal: Some(core.tokens.title(caller.realm.principal)),
            door: caller.door,
            peer: None,
        }),
        details: serde_json::json!({
            "method": method,
            "server": server,
            "tool": name,
            "client": client,
            "rule": verdict.rule.as_ref().map(|rule| scrub::brief(&rule.text)),
            "reason": scrub::brief(&verdict.why),
        }),
    });
}

/// Waits until the remembered decisions are loaded. The error names the request: the server, the tool and
/// the verb, such as `called`.
pub(super) async fn until_rules_are_known(
    core: &Core,
    server: &Arc<str>,
    tool: &str,
    done: &'static str,
) -> Result<(), Error> {
    let known = core.approvals.until_rules_are_known().await;
    known.map_err(|why| Error::Unasked {
        server: Arc::clone(server),
        tool: tool.into(),
        done,
        why: why.into(),
        allow: None,
    })
}

/// Returns `true` if no request of this kind by this caller needs to be judged.
pub(super) fn is_quiet(core: &Core, caller: &Caller, kind: Kind) -> bool {
    core.approvals.policy().is_quiet(kind) && guard(core, caller) == Guard::Never
}

/// The guard of the caller's profile; the strictest one if the profile is gone.
fn guard(core: &Core, caller: &Caller) -> Guard {
    let scope = core.scopes.of(caller.realm);
    scope.map_or(Guard::All, |scope| scope.guard())
}

/// A tool as its owner has changed it: its new name and annotations.
pub fn overridden(core: &Core, server: &str, tool: &str) -> (Option<String>, Hints) {
    let upstream = core.upstream(server);
    let settings = upstream.as_ref().map(|upstream| upstream.settings());
    let changes = settings.as_ref().and_then(|of| of.overrides.get(tool));
    let Some(changes) = changes else {
        return (None, Hints::default());
    };
    let annotations = changes.annotations.as_ref();
    let hints = annotations.map(hints_in).unwrap_or_default();
    (changes.name.clone(), hints)
}

pub(super) fn case<'a>(
    core: &Core,
    caller: &'a Caller,
    server: &'a str,
    name: &'a str,
) -> Case<'a> {
    let (new_name, overridden) = overridden(core, server, name);
    Case {
        new_name: new_name.map(Cow::Owned),
        overridden,
        guard: guard(core, caller),
        client: &caller.client,
        session: caller.session(),
        project: caller.project().map(|project| &**project),
        ..Case::tool_call(server, name)
    }
}

fn of_resource(uri: &str) -> Raw {
    Raw::object([("uri", Raw::string(uri))])
}

pub(super) fn with_arguments(params: Option<&Raw>, arguments: &Raw) -> Result<Option<Raw>, Error> {
    let params = params.cloned().unwrap_or_else(Raw::empty_object);
    let params = params
        .without(&["arguments"])
        .with_member("arguments", arguments);
    let params = params.map_err(|error| Error::invalid_params(error.to_string()))?;
    Ok(Some(params))
}
