//! Users who enter a code on another device, while the client asks for the tokens.

use serde_json::{Value, json};
use switchboard_auth::{
    Action, Challenge, ConfiguredClient, Error, Event, Grant, Response, Settings, SignIn, State,
    UserCode,
};

use crate::server::{ISSUER, NOW, Place, Rig, SERVER, key};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

fn settings() -> Settings {
    Settings {
        grant: Grant::DeviceCode,
        ..Settings::new("Switchboard")
    }
}

/// Starts a sign-in, up to the page with the code.
fn start(rig: &mut Rig) -> Result<(String, UserCode, u64), Error> {
    match rig.begin("") {
        Action::Open { url, code, until } => Ok((url.into(), code.unwrap(), until)),
        Action::Done(Err(error)) => Err(error),
        other => panic!("{other:?}"),
    }
}

fn started(place: Place) -> Rig {
    let mut rig = Rig::at(place, settings());
    start(&mut rig).unwrap();
    rig
}

/// Lets the time pass until the machine wants to do something.
fn pass(rig: &mut Rig) -> Action {
    rig.now = rig.machine.tick_at().unwrap();
    rig.handle(Event::Tick)
}

/// The time until the next request, without the second that the clock may have begun.
fn pause(rig: &Rig) -> u64 {
    rig.machine.tick_at().unwrap() - rig.now - 1
}

/// Answers the next request for tokens with this.
fn answered(rig: &mut Rig, status: u16, body: &Value) -> Action {
    rig.now = rig.machine.tick_at().unwrap();
    let action = rig.machine.handle(rig.now, Event::Tick);
    assert!(matches!(action, Action::Send(_)), "{action:?}");
    let body = body.to_string();
    let response = Response {
        status,
        challenge: Challenge::default(),
        nonce: None,
        body: body.as_bytes(),
    };
    rig.handle(Event::Response(response))
}

fn polls(rig: &Rig) -> usize {
    let addresses = rig.place.addresses();
    let polls = addresses.iter().filter(|it| it.ends_with("/token"));
    polls.count()
}

#[test]
fn user_enters_a_code_elsewhere() {
    let mut place = Place::new();
    place.challenge.scope = Some("files".to_owned());
    place.refusals = vec!["authorization_pending"; 2];
    let mut rig = Rig::at(place, settings());
    let (url, code, until) = start(&mut rig).unwrap();
    assert_eq!(url, "https://auth.example/enter");
    assert_eq!(code.text, "WDJB-MJHT");
    assert_eq!(code.complete.unwrap().query(), Some("code=WDJB-MJHT"));
    assert_eq!((&*code.provider, code.other_host), ("auth.example", None));
    assert_eq!(until, NOW + 300);
    assert_eq!(rig.machine.state(), State::AwaitingUser { until });
    let asked = rig.place.last_form();
    for (name, expected) in [
        ("client_id", "registered"),
        ("scope", "files"),
        ("resource", SERVER),
    ] {
        assert_eq!(asked[name], expected, "{name}");
    }
    // Nothing is asked before its time.
    rig.now = NOW + 7;
    assert_eq!(rig.handle(Event::Tick), Action::Wait);
    assert_eq!(polls(&rig), 0);
    for _ in 0..2 {
        assert_eq!(pass(&mut rig), Action::Wait);
        assert_eq!(pause(&rig), 7);
    }
    assert_eq!(pass(&mut rig), Action::Done(Ok(())));
    let form = rig.place.last_form();
    for (name, expected) in [
        ("grant_type", GRANT),
        ("device_code", "device-5ecret"),
        ("client_id", "registered"),
        ("resource", SERVER),
    ] {
        assert_eq!(form[name], expected, "{name}");
    }
    assert_eq!((rig.now, polls(&rig)), (NOW + 24, 3));
    assert_eq!(rig.machine.token().unwrap().expose(), "access-1");
    assert_eq!(rig.stored.as_ref(), rig.machine.credential());
    // The tokens are renewed like others.
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    assert_eq!(rig.place.last_form()["refresh_token"], "refresh-1");
}

