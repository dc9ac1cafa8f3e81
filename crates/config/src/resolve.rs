//! Resolves `${env:NAME}`, `${secret:NAME}`, and the facts about the caller.
//!
//! The configuration keeps the references. Values are fetched when a server is started, so that they do
//! not appear in files, logs or comparisons that do not need them.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard_files::{Access, Links, open, read_open};
use switchboard_redact::{self as redact, Secret, Source};
use switchboard_text::percent;

use crate::diagnostic::Diagnostic;
use crate::model::{
    CommandLine, Container, IdentityProvider, OAuth, Provider, Remote, ResourceParameter, Server,
    Transport, Webhook,
};
use crate::reference::{Piece, Placeholder, pieces};
use crate::script;
use crate::secret::is_pasted_value;
use crate::shell::shell_word;

/// The largest secret, in bytes. A certificate chain fits.
const SECRET_MAX: u64 = 64 * 1024;

/// The reason why a reference cannot be resolved. `place` names the server and the key, such as
/// `server "files", env.TOKEN`.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// A variable is not set.
    #[error("{place}: the variable {name} is not set")]
    Variable {
        /// Location of the reference.
        place: String,
        /// The variable.
        name: String,
    },
    /// A variable is not UTF-8.
    #[error("{place}: the variable {name} is not UTF-8 text")]
    VariableText {
        /// Location of the reference.
        place: String,
        /// The variable.
        name: String,
    },
    /// A secret's file does not exist.
    #[error("{place}: the secret `{name}` does not exist")]
    NoSecret {
        /// Location of the reference.
        place: String,
        /// The secret.
        name: String,
    },
    /// A secret's file cannot be read.
    #[error("{place}: cannot read the secret `{name}`")]
    Secret {
        /// Location of the reference.
        place: String,
        /// The secret.
        name: String,
        /// Its file.
        path: PathBuf,
        /// The underlying I/O error.
        #[source]
        source: io::Error,
    },
    /// Other users may read a secret's file.
    #[error("{place}: other users can read the secret `{name}` (mode {mode:o})")]
    Exposed {
        /// Location of the reference.
        place: String,
        /// The secret.
        name: String,
        /// Its file.
        path: PathBuf,
        /// The mode of the file.
        mode: u32,
    },
    /// A secret's file has invalid content.
    #[error("{place}: the secret `{name}` {what}")]
    Content {
        /// Location of the reference.
        place: String,
        /// The secret.
        name: String,
        /// Its file.
        path: PathBuf,
        /// The problem with the content.
        what: &'static str,
    },
    /// The server needs a project, and its caller has none.
    #[error("{place}: the client works in no known project directory")]
    NoProject {
        /// Location of the reference.
        place: String,
    },
    /// The fact about the caller would be taken for something else.
    #[error("{place}: {name:?} {why}")]
    Unfit {
        /// Location of the reference.
        place: String,
        /// The directory or the name of the client.
        name: String,
        /// The reason.
        why: Unfit,
    },
    /// The caller is not known.
    #[error("{place}: there is no client")]
    NoClient {
        /// Location of the reference.
        place: String,
    },
    /// The entry has a malformed reference.
    #[error("{}", .0.alone())]
    Entry(Diagnostic),
    /// The string has a malformed reference. [`parse`](crate::parse) finds it before.
    #[error("{place}: {message}")]
    Malformed {
        /// Location of the reference.
        place: String,
        /// The problem.
        message: String,
        /// A hint with the correct syntax.
        hint: String,
    },
}

impl ResolveError {
    /// A hint for the user, separate from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Variable { .. } => "set it in the environment of the gateway".into(),
            Self::VariableText { .. } => "set it to UTF-8 text".into(),
            Self::NoSecret { name, .. } => format!(
                "store it with `switchboard secret set {}`",
                shell_word(name)
            )
            .into(),
            Self::Secret { path, .. } => {
                format!("check that {} is a file that you can read", path.display()).into()
            }
            Self::Exposed { path, .. } => {
                let path = path.display().to_string();
                format!("run `chmod 600 {}`", shell_word(&path)).into()
            }
            Self::Content { path, .. } => {
                format!("write the secret to {} again", path.display()).into()
            }
            Self::NoProject { .. } => NO_PROJECT_HINT.into(),
            Self::Unfit { why, .. } => why.hint().into(),
            Self::NoClient { .. } => "call one of its tools from a client".into(),
            Self::Entry(malformed) => malformed.hint.as_deref()?.into(),
            Self::Malformed { hint, .. } => hint.into(),
        })
    }
}

