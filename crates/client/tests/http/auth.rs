//! Signing in to a server over real sockets, with an authorization server that rotates refresh tokens and notices if one
//! is used twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use switchboard_client::{
    auth::{Credential, Error, InMemory, OAuth, Opened, Settings, State, Store, Stored},
    http::{Http, HttpConfigError},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};
use url::Url;

use crate::{
    Wire, device, modern,
    proof::{self, Proof},
    server::{Incoming, PATIENCE, Server},
};

/// The knowledge of the authorization server.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fault that a test switches on"
)]
pub(crate) struct Book {
    issued: u64,
    /// The tokens that are accepted.
    valid: BTreeSet<String>,
    pub(crate) refresh: BTreeSet<String>,
    used: BTreeSet<String>,
    /// Refresh tokens that were used twice.
    pub(crate) reused: Vec<String>,
    pub(crate) renewals: u32,
    /// Requests with a token that is not accepted.
    refused: u32,
    revoked: Vec<String>,
    pub(crate) requests: Vec<String>,
    /// The lifetime that it states.
    lifetime: Option<u64>,
    /// The authorization page refuses.
    denies: bool,
    /// The size of its metadata.
    padding: usize,
    /// The metadata of the server is not sent yet.
    is_held: bool,
    /// The token endpoint has a fault.
    pub(crate) is_down: bool,
    /// The token endpoint does its work, and answers later.
    pub(crate) holds_tokens: bool,
    /// The nonce that proofs have to contain.
    pub(crate) nonce: Option<&'static str>,
    /// The proofs so far, if tokens have to be bound to a key.
    pub(crate) bound: Option<Vec<Proof>>,
    /// The errors for a user who has not entered the code, the last one first.
    pub(crate) pending: Vec<&'static str>,
}

impl Book {
    /// Tokens have to be bound to a key, and proofs to contain this nonce.
    pub(crate) fn demanding(nonce: Option<&'static str>) -> Self {
        Self {
            bound: Some(Vec::new()),
            nonce,
            lifetime: Some(3_600),
            ..Self::default()
        }
    }

    /// The proofs so far.
    pub(crate) fn proofs(&self) -> &[Proof] {
        self.bound.as_deref().unwrap_or_default()
    }
}

/// An MCP server that requires tokens, and its authorization server.
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) book: Arc<Mutex<Book>>,
    _tasks: JoinSet<()>,
}

impl Place {
    pub(crate) async fn new(book: Book) -> Self {
        let mut server = Server::start().await;
        let base = server.url("");
        let book = Arc::new(Mutex::new(book));
        let mut tasks = JoinSet::new();
        let (place, at) = (Arc::clone(&book), base.clone());
        tasks.spawn(async move {
            let mut answers = JoinSet::new();
            loop {
                let incoming = server.wait().await;
                answers.spawn(answer(incoming, at.clone(), Arc::clone(&place)));
            }
        });
        Self {
            url: format!("{base}/mcp"),
            book,
            _tasks: tasks,
        }
    }

    pub(crate) fn oauth(&self, store: impl Store) -> OAuth {
        OAuth::start(&self.url, Settings::new("test"), store).unwrap()
    }

    pub(crate) async fn wire(&self, oauth: &OAuth) -> Wire {
        Wire::over(&Http::new(&self.url).unwrap().oauth(oauth).unwrap()).await
    }

    /// The server forgets the tokens that it has issued, as if they had expired.
    pub(crate) fn expire(&self) {
        self.book.lock().valid.clear();
    }
}

