//! Tokens are renewed while many clients call, and while the gateway is killed. The authorization server rotates refresh
//! tokens: one that is used twice ends the sign-in.

use std::{
    collections::BTreeSet,
    env, fs,
    net::SocketAddr,
    path::Path,
    sync::{
        Barrier, Mutex, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use rustix::process::Signal;
use serde_json::{Value, json};
use switchboard_test_support::{
    Dice, Home, Serve, Tools,
    http::Http,
    mcp::Client,
    processes::{self, Person},
    provider::Provider,
    until,
};

use crate::login::{LOGIN, assert_no_token, provider, sign_in, sign_in_with};

/// The number of clients.
const CLIENTS: usize = 50;
/// The numbers of kills and of expired tokens, unless the environment says otherwise.
const KILLS: u64 = 12;
const EXPIRIES: u64 = 20;

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().and_then(|text| text.parse().ok())
}

fn arguments() -> Value {
    json!({ "a": 1, "b": 2 })
}

/// A gateway that clients can reach.
#[derive(Clone)]
struct Target {
    address: SocketAddr,
    token: String,
    /// The number of gateways before it.
    number: u64,
}

impl Target {
    fn new(serve: &Serve<'_>, number: u64) -> Self {
        Self {
            address: serve.address,
            token: serve.token(),
            number,
        }
    }

    fn open(&self) -> std::io::Result<Client> {
        Client::try_open_at(Http::try_connect(self.address, &self.token)?, "/mcp")
    }
}

/// The clients of gateways that are killed.
#[derive(Default)]
struct Callers {
    target: RwLock<Option<Target>>,
    /// The number of gateways that are dead, or about to be.
    killed: AtomicU64,
    has_ended: AtomicBool,
    calls: AtomicU64,
    cut_off: AtomicU64,
    failed: Mutex<Vec<String>>,
}

impl Callers {
    fn call_at(&self, target: Option<Target>) {
        *self.target.write().unwrap() = target;
    }

    fn have_failed(&self) -> bool {
        !self.failed.lock().unwrap().is_empty()
    }

    /// Calls until the end. Only a call whose gateway is killed may get no answer.
    fn call(&self) {
        let mut client = None;
        while !self.has_ended.load(SeqCst) {
            let Some(target) = self.target.read().unwrap().clone() else {
                client = None;
                thread::sleep(Duration::from_millis(5));
                continue;
            };
            let answer = match client.take() {
                Some((number, open)) if number == target.number => Ok(open),
                _ => target.open(),
            };
            let answer = answer.and_then(|mut open| {
                let outcome = open.try_call("notes__add", arguments())?;
                client = Some((target.number, open));
                Ok(outcome)
            });
            match answer {
                Ok(outcome) if outcome == Ok(sum()) => {
                    self.calls.fetch_add(1, SeqCst);
                }
                Ok(other) => self.failed.lock().unwrap().push(format!("{other:?}")),
                Err(_) if target.number < self.killed.load(SeqCst) => {
                    self.cut_off.fetch_add(1, SeqCst);
                    thread::sleep(Duration::from_millis(5));
                }
                Err(error) => self.failed.lock().unwrap().push(error.to_string()),
            }
        }
    }
}

/// Ends the clients, also if a test fails.
struct Ending<'a>(&'a Callers);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.has_ended.store(true, SeqCst);
    }
}

/// The processes that have the credential locked, or wait for that.
fn lockers(home: &Home) -> Vec<Person> {
    processes::with_file(&home.text("vault/"))
}

/// The processes among them that renew tokens.
fn renewals(home: &Home) -> Vec<Person> {
    let lockers = lockers(home).into_iter();
    let is_renewal = |person: &Person| person.words.starts_with("switchboard __renew ");
    lockers.filter(is_renewal).collect()
}

fn until_no_renewal(home: &Home) {
    until("the renewals have ended", || renewals(home).is_empty());
}

