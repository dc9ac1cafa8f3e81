//! The rounds of a request whose server asks for input.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use switchboard_base::{
    backchannel::Backchannel,
    caller::{Guest, answers},
    error::{Error, cut},
    tasks::is_about_task,
};
use switchboard_client::{ErrorObject, InputRequired, Raw};
use switchboard_outbound::questions::{CallCount, Question, Ruling};
use switchboard_wire::{code, method};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    CallContext, Record,
    approval::Pass,
    human::Answerer,
    input_requests::{read, unclear, with_links},
    question_rules::is_ruled,
};
use crate::{roots, translate};

/// The rounds of one request of an older client to a server of 2026-07-28.
#[derive(Debug)]
pub(super) struct Rounds {
    /// The parameters as the client sent them. Every round adds to these.
    first: Option<Raw>,
    next: Option<Raw>,
    asked: u32,
    /// Created when the server first asks, since few servers do.
    count: Option<Arc<CallCount>>,
    pauses: u32,
    /// A person has opened addresses. A server may ask for that once.
    opened: bool,
    /// The client has come back from addresses that it was to have opened.
    pub(super) consented: bool,
    /// The user has signed in to the server, which a call waits for once.
    pub(super) signed_in: bool,
    /// The longest time that the client may take to answer.
    patience: Duration,
    /// Start of the server's time limit, which excludes the time in which the client was asked.
    pub(super) since: Instant,
}

impl Rounds {
    pub(super) fn new(params: Option<Raw>, patience: Duration, since: Instant) -> Self {
        Self {
            next: params.clone(),
            first: params,
            asked: 0,
            count: None,
            pauses: 0,
            opened: false,
            consented: false,
            signed_in: false,
            patience,
            since,
        }
    }

    /// Replaces the parameters.
    pub(super) fn begin_with(&mut self, params: Option<Raw>) {
        self.next.clone_from(&params);
        self.first = params;
    }

    /// Starts the call from scratch, after the user has signed in.
    pub(super) fn begin_signed_in(&mut self) {
        self.signed_in = true;
        self.since = Instant::now();
    }

    /// The parameters of the next round.
    pub(super) fn params(&self) -> Option<Raw> {
        self.next.clone()
    }

    /// Handles a result of the server. `None` if the server asked for input and received it, so
    /// that another round follows.
    pub(super) async fn take(
        &mut self,
        context: &CallContext<'_>,
        pass: &Pass,
        result: Raw,
        record: &mut Record,
    ) -> Result<Option<Raw>, Error> {
        let server = &context.upstream.name;
        let input = InputRequired::of(&result).map_err(|error| unclear(context, &error))?;
        let Some(input) = input else {
            return Ok(Some(match context.outgoing.guest {
                // An older client has no form for questions in a result that waits for no answers.
                Guest::Legacy { .. } if InputRequired::may_be_in(&result) => {
                    translate::without_questions(&result)
                }
                Guest::Legacy { .. } | Guest::Modern => result,
            }));
        };
        let endless = || Error::Input {
            server: Arc::clone(server),
            reason: "it keeps asking for input".into(),
        };
        let answers = if input.is_pause() {
            self.pauses += 1;
            if self.pauses > InputRequired::PAUSES_MAX {
                return Err(endless());
            }
            sleep(InputRequired::pause(self.pauses)).await;
            Raw::empty_object()
        } else {
            self.asked += 1;
            if self.asked > InputRequired::ROUNDS_MAX {
                return Err(endless());
            }
            let count = self.count.get_or_insert_default();
            record.begin_wait();
            let gathered = gather(context, &input, self.patience, count).await;
            record.end_wait();
            self.since = Instant::now();
            let gathered = gathered.map_err(|reason| Error::Input {
                server: Arc::clone(server),
                reason: reason.into(),
            })?;
            if gathered.left.len() == input.questions().len() {
                // The result needs no change.
                return context.with_pass(result, pass, None).map(Some);
            }
            if !gathered.left.is_empty() {
                // The client answers the rest when it comes back.
                let left = gathered.left.iter();
                let left = left.map(|(key, question)| (&**key, question.clone()));
                let bare = result.without(&["inputRequests"]);
                let asked = bare.with_member("inputRequests", &Raw::object(left));
                let asked = asked.map_err(|error| Error::invalid_params(error.to_string()))?;
                let asked = context.with_pass(asked, pass, Some(gathered.answers))?;
                return Ok(Some(asked));
            }
            gathered.answers
        };
        let next = input.answered(self.first.as_ref(), &answers);
        self.next = Some(next.map_err(|error| Error::invalid_params(error.to_string()))?);
        Ok(None)
    }
}