async fn answer(incoming: Incoming, base: String, book: Arc<Mutex<Book>>) {
    let (path, query) = match incoming.path.split_once('?') {
        Some((path, query)) => (path.to_owned(), query.to_owned()),
        None => (incoming.path.clone(), String::new()),
    };
    let parameters = |text: &[u8]| -> BTreeMap<String, String> {
        url::form_urlencoded::parse(text).into_owned().collect()
    };
    book.lock().requests.push(path.clone());
    let (status, headers, body) = match &*path {
        "/mcp" => {
            let (scheme, token) = incoming
                .header("authorization")
                .split_once(' ')
                .unwrap_or_default();
            let url = format!("{base}/mcp");
            let demand = proof::check(&incoming, &url, scheme, token, &mut book.lock());
            if let Some(demand) = demand {
                return incoming.respond(401, &demand, String::new()).await;
            }
            if book.lock().valid.contains(token) {
                return incoming.result(json!({ "tools": [] })).await;
            }
            book.lock().refused += u32::from(!token.is_empty());
            let metadata = format!("{base}/.well-known/oauth-protected-resource/mcp");
            let scheme = if book.lock().bound.is_some() {
                "DPoP"
            } else {
                "Bearer"
            };
            let challenge =
                format!("www-authenticate: {scheme} resource_metadata=\"{metadata}\"\r\n");
            (401, challenge, json!({}))
        }
        "/.well-known/oauth-protected-resource/mcp" => {
            while book.lock().is_held {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let metadata =
                json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base] });
            (200, String::new(), metadata)
        }
        "/.well-known/oauth-authorization-server" => (
            200,
            String::new(),
            json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "device_authorization_endpoint": format!("{base}/device"),
                "registration_endpoint": format!("{base}/register"),
                "revocation_endpoint": format!("{base}/revoke"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "padding": "x".repeat(book.lock().padding),
            }),
        ),
        "/register" => (201, String::new(), json!({ "client_id": "client" })),
        "/device" => (200, String::new(), device::codes(&base)),
        "/revoke" => {
            let form = parameters(&incoming.body);
            book.lock().revoked.push(form["token"].clone());
            (200, String::new(), json!({}))
        }
        "/authorize" => {
            let asked = parameters(query.as_bytes());
            let mut back: Url = asked["redirect_uri"].parse().unwrap();
            let result = if book.lock().denies {
                ("error", "access_denied")
            } else {
                ("code", "c0de")
            };
            let state = ("state", &*asked["state"]);
            back.query_pairs_mut().extend_pairs([result, state]);
            (302, format!("location: {back}\r\n"), json!({}))
        }
        "/token" if book.lock().is_down => (503, String::new(), json!({ "error": "overloaded" })),
        "/token" => {
            let url = format!("{base}/token");
            let answer = {
                let mut book = book.lock();
                match proof::check(&incoming, &url, "", "", &mut book) {
                    Some(demand) => (400, demand, json!({ "error": "use_dpop_nonce" })),
                    None => token(&parameters(&incoming.body), &mut book),
                }
            };
            while book.lock().holds_tokens {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            answer
        }
        _ => (404, String::new(), json!({})),
    };
    incoming.respond(status, &headers, body.to_string()).await;
}

fn token(form: &BTreeMap<String, String>, book: &mut Book) -> (u16, String, Value) {
    let invalid = (400, String::new(), json!({ "error": "invalid_grant" }));
    if let Some(error) = device::refusal(form, book) {
        return (400, String::new(), json!({ "error": error }));
    }
    if form["grant_type"] == "refresh_token" {
        let refresh = &form["refresh_token"];
        if !book.used.insert(refresh.clone()) {
            book.reused.push(refresh.clone());
            return invalid;
        }
        if !book.refresh.contains(refresh) {
            return invalid;
        }
        book.renewals += 1;
    }
    book.issued += 1;
    let (access, refresh) = (
        format!("access-{}", book.issued),
        format!("refresh-{}", book.issued),
    );
    book.valid.insert(access.clone());
    book.refresh.insert(refresh.clone());
    let mut body =
        json!({ "token_type": "Bearer", "access_token": access, "refresh_token": refresh });
    if book.bound.is_some() {
        body["token_type"] = "DPoP".into();
    }
    if let Some(lifetime) = book.lifetime {
        body["expires_in"] = lifetime.into();
    }
    (200, String::new(), body)
}

/// Sends a GET and returns the status, the `Location` header and the body.
async fn get(url: &str) -> (u16, Option<String>, String) {
    let url: Url = url.parse().unwrap();
    let address = (url.host_str().unwrap(), url.port().unwrap());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let target = &url[url::Position::BeforePath..];
    let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut text))
        .await
        .unwrap()
        .unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let location = head
        .lines()
        .find_map(|line| line.strip_prefix("location: "));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, location.map(str::to_owned), body.to_owned())
}

/// Opens the page of a sign-in and consents. Returns the page at the end.
async fn consent(opened: &Opened) -> (u16, String) {
    let (status, location, _) = get(opened.url()).await;
    assert_eq!(status, 302);
    let (status, _, page) = get(&location.unwrap()).await;
    (status, page)
}