/// Advice for a client without a project.
pub const NO_PROJECT_HINT: &str = "start the client, or run the command, in the directory of a project; over HTTP, add \
     `?project=DIRECTORY` to the address";

/// The caller that a process of a server is started for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Occasion {
    /// The directory that the client works in.
    pub project: Option<Arc<str>>,
    /// The name that the client gives itself.
    pub client: Option<Arc<str>>,
}

impl Occasion {
    fn get(&self, placeholder: Placeholder) -> Option<Cow<'_, str>> {
        match placeholder {
            Placeholder::Project => self.project.as_deref().map(Cow::Borrowed),
            Placeholder::ProjectName => {
                let name = Path::new(self.project.as_deref()?).file_name();
                // Only the root directory has no name.
                Some(name.map_or(Cow::Borrowed("root"), |name| name.to_string_lossy()))
            }
            Placeholder::Client => self.client.as_deref().map(file_name),
        }
    }
}

/// The name of a client, which it chooses itself, in a form that is a file name and not an option.
fn file_name(client: &str) -> Cow<'_, str> {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.') {
            letter
        } else {
            '_'
        }
    };
    let name: String = client.chars().take(CLIENT_MAX).map(plain).collect();
    if name.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        name.into()
    } else {
        format!("client{name}").into()
    }
}

/// The longest name of a client, in characters.
const CLIENT_MAX: usize = 64;

/// A part of the configuration with its references resolved, and the secrets that it contains.
#[derive(Debug)]
pub struct Resolved<T> {
    /// The resolved part.
    pub value: T,
    /// Values that must not appear in logs, errors or the status.
    pub secrets: Vec<Secret>,
}

impl Server {
    /// Returns the server with all references in its transport resolved. `name` is for messages;
    /// `secrets` is the directory with one file per secret.
    pub fn resolve(
        &self,
        name: &str,
        occasion: &Occasion,
        secrets: &Path,
        env: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Resolved<Self>, ResolveError> {
        if let Some(malformed) = &self.malformed {
            return Err(ResolveError::Entry(malformed.clone()));
        }
        let owner = format!("server `{name}`, ");
        let resolver = Resolver {
            occasion,
            ..Resolver::new(&owner, secrets, env)
        };
        let value = Self {
            transport: resolver.transport(&self.transport)?,
            ..self.clone()
        };
        Ok(resolver.resolved(value))
    }
}

impl Provider {
    /// Returns the provider with the references in its address and key resolved.
    pub fn resolve(
        &self,
        secrets: &Path,
        env: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Resolved<Self>, ResolveError> {
        let resolver = Resolver::new("sampling.provider.", secrets, env);
        let value = Self {
            base_url: resolver.optional("baseUrl", self.base_url.as_deref())?,
            api_key: resolver.optional("apiKey", self.api_key.as_deref())?,
            ..self.clone()
        };
        let key = value.api_key.iter();
        resolver.add(key.map(|key| Secret::new("apiKey", key)));
        Ok(resolver.resolved(value))
    }
}

impl Webhook {
    /// Returns the webhook with the references in its address and secret resolved.
    pub fn resolve(
        &self,
        secrets: &Path,
        env: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Resolved<Self>, ResolveError> {
        let resolver = Resolver::new("approvals.webhook.", secrets, env);
        let value = Self {
            url: resolver.text("url", &self.url)?,
            secret: resolver.text("secret", &self.secret)?,
            on: self.on.clone(),
        };
        resolver.add([Secret::new("webhook.secret", &*value.secret)]);
        Ok(resolver.resolved(value))
    }
}

/// No caller.
const NOBODY: &Occasion = &Occasion {
    project: None,
    client: None,
};

/// The reason why a fact about the caller cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// An interpreter would run it.
    #[error("would be run as code")]
    Script,
    /// A program would take it for an option.
    #[error("would be taken for an option")]
    Option,
    /// A container engine would split it.
    #[error("contains a character that separates the parts of a mount")]
    Mount,
}

impl Unfit {
    const fn hint(self) -> &'static str {
        match self {
            Self::Script => {
                "put the reference into a variable of `env`, and let the code read that variable"
            }
            Self::Option => "put text before the reference, such as `--directory=` or `./`",
            Self::Mount => "rename the directory",
        }
    }
}

/// The reader of a text in an entry.
#[derive(Clone, Copy)]
enum Reader {
    Program,
    /// It runs the text as code.
    Interpreter,
    /// The engine of a container.
    Engine,
    /// A remote server, which decodes the text.
    Remote,
}

struct Resolver<'a> {
    occasion: &'a Occasion,
    /// Prefix of every location.
    owner: &'a str,
    secrets: &'a Path,
    env: &'a dyn Fn(&str) -> Option<OsString>,
    /// The secrets found so far.
    found: RefCell<Vec<Secret>>,
}

