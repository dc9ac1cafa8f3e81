//! Providers that deviate from the specification, each as users have reported it.

use serde_json::{Value, json};
use switchboard_auth::{
    Action, ConfiguredClient, Error, Event, ResourceParameter, Settings, State,
};

use crate::server::{ISSUER, NOW, Place, REDIRECT, Rig, SERVER};

fn settings() -> Settings {
    Settings::new("Switchboard")
}

/// The settings with a client that the user has registered.
fn configured() -> Settings {
    Settings {
        client: Some(ConfiguredClient {
            secret: Some("secret".into()),
            ..ConfiguredClient::new("app")
        }),
        ..settings()
    }
}

fn without(place: &mut Place, member: &str) {
    let server = place.server().as_object_mut().unwrap();
    assert!(server.remove(member).is_some());
}

/// The registration that was sent.
fn registration(rig: &Rig) -> Value {
    let mut forms = rig.place.requests.iter().map(|(_, form)| form);
    let form = forms.find_map(|form| form.get("json")).unwrap();
    serde_json::from_str(form).unwrap()
}

#[test]
fn slack_needs_an_own_client_and_scopes() {
    let mut place = Place::new();
    without(&mut place, "registration_endpoint");
    let mut rig = Rig::at(place, settings());
    assert!(matches!(rig.start(), Err(Error::NoRegistration { .. })));
    let mut place = Place::new();
    without(&mut place, "registration_endpoint");
    let mut rig = Rig::at(
        place,
        Settings {
            scopes: Some(vec!["search:read".to_owned()]),
            redirect_uri: Some(REDIRECT.to_owned()),
            ..configured()
        },
    );
    let asked = rig.start().unwrap();
    assert_eq!(asked["scope"], "search:read");
    assert_eq!(asked["redirect_uri"], REDIRECT);
    assert_eq!(asked["client_id"], "app");
    // Its tokens live for 12 h.
    rig.place.tokens = json!({ "token_type": "bearer", "expires_in": 43_200 });
    rig.sign_in().unwrap();
    let expires = Some(NOW + 43_200);
    assert_eq!(rig.machine.state(), State::SignedIn { expires });
}

#[test]
fn github_has_no_registration_and_hides_pkce() {
    let mut place = Place::new();
    without(&mut place, "registration_endpoint");
    let mut rig = Rig::at(place, settings());
    let error = rig.start().unwrap_err();
    assert!(
        error.hint().contains("`oauth.clientId`"),
        "{}",
        error.hint()
    );
    let mut place = Place::new();
    without(&mut place, "code_challenge_methods_supported");
    let mut rig = Rig::at(place, configured());
    let error = rig.start().unwrap_err();
    assert!(matches!(error, Error::NoPkce { .. }), "{error}");
    assert!(
        error.hint().contains("`oauth.assumePkce`"),
        "{}",
        error.hint()
    );
}

#[test]
fn entra_rejects_resource_and_hides_pkce() {
    let place = || {
        let mut place = Place::new();
        without(&mut place, "registration_endpoint");
        without(&mut place, "code_challenge_methods_supported");
        place
    };
    let entra = Settings {
        resource: ResourceParameter::Omitted,
        assumes_pkce: true,
        scopes: Some(vec!["api://app/mcp".to_owned()]),
        ..configured()
    };
    let mut rig = Rig::at(place(), entra.clone());
    let asked = rig.start().unwrap();
    assert!(!asked.contains_key("resource"));
    assert_eq!(asked["code_challenge_method"], "S256");
    rig.sign_in().unwrap();
    assert!(!rig.place.last_form().contains_key("resource"));
    assert!(rig.place.last_form().contains_key("code_verifier"));
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    assert!(!rig.place.last_form().contains_key("resource"));
    // A server that lists other methods does not support S256.
    let mut weak = Place::new();
    weak.server()["code_challenge_methods_supported"] = json!(["plain"]);
    let mut rig = Rig::at(weak, entra);
    assert!(matches!(rig.start(), Err(Error::NoPkce { .. })));
    // Without the switch, the refusal says what to do.
    let mut rig = Rig::new(configured());
    rig.start().unwrap();
    let state = rig.opened[0].query_pairs();
    let state = state
        .into_owned()
        .find(|(name, _)| name == "state")
        .unwrap();
    let action = rig.come_back(&[
        ("error", "invalid_target"),
        ("error_description", "AADSTS9010010"),
        ("state", &state.1),
        ("iss", ISSUER),
    ]);
    let Action::Done(Err(error)) = action else {
        panic!("{action:?}");
    };
    assert!(
        error.hint().contains("`oauth.resource`"),
        "{}",
        error.hint()
    );
    assert_eq!(error.said(), Some("AADSTS9010010"));
}

