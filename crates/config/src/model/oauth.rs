//! The sign-in to a remote server.

use std::{collections::BTreeMap, fmt};

/// The sign-in to a remote server. The defaults suit servers that follow the specification.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OAuth {
    /// The ID of a client that the user has registered.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<String>,
    /// Its private key, in place of the secret.
    pub private_key: Option<String>,
    /// The ID of that key.
    pub key_id: Option<String>,
    /// The only authorization server that the client is used with.
    pub issuer: Option<String>,
    /// The address of a client ID metadata document.
    pub client_metadata_url: Option<String>,
    /// The address that the browser is redirected to.
    pub redirect_uri: Option<String>,
    /// The scopes to ask for.
    pub scopes: Option<Vec<String>>,
    /// The `resource` parameter.
    pub resource: ResourceParameter,
    /// The address of the authorization server's metadata.
    pub metadata_url: Option<String>,
    /// The authorization server supports PKCE without saying so.
    pub assume_pkce: bool,
    /// Further parameters of the authorization request.
    pub authorization_parameters: BTreeMap<String, String>,
    /// The kind of sign-in.
    pub grant: Grant,
    /// The file with the assertion of the client.
    pub assertion_file: Option<String>,
    /// The identity provider that vouches for the user.
    pub identity_provider: Option<IdentityProvider>,
}

/// An identity provider that vouches for a user.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct IdentityProvider {
    /// The address that exchanges tokens.
    pub token_url: String,
    /// The ID of the client that is registered there.
    pub client_id: String,
    /// Its secret.
    pub client_secret: Option<String>,
    /// The file with the ID token of the user.
    pub id_token_file: String,
}

/// The `resource` parameter of a sign-in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ResourceParameter {
    /// The one that the server publishes.
    #[default]
    Published,
    /// This one.
    Fixed(String),
    /// None.
    Omitted,
}

/// The kind of sign-in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// A user signs in with a browser.
    #[default]
    AuthorizationCode,
    /// A user signs in with a browser on any device, and enters a code there.
    DeviceCode,
    /// The registered client signs in for itself.
    ClientCredentials,
    /// The registered client presents an assertion that another party has signed.
    JwtBearer,
}

impl OAuth {
    /// The texts that may have references.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        let resource = match &self.resource {
            ResourceParameter::Fixed(text) => Some(text.as_str()),
            ResourceParameter::Published | ResourceParameter::Omitted => None,
        };
        let texts = [
            &self.client_id,
            &self.client_secret,
            &self.private_key,
            &self.key_id,
            &self.issuer,
            &self.client_metadata_url,
            &self.redirect_uri,
            &self.metadata_url,
            &self.assertion_file,
        ];
        let texts = texts.into_iter().filter_map(|text| text.as_deref());
        let provider = self.identity_provider.iter().flat_map(|provider| {
            let required = [
                &*provider.token_url,
                &provider.client_id,
                &provider.id_token_file,
            ];
            required
                .into_iter()
                .chain(provider.client_secret.as_deref())
        });
        texts.chain(resource).chain(provider)
    }
}

/// Without secrets.
impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth")
            .field("client_id", &self.client_id)
            .field("issuer", &self.issuer)
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}

/// Without the secret.
impl fmt::Debug for IdentityProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentityProvider")
            .field("token_url", &self.token_url)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}
