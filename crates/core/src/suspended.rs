//! Calls that wait for their client to come back with answers.
//!
//! A server of an older revision asks in the middle of a call. A client of 2026-07-28 is asked
//! through the result of its request, and comes back with another request. In between the call is
//! suspended: the server keeps waiting, and the client holds a `requestState` that only this
//! gateway can have signed. The state resumes the call once, for the same principal and the same
//! request, and only for as long as a person may take to answer.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use switchboard_approvals::rules::digest;
use switchboard_base::{
    caller::{Principal, Realm},
    signed_token::TokenSigner,
};
use switchboard_client::{ErrorObject, Raw};
use switchboard_wire::{code, meta};
use tokio::{task::AbortHandle, time::sleep};

/// Suspended calls. `T` is the part of a call that is kept.
#[derive(Debug)]
pub(crate) struct SuspendedCalls<T> {
    signer: TokenSigner,
    /// ID of this run, because the signing key may outlive the gateway.
    run: u128,
    room: Limits,
    parked: Mutex<HashMap<u128, Parked<T>>>,
}

#[derive(Debug)]
struct Parked<T> {
    server: Arc<str>,
    ticket: ResumeKey,
    /// Changes on each suspension, so that no state resumes the call twice.
    turn: u128,
    expiry: AbortHandle,
    what: T,
}

/// The realm and the request that may resume a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResumeKey {
    pub(crate) realm: Realm,
    pub(crate) request: [u8; 32],
}

/// The most suspended calls. Clients without a token can take half of them, those with tokens that the owner created
/// a quarter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Of all servers together.
    pub(crate) all: usize,
    /// Of one server.
    pub(crate) each: usize,
}

/// The run that issued a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    ThisRun,
    /// The call ended with an earlier run of the gateway.
    EarlierRun,
}

const PURPOSE: &str = "parked call";