#[test]
fn notion_invalidates_a_refresh_token_at_its_use() {
    let mut rig = Rig::new(settings());
    rig.sign_in().unwrap();
    // Another process of the home was faster.
    let mut other = rig.stored.clone().unwrap();
    let tokens = other.tokens.as_mut().unwrap();
    rig.place.used.insert("refresh-1".to_owned());
    tokens.access = "access-of-another".into();
    tokens.refresh = Some("refresh-of-another".into());
    rig.stored = Some(other);
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    assert_eq!(rig.machine.token().unwrap().expose(), "access-of-another");
    assert_eq!(rig.place.used.len(), 1);
}

#[test]
fn linear_registers_method_and_scopes() {
    let mut place = Place::new();
    place.challenge.scope = Some("read write".to_owned());
    place.server()["token_endpoint_auth_methods_supported"] =
        json!(["client_secret_post", "client_secret_basic"]);
    place.registration = (
        201,
        json!({ "client_id": "linear", "client_secret": "its secret" }).to_string(),
    );
    let mut rig = Rig::at(place, settings());
    rig.sign_in().unwrap();
    let registered = registration(&rig);
    assert_eq!(registered["scope"], "read write");
    assert_eq!(
        registered["token_endpoint_auth_method"],
        "client_secret_basic"
    );
    // The method that was registered is the one that is used.
    assert_eq!(rig.place.headers.len(), 1);
    assert!(!rig.place.last_form().contains_key("client_secret"));
}

#[test]
fn atlassian_names_another_issuer_and_hides_metadata() {
    let own = "https://cf.auth.example";
    let place = || {
        let mut place = Place::new();
        place
            .documents
            .remove("https://mcp.example/.well-known/oauth-protected-resource/mcp");
        let metadata = place.server().clone();
        let address = "https://mcp.example/.well-known/oauth-authorization-server";
        place.documents.insert(address.to_owned(), metadata);
        place.documents.get_mut(address).unwrap()["issuer"] = json!(own);
        place
    };
    let mut rig = Rig::at(place(), settings());
    let error = rig.start().unwrap_err();
    assert!(matches!(error, Error::OtherIssuer { .. }), "{error}");
    assert!(
        error.hint().contains("`oauth.metadataUrl`"),
        "{}",
        error.hint()
    );

    let named = Settings {
        metadata: Some("https://mcp.example/.well-known/oauth-authorization-server".to_owned()),
        ..settings()
    };
    let mut rig = Rig::at(place(), named.clone());
    let asked = rig.start().unwrap();
    let callback = |iss| [("code", "c0de"), ("state", &*asked["state"]), ("iss", iss)];
    assert_eq!(rig.come_back(&callback(own)), Action::Done(Ok(())));
    assert_eq!(rig.stored.as_ref().unwrap().issuer, own);
    assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));

    // The named document replaces the one of the issuer that the server publishes, also at renewals.
    let mut published = place();
    published.documents.insert(
        "https://mcp.example/.well-known/oauth-protected-resource/mcp".to_owned(),
        json!({ "resource": SERVER, "authorization_servers": ["https://other.example"] }),
    );
    let mut rig = Rig::at(published, named.clone());
    let asked = rig.start().unwrap();
    let callback = [("code", "c0de"), ("state", &*asked["state"]), ("iss", own)];
    assert_eq!(rig.come_back(&callback), Action::Done(Ok(())));
    let challenge = rig.place.challenge.clone();
    assert_eq!(rig.handle(Event::Refused(challenge)), Action::Done(Ok(())));
    assert_eq!(rig.machine.token().unwrap().expose(), "access-2");

    // A secret is sent to the issuer alone that it belongs to.
    let mut foreign = configured();
    foreign.metadata.clone_from(&named.metadata);
    foreign.client.as_mut().unwrap().issuer = Some(ISSUER.to_owned());
    let mut rig = Rig::at(place(), foreign.clone());
    assert!(matches!(rig.start(), Err(Error::OtherIssuer { .. })));
    foreign.client.as_mut().unwrap().issuer = Some(own.to_owned());
    let mut rig = Rig::at(place(), foreign);
    assert_eq!(rig.start().unwrap()["client_id"], "app");
}

