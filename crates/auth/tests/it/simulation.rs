//! Random events and responses, in any order: the invariants hold for all of them.

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_auth::{
    Action, Body, Challenge, ConfiguredClient, Credential, Error, Event, Grant, IdentityProvider,
    Machine, Request, Response, Settings, SignIn, State,
};

use crate::alone::KEY;
use crate::server::{ISSUER, NOW, Place, REDIRECT, SERVER, key, read};

#[derive(Debug, Clone)]
enum Step {
    /// The server in memory answers.
    Answer,
    /// A response of this status and body.
    Other(u16, Value),
    Fail,
    SignIn,
    Refused(bool),
    Renew,
    SignOut,
    Callback {
        is_forged: bool,
        issuer: u8,
    },
    Saved,
    Loaded,
    Wait(u64),
    Cancel,
    Accepted,
    /// The assertion was read: one, something else, or nothing.
    Assertion(u8),
    Unable,
    Key,
    /// The nonce that the authorization server demands from now on.
    Nonce(bool),
}

/// The settings of the kinds of sign-in. Clients that sign in for themselves are for one issuer.
fn settings() -> impl Strategy<Value = Settings> {
    let client = |private_key: Option<&str>| {
        Some(ConfiguredClient {
            private_key: private_key.map(Into::into),
            issuer: Some(ISSUER.to_owned()),
            ..ConfiguredClient::new("configured")
        })
    };
    let with = |client, grant, identity_provider| Settings {
        client,
        grant,
        identity_provider,
        ..Settings::new("S")
    };
    let provider = IdentityProvider {
        token_url: "https://10.0.0.1/token".to_owned(),
        client_id: "gateway".to_owned(),
        client_secret: None,
    };
    prop_oneof![
        4 => Just(Settings::new("S")),
        3 => Just(with(None, Grant::DeviceCode, None)),
        1 => Just(with(client(Some(KEY)), Grant::DeviceCode, None)),
        1 => Just(with(client(Some(KEY)), Grant::AuthorizationCode, None)),
        1 => Just(with(client(Some(KEY)), Grant::ClientCredentials, None)),
        1 => Just(with(client(None), Grant::JwtBearer, None)),
        1 => Just(with(client(None), Grant::JwtBearer, Some(provider))),
    ]
}

fn body() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!({ "error": "invalid_grant" })),
        Just(json!({ "access_token": "evil", "token_type": "bearer" })),
        Just(json!({ "client_id": "evil", "client_secret": "evil" })),
        Just(json!({ "resource": SERVER, "authorization_servers": ["https://evil.example"] })),
        Just(json!({
            "issuer": "https://evil.example",
            "authorization_endpoint": "https://evil.example/authorize",
            "token_endpoint": "https://evil.example/token",
            "device_authorization_endpoint": "https://evil.example/device",
            "registration_endpoint": "https://evil.example/register",
            "code_challenge_methods_supported": ["S256"],
        })),
        Just(json!({ "error": "authorization_pending" })),
        Just(json!({ "error": "slow_down", "error_description": "device-5ecret" })),
        Just(json!({ "error": "device-5ecret" })),
        Just(json!({
            "issuer": ISSUER,
            "authorization_endpoint": "https://10.0.0.1/authorize",
            "token_endpoint": "http://auth.example/token",
            "code_challenge_methods_supported": ["S256"],
        })),
    ]
}

/// The codes for a user, of which one member may be hostile, and the errors until the user has entered them.
fn codes() -> impl Strategy<Value = (Option<(&'static str, Value)>, Vec<&'static str>)> {
    let member = prop_oneof![
        Just(("user_code", json!("EVIL\u{1b}]0;title\u{7}"))),
        Just(("verification_uri", json!("http://evil.example"))),
        Just(("verification_uri", json!("https://10.0.0.1/enter"))),
        Just(("verification_uri_complete", json!("https://10.0.0.1/enter"))),
        Just(("expires_in", json!(u64::MAX))),
        Just(("interval", json!(0))),
        Just(("interval", json!(-1))),
        Just(("device_code", json!(null))),
    ];
    let error = prop_oneof![
        4 => Just("authorization_pending"),
        4 => Just("slow_down"),
        1 => Just("device-5ecret"),
        1 => Just("expired_token"),
        1 => Just("access_denied"),
    ];
    (prop::option::of(member), prop::collection::vec(error, 0..6))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => Just(Step::Answer),
        2 => (prop_oneof![Just(200_u16), Just(400), Just(401), Just(500)], body())
            .prop_map(|(status, body)| Step::Other(status, body)),
        1 => Just(Step::Fail),
        3 => Just(Step::SignIn),
        2 => any::<bool>().prop_map(Step::Refused),
        3 => Just(Step::Renew),
        1 => Just(Step::SignOut),
        4 => (any::<bool>(), 0..3_u8)
            .prop_map(|(is_forged, issuer)| Step::Callback { is_forged, issuer }),
        6 => Just(Step::Saved),
        2 => Just(Step::Loaded),
        1 => (0..2_000_u64).prop_map(Step::Wait),
        4 => (0..8_u64).prop_map(Step::Wait),
        1 => Just(Step::Cancel),
        1 => Just(Step::Accepted),
        3 => (0..3_u8).prop_map(Step::Assertion),
        1 => Just(Step::Unable),
        3 => Just(Step::Key),
        1 => any::<bool>().prop_map(Step::Nonce),
    ]
}

