//! New tokens in place of old ones.

use serde_json::json;
use switchboard_auth::{
    Action, Challenge, ConfiguredClient, Credential, Error, Event, Machine, Renewed, Settings,
    State,
};

use crate::server::{ISSUER, NOW, Rig, SERVER};

fn signed_in() -> Rig {
    let mut rig = Rig::new(Settings::new("Switchboard"));
    rig.sign_in().unwrap();
    rig
}

fn invalid() -> Challenge {
    Challenge {
        error: Some("invalid_token".to_owned()),
        ..Challenge::default()
    }
}

#[test]
fn tokens_are_renewed_with_the_latest_refresh_token() {
    let mut rig = signed_in();
    for round in 2..50 {
        rig.now += 3_600;
        assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
        assert_eq!(
            rig.machine.token().unwrap().expose(),
            format!("access-{round}")
        );
        let tokens = rig.stored.as_ref().unwrap().tokens.as_ref().unwrap();
        assert_eq!(tokens.expires, Some(rig.now + 3_600));
    }
    // The server saw each refresh token once.
    assert_eq!(rig.place.used.len(), 48);
}

#[test]
fn new_tokens_are_used_once_they_are_saved() {
    let mut rig = signed_in();
    assert_eq!(rig.machine.handle(rig.now, Event::Renew), Action::Load);
    let stored = Event::Loaded(rig.stored.clone().map(Box::new));
    let Action::Send(request) = rig.machine.handle(rig.now, stored) else {
        panic!("no request");
    };
    assert_eq!(rig.machine.state(), State::Refreshing);
    let (status, body) = rig.place.answer(&request);
    let response = switchboard_auth::Response {
        status,
        nonce: None,
        challenge: Challenge::default(),
        body: body.as_bytes(),
    };
    assert_eq!(
        rig.machine.handle(rig.now, Event::Response(response)),
        Action::Save
    );
    assert_eq!(rig.machine.token().unwrap().expose(), "access-1");
    let to_save = rig.machine.credential().unwrap().tokens.clone().unwrap();
    assert_eq!(to_save.access.expose(), "access-2");
    assert_eq!(
        rig.machine.handle(rig.now, Event::Saved),
        Action::Done(Ok(()))
    );
    assert_eq!(rig.machine.token().unwrap().expose(), "access-2");
}

#[test]
fn old_refresh_token_stays_without_another() {
    let mut rig = signed_in();
    rig.place.tokens = json!({ "token_type": "Bearer", "refresh_token": "", "expires_in": "60" });
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    let tokens = rig.stored.as_ref().unwrap().tokens.as_ref().unwrap();
    assert_eq!(tokens.refresh.as_ref().unwrap().expose(), "refresh-1");
    assert_eq!(tokens.expires, Some(NOW + 60));
}

#[test]
fn refused_token_is_renewed_at_the_same_issuer() {
    let mut rig = signed_in();
    assert_eq!(rig.handle(Event::Refused(invalid())), Action::Done(Ok(())));
    assert_eq!(rig.machine.token().unwrap().expose(), "access-2");
}

#[test]
fn nothing_is_sent_to_another_issuer() {
    let mut rig = signed_in();
    rig.place.resource()["authorization_servers"] = json!(["https://other.example"]);
    rig.place.documents.insert(
        "https://other.example/.well-known/oauth-authorization-server".to_owned(),
        json!({
            "issuer": "https://other.example",
            "token_endpoint": "https://other.example/token",
            "authorization_endpoint": "https://other.example/authorize",
            "registration_endpoint": "https://other.example/register",
            "code_challenge_methods_supported": ["S256"],
        }),
    );
    let outcome = rig.handle(Event::Refused(invalid()));
    assert!(
        matches!(outcome, Action::Done(Err(Error::SignedOut { .. }))),
        "{outcome:?}"
    );
    assert!(
        !rig.place
            .addresses()
            .contains(&"https://other.example/token")
    );
    // The client registers itself there.
    assert!(rig.start().is_err());
    assert_eq!(
        rig.place.addresses().last(),
        Some(&"https://other.example/register")
    );
}

#[test]
fn refresh_token_refused_twice_signs_out() {
    let mut rig = signed_in();
    rig.place.refusals = vec!["invalid_grant"; 2];
    let outcome = rig.handle(Event::Renew);
    assert!(
        matches!(outcome, Action::Done(Err(Error::SignedOut { .. }))),
        "{outcome:?}"
    );
    assert!(matches!(rig.machine.state(), State::SignedOut { .. }));
    assert_eq!(rig.stored.as_ref().unwrap().tokens, None);
    // No loop: there is nothing to renew.
    let requests = rig.place.requests.len();
    assert!(matches!(rig.handle(Event::Renew), Action::Done(Err(_))));
    assert_eq!(rig.place.requests.len(), requests);
}

