//! Approval events of the gateway, followed by a thread of its own that reconnects after a restart.

use std::{
    io::{PipeReader, PipeWriter, Write as _},
    sync::mpsc::{self, Receiver, Sender},
    thread,
    time::Duration,
};

use switchboard_config::Home;
use switchboard_terminal::error::Error;

use crate::link::{Events, Link};

/// The event stream of approval requests.
const EVENTS: &str = "/api/v1/events?kind=approval.";
/// The first delay before a reconnect; it doubles up to [`LONGEST_REST`].
const REST: Duration = Duration::from_millis(100);
const LONGEST_REST: Duration = Duration::from_secs(2);

/// A message of the stream.
#[derive(Debug)]
pub(super) enum Told {
    /// The stream is connected, for the first time or again: earlier changes have to be fetched.
    Connected,
    /// The data of an event.
    Event(String),
    /// Some events were dropped because there were too many.
    Lagged,
    /// The gateway is gone; the thread tries to reconnect.
    Lost,
    /// The program has to exit.
    Stop,
}

/// The messages, and a pipe that becomes readable when there is a new one.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) told: Receiver<Told>,
    pub(super) bell: PipeReader,
}

/// The sending side of the stream.
struct Teller {
    to: Sender<Told>,
    bell: PipeWriter,
}

/// The receiver was dropped.
struct Gone;

impl Teller {
    fn tell(&mut self, told: Told) -> Result<(), Gone> {
        self.to.send(told).map_err(|_| Gone)?;
        self.bell.write_all(&[0]).map_err(|_| Gone)
    }
}

impl Stream {
    /// Follows the events of the running gateway. With `catch_end`, termination signals arrive as
    /// [`Told::Stop`], so that the caller can restore the terminal.
    pub(super) fn start(home: &Home, catch_end: bool) -> Result<Self, Error> {
        let events = Link::need(home)?.events(EVENTS, None)?;
        let (to, told) = mpsc::channel();
        let pipe = || std::io::pipe().map_err(|error| Error::new(error.to_string()));
        let (bell, ring) = pipe()?;
        if catch_end {
            let ring = ring
                .try_clone()
                .map_err(|error| Error::new(error.to_string()))?;
            let mut teller = Teller {
                to: to.clone(),
                bell: ring,
            };
            thread::spawn(move || {
                if wait_for_end().is_ok() {
                    let _ = teller.tell(Told::Stop);
                }
            });
        }
        let mut teller = Teller { to, bell: ring };
        let home = home.clone();
        // The thread ends with the program.
        thread::spawn(move || {
            let _ = follow(&home, events, &mut teller);
        });
        Ok(Self { told, bell })
    }
}

fn follow(home: &Home, first: Events, teller: &mut Teller) -> Result<(), Gone> {
    let mut last: Option<String> = None;
    let mut events = first;
    loop {
        teller.tell(Told::Connected)?;
        while let Ok(Some(event)) = events.next() {
            let is_number = |id: &String| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
            if let Some(id) = event.id.filter(is_number) {
                last = Some(id);
            }
            if event.event.as_deref() == Some("lagged") {
                teller.tell(Told::Lagged)?;
            } else if let Ok(data) = String::from_utf8(event.data.to_vec()) {
                teller.tell(Told::Event(data))?;
            }
        }
        let mut rest = REST;
        let mut is_told = false;
        events = loop {
            thread::sleep(rest);
            rest = (rest * 2).min(LONGEST_REST);
            let found = Link::need(home).and_then(|link| link.events(EVENTS, last.as_deref()));
            if let Ok(found) = found {
                break found;
            }
            if !std::mem::replace(&mut is_told, true) {
                teller.tell(Told::Lost)?;
            }
        };
    }
}

/// Waits for a signal that asks the program to exit.
fn wait_for_end() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
        Ok(())
    })
}
