//! Authorization servers, MCP servers and web pages with bad intentions. Each has a named outcome.

use serde_json::json;
use switchboard_auth::{Action, Challenge, ConfiguredClient, Error, Event, Grant, Settings};

use crate::server::{ISSUER, NOW, Place, Rig};

fn refused(change: impl FnOnce(&mut Place)) -> Error {
    let mut place = Place::new();
    change(&mut place);
    let mut rig = Rig::at(place, Settings::new("Switchboard"));
    let error = rig.sign_in().unwrap_err();
    assert!(rig.machine.token().is_none());
    assert!(
        !rig.place
            .addresses()
            .contains(&"https://auth.example/token"),
        "{error}"
    );
    assert!(!error.hint().is_empty());
    error
}

/// Starts a sign-in, and comes back with these parameters in addition to the state.
fn came_back(parameters: &[(&str, &str)]) -> (Rig, Action) {
    let mut rig = Rig::new(Settings::new("Switchboard"));
    let asked = rig.start().unwrap();
    let mut all = vec![("state", &*asked["state"])];
    all.extend(parameters);
    let action = rig.come_back(&all);
    (rig, action)
}

#[test]
fn metadata_of_others_is_refused() {
    let error = refused(|place| place.resource()["resource"] = json!("https://evil.example/mcp"));
    assert!(matches!(error, Error::OtherResource { .. }), "{error}");
    for issuer in ["https://evil.example", "https://auth.example/tenant/"] {
        let error = refused(|place| place.server()["issuer"] = json!(issuer));
        assert!(matches!(error, Error::OtherIssuer { .. }), "{error}");
    }
}

#[test]
fn server_without_pkce_is_refused() {
    for methods in [json!(["plain"]), json!([]), json!(null)] {
        let error = refused(|place| place.server()["code_challenge_methods_supported"] = methods);
        assert!(matches!(error, Error::NoPkce { .. }), "{error}");
    }
}

#[test]
fn addresses_inside_are_not_requested() {
    for inside in [
        "http://169.254.169.254/latest",
        "https://10.0.0.1/token",
        "https://localhost/token",
        "https://[::1]/token",
        "http://auth.example/token",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://user:pw@auth.example/token",
        "not a URL",
    ] {
        for endpoint in [
            "authorization_endpoint",
            "registration_endpoint",
            "token_endpoint",
        ] {
            let error = refused(|place| place.server()[endpoint] = json!(inside));
            assert!(
                matches!(error, Error::NoEndpoint { .. }),
                "{endpoint} {inside}: {error}"
            );
        }
        let error = refused(|place| place.resource()["authorization_servers"] = json!([inside]));
        assert!(
            matches!(error, Error::NoAuthorizationServer),
            "{inside}: {error}"
        );
        // A hint that must not be followed is not: the well-known address is used.
        let mut place = Place::new();
        place.challenge.resource_metadata = Some(inside.to_owned());
        let mut rig = Rig::at(place, Settings::new("Switchboard"));
        rig.sign_in().unwrap();
        assert!(!rig.place.addresses().contains(&inside));
    }
}

#[test]
fn unreadable_documents_are_reported() {
    for body in [json!([]), json!({}), json!({ "issuer": 1 })] {
        let error = refused(|place| *place.server() = body);
        assert!(matches!(error, Error::Metadata { .. }), "{error}");
    }
    let error = refused(|place| place.registration = (201, "<html>".to_owned()));
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    let error = refused(|place| {
        place
            .server()
            .as_object_mut()
            .unwrap()
            .remove("registration_endpoint");
    });
    assert!(matches!(error, Error::NoRegistration { .. }), "{error}");
}

#[test]
fn forged_callback_does_not_end_the_sign_in() {
    let mut rig = Rig::new(Settings::new("Switchboard"));
    let asked = rig.start().unwrap();
    let state = &*asked["state"];
    for forged in [
        &[("code", "evil")][..],
        &[("code", "evil"), ("state", "")],
        &[("code", "evil"), ("state", "x")],
        &[("error", "access_denied"), ("state", "x")],
        &[("code", "evil"), ("state", state), ("state", "x")],
    ] {
        let action = rig.come_back(forged);
        assert_eq!(action, Action::Ignore(Error::WrongState), "{forged:?}");
    }
    let action = rig.come_back(&[("code", "c0de"), ("state", state), ("iss", ISSUER)]);
    assert_eq!(action, Action::Done(Ok(())));
    // It cannot be replayed.
    let action = rig.come_back(&[("code", "c0de"), ("state", state), ("iss", ISSUER)]);
    assert_eq!(action, Action::Ignore(Error::WrongState));
}

