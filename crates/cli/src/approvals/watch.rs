//! `switchboard approvals watch`: requests and their outcomes as they happen; on a terminal, the user can
//! answer them.

use std::{
    collections::HashMap,
    fmt::Write as _,
    io::{self, IsTerminal as _, Write as _},
};

use clap::Args;
use jiff::Timestamp;
use switchboard_config::Home;
use switchboard_rest::{
    approvals::Approval,
    events::{ApprovalEvent, Event},
};
use switchboard_terminal::{
    error::Error,
    print::{self, Colour},
    visible::visible_line,
};
use switchboard_wire::Raw;

use super::{
    answer, decide,
    keys::{Keys, Woken},
    show::Sight,
    stream::{Stream, Told},
    words,
};
use crate::{link::Link, times::moment};

/// Follow requests as they arrive, and answer them.
///
/// Pending requests come first. On a terminal, keys answer: a approves, r rejects, s shows the whole request,
/// d declines a question, n skips to the next, q quits; approving asks for confirmation. The terminal bell
/// rings when a request escalates. The command reconnects when the gateway restarts.
#[derive(Debug, Args)]
pub(super) struct Watch {
    /// Print events as JSON, one per line.
    ///
    /// Requests that are pending at the start have the kind `approval.waiting`; outcomes of
    /// requests that ended while the gateway was not reachable have the kind `approval.missed`.
    #[arg(long)]
    json: bool,
}

/// The most requests that are remembered; beyond it, closed ones are forgotten.
const KNOWN: usize = 10_000;

pub(super) fn run(home: &Home, args: &Watch) -> Result<(), Error> {
    let reader = if args.json {
        Reader::Program
    } else if io::stdin().is_terminal() && print::is_terminal() {
        Reader::Person
    } else {
        Reader::Pipe
    };
    let mut stream = Stream::start(home, reader == Reader::Person)?;
    let mut watcher = Watcher {
        home,
        reader,
        known: HashMap::new(),
        waiting: Vec::new(),
        is_asking: false,
        is_lost: false,
    };
    if reader != Reader::Person {
        while let Ok(told) = stream.told.recv() {
            watcher.hear(told)?;
        }
        return Ok(());
    }
    let cannot = |error: io::Error| Error::new(format!("cannot read keys: {error}"));
    let keys = Keys::new().map_err(cannot)?;
    loop {
        match Keys::wait(&mut stream.bell).map_err(cannot)? {
            Woken::NoKeys => return watcher.leave(),
            Woken::Bell => {
                while let Ok(told) = stream.told.try_recv() {
                    if matches!(told, Told::Stop) {
                        return watcher.leave();
                    }
                    watcher.hear(told)?;
                }
                watcher.ask()?;
            }
            Woken::Key(b'q' | 3 | 4) => return watcher.leave(),
            Woken::Key(key) => watcher.press(&keys, key)?,
        }
    }
}

/// The reader of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// A program that reads JSON.
    Program,
    /// A reader of lines that cannot press keys.
    Pipe,
    /// A user at a terminal.
    Person,
}

struct Watcher<'a> {
    home: &'a Home,
    reader: Reader,
    /// The last reported version of each request.
    known: HashMap<String, Known>,
    /// Pending requests, in the order in which they are shown; keys act on the first.
    waiting: Vec<Approval>,
    /// `true` if the key prompt is on the screen.
    is_asking: bool,
    /// `true` while the gateway is gone.
    is_lost: bool,
}

struct Known {
    version: u64,
    is_open: bool,
}

