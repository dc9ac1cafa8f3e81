//! JSON Web Tokens that the caller signs.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;
use zeroize::Zeroizing;

use crate::{Secret, pkce::encode};

/// The lifetime of an assertion, in seconds. Clocks differ by some of it.
const LIFETIME: u64 = 300;

/// The longest key in PEM, in bytes. One of RSA with 4,096 bits has half of it.
const LONGEST_KEY: usize = 8 * 1024;

/// The object identifiers of RSA keys, and of those on the curve P-256.
const RSA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
const P256: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";

/// The algorithm of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum Algorithm {
    /// ECDSA on the curve P-256 with SHA-256. The signature has a fixed length.
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
}

impl Algorithm {
    /// The name in tokens and metadata.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A private key in PKCS#8. Only its kind is known here: the caller that signs with it finds out if it is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateKey {
    algorithm: Algorithm,
    /// In Base64.
    der: Secret,
}

impl PrivateKey {
    /// Reads a key in PEM. The error is the reason why it cannot be used.
    pub(crate) fn read(pem: &str) -> Result<Self, &'static str> {
        if pem.len() > LONGEST_KEY {
            return Err("it is too long");
        }
        let after = |label: &str| pem.split_once(&format!("-----BEGIN {label}-----"));
        let Some((_, rest)) = after("PRIVATE KEY") else {
            return Err(match () {
                () if after("ENCRYPTED PRIVATE KEY").is_some() => "it is encrypted",
                () if after("EC PRIVATE KEY")
                    .or(after("RSA PRIVATE KEY"))
                    .is_some() =>
                {
                    "it is not in PKCS#8"
                }
                () => "it is not a private key in PEM",
            });
        };
        let Some((body, _)) = rest.split_once("-----END PRIVATE KEY-----") else {
            return Err("its end is missing");
        };
        let body: String = body.split_ascii_whitespace().collect();
        Self::of_der(body.into())
    }

    /// Reads a key in DER and Base64.
    fn of_der(der: Secret) -> Result<Self, &'static str> {
        let decoded = STANDARD.decode(der.expose()).map(Zeroizing::new);
        let decoded = decoded.map_err(|_| "it is damaged")?;
        // The kind follows the version, at the beginning.
        let head = &decoded[..decoded.len().min(40)];
        let has = |kind: &[u8]| head.windows(kind.len()).any(|window| window == kind);
        let algorithm = match () {
            () if has(P256) => Algorithm::Es256,
            () if has(RSA) => Algorithm::Rs256,
            () => return Err("only keys of RSA and on the curve P-256 are supported"),
        };
        Ok(Self { algorithm, der })
    }

    /// The algorithm that it signs with.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The key in DER.
    pub fn der(&self) -> Zeroizing<Vec<u8>> {
        // It was decoded before.
        STANDARD
            .decode(self.der.expose())
            .unwrap_or_default()
            .into()
    }
}

/// The key that the tokens of a sign-in are bound to (RFC 9449). It is on the curve P-256.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct ProofKey {
    /// In PKCS#8, DER and Base64.
    private: Secret,
    /// The coordinates of its public half.
    x: String,
    y: String,
}

impl ProofKey {
    /// A new key: its private half in PKCS#8 and DER, and its public half as an uncompressed point. `None` if it is none.
    pub fn new(private: &[u8], public: &[u8]) -> Option<Self> {
        let [4, point @ ..] = public else { return None };
        let (x, y) = point.split_at_checked(32).filter(|(_, y)| y.len() == 32)?;
        Some(Self {
            private: STANDARD.encode(private).into(),
            x: encode(x),
            y: encode(y),
        })
    }

    /// The private half, to keep it out of everything that is written.
    pub fn private(&self) -> &Secret {
        &self.private
    }

    /// The key to sign with.
    pub fn key(&self) -> PrivateKey {
        PrivateKey {
            algorithm: Algorithm::Es256,
            der: self.private.clone(),
        }
    }

    /// The proof for a request with this method to this address, and with this token if it has one. A server that has
    /// sent a nonce expects it.
    pub fn proof(
        &self,
        method: &str,
        url: &Url,
        now: u64,
        token: Option<&Secret>,
        nonce: Option<&str>,
    ) -> Unsigned {
        let jwk = json!({ "kty": "EC", "crv": "P-256", "x": self.x, "y": self.y });
        let mut target = url.clone();
        target.set_query(None);
        target.set_fragment(None);
        // Neither fails for a URL that has a host.
        let _ = target.set_username("");
        let _ = target.set_password(None);
        let mut claims = json!({ "htm": method, "htu": target.as_str(), "iat": now });
        if let Some(token) = token {
            claims["ath"] = encode(&Sha256::digest(token.expose().as_bytes())).into();
        }
        let mut proof = Unsigned {
            key: self.key(),
            header: json!({ "alg": Algorithm::Es256.as_str(), "typ": "dpop+jwt", "jwk": jwk }),
            claims,
        };
        if let Some(nonce) = nonce {
            proof.set_nonce(nonce);
        }
        proof
    }
}

/// A token without its ID and its signature, which the caller adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsigned {
    key: PrivateKey,
    header: Value,
    claims: Value,
}