#[test]
fn response_of_another_issuer_is_refused() {
    for parameters in [
        &[("code", "c"), ("iss", "https://evil.example")][..],
        &[("code", "c"), ("iss", "https://auth.example/tenant/")],
        // The server says that it always names itself.
        &[("code", "c")],
        &[
            ("error", "access_denied"),
            ("error_description", "call 555-evil"),
        ],
    ] {
        let (rig, action) = came_back(parameters);
        let Action::Done(Err(error)) = action else {
            panic!("{action:?}");
        };
        assert!(matches!(error, Error::WrongIssuer { .. }), "{error}");
        assert_eq!(error.said(), None);
        assert!(
            !rig.place
                .addresses()
                .contains(&"https://auth.example/token")
        );
    }
}

#[test]
fn denial_and_missing_code_are_named() {
    let (_, action) = came_back(&[
        ("error", "access_denied"),
        ("error_description", "no\u{1b}[2J way"),
        ("iss", ISSUER),
    ]);
    let said = Some("no [2J way".to_owned());
    assert_eq!(action, Action::Done(Err(Error::Denied { said })));
    let (_, action) = came_back(&[("iss", ISSUER)]);
    assert_eq!(action, Action::Done(Err(Error::NoCode)));
}

#[test]
fn unusable_tokens_are_refused() {
    for tokens in [
        json!({ "access_token": "a\r\nX: y" }),
        json!({ "access_token": "" }),
        json!({ "access_token": "a", "token_type": "mac" }),
        json!({ "access_token": 7 }),
    ] {
        let mut rig = Rig::new(Settings::new("Switchboard"));
        rig.place.tokens = tokens;
        let error = rig.sign_in().unwrap_err();
        assert!(matches!(error, Error::BadToken { .. }), "{error}");
        assert_eq!(rig.stored, None);
    }
    // An error with the status of a success.
    let mut rig = Rig::new(Settings::new("Switchboard"));
    rig.place.tokens = json!({ "error": "bad_verification_code" });
    assert!(matches!(rig.sign_in(), Err(Error::Refused { .. })));
}

#[test]
fn sign_in_ends_without_the_user() {
    let mut rig = Rig::new(Settings::new("Switchboard"));
    rig.start().unwrap();
    rig.now = NOW + 599;
    assert_eq!(rig.handle(Event::Tick), Action::Wait);
    rig.now = NOW + 600;
    assert_eq!(rig.handle(Event::Tick), Action::Done(Err(Error::Expired)));
    rig.start().unwrap();
    assert_eq!(
        rig.handle(Event::Cancel),
        Action::Done(Err(Error::Cancelled))
    );
}

#[test]
fn plain_http_server_is_refused() {
    let server = "http://mcp.example/mcp".parse().unwrap();
    let mut rig = Rig::new(Settings::new("Switchboard"));
    rig.machine = switchboard_auth::Machine::new(server, Settings::new("Switchboard"), None);
    assert_eq!(rig.start().unwrap_err(), Error::Insecure);
    assert!(rig.place.requests.is_empty());
}

#[test]
fn challenge_floods_start_nothing() {
    let mut rig = Rig::new(Settings::new("Switchboard"));
    for _ in 0..100 {
        let challenge = Challenge {
            error: Some("insufficient_scope".to_owned()),
            scope: Some("admin".to_owned()),
            resource_metadata: None,
            demands_proof: false,
        };
        rig.handle(Event::Refused(challenge));
    }
    assert!(rig.place.requests.is_empty() && rig.opened.is_empty());
}

#[test]
fn server_without_metadata_gets_no_client_secret() {
    let mut settings = Settings::new("Switchboard");
    settings.grant = Grant::ClientCredentials;
    settings.client = Some(ConfiguredClient {
        secret: Some("secret".into()),
        issuer: Some(ISSUER.to_owned()),
        ..ConfiguredClient::new("mine")
    });
    let mut place = Place::new();
    place.documents.clear();
    let mut rig = Rig::at(place, settings);
    let challenge = rig.place.challenge.clone();
    assert_eq!(
        rig.handle(Event::Refused(challenge)),
        Action::Done(Err(Error::NoAuthorizationServer))
    );
    assert!(rig.place.headers.is_empty());
}

#[test]
fn client_secret_stays_with_its_issuer() {
    let mut settings = Settings::new("Switchboard");
    settings.client = Some(ConfiguredClient {
        secret: Some("secret".into()),
        ..ConfiguredClient::new("mine")
    });
    for grant in [Grant::AuthorizationCode, Grant::ClientCredentials] {
        settings.grant = grant;
        let mut rig = Rig::new(settings.clone());
        if grant == Grant::AuthorizationCode {
            rig.sign_in().unwrap();
        } else {
            rig.handle(Event::Refused(Challenge::default()));
        }
        assert!(rig.machine.token().is_some());
        rig.place.resource()["authorization_servers"] = json!(["https://evil.example"]);
        let before = rig.place.headers.len();
        let outcome = rig.start();
        assert_eq!(outcome, Err(Error::NoAuthorizationServer), "{grant:?}");
        assert_eq!(rig.place.headers.len(), before);
    }
}