/// The outcome of asking all questions.
struct Gathered {
    answers: Raw,
    /// The questions that a client of 2026-07-28 has to answer itself.
    left: Vec<(String, Raw)>,
}

/// Tests if a person or a rule has to decide about a question in this result, or the gateway
/// answers it. A result that programs would read in different ways is an error.
pub(super) fn wants_person(context: &CallContext<'_>, result: &Raw) -> Result<bool, Error> {
    if is_task(context, result) {
        // The result of a task is that of a call that has ended.
        let inner = result.distinct_member(&["result"]);
        let inner = inner.map_err(|error| unclear(context, &error.into()))?;
        if inner.is_some_and(|inner| translate::names_questions(&inner)) {
            return Err(Error::Input {
                server: Arc::clone(&context.upstream.name),
                reason: "it asks for input in the result of a finished task".into(),
            });
        }
    }
    let input = InputRequired::of(result).map_err(|error| unclear(context, &error))?;
    Ok(input.is_some_and(|input| {
        input.questions().iter().any(|(_, question)| {
            let (asked, params) = read(question);
            is_ruled(context.core, &asked)
                || roots::granted(&asked, context.caller).is_some()
                || context.answerer(&asked, params.as_ref(), &Ruling::Unruled) == Answerer::Person
        })
    }))
}

/// Judges the questions in a result that does not wait for their answers, such as the state of a
/// task. The client has to answer them, so questions that a rule leaves to a person are rejected.
pub(super) async fn permit(
    context: &CallContext<'_>,
    pass: &Pass,
    result: Raw,
) -> Result<Raw, Error> {
    let refused = |reason: String| Error::Input {
        server: Arc::clone(&context.upstream.name),
        reason: reason.into(),
    };
    let questions =
        InputRequired::requests_in(&result).map_err(|error| unclear(context, &error))?;
    let is_waiting = InputRequired::of(&result).is_ok_and(|input| input.is_some());
    for (_, question) in questions {
        let judged = judge(context, &question).await.map_err(refused)?;
        let Judged {
            asked,
            params,
            ruling,
        } = &judged;
        // Some clients answer every question in a result, of any kind.
        let is_plain =
            !is_waiting && !is_task(context, &result) && !matches!(ruling, Ruling::Ask(_));
        if is_plain && context.answerer(asked, params.as_ref(), ruling) == Answerer::Person {
            return Err(refused(format!(
                "it sent `{asked}`, which an approver answers, in a result that does not wait for an answer"
            )));
        }
        leave_to_client(context, &judged).map_err(refused)?;
    }
    context.with_pass(result, pass, None)
}

/// Rejects a question that the client must not answer, where no person is asked.
pub(super) fn leave_to_client(context: &CallContext<'_>, judged: &Judged) -> Result<(), String> {
    let Judged { asked, ruling, .. } = judged;
    if matches!(ruling, Ruling::Ask(_)) {
        return Err(format!(
            "it sent `{asked}`, which a rule leaves to an approver, but a task cannot ask for approval"
        ));
    }
    let route = context.core.config.load().approvals.route;
    if Answerer::of(route, asked, true, ruling) == Answerer::Person {
        return Err(format!(
            "it sent `{asked}`, which `approvals.route` leaves to an approver, but a task cannot ask for approval"
        ));
    }
    Ok(())
}

/// Tests if a result is about a task, which waits for its input by itself.
fn is_task(context: &CallContext<'_>, result: &Raw) -> bool {
    let kind = result.member("resultType").and_then(|kind| kind.to_text());
    asks_of_task(context) || kind.as_deref() == Some("task")
}

fn asks_of_task(context: &CallContext<'_>) -> bool {
    is_about_task(&context.outgoing.method)
}

/// A question that the rules do not deny.
pub(super) struct Judged {
    asked: String,
    params: Option<Raw>,
    ruling: Ruling,
}

/// Judges a question by the rules.
pub(super) async fn judge(context: &CallContext<'_>, question: &Raw) -> Result<Judged, String> {
    let (asked, params) = read(question);
    let ruling = context.judge(&asked, params.as_ref()).await;
    let ruling = ruling.map_err(|error| format!("it sent `{asked}`: {}", error.message))?;
    Ok(Judged {
        asked,
        params,
        ruling,
    })
}

