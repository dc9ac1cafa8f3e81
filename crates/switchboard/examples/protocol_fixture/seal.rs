//! `requestState`: the answers given so far, sealed with a keyed hash.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// Seals the answers for the request with this digest.
pub(crate) fn seal(
    key: &[u8; 32],
    digest: &str,
    round: u64,
    answers: &Map<String, Value>,
) -> String {
    let body = json!({ "digest": digest, "round": round, "answers": answers }).to_string();
    let body = hex(body.as_bytes());
    let tag = tag(key, &body);
    format!("{body}.{tag}")
}

/// The round and the answers, if the state was sealed here and for this request.
pub(crate) fn open(key: &[u8; 32], digest: &str, state: &str) -> Option<(u64, Map<String, Value>)> {
    let (body, found) = state.split_once('.')?;
    if found != tag(key, body) {
        return None;
    }
    let mut body: Value = serde_json::from_slice(&unhex(body)?).ok()?;
    if body["digest"] != digest {
        return None;
    }
    let round = body["round"].as_u64()?;
    match body["answers"].take() {
        Value::Object(answers) => Some((round, answers)),
        _ => None,
    }
}

/// A digest of what a request is about.
pub(crate) fn digest(method: &str, name: &str, arguments: &Value) -> String {
    hex(&Sha256::digest(format!("{method}\n{name}\n{arguments}")))
}

/// A hash of a hash, so that nothing can be added at the end.
fn tag(key: &[u8; 32], body: &str) -> String {
    let inner = Sha256::new()
        .chain_update(key)
        .chain_update(body)
        .finalize();
    hex(&Sha256::new()
        .chain_update(key)
        .chain_update(inner)
        .finalize())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            let &[high, low] = pair else { return None };
            u8::try_from(digit(high)? * 16 + digit(low)?).ok()
        })
        .collect()
}