impl<'a> Resolver<'a> {
    fn new(owner: &'a str, secrets: &'a Path, env: &'a dyn Fn(&str) -> Option<OsString>) -> Self {
        Self {
            owner,
            occasion: NOBODY,
            secrets,
            env,
            found: RefCell::default(),
        }
    }

    fn add(&self, secrets: impl IntoIterator<Item = Secret>) {
        self.found.borrow_mut().extend(secrets);
    }

    fn resolved<T>(self, value: T) -> Resolved<T> {
        Resolved {
            value,
            secrets: self.found.into_inner(),
        }
    }

    fn transport(&self, transport: &Transport) -> Result<Transport, ResolveError> {
        Ok(match transport {
            Transport::Command(line) => {
                let command = self.text("command", &line.command)?;
                Transport::Command(CommandLine {
                    args: self.args(&command, &line.args)?,
                    command,
                    env: self.map("env", &line.env, Reader::Program)?,
                    inherit_env: line.inherit_env.clone(),
                    cwd: self.optional("cwd", line.cwd.as_deref())?,
                })
            }
            Transport::Remote(remote) => Transport::Remote(Remote {
                url: self.resolve("url", &remote.url, Reader::Remote)?,
                headers: self.map("headers", &remote.headers, Reader::Remote)?,
                kind: remote.kind,
                oauth: self.oauth(&remote.oauth)?,
            }),
            Transport::Container(container) => Transport::Container(Container {
                image: self.text("image", &container.image)?,
                args: self.args(script::entry_point(container), &container.args)?,
                env: self.map("env", &container.env, Reader::Program)?,
                mounts: self.list("isolation.mounts", &container.mounts, &|_| Reader::Engine)?,
                run_args: self.list("isolation.runArgs", &container.run_args, &|_| {
                    Reader::Engine
                })?,
                ..container.clone()
            }),
            Transport::BuiltIn => Transport::BuiltIn,
        })
    }

    fn oauth(&self, oauth: &OAuth) -> Result<OAuth, ResolveError> {
        // Destructured, so that a new field has to be considered here.
        let OAuth {
            client_id,
            client_secret,
            private_key,
            key_id,
            issuer,
            client_metadata_url,
            redirect_uri,
            scopes,
            resource,
            metadata_url,
            assume_pkce,
            authorization_parameters,
            grant,
            assertion_file,
            identity_provider,
        } = oauth;
        let resolve = |field: &str, text: &Option<String>| {
            let text = text.as_deref();
            text.map(|text| self.resolve(&format!("oauth.{field}"), text, Reader::Remote))
                .transpose()
        };
        let client_secret = resolve("clientSecret", client_secret)?;
        let private_key = resolve("privateKey", private_key)?;
        for (name, secret) in [
            ("clientSecret", &client_secret),
            ("privateKey", &private_key),
        ] {
            if let Some(secret) = secret {
                self.add(redact::variable(name, secret));
            }
        }
        let identity_provider = identity_provider
            .as_ref()
            .map(|provider| self.identity_provider(provider))
            .transpose()?;
        Ok(OAuth {
            client_id: resolve("clientId", client_id)?,
            client_secret,
            private_key,
            key_id: resolve("keyId", key_id)?,
            issuer: resolve("issuer", issuer)?,
            client_metadata_url: resolve("clientMetadataUrl", client_metadata_url)?,
            redirect_uri: resolve("redirectUri", redirect_uri)?,
            scopes: scopes.clone(),
            resource: match resource {
                ResourceParameter::Fixed(text) => ResourceParameter::Fixed(self.resolve(
                    "oauth.resource",
                    text,
                    Reader::Remote,
                )?),
                ResourceParameter::Published | ResourceParameter::Omitted => resource.clone(),
            },
            metadata_url: resolve("metadataUrl", metadata_url)?,
            assume_pkce: *assume_pkce,
            authorization_parameters: authorization_parameters.clone(),
            grant: *grant,
            assertion_file: resolve("assertionFile", assertion_file)?,
            identity_provider,
        })
    }

