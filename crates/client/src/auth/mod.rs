//! Signing in to servers with OAuth.
//!
//! [`OAuth`] is the sign-in to one server. It attaches tokens to the requests of a transport, renews them before they
//! expire, and lets a user sign in with a browser. The steps are those of [`switchboard_auth`]; this module adds the
//! requests, the clock, and a page on this machine that the browser comes back to.
//!
//! ```no_run
//! use switchboard_client::{Client, auth::{OAuth, Settings, InMemory}, http::Http};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let url = "https://mcp.example.com/mcp";
//! let oauth = OAuth::start(url, Settings::new("My agent"), InMemory::default())?;
//! if let Some(mut opened) = oauth.sign_in().await? {
//!     println!("Open {} in a browser.", opened.url());
//!     opened.finish().await?;
//! }
//! let client = Client::builder("my-agent", "1.0").connect(Http::new(url)?.oauth(&oauth)?);
//! # Ok(())
//! # }
//! ```

mod assertion;
mod fetch;
mod listener;
mod renewal;
mod sign;
mod store;
mod task;
mod token;

use std::{
    fmt,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use reqwest::{
    Response, StatusCode,
    header::{HeaderValue, WWW_AUTHENTICATE},
};
pub use switchboard_auth::{
    Authentication, Challenge, ConfiguredClient, Credential, Error, Grant, IdentityProvider,
    Renewed, ResourceParameter, Secret, Settings, State, Tokens, UserCode,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};
use url::{Origin, Url};

use self::task::{Command, Task};
pub(crate) use self::token::Token;
pub use self::{
    renewal::{Renewal, Renewing},
    store::{InMemory, Lock, Store, Stored},
};
use crate::transport::http::HttpConfigError;

/// The longest time that a request waits for a new token. The work goes on without it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most commands that wait for the task.
const COMMANDS: usize = 256;

/// The sign-in to one server. Clones share it.
///
/// Its task ends once all clones and transports are dropped, and no token is being fetched.
#[derive(Clone)]
pub struct OAuth {
    /// The origin of the server, which alone gets the tokens.
    origin: Origin,
    view: watch::Receiver<View>,
    commands: mpsc::Sender<Command>,
}

/// The sign-in as requests see it.
#[derive(Debug, Clone, PartialEq)]
struct View {
    state: State,
    token: Option<Token>,
    /// The time at which the token expires, in seconds since 1970, if it can be renewed.
    renewable_until: Option<u64>,
    /// It matters if the server accepts the token.
    is_unproven: bool,
    /// The stored credential is not known yet.
    is_loading: bool,
    /// The reason why the tokens cannot be renewed at the moment.
    outage: Option<Error>,
}

/// A sign-in that a user has to finish in a browser. Dropping it cancels the sign-in.
#[derive(Debug)]
pub struct Opened {
    url: Url,
    code: Option<UserCode>,
    until: u64,
    number: u64,
    outcome: oneshot::Receiver<Result<(), Error>>,
    commands: mpsc::Sender<Command>,
}

impl OAuth {
    /// Starts the sign-in to the server at this URL, with the credential in the store. Must be called within a Tokio
    /// runtime.
    pub fn start(
        url: &str,
        settings: Settings,
        store: impl Store,
    ) -> Result<Self, HttpConfigError> {
        let (oauth, task) = Self::with_task(url, settings, Arc::new(store))?;
        tokio::spawn(task.run());
        Ok(oauth)
    }

    /// A sign-in, and the task that has to run for it.
    fn with_task(
        url: &str,
        settings: Settings,
        store: Arc<dyn Store>,
    ) -> Result<(Self, Task), HttpConfigError> {
        let server = crate::transport::http::server_url(url)?;
        let origin = server.origin();
        let (commands, orders) = mpsc::channel(COMMANDS);
        let (publish, view) = watch::channel(View {
            state: State::Unknown,
            token: None,
            renewable_until: None,
            is_unproven: false,
            is_loading: true,
            outage: None,
        });
        let channel = (orders, commands.downgrade());
        let task = Task::new(server, settings, store, publish, channel)?;
        let oauth = Self {
            origin,
            view,
            commands,
        };
        Ok((oauth, task))
    }

    /// The state.
    pub fn state(&self) -> State {
        self.view.borrow().state.clone()
    }

    /// The reason why the tokens cannot be renewed at the moment, if it is one that may end by itself: the authorization
    /// server cannot be reached, for example. A new sign-in would not help.
    pub fn outage(&self) -> Option<Error> {
        self.view.borrow().outage.clone()
    }

    /// Waits until there is no such reason.
    pub async fn outage_over(&self) {
        let mut view = self.view.clone();
        // The task ends after this, which keeps its channel open.
        let _ = view.wait_for(|view| view.outage.is_none()).await;
    }

    /// Waits until the state differs from this one, and returns it.
    pub async fn changed_from(&self, state: &State) -> State {
        let mut view = self.view.clone();
        match view.wait_for(|view| view.state != *state).await {
            Ok(view) => view.state.clone(),
            // The task ends after this, which keeps its channel open.
            Err(_) => self.state(),
        }
    }

    /// Starts a sign-in, and replaces one that is in progress. Returns the page that the user has to open; `None` if the
    /// client has signed in for itself.
    pub async fn sign_in(&self) -> Result<Option<Opened>, Error> {
        let (answer, answered) = oneshot::channel();
        self.order(Command::SignIn(answer)).await;
        answered.await.unwrap_or(Err(Error::Cancelled))
    }

    /// Revokes the tokens as far as the authorization server can, and forgets them.
    pub async fn sign_out(&self) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        self.order(Command::SignOut(answer)).await;
        answered.await.unwrap_or(Err(Error::Cancelled))
    }

    /// Waits until no token is being exchanged, and all are stored as far as possible. Await this before the program ends,
    /// or a refresh token that was used may be all that is stored.
    pub async fn settled(&self) {
        let (answer, answered) = oneshot::channel();
        self.order(Command::Settle(answer)).await;
        let _ = answered.await;
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    async fn order(&self, command: Command) {
        // The task ends after this, which keeps its channel open.
        let _ = self.commands.send(command).await;
    }

    /// The token of the next request. One that has expired is renewed first.
    pub(crate) async fn token(&self) -> Option<Token> {
        {
            let view = self.view.borrow();
            if !view.is_loading && view.renewable_until.is_none_or(|until| now() < until) {
                return view.token.clone();
            }
        }
        let renewed = async {
            let mut view = self.view.clone();
            let _ = view.wait_for(|view| !view.is_loading).await;
            let (answer, answered) = oneshot::channel();
            self.order(Command::Renew(answer)).await;
            let _ = answered.await;
        };
        // An old token is better than none: the server's answer says what is wrong.
        let _ = timeout(PATIENCE, renewed).await;
        self.view.borrow().token.clone()
    }

    /// Reports that the server refused a request with this token. Returns the one to repeat it with; `None` if a
    /// user has to sign in.
    pub(crate) async fn refused(&self, used: Option<Token>, response: &Response) -> Option<Token> {
        let headers = response.headers().get_all(WWW_AUTHENTICATE).iter();
        let challenge = Challenge::read(headers.filter_map(|value| value.to_str().ok()));
        let (answer, answered) = oneshot::channel();
        let refusal = Refusal {
            used: used.as_ref().map(|token| token.header().clone()),
            challenge,
            status: response.status(),
            address: response.remote_addr().map(|address| address.ip()),
        };
        let renewed = async {
            self.order(Command::Refused(refusal, answer)).await;
            let _ = answered.await;
        };
        let _ = timeout(PATIENCE, renewed).await;
        let token = self.view.borrow().token.clone();
        token.filter(|token| Some(token) != used.as_ref())
    }

    /// Reports that the server accepted a request with this token, which it may have refused with a former one.
    pub(crate) fn accepted(&self, used: Option<&Token>, is_repeated: bool) {
        let is_news = {
            let view = self.view.borrow();
            let is_signed_out = matches!(view.state, State::SignedOut { .. });
            let is_current = view.token.is_some() && view.token.as_ref() == used;
            view.is_unproven && is_current && (is_repeated || is_signed_out)
        };
        if is_news {
            // A full queue has reports like this one.
            let _ = self.commands.try_send(Command::Accepted);
        }
    }
}

/// A request that the server refused.
#[derive(Debug)]
struct Refusal {
    /// The header of the request.
    used: Option<HeaderValue>,
    challenge: Challenge,
    status: StatusCode,
    /// The address of the server.
    address: Option<IpAddr>,
}

/// Tests if a server refused a request for the lack of a valid token, or of scopes.
pub(crate) fn is_refusal(response: &Response) -> bool {
    match response.status() {
        StatusCode::UNAUTHORIZED => true,
        StatusCode::FORBIDDEN => {
            let headers = response.headers().get_all(WWW_AUTHENTICATE).iter();
            Challenge::read(headers.filter_map(|value| value.to_str().ok())).needs_scope()
        }
        _ => false,
    }
}

impl Opened {
    /// The page to open in a browser.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// The code that the user has to enter on the page, if the settings say [`Grant::DeviceCode`]. Any browser will do
    /// then, also on another device.
    pub fn code(&self) -> Option<&UserCode> {
        self.code.as_ref()
    }

    /// The time until which the user has to finish.
    pub fn until(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.until)
    }

    /// Reports the address that the browser was redirected to. Only needed if the browser cannot reach this machine, and
    /// the user copies the address. An address that does not belong to this sign-in is an error, and the sign-in goes
    /// on.
    pub async fn callback(&self, url: &str) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        let command = Command::Callback {
            number: self.number,
            url: url.to_owned(),
            answer,
        };
        let _ = self.commands.send(command).await;
        answered.await.unwrap_or(Err(Error::Cancelled))
    }

    /// Waits until the user has finished, and the tokens are stored. May be cancelled, and called again.
    pub async fn finish(&mut self) -> Result<(), Error> {
        if self.outcome.is_terminated() {
            // The result was returned already.
            return Err(Error::Cancelled);
        }
        (&mut self.outcome).await.unwrap_or(Err(Error::Cancelled))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // A full queue means that the sign-in ends when its time is up.
        let _ = self.commands.try_send(Command::Cancel(self.number));
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OAuth").field(&self.state()).finish()
    }
}

/// The time in seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