/// Asks all questions at once. The error tells a person which input could not be obtained.
async fn gather(
    context: &CallContext<'_>,
    input: &InputRequired,
    patience: Duration,
    count: &Arc<CallCount>,
) -> Result<Gathered, String> {
    let questions = input.questions();
    // Nothing is asked if a part of it is denied.
    let mut judged = Vec::with_capacity(questions.len());
    for (_, question) in questions {
        judged.push(judge(context, question).await?);
    }
    let mut asking = JoinSet::new();
    let mut left = Vec::new();
    let mut given = vec![None; questions.len()];
    for (n, ((key, question), judged)) in questions.iter().zip(judged).enumerate() {
        let Judged {
            asked,
            params,
            ruling,
        } = judged;
        if let Some(roots) = roots::granted(&asked, context.caller) {
            given[n] = Some(roots);
            continue;
        }
        let answerer = context.answerer(&asked, params.as_ref(), &ruling);
        // A client of 2026-07-28 answers the questions that its own request returns.
        if !matches!(
            (answerer, context.outgoing.guest),
            (Answerer::Client, Guest::Modern)
        ) {
            let counted = context.count_question(&asked, count);
            counted.map_err(|error| format!("it sent `{asked}`: {}", error.message))?;
        }
        match (answerer, context.outgoing.guest) {
            (Answerer::Person, _) => {
                let person = context.person().counting(count);
                asking.spawn(async move {
                    let answer = person.answer(&asked, params.as_ref(), &ruling).await;
                    let refused =
                        |error: ErrorObject| format!("it sent `{asked}`: {}", error.message);
                    (n, answer.map_err(refused))
                });
            }
            (Answerer::Client, Guest::Modern) => left.push((key.clone(), question.clone())),
            (Answerer::Client, Guest::Legacy { .. }) => {
                let Some(backchannel) = context.outgoing.backchannel.cloned() else {
                    return Err(
                        "it asks for input, but this client does not accept questions".to_owned(),
                    );
                };
                let server = Arc::clone(&context.upstream.name);
                let params = params.map(|params| with_links(context, &asked, &params));
                asking.spawn(async move {
                    let late = |_| {
                        Err("it asked for input, and the client did not answer in time".to_owned())
                    };
                    let asking = timeout(patience, ask(&backchannel, &server, &asked, params));
                    (n, asking.await.unwrap_or_else(late))
                });
            }
            (Answerer::Nobody, _) => {
                return Err(format!(
                    "it sent `{}`, which this client does not support",
                    cut(&asked)
                ));
            }
        }
    }
    while let Some(asked) = asking.join_next().await {
        // The tasks do not panic.
        let Ok((n, answer)) = asked else { continue };
        given[n] = Some(answer?);
    }
    let given = questions.iter().zip(given);
    let answers = Raw::object(given.filter_map(|((key, _), answer)| Some((&**key, answer?))));
    Ok(Gathered { answers, left })
}

async fn ask(
    backchannel: &Backchannel,
    server: &Arc<str>,
    asked: &str,
    params: Option<Raw>,
) -> Result<Raw, String> {
    let params = translate::question_for_legacy(asked, params);
    let answer = backchannel.ask(server, asked, params.as_ref()).await;
    answer.map_err(|error| {
        format!(
            "it sent `{asked}`, and the client refused: {}",
            error.message
        )
    })
}

/// A question as it appears in a result of 2026-07-28.
pub(super) fn question(asked: &str, params: Option<Raw>) -> Raw {
    let members = [("method", Raw::string(asked))].into_iter();
    Raw::object(members.chain(params.map(|params| ("params", params))))
}

/// The answers in a request, by the key of their question.
pub(super) fn answers_in(params: Option<&Raw>) -> HashMap<String, Raw> {
    let given = params.and_then(|params| params.member("inputResponses")?.members());
    given.unwrap_or_default().into_iter().collect()
}

/// Passes a client's answers to the server that waits for them, each once. Returns the unanswered
/// questions, to be asked again.
pub(super) fn hand_in(
    given: &mut HashMap<String, Raw>,
    asked: Vec<(String, Question)>,
) -> Vec<(String, Question)> {
    let mut unanswered = Vec::new();
    for (key, question) in asked {
        let answer = given.remove(&key);
        match answer.filter(|answer| fits(&question.method, answer)) {
            Some(answer) => drop(question.reply.send(Ok(answer))),
            None if question.reply.is_closed() => {}
            None => unanswered.push((key, question)),
        }
    }
    unanswered
}