#[test]
fn registration_asks_for_the_grant() {
    let mut place = Place::new();
    // The client has no redirect, which PKCE protects.
    place.server()["code_challenge_methods_supported"] = json!(null);
    let mut rig = Rig::at(place, settings());
    start(&mut rig).unwrap();
    let (_, form) = &rig.place.requests[3];
    let registration: Value = serde_json::from_str(&form["json"]).unwrap();
    assert_eq!(
        registration,
        json!({
            "client_name": "Switchboard",
            "grant_types": [GRANT, "refresh_token"],
            "response_types": [],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        })
    );
    // The client is used again.
    assert_eq!(pass(&mut rig), Action::Done(Ok(())));
    start(&mut rig).unwrap();
    let addresses = rig.place.addresses();
    let registrations = addresses.iter().filter(|it| it.ends_with("/register"));
    assert_eq!(registrations.count(), 1);
}

#[test]
fn client_of_another_grant_is_registered_anew() {
    let mut rig = Rig::new(Settings::new("Switchboard"));
    rig.sign_in().unwrap();
    let server = SERVER.parse().unwrap();
    rig.machine = switchboard_auth::Machine::new(server, settings(), rig.stored.clone());
    start(&mut rig).unwrap();
    let addresses = rig.place.addresses();
    let registrations = addresses.iter().filter(|it| it.ends_with("/register"));
    assert_eq!(registrations.count(), 2);
}

#[test]
fn configured_client_authenticates_itself() {
    let mut rig = Rig::new(Settings {
        client: Some(ConfiguredClient {
            secret: Some("secret".into()),
            issuer: Some(ISSUER.to_owned()),
            ..ConfiguredClient::new("mine")
        }),
        parameters: vec![
            ("audience".to_owned(), "files".to_owned()),
            ("client_id".to_owned(), "evil".to_owned()),
        ],
        ..settings()
    });
    start(&mut rig).unwrap();
    let asked = rig.place.last_form();
    assert_eq!(asked["audience"], "files");
    assert!(!asked.contains_key("client_id"), "{asked:?}");
    assert_eq!(pass(&mut rig), Action::Done(Ok(())));
    // At both endpoints.
    assert_eq!(rig.place.headers, ["Basic bWluZTpzZWNyZXQ="; 2]);
}

#[test]
fn pause_follows_the_authorization_server() {
    for (interval, expected) in [
        (json!(0), 1),
        (json!(1), 1),
        (json!("9"), 9),
        (json!(60), 60),
        (json!(120), 120),
        (json!(-5), 5),
        (json!(null), 5),
        (json!({}), 5),
    ] {
        let mut place = Place::new();
        place.codes.1["expires_in"] = json!(1_800);
        place.codes.1["interval"] = interval.clone();
        let mut rig = started(place);
        assert_eq!(pause(&rig), expected, "{interval}");
        // It is too short for the server.
        for longer in [expected + 5, expected + 10] {
            let slow = json!({ "error": "slow_down" });
            assert_eq!(answered(&mut rig, 400, &slow), Action::Wait);
            assert_eq!(pause(&rig), longer, "{interval}");
        }
        // A failure does not make it shorter.
        let failure = json!({ "error": "server_error" });
        assert_eq!(answered(&mut rig, 500, &failure), Action::Wait);
        assert!(pause(&rig) >= expected + 10, "{interval}");
    }
    // Nothing is asked within the longest lifetime.
    for interval in [json!(u64::MAX), json!(1e300), json!(1_800)] {
        let mut place = Place::new();
        place.codes.1["interval"] = interval;
        let mut rig = started(place);
        assert_eq!(pass(&mut rig), Action::Done(Err(Error::Expired)));
        assert_eq!(polls(&rig), 0);
    }
}

#[test]
fn pause_does_not_depend_on_the_clock() {
    let mut rig = started(Place::new());
    let pending = json!({ "error": "authorization_pending" });
    assert_eq!(answered(&mut rig, 400, &pending), Action::Wait);
    rig.now -= 3_600;
    assert_eq!(rig.handle(Event::Tick), Action::Wait);
    assert_eq!(pause(&rig), 7);
    assert_eq!(pass(&mut rig), Action::Done(Ok(())));
}

#[test]
fn last_request_precedes_the_end() {
    let mut place = Place::new();
    place.codes.1["expires_in"] = json!(90);
    place.codes.1["interval"] = json!(10);
    let mut rig = started(place);
    for _ in 0..2 {
        let failure = json!({ "error": "server_error" });
        assert_eq!(answered(&mut rig, 500, &failure), Action::Wait);
    }
    // It would be sent 73 s after the start, and the next one after the end.
    assert!(rig.machine.tick_at().unwrap() < NOW + 90);
    let failure = json!({ "error": "server_error" });
    while rig.machine.tick_at().unwrap() < NOW + 80 {
        assert_eq!(answered(&mut rig, 500, &failure), Action::Wait);
    }
    assert_eq!(rig.machine.tick_at(), Some(NOW + 85));
    assert_eq!(pass(&mut rig), Action::Done(Ok(())));
}

