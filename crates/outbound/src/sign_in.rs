//! Signing in to remote servers with OAuth.
//!
//! There is one sign-in per entry of the configuration, which all connections to the server share. Its credential is kept
//! in the vault, where a command that signs in while no gateway runs finds it as well.

mod credential;
mod renewal;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use reqwest::Url;
use switchboard_base::{health::Reason, random, scrub, time};
use switchboard_client::{
    auth::{
        ConfiguredClient, Credential, Error as AuthError, Grant as AuthGrant, IdentityProvider,
        OAuth, Opened, ResourceParameter as AuthResource, Settings, State, UserCode,
    },
    http::HttpConfigError,
};
use switchboard_config::{
    Config, Environment, Grant, Home, Occasion, Remote, ResolveError, ResourceParameter, Server,
    Transport, shell_word,
};
use switchboard_redact::TooMany;
use switchboard_rest::logins::{Login, LoginState};
use switchboard_secrets::{KEY_VARIABLE, KeySource, Vault};
use switchboard_wire::with_hint;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};

use self::credential::Kept;
pub use self::renewal::{RENEWAL_ARGUMENT, renewal_main};

/// The name of the program that authorization servers show to users.
const CLIENT_NAME: &str = "Switchboard";

/// The most addresses that users have pasted and that wait to be checked.
const CALLBACKS: usize = 4;

/// The sign-ins to remote servers.
#[derive(Debug)]
pub struct SignIns {
    vault: Arc<Vault>,
    /// The program that renews tokens.
    program: PathBuf,
    known: Mutex<BTreeMap<Arc<str>, Known>>,
    /// The last attempt of a user, for each server.
    attempts: Mutex<BTreeMap<Arc<str>, Attempt>>,
}

/// The sign-in to a server.
#[derive(Debug)]
struct Known {
    /// The entry that it is for, without its headers.
    entry: Remote,
    oauth: OAuth,
}

/// A sign-in that a user finishes in a browser.
#[derive(Debug, Clone)]
struct Attempt {
    /// Missing if no user is needed.
    page: Option<Page>,
    outcome: watch::Receiver<Option<Result<(), AuthError>>>,
    callbacks: mpsc::Sender<Callback>,
}

/// The address that a browser was redirected to, pasted by a user.
type Callback = (String, oneshot::Sender<Result<(), AuthError>>);

/// The page that a user has to open.
#[derive(Debug, Clone)]
pub struct Page {
    /// Identifies the sign-in.
    pub id: String,
    /// Its address.
    pub url: String,
    /// The code that the user enters there, in any browser.
    pub code: Option<UserCode>,
    /// The time until which the user has to finish.
    pub until: SystemTime,
}

impl Page {
    /// The address that a browser opens: of the page that knows the code already, if there is one.
    pub fn address(&self) -> &str {
        let complete = self.code.as_ref().and_then(|code| code.complete.as_ref());
        complete.map_or(&self.url, |url| url.as_str())
    }
}

/// The reason why a user cannot sign in to a server.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// It is a program or a container.
    #[error("server `{0}` runs on this machine, so there is no sign-in")]
    Local(Arc<str>),
    /// Its entry has a credential already.
    #[error("the entry of server `{0}` has the header `Authorization`, so there is no sign-in")]
    Header(Arc<str>),
    /// It is disabled.
    #[error("server `{0}` is disabled")]
    Disabled(Arc<str>),
    /// The user has to approve it first.
    #[error("server `{0}` is held until you approve it")]
    Held(Arc<str>),
    /// No sign-in is in progress.
    #[error("no sign-in to server `{0}` is in progress")]
    NotStarted(Arc<str>),
    /// Its entry cannot be used.
    #[error(transparent)]
    Entry(#[from] ResolveError),
    /// Its entry has too many secrets.
    #[error("it has {0}")]
    TooMany(#[from] TooMany),
    /// Its address cannot be used.
    #[error(transparent)]
    Address(#[from] HttpConfigError),
    /// The sign-in failed.
    #[error(transparent)]
    Failed(#[from] AuthError),
    /// The gateway is stopping.
    #[error("the gateway is stopping")]
    Stopped,
}

impl SignInError {
    /// Advice for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Local(_) => Some("servers like this get credentials through `env`".to_owned()),
            Self::Header(_) => Some("remove the header to sign in instead".to_owned()),
            Self::Disabled(name) => Some(format!(
                "enable it with `switchboard enable {}`",
                shell_word(name)
            )),
            Self::Held(name) => Some(format!(
                "review and approve it with `switchboard trust approve {}`",
                shell_word(name)
            )),
            Self::NotStarted(name) => {
                let name = shell_word(name);
                Some(format!("start one with `switchboard login {name}`"))
            }
            Self::Entry(error) => error.hint().map(Into::into),
            Self::TooMany(error) => Some(error.hint().to_owned()),
            Self::Address(_) | Self::Stopped => None,
            Self::Failed(error) => Some(error.hint().to_owned()),
        }
    }

    /// The message for a person, with the words of the authorization server.
    pub fn told(&self) -> String {
        let said = match self {
            Self::Failed(error) => error.said(),
            _ => None,
        };
        let message = match said {
            Some(said) => format!("{self} (it said: {said})"),
            None => self.to_string(),
        };
        scrub::text(&message).into_owned()
    }
}

/// The reason of an outage. Agents do not read the words of the authorization server.
pub(crate) fn of_outage(error: &AuthError) -> Reason {
    match error {
        AuthError::Refused { request, code, .. } => {
            let public = format!("the authorization server refused {request}");
            Reason::new(&public, Some(code))
        }
        error => Reason::new(&error.to_string(), error.said()),
    }
}

/// The advice to sign in to a server.
pub(crate) fn action(name: &str) -> String {
    format!("run `switchboard login {}`", shell_word(name))
}

/// The use of a server's sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    SignIn,
    /// Only the authorization server of the stored sign-in is contacted.
    SignOut,
}

