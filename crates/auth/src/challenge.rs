//! The challenge in the `WWW-Authenticate` headers of a response.

/// The parameters of a server's challenge that matter for signing in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    /// The address of the metadata of the protected resource.
    pub resource_metadata: Option<String>,
    /// The scopes that the request needs, separated by spaces.
    pub scope: Option<String>,
    /// The error code, such as `invalid_token` or `insufficient_scope`.
    pub error: Option<String>,
    /// Tokens have to be bound to a key (DPoP): bearer tokens are not accepted.
    pub demands_proof: bool,
}

/// The error code of a party that asks for a nonce in proofs.
pub(crate) const NONCE: &str = "use_dpop_nonce";

/// The longest header that is read, in bytes.
const LONGEST: usize = 8 * 1024;

impl Challenge {
    /// Reads the values of all `WWW-Authenticate` headers of a response. Only challenges for bearer tokens and
    /// for tokens that are bound to a key count; malformed ones are skipped.
    ///
    /// ```
    /// # use switchboard_auth::Challenge;
    /// let challenge = Challenge::read([r#"Basic realm="x", Bearer scope="files:read", error="invalid_token""#]);
    /// assert_eq!(challenge.scope.as_deref(), Some("files:read"));
    /// ```
    pub fn read<'a>(headers: impl IntoIterator<Item = &'a str>) -> Self {
        let mut challenge = Self::default();
        let mut schemes = Schemes::default();
        for header in headers {
            if header.len() <= LONGEST {
                challenge.read_header(header, &mut schemes);
            }
        }
        challenge.demands_proof = schemes.bound && !schemes.bearer;
        challenge
    }

    /// Tests if the server asks for more scopes.
    pub fn needs_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    /// Tests if the server asks for a nonce in proofs.
    pub fn needs_nonce(&self) -> bool {
        self.error.as_deref() == Some(NONCE)
    }

    fn read_header(&mut self, header: &str, schemes: &mut Schemes) {
        let mut is_ours = false;
        for part in parts(header) {
            // A challenge begins with its scheme, which a space separates from the first parameter.
            let parameter = match part.split_once([' ', '\t']) {
                Some((scheme, rest)) if is_token(scheme) && !rest.trim_start().starts_with('=') => {
                    is_ours = schemes.note(scheme);
                    rest.trim_start()
                }
                None if is_token(part) => {
                    is_ours = schemes.note(part);
                    continue;
                }
                _ => part,
            };
            if let Some((name, value)) = parameter.split_once('=')
                && is_ours
            {
                self.set(name.trim(), value.trim());
            }
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        let field = match () {
            () if name.eq_ignore_ascii_case("resource_metadata") => &mut self.resource_metadata,
            () if name.eq_ignore_ascii_case("scope") => &mut self.scope,
            () if name.eq_ignore_ascii_case("error") => &mut self.error,
            () => return,
        };
        // Of repeated parameters, the first one counts.
        field.get_or_insert_with(|| unquoted(value));
    }
}

/// The kinds of tokens that a server accepts.
#[derive(Default)]
struct Schemes {
    bearer: bool,
    bound: bool,
}

impl Schemes {
    /// Notes a scheme. Returns `true` if it is one of them.
    fn note(&mut self, scheme: &str) -> bool {
        let is_bearer = scheme.eq_ignore_ascii_case("bearer");
        let is_bound = scheme.eq_ignore_ascii_case("dpop");
        self.bearer |= is_bearer;
        self.bound |= is_bound;
        is_bearer || is_bound
    }
}

/// Splits a header at the commas that are not inside of quotes.
fn parts(header: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let split = header.split(move |character| {
        let ends = character == ',' && !is_quoted;
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => {}
        }
        ends
    });
    split.map(str::trim).filter(|part| !part.is_empty())
}

fn is_token(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_allowed)
}

fn unquoted(value: &str) -> String {
    let inner = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let Some(inner) = inner else {
        return value.to_owned();
    };
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(header: &str) -> [Option<String>; 3] {
        let read = Challenge::read([header]);
        [read.resource_metadata, read.scope, read.error]
    }

    #[test]
    fn parameters_of_bearer_challenges_are_read() {
        for (header, expected) in [
            ("Bearer", [None, None, None]),
            ("", [None, None, None]),
            (r#"Bearer scope="a b""#, [None, Some("a b"), None]),
            (
                r#"bearer SCOPE="a, b", error=x"#,
                [None, Some("a, b"), Some("x")],
            ),
            (
                r#"Bearer realm="q \"scope=1\"", scope="a\\b""#,
                [None, Some("a\\b"), None],
            ),
            (
                r#"Bearer error="e", Basic realm="x", error="f""#,
                [None, None, Some("e")],
            ),
            (r#"Basic scope="no""#, [None, None, None]),
            (
                r#"Negotiate, Bearer scope = "a", scope="b""#,
                [None, Some("a"), None],
            ),
            (
                r#"Bearer error="invalid_token",resource_metadata="https://x/y?a=b,c""#,
                [Some("https://x/y?a=b,c"), None, Some("invalid_token")],
            ),
        ] {
            let read = read(header);
            assert_eq!(read.each_ref().map(Option::as_deref), expected, "{header}");
        }
    }

    #[test]
    fn proofs_are_demanded_where_bearer_is_missing() {
        for (headers, demands, scope) in [
            (vec![r#"DPoP scope="a", algs="ES256""#], true, Some("a")),
            (vec!["dpop"], true, None),
            (
                vec![r#"Bearer scope="b", DPoP scope="a""#],
                false,
                Some("b"),
            ),
            (vec![r#"DPoP scope="a""#, "Bearer"], false, Some("a")),
            (vec![r#"Basic realm="dpop""#], false, None),
        ] {
            let read = Challenge::read(headers.clone());
            assert_eq!(read.demands_proof, demands, "{headers:?}");
            assert_eq!(read.scope.as_deref(), scope, "{headers:?}");
        }
        assert!(Challenge::read([r#"DPoP error="use_dpop_nonce""#]).needs_nonce());
    }

    #[test]
    fn oversized_header_is_ignored() {
        let header = format!(r#"Bearer scope="{}""#, "x".repeat(LONGEST));
        assert_eq!(Challenge::read([&*header]), Challenge::default());
        let two = Challenge::read([&*header, "Bearer scope=a"]);
        assert_eq!(two.scope.as_deref(), Some("a"));
    }

    proptest! {
        #[test]
        fn any_header_is_read_without_panic(header in "[ -~é\t]{0,80}") {
            let _ = Challenge::read([&*header]);
        }

        #[test]
        fn quoted_scope_is_read_back(scope in "[ -~]{0,40}") {
            let escaped = scope.replace('\\', "\\\\").replace('"', "\\\"");
            let header = format!(r#"Bearer realm="r", scope="{escaped}""#);
            prop_assert_eq!(read(&header)[1].clone(), Some(scope));
        }
    }
}
