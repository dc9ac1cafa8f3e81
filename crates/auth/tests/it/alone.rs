//! Clients that sign in for themselves, with something that they prove.

use serde_json::json;
use switchboard_auth::{Action, Algorithm, ConfiguredClient, Error, Event, Grant, Settings, State};

use crate::server::{ISSUER, NOW, Rig};

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
    let (header, claims) = rig.place.read(&form["client_assertion"]);
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
        .map(|token| rig.place.read(token).1["jti"].to_string());
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