#[test]
fn google_needs_parameters_for_a_refresh_token() {
    let further = [("access_type", "offline"), ("prompt", "consent")];
    let further = further.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut own = further.to_vec();
    own.push(("state".to_owned(), "forged".to_owned()));
    let mut rig = Rig::new(Settings {
        parameters: own,
        ..configured()
    });
    rig.place.server()["authorization_endpoint"] =
        json!("https://auth.example/authorize?prompt=none");
    let asked = rig.start().unwrap();
    for (name, value) in further {
        assert_eq!(asked[&name], value);
    }
    assert_ne!(asked["state"], "forged");
    let names = rig.opened[0].query_pairs();
    assert_eq!(names.filter(|(name, _)| name == "prompt").count(), 1);
    rig.sign_in().unwrap();
    // Later responses have no refresh token.
    rig.place.tokens = json!({ "token_type": "Bearer", "refresh_token": null, "expires_in": 60 });
    for _ in 0..3 {
        rig.place.used.clear();
        assert_eq!(rig.handle(Event::Renew), Action::Done(Ok(())));
    }
    assert_eq!(rig.place.last_form()["refresh_token"], "refresh-1");
}

#[test]
fn glean_and_datadog_issue_refresh_tokens_on_request() {
    let mut rig = Rig::new(settings());
    rig.start().unwrap();
    let grants = &registration(&rig)["grant_types"];
    assert_eq!(*grants, json!(["authorization_code", "refresh_token"]));
}

#[test]
fn railway_bakes_a_resource_into_its_endpoint() {
    let mut rig = Rig::new(settings());
    rig.place.server()["authorization_endpoint"] =
        json!("https://auth.example/authorize?resource=https%3A%2F%2Fold.example");
    rig.start().unwrap();
    let resources = rig.opened[0].query_pairs();
    let resources = resources.filter(|(name, _)| name == "resource");
    let resources: Vec<_> = resources.map(|(_, value)| value.into_owned()).collect();
    assert_eq!(resources, [SERVER]);
}

#[test]
fn better_auth_refuses_resources_it_does_not_know() {
    let mut rig = Rig::new(settings());
    let asked = rig.start().unwrap();
    rig.place.refusals = vec!["invalid_target"];
    let callback = [
        ("code", "c0de"),
        ("state", &*asked["state"]),
        ("iss", ISSUER),
    ];
    let Action::Done(Err(error)) = rig.come_back(&callback) else {
        panic!("it was accepted");
    };
    assert!(
        error.hint().contains("`oauth.resource`"),
        "{}",
        error.hint()
    );
    let fixed = "https://mcp.example/";
    let mut rig = Rig::new(Settings {
        resource: ResourceParameter::Fixed(fixed.to_owned()),
        ..settings()
    });
    rig.sign_in().unwrap();
    assert_eq!(rig.place.last_form()["resource"], fixed);
}