impl<T: Send + 'static> SuspendedCalls<T> {
    /// `None` if the system provides no random numbers.
    pub(crate) fn new(signer: TokenSigner, room: Limits) -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            signer,
            run: random()?,
            room,
            parked: Mutex::default(),
        }))
    }

    /// Suspends a call for at most `patience`; then it is dropped. Returns the state that resumes
    /// it, or the call itself if there is no room.
    pub(crate) fn put(
        self: &Arc<Self>,
        server: &Arc<str>,
        ticket: ResumeKey,
        patience: Duration,
        what: T,
    ) -> Result<String, T> {
        let (Some(id), Some(turn)) = (random(), random()) else {
            return Err(what);
        };
        let suspended = Arc::downgrade(self);
        let mut parked = self.parked.lock();
        if !self.has_room(&parked, server, ticket.realm.principal) {
            return Err(what);
        }
        let expiry = tokio::spawn(async move {
            sleep(patience).await;
            if let Some(suspended) = suspended.upgrade() {
                let expired = suspended.parked.lock().remove(&id);
                drop(expired);
            }
        })
        .abort_handle();
        parked.insert(
            id,
            Parked {
                server: Arc::clone(server),
                ticket,
                turn,
                expiry,
                what,
            },
        );
        drop(parked);
        let payload = [id, turn, self.run].map(u128::to_le_bytes).concat();
        Ok(self.signer.sign(PURPOSE, &payload))
    }

    fn has_room(
        &self,
        parked: &HashMap<u128, Parked<T>>,
        server: &Arc<str>,
        principal: Principal,
    ) -> bool {
        let Limits { all, each } = self.room;
        let has_room = |counts: &dyn Fn(&Parked<T>) -> bool, all, each| {
            let counted = || parked.values().filter(|other| counts(other));
            let of_it = counted().filter(|other| other.server == *server);
            counted().count() < all && of_it.count() < each
        };
        let is_alike =
            |parked: &Parked<T>| parked.ticket.realm.principal.shares_limits_with(principal);
        let share = match principal {
            Principal::Owner => 1,
            Principal::Anyone => 2,
            Principal::Token(_) => 4,
        };
        has_room(&|_| true, all, each) && has_room(&is_alike, all / share, each / share)
    }

    /// A state that resumes nothing in this run, and lets a request start from scratch in the next.
    pub(crate) fn state_for_later(&self) -> String {
        let payload = [0, 0, !self.run].map(u128::to_le_bytes).concat();
        self.signer.sign(PURPOSE, &payload)
    }

    /// The run that issued a state; `None` if no run of this gateway did.
    pub(crate) fn origin(&self, state: &str) -> Option<Origin> {
        let [_, _, run] = self.read_all(state)?;
        Some(if run == self.run {
            Origin::ThisRun
        } else {
            Origin::EarlierRun
        })
    }

    /// Drops the calls of a principal.
    pub(crate) fn drop_of(&self, principal: Principal) {
        let is_its = |parked: &Parked<T>| parked.ticket.realm.principal == principal;
        let dropped: Vec<_> = {
            let mut parked = self.parked.lock();
            parked.extract_if(|_, parked| is_its(parked)).collect()
        };
        for (_, parked) in dropped {
            parked.expiry.abort();
        }
    }

    /// Tests if a state resumes a call for this key.
    pub(crate) fn knows(&self, state: &str, ticket: impl FnOnce() -> ResumeKey) -> bool {
        let Some((id, turn)) = self.read(state) else {
            return false;
        };
        let parked = self.parked.lock();
        let found = parked.get(&id).filter(|parked| parked.turn == turn);
        let expected = found.map(|parked| parked.ticket);
        drop(parked);
        expected.is_some_and(|expected| expected == ticket())
    }

    fn read(&self, state: &str) -> Option<(u128, u128)> {
        let [id, turn, run] = self.read_all(state)?;
        (run == self.run).then_some((id, turn))
    }

    fn read_all(&self, state: &str) -> Option<[u128; 3]> {
        let payload = self.signer.verify(PURPOSE, state)?;
        let (parts, rest) = payload.as_chunks::<16>();
        let parts: &[[u8; 16]; 3] = parts.try_into().ok()?;
        rest.is_empty().then(|| parts.map(u128::from_le_bytes))
    }

    /// Resumes a call. The error is the same whether the state or the request is wrong, and the
    /// call stays suspended.
    pub(crate) fn take(
        &self,
        state: &str,
        ticket: impl FnOnce() -> ResumeKey,
    ) -> Result<T, ErrorObject> {
        let taken = self.take_if(state, ticket, |_| true)?;
        taken.ok_or_else(refused)
    }

    /// Resumes a call if it meets a condition. Otherwise it stays suspended.
    pub(crate) fn take_if(
        &self,
        state: &str,
        ticket: impl FnOnce() -> ResumeKey,
        is_wanted: impl FnOnce(&T) -> bool,
    ) -> Result<Option<T>, ErrorObject> {
        let (id, turn) = self.read(state).ok_or_else(refused)?;
        let is_it = |parked: &Parked<T>| parked.turn == turn;
        // A long request is not hashed for a state that resumes nothing.
        if !self.parked.lock().get(&id).is_some_and(is_it) {
            return Err(refused());
        }
        let ticket = ticket();
        let mut parked = self.parked.lock();
        let fits = |parked: &&Parked<T>| is_it(parked) && parked.ticket == ticket;
        let found = parked.get(&id).filter(fits).ok_or_else(refused)?;
        let found = if is_wanted(&found.what) {
            parked.remove(&id)
        } else {
            None
        };
        drop(parked);
        Ok(found.map(|found| {
            found.expiry.abort();
            found.what
        }))
    }
}

pub(crate) fn refused() -> ErrorObject {
    let message = "`requestState` is invalid: it is unknown, already used, expired, or belongs to \
                   another request";
    ErrorObject::new(code::INVALID_PARAMS, message).with_hint("send the request again without it")
}

fn random() -> Option<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(u128::from_le_bytes(bytes))
}

