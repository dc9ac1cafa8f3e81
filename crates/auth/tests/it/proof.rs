//! Tokens that are bound to a key, with which the client proves that they are its own.

use serde_json::json;
use switchboard_auth::{Action, Challenge, Error, Event, Settings, State};

use crate::server::{Place, Rig, key};

/// A server that accepts no bearer tokens.
fn demanding() -> Place {
    let mut place = Place::new();
    place.challenge.demands_proof = true;
    place.server()["dpop_signing_alg_values_supported"] = json!(["RS256", "ES256"]);
    place.tokens = json!({ "token_type": "DPoP", "expires_in": 3600 });
    place
}

fn rig(place: Place) -> Rig {
    Rig::at(place, Settings::new("Switchboard"))
}

/// Signs in at the request of the server, as the driver does.
fn signed_in(mut rig: Rig) -> Rig {
    let challenge = rig.place.challenge.clone();
    rig.handle(Event::Refused(challenge));
    rig.sign_in().unwrap();
    rig
}

#[test]
fn token_is_bound_where_the_server_demands_it() {
    let mut by_metadata = demanding();
    by_metadata.challenge.demands_proof = false;
    by_metadata.resource()["dpop_bound_access_tokens_required"] = json!(true);
    for place in [demanding(), by_metadata] {
        let rig = signed_in(rig(place));
        assert_eq!(rig.machine.proof_key(), Some(&key(1)));
        assert_eq!(rig.stored.as_ref().unwrap().proof_key, Some(key(1)));
        let [(header, claims)] = &*rig.place.proofs else {
            panic!("{:?}", rig.place.proofs);
        };
        assert_eq!(header["typ"], "dpop+jwt");
        assert_eq!(
            [&claims["htm"], &claims["htu"]],
            ["POST", "https://auth.example/token"]
        );
    }
}

#[test]
fn bearer_tokens_need_no_key() {
    let mut place = Place::new();
    place.server()["dpop_signing_alg_values_supported"] = json!(["ES256"]);
    let rig = signed_in(rig(place));
    assert_eq!((rig.keys, rig.place.proofs.len()), (0, 0));
    assert!(rig.machine.proof_key().is_none());
}

#[test]
fn renewal_proves_the_same_key() {
    let mut rig = signed_in(rig(demanding()));
    rig.now += 3_600;
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    let [(first, _), (second, claims)] = &*rig.place.proofs else {
        panic!("{:?}", rig.place.proofs);
    };
    assert_eq!(first, second);
    assert_eq!(claims["iat"].as_u64(), Some(rig.now));
    assert_eq!(rig.machine.proof_key(), Some(&key(1)));
    // So does another sign-in.
    rig.sign_in().unwrap();
    assert_eq!(rig.keys, 1);
}

#[test]
fn demanded_nonce_is_sent_once_and_remembered() {
    let mut place = demanding();
    place.nonce = Some("n1");
    let mut rig = signed_in(rig(place));
    let nonces = |rig: &Rig| -> Vec<_> {
        let proofs = rig.place.proofs.iter();
        proofs
            .map(|(_, claims)| claims["nonce"].as_str().map(str::to_owned))
            .collect()
    };
    let n1 = || Some("n1".to_owned());
    assert_eq!(nonces(&rig), [None, n1()]);
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    assert_eq!(nonces(&rig), [None, n1(), n1()]);
    // The refresh token is not lost with a nonce that has expired.
    rig.place.nonce = Some("n2");
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    assert_eq!(nonces(&rig)[3..], [n1(), Some("n2".to_owned())]);
}

#[test]
fn endless_demands_for_nonces_end() {
    let mut rig = signed_in(rig(demanding()));
    let before = rig.place.proofs.len();
    rig.place.nonce = Some("other");
    rig.place.refusals = vec!["use_dpop_nonce"; 9];
    let outcome = rig.handle(Event::Renew);
    assert!(
        matches!(&outcome, Action::Done(Err(Error::Refused { code, .. })) if code == "use_dpop_nonce"),
        "{outcome:?}"
    );
    assert_eq!(rig.place.proofs.len(), before + 2);
    // Nothing is lost: the demand is not about the token.
    assert!(matches!(rig.machine.state(), State::SignedIn { .. }));
}

#[test]
fn unbound_token_is_refused_where_proof_is_demanded() {
    let mut place = demanding();
    place.tokens = json!({ "token_type": "Bearer" });
    let error = rig(place).sign_in().unwrap_err();
    assert!(
        matches!(&error, Error::BadToken { reason } if reason.contains("not bound")),
        "{error}"
    );
    let mut place = Place::new();
    place.tokens = json!({ "token_type": "DPoP" });
    let error = rig(place).sign_in().unwrap_err();
    assert!(matches!(error, Error::BadToken { .. }), "{error}");
}

#[test]
fn issuer_without_our_algorithm_is_named() {
    let mut place = demanding();
    place.server()["dpop_signing_alg_values_supported"] = json!(["EdDSA"]);
    let error = rig(place).start().unwrap_err();
    assert!(matches!(error, Error::NoProof { .. }), "{error}");
    assert!(!error.hint().is_empty());
}

#[test]
fn bearer_token_does_not_outlive_the_demand() {
    let mut rig = signed_in(rig(Place::new()));
    let demand = Challenge {
        demands_proof: true,
        ..rig.place.challenge.clone()
    };
    assert_eq!(rig.handle(Event::Refused(demand.clone())), Action::Wait);
    assert!(matches!(rig.machine.state(), State::SignedOut { .. }));
    // The user signs in again, and gets the other kind.
    rig.place = demanding();
    rig.sign_in().unwrap();
    assert!(rig.machine.proof_key().is_some());
    assert!(matches!(rig.machine.state(), State::SignedIn { .. }));
}
