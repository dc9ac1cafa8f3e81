//! The choices of a user for one server.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Secret;

/// The settings of the sign-in to one server. The defaults suit servers that follow the specification.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct Settings {
    /// The name that the authorization server shows to the user.
    pub client_name: String,
    /// A client that is registered with the authorization server already.
    pub client: Option<ConfiguredClient>,
    /// The address of a client ID metadata document, for authorization servers that support these.
    pub client_document: Option<String>,
    /// The address that the browser is redirected to at the end. `None`: a free port of this machine.
    pub redirect_uri: Option<String>,
    /// The scopes to ask for, in place of the server's.
    pub scopes: Option<Vec<String>>,
    /// The `resource` parameter. Some authorization servers reject it.
    pub resource: ResourceParameter,
    /// The address of the authorization server's metadata, in place of the one that the server names. Its issuer is
    /// taken as it is there.
    pub metadata: Option<String>,
    /// The authorization server supports PKCE with S256, although its metadata does not mention PKCE.
    pub assumes_pkce: bool,
    /// Further parameters of the authorization request. None of them replaces one of the machine.
    pub parameters: Vec<(String, String)>,
    /// The kind of sign-in.
    pub grant: Grant,
    /// The file with the assertion for [`Grant::JwtBearer`], or with the ID token for the identity provider. The caller
    /// reads it at each use.
    pub assertion_file: Option<PathBuf>,
    /// Issues the assertion for [`Grant::JwtBearer`] to the user of an ID token.
    pub identity_provider: Option<IdentityProvider>,
}

/// The identity provider of an enterprise, which vouches for a user (enterprise-managed authorization).
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct IdentityProvider {
    /// The address that exchanges tokens. The user has chosen it, so that it may be in a private network.
    pub token_url: String,
    /// The ID of the client that is registered there.
    pub client_id: String,
    /// Its secret, unless it is a public client.
    pub client_secret: Option<Secret>,
}

/// A client that the user has registered.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct ConfiguredClient {
    /// Its ID.
    pub id: String,
    /// Its secret, unless it is a public client.
    pub secret: Option<Secret>,
    /// Its private key in PEM (PKCS#8), in place of a secret: RSA, or on the curve P-256.
    pub private_key: Option<Secret>,
    /// The ID of that key, for authorization servers that ask for it.
    pub key_id: Option<String>,
    /// The only issuer that it is used with. `None`: the first one that the server names.
    pub issuer: Option<String>,
}

impl ConfiguredClient {
    /// A public client.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            secret: None,
            private_key: None,
            key_id: None,
            issuer: None,
        }
    }
}

/// The `resource` parameter of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub enum ResourceParameter {
    /// The identifier that the server publishes.
    #[default]
    Published,
    /// This one.
    Fixed(String),
    /// None.
    Omitted,
}

/// The kind of sign-in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub enum Grant {
    /// The user signs in with a browser.
    #[default]
    AuthorizationCode,
    /// The user signs in with a browser on any device, and enters a code there (RFC 8628).
    DeviceCode,
    /// The configured client signs in for itself.
    ClientCredentials,
    /// The configured client presents an assertion that another party has signed (RFC 7523): the platform that it runs
    /// on, or an identity provider.
    JwtBearer,
}

impl Grant {
    /// Tests if no user is needed.
    pub fn is_unattended(self) -> bool {
        match self {
            Self::AuthorizationCode | Self::DeviceCode => false,
            Self::ClientCredentials | Self::JwtBearer => true,
        }
    }

    /// Tests if the browser is redirected to an address of the client at the end.
    pub fn has_redirect(self) -> bool {
        self == Self::AuthorizationCode
    }
}

impl Settings {
    /// The defaults, with the name that the authorization server shows to the user.
    pub fn new(client_name: impl Into<String>) -> Self {
        Self {
            client_name: client_name.into(),
            client: None,
            client_document: None,
            redirect_uri: None,
            scopes: None,
            resource: ResourceParameter::default(),
            metadata: None,
            assumes_pkce: false,
            parameters: Vec::new(),
            grant: Grant::default(),
            assertion_file: None,
            identity_provider: None,
        }
    }
}
