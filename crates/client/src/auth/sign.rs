//! Signatures, and what is unpredictable.

use std::fmt;

use reqwest::header::HeaderValue;
use ring::{
    rand::{SecureRandom as _, SystemRandom},
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
    },
};
use switchboard_auth::{Algorithm, Error, PrivateKey, ProofKey, Request, Unsigned};

/// Signs what a request needs. Returns the proof to send with it.
pub(super) fn complete(request: &mut Request) -> Result<Option<HeaderValue>, Error> {
    let bad = |reason| Error::BadKey {
        reason: format!("it cannot sign ({reason})"),
    };
    if let Some(unsigned) = &request.assertion {
        let text = unsigned.text(random());
        let signature = sign(unsigned.key(), text.as_bytes()).map_err(bad)?;
        let token = Unsigned::token(&text, &signature);
        request.authenticate(&token);
    }
    let Some(unsigned) = &request.proof else {
        return Ok(None);
    };
    let text = unsigned.text(random());
    let signature = sign(unsigned.key(), text.as_bytes()).map_err(bad)?;
    Ok(HeaderValue::try_from(Unsigned::token(&text, &signature).expose()).ok())
}

/// A key for proofs, ready to sign.
pub(super) struct Signer {
    key: ProofKey,
    pair: EcdsaKeyPair,
    rng: SystemRandom,
}

impl Signer {
    /// `None` if the key cannot be used.
    pub(super) fn new(key: ProofKey) -> Option<Self> {
        let rng = SystemRandom::new();
        let der = key.key().der();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &rng).ok()?;
        Some(Self { key, pair, rng })
    }

    pub(super) fn key(&self) -> &ProofKey {
        &self.key
    }

    pub(super) fn is_for(&self, key: &ProofKey) -> bool {
        self.key == *key
    }

    /// The header with a proof.
    pub(super) fn sign(&self, proof: &Unsigned) -> Option<HeaderValue> {
        let text = proof.text(random());
        let signature = self.pair.sign(&self.rng, text.as_bytes()).ok()?;
        HeaderValue::try_from(Unsigned::token(&text, signature.as_ref()).expose()).ok()
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer")
    }
}

/// A new key for proofs.
pub(super) fn new_key() -> Result<ProofKey, Error> {
    let rng = SystemRandom::new();
    let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let made = EcdsaKeyPair::generate_pkcs8(kind, &rng)
        .ok()
        .and_then(|der| {
            let pair = EcdsaKeyPair::from_pkcs8(kind, der.as_ref(), &rng).ok()?;
            ProofKey::new(der.as_ref(), pair.public_key().as_ref())
        });
    made.ok_or_else(|| Error::BadKey {
        reason: "none can be made".to_owned(),
    })
}

/// Signs with a key of a user. The error is the reason why it cannot.
fn sign(key: &PrivateKey, text: &[u8]) -> Result<Vec<u8>, String> {
    let rng = SystemRandom::new();
    match key.algorithm() {
        Algorithm::Es256 => {
            let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let pair = EcdsaKeyPair::from_pkcs8(kind, &key.der(), &rng);
            let pair = pair.map_err(|error| error.to_string())?;
            let signature = pair.sign(&rng, text).map_err(|error| error.to_string())?;
            Ok(signature.as_ref().to_vec())
        }
        Algorithm::Rs256 => {
            let pair = RsaKeyPair::from_pkcs8(&key.der()).map_err(|error| error.to_string())?;
            let mut signature = vec![0; pair.public().modulus_len()];
            let signed = pair.sign(&RSA_PKCS1_SHA256, &rng, text, &mut signature);
            signed.map_err(|error| error.to_string())?;
            Ok(signature)
        }
    }
}

/// Unpredictable bytes.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // The random numbers of the operating system are always there.
    let filled = SystemRandom::new().fill(&mut bytes);
    assert!(filled.is_ok(), "the operating system has no random numbers");
    bytes
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use switchboard_auth::{
        Action, Challenge, ConfiguredClient, Event, Grant, Machine, Response, Settings,
    };

    use super::*;

    const P256: &str = include_str!("keys/p256.pem");
    const RSA: &str = include_str!("keys/rsa.pem");

    /// The request for a token of a client with this key.
    fn request(pem: &str) -> Request {
        let mut settings = Settings::new("test");
        settings.grant = Grant::ClientCredentials;
        settings.client = Some(ConfiguredClient {
            private_key: Some(pem.into()),
            ..ConfiguredClient::new("machine")
        });
        let mut machine = Machine::new("https://a.example".parse().unwrap(), settings, None);
        let mut action = machine.handle(0, Event::Renew);
        let documents = [
            "",
            r#"{"resource":"https://a.example","authorization_servers":["https://b.example"]}"#,
            r#"{"issuer":"https://b.example","token_endpoint":"https://b.example/token"}"#,
        ];
        for document in documents {
            assert!(matches!(action, Action::Send(_)), "{action:?}");
            let response = Response {
                status: 200,
                challenge: Challenge::default(),
                nonce: None,
                body: document.as_bytes(),
            };
            action = machine.handle(0, Event::Response(response));
        }
        match action {
            Action::Send(request) => request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn signatures_are_valid() {
        for pem in [P256, RSA] {
            let request = request(pem);
            let key = request.assertion.as_ref().unwrap().key();
            let signature = sign(key, b"text").unwrap();
            let verified = match key.algorithm() {
                Algorithm::Es256 => {
                    let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
                    let pair = EcdsaKeyPair::from_pkcs8(kind, &key.der(), &SystemRandom::new());
                    let public = pair.unwrap().public_key().as_ref().to_vec();
                    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public)
                        .verify(b"text", &signature)
                }
                Algorithm::Rs256 => {
                    let pair = RsaKeyPair::from_pkcs8(&key.der()).unwrap();
                    let public = pair.public_key().as_ref().to_vec();
                    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public)
                        .verify(b"text", &signature)
                }
            };
            verified.unwrap();
        }
    }

    #[test]
    fn invalid_key_is_reported_without_its_text() {
        let broken = P256.replace("MIGH", "MIGI");
        let mut request = request(&broken);
        let error = complete(&mut request).unwrap_err();
        assert!(matches!(error, Error::BadKey { .. }), "{error}");
        assert!(!error.to_string().contains("MIGI"), "{error}");
    }
}