/// Checks that a request contains only what its receiver may know.
fn check_request(request: &Request) -> Result<(), TestCaseError> {
    prop_assert_eq!(request.url.scheme(), "https");
    let host = request.url.host_str().unwrap_or_default();
    prop_assert!(
        ["mcp.example", "auth.example", "evil.example", "10.0.0.1"].contains(&host),
        "{}",
        host
    );
    let body = match &request.body {
        Some(Body::Form(body) | Body::Json(body)) => body.expose(),
        None => "",
    };
    // Each proof of the client's identity goes to one place.
    let is_id_token = body.contains("aWQ.aWQ.aWQ");
    prop_assert!(!is_id_token || ["10.0.0.1", "auth.example"].contains(&host));
    prop_assert!(!is_id_token || host == "10.0.0.1" || !body.contains("amFn"));
    prop_assert!(request.assertion.is_none() || host == "auth.example");
    if let Some(proof) = &request.proof {
        let (header, claims) = read(&proof.text([0; 16]));
        prop_assert_eq!(&claims["htu"], request.url.as_str());
        prop_assert!(header["jwk"].get("d").is_none());
    }
    // Tokens and clients of the honest issuer are for it alone.
    if host != "auth.example" {
        for known in [
            "access-",
            "refresh-",
            "registered",
            "configured",
            "amFn",
            "device-",
        ] {
            prop_assert!(!body.contains(known), "{} got {}", host, body);
        }
        prop_assert!(request.authorization.is_none() || host == "evil.example");
    }
    Ok(())
}

/// Tests if a request asks for tokens while the user enters a code.
fn is_poll(request: &Request) -> bool {
    matches!(&request.body, Some(Body::Form(form)) if form.expose().contains("device_code="))
}

