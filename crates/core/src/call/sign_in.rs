//! Calls to servers that a user has to sign in to: a client that can have addresses opened gets the page of the sign-in.

use std::time::Duration;

use switchboard_base::{
    caller::{Principal, answers},
    error::Error,
};
use switchboard_client::{ErrorObject, Raw};
use switchboard_outbound::sign_in::Page;
use switchboard_wire::{code, method};
use tokio::time::timeout;

use super::{CallContext, Record, rounds::Rounds};

/// The longest time that a call waits for the user to finish.
const PATIENCE: Duration = Duration::from_secs(25);

impl CallContext<'_> {
    /// Has the user do what a server wants before it accepts the call, so that the call may start from scratch. Otherwise
    /// returns the result for the client.
    pub(super) async fn overcome(
        &self,
        rounds: &mut Rounds,
        failure: Error,
        record: &mut Record,
    ) -> Result<(), Result<Raw, Error>> {
        let failure = match failure {
            Error::NeedsSignIn { .. } => return self.sign_in(rounds, failure, record).await,
            Error::Answered(error) if error.code == code::URL_ELICITATION_REQUIRED => {
                match self.open(rounds, error, record).await {
                    None => return Ok(()),
                    Some(failure) => failure,
                }
            }
            other => other,
        };
        Err(match failure {
            Error::Answered(error) => self.refused(error),
            other => Err(other),
        })
    }

    /// Has the user sign in, so that the call may start from scratch. Otherwise returns the result for the client.
    async fn sign_in(
        &self,
        rounds: &mut Rounds,
        failure: Error,
        record: &mut Record,
    ) -> Result<(), Result<Raw, Error>> {
        // A sign-in is for all callers, so the owner has to do it. A call waits for one.
        let is_owner = self.caller.realm.principal == Principal::Owner;
        if !is_owner || !self.opens_pages() || rounds.signed_in {
            return Err(Err(failure));
        }
        // A client that comes back has had the page opened.
        if rounds.consented && self.is_finished(record).await {
            rounds.begin_signed_in();
            return Ok(());
        }
        match self.upstream.sign_in_page().await {
            // The owner signs in, not the person who decides about the questions of servers.
            Ok(Some(page)) => Err(self.refused(self.asking_to_open(&page))),
            Ok(None) => {
                self.is_finished(record).await;
                rounds.begin_signed_in();
                Ok(())
            }
            Err(error) => {
                let server = &self.upstream.name;
                tracing::warn!(%server, error = error.told(), "Cannot offer a sign-in.");
                Err(Err(failure))
            }
        }
    }

    /// Tests if the client can have addresses opened.
    fn opens_pages(&self) -> bool {
        let params = Raw::object([("mode", Raw::string("url"))]);
        answers(&self.capabilities(), method::ELICITATION, Some(&params))
    }

    /// Waits a while for the user to finish, and for the server to be started again.
    async fn is_finished(&self, record: &mut Record) -> bool {
        record.begin_wait();
        let finished = timeout(PATIENCE, self.upstream.finish_sign_in()).await;
        record.end_wait();
        matches!(finished, Ok(Ok(())))
    }

    /// The error that asks a client to have a page opened, as servers of 2025-11-25 send it.
    fn asking_to_open(&self, page: &Page) -> ErrorObject {
        let name = &self.upstream.name;
        let message = match &page.code {
            None => format!("Sign in to {name}, then try again."),
            Some(code) => {
                let elsewhere = code.other_host.as_ref();
                let elsewhere = elsewhere.map(|host| format!(", though it is at {host}"));
                format!(
                    "Sign in to {name} with the code {}, then try again. Agree only if the page names {}{}, and the application that you expect.",
                    code.text,
                    code.provider,
                    elsewhere.unwrap_or_default(),
                )
            }
        };
        let elicitation = Raw::object([
            ("mode", Raw::string("url")),
            ("elicitationId", Raw::string(&page.id)),
            ("url", Raw::string(page.address())),
            ("message", Raw::string(&message)),
        ]);
        let data = Raw::object([("elicitations", Raw::array([elicitation]))]);
        let message = format!("server `{name}` needs a sign-in");
        ErrorObject::new(code::URL_ELICITATION_REQUIRED, message).with_data(data)
    }
}