    fn identity_provider(
        &self,
        provider: &IdentityProvider,
    ) -> Result<IdentityProvider, ResolveError> {
        let IdentityProvider {
            token_url,
            client_id,
            client_secret,
            id_token_file,
        } = provider;
        let resolve = |field: &str, text: &str| {
            let field = format!("oauth.identityProvider.{field}");
            self.resolve(&field, text, Reader::Remote)
        };
        let client_secret = client_secret.as_deref();
        let client_secret = client_secret
            .map(|text| resolve("clientSecret", text))
            .transpose()?;
        if let Some(secret) = &client_secret {
            self.add(redact::variable("clientSecret", secret));
        }
        Ok(IdentityProvider {
            token_url: resolve("tokenUrl", token_url)?,
            client_id: resolve("clientId", client_id)?,
            client_secret,
            id_token_file: resolve("idTokenFile", id_token_file)?,
        })
    }

    fn optional(&self, field: &str, text: Option<&str>) -> Result<Option<String>, ResolveError> {
        text.map(|text| self.text(field, text)).transpose()
    }

    /// The arguments of a program.
    fn args(&self, program: &str, args: &[String]) -> Result<Vec<String>, ResolveError> {
        self.list("args", args, &|at| {
            if script::is_in(program, args, at) {
                Reader::Interpreter
            } else {
                Reader::Program
            }
        })
    }

    fn list(
        &self,
        field: &str,
        items: &[String],
        reader: &dyn Fn(usize) -> Reader,
    ) -> Result<Vec<String>, ResolveError> {
        let resolve = |(at, item): (usize, &String)| {
            self.resolve(&format!("{field}[{at}]"), item, reader(at))
        };
        let resolved: Vec<String> = items
            .iter()
            .enumerate()
            .map(resolve)
            .collect::<Result<_, _>>()?;
        self.add(redact::arguments(
            field,
            resolved.iter().map(String::as_str),
        ));
        Ok(resolved)
    }

    fn map(
        &self,
        field: &str,
        map: &BTreeMap<String, String>,
        reader: Reader,
    ) -> Result<BTreeMap<String, String>, ResolveError> {
        map.iter()
            .map(|(key, value)| {
                let value = self.resolve(&format!("{field}.{key}"), value, reader)?;
                self.add(match field {
                    "headers" => redact::header(key, &value),
                    _ => redact::variable(key, &value),
                });
                Ok((key.clone(), value))
            })
            .collect()
    }

    fn text(&self, field: &str, text: &str) -> Result<String, ResolveError> {
        self.resolve(field, text, Reader::Program)
    }

