//! The result of a sign-in, which outlives the process.

use serde::{Deserialize, Serialize};

use crate::{ConfiguredClient, ProofKey, Reach, Secret};

/// A sign-in to one server: the registration of the client and the tokens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Credential {
    /// The URL of the server that the tokens are for.
    pub server: String,
    /// The hosts that the server may refer to.
    pub reach: Reach,
    /// The authorization server. Nothing of this is sent to another one.
    pub issuer: String,
    /// The client as it is registered there.
    pub client: Client,
    /// The address that exchanges tokens.
    pub token_endpoint: String,
    /// The address that revokes tokens, if there is one.
    pub revocation_endpoint: Option<String>,
    /// The `resource` parameter of requests.
    pub resource: Option<String>,
    /// The scopes that were requested so far.
    pub scopes: Vec<String>,
    /// The key that tokens are bound to, if the server demands that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof_key: Option<ProofKey>,
    /// The tokens; `None` once the user is signed out.
    pub tokens: Option<Tokens>,
}

impl Credential {
    /// Takes the secret of the configured client, which the user may have replaced.
    pub(crate) fn follow(&mut self, configured: &ConfiguredClient) {
        let issuer = configured.issuer.as_ref();
        let is_elsewhere = issuer.is_some_and(|issuer| *issuer != self.issuer);
        if configured.id != self.client.id || is_elsewhere {
            return;
        }
        let has_key = self.client.authentication == Authentication::PrivateKeyJwt;
        if configured.secret.is_some() != self.client.secret.is_some()
            || configured.private_key.is_some() != has_key
        {
            self.client.authentication = Authentication::of(configured, None);
        }
        self.client.secret.clone_from(&configured.secret);
    }
}

/// A client that is registered with an authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Client {
    /// Its ID.
    pub id: String,
    /// Its secret, unless it is a public client.
    pub secret: Option<Secret>,
    /// Its authentication at the token endpoint.
    pub authentication: Authentication,
    /// The redirect URI that it is registered with, if it registered itself. It is empty for a client whose users enter
    /// codes.
    pub redirect_uri: Option<String>,
    /// The time at which its secret expires, in seconds since 1970.
    pub secret_expires: Option<u64>,
}

/// The authentication of a client at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Authentication {
    /// By its ID alone.
    None,
    /// With a header.
    ClientSecretBasic,
    /// With parameters of the form.
    ClientSecretPost,
    /// With a token that it signs.
    PrivateKeyJwt,
}

/// The tokens of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Tokens {
    /// The token for requests to the server.
    pub access: Secret,
    /// The token for new tokens.
    pub refresh: Option<Secret>,
    /// The time at which they were issued, in seconds since 1970.
    pub issued: u64,
    /// The time at which the access token expires, if it is known.
    pub expires: Option<u64>,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// The access token is bound to the key of the credential: each request needs a proof.
    #[serde(default)]
    pub is_bound: bool,
}

/// A token is renewed this long before it expires, or after nine tenths of its lifetime if that is later.
const EARLY: u64 = 300;

impl Tokens {
    /// The time from which on the access token should be renewed. `jitter` is a number below 1,000 that spreads the
    /// renewals of several credentials.
    pub fn renew_at(&self, jitter: u64) -> Option<u64> {
        let expires = self.expires?;
        let lifetime = expires.saturating_sub(self.issued);
        let early = EARLY.min(lifetime / 10);
        let spread = early / 2 * (jitter % 1_000) / 1_000;
        Some(expires - early + spread)
    }

    /// Tests if the access token has expired.
    pub fn has_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }
}

impl Authentication {
    /// The name in metadata and registrations.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// The method of this name, for a client that registers itself: it has no key.
    pub(crate) fn read(name: &str) -> Option<Self> {
        [Self::None, Self::ClientSecretBasic, Self::ClientSecretPost]
            .into_iter()
            .find(|method| method.as_str() == name)
    }

    /// The method for a configured client, at a server that supports these.
    pub(crate) fn of(client: &ConfiguredClient, supported: Option<&[String]>) -> Self {
        if client.private_key.is_some() {
            return Self::PrivateKeyJwt;
        }
        Self::choose(client.secret.is_some(), supported)
    }

    /// The method for a client with a secret, or without one, at a server that supports these.
    pub(crate) fn choose(has_secret: bool, supported: Option<&[String]>) -> Self {
        if !has_secret {
            return Self::None;
        }
        // Without a list, only Basic is supported.
        let supports = |method: Self| {
            supported.is_none_or(|supported| supported.iter().any(|name| name == method.as_str()))
        };
        match () {
            () if supports(Self::ClientSecretBasic) => Self::ClientSecretBasic,
            () if supports(Self::ClientSecretPost) => Self::ClientSecretPost,
            () => Self::ClientSecretBasic,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tokens_are_renewed_before_they_expire(
            issued in 0..u64::from(u32::MAX),
            lifetime in 0..10_000_000_u64,
            jitter in any::<u64>(),
        ) {
            let expires = issued + lifetime;
            let tokens = Tokens {
                access: "a".into(),
                refresh: None,
                issued,
                expires: Some(expires),
                scopes: Vec::new(),
                is_bound: false,
            };
            let at = tokens.renew_at(jitter).unwrap();
            prop_assert!(at <= expires && expires - at <= EARLY);
            prop_assert!(at - issued >= lifetime - lifetime / 10);
        }
    }

    #[test]
    fn authentication_follows_the_metadata() {
        let list = |names: &[&str]| {
            Some(
                names
                    .iter()
                    .map(|&name| name.to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        for (has_secret, supported, expected) in [
            (true, None, Authentication::ClientSecretBasic),
            (
                true,
                list(&["client_secret_post"]),
                Authentication::ClientSecretPost,
            ),
            (
                true,
                list(&["none", "client_secret_basic", "client_secret_post"]),
                Authentication::ClientSecretBasic,
            ),
            (
                true,
                list(&["private_key_jwt"]),
                Authentication::ClientSecretBasic,
            ),
            (false, list(&["client_secret_post"]), Authentication::None),
        ] {
            assert_eq!(
                Authentication::choose(has_secret, supported.as_deref()),
                expected
            );
        }
    }
}