async fn start(oauth: &OAuth) -> Opened {
    oauth.sign_in().await.unwrap().expect("a page for the user")
}

pub(crate) async fn sign_in(oauth: &OAuth) {
    let mut opened = start(oauth).await;
    let (status, page) = consent(&opened).await;
    assert_eq!(status, 200, "{page}");
    opened.finish().await.unwrap();
}

#[tokio::test]
async fn user_signs_in_with_a_browser() {
    let place = Place::new(Book::default()).await;
    let oauth = place.oauth(InMemory::default());
    let mut wire = place.wire(&oauth).await;
    wire.send(modern(1, "tools/list", json!({})));
    assert_eq!(wire.failure().await.1, Some(401));
    assert_eq!(oauth.state(), State::NeedsSignIn);
    let mut opened = start(&oauth).await;
    assert!(matches!(oauth.state(), State::AwaitingUser { .. }));
    let (status, page) = consent(&opened).await;
    assert!(status == 200 && page.contains("Signed in"), "{page}");
    opened.finish().await.unwrap();
    assert!(matches!(oauth.state(), State::SignedIn { .. }));
    // A request with a valid token needs no other.
    let before = place.book.lock().requests.len();
    for id in 2..5 {
        wire.send(modern(id, "tools/list", json!({})));
        assert_eq!(wire.message().await["id"], id);
    }
    assert_eq!(place.book.lock().requests.len(), before + 3);
}

#[tokio::test]
async fn many_requests_renew_a_token_once() {
    let place = Place::new(Book::default()).await;
    let oauth = place.oauth(InMemory::default());
    sign_in(&oauth).await;
    let mut wire = place.wire(&oauth).await;
    for round in 0..40 {
        if round % 2 == 0 {
            place.expire();
        }
        for id in 0..50 {
            wire.send(modern(round * 50 + id, "tools/list", json!({})));
        }
        for _ in 0..50 {
            let answer = wire.message().await;
            assert!(answer.get("result").is_some(), "{answer}");
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let book = place.book.lock();
    assert_eq!(book.reused, Vec::<String>::new());
    assert_eq!(book.renewals, 20);
}

#[tokio::test]
async fn expired_token_is_renewed_before_the_request() {
    let book = Book {
        lifetime: Some(1),
        ..Book::default()
    };
    let place = Place::new(book).await;
    let oauth = place.oauth(InMemory::default());
    sign_in(&oauth).await;
    let mut wire = place.wire(&oauth).await;
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    place.expire();
    for id in 0..20 {
        wire.send(modern(id, "tools/list", json!({})));
    }
    for _ in 0..20 {
        let answer = wire.message().await;
        assert!(answer.get("result").is_some(), "{answer}");
    }
    let book = place.book.lock();
    assert_eq!(book.renewals, 1);
    assert_eq!(book.refused, 0, "no request was sent with the old token");
}

/// A store of several processes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared(pub(crate) Arc<SharedStore>);

#[derive(Debug, Default)]
pub(crate) struct SharedStore {
    pub(crate) credential: Mutex<Option<Credential>>,
    pub(crate) lock: Arc<tokio::sync::Mutex<()>>,
    /// Nothing can be saved.
    pub(crate) is_full: AtomicBool,
}

impl Store for Shared {
    fn load(&self) -> Stored<'_, Option<Credential>> {
        Box::pin(async { Ok(self.0.credential.lock().clone()) })
    }

    fn save(&self, credential: Credential) -> Stored<'_, ()> {
        Box::pin(async move {
            if self.0.is_full.load(Relaxed) {
                return Err(io::Error::other("no space left"));
            }
            *self.0.credential.lock() = Some(credential);
            Ok(())
        })
    }

    fn lock(&self) -> Stored<'_, switchboard_client::auth::Lock> {
        let lock = Arc::clone(&self.0.lock);
        Box::pin(async { Ok(Box::new(lock.lock_owned().await) as switchboard_client::auth::Lock) })
    }
}

