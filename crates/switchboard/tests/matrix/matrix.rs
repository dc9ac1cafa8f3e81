//! Every feature, with a client of every revision, in front of a server of every revision, over every
//! transport of either.
//!
//! `SWITCHBOARD_MATRIX="words"` runs only the cells whose description contains all these words, for
//! debugging; the page is not compared then.

use std::{
    collections::VecDeque,
    env, fs,
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
};

use crate::{
    client::{Client, Place, Setup, shortened},
    features::{self, Feature},
    revision::Side,
    rig::{Upstream, home, through},
    table::{self, Mark, Outcome},
};

/// Gateways at a time, enough to keep two processors busy.
const AT_ONCE: usize = 3;

/// Timeouts after which the rest of a pair is not tried.
const HOPELESS: usize = 3;

#[test]
fn every_revision_works_with_every_other() {
    let marks = on_all_servers(|server| {
        let upstream = Upstream::start(server, &["--paged"]);
        let home = home(&upstream);
        let serve = home.serve();
        serve.until_known(crate::rig::NAME);
        let place = through(&serve);
        let mut marks: Vec<_> = Side::all()
            .flat_map(|client| cells(&place, client, server, &[features::LIST_CHANGES]))
            .collect();
        marks.extend(together(&place, server));
        serve.stop();
        marks
    });
    judge(&marks);
    if filter().is_empty() {
        compare(&table::page(&marks));
    }
}

/// The client and the server without a gateway, so that a failure above is a failure of the gateway.
#[test]
fn client_and_server_work_without_a_gateway() {
    let marks = on_all_servers(|server| {
        let upstream = Upstream::start(server, &["--paged"]);
        // The server may accept batches or not, and the gateway drives its tasks.
        cells(
            &upstream.place(),
            server,
            server,
            &["batches, taken or refused", "tasks"],
        )
    });
    judge(&marks);
}

/// Runs `act` with every kind of server, a few at a time.
fn on_all_servers(act: impl Fn(Side) -> Vec<Mark> + Sync) -> Vec<Mark> {
    let queue: Mutex<VecDeque<_>> = Mutex::new(Side::all().collect());
    let marks = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop_front();
                    let Some(server) = next else { return };
                    let found = act(server);
                    marks.lock().unwrap().extend(found);
                }
            });
        }
    });
    let mut marks = marks.into_inner().unwrap();
    marks.sort_by_key(|mark| (mark.client, mark.server));
    marks
}

/// Every feature except `but`, for one client in front of one server.
fn cells(place: &Place, client: Side, server: Side, but: &[&str]) -> Vec<Mark> {
    let wanted = |feature: &&Feature| {
        is_wanted(feature.name, client, server) && !but.contains(&feature.name)
    };
    let mut open: Option<Client> = None;
    let mut timeouts = 0;
    let mut marks = Vec::new();
    for feature in features::ALL.iter().filter(wanted) {
        let outcome = match features::cannot(feature.name, client, server) {
            Some(reason) => Outcome::Cannot(reason),
            None if timeouts >= HOPELESS => Outcome::Fails("not tried any more".to_owned()),
            None => match attempt(feature, &mut open, place, client, server) {
                Ok(()) => Outcome::Works,
                Err(reason) => {
                    timeouts += usize::from(reason.contains("not within"));
                    // The state of the client is unknown now.
                    open = None;
                    Outcome::Fails(reason)
                }
            },
        };
        marks.push(Mark {
            feature: feature.name,
            client,
            server,
            outcome,
        });
    }
    marks
}

/// The lists of one server change, for clients of every kind.
fn together(place: &Place, server: Side) -> Vec<Mark> {
    let feature = features::LIST_CHANGES;
    let sides: Vec<_> = Side::all()
        .filter(|side| is_wanted(feature, *side, server))
        .collect();
    let opened = sides
        .iter()
        .map(|side| Client::open(place, server, Setup::able(*side)));
    let mut opened: Vec<_> = opened.collect();
    let mut clients: Vec<_> = opened
        .iter_mut()
        .filter_map(|client| client.as_mut().ok())
        .collect();
    let mut heard = features::lists_together(&mut clients).into_iter();
    let mark = |(side, client): (&Side, Result<Client, String>)| Mark {
        feature,
        client: *side,
        server,
        outcome: match client.and_then(|_| heard.next().unwrap_or(Ok(()))) {
            Ok(()) => Outcome::Works,
            Err(reason) => Outcome::Fails(reason),
        },
    };
    sides.iter().zip(opened).map(mark).collect()
}

fn attempt(
    feature: &Feature,
    open: &mut Option<Client>,
    place: &Place,
    client: Side,
    server: Side,
) -> Result<(), String> {
    let client = match open {
        Some(client) => client,
        None => open.insert(Client::open(place, server, Setup::able(client))?),
    };
    (feature.run)(client)
}

fn describe(feature: &str, client: Side, server: Side) -> String {
    format!("{feature}: client {client}, server {server}")
}

/// Tests if a cell is to be run.
fn is_wanted(feature: &str, client: Side, server: Side) -> bool {
    let words = describe(feature, client, server);
    filter().iter().all(|word| words.contains(word))
}

/// The words that a cell must contain to be run.
fn filter() -> Vec<String> {
    let words = env::var("SWITCHBOARD_MATRIX").unwrap_or_default();
    words
        .split(", ")
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Fails with all failures.
#[track_caller]
fn judge(marks: &[Mark]) {
    let failures: Vec<_> = marks
        .iter()
        .filter_map(|mark| match &mark.outcome {
            Outcome::Fails(reason) => {
                let cell = describe(mark.feature, mark.client, mark.server);
                Some(format!("{cell}: {}", shortened(reason)))
            }
            Outcome::Works | Outcome::Cannot(_) => None,
        })
        .collect();
    let works = marks
        .iter()
        .filter(|mark| mark.outcome == Outcome::Works)
        .count();
    eprintln!("{works} cells work, {} fail", failures.len());
    assert!(
        failures.is_empty(),
        "{} cells fail:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Compares the page with the one in the repository, or writes it.
#[track_caller]
fn compare(page: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/revisions.md");
    if env::var_os("SWITCHBOARD_WRITE_DOCS").is_some_and(|write| write == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, page).unwrap();
        return;
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/revisions.md says something else than what was found; SWITCHBOARD_WRITE_DOCS=1 writes it:\n{page}"
    );
}
