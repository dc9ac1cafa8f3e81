//! The metadata documents of servers and authorization servers, and the addresses where they are found.

use serde::Deserialize;
use url::Url;

use crate::Error;

/// The most scopes that are read from a document.
const MOST_SCOPES: usize = 200;

/// The metadata of a protected resource (RFC 9728).
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ResourceMetadata {
    /// The identifier that tokens are requested for, in its published spelling.
    pub(crate) resource: String,
    #[serde(default)]
    pub(crate) authorization_servers: Vec<String>,
    pub(crate) scopes_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) dpop_bound_access_tokens_required: bool,
}

/// The metadata of an authorization server (RFC 8414, or OIDC discovery).
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ServerMetadata {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: Option<String>,
    pub(crate) device_authorization_endpoint: Option<String>,
    pub(crate) token_endpoint: Option<String>,
    pub(crate) registration_endpoint: Option<String>,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) scopes_supported: Option<Vec<String>>,
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(crate) token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    pub(crate) dpop_signing_alg_values_supported: Option<Vec<String>>,
    pub(crate) code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

impl ResourceMetadata {
    /// Reads the document, and checks that it is about this server.
    pub(crate) fn read(body: &[u8], server: &Url) -> Result<Self, Error> {
        let mut read: Self = serde_json::from_slice(body)
            .map_err(|error| Error::metadata("protected resource", &error))?;
        let covers = Url::parse(&read.resource).is_ok_and(|resource| is_below(server, &resource));
        if !covers {
            return Err(Error::OtherResource {
                resource: read.resource,
            });
        }
        if let Some(scopes) = &mut read.scopes_supported {
            scopes.truncate(MOST_SCOPES);
        }
        Ok(read)
    }
}

impl ServerMetadata {
    /// Reads the document, and checks that it is that of this issuer; of any, if there is none.
    pub(crate) fn read(body: &[u8], issuer: Option<&str>) -> Result<Self, Error> {
        let read: Self = serde_json::from_slice(body)
            .map_err(|error| Error::metadata("authorization server", &error))?;
        // The specification demands the same string: a normalised comparison would accept other issuers.
        if let Some(issuer) = issuer
            && read.issuer != issuer
        {
            return Err(Error::OtherIssuer {
                expected: issuer.to_owned(),
                found: read.issuer,
            });
        }
        Ok(read)
    }

    /// The endpoints of a server of 2025-03-26 that publishes no metadata.
    pub(crate) fn of_origin(origin: &str) -> Self {
        let at = |path: &str| Some(format!("{origin}/{path}"));
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: at("authorize"),
            device_authorization_endpoint: None,
            token_endpoint: at("token"),
            registration_endpoint: at("register"),
            revocation_endpoint: None,
            scopes_supported: None,
            token_endpoint_auth_methods_supported: Some(vec!["none".to_owned()]),
            token_endpoint_auth_signing_alg_values_supported: None,
            dpop_signing_alg_values_supported: None,
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            client_id_metadata_document_supported: false,
            authorization_response_iss_parameter_supported: false,
        }
    }

    pub(crate) fn supports_s256(&self) -> bool {
        let methods = self.code_challenge_methods_supported.as_deref();
        methods.is_some_and(|methods| methods.iter().any(|method| method == "S256"))
    }

    pub(crate) fn offers_scope(&self, scope: &str) -> bool {
        let scopes = self.scopes_supported.as_deref().unwrap_or_default();
        scopes.iter().any(|offered| offered == scope)
    }
}

/// The well-known addresses of the metadata of a server: below its path, then at the root.
pub(crate) fn of_resource(server: &Url) -> Vec<Url> {
    const NAME: &str = "/.well-known/oauth-protected-resource";
    let path = server.path().trim_end_matches('/');
    let mut addresses = vec![at(server, &format!("{NAME}{path}"))];
    if !path.is_empty() {
        addresses.push(at(server, NAME));
    }
    addresses
}

/// The well-known addresses of the metadata of an issuer, in the order of the specification.
pub(crate) fn of_issuer(issuer: &Url) -> Vec<Url> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    let path = issuer.path().trim_end_matches('/');
    let mut addresses = vec![
        at(issuer, &format!("{OAUTH}{path}")),
        at(issuer, &format!("{OPENID}{path}")),
    ];
    if !path.is_empty() {
        addresses.push(at(issuer, &format!("{path}{OPENID}")));
    }
    addresses
}

/// The origin of a URL, as an issuer is spelled.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn at(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// Tests if a URL is `parent` or below it.
fn is_below(url: &Url, parent: &Url) -> bool {
    let below = || {
        let rest = url.path().strip_prefix(parent.path().trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    url.origin() == parent.origin() && below()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn texts(urls: &[Url]) -> Vec<&str> {
        urls.iter().map(Url::as_str).collect()
    }

    #[test]
    fn addresses_follow_the_order_of_the_specification() {
        assert_eq!(
            texts(&of_resource(&url("https://a.example/mcp/?x=1"))),
            [
                "https://a.example/.well-known/oauth-protected-resource/mcp",
                "https://a.example/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(
            texts(&of_resource(&url("https://a.example"))),
            ["https://a.example/.well-known/oauth-protected-resource"]
        );
        assert_eq!(
            texts(&of_issuer(&url("https://a.example/tenant1"))),
            [
                "https://a.example/.well-known/oauth-authorization-server/tenant1",
                "https://a.example/.well-known/openid-configuration/tenant1",
                "https://a.example/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(texts(&of_issuer(&url("https://a.example"))).len(), 2);
    }

    #[test]
    fn resource_has_to_cover_the_server() {
        let read = |resource: &str| {
            let body =
                format!(r#"{{"resource":"{resource}","authorization_servers":["https://b"]}}"#);
            ResourceMetadata::read(body.as_bytes(), &url("https://a.example/mcp")).is_ok()
        };
        for resource in [
            "https://a.example",
            "https://a.example/",
            "https://a.example/mcp",
        ] {
            assert!(read(resource), "{resource}");
        }
        for resource in [
            "https://evil.example/mcp",
            "http://a.example/mcp",
            "https://a.example/mc",
            "https://a.example/mcp/more",
            "https://a.example:8443/mcp",
            "",
        ] {
            assert!(!read(resource), "{resource}");
        }
    }

    #[test]
    fn issuer_has_to_be_the_same_text() {
        let read = |issuer: &str| {
            let body = format!(r#"{{"issuer":"{issuer}"}}"#);
            ServerMetadata::read(body.as_bytes(), Some("https://b.example")).is_ok()
        };
        assert!(read("https://b.example"));
        assert!(!read("https://b.example/") && !read("https://B.example"));
    }
}