#[tokio::test]
async fn processes_never_use_a_refresh_token_twice() {
    let place = Place::new(Book::default()).await;
    let store = Shared::default();
    let first = place.oauth(store.clone());
    sign_in(&first).await;
    let mut wires = Vec::new();
    for _ in 0..8 {
        wires.push(place.wire(&place.oauth(store.clone())).await);
    }
    for round in 0..2 {
        place.expire();
        for wire in &mut wires {
            for id in 0..10 {
                wire.send(modern(round * 10 + id, "tools/list", json!({})));
            }
        }
        for wire in &mut wires {
            for _ in 0..10 {
                let answer = wire.message().await;
                assert!(answer.get("result").is_some(), "{answer}");
            }
        }
    }
    let book = place.book.lock();
    assert_eq!(book.reused, Vec::<String>::new());
    assert_eq!(book.renewals, 2);
}

#[tokio::test]
async fn tokens_that_cannot_be_saved_are_used() {
    let place = Place::new(Book::default()).await;
    let store = Shared::default();
    let oauth = place.oauth(store.clone());
    sign_in(&oauth).await;
    let mut wire = place.wire(&oauth).await;
    store.0.is_full.store(true, Relaxed);
    for id in 0..3 {
        place.expire();
        wire.send(modern(id, "tools/list", json!({})));
        let answer = wire.message().await;
        assert!(answer.get("result").is_some(), "{answer}");
    }
    assert!(matches!(
        oauth.sign_out().await,
        Err(Error::NotSaved { .. })
    ));
    assert_eq!(place.book.lock().reused, Vec::<String>::new());
}

#[tokio::test]
async fn tokens_are_saved_before_the_program_ends() {
    let place = Place::new(Book::default()).await;
    let store = Shared::default();
    store.0.is_full.store(true, Relaxed);
    let oauth = place.oauth(store.clone());
    let mut opened = start(&oauth).await;
    let (status, page) = consent(&opened).await;
    assert!(status == 400 && page.contains("no space left"), "{page}");
    assert!(matches!(opened.finish().await, Err(Error::NotSaved { .. })));
    // It can be used all the same.
    let mut wire = place.wire(&oauth).await;
    wire.send(modern(1, "tools/list", json!({})));
    assert_eq!(wire.message().await["id"], 1);
    store.0.is_full.store(false, Relaxed);
    oauth.settled().await;
    let stored = store.0.credential.lock().clone().unwrap();
    assert_eq!(stored.tokens.unwrap().access.expose(), "access-1");
}

#[tokio::test]
async fn request_waits_for_metadata_that_a_user_needs() {
    let place = Place::new(Book::default()).await;
    let oauth = place.oauth(InMemory::default());
    sign_in(&oauth).await;
    let mut wire = place.wire(&oauth).await;
    place.book.lock().is_held = true;
    let user = oauth.clone();
    let starting = tokio::spawn(async move { start(&user).await });
    let state = oauth.state();
    let state = timeout(PATIENCE, oauth.changed_from(&state)).await.unwrap();
    assert_eq!(state, State::Discovering);
    place.expire();
    wire.send(modern(1, "tools/list", json!({})));
    assert!(wire.is_quiet(100).await, "it waits for the renewal");
    place.book.lock().is_held = false;
    assert_eq!(wire.message().await["id"], 1);
    let opened = starting.await.unwrap();
    assert!(matches!(oauth.state(), State::AwaitingUser { .. }));
    drop(opened);
    assert_eq!(place.book.lock().renewals, 1);
}

#[tokio::test]
async fn sign_in_waits_for_a_renewal() {
    let place = Place::new(Book::default()).await;
    let oauth = place.oauth(InMemory::default());
    sign_in(&oauth).await;
    let mut wire = place.wire(&oauth).await;
    place.book.lock().is_held = true;
    place.expire();
    let state = oauth.state();
    wire.send(modern(1, "tools/list", json!({})));
    timeout(PATIENCE, oauth.changed_from(&state)).await.unwrap();
    let user = oauth.clone();
    let starting = tokio::spawn(async move { start(&user).await });
    place.book.lock().is_held = false;
    assert_eq!(wire.message().await["id"], 1);
    let mut opened = starting.await.unwrap();
    consent(&opened).await;
    opened.finish().await.unwrap();
}