/// Identifies a request by everything that does not change when it is repeated. The order of
/// members and the white space between them do not count, since a client may encode the request
/// again.
pub(crate) fn request_digest(place: &str, method: &str, params: Option<&Raw>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [place, method] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    if let Some(params) = params {
        let params = params.without(&[meta::META, "inputResponses", "requestState"]);
        hash.update(digest(&params));
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: ResumeKey = ResumeKey {
        realm: Realm::OWNER,
        request: [7; 32],
    };
    const ROOM: Limits = Limits { all: 64, each: 8 };
    const PATIENCE: Duration = Duration::from_mins(1);

    fn suspended() -> Arc<SuspendedCalls<&'static str>> {
        SuspendedCalls::new(TokenSigner::new().unwrap(), ROOM).unwrap()
    }

    #[tokio::test]
    async fn state_resumes_its_call_once() {
        let suspended = suspended();
        let state = suspended.put(&"s".into(), TICKET, PATIENCE, "a").unwrap();
        let other = suspended.put(&"s".into(), TICKET, PATIENCE, "b").unwrap();
        let stranger = ResumeKey {
            realm: Principal::Anyone.into(),
            ..TICKET
        };
        let request = ResumeKey {
            request: [8; 32],
            ..TICKET
        };
        for wrong in [stranger, request] {
            assert_eq!(
                suspended.take(&state, || wrong).unwrap_err().code,
                code::INVALID_PARAMS
            );
        }
        for at in 0..state.len() {
            let mut flipped = state.clone().into_bytes();
            flipped[at] = if flipped[at] == b'A' { b'B' } else { b'A' };
            let flipped = String::from_utf8(flipped).unwrap();
            assert!(suspended.take(&flipped, || TICKET).is_err());
        }
        assert_eq!(suspended.take(&state, || TICKET).unwrap(), "a");
        assert!(suspended.take(&state, || TICKET).is_err());
        assert_eq!(suspended.take(&other, || TICKET).unwrap(), "b");
    }

    #[tokio::test(start_paused = true)]
    async fn suspended_call_is_dropped_after_timeout() {
        let suspended = SuspendedCalls::new(TokenSigner::new().unwrap(), ROOM).unwrap();
        let kept = Arc::new(());
        let state = suspended
            .put(&"s".into(), TICKET, PATIENCE, Arc::clone(&kept))
            .unwrap();
        sleep(PATIENCE + Duration::from_secs(1)).await;
        assert_eq!(Arc::strong_count(&kept), 1);
        assert!(suspended.take(&state, || TICKET).is_err());
    }

    #[tokio::test]
    async fn unwanted_call_stays_suspended() {
        let suspended = suspended();
        let state = suspended.put(&"s".into(), TICKET, PATIENCE, "a").unwrap();
        let take = |wanted| suspended.take_if(&state, || TICKET, |what| *what == wanted);
        assert_eq!(take("b"), Ok(None));
        assert_eq!(take("a"), Ok(Some("a")));
        assert!(take("a").is_err());
    }

    #[tokio::test]
    async fn suspended_calls_are_limited() {
        let suspended = suspended();
        let put = |server: String| suspended.put(&server.into(), TICKET, PATIENCE, "a");
        for n in 0..ROOM.all {
            assert!(put((n / ROOM.each).to_string()).is_ok());
        }
        assert_eq!(put("another".to_owned()), Err("a"));
        let suspended = self::suspended();
        let put = |server: &str| suspended.put(&server.into(), TICKET, PATIENCE, "a");
        for _ in 0..ROOM.each {
            assert!(put("s").is_ok());
        }
        assert_eq!(put("s"), Err("a"));
        assert!(put("another").is_ok());
    }

    #[tokio::test]
    async fn clients_without_token_get_half_the_slots() {
        let put = |suspended: &Arc<SuspendedCalls<&'static str>>, principal, server: &str| {
            let ticket = ResumeKey {
                realm: Realm::from(principal),
                ..TICKET
            };
            suspended.put(&server.into(), ticket, PATIENCE, "a").is_ok()
        };
        let stranger = Principal::Anyone;
        let one = suspended();
        let parked = (0..ROOM.each).filter(|_| put(&one, stranger, "s"));
        assert_eq!(parked.count(), ROOM.each / 2);
        let parked = (0..ROOM.each).filter(|_| put(&one, Principal::Owner, "s"));
        assert_eq!(parked.count(), ROOM.each / 2);
        let all = suspended();
        let parked = (0..ROOM.all).filter(|n| put(&all, stranger, &n.to_string()));
        assert_eq!(parked.count(), ROOM.all / 2);
        let parked = (0..ROOM.all).filter(|n| put(&all, Principal::Owner, &n.to_string()));
        assert_eq!(parked.count(), ROOM.all / 2);
    }

    #[test]
    fn request_digest_ignores_spelling() {
        let of = |params: &'static str| {
            request_digest("s", "tools/call", Some(&Raw::parse(params).unwrap()))
        };
        let first = of(r#"{"name":"t","arguments":{"a":1,"b":[1,{"x":null}]},"_meta":{"p":1}}"#);
        let again = of(
            r#"{ "arguments": {"b":[1, {"x":null}], "a":1}, "n\u0061me":"t", "inputResponses":{}, "requestState":"x"}"#,
        );
        assert_eq!(first, again);
        for other in [
            r#"{"name":"u","arguments":{"a":1,"b":[1,{"x":null}]}}"#,
            r#"{"name":"t","arguments":{"a":2,"b":[1,{"x":null}]}}"#,
            r#"{"name":"t","arguments":{"a":"1","b":[1,{"x":null}]}}"#,
            r#"{"name":"t","arguments":{"a":1,"b":[[1],{"x":null}]}}"#,
            r#"{"name":"t"}"#,
        ] {
            assert_ne!(first, of(other), "{other}");
        }
    }
}