/// Tests if this can be an answer to a question of this kind.
fn fits(question: &str, answer: &Raw) -> bool {
    let has = |name: &str| answer.member(name);
    answer.is_object()
        && match question {
            method::ELICITATION => has("action").is_some_and(|action| {
                let action = action.to_text();
                matches!(action.as_deref(), Some("accept" | "decline" | "cancel"))
            }),
            method::SAMPLING => has("content").is_some(),
            method::ROOTS_LIST => has("roots").is_some(),
            _ => true,
        }
}

/// The addresses that a server of 2025-11-25 wants opened, for a client of 2026-07-28 that can have
/// them opened.
pub(super) fn addresses(error: &ErrorObject, capabilities: &Raw) -> Option<Vec<(String, Raw)>> {
    let named: Vec<_> = super::human::addresses(error)
        .into_iter()
        .enumerate()
        .filter(|(_, params)| answers(capabilities, method::ELICITATION, Some(params)))
        .map(|(n, params)| (format!("address_{}", n + 1), params))
        .collect();
    (!named.is_empty()).then_some(named)
}

impl CallContext<'_> {
    /// Has a person open the addresses that a server wants opened first, so that the call may start
    /// from scratch. Otherwise returns the error for the client.
    pub(super) async fn open(
        &self,
        rounds: &mut Rounds,
        error: ErrorObject,
        record: &mut Record,
    ) -> Option<Error> {
        let opening = match self.permitted(error).await {
            Ok(opening) => opening,
            Err(failure) => return Some(failure),
        };
        if rounds.opened || !self.is_for_person(&opening) {
            return Some(opening.into_failure());
        }
        record.begin_wait();
        let opened = self.have_opened(&opening).await;
        record.end_wait();
        if let Err(failure) = opened {
            return Some(failure);
        }
        rounds.opened = true;
        rounds.since = Instant::now();
        None
    }
}

/// Checks that a person has agreed to open the addresses. The error has the unanswered ones, if
/// there are any.
pub(super) fn consent(
    params: Option<&Raw>,
    asked: Vec<(String, Raw)>,
) -> Result<(), Result<Vec<(String, Raw)>, Error>> {
    let given = params.and_then(|params| params.member("inputResponses"));
    let mut unanswered = Vec::new();
    for (key, params) in asked {
        let answer = given.as_ref().and_then(|given| given.member(&key));
        let action = answer.and_then(|answer| answer.member("action")?.to_text());
        match action.as_deref() {
            Some("accept") => {}
            Some("decline" | "cancel") => {
                let message = "the user declined to open the URL of the server";
                let error = ErrorObject::new(code::INVALID_PARAMS, message);
                return Err(Err(Error::Refused(error)));
            }
            _ => unanswered.push((key, params)),
        }
    }
    if unanswered.is_empty() {
        Ok(())
    } else {
        Err(Ok(unanswered))
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn unanswered_question_is_asked_again() {
        let open = |method: &str| {
            let (reply, answer) = oneshot::channel();
            let question = Question {
                method: method.to_owned(),
                params: None,
                name: None,
                to_person: None,
                is_sure: true,
                count: Arc::default(),
                is_taken: Arc::default(),
                reply,
            };
            (question, answer)
        };
        let (form, mut form_answer) = open(method::ELICITATION);
        let (roots, mut roots_answer) = open(method::ROOTS_LIST);
        let (gone, gone_answer) = open(method::SAMPLING);
        drop(gone_answer);
        let params = Raw::parse(
            r#"{"inputResponses":{"a":{"action":"accept","content":{}},"b":{"action":"x"},"z":1}}"#,
        )
        .unwrap();
        let asked = vec![
            ("a".to_owned(), form),
            ("b".to_owned(), roots),
            ("c".to_owned(), gone),
        ];
        let mut given = answers_in(Some(&params));
        let unanswered = hand_in(&mut given, asked);
        let keys: Vec<_> = unanswered.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys, ["b"]);
        // A later question under this key has not been answered.
        assert!(!given.contains_key("a"));
        assert!(form_answer.try_recv().unwrap().is_ok());
        assert!(roots_answer.try_recv().is_err());
    }

    #[test]
    fn address_is_opened_only_with_consent() {
        let asked = || vec![("a".to_owned(), Raw::empty_object())];
        let said = |json: &'static str| consent(Some(&Raw::parse(json).unwrap()), asked());
        assert!(said(r#"{"inputResponses":{"a":{"action":"accept"}}}"#).is_ok());
        assert!(matches!(
            said(r#"{"inputResponses":{"a":{"action":"decline"}}}"#),
            Err(Err(Error::Refused(_)))
        ));
        assert!(matches!(said("{}"), Err(Ok(again)) if again.len() == 1));
    }
}
