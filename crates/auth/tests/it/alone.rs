//! Clients that sign in for themselves, with something that they prove.

use serde_json::json;
use switchboard_auth::{
    Action, Algorithm, ConfiguredClient, Error, Event, Grant, IdentityProvider, Settings, State,
};

use crate::server::{ISSUER, NOW, Rig, read};

/// The beginning of a key on the curve P-256, which is all that matters here.
pub(crate) const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MEECAQAwEwYHKoZIzj0CAQYIKoZIzj0DAQcEJzAlAgEBBCA=\n\
    -----END PRIVATE KEY-----\n";

fn with_key(pem: &str) -> Settings {
    Settings {
        client: Some(ConfiguredClient {
            private_key: Some(pem.into()),
            key_id: Some("k1".to_owned()),
            ..ConfiguredClient::new("machine")
        }),
        grant: Grant::ClientCredentials,
        ..Settings::new("Switchboard")
    }
}

/// Has the server refuse a request, and the client sign in for itself.
fn refused(rig: &mut Rig) -> Action {
    let challenge = rig.place.challenge.clone();
    rig.handle(Event::Refused(challenge))
}

#[test]
fn client_with_a_key_signs_an_assertion() {
    let mut rig = Rig::new(with_key(KEY));
    rig.place.server()["token_endpoint_auth_signing_alg_values_supported"] = json!(["ES256"]);
    assert_eq!(refused(&mut rig), Action::Done(Ok(())));
    let form = rig.place.last_form();
    assert_eq!(form["grant_type"], "client_credentials");
    assert_eq!(
        form["client_assertion_type"],
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    );
    let (header, claims) = read(&form["client_assertion"]);
    assert_eq!(header["kid"], "k1");
    assert_eq!([&claims["iss"], &claims["sub"]], ["machine", "machine"]);
    assert_eq!(claims["aud"], ISSUER);
    assert_eq!(claims["exp"].as_u64(), Some(NOW + 300));
    assert!(rig.place.headers.is_empty());
}

#[test]
fn every_request_has_its_own_assertion() {
    let mut rig = Rig::new(with_key(KEY));
    refused(&mut rig);
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    assert_eq!(rig.handle(Event::SignOut), Action::Done(Ok(())));
    let sent = rig.place.requests.iter();
    let assertions: Vec<_> = sent
        .filter_map(|(_, form)| form.get("client_assertion"))
        .collect();
    // Two for tokens, and the revocations.
    assert_eq!(assertions.len(), 4);
    let ids = assertions
        .iter()
        .map(|token| read(token).1["jti"].to_string());
    assert_eq!(ids.collect::<std::collections::BTreeSet<_>>().len(), 4);
}

#[test]
fn unusable_key_is_named_and_nothing_is_sent() {
    for (pem, expected) in [
        ("", "not a private key"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMII=\n-----END RSA PRIVATE KEY-----",
            "PKCS#8",
        ),
    ] {
        let mut rig = Rig::new(with_key(pem));
        let Action::Done(Err(Error::BadKey { reason })) = refused(&mut rig) else {
            panic!("{:?}", rig.machine.state());
        };
        assert!(reason.contains(expected), "{reason}");
        assert!(
            !rig.place
                .addresses()
                .contains(&"https://auth.example/token")
        );
    }
    let mut rig = Rig::new(with_key(KEY));
    rig.place.server()["token_endpoint_auth_signing_alg_values_supported"] = json!(["RS256"]);
    assert_eq!(
        refused(&mut rig),
        Action::Done(Err(Error::KeyNotAccepted {
            issuer: ISSUER.to_owned(),
            algorithm: Algorithm::Es256,
        }))
    );
}

#[test]
fn key_that_cannot_sign_ends_the_sign_in() {
    let bad = || Error::BadKey {
        reason: "it is too short".to_owned(),
    };
    let mut rig = Rig::new(with_key(KEY));
    rig.unable = Some(bad());
    assert_eq!(refused(&mut rig), Action::Done(Err(bad())));
    assert_eq!(rig.machine.state(), State::NeedsSignIn);
    // It is replaced, and lost again: the tokens are forgotten all the same.
    rig.unable = None;
    assert_eq!(refused(&mut rig), Action::Done(Ok(())));
    rig.unable = Some(bad());
    assert_eq!(rig.handle(Event::SignOut), Action::Done(Ok(())));
    assert!(rig.machine.token().is_none());
}

#[test]
fn key_takes_the_place_of_a_secret() {
    let mut rig = Rig::new(Settings {
        client: Some(ConfiguredClient {
            secret: Some("secret".into()),
            ..ConfiguredClient::new("machine")
        }),
        ..with_key(KEY)
    });
    assert_eq!(refused(&mut rig), Action::Done(Ok(())));
    assert_eq!(rig.place.headers.len(), 1);
    let server = crate::server::SERVER.parse().unwrap();
    rig.machine = switchboard_auth::Machine::new(server, with_key(KEY), rig.stored.clone());
    assert_eq!(rig.handle(Event::SignOut), Action::Done(Ok(())));
    assert_eq!(rig.place.headers.len(), 1);
    assert!(rig.place.last_form().contains_key("client_assertion"));
}

/// A token that another party has signed.
const ASSERTION: &str = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ3b3JrbG9hZCJ9.c2lnbmF0dXJl";

fn with_assertion() -> Settings {
    Settings {
        client: Some(ConfiguredClient::new("workload")),
        grant: Grant::JwtBearer,
        ..Settings::new("Switchboard")
    }
}

fn with_provider(token_url: &str) -> Settings {
    Settings {
        identity_provider: Some(IdentityProvider {
            token_url: token_url.to_owned(),
            client_id: "gateway".to_owned(),
            client_secret: None,
        }),
        ..with_assertion()
    }
}

