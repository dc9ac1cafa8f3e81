//! `requestState` of a modern client in front of an older server: it resumes one suspended call, for its
//! caller, once. Anything else is refused, and does not disturb the suspended call.

use serde_json::{Value, json};
use switchboard_test_support::until;

use crate::{
    client::{Client, Person, Place, Reason, Setup, check, text_of},
    features::counted,
    revision::{Revision, Side, Way},
    rig::{NAME, Upstream, home_with, through, through_direct},
};

const TOOL: &str = "test_elicitation";

const MODERN: Side = Side {
    revision: Revision::Jul2026,
    way: Way::Http,
};

/// Runs `act` with a suspended call, once for each transport of the server.
fn parked(config: Value, act: impl Fn(&mut Parked, &Place) -> Result<(), Reason>) {
    for way in [Way::Pipe, Way::Http] {
        let server = Side {
            revision: Revision::Nov2025,
            way,
        };
        let upstream = Upstream::start(server, &[]);
        let home = home_with(&upstream, config.clone());
        let serve = home.serve();
        serve.until_known(NAME);
        let judged = Parked::new(&through(&serve), server)
            .and_then(|mut parked| act(&mut parked, &through_direct(&serve)));
        judged.unwrap_or_else(|reason| panic!("in front of {server}: {reason}"));
        serve.stop();
    }
}

/// A gateway that admits clients without a token, and recognizes clients with one.
fn open_to_all() -> Value {
    json!({ "auth": { "mcp": "none" } })
}

/// A suspended call that waits for an answer.
struct Parked {
    client: Client,
    params: Value,
    required: Value,
}

impl Parked {
    fn new(place: &Place, server: Side) -> Result<Self, Reason> {
        let mut client = Client::open(place, server, Setup::able(MODERN))?;
        let params = json!({ "name": TOOL, "arguments": { "message": "Who goes there?" } });
        let answer = client.ask("tools/call", params.clone())?;
        let required = answer["result"].clone();
        check!(
            required["resultType"] == "input_required",
            "it was not asked: {answer}"
        );
        check!(
            required["requestState"].is_string(),
            "it was given no state: {answer}"
        );
        Ok(Self {
            client,
            params,
            required,
        })
    }

    fn state(&self) -> String {
        self.required["requestState"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// The parameters of a valid answer.
    fn retry(&mut self) -> Value {
        self.client.retry(&self.params, &self.required)
    }

    /// Checks that a valid answer still reaches the server.
    fn goes_on(&mut self) -> Result<(), Reason> {
        let retry = self.retry();
        let answer = self.client.ask("tools/call", retry)?;
        let text = text_of(&answer["result"]).unwrap_or_default();
        check!(
            text.contains("accept"),
            "the parked call was disturbed: {answer}"
        );
        Ok(())
    }
}

/// Sends a retry that has to be refused.
pub(crate) fn refused(client: &mut Client, retry: Value, what: &str) -> Result<(), Reason> {
    let answer = client.ask("tools/call", retry)?;
    check!(
        answer["error"]["code"] == -32602,
        "{what} was not refused: {answer}"
    );
    Ok(())
}

#[test]
fn altered_state_is_refused() {
    parked(json!({}), |parked, _| {
        let state = parked.state();
        let mut retry = parked.retry();
        let places = (0..state.len()).step_by((state.len() / 8).max(1));
        for place in places.chain([state.len() - 1]) {
            let mut bytes = state.clone().into_bytes();
            // Still text, but different.
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            retry["requestState"] = json!(String::from_utf8(bytes).unwrap());
            refused(
                &mut parked.client,
                retry.clone(),
                &format!("another byte {place}"),
            )?;
        }
        for odd in ["", "A", &state[1..], &format!("{state}A")] {
            retry["requestState"] = json!(odd);
            refused(&mut parked.client, retry.clone(), "another length")?;
        }
        retry["requestState"] = json!(7);
        refused(&mut parked.client, retry, "a number")?;
        parked.goes_on()
    });
}

#[test]
fn state_is_bound_to_its_caller() {
    parked(open_to_all(), |parked, _| {
        let retry = parked.retry();
        let mut place = parked.client.place.clone();
        check!(
            place.token.take().is_some(),
            "the call was made without a token"
        );
        let mut stranger = Client::open(&place, parked.client.server, Setup::able(MODERN))?;
        refused(&mut stranger, retry, "somebody else")?;
        parked.goes_on()
    });
}

#[test]
fn state_is_bound_to_its_call() {
    parked(json!({}), |parked, direct| {
        let mut other = parked.retry();
        other["name"] = json!("test_sampling");
        refused(&mut parked.client, other, "another tool")?;
        let mut other = parked.retry();
        other["arguments"]["message"] = json!("Who goes here?");
        refused(&mut parked.client, other, "another argument")?;
        let mut other = parked.retry();
        other["arguments"]["more"] = json!(1);
        refused(&mut parked.client, other, "an argument more")?;
        let mut elsewhere = Client::open(direct, parked.client.server, Setup::able(MODERN))?;
        let mut other = parked.retry();
        other["name"] = json!(format!("{NAME}__{TOOL}"));
        refused(&mut elsewhere, other, "another view")?;
        parked.goes_on()
    });
}

#[test]
fn state_can_be_used_once() {
    parked(json!({}), |parked, _| {
        parked.goes_on()?;
        let again = parked.retry();
        refused(&mut parked.client, again, "the same state again")
    });
}

#[test]
fn unanswered_question_is_asked_again() {
    parked(json!({}), |parked, _| {
        for _ in 0..3 {
            parked.client.person = Person::Silent;
            let retry = parked.retry();
            parked.client.person = Person::Kind;
            let answer = parked.client.ask("tools/call", retry)?;
            let required = answer["result"].clone();
            let same = required["inputRequests"] == parked.required["inputRequests"];
            check!(same, "not asked again: {answer}");
            parked.required = required;
        }
        parked.goes_on()
    });
}

#[test]
fn abandoned_call_is_cancelled_at_the_server() {
    let config = json!({ "approvals": { "longTimeoutMs": 1000 } });
    parked(config, |parked, _| {
        let retry = parked.retry();
        let cancelled = |client: &mut Client| counted(client, "notifications/cancelled");
        until("the server is told", || {
            (cancelled(&mut parked.client) != Ok(0)).then_some(())
        });
        let count = cancelled(&mut parked.client)?;
        check!(count == 1, "{count} withdrawals");
        refused(&mut parked.client, retry, "a state that has expired")
    });
}
