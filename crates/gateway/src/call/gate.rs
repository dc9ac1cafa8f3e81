//! Whether a call may go ahead: what rules say of it, and a person if they say so.
//!
//! A client of 2026-07-28 comes back with the same request while its server asks for input. So that
//! nobody is asked again each time, what has been decided goes with the state that it brings back, under
//! seal, for the same principal and the same request.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use switchboard_approvals::{
    Outcome,
    rules::{Action, Case},
};
use switchboard_client::{InputRequired, Raw};
use switchboard_wire::{Era, method};

use super::{Way, returns};
use crate::{
    approvals::{policy::hints, question::REQUEST_BYTES},
    caller::Principal,
    failure::Failure,
    park::refused,
    seal::{Nonce, hex},
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

/// What goes with the state of a server.
#[derive(Debug, Serialize, Deserialize)]
struct Sealed {
    /// Until when it is good, in milliseconds since 1970.
    until: u64,
    request: String,
    principal: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Raw>,
    /// What a person has answered already.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Raw>,
}

const PURPOSE: &str = "round of a call";

impl Way<'_> {
    /// Has the call judged, and a person asked if need be.
    pub(super) async fn gate(&self) -> Result<Pass, Failure> {
        let errand = self.errand;
        let plain = Pass {
            params: errand.params.clone(),
            ..Pass::default()
        };
        if errand.guest.era() == Era::Modern && returns(errand.params.as_ref()) {
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
        let arguments = pass
            .params
            .as_ref()
            .and_then(|params| params.member("arguments"));
        let catalogue = self.context.shelf.catalogue();
        let definition = catalogue
            .server(server)
            .and_then(|part| part.find(switchboard_catalog::Kind::Tool, tool));
        let definition = definition.map(|tool| tool.raw().clone());
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
            () = self.taken_away() => return Err(self.upstream.not_connected()),
        };
        match outcome {
            Outcome::Answer(edited) => {
                pass.asked = true;
                let edited = edited.and_then(|edited| edited.member("arguments"));
                if let Some(arguments) = edited {
                    pass.params = with_arguments(pass.params.as_ref(), &arguments)?;
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

    /// Waits until the server is not configured any more. When the gateway stops, what is asked stays.
    async fn taken_away(&self) {
        self.upstream.ended().await;
        if self.context.approvals.is_closing() {
            std::future::pending::<()>().await;
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
        let Some((round, sealed)) = self.context.lasting_seal.reveal(PURPOSE, &state) else {
            return Ok(None);
        };
        let refused = || Failure::Refused(refused());
        let sealed: Sealed = serde_json::from_slice(&sealed).map_err(|_| refused())?;
        let ticket = self.ticket();
        let now = self.context.approvals.now();
        let fits = sealed.request == hex(&ticket.request)
            && sealed.principal == number(ticket.principal)
            && self.context.rounds.use_up(round, sealed.until, now);
        if !fits {
            return Err(refused());
        }
        let pass = resumed(params, sealed);
        // What was sealed here can be put together again.
        pass.map(Some).ok_or_else(refused)
    }

    /// A result that asks the client for input, with what has been decided under seal.
    pub(super) fn with_pass(&self, result: Raw, pass: &Pass, answers: Option<Raw>) -> Raw {
        if (!pass.asked && answers.is_none()) || InputRequired::of(&result).is_none() {
            return result;
        }
        let ticket = self.ticket();
        let patience = self.context.config.load().approvals.long_timeout;
        let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let sealed = Sealed {
            until: self.context.approvals.now().saturating_add(patience),
            request: hex(&ticket.request),
            principal: number(ticket.principal),
            arguments: pass.arguments.clone(),
            answers,
            state: result.member("requestState"),
        };
        // Plain data becomes JSON.
        let payload = serde_json::to_vec(&sealed).unwrap_or_default();
        // What a person has answered is for the server, and not for the client to read.
        let round = self.context.rounds.next();
        let state = self.context.lasting_seal.hide(PURPOSE, &round, &payload);
        let bare = result.without(&["requestState"]);
        bare.with_member("requestState", &Raw::string(&state))
            .unwrap_or(bare)
    }
}

/// A request as it goes on, with what was decided before.
fn resumed(params: &Raw, sealed: Sealed) -> Option<Pass> {
    let mut own = params.without(&["requestState"]);
    if let Some(state) = &sealed.state {
        own = own.with_member("requestState", state).ok()?;
    }
    if let Some(answers) = &sealed.answers {
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
    if let Some(arguments) = &sealed.arguments {
        own = with_arguments(Some(&own), arguments).ok()??;
    }
    Some(Pass {
        params: Some(own),
        asked: true,
        arguments: sealed.arguments,
    })
}

/// Whether a call says twice what is called, or with what.
fn says_what_twice(params: Option<&Raw>) -> bool {
    let members = params.and_then(Raw::members).unwrap_or_default();
    let twice = |wanted: &str| members.iter().filter(|(name, _)| name == wanted).count() > 1;
    twice("name") || twice("arguments")
}

/// The rounds that clients have come back for. Each is good once; those that were used up by an earlier run
/// of the gateway are forgotten, and good until their time is over.
#[derive(Debug)]
pub(crate) struct Used {
    /// Tells the rounds of this run from others.
    run: [u8; 16],
    last: AtomicU64,
    /// Each with when its time is over, in milliseconds since 1970.
    until: Mutex<HashMap<Nonce, u64>>,
}

/// The most that are remembered.
const USED_MAX: usize = 100_000;

impl Used {
    /// `None` if there is no randomness.
    pub(crate) fn new() -> Option<Self> {
        let mut run = [0; 16];
        getrandom::fill(&mut run).ok()?;
        Some(Self {
            run,
            last: AtomicU64::new(0),
            until: Mutex::default(),
        })
    }

    fn next(&self) -> Nonce {
        let number = self.last.fetch_add(1, Relaxed).to_le_bytes();
        let mut round = Nonce::default();
        round[..16].copy_from_slice(&self.run);
        round[16..].copy_from_slice(&number);
        round
    }

    /// Whether this was not used before, and is not too late.
    fn use_up(&self, round: Nonce, until: u64, now: u64) -> bool {
        let mut used = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= USED_MAX {
            used.retain(|_, until| *until > now);
        }
        until > now && used.len() < USED_MAX && used.insert(round, until).is_none()
    }
}

fn with_arguments(params: Option<&Raw>, arguments: &Raw) -> Result<Option<Raw>, Failure> {
    let params = params.cloned().unwrap_or_else(Raw::empty_object);
    let params = params
        .without(&["arguments"])
        .with_member("arguments", arguments);
    let params = params.map_err(|error| Failure::invalid_params(error.to_string()))?;
    Ok(Some(params))
}

const fn number(principal: Principal) -> u8 {
    match principal {
        Principal::Owner => 1,
        Principal::Anyone => 2,
    }
}
