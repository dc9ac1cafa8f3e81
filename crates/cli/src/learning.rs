//! First contact: new servers are started once, so that the first client to connect sees their tools.
//!
//! A running gateway does this by itself, and the command watches it. Without one, the command starts a
//! gateway as a client would, with `switchboard stdio`; a client that arrives meanwhile connects to that
//! gateway and keeps it running.

use std::{
    io::{self, IsTerminal as _, Read as _},
    os::unix::process::CommandExt as _,
    process::{Child, ChildStderr, Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::fs::{OFlags, fcntl_setfl};
use switchboard_config::{Config, Home, Placeholder};
use switchboard_rest::{
    servers::{Server, ServerDetail, Servers},
    status::Status,
    trust::ServerTrust,
};
use switchboard_terminal::{
    error::Error,
    print::{self, shell_word},
};

use super::{
    config_file::ConfigFile,
    progress::Progress,
    servers, trust,
    words::{self, count},
};
use crate::{link::Link, place::Place};

const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The most bytes of a gateway's standard error that are read.
const SAID_BYTES: u64 = 64 * 1024;
/// Time for a gateway to start. An earlier one may still have to stop its servers.
const ARRIVAL: Duration = Duration::from_secs(30);
/// Time to wait for a gateway that other clients still use.
const USED: Duration = Duration::from_secs(1);
/// Time for a gateway to stop its servers.
const DEPARTURE: Duration = Duration::from_secs(30);
/// Time beyond that of a server's handshake and lists.
const GRACE: Duration = Duration::from_secs(5);
/// Time for a server whose settings are not known.
const UNKNOWN: Duration = Duration::from_mins(1);

/// Waits until these servers are ready and their offers are known, and reports each. Fails if one does not
/// start; changes made before are kept.
pub(super) fn learn(home: &Home, place: &Place, names: &[String]) -> Result<(), Error> {
    let config = config(home);
    // The progress line is for terminals only.
    if names.len() > 1 && !io::stderr().is_terminal() {
        print::say(&format!("starting {} servers", names.len()));
    }
    let began = Instant::now();
    let mut waiting: Vec<&String> = names.iter().collect();
    let mut host = None;
    let mut lost = None;
    let watched = loop {
        let watched = reach(home, place, &mut host)
            .and_then(|link| watch(&link, &config, &mut waiting, began));
        let is_lost = watched.as_ref().is_err_and(Error::is_unreachable);
        // The gateway may belong to another command that is ending.
        if !is_lost || lost.get_or_insert_with(Instant::now).elapsed() > ARRIVAL {
            break watched;
        }
        thread::sleep(LOOK_AGAIN);
    };
    if let Some(host) = host {
        host.leave(home);
    }
    watched
}

/// Does something with the running gateway. Without one, starts a gateway for as long as that takes.
pub(super) fn with_gateway<T>(
    home: &Home,
    place: &Place,
    work: impl FnOnce(&Arc<Link>) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut host = None;
    let done = reach(home, place, &mut host).and_then(|link| work(&Arc::new(link)));
    if let Some(host) = host {
        host.leave(home);
    }
    done
}

/// Waits for a server that the gateway was just asked to start.
pub(super) fn restarted(home: &Home, link: &Link, name: &String) -> Result<(), Error> {
    watch(link, &config(home), &mut vec![name], Instant::now())
}

/// Starts a server in a gateway that runs for this purpose only, and waits for it.
pub(super) fn start_alone(home: &Home, place: &Place, name: &String) -> Result<(), Error> {
    let mut host = Host::start(home, place)?;
    let done = host.reach(home).and_then(|link| {
        // A list from an earlier run says nothing about the start of the server now.
        link.post(&format!("{}/restart", servers::address(name)), None)?;
        restarted(home, &link, name)
    });
    host.leave(home);
    done
}

/// The configuration; empty if it cannot be read, and then the gateway may still use an older version of it.
fn config(home: &Home) -> Config {
    let config = ConfigFile::read(home).and_then(|file| file.config());
    config.unwrap_or_default()
}

/// Time for the slowest of these servers.
fn limit(config: &Config, names: &[&String]) -> Duration {
    let limits = names.iter().filter_map(|name| config.servers.get(*name));
    // The handshake and the lists have the same limit each.
    let limit = limits.map(|server| 2 * server.init_timeout).max();
    limit.unwrap_or(UNKNOWN) + GRACE
}

/// The running gateway, or else one that this process starts and keeps.
fn reach(home: &Home, place: &Place, host: &mut Option<Host>) -> Result<Link, Error> {
    if let Some(host) = host {
        return host.reach(home);
    }
    match Link::find_staying(home)? {
        Some(link) => refreshed(link),
        None => host.insert(Host::start(home, place)?).reach(home),
    }
}

/// Returns the gateway after it has read the configuration. A gateway that started before the servers were
/// added, or that is processing another change, may not know them yet.
fn refreshed(link: Link) -> Result<Link, Error> {
    match link.post("/api/v1/config/reload", None) {
        Ok(()) => Ok(link),
        Err(_) if link.is_leaving() => Err(Error::unreachable("the gateway is stopping")),
        Err(failure) => Err(failure),
    }
}

/// Waits until the offers of every server are known or the server fails. The limit is the time from one server to
/// the next.
fn watch(
    link: &Link,
    config: &Config,
    waiting: &mut Vec<&String>,
    began: Instant,
) -> Result<(), Error> {
    let limit = limit(config, waiting);
    let mut last = Instant::now();
    let mut progress = Progress::new();
    let mut is_well = true;
    loop {
        let before = waiting.len();
        let (told, lost) = round(link, config, waiting);
        if !told.is_empty() {
            progress.clear();
        }
        for (name, outcome) in told {
            is_well &= outcome.tell(name, began.elapsed());
        }
        lost?;
        if waiting.len() < before {
            last = Instant::now();
        }
        let Some(first) = waiting.first() else {
            return if is_well {
                Ok(())
            } else {
                Err(Error::reported())
            };
        };
        if last.elapsed() > limit {
            progress.clear();
            for name in waiting {
                let failure = Error::new(format!("`{name}` is still starting"));
                let hint = format!("`switchboard logs {}` shows its output", shell_word(name));
                print::complain(&failure.hint(hint));
            }
            return Err(Error::reported());
        }
        let others = match waiting.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let seconds = began.elapsed().as_secs();
        progress.show(&print::one_line(&format!(
            "starting {first}{others}… {seconds} s"
        )));
        thread::sleep(LOOK_AGAIN);
    }
}

/// The result of waiting for a server.
enum Outcome {
    /// The server is disabled.
    Off,
    /// The user has to approve the start first.
    Held,
    /// It needs the directory of a client.
    OnDemand,
    /// The user has to sign in to it.
    NeedsSignIn,
    Learnt {
        tools: u64,
        /// Tools and other definitions that are held for approval.
        held: u64,
        note: String,
        /// `true` if all lists were read.
        is_whole: bool,
    },
    Failed {
        reason: String,
        action: Option<String>,
    },
}

impl From<Error> for Outcome {
    fn from(failure: Error) -> Self {
        Self::Failed {
            reason: failure.message().to_owned(),
            action: failure.advice().map(str::to_owned),
        }
    }
}

/// Checks all servers that are waited for, and removes those with an outcome from `waiting`. An error about
/// one server is its outcome; losing the gateway ends the round early.
fn round<'a>(
    link: &Link,
    config: &Config,
    waiting: &mut Vec<&'a String>,
) -> (Vec<(&'a String, Outcome)>, Result<(), Error>) {
    let mut told = Vec::new();
    let servers = match link.get("/api/v1/servers") {
        Ok(Servers { servers }) => servers,
        Err(failure) => return (told, Err(failure)),
    };
    let mut lost = Ok(());
    waiting.retain(|name| {
        let server = servers.iter().find(|server| server.name == **name);
        let outcome = match server.map(|server| look(link, config, server)) {
            None => Some(Error::new("it is no longer configured").into()),
            Some(Ok(outcome)) => outcome,
            Some(Err(failure)) if failure.is_unreachable() || link.is_leaving() => {
                lost = Err(failure);
                None
            }
            Some(Err(failure)) => Some(failure.into()),
        };
        let is_on_its_way = outcome.is_none();
        told.extend(outcome.map(|outcome| (*name, outcome)));
        is_on_its_way
    });
    (told, lost)
}

/// Checks one server. Returns `None` if it is still starting.
fn look(link: &Link, config: &Config, listed: &Server) -> Result<Option<Outcome>, Error> {
    if !listed.enabled {
        return Ok(Some(Outcome::Off));
    }
    if matches!(&*listed.health.state, "starting" | "stopping") && listed.health.reason.is_none() {
        return Ok(None);
    }
    if listed.health.state == "needs sign-in" {
        return Ok(Some(Outcome::NeedsSignIn));
    }
    let name = &listed.name;
    // Its offers may have become known since the list was made.
    let ServerDetail { server, offers } = link.get(&format!(
        "/api/v1/servers/{}",
        switchboard_catalog::escape(name)
    ))?;
    let trust = trust::ask_briefly(link, Some(name))?;
    if trust.servers.iter().any(|server| server.start.is_some()) {
        return Ok(Some(Outcome::Held));
    }
    if offers.is_some() && !words::is_down(&server) {
        let held = trust.servers.iter().flat_map(ServerTrust::pending);
        return Ok(Some(Outcome::Learnt {
            tools: server.tools,
            held: held.count() as u64,
            note: words::note(&server),
            is_whole: server.failed_lists.is_empty(),
        }));
    }
    let entry = config.servers.get(name);
    if entry.is_some_and(refers_to_project) && server.health.state == "idle" {
        return Ok(Some(Outcome::OnDemand));
    }
    // A restarting server keeps the reason of its last failure.
    Ok(server.health.reason.map(|reason| Outcome::Failed {
        reason,
        action: server.health.action,
    }))
}

/// Tests if the gateway can start a server only for a client in a project.
fn refers_to_project(entry: &switchboard_config::Server) -> bool {
    let mut placeholders = entry.placeholders();
    placeholders.any(|placeholder| placeholder != Placeholder::Client)
}

impl Outcome {
    /// Prints the outcome. Returns `true` unless something went wrong.
    fn tell(self, name: &str, after: Duration) -> bool {
        match self {
            Self::Off => true,
            Self::Held => {
                let name = shell_word(name);
                print::say(&format!("`{name}` is held until you approve it"));
                print::hint(&format!(
                    "review and approve it with `switchboard trust approve {name}`"
                ));
                true
            }
            Self::OnDemand => {
                print::say(&format!(
                    "`{name}` starts when a client that works in a project directory uses it; its tools are listed then"
                ));
                true
            }
            Self::NeedsSignIn => {
                print::say(&format!("`{name}` needs a sign-in"));
                let name = shell_word(name);
                print::hint(&format!("sign in with `switchboard login {name}`"));
                true
            }
            Self::Learnt {
                tools,
                held,
                note,
                is_whole,
            } => {
                let tools = count(tools, "tool", "tools");
                print::say(&format!(
                    "`{name}` is ready: {tools} ({:.1} s)",
                    after.as_secs_f64()
                ));
                if held > 0 {
                    print::hint(&held_back(name, held));
                }
                if !note.is_empty() {
                    print::warn(&format!("`{name}`: {note}"));
                }
                is_whole
            }
            Self::Failed { reason, action } => {
                let failure = Error::new(format!("server `{name}` did not start: {reason}"));
                print::complain(&match action {
                    Some(action) => failure.hint(action),
                    None => failure,
                });
                false
            }
        }
    }
}

fn held_back(name: &str, held: u64) -> String {
    let them = if held == 1 { "it" } else { "them" };
    let held = count(held, "definition is", "definitions are");
    let name = shell_word(name);
    format!("{held} held until you approve {them}: `switchboard trust show {name}`")
}

/// A gateway that runs for as long as this process, or a client that connects to it, needs it. Without this
/// process it continues until it has listed the servers that it has started.
struct Host(Child);

impl Host {
    fn start(home: &Home, place: &Place) -> Result<Self, Error> {
        let cannot = |error| Error::new(format!("cannot start a gateway: {error}"));
        let program = std::env::current_exe().map_err(cannot)?;
        let child = Command::new(program)
            .args(place.to_args(home))
            .args(["stdio", "--log-level", "off"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // Little is written there, and it is fine if it is not read.
            .stderr(Stdio::piped())
            // Ctrl-C is meant for the command; the gateway then sees its client disconnect.
            .process_group(0)
            .spawn();
        child.map(Self).map_err(cannot)
    }

    /// Waits until a gateway is reachable. By then it may be that of another process.
    fn reach(&mut self, home: &Home) -> Result<Link, Error> {
        let until = Instant::now() + ARRIVAL;
        loop {
            if let Some(link) = Link::find_staying(home)? {
                match refreshed(link) {
                    // The next gateway is about to start.
                    Err(failure) if failure.is_unreachable() => {}
                    reached => return reached,
                }
            }
            let ended = self.0.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > until {
                return Err(self.failure());
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// The reason why the gateway did not start, as far as it printed one.
    fn failure(&mut self) -> Error {
        let what = "the gateway did not start";
        let said = self.0.stderr.as_mut().map(said).unwrap_or_default();
        let (reason, advice) = last_words(&said);
        let failure = match reason {
            Some(reason) => Error::new(format!("{what}: {reason}")),
            None => Error::new(what),
        };
        match advice {
            Some(advice) => failure.hint(advice),
            None => failure,
        }
    }

    /// Disconnects from the gateway, and waits until it is gone unless other clients use it.
    fn leave(mut self, home: &Home) {
        drop(self.0.stdin.take());
        let began = Instant::now();
        while self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            let status = Link::find(home).ok().flatten();
            let status = status.and_then(|link| link.get::<Status>("/api/v1/status").ok());
            let is_used = status.is_some_and(|status| status.state == "running");
            let patience = if is_used { USED } else { DEPARTURE };
            if began.elapsed() > patience {
                return;
            }
            thread::sleep(LOOK_AGAIN);
        }
    }
}

/// Everything that was written so far. Other processes may have the same pipe open, so its end is not waited
/// for.
fn said(stderr: &mut ChildStderr) -> String {
    let mut said = Vec::new();
    if fcntl_setfl(&*stderr, OFlags::NONBLOCK).is_ok() {
        // The bytes read before the pipe was empty are kept.
        let _ = stderr.take(SAID_BYTES).read_to_end(&mut said);
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// The last error that a command printed, with its hint; the last line if it printed none.
fn last_words(said: &str) -> (Option<&str>, Option<&str>) {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let last = lines.clone().next_back();
    let advice = last.and_then(|last| last.strip_prefix("hint: "));
    let error = lines.rfind(|line| line.starts_with("error: "));
    let reason = error.and_then(|error| error.strip_prefix("error: "));
    (reason.or(last), advice.filter(|_| reason.is_some()))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{BufRead as _, BufReader, Write as _},
        os::unix::net::UnixListener,
    };

    use super::*;

    /// A gateway with these responses, by path. It closes the connection for an empty one, and fails for any
    /// other path.
    fn gateway(answers: &'static [(&str, &str)]) -> (tempfile::TempDir, Link) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::locate(Some(dir.path()), None).unwrap();
        fs::create_dir_all(home.run()).unwrap();
        let listener = UnixListener::bind(home.socket()).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut line = String::new();
                let mut head = String::new();
                stream.read_line(&mut line).unwrap();
                while stream.read_line(&mut head).unwrap() > 2 {}
                let path = line.split(' ').nth(1).unwrap_or_default();
                let known = answers.iter().find(|(known, _)| *known == path);
                let answer = match known {
                    None => "HTTP/1.1 500 Oops\r\n\r\n{\"detail\":\"it broke\",\"hint\":\"do\"}"
                        .to_owned(),
                    Some((_, "")) => continue,
                    Some((_, body)) => format!("HTTP/1.1 200 OK\r\n\r\n{body}"),
                };
                let _ = stream.get_mut().write_all(answer.as_bytes());
            }
        });
        let link = Link::find(&home).unwrap().unwrap();
        (dir, link)
    }

    #[test]
    fn error_of_one_server_is_its_own_outcome() {
        let (_dir, link) = gateway(&[
            (
                "/api/v1/servers",
                r#"{"servers":[
                    {"name":"a","state":"ready","enabled":true},
                    {"name":"b","state":"ready","enabled":true,"tools":0},
                    {"name":"c","state":"starting","enabled":true},
                    {"name":"d","state":"retrying","enabled":true,"reason":"no luck"}]}"#,
            ),
            (
                "/api/v1/servers/b",
                r#"{"name":"b","state":"ready","enabled":true,"tools":3,"offers":{}}"#,
            ),
            (
                "/api/v1/servers/d",
                r#"{"name":"d","state":"retrying","enabled":true,"reason":"no luck"}"#,
            ),
            ("/api/v1/trust?brief=true&server=b", r#"{"servers":[]}"#),
            ("/api/v1/trust?brief=true&server=d", r#"{"servers":[]}"#),
        ]);
        let names = ["a", "b", "c", "d", "e"].map(str::to_owned);
        let mut waiting: Vec<_> = names.iter().collect();
        let (told, lost) = round(&link, &Config::default(), &mut waiting);
        lost.unwrap();
        assert_eq!(waiting, ["c"]);
        let told: Vec<_> = told
            .into_iter()
            .map(|(name, outcome)| match outcome {
                Outcome::Off | Outcome::Held | Outcome::OnDemand | Outcome::NeedsSignIn => {
                    format!("{name} off")
                }
                Outcome::Learnt { tools, .. } => format!("{name} {tools}"),
                Outcome::Failed { reason, action } => format!("{name} {reason} {action:?}"),
            })
            .collect();
        assert_eq!(
            told,
            [
                "a it broke Some(\"do\")",
                "b 3",
                "d no luck None",
                "e it is no longer configured None",
            ]
        );
    }

    #[test]
    fn lost_gateway_is_no_outcome_of_a_server() {
        let (_dir, link) = gateway(&[
            (
                "/api/v1/servers",
                r#"{"servers":[{"name":"a","state":"ready","enabled":true}]}"#,
            ),
            ("/api/v1/servers/a", ""),
        ]);
        let name = "a".to_owned();
        let mut waiting = vec![&name];
        let (told, lost) = round(&link, &Config::default(), &mut waiting);
        assert!(told.is_empty());
        assert!(lost.unwrap_err().is_unreachable());
        assert_eq!(waiting, ["a"]);
    }

    #[test]
    fn last_error_is_quoted_without_its_label() {
        for (said, reason, advice) in [
            ("", None, None),
            ("a\nb\n\n", Some("b"), None),
            ("warning: w\nerror: e\n", Some("e"), None),
            ("error: e\nhint: h\n", Some("e"), Some("h")),
            ("hint: h\n", Some("hint: h"), None),
        ] {
            assert_eq!(last_words(said), (reason, advice), "{said:?}");
        }
    }

    #[test]
    fn held_definitions_are_singular_or_plural() {
        assert_eq!(
            held_back("a", 1),
            "1 definition is held until you approve it: `switchboard trust show a`"
        );
        assert!(held_back("a", 2).contains("2 definitions are held until you approve them"));
    }
}