/// The remote server that an entry describes, with its references resolved, if a user can sign in to it, or out. Reads
/// files.
pub(crate) fn remote(
    name: &str,
    server: &Server,
    purpose: Purpose,
    home: &Home,
    environment: &Environment,
) -> Result<Remote, SignInError> {
    if purpose == Purpose::SignIn {
        check(name, server)?;
        if !server.enabled {
            return Err(SignInError::Disabled(name.into()));
        }
        // Nothing is sent to a server that another program has added.
        if server.hold {
            return Err(SignInError::Held(name.into()));
        }
    }
    if !matches!(server.transport, Transport::Remote(_)) {
        return Err(SignInError::Local(name.into()));
    }
    let occasion = Occasion::default();
    let resolved = server.resolve(name, &occasion, &home.secrets(), &|variable| {
        environment.get(variable).map(Into::into)
    })?;
    // Registered before any error message can contain one of them.
    scrub::register(scrub::Owner::Server(name), &resolved.secrets)?;
    match resolved.value.transport {
        Transport::Remote(remote) => Ok(remote),
        Transport::BuiltIn | Transport::Command(_) | Transport::Container(_) => {
            Err(SignInError::Local(name.into()))
        }
    }
}

/// Checks that a user can sign in to a server.
pub(crate) fn check(name: &str, server: &Server) -> Result<(), SignInError> {
    match &server.transport {
        Transport::Remote(remote) if remote.has_authorization() => {
            Err(SignInError::Header(name.into()))
        }
        Transport::Remote(_) => Ok(()),
        Transport::BuiltIn | Transport::Command(_) | Transport::Container(_) => {
            Err(SignInError::Local(name.into()))
        }
    }
}

impl Known {
    /// Tests if a stored credential is for this server.
    fn owns(&self, credential: &Credential) -> bool {
        let url = Url::parse(&self.entry.url);
        url.is_ok_and(|url| url.as_str() == credential.server)
    }
}

impl SignIns {
    /// The sign-ins of a home. `program` calls [`renewal_main`]; one that does not has tokens renewed in this process.
    pub fn new(home: &Home, environment: &Environment, program: PathBuf) -> Self {
        let variable = environment.get(KEY_VARIABLE);
        let variable = variable.map(|value| value.to_string_lossy().into_owned());
        let key = KeySource::choose(variable, home.vault_key());
        Self {
            vault: Arc::new(Vault::new(home.vault(), key)),
            program,
            known: Mutex::default(),
            attempts: Mutex::default(),
        }
    }

    /// The sign-in to a server. Must be called within a Tokio runtime.
    pub(crate) fn of(&self, name: &Arc<str>, remote: &Remote) -> Result<OAuth, HttpConfigError> {
        let entry = Remote {
            headers: BTreeMap::new(),
            ..remote.clone()
        };
        let mut known = self.known.lock();
        if let Some(known) = known.get(name).filter(|known| known.entry == entry) {
            return Ok(known.oauth.clone());
        }
        let store = Kept::new(Arc::clone(&self.vault), name, Some(self.program.clone()));
        let oauth = OAuth::start(&entry.url, settings(&entry), store)?;
        let new = Known {
            entry,
            oauth: oauth.clone(),
        };
        known.insert(Arc::clone(name), new);
        // Its page belongs to the former entry.
        self.attempts.lock().remove(name);
        Ok(oauth)
    }

