//! The token of requests to the server.

use std::sync::Arc;

use parking_lot::Mutex;
use reqwest::{
    Method, Response,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE},
};
use switchboard_auth::{Challenge, Machine, Secret};
use url::Url;

use super::{now, sign::Signer};

/// The header of a proof.
pub(super) const PROOF: HeaderName = HeaderName::from_static("dpop");
/// The header of the nonce that proofs have to contain.
pub(super) const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// A token, and the key that it is bound to.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    /// The value of the `Authorization` header.
    header: HeaderValue,
    bound: Option<Arc<Bound>>,
}

/// The needs of requests whose token is bound to a key.
#[derive(Debug)]
struct Bound {
    access: Secret,
    signer: Arc<Signer>,
    /// The nonce that the server has sent last, which outlives the token.
    nonce: Arc<Mutex<Option<String>>>,
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.header == other.header
    }
}

/// The `Authorization` header with the present token.
pub(super) fn header(machine: &Machine) -> Option<HeaderValue> {
    let scheme = match machine.proof_key() {
        Some(_) => "DPoP",
        None => "Bearer",
    };
    let text = format!("{scheme} {}", machine.token()?.expose());
    let mut header = HeaderValue::try_from(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

impl Token {
    /// The present token. What the last one knows is kept.
    pub(super) fn of(machine: &Machine, last: Option<&Self>) -> Option<Self> {
        let header = header(machine)?;
        if let Some(last) = last.filter(|last| last.header == header) {
            return Some(last.clone());
        }
        let Some(key) = machine.proof_key() else {
            return Some(Self {
                header,
                bound: None,
            });
        };
        let last = last.and_then(|last| last.bound.as_ref());
        let last = last.filter(|last| last.signer.is_for(key));
        let bound = Bound {
            access: machine.token()?.clone(),
            signer: match last {
                Some(last) => Arc::clone(&last.signer),
                // A key that cannot be used proves nothing, and the server says what is wrong.
                None => Arc::new(Signer::new(key.clone())?),
            },
            nonce: last.map(|last| Arc::clone(&last.nonce)).unwrap_or_default(),
        };
        Some(Self {
            header,
            bound: Some(Arc::new(bound)),
        })
    }

    /// The value of the `Authorization` header.
    pub(super) fn header(&self) -> &HeaderValue {
        &self.header
    }

    /// Adds the token to the headers of a request, with a proof if it needs one.
    pub(crate) fn attach(&self, method: &Method, url: &Url, headers: &mut HeaderMap) {
        headers.insert(AUTHORIZATION, self.header.clone());
        let Some(bound) = &self.bound else { return };
        let nonce = bound.nonce.lock().clone();
        let access = Some(&bound.access);
        let proof = bound
            .signer
            .key()
            .proof(method.as_str(), url, now(), access, nonce.as_deref());
        if let Some(proof) = bound.signer.sign(&proof) {
            headers.insert(PROOF, proof);
        }
    }

    /// Remembers the nonce of a response. Returns `true` if the request has to be sent again with it.
    pub(crate) fn note(&self, response: &Response) -> bool {
        let Some(bound) = &self.bound else {
            return false;
        };
        let Some(nonce) = nonce(response.headers()) else {
            return false;
        };
        let mut known = bound.nonce.lock();
        if known.as_ref() != Some(&nonce) {
            *known = Some(nonce);
        }
        drop(known);
        let headers = response.headers().get_all(WWW_AUTHENTICATE).iter();
        response.status() == reqwest::StatusCode::UNAUTHORIZED
            && Challenge::read(headers.filter_map(|value| value.to_str().ok())).needs_nonce()
    }
}

/// The longest nonce, in bytes. It is sent back with each request.
const LONGEST: usize = 1024;

/// The nonce in the headers of a response.
pub(super) fn nonce(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(NONCE)?.to_str().ok()?;
    (value.len() <= LONGEST).then(|| value.to_owned())
}