    /// The text with its references resolved, as its reader needs it.
    fn resolve(&self, field: &str, text: &str, reader: Reader) -> Result<String, ResolveError> {
        let place = || format!("{}{field}", self.owner);
        let pieces = pieces(text).map_err(|malformed| ResolveError::Malformed {
            place: place(),
            message: malformed.message,
            hint: malformed.hint,
        })?;
        let mut resolved = String::with_capacity(text.len());
        for piece in pieces {
            match piece {
                Piece::Plain(plain) => resolved.push_str(plain),
                Piece::Env(name) => {
                    let value = self.variable(&place, name)?;
                    self.add(redact::reference(Source::Variable, name, &value));
                    resolved.push_str(&value);
                }
                Piece::Secret(name) => {
                    let value = self.secret(&place, name)?;
                    self.add(redact::reference(Source::Secret, name, &value));
                    resolved.push_str(&value);
                }
                Piece::Caller(placeholder) => {
                    let value = self.occasion.get(placeholder);
                    let value = value.ok_or_else(|| match placeholder {
                        Placeholder::Client => ResolveError::NoClient { place: place() },
                        Placeholder::Project | Placeholder::ProjectName => {
                            ResolveError::NoProject { place: place() }
                        }
                    })?;
                    // A repository chooses the name of its directory.
                    let unfit = |why| {
                        let (place, name) = (place(), value.clone().into_owned());
                        Err(ResolveError::Unfit { place, name, why })
                    };
                    match reader {
                        Reader::Remote => resolved.push_str(&percent::encode(&value, b"-._~/")),
                        _ if resolved.is_empty() && value.starts_with('-') => {
                            return unfit(Unfit::Option);
                        }
                        Reader::Interpreter => return unfit(Unfit::Script),
                        Reader::Engine if value.contains([':', ',']) => {
                            return unfit(Unfit::Mount);
                        }
                        Reader::Program | Reader::Engine => resolved.push_str(&value),
                    }
                }
            }
        }
        self.add(redact::literal(field, &resolved));
        Ok(resolved)
    }

    fn variable(&self, place: &dyn Fn() -> String, name: &str) -> Result<String, ResolveError> {
        let value = (self.env)(name).ok_or_else(|| ResolveError::Variable {
            place: place(),
            name: shown(name).to_owned(),
        })?;
        value.into_string().map_err(|_| ResolveError::VariableText {
            place: place(),
            name: shown(name).to_owned(),
        })
    }

    fn secret(&self, place: &dyn Fn() -> String, name: &str) -> Result<String, ResolveError> {
        let path = self.secrets.join(name);
        match read_secret(&path) {
            Ok(secret) => Ok(secret),
            Err(failure) => {
                let (place, name) = (place(), shown(name).to_owned());
                let path = self.secrets.join(&name);
                Err(match failure {
                    SecretFailure::Read(error) if error.kind() == io::ErrorKind::NotFound => {
                        ResolveError::NoSecret { place, name }
                    }
                    SecretFailure::Read(source) => ResolveError::Secret {
                        place,
                        name,
                        path,
                        source,
                    },
                    SecretFailure::Exposed(mode) => ResolveError::Exposed {
                        place,
                        name,
                        path,
                        mode,
                    },
                    SecretFailure::Content(what) => ResolveError::Content {
                        place,
                        name,
                        path,
                        what,
                    },
                })
            }
        }
    }
}

/// The name of a reference; redacted if it looks like a value that was pasted there.
fn shown(name: &str) -> &str {
    if is_pasted_value(name) {
        redact::REDACTED
    } else {
        name
    }
}

enum SecretFailure {
    Read(io::Error),
    Exposed(u32),
    Content(&'static str),
}

fn read_secret(path: &Path) -> Result<String, SecretFailure> {
    let file = open(path, Links::Follow).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => SecretFailure::Content("is not a regular file"),
        _ => SecretFailure::Read(error),
    })?;
    let found = Access::of(&file).map_err(SecretFailure::Read)?;
    if found.is_open() {
        return Err(SecretFailure::Exposed(found.mode));
    }
    if found.is_foreign() {
        return Err(SecretFailure::Content("belongs to another user"));
    }
    let bytes = read_open(&file, SECRET_MAX).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => SecretFailure::Content("is longer than 64 KiB"),
        _ => SecretFailure::Read(error),
    })?;
    let text = str::from_utf8(&bytes).map_err(|_| SecretFailure::Content("is not UTF-8 text"))?;
    let secret = text.trim_start_matches('\u{feff}').trim();
    match secret {
        "" => Err(SecretFailure::Content("is empty")),
        _ if secret.contains('\0') => Err(SecretFailure::Content("contains a NUL byte")),
        _ => Ok(secret.to_owned()),
    }
}
