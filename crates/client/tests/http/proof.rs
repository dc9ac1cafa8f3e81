//! Tokens that are bound to a key: a proof for each request, with the nonces that servers demand.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest::{SHA256, digest},
    signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey},
};
use serde_json::{Value, json};
use switchboard_client::auth::{InMemory, OAuth, State, Store as _};

use crate::{
    Wire,
    auth::{Book, Place, Shared, sign_in},
    modern,
    server::Incoming,
};

/// The header and the claims of a proof.
pub(crate) type Proof = (Value, Value);

/// Checks the proof of a request. Returns the headers of the response if it has another nonce than the one demanded.
pub(crate) fn check(
    incoming: &Incoming,
    url: &str,
    scheme: &str,
    token: &str,
    book: &mut Book,
) -> Option<String> {
    let proof = incoming.header("dpop");
    let is_first = token.is_empty() && url.ends_with("/mcp");
    let nonce = book.nonce;
    let known = book.bound.as_mut().filter(|_| !is_first);
    let Some(known) = known else {
        assert_eq!(proof, "", "a proof that nobody asked for");
        return None;
    };
    let parts: Vec<_> = proof.split('.').collect();
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
    let read = |at: usize| -> Value { serde_json::from_slice(&decode(parts[at])).unwrap() };
    let (header, claims) = (read(0), read(1));
    let coordinate = |name: &str| decode(header["jwk"][name].as_str().unwrap());
    let public = [&[4], &*coordinate("x"), &*coordinate("y")].concat();
    let signed = format!("{}.{}", parts[0], parts[1]);
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public)
        .verify(signed.as_bytes(), &decode(parts[2]))
        .expect("the signature is valid");
    assert_eq!(
        (&claims["htm"], &claims["htu"]),
        (&json!("POST"), &json!(url))
    );
    if url.ends_with("/mcp") {
        assert_eq!(scheme, "DPoP");
        let expected = URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes()));
        assert_eq!(claims["ath"], expected);
    }
    let is_fresh = |(_, former): &Proof| former["jti"] != claims["jti"];
    assert!(known.iter().all(is_fresh), "a proof was sent twice");
    let sent = claims["nonce"].as_str().map(str::to_owned);
    known.push((header, claims));
    let demanded = nonce.filter(|demanded| sent.as_deref() != Some(*demanded))?;
    // A faulty server does not accept what it has sent.
    let sent = if demanded == NEVER { "other" } else { demanded };
    Some(format!(
        "dpop-nonce: {sent}\r\nwww-authenticate: DPoP error=\"use_dpop_nonce\"\r\n"
    ))
}

/// A nonce that is never sent.
const NEVER: &str = "never";

/// Signs in with a server that demands proofs.
async fn signed_in(place: &Place, store: InMemory) -> (OAuth, Wire) {
    let oauth = place.oauth(store);
    let wire = place.wire(&oauth).await;
    sign_in(&oauth).await;
    (oauth, wire)
}

#[tokio::test]
async fn every_request_has_a_fresh_proof() {
    let place = Place::new(Book::demanding(None)).await;
    let (_oauth, mut wire) = signed_in(&place, InMemory::default()).await;
    let before = place.book.lock().requests.len();
    for id in 1..4 {
        wire.send(modern(id, "tools/list", json!({})));
        assert_eq!(wire.message().await["id"], id);
    }
    let book = place.book.lock();
    // No round trip, and one key for all.
    assert_eq!(book.requests.len(), before + 3);
    assert_eq!(book.proofs().len(), 4);
    assert!(
        book.proofs()
            .iter()
            .all(|(header, _)| *header == book.proofs()[0].0)
    );
}

#[tokio::test]
async fn nonces_of_both_servers_are_sent_back() {
    let place = Place::new(Book::demanding(Some("n1"))).await;
    let (_oauth, mut wire) = signed_in(&place, InMemory::default()).await;
    // The sign-in was repeated once, as is the first request, and no other.
    assert_eq!(place.book.lock().proofs().len(), 2);
    for (id, expected) in [(1, 4), (2, 5)] {
        wire.send(modern(id, "tools/list", json!({})));
        assert_eq!(wire.message().await["id"], id);
        assert_eq!(place.book.lock().proofs().len(), expected);
    }
    place.book.lock().nonce = Some("n2");
    wire.send(modern(3, "tools/list", json!({})));
    assert_eq!(wire.message().await["id"], 3);
    assert_eq!(place.book.lock().proofs().len(), 7);
}

#[tokio::test]
async fn renewal_keeps_key_and_nonce() {
    let place = Place::new(Book::demanding(Some("n"))).await;
    let (oauth, mut wire) = signed_in(&place, InMemory::default()).await;
    wire.send(modern(1, "tools/list", json!({})));
    assert_eq!(wire.message().await["id"], 1);
    place.expire();
    let before = place.book.lock().proofs().len();
    wire.send(modern(2, "tools/list", json!({})));
    assert_eq!(wire.message().await["id"], 2);
    assert!(matches!(oauth.state(), State::SignedIn { .. }));
    let book = place.book.lock();
    // The refused request, the renewal, and the request again: nonces are known by now.
    assert_eq!(book.proofs().len(), before + 3);
    assert!(
        book.proofs()
            .iter()
            .all(|(header, _)| *header == book.proofs()[0].0)
    );
    assert!(book.reused.is_empty());
}

#[tokio::test]
async fn endless_demands_for_nonces_fail_the_request() {
    let place = Place::new(Book::demanding(None)).await;
    let (oauth, mut wire) = signed_in(&place, InMemory::default()).await;
    place.book.lock().nonce = Some(NEVER);
    let before = place.book.lock().requests.len();
    wire.send(modern(1, "tools/list", json!({})));
    assert_eq!(wire.failure().await.1, Some(401));
    assert_eq!(place.book.lock().requests.len(), before + 2);
    // The token is not at fault.
    assert!(matches!(oauth.state(), State::SignedIn { .. }));
}

#[tokio::test]
async fn stored_key_is_used_after_a_restart() {
    let place = Place::new(Book::demanding(None)).await;
    let store = Shared::default();
    let oauth = place.oauth(store.clone());
    let _wire = place.wire(&oauth).await;
    sign_in(&oauth).await;
    let saved = store.load().await.unwrap().unwrap();
    // As a file would keep it.
    let text = serde_json::to_string(&saved).unwrap();
    let again = InMemory::default();
    again
        .save(serde_json::from_str(&text).unwrap())
        .await
        .unwrap();
    let oauth = place.oauth(again);
    let mut wire = place.wire(&oauth).await;
    wire.send(modern(1, "tools/list", json!({})));
    assert_eq!(wire.message().await["id"], 1);
    let book = place.book.lock();
    assert_eq!(book.proofs()[0].0, book.proofs()[1].0);
}