/// The address of the identity provider. It may be in a private network, since the user has chosen it.
const PROVIDER: &str = "https://10.0.0.1/token";

#[test]
fn assertion_is_read_anew_for_each_token() {
    let mut rig = Rig::new(with_assertion());
    rig.assertion = Ok(ASSERTION.to_owned());
    assert_eq!(refused(&mut rig), Action::Done(Ok(())));
    let form = rig.place.last_form();
    assert_eq!(
        form["grant_type"],
        "urn:ietf:params:oauth:grant-type:jwt-bearer"
    );
    assert_eq!(
        [&*form["assertion"], &form["client_id"]],
        [ASSERTION, "workload"]
    );
    // The platform has replaced it.
    rig.assertion = Ok("bmV3.bmV3.bmV3".to_owned());
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    assert_eq!(rig.place.last_form()["assertion"], "bmV3.bmV3.bmV3");
}

#[test]
fn only_tokens_are_sent_as_assertions() {
    let long = format!("{}.b.c", "a".repeat(40_000));
    for text in [
        "",
        "hunter2",
        "-----BEGIN KEY-----",
        "a.b",
        "a.b.c.d",
        "a..c",
        "a.b.c d",
        &long,
    ] {
        let mut rig = Rig::new(with_assertion());
        rig.assertion = Ok(text.to_owned());
        let outcome = refused(&mut rig);
        assert!(
            matches!(&outcome, Action::Done(Err(Error::NoAssertion { reason })) if !reason.contains("hunter")),
            "{outcome:?}"
        );
        assert!(
            !rig.place
                .addresses()
                .contains(&"https://auth.example/token")
        );
    }
}

#[test]
fn missing_assertion_is_named() {
    let missing = || Error::NoAssertion {
        reason: "no such file".to_owned(),
    };
    let mut rig = Rig::new(with_assertion());
    rig.assertion = Err(missing());
    assert_eq!(refused(&mut rig), Action::Done(Err(missing())));
    assert_eq!(rig.machine.state(), State::NeedsSignIn);
    // It is there now.
    rig.assertion = Ok(ASSERTION.to_owned());
    assert_eq!(refused(&mut rig), Action::Done(Ok(())));
}

#[test]
fn refused_assertion_is_not_sent_again() {
    for code in ["invalid_grant", "invalid_scope", "unauthorized_client"] {
        let mut rig = Rig::new(with_assertion());
        rig.assertion = Ok(ASSERTION.to_owned());
        rig.place.refusals = vec![code];
        let outcome = refused(&mut rig);
        assert!(
            matches!(&outcome, Action::Done(Err(Error::Refused { code: found, .. })) if found == code),
            "{outcome:?}"
        );
        let sent = rig.place.addresses();
        let sent = sent
            .iter()
            .filter(|address| **address == "https://auth.example/token");
        assert_eq!(sent.count(), 1);
    }
}

#[test]
fn identity_provider_exchanges_the_id_token() {
    let mut rig = Rig::new(with_provider(PROVIDER));
    rig.place.challenge.scope = Some("files".to_owned());
    rig.place.vouched = Some((
        200,
        json!({ "access_token": "amFn.amFn.amFn", "token_type": "N_A" }),
    ));
    rig.assertion = Ok(ASSERTION.to_owned());
    assert_eq!(refused(&mut rig), Action::Done(Ok(())));
    let [.., (address, asked), (_, form)] = &*rig.place.requests else {
        panic!("too few requests");
    };
    assert_eq!(address, PROVIDER);
    for (name, expected) in [
        (
            "grant_type",
            "urn:ietf:params:oauth:grant-type:token-exchange",
        ),
        (
            "requested_token_type",
            "urn:ietf:params:oauth:token-type:id-jag",
        ),
        ("subject_token", ASSERTION),
        (
            "subject_token_type",
            "urn:ietf:params:oauth:token-type:id_token",
        ),
        ("audience", ISSUER),
        ("resource", crate::server::SERVER),
        ("scope", "files"),
        ("client_id", "gateway"),
    ] {
        assert_eq!(asked[name], expected, "{name}");
    }
    // The authorization server of the server never sees the ID token.
    assert_eq!(form["assertion"], "amFn.amFn.amFn");
    assert_eq!(form["client_id"], "workload");
    assert!(!form.values().any(|value| value == ASSERTION));
}

#[test]
fn refusal_of_the_identity_provider_is_named() {
    for (status, body, expected, is_temporary) in [
        (
            400,
            json!({ "error": "invalid_grant", "error_description": "expired" }),
            "invalid_grant",
            false,
        ),
        (503, json!(null), "HTTP 503", true),
        (
            200,
            json!({ "access_token": "no token" }),
            "no JSON Web Token",
            false,
        ),
        (200, json!({}), "HTTP 200", false),
    ] {
        let mut rig = Rig::new(with_provider(PROVIDER));
        rig.assertion = Ok(ASSERTION.to_owned());
        rig.place.vouched = Some((status, body));
        let Action::Done(Err(error)) = refused(&mut rig) else {
            panic!("{:?}", rig.machine.state());
        };
        assert!(matches!(error, Error::NotVouched { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.is_temporary(), is_temporary);
        assert!(
            !rig.place
                .addresses()
                .contains(&"https://auth.example/token")
        );
    }
    // The ID token is not sent in clear.
    let mut rig = Rig::new(with_provider("http://idp.example/token"));
    rig.assertion = Ok(ASSERTION.to_owned());
    let outcome = refused(&mut rig);
    assert!(
        matches!(outcome, Action::Done(Err(Error::NoEndpoint { .. }))),
        "{outcome:?}"
    );
}