impl Watcher<'_> {
    fn hear(&mut self, told: Told) -> Result<(), Error> {
        match told {
            Told::Connected => {
                if std::mem::take(&mut self.is_lost) {
                    self.clear()?;
                    print::say("the gateway is running again");
                }
                self.look()
            }
            Told::Lagged => self.look(),
            Told::Event(text) => {
                match serde_json::from_str::<Event<ApprovalEvent>>(&text) {
                    Ok(event) => self.take(&event.kind, event.data.approval, &text),
                    // An event that cannot be parsed still means that something changed.
                    Err(_) => self.look(),
                }
            }
            Told::Lost => {
                self.is_lost = true;
                self.clear()?;
                print::say("the gateway stopped; waiting for it to restart");
                Ok(())
            }
            Told::Stop => Ok(()),
        }
    }

    /// Fetches all open requests, and the outcomes of requests that are no longer open.
    fn look(&mut self) -> Result<(), Error> {
        let found = self.open();
        let (link, open) = match found {
            Ok(found) => found,
            Err(failure) => {
                self.clear()?;
                print::warn(&format!("cannot list the pending requests: {failure}"));
                return Ok(());
            }
        };
        let mut seen = Vec::new();
        for raw in open.iter().rev() {
            if let Ok(approval) = raw.read_owned::<Approval>() {
                seen.push(approval.id.clone());
                self.take(
                    "approval.waiting",
                    approval,
                    &envelope("approval.waiting", raw),
                )?;
            }
        }
        let gone: Vec<String> = self
            .known
            .iter()
            .filter(|(id, known)| known.is_open && !seen.contains(id))
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            let Ok(raw) = super::ask::<Raw>(&link, &id) else {
                continue;
            };
            if let Ok(approval) = raw.read_owned::<Approval>() {
                self.take(
                    "approval.missed",
                    approval,
                    &envelope("approval.missed", &raw),
                )?;
            }
        }
        Ok(())
    }

    fn open(&self) -> Result<(Link, Vec<Raw>), Error> {
        let link = Link::need(self.home)?;
        let address = format!("/api/v1/approvals?status=open&limit={}", super::LOOKED_AT);
        let answer: Raw = link.get(&address)?;
        let open = answer.member("approvals").and_then(|all| all.elements());
        Ok((link, open.unwrap_or_default()))
    }

    /// Reports each version of a request once.
    fn take(&mut self, kind: &str, approval: Approval, text: &str) -> Result<(), Error> {
        let known = self.known.get(&approval.id);
        if known.is_some_and(|known| known.version >= approval.version) {
            return Ok(());
        }
        if self.known.len() > KNOWN {
            self.known.retain(|_, known| known.is_open);
        }
        let now = Known {
            version: approval.version,
            is_open: approval.is_open(),
        };
        self.known.insert(approval.id.clone(), now);
        if self.reader == Reader::Program {
            print::json_text(text)?;
        } else {
            self.clear()?;
            print::data(&line(kind, &approval))?;
            let is_louder = kind == "approval.escalated"
                || (kind == "approval.waiting" && approval.escalated_at.is_some());
            if is_louder && self.reader == Reader::Person {
                print::data("\u{7}")?;
            }
        }
        let place = self.waiting.iter().position(|one| one.id == approval.id);
        match (place, approval.waits()) {
            (Some(place), true) => self.waiting[place] = approval,
            (Some(place), false) => drop(self.waiting.remove(place)),
            (None, true) => self.waiting.push(approval),
            (None, false) => {}
        }
        Ok(())
    }

    /// Prints the key prompt below all other lines.
    fn ask(&mut self) -> Result<(), Error> {
        if self.is_asking {
            return Ok(());
        }
        self.is_asking = true;
        let Some(first) = self.waiting.first() else {
            return print::data("no pending requests (q quits) ");
        };
        let id = print::paint(&io::stdout(), Colour::Cyan, &visible_line(&first.id));
        let more = match self.waiting.len() {
            1 => "",
            _ => ", n next",
        };
        let decline = match &*first.kind {
            "elicitation" => ", d decline",
            _ => "",
        };
        print::data(&format!(
            "{id} {}: a approve, r reject{decline}, s show{more}, q quit ",
            words::place(first)
        ))
    }

    /// Removes the key prompt.
    fn clear(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_asking) {
            return Ok(());
        }
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        print::data(if is_dumb { "\n" } else { "\r\u{1b}[K" })
    }

    /// Leaves the key prompt on the screen and ends its line.
    fn leave(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.is_asking) {
            print::data("\n")?;
        }
        Ok(())
    }

    fn press(&mut self, keys: &Keys, key: u8) -> Result<(), Error> {
        let Some(first) = self.waiting.first() else {
            return Ok(());
        };
        let (id, kind) = (first.id.clone(), first.kind.clone());
        match key {
            b'n' if self.waiting.len() > 1 => {
                self.waiting.rotate_left(1);
                self.clear()?;
                return self.ask();
            }
            b'a' | b'r' | b's' => {}
            b'd' if kind == "elicitation" => {}
            _ => return Ok(()),
        }
        self.leave()?;
        let home = self.home;
        let done = keys.paused(|| match key {
            b'a' => decide::approve(home, &decide::Approve::asking(id)),
            b'r' => reject(home, &id),
            b'd' => answer::decline(&Link::need(home)?, &id, false),
            _ => {
                let link = Link::need(home)?;
                let approval: Approval = super::ask(&link, &id)?;
                print::data(&Sight::of(&link, &approval, true).text)
            }
        });
        match done {
            Ok(Ok(())) => {}
            // The request may have been decided meanwhile; go on with the others.
            Ok(Err(failure)) => print::complain(&failure),
            Err(error) => return Err(Error::new(format!("cannot read keys: {error}"))),
        }
        self.ask()
    }
}