#[test]
fn sign_in_survives_kills_at_any_moment() {
    let Some(tools) = Tools::peers() else { return };
    let kills = number("SWITCHBOARD_CRASH_KILLS").unwrap_or(KILLS);
    let seed = number("SWITCHBOARD_CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("{kills} kills, seed {seed}");
    let mut dice = Dice(seed);
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home, 1);
    sign_in(&tools, &home);
    provider.toggle("isSlow");
    let callers = Callers::default();
    let mut hits = 0;
    // It outlives the clients.
    let mut last = None;
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| callers.call());
        }
        let _ending = Ending(&callers);
        for kill in 0..kills {
            let serve = home.serve();
            callers.call_at(Some(Target::new(&serve, kill)));
            thread::sleep(Duration::from_millis(dice.below(1_000)));
            if kill % 2 == 0 {
                // The moments at which a login can be lost are short.
                until("a refresh token is used, or a call has failed", || {
                    provider.pending() > 0 || callers.have_failed()
                });
            }
            if callers.have_failed() {
                return;
            }
            callers.killed.store(kill + 1, SeqCst);
            processes::kill(serve.pid());
            callers.call_at(None);
            hits += u64::from(provider.pending() > 0);
            drop(serve);
            if kill % 20 == 19 {
                eprintln!("{} kills, {hits} during a renewal", kill + 1);
            }
        }
        let serve = last.insert(home.serve());
        callers.call_at(Some(Target::new(serve, kills)));
        let before = callers.calls.load(SeqCst);
        until("the last gateway answers, or a call has failed", || {
            callers.calls.load(SeqCst) > before + 100 || callers.have_failed()
        });
    });
    let book = provider.book();
    let failed = callers.failed.into_inner().unwrap();
    let (calls, cut_off) = (callers.calls.into_inner(), callers.cut_off.into_inner());
    eprintln!(
        "{kills} kills, {hits} during a renewal; {calls} calls, {cut_off} cut off, {} failed; \
         {} renewals, {} refresh tokens used twice",
        failed.len(),
        book["refreshes"],
        book["reused"],
    );
    assert_eq!(failed, Vec::<String>::new());
    let (reused, codes) = (&book["reused"], &book["codes"]);
    assert_eq!((reused, codes), (&json!(0), &json!(1)), "{book}");
    assert!(hits > 0, "no kill hit a renewal");
    until_no_renewal(&home);
}

#[test]
fn expired_tokens_are_renewed_once() {
    let Some(tools) = Tools::peers() else { return };
    let expiries = number("SWITCHBOARD_CRASH_EXPIRIES").unwrap_or(EXPIRIES);
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home, 3_600);
    sign_in(&tools, &home);
    let serve = home.serve();
    let barrier = Barrier::new(CLIENTS + 1);
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = serve.client();
                for _ in 0..expiries {
                    barrier.wait();
                    let outcome = client.call("notes__add", arguments());
                    if outcome != Ok(sum()) {
                        failed.lock().unwrap().push(format!("{outcome:?}"));
                    }
                    barrier.wait();
                }
            });
        }
        for expiry in 1..=expiries {
            provider.expire();
            // All clients call now.
            barrier.wait();
            barrier.wait();
            if expiry % 100 == 0 {
                eprintln!("{expiry} expiries");
            }
        }
    });
    let book = provider.book();
    assert_eq!(failed.into_inner().unwrap(), Vec::<String>::new());
    let (refreshes, reused) = (&book["refreshes"], &book["reused"]);
    assert_eq!((refreshes, reused), (&json!(expiries), &json!(0)), "{book}");
    assert_eq!(processes::zombies(serve.pid()), 0);
}

/// Starts a gateway with a call for which a token is being renewed. The authorization server does not answer yet. Returns the
/// process that waits for it.
fn start_renewal(home: &Home, provider: &Provider, serve: &Serve<'_>) -> Person {
    let mut client = serve.client();
    assert_eq!(client.call("notes__add", arguments()), Ok(sum()));
    provider.expire();
    provider.toggle("holdsTokens");
    client.begin(&json!(1), "notes__add", arguments());
    until("the refresh token is used", || provider.pending() == 1);
    let renewals = renewals(home);
    let [process] = &*renewals else {
        panic!("{renewals:?}");
    };
    process.clone()
}

fn sum() -> String {
    "3 for ada".to_owned()
}

/// Checks that the next gateway has the new token.
fn assert_renewed(home: &Home, provider: &Provider) {
    let serve = home.serve();
    assert_eq!(serve.client().call("notes__add", arguments()), Ok(sum()));
    assert_renewed_once(provider);
    until_no_renewal(home);
}

fn assert_renewed_once(provider: &Provider) {
    let book = provider.book();
    let counts = [&book["codes"], &book["refreshes"], &book["reused"]];
    assert_eq!(counts, [1, 1, 0], "{book}");
}