#[test]
fn tokens_of_another_process_are_taken() {
    let mut rig = signed_in();
    let mut other = Rig::new(Settings::new("Switchboard"));
    other.place.tokens =
        json!({ "token_type": "Bearer", "access_token": "newer", "expires_in": 60 });
    other.sign_in().unwrap();
    rig.stored = other.stored;
    rig.place.refusals = vec!["invalid_grant"];
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    assert_eq!(rig.machine.token().unwrap().expose(), "newer");
}

#[test]
fn failed_request_keeps_the_tokens() {
    let mut rig = signed_in();
    let before = rig.stored.clone();
    for refusal in ["server_error", "temporarily_unavailable"] {
        rig.place.refusals = vec![refusal];
        assert!(matches!(
            rig.handle(Event::Renew),
            Action::Done(Err(Error::Refused { .. }))
        ));
    }
    assert_eq!(rig.machine.handle(NOW, Event::Renew), Action::Load);
    let stored = Event::Loaded(rig.stored.clone().map(Box::new));
    assert!(matches!(rig.machine.handle(NOW, stored), Action::Send(_)));
    let failed = rig
        .machine
        .handle(NOW, Event::Failed("timed out".to_owned()));
    assert!(matches!(
        failed,
        Action::Done(Err(Error::Unreachable { .. }))
    ));
    assert_eq!(rig.machine.token().unwrap().expose(), "access-1");
    assert_eq!(rig.stored, before);
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
}

#[test]
fn missing_metadata_ends_no_sign_in() {
    let mut rig = signed_in();
    rig.place.documents.clear();
    assert_eq!(rig.handle(Event::Refused(invalid())), Action::Done(Ok(())));
    assert_eq!(rig.machine.token().unwrap().expose(), "access-2");
    // A new sign-in waits for it: the server may have another authorization server.
    for status in [302, 429, 503] {
        rig.place.missing = status;
        assert!(
            matches!(rig.start(), Err(Error::Unreachable { .. })),
            "{status}"
        );
    }
}

#[test]
fn tokens_are_renewed_while_the_user_signs_in() {
    let mut rig = signed_in();
    let asked = rig.start().unwrap();
    rig.now += 60;
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    assert_eq!(rig.machine.token().unwrap().expose(), "access-2");
    assert!(matches!(rig.machine.state(), State::AwaitingUser { .. }));
    let parameters = [
        ("code", "c0de"),
        ("state", &*asked["state"]),
        ("iss", ISSUER),
    ];
    assert_eq!(rig.come_back(&parameters), Action::Done(Ok(())));
    assert_eq!(rig.machine.token().unwrap().expose(), "access-3");
}

#[test]
fn renewal_keeps_the_wish_for_more_scopes() {
    let mut rig = signed_in();
    let more = Challenge {
        scope: Some("write".to_owned()),
        error: Some("insufficient_scope".to_owned()),
        ..Challenge::default()
    };
    assert_eq!(rig.handle(Event::Refused(more)), Action::Wait);
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    assert_eq!(rig.handle(Event::Refused(invalid())), Action::Done(Ok(())));
    assert_eq!(rig.start().unwrap()["scope"], "write");
}

#[test]
fn credential_of_another_server_is_not_used() {
    let rig = signed_in();
    for server in ["https://evil.example/mcp", "http://mcp.example/mcp"] {
        let machine = Machine::new(
            server.parse().unwrap(),
            Settings::new("Switchboard"),
            rig.stored.clone(),
        );
        assert!(machine.token().is_none(), "{server}");
        assert!(machine.credential().is_none(), "{server}");
    }
}

#[test]
fn client_that_is_gone_is_registered_again() {
    for code in ["invalid_client", "unauthorized_client"] {
        let mut rig = signed_in();
        rig.place.refusals = vec![code];
        let outcome = rig.handle(Event::Renew);
        assert!(
            matches!(outcome, Action::Done(Err(Error::SignedOut { .. }))),
            "{outcome:?}"
        );
        rig.sign_in().unwrap();
        let registrations = rig.place.addresses();
        let registrations = registrations
            .iter()
            .filter(|address| address.ends_with("/register"));
        assert_eq!(registrations.count(), 2, "{code}");
    }
}

#[test]
fn odd_members_do_not_void_a_token() {
    let mut rig = signed_in();
    rig.place.tokens =
        json!({ "token_type": 1, "expires_in": 0, "scope": ["a"], "error": "", "extra": {} });
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    let tokens = rig.stored.as_ref().unwrap().tokens.as_ref().unwrap();
    assert_eq!(tokens.access.expose(), "access-2");
    assert_eq!(tokens.expires, None);
}