fn reject(home: &Home, id: &str) -> Result<(), Error> {
    let cannot = |error: io::Error| Error::new(format!("cannot ask on the terminal: {error}"));
    let mut to = io::stderr();
    write!(
        to,
        "Reason for rejecting {id} (Enter: none, Ctrl-D: do not reject): "
    )
    .map_err(cannot)?;
    to.flush().map_err(cannot)?;
    let mut reason = String::new();
    if io::stdin().read_line(&mut reason).map_err(cannot)? == 0 {
        return Err(Error::new("nothing was rejected"));
    }
    let reason = Some(reason.trim()).filter(|reason| !reason.is_empty());
    decide::refuse(&Link::need(home)?, id, reason)
}

/// An event as JSON, for a change that no event reported.
fn envelope(kind: &str, approval: &Raw) -> String {
    let data = Raw::object([("approval", approval.clone())]);
    let envelope = Raw::object([("kind", Raw::string(kind)), ("data", data)]);
    // The output is one event per line.
    envelope.as_str().replace(['\r', '\n'], " ")
}

/// A line about an event, followed by the warnings of a new request.
fn line(kind: &str, approval: &Approval) -> String {
    let now = Timestamp::now();
    let is_new = matches!(kind, "approval.created" | "approval.waiting") && approval.waits();
    let (word, colour) = match kind {
        _ if is_new => ("pending", Colour::Cyan),
        "approval.escalated" => ("escalated", Colour::Yellow),
        "approval.delivered" => ("delivered", Colour::Green),
        _ => match &*approval.status {
            "approved" => ("approved", Colour::Green),
            "accepted" => ("accepted", Colour::Green),
            "rejected" => ("rejected", Colour::Red),
            "declined" => ("declined", Colour::Red),
            "cancelled" => ("cancelled", Colour::Red),
            "timed_out" => ("timed out", Colour::Red),
            "withdrawn" => ("withdrawn", Colour::Yellow),
            "failed" => ("failed", Colour::Red),
            "generating" => ("generating", Colour::Cyan),
            "reviewing" => ("reviewing", Colour::Cyan),
            "orphaned" => ("orphaned", Colour::Yellow),
            _ => ("changed", Colour::Cyan),
        },
    };
    let word = print::paint(&io::stdout(), colour, &format!("{word:<10}"));
    let about = if is_new || kind == "approval.escalated" {
        let client = words::client(approval);
        let client = if client.is_empty() {
            client
        } else {
            format!("client {client}: ")
        };
        let left = match approval.expires_at {
            Some(_) => format!(" ({} left)", words::left(approval, now)),
            None => String::new(),
        };
        format!("{client}{}{left}", words::summary(approval))
    } else if kind == "approval.delivered" {
        String::new()
    } else {
        let decided = approval.decision.as_ref().map(words::decision);
        let error = approval.error.as_deref().map(visible_line);
        decided.or(error).unwrap_or_default()
    };
    let head = format!(
        "{}  {word}  {}  {} {}",
        moment(now),
        visible_line(&approval.id),
        words::kind(approval),
        words::place(approval)
    );
    // A program reads whole lines; for a person, the text is fitted to the terminal.
    let between = if print::is_terminal() { "\n    " } else { "  " };
    let about = match about.as_str() {
        "" => String::new(),
        about => print::fitted(&io::stdout(), &format!("{between}{about}"), 0, 0),
    };
    let mut text = format!("{head}{about}\n");
    if is_new {
        for warning in words::warnings(approval) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", print::danger(&io::stdout(), 4, &warning));
        }
    }
    text
}