#[test]
fn renewal_survives_the_gateway() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home, 3_600);
    sign_in(&tools, &home);
    let serve = home.serve();
    let process = start_renewal(&home, &provider, &serve);
    processes::kill(serve.pid());
    drop(serve);
    // As from a terminal, or from a service manager that stops what is left.
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        processes::signal(process.pid, signal);
    }
    // The next gateway needs the same token.
    let serve = home.serve();
    let mut client = serve.client();
    client.begin(&json!(1), "notes__add", arguments());
    until("the next gateway has a renewal of its own", || {
        renewals(&home).len() == 2
    });
    provider.toggle("holdsTokens");
    assert_eq!(client.finish(), Ok(sum()));
    assert_renewed_once(&provider);
    until_no_renewal(&home);
}

#[test]
fn command_waits_for_the_renewal() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home, 3_600);
    sign_in(&tools, &home);
    let serve = home.serve();
    start_renewal(&home, &provider, &serve);
    processes::kill(serve.pid());
    drop(serve);
    let mut command = home.command(&["logout", "notes"]).spawn().unwrap();
    until("the command waits", || lockers(&home).len() == 2);
    provider.toggle("holdsTokens");
    assert!(command.wait().unwrap().success());
    // It revokes the tokens of the renewal.
    assert_renewed_once(&provider);
    let book = provider.book();
    assert_eq!((&book["revoked"], &book["errors"]), (&json!(1), &json!([])));
}

#[test]
fn renewal_survives_a_stop_in_haste() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home, 3_600);
    sign_in(&tools, &home);
    let mut serve = home.serve();
    let process = start_renewal(&home, &provider, &serve);
    serve.signal(Signal::INT);
    until("it is stopping", || {
        let said = home.lines("stderr");
        said.iter().any(|line| line.ends_with("Stopping."))
    });
    serve.signal(Signal::INT);
    assert!(serve.ended().success());
    assert!(processes::is_alive(process.pid));
    provider.toggle("holdsTokens");
    assert_renewed(&home, &provider);
}

#[test]
fn renewal_holds_nothing_of_the_gateway() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home, 3_600);
    sign_in(&tools, &home);
    let serve = home.serve();
    let (gateway, process) = (serve.pid(), start_renewal(&home, &provider, &serve).pid);
    assert_eq!(processes::parent(process), gateway);
    assert_ne!(processes::session(process), processes::session(gateway));
    assert_eq!(processes::directory(process), Path::new("/"));
    let named = |pid| {
        let files = processes::files(pid).into_iter();
        let is_own = |file: &String| !file.starts_with("anon_inode:") && file != "/dev/null";
        files.filter(is_own).collect::<BTreeSet<_>>()
    };
    let (its, theirs) = (named(process), named(gateway));
    // Only its answer reaches the gateway.
    let shared: Vec<_> = its.intersection(&theirs).collect();
    assert!(
        shared.len() == 1 && shared[0].starts_with("pipe:"),
        "{shared:?}"
    );
    assert_no_token(&home, &provider, process);
    provider.toggle("holdsTokens");
    until("the process is gone", || {
        !Path::new(&format!("/proc/{process}")).exists()
    });
    drop(serve);
    assert_renewed(&home, &provider);
}

#[test]
fn renewal_uses_the_key_of_the_variable() {
    const KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home, 3_600);
    let elsewhere = tempfile::tempdir().unwrap();
    let config = elsewhere.path().join("other.json");
    fs::rename(home.path("switchboard.json"), &config).unwrap();
    let command = |args: &[&str]| {
        let mut command = home.command(&["--config", config.to_str().unwrap()]);
        command.args(args).env("SWITCHBOARD_KEY", KEY);
        command
    };
    sign_in_with(&tools, command(&LOGIN));
    let serve = home.serve_with(command(&[]));
    let process = start_renewal(&home, &provider, &serve);
    let environment = processes::environment(process.pid);
    assert_eq!(environment.get("SWITCHBOARD_KEY"), None);
    processes::kill(serve.pid());
    drop(serve);
    provider.toggle("holdsTokens");
    until_no_renewal(&home);
    let serve = home.serve_with(command(&[]));
    assert_eq!(serve.client().call("notes__add", arguments()), Ok(sum()));
    assert_renewed_once(&provider);
    assert!(!home.path("vault.key").exists());
}