#[test]
fn refused_token_without_refresh_token_signs_out() {
    let mut rig = Rig::new(Settings::new("Switchboard"));
    rig.place.tokens["refresh_token"] = json!("");
    rig.sign_in().unwrap();
    let expires = rig.machine.state();
    assert!(matches!(expires, State::SignedIn { .. }));
    assert_eq!(rig.handle(Event::Refused(invalid())), Action::Wait);
    assert!(matches!(rig.machine.state(), State::SignedOut { .. }));
    // The server was at fault, and accepts the token again.
    assert!(rig.machine.is_unproven());
    assert_eq!(rig.handle(Event::Accepted), Action::Wait);
    assert_eq!(rig.machine.state(), expires);
    assert!(!rig.machine.is_unproven());
}

#[test]
fn new_secret_of_the_client_is_used() {
    let settings = |secret: &str, issuer: Option<&str>| Settings {
        client: Some(ConfiguredClient {
            secret: Some(secret.into()),
            issuer: issuer.map(str::to_owned),
            ..ConfiguredClient::new("mine")
        }),
        ..Settings::new("Switchboard")
    };
    let mut rig = Rig::new(settings("old", None));
    rig.sign_in().unwrap();
    for (issuer, expected) in [
        (None, "new"),
        (Some(ISSUER), "new"),
        // It is for another issuer.
        (Some("https://other.example"), "old"),
    ] {
        let server = SERVER.parse().unwrap();
        rig.machine = Machine::new(server, settings("new", issuer), rig.stored.clone());
        let secret = rig.machine.credential().unwrap().client.secret.clone();
        assert_eq!(secret.unwrap().expose(), expected, "{issuer:?}");
        rig.stored.as_mut().unwrap().client.secret = Some("old".into());
    }
}

#[test]
fn outages_are_told_from_refusals() {
    let mut rig = signed_in();
    for (code, is_temporary) in [
        ("temporarily_unavailable", true),
        ("server_error", true),
        ("invalid_request", false),
    ] {
        rig.place.refusals = vec![code];
        let Action::Done(Err(error)) = rig.handle(Event::Renew) else {
            panic!("{code}");
        };
        assert_eq!(error.is_temporary(), is_temporary, "{code}");
    }
}

/// The credential that another process has stored, with its next access token.
fn renewed_elsewhere(rig: &Rig) -> Box<Credential> {
    let mut credential = rig.stored.clone().unwrap();
    credential.tokens.as_mut().unwrap().access = "access-elsewhere".into();
    Box::new(credential)
}

#[test]
fn renewal_by_another_process_is_used() {
    let mut rig = signed_in();
    let renewed = Renewed {
        credential: Some(renewed_elsewhere(&rig)),
        outcome: Ok(()),
        unsaved: None,
    };
    // The machine has not asked for it.
    let unasked = Event::Renewed(renewed.clone());
    assert_eq!(rig.machine.handle(rig.now, unasked), Action::Wait);
    assert_eq!(rig.machine.token().unwrap().expose(), "access-1");
    assert_eq!(rig.machine.handle(rig.now, Event::Renew), Action::Load);
    let action = rig.machine.handle(rig.now, Event::Renewed(renewed));
    assert_eq!(action, Action::Done(Ok(())));
    assert_eq!(rig.machine.token().unwrap().expose(), "access-elsewhere");
    // This process has sent nothing.
    assert!(rig.place.used.is_empty());
}

#[test]
fn failed_renewal_by_another_process_is_reported() {
    let mut rig = signed_in();
    let down = Error::Unreachable {
        document: "token".into(),
        reason: "no response".to_owned(),
    };
    let gone = Error::SignedOut { said: None };
    for (error, has_token) in [(down, true), (gone, false)] {
        let mut credential = renewed_elsewhere(&rig);
        credential.tokens.take_if(|_| !has_token);
        let renewed = Renewed {
            credential: Some(credential),
            outcome: Err(error.clone()),
            unsaved: None,
        };
        // It is an answer of another process.
        let text = serde_json::to_string(&renewed).unwrap();
        let renewed: Renewed = serde_json::from_str(&text).unwrap();
        assert_eq!(rig.machine.handle(rig.now, Event::Renew), Action::Load);
        let action = rig.machine.handle(rig.now, Event::Renewed(renewed));
        assert_eq!(action, Action::Done(Err(error)));
        assert_eq!(rig.machine.token().is_some(), has_token);
    }
    let state = rig.machine.state();
    assert!(matches!(state, State::SignedOut { .. }), "{state:?}");
}