impl Unsigned {
    /// The assertion with which a client authenticates itself at an issuer (RFC 7523).
    pub(crate) fn assertion(
        key: PrivateKey,
        key_id: Option<&str>,
        client: &str,
        issuer: &str,
        now: u64,
    ) -> Self {
        let mut header = json!({ "alg": key.algorithm.as_str(), "typ": "JWT" });
        if let Some(id) = key_id {
            header["kid"] = id.into();
        }
        let claims = json!({
            "iss": client,
            "sub": client,
            // Other audiences let one authorization server use the assertion at another.
            "aud": issuer,
            "iat": now,
            "exp": now.saturating_add(LIFETIME),
        });
        Self {
            key,
            header,
            claims,
        }
    }

    pub(crate) fn set_nonce(&mut self, nonce: &str) {
        self.claims["nonce"] = nonce.into();
    }

    /// The key to sign with.
    pub fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// The text to sign. The bytes are unpredictable, so that no two tokens are the same.
    pub fn text(&self, id: [u8; 16]) -> String {
        let mut claims = self.claims.clone();
        claims["jti"] = encode(&id).into();
        let part = |value: &Value| encode(value.to_string().as_bytes());
        format!("{}.{}", part(&self.header), part(&claims))
    }

    /// The token of a text and its signature.
    pub fn token(text: &str, signature: &[u8]) -> Secret {
        format!("{text}.{}", encode(signature)).into()
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn pem(label: &str, body: &[u8]) -> String {
        let body = STANDARD.encode(body);
        format!("\n-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    }

    fn key() -> PrivateKey {
        PrivateKey::read(&pem(
            "PRIVATE KEY",
            &[b"\x30\x41\x02\x01\0\x30\x13", P256].concat(),
        ))
        .unwrap()
    }

    #[test]
    fn kind_of_the_key_is_recognised() {
        let damaged = pem("PRIVATE KEY", b"x").replace("eA==", "?");
        let endless = pem("PRIVATE KEY", P256).replace("-----END", "");
        let long = pem("PRIVATE KEY", &[0; LONGEST_KEY]);
        for (text, expected) in [
            (pem("PRIVATE KEY", P256), Ok("ES256")),
            (pem("PRIVATE KEY", RSA), Ok("RS256")),
            (
                pem("PRIVATE KEY", b"\x06\x03\x2b\x65\x70"),
                Err("only keys of RSA"),
            ),
            (pem("ENCRYPTED PRIVATE KEY", RSA), Err("encrypted")),
            (pem("EC PRIVATE KEY", P256), Err("PKCS#8")),
            (pem("PUBLIC KEY", RSA), Err("not a private key")),
            ("ghp_secret".to_owned(), Err("not a private key")),
            (damaged, Err("damaged")),
            (endless, Err("end is missing")),
            (long, Err("too long")),
        ] {
            let read = PrivateKey::read(&text).map(|key| key.algorithm.as_str());
            match expected {
                Ok(name) => assert_eq!(read, Ok(name)),
                Err(part) => assert!(read.unwrap_err().contains(part), "{read:?}"),
            }
        }
        assert!(!format!("{:?}", key()).contains("MEEC"));
    }

    #[test]
    fn proof_is_for_one_request() {
        let key = ProofKey::new(b"private", &[&[4], &[1; 32][..], &[2; 32]].concat()).unwrap();
        let url = "https://me:pw@a.example/mcp?x=1#y".parse().unwrap();
        let proof = key.proof("GET", &url, 100, Some(&"token".into()), Some("n"));
        let jwk =
            json!({ "kty": "EC", "crv": "P-256", "x": encode(&[1; 32]), "y": encode(&[2; 32]) });
        assert_eq!(
            proof.header,
            json!({ "alg": "ES256", "typ": "dpop+jwt", "jwk": jwk })
        );
        // The digest is that of `printf token | openssl dgst -sha256`.
        let claims = json!({
            "htm": "GET", "htu": "https://a.example/mcp", "iat": 100, "nonce": "n",
            "ath": "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A",
        });
        assert_eq!(proof.claims, claims);
        let bare = key.proof("POST", &url, 100, None, None);
        assert!(bare.claims.get("ath").is_none() && bare.claims.get("nonce").is_none());
        for public in [&[][..], &[4; 64], &[4; 66], &[3; 65]] {
            assert!(ProofKey::new(b"private", public).is_none());
        }
        assert!(!format!("{key:?}").contains("cHJpdmF0ZQ"));
    }

    #[test]
    fn assertion_names_client_and_issuer() {
        let unsigned = Unsigned::assertion(key(), Some("k1"), "client", "https://issuer", 100);
        let text = unsigned.text([7; 16]);
        let token = Unsigned::token(&text, b"signature");
        let parts: Vec<Value> = token
            .expose()
            .split('.')
            .take(2)
            .map(|part| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap())
            .collect();
        assert_eq!(
            parts[0],
            json!({ "alg": "ES256", "typ": "JWT", "kid": "k1" })
        );
        let claims = json!({
            "iss": "client", "sub": "client", "aud": "https://issuer", "iat": 100, "exp": 400,
            "jti": "BwcHBwcHBwcHBwcHBwcHBw",
        });
        assert_eq!(parts[1], claims);
        assert!(token.expose().ends_with(".c2lnbmF0dXJl"));
        assert_ne!(unsigned.text([8; 16]), text);
    }
}