    /// Forgets the sign-ins to servers that are not in the configuration. Their credentials are kept.
    pub(crate) fn retain(&self, config: &Config) {
        let is_there = |name: &Arc<str>| config.servers.contains_key(&**name);
        self.known.lock().retain(|name, _| is_there(name));
        self.attempts.lock().retain(|name, _| is_there(name));
    }

    /// Starts a sign-in, in place of one in progress. Returns the page that the user has to open; `None` if the client has
    /// signed in for itself.
    pub async fn start(
        &self,
        name: &Arc<str>,
        remote: &Remote,
    ) -> Result<Option<Page>, SignInError> {
        let oauth = self.of(name, remote)?;
        let (publish, outcome) = watch::channel(None);
        let (callbacks, pasted) = mpsc::channel(CALLBACKS);
        let begun = |page| {
            let attempt = Attempt {
                page,
                outcome,
                callbacks,
            };
            self.attempts.lock().insert(Arc::clone(name), attempt);
        };
        let Some(opened) = oauth.sign_in().await? else {
            publish.send_replace(Some(Ok(())));
            begun(None);
            return Ok(None);
        };
        let page = Page {
            id: format!("{:016x}", random::number()),
            url: opened.url().to_owned(),
            code: opened.code().cloned(),
            until: opened.until(),
        };
        begun(Some(page.clone()));
        tokio::spawn(attend(opened, pasted, publish));
        Ok(Some(page))
    }

    /// The page of a sign-in that is in progress.
    pub(crate) fn page(&self, name: &Arc<str>) -> Option<Page> {
        let attempt = self.attempt(name).ok()?;
        let is_open = attempt.outcome.borrow().is_none() && !attempt.callbacks.is_closed();
        attempt.page.filter(|_| is_open)
    }

    /// Waits for the end of the sign-in that was started last. The error is its outcome.
    pub async fn finish(&self, name: &Arc<str>) -> Result<(), SignInError> {
        let mut outcome = self.attempt(name)?.outcome;
        let ended = outcome.wait_for(Option::is_some).await;
        // The task ends only with an outcome, unless the process ends.
        let ended = ended.ok().and_then(|outcome| outcome.clone());
        Ok(ended.unwrap_or(Err(AuthError::Cancelled))?)
    }

    /// Reports the address that the user's browser was redirected to, if it could not open the page on this machine. An
    /// address that does not belong to the sign-in is an error, and the sign-in goes on.
    pub async fn callback(&self, name: &Arc<str>, url: String) -> Result<(), SignInError> {
        let callbacks = self.attempt(name)?.callbacks;
        let (answer, answered) = oneshot::channel();
        let ended = || SignInError::NotStarted(Arc::clone(name));
        let sent = callbacks.send((url.trim().to_owned(), answer)).await;
        sent.map_err(|_| ended())?;
        Ok(answered.await.map_err(|_| ended())??)
    }

    /// Revokes the tokens as far as the authorization server can, and forgets them.
    pub async fn sign_out(&self, name: &Arc<str>, remote: &Remote) -> Result<(), SignInError> {
        Ok(self.of(name, remote)?.sign_out().await?)
    }

    /// The reason why the tokens of a server cannot be renewed at the moment.
    pub(crate) fn outage(&self, name: &str) -> Option<AuthError> {
        self.known.lock().get(name)?.oauth.outage()
    }

    /// Waits until no token is being exchanged, so that the process can end.
    pub async fn settled(&self) {
        let known: Vec<_> = {
            let known = self.known.lock();
            known.values().map(|known| known.oauth.clone()).collect()
        };
        let settling = known
            .into_iter()
            .map(|oauth| async move { oauth.settled().await });
        settling.collect::<JoinSet<_>>().join_all().await;
    }

    /// The sign-ins to all servers of a configuration. Reads files.
    pub fn list(&self, config: &Config) -> Vec<Login> {
        let remotes = config
            .servers
            .iter()
            .filter(|(name, server)| check(name, server).is_ok());
        remotes.map(|(name, _)| self.show(name)).collect()
    }