/// Tests if a hostile response was stored, which is not bound to a key.
fn stored_is_evil(stored: Option<&Credential>) -> bool {
    let tokens = stored.and_then(|stored| stored.tokens.as_ref());
    tokens.is_some_and(|tokens| tokens.access.expose() == "evil")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn secrets_stay_and_tokens_are_saved_first(settings in settings(), demands_proof in any::<bool>(), (member, errors) in codes(), steps in prop::collection::vec(step(), 0..80)) {
        let mut place = Place::new();
        place.challenge.demands_proof = demands_proof;
        if demands_proof {
            place.tokens["token_type"] = "DPoP".into();
        }
        if settings.grant == Grant::DeviceCode {
            place.refusals = errors;
        }
        if let Some((name, value)) = member {
            place.codes.1[name] = value;
        }
        place.vouched = Some((200, json!({ "access_token": "amFn.amFn.amFn" })));
        let mut machine = Machine::new(SERVER.parse().unwrap(), settings, None);
        let (mut now, mut stored) = (NOW, None);
        let mut in_flight: Option<Request> = None;
        let (mut state, mut to_save) = (String::new(), false);
        let (mut polled, mut is_polling) = (None, false);
        for step in steps {
            let mut answer = (0, String::new());
            let event = match step {
                Step::Answer => {
                    let Some(request) = in_flight.take() else { continue };
                    answer = place.answer(&request);
                    Event::Response(Response {
                        status: answer.0,
                        nonce: place.nonce.map(str::to_owned),
                        challenge: place.challenge.clone(),
                        body: answer.1.as_bytes(),
                    })
                }
                Step::Other(status, body) => {
                    if in_flight.take().is_none() { continue }
                    answer.1 = body.to_string();
                    Event::Response(Response {
                        status,
                        nonce: None,
                        challenge: Challenge::default(),
                        body: answer.1.as_bytes(),
                    })
                }
                Step::Fail => {
                    if in_flight.take().is_none() { continue }
                    Event::Failed("timed out".to_owned())
                }
                Step::SignIn => Event::SignIn(SignIn {
                    redirect_uri: REDIRECT.to_owned(),
                    random: [7; 64],
                }),
                Step::Refused(needs_scope) => Event::Refused(Challenge {
                    scope: Some("files".to_owned()),
                    error: needs_scope.then(|| "insufficient_scope".to_owned()),
                    resource_metadata: None,
demands_proof: false,
                }),
                Step::Renew => Event::Renew,
                Step::SignOut => Event::SignOut,
                Step::Callback { is_forged, issuer } => {
                    let issuer = ["", ISSUER, "https://evil.example"][usize::from(issuer)];
                    let state = if is_forged { "forged" } else { &state };
                    answer.1 = format!("{REDIRECT}?code=c&state={state}&iss={issuer}");
                    Event::Callback(&answer.1)
                }
                Step::Saved => {
                    if !to_save { continue }
                    stored = machine.credential().cloned();
                    Event::Saved
                }
                Step::Loaded => Event::Loaded(stored.clone().map(Box::new)),
                Step::Wait(seconds) => {
                    now += seconds;
                    Event::Tick
                }
                Step::Cancel => Event::Cancel,
                Step::Accepted => Event::Accepted,
                Step::Assertion(kind) => {
                    Event::Assertion(["aWQ.aWQ.aWQ", "nothing", ""][usize::from(kind)].into())
                }
                Step::Key => Event::Key(key(1)),
                Step::Nonce(is_new) => {
                    place.nonce = is_new.then_some("n");
                    continue;
                }
                Step::Unable => Event::Unable(Error::NoAssertion { reason: "gone".to_owned() }),
            };
            let before = machine.token().cloned();
            let is_saved = matches!(event, Event::Saved | Event::Loaded(_));
            match machine.handle(now, event) {
                Action::Send(request) => {
                    check_request(&request)?;
                    is_polling = is_poll(&request);
                    if is_polling {
                        // One that is repeated has the nonce that the server demands.
                        prop_assert!(polled.is_none_or(|at| at < now) || place.nonce.is_some());
                        polled = Some(now);
                    }
                    in_flight = Some(request);
                    to_save = false;
                }
                Action::Open { url, code, until } => {
                    prop_assert_eq!(url.scheme(), "https");
                    prop_assert_ne!(url.host_str(), Some("10.0.0.1"));
                    prop_assert!(until <= now + 1_800);
                    if let Some(code) = code {
                        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                        prop_assert!(code.text.bytes().all(is_plain), "{}", code.text);
                        let complete = code.complete.iter().filter_map(|url| url.host_str());
                        prop_assert!(complete.into_iter().all(|host| host == "auth.example"));
                    }
                    let pairs = url.query_pairs();
                    let found = pairs.filter(|(name, _)| name == "state").map(|(_, value)| value.into_owned());
                    state = found.last().unwrap_or_default();
                }
                Action::Save => to_save = true,
                Action::Done(outcome) => {
                    let told = format!("{outcome:?}");
                    prop_assert!(!is_polling || !told.contains("5ecret"), "{}", told);
                    in_flight = None;
                    to_save = false;
                }
                Action::Load | Action::MakeKey | Action::ReadAssertion | Action::Wait | Action::Ignore(_) => {}
            }
            // The end of a sign-in is not missed.
            let is_awaiting = matches!(machine.state(), State::AwaitingUser { .. });
            prop_assert!(!is_awaiting || in_flight.is_some() || machine.tick_at().is_some());
            // A token that is bound to a key is not used without it.
            let is_bound = machine.proof_key().is_some();
            prop_assert!(machine.token().is_none() || is_bound == demands_proof || stored_is_evil(stored.as_ref()));
            // A token is used once it has been saved, and not before.
            if machine.token() != before.as_ref() && machine.token().is_some() {
                prop_assert!(is_saved);
            }
            if let (Some(token), Some(stored)) = (machine.token(), &stored) {
                let known = stored.tokens.as_ref().map(|tokens| &tokens.access);
                prop_assert_eq!(Some(token), known);
            }
        }
    }
}
