//! Whether a call may go ahead: what rules say of it, and a person if they say so.
//!
//! A client of 2026-07-28 comes back with the same request while its server asks for input. So that
//! nobody is asked again each time, what has been decided is kept under the state that it brings back: once,
//! for the same principal and the same request.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use switchboard_approvals::{
    Outcome, is_alike,
    rules::{Action, Case},
};
use switchboard_client::{InputRequired, Raw};
use switchboard_wire::{Era, method};
use tokio::time::timeout_at;

use super::Way;
use crate::{
    approvals::{policy::hints, question::REQUEST_BYTES},
    failure::{Failure, cut},
    park::refused,
};

/// What is known of a call that goes ahead.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// What is sent to the server.
    pub(super) params: Option<Raw>,
    /// A person was asked.
    pub(super) asked: bool,
    /// What the person made of the arguments.
    arguments: Option<Raw>,
}

/// What is kept of a call that was let through, while its client answers what the server asks.
#[derive(Debug)]
pub(crate) struct Round {
    arguments: Option<Raw>,
    /// What a person has answered already. It is not for the client to see.
    answers: Option<Raw>,
    /// The state that the server gave.
    state: Option<Raw>,
}

impl Way<'_> {
    /// Has the call judged, and a person asked if need be.
    pub(super) async fn gate(&self) -> Result<Pass, Failure> {
        let errand = self.errand;
        let plain = Pass {
            params: errand.params.clone(),
            ..Pass::default()
        };
        if errand.guest.era() == Era::Modern && errand.returns {
            if let Some(pass) = self.returned()? {
                return Ok(pass);
            }
            // An older server has no states of its own, so that this one is nobody's: no person need be
            // asked to find that out.
            let live = self.upstream.live();
            if live.is_some_and(|live| live.era() == Era::Legacy) {
                return Err(Failure::Refused(refused()));
            }
        }
        if errand.method != method::TOOLS_CALL {
            return Ok(plain);
        }
        let approvals = &self.context.approvals;
        if approvals.policy().is_quiet() {
            return Ok(plain);
        }
        // Boxed, as all that few calls come to.
        Box::pin(self.judged(plain)).await
    }

    async fn judged(&self, mut pass: Pass) -> Result<Pass, Failure> {
        let (server, tool) = (&self.upstream.name, &self.errand.name);
        let unasked = |why: &str| Failure::Unasked {
            server: Arc::clone(server),
            why: why.into(),
        };
        if says_what_twice(pass.params.as_ref()) {
            // The server might read the other one.
            return Err(unasked("the call says twice what is called, or with what"));
        }
        let approvals = &self.context.approvals;
        if !approvals.wait_until_ready(self.context.wait()).await {
            return Err(unasked(
                "initializing: the store is not ready, so it is not known what was decided before; try again",
            ));
        }
        self.known().await?;
        let arguments = pass
            .params
            .as_ref()
            .and_then(|params| params.member("arguments"));
        let catalogue = self.context.shelf.catalogue();
        let definition = catalogue
            .server(server)
            .and_then(|part| part.find(switchboard_catalog::Kind::Tool, tool));
        let definition = definition.map(|tool| tool.raw().clone());
        if definition.is_none() {
            // Rules go by names: one that a server takes without offering it is none of theirs.
            let message = format!("server '{server}' offers no tool '{}'", cut(tool));
            return Err(Failure::invalid_params(message));
        }
        let case = Case {
            client: &self.caller.client,
            session: self.caller.person,
            project: self.caller.project.as_deref(),
            arguments: arguments.as_ref(),
            annotations: hints(definition.as_ref()),
            ..Case::tool_call(server, tool)
        };
        let verdict = approvals.policy().judge(&case, approvals.now());
        match verdict.action {
            Action::Allow => return Ok(pass),
            Action::Deny => {
                return Err(Failure::Denied {
                    server: Arc::clone(server),
                    tool: Arc::clone(tool),
                    why: verdict.why.into(),
                });
            }
            Action::Ask => {}
        }
        if let Some(arguments) = &arguments {
            if arguments.as_bytes().len() > REQUEST_BYTES {
                return Err(unasked("the arguments are too long to be shown"));
            }
            if switchboard_approvals::says_twice(arguments) {
                // What a person is shown would not be what the server reads.
                return Err(unasked("the arguments say something twice"));
            }
        }
        let annotations = definition.and_then(|tool| tool.member("annotations"));
        let person = self.person();
        let settings = self.context.config.load().approvals.clone();
        let mut ask = person.about().call(&settings, arguments, annotations);
        ask.rule = Some(match verdict.rule {
            Some(rule) => rule.text.into(),
            None => verdict.why.into(),
        });
        let outcome = tokio::select! {
            biased;
            outcome = person.ask(ask) => outcome,
            // It is not configured any more.
            () = self.upstream.ended() => return Err(self.upstream.not_connected()),
        };
        match outcome {
            Outcome::Answer(edited) => {
                pass.asked = true;
                let edited = edited.and_then(|edited| edited.member("arguments"));
                if let Some(arguments) = edited {
                    pass.params = with_arguments(pass.params.as_ref(), &arguments)?;
                    // There is one person's word for one call.
                    let _ = self.edited.set(arguments.clone());
                    pass.arguments = Some(arguments);
                }
                Ok(pass)
            }
            Outcome::Rejected(reason) => Err(Failure::Rejected {
                server: Arc::clone(server),
                tool: Arc::clone(tool),
                reason,
            }),
            Outcome::TimedOut(after) => Err(Failure::Unanswered {
                server: Arc::clone(server),
                tool: Arc::clone(tool),
                after: Duration::from_millis(after),
            }),
            Outcome::Failed(why) | Outcome::Unavailable(why) => Err(unasked(&why)),
        }
    }

    /// Waits until it is known what the server offers: rules are about that.
    async fn known(&self) -> Result<(), Failure> {
        let (shelf, server) = (&self.context.shelf, &self.upstream.name);
        let until = Instant::now() + self.context.wait();
        let mut changes = shelf.changes();
        loop {
            changes.borrow_and_update();
            if shelf.catalogue().server(server).is_some() {
                return Ok(());
            }
            self.upstream.ready(until, None).await?;
            if timeout_at(until.into(), changes.changed()).await.is_err() {
                return Err(self.upstream.initializing());
            }
        }
    }

    /// What a client that comes back brings along, if it was let through before: once.
    fn returned(&self) -> Result<Option<Pass>, Failure> {
        let params = self.errand.params.as_ref();
        let state = params.and_then(|params| params.member("requestState")?.to_text());
        let (Some(params), Some(state)) = (params, state) else {
            return Ok(None);
        };
        if self.context.parking.knows(&state, || self.ticket()) {
            return Ok(Some(Pass {
                params: Some(params.clone()),
                asked: true,
                arguments: None,
            }));
        }
        if self.context.rounds.origin(&state).is_none() {
            return Ok(None);
        }
        let round = self.context.rounds.take(&state, || self.ticket());
        let round = round.map_err(Failure::Refused)?;
        let pass = resumed(params, round);
        // What was taken apart here can be put together again.
        pass.map(Some).ok_or_else(|| Failure::Refused(refused()))
    }

    /// A result that asks the client for input, under a state of our own: what has been decided is kept for
    /// when it comes back with that, once.
    pub(super) fn with_pass(
        &self,
        result: Raw,
        pass: &Pass,
        answers: Option<Raw>,
    ) -> Result<Raw, Failure> {
        if (!pass.asked && answers.is_none()) || InputRequired::of(&result).is_none() {
            return Ok(result);
        }
        let patience = self.context.config.load().approvals.long_timeout;
        let round = Round {
            arguments: pass.arguments.clone(),
            answers,
            state: result.member("requestState"),
        };
        let (rounds, server) = (&self.context.rounds, &self.upstream.name);
        let state = rounds.put(server, self.ticket(), patience, round);
        let state = state.map_err(|_| Failure::Crowded)?;
        let bare = result.without(&["requestState"]);
        Ok(bare
            .with_member("requestState", &Raw::string(&state))
            .unwrap_or(bare))
    }
}

/// A request as it goes on, with what was decided before.
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
        arguments: round.arguments,
    })
}

/// Whether a call says twice what is called, or with what. Names that differ in their case are the same to
/// some servers.
fn says_what_twice(params: Option<&Raw>) -> bool {
    let members = params.and_then(Raw::members).unwrap_or_default();
    ["name", "arguments"].into_iter().any(|wanted| {
        let mut said = members.iter().filter(|(name, _)| is_alike(name, wanted));
        said.next().is_some_and(|(name, _)| name != wanted) || said.next().is_some()
    })
}

pub(super) fn with_arguments(
    params: Option<&Raw>,
    arguments: &Raw,
) -> Result<Option<Raw>, Failure> {
    let params = params.cloned().unwrap_or_else(Raw::empty_object);
    let params = params
        .without(&["arguments"])
        .with_member("arguments", arguments);
    let params = params.map_err(|error| Failure::invalid_params(error.to_string()))?;
    Ok(Some(params))
}