#[tokio::test]
async fn outage_of_the_authorization_server_is_reported() {
    let place = Place::new(Book::default()).await;
    let oauth = place.oauth(InMemory::default());
    sign_in(&oauth).await;
    assert_eq!(oauth.outage(), None);
    place.expire();
    place.book.lock().is_down = true;
    let mut wire = place.wire(&oauth).await;
    wire.send(modern(1, "tools/list", json!({})));
    assert_eq!(wire.failure().await.1, Some(401));
    let outage = oauth.outage().unwrap();
    assert!(outage.to_string().contains("overloaded"), "{outage}");
    assert!(outage.is_temporary());
    assert!(matches!(oauth.state(), State::SignedIn { .. }));
    // A user who signs in ends it.
    place.book.lock().is_down = false;
    sign_in(&oauth).await;
    assert_eq!(oauth.outage(), None);
}

#[tokio::test]
async fn locked_store_costs_no_login() {
    let place = Place::new(Book::default()).await;
    let store = Shared::default();
    let oauth = place.oauth(store.clone());
    sign_in(&oauth).await;
    let mut wire = place.wire(&oauth).await;
    let held = Arc::clone(&store.0.lock).lock_owned().await;
    place.expire();
    wire.send(modern(1, "tools/list", json!({})));
    assert!(wire.is_quiet(300).await, "the token is in use elsewhere");
    assert_eq!(place.book.lock().renewals, 0);
    drop(held);
    assert_eq!(wire.message().await["id"], 1);
    assert_eq!(place.book.lock().renewals, 1);
}

#[tokio::test]
async fn sign_in_of_another_process_is_found() {
    let place = Place::new(Book::default()).await;
    let store = Shared::default();
    let (first, second) = (place.oauth(store.clone()), place.oauth(store));
    let mut wire = place.wire(&first).await;
    wire.send(modern(1, "tools/list", json!({})));
    assert_eq!(wire.failure().await.1, Some(401));
    sign_in(&second).await;
    wire.send(modern(2, "tools/list", json!({})));
    assert_eq!(wire.message().await["id"], 2);
}

#[tokio::test]
async fn calls_go_on_while_a_user_signs_in() {
    let place = Place::new(Book::default()).await;
    let oauth = place.oauth(InMemory::default());
    sign_in(&oauth).await;
    let mut wire = place.wire(&oauth).await;
    let mut opened = start(&oauth).await;
    place.expire();
    wire.send(modern(1, "tools/list", json!({})));
    assert_eq!(wire.message().await["id"], 1);
    assert!(matches!(oauth.state(), State::AwaitingUser { .. }));
    let (status, page) = consent(&opened).await;
    assert_eq!(status, 200, "{page}");
    opened.finish().await.unwrap();
}

#[tokio::test]
async fn abandoned_sign_in_frees_its_port() {
    let place = Place::new(Book::default()).await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let settings = Settings {
        redirect_uri: Some(format!("http://127.0.0.1:{port}/back")),
        ..Settings::new("test")
    };
    let oauth = OAuth::start(&place.url, settings, InMemory::default()).unwrap();
    for _ in 0..10 {
        drop(start(&oauth).await);
        let mut first = start(&oauth).await;
        let second = start(&oauth).await;
        assert_eq!(first.finish().await, Err(Error::Cancelled));
        drop(second);
    }
    let taken = std::net::TcpListener::bind(("127.0.0.1", port));
    if let Ok(taken) = taken {
        let error = oauth.sign_in().await.unwrap_err();
        assert!(matches!(error, Error::NoListener { .. }), "{error}");
        drop(taken);
    }
    sign_in(&oauth).await;
}

#[tokio::test]
async fn client_is_registered_once() {
    let place = Place::new(Book::default()).await;
    let oauth = place.oauth(InMemory::default());
    for _ in 0..3 {
        sign_in(&oauth).await;
    }
    let book = place.book.lock();
    let registrations = book.requests.iter().filter(|path| *path == "/register");
    assert_eq!(registrations.count(), 1);
}

#[tokio::test]
async fn sign_in_outlives_the_program() {
    let place = Place::new(Book::default()).await;
    let store = Shared::default();
    sign_in(&place.oauth(store.clone())).await;
    let before = place.book.lock().requests.len();
    let mut wire = place.wire(&place.oauth(store)).await;
    wire.send(modern(1, "tools/list", json!({})));
    wire.message().await;
    assert_eq!(place.book.lock().requests.len(), before + 1);
}

