//! Sign-ins with an honest authorization server.

use serde_json::{Value, json};
use switchboard_auth::{
    Action, Challenge, ConfiguredClient, Error, Event, Grant, ResourceParameter, Settings, State,
};

use crate::server::{ISSUER, NOW, Place, REDIRECT, Rig, SERVER};

fn settings() -> Settings {
    Settings::new("Switchboard")
}

#[test]
fn user_signs_in_from_nothing() {
    let mut rig = Rig::new(settings());
    assert_eq!(rig.machine.state(), State::Unknown);
    let asked = rig.start().unwrap();
    assert_eq!(
        rig.machine.state(),
        State::AwaitingUser { until: NOW + 600 }
    );
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "registered"),
        ("redirect_uri", REDIRECT),
        ("code_challenge_method", "S256"),
        ("resource", SERVER),
        // It was in the address of the endpoint.
        ("prompt", "consent"),
    ] {
        assert_eq!(asked.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!asked.contains_key("scope"));
    let action = rig.come_back(&[
        ("code", "c0de"),
        ("state", &asked["state"]),
        ("iss", ISSUER),
    ]);
    assert_eq!(action, Action::Done(Ok(())));
    let form = rig.place.last_form();
    for (name, value) in [
        ("grant_type", "authorization_code"),
        ("code", "c0de"),
        ("redirect_uri", REDIRECT),
        ("client_id", "registered"),
        ("resource", SERVER),
    ] {
        assert_eq!(form.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(form["code_verifier"].len() >= 43);
    assert_eq!(
        rig.place.addresses(),
        [
            SERVER,
            "https://mcp.example/.well-known/oauth-protected-resource/mcp",
            "https://auth.example/.well-known/oauth-authorization-server/tenant",
            "https://auth.example/register",
            "https://auth.example/token",
        ]
    );
    let expires = Some(NOW + 3600);
    assert_eq!(rig.machine.state(), State::SignedIn { expires });
    assert_eq!(rig.machine.token().unwrap().expose(), "access-1");
    assert_eq!(rig.stored.as_ref(), rig.machine.credential());
}

#[test]
fn registration_asks_for_what_is_used() {
    let mut place = Place::new();
    place.server()["scopes_supported"] = json!(["files", "offline_access"]);
    place.challenge.scope = Some("files other".to_owned());
    let mut rig = Rig::at(place, settings());
    let asked = rig.start().unwrap();
    assert_eq!(asked["scope"], "files other offline_access");
    let (_, form) = &rig.place.requests[3];
    let registration: Value = serde_json::from_str(&form["json"]).unwrap();
    assert_eq!(
        registration,
        json!({
            "client_name": "Switchboard",
            "redirect_uris": [REDIRECT],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
            "scope": "files other offline_access",
        })
    );
}

#[test]
fn registration_without_scopes_follows_a_refused_one() {
    let mut place = Place::new();
    place.challenge.scope = Some("files".to_owned());
    place.refuses_scopes = true;
    let mut rig = Rig::at(place, settings());
    let asked = rig.start().unwrap();
    assert_eq!(asked["scope"], "files");
    let registrations = rig.place.addresses();
    let registrations = registrations
        .iter()
        .filter(|address| address.ends_with("/register"));
    assert_eq!(registrations.count(), 2);
    // A refusal for another reason is final.
    let mut place = Place::new();
    place.challenge.scope = Some("files".to_owned());
    place.registration = (400, r#"{"error":"invalid_client_metadata"}"#.to_owned());
    let mut rig = Rig::at(place, settings());
    assert!(matches!(rig.start(), Err(Error::Refused { .. })));
    assert_eq!(rig.place.requests.len(), 5);
}

#[test]
fn configured_client_is_not_registered() {
    let mut rig = Rig::new(Settings {
        client: Some(ConfiguredClient {
            secret: Some("s:cret".into()),
            issuer: Some(ISSUER.to_owned()),
            ..ConfiguredClient::new("own id")
        }),
        scopes: Some(vec!["only".to_owned()]),
        resource: ResourceParameter::Omitted,
        ..settings()
    });
    // The endpoint's own resource must not be sent, either.
    rig.place.server()["authorization_endpoint"] = json!("https://auth.example/a?resource=x");
    let asked = rig.start().unwrap();
    assert_eq!(asked["scope"], "only");
    assert!(!asked.contains_key("resource"));
    rig.sign_in().unwrap();
    // `own id:s:cret`, each part encoded as in a form.
    assert_eq!(rig.place.headers, ["Basic b3duK2lkOnMlM0FjcmV0"]);
    assert!(!rig.place.last_form().contains_key("client_id"));
    assert!(
        !rig.place
            .addresses()
            .contains(&"https://auth.example/register")
    );
}

#[test]
fn client_document_replaces_the_registration() {
    let document = "https://switchboard.example/client.json";
    let mut rig = Rig::new(Settings {
        client_document: Some(document.to_owned()),
        ..settings()
    });
    rig.place.server()["client_id_metadata_document_supported"] = json!(true);
    assert_eq!(rig.start().unwrap()["client_id"], document);
}

#[test]
fn client_signs_in_for_itself() {
    let mut rig = Rig::new(Settings {
        client: Some(ConfiguredClient {
            secret: Some("secret".into()),
            ..ConfiguredClient::new("machine")
        }),
        grant: Grant::ClientCredentials,
        ..settings()
    });
    let challenge = rig.place.challenge.clone();
    assert_eq!(rig.handle(Event::Refused(challenge)), Action::Done(Ok(())));
    assert_eq!(rig.place.last_form()["grant_type"], "client_credentials");
    assert_eq!(rig.machine.token().unwrap().expose(), "access-1");
    // A renewal needs no refresh token.
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    assert_eq!(rig.machine.token().unwrap().expose(), "access-2");
}

#[test]
fn old_server_is_its_own_authorization_server() {
    let mut place = Place::new();
    place.documents.clear();
    let mut rig = Rig::at(place, settings());
    rig.place.registration = (404, String::new());
    let error = rig.start().unwrap_err();
    // The endpoints of 2025-03-26 were tried, at the origin of the server.
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert_eq!(
        rig.place.addresses().last(),
        Some(&"https://mcp.example/register")
    );
}

#[test]
fn pages_in_place_of_documents_are_passed_over() {
    let mut place = Place::new();
    let resource = json!({ "resource": SERVER, "authorization_servers": [ISSUER] });
    let root = "https://mcp.example/.well-known/oauth-protected-resource";
    place.documents.insert(root.to_owned(), resource);
    let server = place.server().clone();
    let openid = "https://auth.example/.well-known/openid-configuration/tenant";
    place.documents.insert(openid.to_owned(), server);
    place.pages = vec![
        "https://mcp.example/.well-known/oauth-protected-resource/mcp",
        "https://auth.example/.well-known/oauth-authorization-server/tenant",
    ];
    Rig::at(place, settings()).sign_in().unwrap();
}

#[test]
fn secret_that_never_expires_may_be_null() {
    let mut rig = Rig::new(settings());
    let registration = json!({ "client_id": "registered", "client_secret_expires_at": null });
    rig.place.registration = (201, registration.to_string());
    rig.sign_in().unwrap();
}

#[test]
fn more_scopes_are_requested_in_addition() {
    let mut rig = Rig::new(settings());
    rig.place.challenge.scope = Some("read".to_owned());
    rig.sign_in().unwrap();
    let more = |scope: &str| Challenge {
        resource_metadata: None,
        demands_proof: false,
        scope: Some(scope.to_owned()),
        error: Some("insufficient_scope".to_owned()),
    };
    assert_eq!(rig.handle(Event::Refused(more("write"))), Action::Wait);
    assert_eq!(rig.start().unwrap()["scope"], "read write");
    rig.sign_in().unwrap();
    // The user may have left out a scope, and is asked for it once more.
    assert_eq!(rig.handle(Event::Refused(more("write"))), Action::Wait);
    rig.sign_in().unwrap();
    // A server that is never content does not keep the user busy.
    let outcome = rig.handle(Event::Refused(more("write")));
    assert!(
        matches!(outcome, Action::Done(Err(Error::TooManyStepUps { .. }))),
        "{outcome:?}"
    );
    // Another scope is something else.
    assert_eq!(rig.handle(Event::Refused(more("delete"))), Action::Wait);
    assert_eq!(rig.start().unwrap()["scope"], "read write delete");
}

#[test]
fn useless_tokens_are_not_renewed_forever() {
    let mut rig = Rig::new(settings());
    rig.sign_in().unwrap();
    let refused = || {
        Event::Refused(Challenge {
            error: Some("invalid_token".to_owned()),
            ..Challenge::default()
        })
    };
    for _ in 0..2 {
        assert_eq!(rig.handle(refused()), Action::Done(Ok(())));
    }
    let issued = rig.place.requests.len();
    for _ in 0..2 {
        assert_eq!(
            rig.handle(refused()),
            Action::Done(Err(Error::StillRefused))
        );
    }
    assert_eq!(rig.place.requests.len(), issued);
    // The next tokens may be better.
    rig.now += 60;
    assert_eq!(rig.handle(refused()), Action::Done(Ok(())));
    assert_eq!(
        rig.handle(refused()),
        Action::Done(Err(Error::StillRefused))
    );
    rig.handle(Event::Accepted);
    assert_eq!(rig.handle(refused()), Action::Done(Ok(())));
}

#[test]
fn signing_out_revokes_and_forgets() {
    let mut rig = Rig::new(settings());
    rig.sign_in().unwrap();
    assert_eq!(rig.handle(Event::SignOut), Action::Done(Ok(())));
    let revoked: Vec<_> = rig
        .place
        .requests
        .iter()
        .filter_map(|(_, form)| form.get("token"))
        .collect();
    assert_eq!(revoked, ["refresh-1", "access-1"]);
    assert_eq!(rig.stored.as_ref().unwrap().tokens, None);
    assert!(rig.machine.token().is_none());
    // The registration is used again.
    rig.sign_in().unwrap();
    let registrations = rig.place.addresses();
    let registrations = registrations
        .iter()
        .filter(|address| address.ends_with("/register"));
    assert_eq!(registrations.count(), 1);
}