    /// The sign-in to one server. Reads files.
    pub fn show(&self, name: &str) -> Login {
        let mut stored = credential::load(&self.vault, name);
        let state = {
            let known = self.known.lock();
            let known = known.get(name);
            if let (Some(known), Ok(found)) = (known, &mut stored) {
                // The user has changed the address since.
                found.take_if(|credential| !known.owns(credential));
            }
            known.map(|known| known.oauth.state())
        };
        let mut shown = Login {
            server: name.to_owned(),
            ..Login::default()
        };
        let has_tokens = match &stored {
            Ok(Some(credential)) => {
                shown.issuer = Some(credential.issuer.clone());
                shown.scopes.clone_from(&credential.scopes);
                if let Some(tokens) = &credential.tokens {
                    shown.issued_at = Some(time::shown(at(tokens.issued)));
                    shown.expires_at = tokens.expires.map(|expires| time::shown(at(expires)));
                    shown.is_renewed = tokens.refresh.is_some();
                    if !tokens.scopes.is_empty() {
                        shown.scopes.clone_from(&tokens.scopes);
                    }
                }
                credential.tokens.is_some()
            }
            Ok(None) => false,
            Err(error) => {
                let cause = std::error::Error::source(error);
                let cause = cause.map(|cause| format!("{error}: {cause}"));
                let message = cause.unwrap_or_else(|| error.to_string());
                shown.reason = Some(with_hint(message, Some(error.hint())));
                false
            }
        };
        shown.state = match state {
            _ if stored.is_err() => LoginState::from("unreadable"),
            Some(State::AwaitingUser { .. }) => "signing in".into(),
            Some(State::SignedOut { reason }) => {
                shown.reason = Some(with_hint(&reason, Some(reason.hint())));
                "signed out".into()
            }
            _ if has_tokens => "signed in".into(),
            Some(State::NeedsSignIn) => "needs sign-in".into(),
            _ if matches!(stored, Ok(Some(_))) => "signed out".into(),
            _ => "none".into(),
        };
        shown
    }

    fn attempt(&self, name: &Arc<str>) -> Result<Attempt, SignInError> {
        let attempts = self.attempts.lock();
        let attempt = attempts.get(name).cloned();
        attempt.ok_or_else(|| SignInError::NotStarted(Arc::clone(name)))
    }
}

/// Waits for the end of a sign-in, and passes on what its user pastes.
async fn attend(
    mut opened: Opened,
    mut pasted: mpsc::Receiver<Callback>,
    publish: watch::Sender<Option<Result<(), AuthError>>>,
) {
    let outcome = loop {
        tokio::select! {
            outcome = opened.finish() => break outcome,
            callback = pasted.recv() => match callback {
                Some((url, answer)) => {
                    let _ = answer.send(opened.callback(&url).await);
                }
                // The configuration has changed.
                None => break Err(AuthError::Cancelled),
            },
        }
    };
    publish.send_replace(Some(outcome));
}

/// The settings of the sign-in to a server, whose references are resolved.
fn settings(remote: &Remote) -> Settings {
    let oauth = &remote.oauth;
    let client = oauth.client_id.clone().map(|id| ConfiguredClient {
        secret: oauth.client_secret.as_deref().map(Into::into),
        private_key: oauth.private_key.as_deref().map(Into::into),
        key_id: oauth.key_id.clone(),
        issuer: oauth.issuer.clone(),
        ..ConfiguredClient::new(id)
    });
    let mut settings = Settings::new(CLIENT_NAME);
    settings.client = client;
    settings
        .client_document
        .clone_from(&oauth.client_metadata_url);
    settings.redirect_uri.clone_from(&oauth.redirect_uri);
    settings.scopes.clone_from(&oauth.scopes);
    settings.resource = match &oauth.resource {
        ResourceParameter::Published => AuthResource::Published,
        ResourceParameter::Fixed(resource) => AuthResource::Fixed(resource.clone()),
        ResourceParameter::Omitted => AuthResource::Omitted,
    };
    settings.metadata.clone_from(&oauth.metadata_url);
    settings.assumes_pkce = oauth.assume_pkce;
    let parameters = oauth.authorization_parameters.clone();
    settings.parameters = parameters.into_iter().collect();
    settings.grant = match oauth.grant {
        Grant::AuthorizationCode => AuthGrant::AuthorizationCode,
        Grant::DeviceCode => AuthGrant::DeviceCode,
        Grant::ClientCredentials => AuthGrant::ClientCredentials,
        Grant::JwtBearer => AuthGrant::JwtBearer,
    };
    let provider = oauth.identity_provider.as_ref();
    let file = provider.map(|provider| &provider.id_token_file);
    settings.assertion_file = file.or(oauth.assertion_file.as_ref()).map(Into::into);
    settings.identity_provider = provider.map(|provider| IdentityProvider {
        token_url: provider.token_url.clone(),
        client_id: provider.client_id.clone(),
        client_secret: provider.client_secret.as_deref().map(Into::into),
    });
    settings
}

/// The time at this number of seconds since 1970. One that this machine cannot represent is now.
fn at(seconds: u64) -> SystemTime {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    time.unwrap_or_else(SystemTime::now)
}