#[tokio::test]
async fn forged_callback_changes_nothing() {
    let place = Place::new(Book::default()).await;
    let oauth = place.oauth(InMemory::default());
    let mut opened = start(&oauth).await;
    let asked: BTreeMap<_, _> = Url::parse(opened.url())
        .unwrap()
        .query_pairs()
        .into_owned()
        .collect();
    let page = &asked["redirect_uri"];
    for forged in ["?code=evil&state=evil", "?error=access_denied", ""] {
        let (status, _, text) = get(&format!("{page}{forged}")).await;
        assert_eq!(status, 400, "{forged}: {text}");
        assert!(text.contains("does not belong to this sign-in"), "{text}");
    }
    assert_eq!(get(&page.replace("/callback", "/favicon.ico")).await.0, 404);
    assert_eq!(opened.callback("nonsense").await, Err(Error::WrongState));
    let (status, page) = consent(&opened).await;
    assert_eq!(status, 200, "{page}");
    opened.finish().await.unwrap();
}

#[tokio::test]
async fn copied_address_finishes_the_sign_in() {
    let place = Place::new(Book::default()).await;
    let oauth = place.oauth(InMemory::default());
    let mut opened = start(&oauth).await;
    let (_, location, _) = get(opened.url()).await;
    opened.callback(&location.unwrap()).await.unwrap();
    opened.finish().await.unwrap();
    assert!(matches!(oauth.state(), State::SignedIn { .. }));
}

#[tokio::test]
async fn denied_consent_is_told_to_the_user() {
    let book = Book {
        denies: true,
        ..Book::default()
    };
    let place = Place::new(book).await;
    let oauth = place.oauth(InMemory::default());
    let mut opened = start(&oauth).await;
    let (status, page) = consent(&opened).await;
    assert!(
        status == 400 && page.contains("access was denied"),
        "{page}"
    );
    assert!(matches!(opened.finish().await, Err(Error::Denied { .. })));
}

#[tokio::test]
async fn dropped_sign_in_is_cancelled() {
    let place = Place::new(Book::default()).await;
    let oauth = place.oauth(InMemory::default());
    let opened = start(&oauth).await;
    let asked: BTreeMap<_, _> = Url::parse(opened.url())
        .unwrap()
        .query_pairs()
        .into_owned()
        .collect();
    let page: Url = asked["redirect_uri"].parse().unwrap();
    let state = oauth.state();
    drop(opened);
    timeout(PATIENCE, oauth.changed_from(&state)).await.unwrap();
    let gone = async {
        while TcpStream::connect(("127.0.0.1", page.port().unwrap()))
            .await
            .is_ok()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, gone)
        .await
        .expect("nothing listens any more");
}

#[tokio::test]
async fn later_sign_in_replaces_an_earlier_one() {
    let place = Place::new(Book::default()).await;
    let oauth = place.oauth(InMemory::default());
    let mut first = start(&oauth).await;
    let mut second = start(&oauth).await;
    assert_eq!(first.finish().await, Err(Error::Cancelled));
    consent(&second).await;
    second.finish().await.unwrap();
}

#[tokio::test]
async fn huge_metadata_is_refused() {
    let book = Book {
        padding: 2 * 1024 * 1024,
        ..Book::default()
    };
    let place = Place::new(book).await;
    let error = place
        .oauth(InMemory::default())
        .sign_in()
        .await
        .unwrap_err();
    assert!(error.to_string().contains("larger than"), "{error}");
}

#[tokio::test]
async fn signing_out_revokes_the_tokens() {
    let place = Place::new(Book::default()).await;
    let oauth = place.oauth(InMemory::default());
    sign_in(&oauth).await;
    oauth.sign_out().await.unwrap();
    assert_eq!(place.book.lock().revoked, ["refresh-1", "access-1"]);
    let mut wire = place.wire(&oauth).await;
    wire.send(modern(1, "tools/list", json!({})));
    assert_eq!(wire.failure().await.1, Some(401));
}

#[tokio::test]
async fn tokens_stay_with_their_server() {
    let place = Place::new(Book::default()).await;
    let oauth = place.oauth(InMemory::default());
    let other = Http::new("https://evil.example/mcp").unwrap();
    assert_eq!(
        other.oauth(&oauth).unwrap_err(),
        HttpConfigError::OtherServer
    );
    let printed = format!("{oauth:?}");
    sign_in(&oauth).await;
    assert!(
        !format!("{printed}{oauth:?}").contains("access-"),
        "{oauth:?}"
    );
}
