//! Users who enter a code on another device.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use switchboard_client::auth::{Error, Grant, InMemory, OAuth, Opened, Settings, State};
use tokio::time::timeout;

use crate::{
    auth::{Book, Place, Shared, sign_in},
    modern,
    server::PATIENCE,
};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The codes that the authorization server issues.
pub(crate) fn codes(base: &str) -> Value {
    json!({
        "device_code": "device",
        "user_code": "WDJB-MJHT",
        "verification_uri": format!("{base}/enter"),
        "verification_uri_complete": format!("{base}/enter?code=WDJB-MJHT"),
        "expires_in": 60,
        "interval": 1,
    })
}

/// The error for a user who has not entered the code.
pub(crate) fn refusal(form: &BTreeMap<String, String>, book: &mut Book) -> Option<&'static str> {
    if form["grant_type"] != GRANT {
        return None;
    }
    assert_eq!(form["device_code"], "device");
    book.pending.pop()
}

fn oauth(place: &Place) -> OAuth {
    let settings = Settings {
        grant: Grant::DeviceCode,
        ..Settings::new("test")
    };
    OAuth::start(&place.url, settings, InMemory::default()).unwrap()
}

async fn start(oauth: &OAuth) -> Opened {
    oauth.sign_in().await.unwrap().expect("a page for the user")
}

/// Waits until the user has finished.
async fn finish(opened: &mut Opened) -> Result<(), Error> {
    timeout(PATIENCE, opened.finish())
        .await
        .expect("it asks for tokens until then")
}

/// Waits until the client has asked for tokens this often.
async fn until_asked(place: &Place, times: usize) {
    let asked = async {
        let count = || {
            let book = place.book.lock();
            book.requests.iter().filter(|it| *it == "/token").count()
        };
        while count() < times {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, asked).await.expect("it asks for tokens");
}

#[tokio::test]
async fn user_signs_in_with_a_code() {
    let place = Place::new(Book::default()).await;
    place.book.lock().pending = vec!["authorization_pending"; 100];
    let oauth = oauth(&place);
    let mut opened = start(&oauth).await;
    assert!(opened.url().ends_with("/enter"), "{opened:?}");
    let code = opened.code().unwrap();
    assert_eq!(code.text, "WDJB-MJHT");
    assert!(code.complete.is_some());
    until_asked(&place, 2).await;
    assert!(matches!(oauth.state(), State::AwaitingUser { .. }));
    place.book.lock().pending.clear();
    finish(&mut opened).await.unwrap();
    assert!(matches!(oauth.state(), State::SignedIn { .. }));
    let mut wire = place.wire(&oauth).await;
    wire.send(modern(1, "tools/list", json!({})));
    assert_eq!(wire.message().await["id"], 1);
    // The token is renewed like others.
    place.expire();
    wire.send(modern(2, "tools/list", json!({})));
    assert_eq!(wire.message().await["id"], 2);
    assert_eq!(place.book.lock().renewals, 1);
}

#[tokio::test]
async fn outage_does_not_end_the_sign_in() {
    let place = Place::new(Book::default()).await;
    place.book.lock().is_down = true;
    let oauth = oauth(&place);
    let mut opened = start(&oauth).await;
    until_asked(&place, 1).await;
    place.book.lock().is_down = false;
    finish(&mut opened).await.unwrap();
}

#[tokio::test]
async fn user_who_denies_the_code_is_told() {
    let place = Place::new(Book::default()).await;
    place.book.lock().pending = vec!["access_denied"];
    let oauth = oauth(&place);
    let mut opened = start(&oauth).await;
    assert_eq!(finish(&mut opened).await, Err(Error::Denied { said: None }));
    // The user may try again.
    finish(&mut start(&oauth).await).await.unwrap();
}

#[tokio::test]
async fn sign_in_with_a_code_ends_at_once() {
    let place = Place::new(Book::default()).await;
    place.book.lock().holds_tokens = true;
    let oauth = oauth(&place);
    let opened = start(&oauth).await;
    until_asked(&place, 1).await;
    let state = oauth.state();
    assert!(matches!(state, State::AwaitingUser { .. }));
    let wrong = opened.callback("http://127.0.0.1/?code=x").await;
    assert_eq!(wrong, Err(Error::WrongState));
    drop(opened);
    let ended = timeout(PATIENCE, oauth.changed_from(&state)).await;
    assert_eq!(ended, Ok(State::NeedsSignIn));
}

#[tokio::test]
async fn calls_go_on_while_a_code_is_entered() {
    let place = Place::new(Book::default()).await;
    let oauth = oauth(&place);
    finish(&mut start(&oauth).await).await.unwrap();
    place.book.lock().pending = vec!["authorization_pending"; 100];
    let mut opened = start(&oauth).await;
    let mut wire = place.wire(&oauth).await;
    for id in 1..4 {
        place.expire();
        wire.send(modern(id, "tools/list", json!({})));
        assert_eq!(wire.message().await["id"], id);
    }
    assert!(matches!(oauth.state(), State::AwaitingUser { .. }));
    place.book.lock().pending.clear();
    finish(&mut opened).await.unwrap();
}

#[tokio::test]
async fn grants_do_not_share_a_registration() {
    let place = Place::new(Book::default()).await;
    let (shared, settings) = (Shared::default(), Settings::new("test"));
    let code = Settings {
        grant: Grant::DeviceCode,
        ..settings.clone()
    };
    let oauth = OAuth::start(&place.url, code, shared.clone()).unwrap();
    finish(&mut start(&oauth).await).await.unwrap();
    drop(oauth);
    let oauth = OAuth::start(&place.url, settings, shared).unwrap();
    sign_in(&oauth).await;
    let book = place.book.lock();
    let registrations = book.requests.iter().filter(|path| *path == "/register");
    assert_eq!(registrations.count(), 2);
}