#[test]
fn last_request_keeps_the_pause() {
    let mut place = Place::new();
    place.codes.1["expires_in"] = json!(90);
    place.codes.1["interval"] = json!(60);
    let mut rig = started(place);
    let pending = json!({ "error": "authorization_pending" });
    assert_eq!(answered(&mut rig, 400, &pending), Action::Wait);
    assert_eq!(rig.machine.tick_at(), Some(NOW + 90));
    assert_eq!(pass(&mut rig), Action::Done(Err(Error::Expired)));
}

#[test]
fn cause_of_failed_requests_is_told() {
    let unreachable = Error::Unreachable {
        document: "token".into(),
        reason: "timed out".to_owned(),
    };
    let pending = json!({ "error": "authorization_pending" });
    let slow = json!({ "error": "slow_down" });
    for (last, expected) in [
        (None, unreachable),
        (Some(&pending), Error::Expired),
        (Some(&slow), Error::Expired),
    ] {
        let mut rig = started(Place::new());
        let mut last = last;
        let outcome = loop {
            rig.now = rig.machine.tick_at().unwrap();
            let action = rig.machine.handle(rig.now, Event::Tick);
            if matches!(action, Action::Done(_)) {
                break action;
            }
            let failed = rig.handle(Event::Failed("timed out".to_owned()));
            assert_eq!(failed, Action::Wait);
            if rig.machine.tick_at().unwrap() < NOW + 300
                && let Some(body) = last.take_if(|_| rig.now > NOW + 200)
            {
                assert_eq!(answered(&mut rig, 400, body), Action::Wait);
                rig.now = NOW + 300;
                break rig.handle(Event::Tick);
            }
        };
        assert_eq!(outcome, Action::Done(Err(expected)));
    }
    // So is the refusal of a server that works later.
    let mut rig = started(Place::new());
    answered(&mut rig, 503, &json!({ "error": "server_error" }));
    rig.now = NOW + 300;
    let Action::Done(Err(error)) = rig.handle(Event::Tick) else {
        panic!("{:?}", rig.machine.state());
    };
    assert!(
        matches!(
            error,
            Error::Refused {
                status: Some(503),
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn cancelled_request_is_not_sent_again() {
    let mut place = Place::new();
    place.challenge.demands_proof = true;
    place.tokens = json!({ "token_type": "DPoP", "expires_in": 3600 });
    for is_replaced in [false, true] {
        let mut rig = Rig::at(Place::new(), settings());
        let challenge = place.challenge.clone();
        rig.handle(Event::Refused(challenge));
        start(&mut rig).unwrap();
        rig.now = rig.machine.tick_at().unwrap();
        let poll = rig.machine.handle(rig.now, Event::Tick);
        assert!(matches!(poll, Action::Send(_)), "{poll:?}");
        if !is_replaced {
            rig.handle(Event::Cancel);
        }
        let sign_in = SignIn {
            redirect_uri: String::new(),
            random: [7; 64],
        };
        let action = rig.machine.handle(rig.now, Event::SignIn(sign_in));
        assert!(matches!(action, Action::Send(_)), "{action:?}");
        let response = Response {
            status: 401,
            challenge: Challenge::default(),
            nonce: Some("n1".to_owned()),
            body: br#"{"error":"use_dpop_nonce"}"#,
        };
        let next = rig.machine.handle(rig.now, Event::Response(response));
        let Action::Send(request) = next else {
            panic!("{next:?}");
        };
        assert_eq!(request.body, None);
    }
}

#[test]
fn request_is_not_sent_again_after_sign_out() {
    let mut rig = started(Place::new());
    assert_eq!(pass(&mut rig), Action::Done(Ok(())));
    let mut challenge = rig.place.challenge.clone();
    challenge.demands_proof = true;
    rig.handle(Event::Refused(challenge));
    start(&mut rig).unwrap();
    rig.now = rig.machine.tick_at().unwrap();
    let poll = rig.machine.handle(rig.now, Event::Tick);
    assert!(matches!(poll, Action::Send(_)), "{poll:?}");
    let Action::Send(revocation) = rig.machine.handle(rig.now, Event::SignOut) else {
        panic!("{:?}", rig.machine.state());
    };
    assert_eq!(revocation.url.path(), "/revoke");
    let response = Response {
        status: 400,
        challenge: Challenge::default(),
        nonce: Some("n1".to_owned()),
        body: br#"{"error":"use_dpop_nonce"}"#,
    };
    let next = rig.machine.handle(rig.now, Event::Response(response));
    let repeats = matches!(&next, Action::Send(request) if request.url.path() == "/token");
    assert!(!repeats, "{next:?}");
}

#[test]
fn time_of_the_user_is_bounded() {
    for (lifetime, expected) in [
        (json!(1), 1),
        (json!("120"), 120),
        (json!(1_800), 1_800),
        (json!(1_801), 1_800),
        (json!(u64::MAX), 1_800),
        (json!(0), 600),
        (json!(-1), 600),
        (json!(null), 600),
    ] {
        let mut place = Place::new();
        place.codes.1["expires_in"] = lifetime.clone();
        place.refusals = vec!["slow_down"; 2_000];
        let mut rig = started(place);
        let until = rig.machine.state();
        assert_eq!(
            until,
            State::AwaitingUser {
                until: NOW + expected
            },
            "{lifetime}"
        );
        let outcome = loop {
            match pass(&mut rig) {
                Action::Wait => {}
                outcome => break outcome,
            }
        };
        assert_eq!(outcome, Action::Done(Err(Error::Expired)));
        assert_eq!(rig.now, NOW + expected);
        assert!(polls(&rig) <= 35, "{}", polls(&rig));
        assert_eq!(rig.machine.tick_at(), None);
    }
}

#[test]
fn failures_for_the_moment_end_nothing() {
    let mut rig = started(Place::new());
    for expected in [14, 28, 56, 60, 60] {
        rig.now = rig.machine.tick_at().unwrap();
        let action = rig.machine.handle(rig.now, Event::Tick);
        assert!(matches!(action, Action::Send(_)), "{action:?}");
        // There is no other request meanwhile.
        assert_eq!(rig.machine.tick_at(), None);
        assert_eq!(rig.handle(Event::Tick), Action::Wait);
        assert_eq!(
            rig.handle(Event::Failed("timed out".to_owned())),
            Action::Wait
        );
        assert_eq!(pause(&rig), expected);
    }
    let pending = json!({ "error": "authorization_pending" });
    assert_eq!(answered(&mut rig, 400, &pending), Action::Wait);
    assert_eq!(pause(&rig), 7);
    for (status, body) in [(503, json!(null)), (429, json!({ "error": "later" }))] {
        let before = pause(&rig);
        assert_eq!(answered(&mut rig, status, &body), Action::Wait);
        assert_eq!(pause(&rig), before * 2);
    }
    assert_eq!(pass(&mut rig), Action::Done(Ok(())));
}

#[test]
fn refusals_are_named() {
    let said = || Some("no".to_owned());
    for (code, expected) in [
        ("access_denied", Error::Denied { said: said() }),
        ("expired_token", Error::Expired),
        (
            "invalid_grant",
            Error::Refused {
                request: "the request for a token".into(),
                code: "invalid_grant".to_owned(),
                status: Some(400),
                said: said(),
            },
        ),
    ] {
        // Some servers report errors with the status of a success.
        for status in [400, 200] {
            let mut rig = started(Place::new());
            let body = json!({ "error": code, "error_description": "no" });
            let mut expected = expected.clone();
            if let Error::Refused { status: named, .. } = &mut expected {
                *named = Some(status);
            }
            assert_eq!(
                answered(&mut rig, status, &body),
                Action::Done(Err(expected))
            );
            assert_eq!(rig.machine.state(), State::NeedsSignIn);
            assert_eq!(rig.handle(Event::Tick), Action::Wait);
        }
    }
}

#[test]
fn refused_client_is_registered_anew() {
    let mut place = Place::new();
    let mut rig = started(place);
    assert_eq!(pass(&mut rig), Action::Done(Ok(())));
    place = std::mem::replace(&mut rig.place, Place::new());
    place.codes = (401, json!({ "error": "invalid_client" }));
    rig.place = place;
    assert!(matches!(start(&mut rig), Err(Error::Refused { .. })));
    rig.place.codes = Place::new().codes;
    start(&mut rig).unwrap();
    let addresses = rig.place.addresses();
    let registrations = addresses.iter().filter(|it| it.ends_with("/register"));
    assert_eq!(registrations.count(), 2);
}

#[test]
fn unusable_codes_are_refused() {
    let long = "A".repeat(33);
    let address = format!("https://auth.example/{}", "a".repeat(2_048));
    for (member, value) in [
        ("device_code", json!(null)),
        ("device_code", json!("")),
        ("device_code", json!(7)),
        ("device_code", json!("d".repeat(9_000))),
        ("user_code", json!(null)),
        ("user_code", json!("")),
        ("user_code", json!(long)),
        ("user_code", json!("WDJB\u{1b}[2J")),
        ("user_code", json!("WDJB MJHT")),
        ("user_code", json!("WD\u{202e}JB")),
        ("user_code", json!("https://evil.example")),
        ("verification_uri", json!(null)),
        ("verification_uri", json!(address)),
        ("verification_uri", json!("http://auth.example/enter")),
        ("verification_uri", json!("https://10.0.0.1/enter")),
        ("verification_uri", json!("http://localhost/enter")),
        (
            "verification_uri",
            json!("https://bank.example@evil.example"),
        ),
        ("verification_uri", json!("javascript:alert(1)")),
        ("verification_uri", json!("enter")),
    ] {
        let mut place = Place::new();
        place.codes.1[member] = value.clone();
        let mut rig = Rig::at(place, settings());
        let error = start(&mut rig).unwrap_err();
        assert!(
            matches!(error, Error::BadCode { .. }),
            "{member} {value}: {error}"
        );
        assert!(!error.hint().is_empty());
        assert_eq!(rig.machine.tick_at(), None);
    }
    for body in [json!([]), json!(null), json!("WDJB-MJHT")] {
        let mut place = Place::new();
        place.codes.1 = body;
        let error = start(&mut Rig::at(place, settings())).unwrap_err();
        assert!(matches!(error, Error::BadCode { .. }), "{error}");
    }
}

#[test]
fn unusable_complete_address_is_left_out() {
    for address in [
        json!(null),
        json!("http://auth.example/enter"),
        json!("https://192.168.0.1/"),
        json!("file:///etc/passwd"),
        json!("https://evil.example/enter?code=WDJB-MJHT"),
        json!("https://auth.example:444/enter?code=WDJB-MJHT"),
        json!(["https://auth.example"]),
    ] {
        let mut place = Place::new();
        place.codes.1["verification_uri_complete"] = address;
        let (_, code, _) = start(&mut Rig::at(place, settings())).unwrap();
        assert_eq!(code.complete, None);
    }
}

#[test]
fn page_at_another_host_is_named() {
    let mut place = Place::new();
    place.codes.1["verification_uri"] = json!("https://github.com/login/device");
    let (url, code, _) = start(&mut Rig::at(place, settings())).unwrap();
    assert_eq!(url, "https://github.com/login/device");
    assert_eq!(code.provider, "auth.example");
    assert_eq!(code.other_host.as_deref(), Some("github.com"));
    assert_eq!(code.complete, None);
}

#[test]
fn address_of_the_drafts_is_accepted() {
    let mut place = Place::new();
    let address = place.codes.1["verification_uri"].take();
    place.codes.1["verification_url"] = address;
    let (url, ..) = start(&mut Rig::at(place, settings())).unwrap();
    assert_eq!(url, "https://auth.example/enter");
}

#[test]
fn server_without_the_grant_is_named() {
    for inside in [json!(null), json!("https://10.0.0.1/device")] {
        let mut place = Place::new();
        place.server()["device_authorization_endpoint"] = inside;
        let mut rig = Rig::at(place, settings());
        let error = start(&mut rig).unwrap_err();
        assert!(matches!(error, Error::NoEndpoint { .. }), "{error}");
        assert!(error.hint().contains("`oauth.grant`"), "{}", error.hint());
        // No client is left behind.
        let addresses = rig.place.addresses();
        let is_registered = addresses.iter().any(|it| it.ends_with("/register"));
        assert!(!is_registered, "{addresses:?}");
    }
    let mut place = Place::new();
    place.codes = (400, json!({ "error": "unauthorized_client" }));
    let error = start(&mut Rig::at(place, settings())).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
}

#[test]
fn secret_code_is_not_repeated() {
    for (code, said) in [
        ("invalid_grant", "device-5ecret is unknown"),
        ("access_denied", "device-5ecret is denied"),
        ("device-5ecret", "what?"),
    ] {
        let mut rig = started(Place::new());
        let body = json!({ "error": code, "error_description": said });
        let Action::Done(Err(error)) = answered(&mut rig, 400, &body) else {
            panic!("{:?}", rig.machine.state());
        };
        let told = format!("{error} {error:?}");
        assert!(!told.contains("5ecret"), "{told}");
    }
    // Nor is its beginning, where texts are cut.
    let long = format!("5ecret{}", "x".repeat(300));
    for (code, said) in [("invalid_grant", &*long), (&*long, "what?")] {
        let mut place = Place::new();
        place.codes.1["device_code"] = json!(long);
        let mut rig = started(place);
        let body = json!({ "error": code, "error_description": said });
        let Action::Done(Err(error)) = answered(&mut rig, 400, &body) else {
            panic!("{:?}", rig.machine.state());
        };
        let told = format!("{error} {error:?}");
        assert!(!told.contains("5ecret"), "{told}");
    }
    let rig = started(Place::new());
    assert!(!format!("{:?}", rig.machine).contains("5ecret"));
}

#[test]
fn late_tokens_of_the_last_request_are_used() {
    let mut rig = started(Place::new());
    rig.now = NOW + 299;
    let Action::Send(request) = rig.machine.handle(rig.now, Event::Tick) else {
        panic!("{:?}", rig.machine.state());
    };
    rig.now = NOW + 310;
    assert_eq!(rig.handle(Event::Tick), Action::Wait);
    let (status, body) = rig.place.answer(&request);
    let response = Response {
        status,
        challenge: Challenge::default(),
        nonce: None,
        body: body.as_bytes(),
    };
    assert_eq!(rig.handle(Event::Response(response)), Action::Done(Ok(())));
}

#[test]
fn sign_in_with_a_code_can_be_cancelled() {
    let mut rig = started(Place::new());
    rig.now = rig.machine.tick_at().unwrap();
    let action = rig.machine.handle(rig.now, Event::Tick);
    assert!(matches!(action, Action::Send(_)), "{action:?}");
    assert!(!rig.machine.is_committed());
    let cancelled = Action::Done(Err(Error::Cancelled));
    assert_eq!(rig.handle(Event::Cancel), cancelled);
    assert_eq!(rig.machine.tick_at(), None);
    // A browser has no part in it.
    let mut rig = started(Place::new());
    let action = rig.come_back(&[("code", "evil"), ("state", "")]);
    assert_eq!(action, Action::Ignore(Error::WrongState));
    assert!(rig.machine.tick_at().is_some());
}

#[test]
fn tokens_of_a_code_are_bound() {
    let mut place = Place::new();
    place.challenge.demands_proof = true;
    place.tokens = json!({ "token_type": "DPoP", "expires_in": 3600 });
    place.nonce = Some("n1");
    place.refusals = vec!["authorization_pending"];
    let mut rig = Rig::at(place, settings());
    let challenge = rig.place.challenge.clone();
    rig.handle(Event::Refused(challenge));
    start(&mut rig).unwrap();
    assert_eq!(pass(&mut rig), Action::Wait);
    assert_eq!(pass(&mut rig), Action::Done(Ok(())));
    let nonces = rig.place.proofs.iter();
    let nonces: Vec<_> = nonces.map(|(_, claims)| claims["nonce"].as_str()).collect();
    assert_eq!(nonces, [None, Some("n1"), Some("n1")]);
    assert_eq!(rig.machine.proof_key(), Some(&key(1)));
    // An unbound one is refused.
    rig.place.tokens = json!({ "token_type": "Bearer" });
    start(&mut rig).unwrap();
    let outcome = pass(&mut rig);
    assert!(
        matches!(outcome, Action::Done(Err(Error::BadToken { .. }))),
        "{outcome:?}"
    );
}

#[test]
fn tokens_are_renewed_while_the_user_finishes() {
    let mut rig = started(Place::new());
    assert_eq!(pass(&mut rig), Action::Done(Ok(())));
    start(&mut rig).unwrap();
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    assert!(matches!(rig.machine.state(), State::AwaitingUser { .. }));
    assert_eq!(pass(&mut rig), Action::Done(Ok(())));
    assert_eq!(rig.place.last_form()["grant_type"], GRANT);
}
