//! The server: writes the messages of a schedule, and records their meaning for the checker.

use std::io::Write;

use crate::step::{Garbage, Server, Step, Stray, Welcome};

/// The ids of the server's requests. Some equal ids of the client: each side has its own numbers.
pub(crate) const SERVER_IDS: [&str; 8] = ["1", "2", "3", "4", "\"a\"", "\"b\"", "0", "-1"];

/// The index in [`SERVER_IDS`] of the id that a step refers to.
pub(crate) fn server_id(number: u8) -> u8 {
    number % 8
}

/// The meaning of a message of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// A response to a call, identified by its serial number.
    Answer { id: u64, serial: u32, error: bool },
    /// A response to a request of a handshake.
    Welcome { id: u64, how: Welcome },
    /// A response without a request.
    Stray,
    /// Not a message.
    Garbage,
    /// A ping.
    Ping(u8),
    /// A request.
    Ask(u8),
    /// A notification.
    News { serial: u32 },
    /// A log message.
    Log { serial: u32 },
    /// Progress of a call.
    Progress { id: u64, serial: u32 },
    /// The cancellation of a request with this id, of either side.
    Withdraw {
        own: Option<u8>,
        number: Option<u64>,
    },
}

/// A request of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Discover,
    Initialize,
}

/// The server's view of the client.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// Calls that it has not answered, even if their callers are gone.
    open: Vec<u64>,
    /// All calls, including calls that it has not received.
    made: Vec<u64>,
    answered: Vec<u64>,
    /// Requests of handshakes over all transports, with `true` if they were answered.
    handshakes: Vec<(u64, Asked, bool)>,
    serial: u32,
}

impl Peer {
    /// Records a call whose id the server could guess.
    pub(crate) fn overhears(&mut self, id: u64) {
        self.made.push(id);
    }

    /// Records a call that arrived.
    pub(crate) fn called(&mut self, id: u64) {
        self.open.push(id);
    }

    /// Records a request of a handshake that arrived.
    pub(crate) fn greeted(&mut self, id: u64, asked: Asked) {
        self.handshakes.push((id, asked, false));
    }

    /// The request that a step refers to: a call, or for high numbers one of a handshake.
    pub(crate) fn request(&self, which: u8) -> Option<u64> {
        let handshake = self.handshakes.last().map(|(id, ..)| *id);
        let call = pick(&self.open, which);
        if which >= 128 {
            handshake.or(call)
        } else {
            call.or(handshake)
        }
    }

    /// Writes the message of a step. Returns `None` if there is none.
    pub(crate) fn write(&mut self, step: Step, in_batch: bool, out: &mut Vec<u8>) -> Option<Note> {
        self.serial += 1;
        let serial = self.serial;
        match step {
            Step::Greet(server) => {
                let last = self
                    .handshakes
                    .last_mut()
                    .filter(|(_, _, answered)| !answered)?;
                last.2 = true;
                let (id, how) = (last.0, greeting(server, last.1));
                write_welcome(out, id, how);
                Some(Note::Welcome { id, how })
            }
            Step::Welcome(which, how) => {
                let back = usize::from(which) % self.handshakes.len().max(1);
                let asked = self.handshakes.iter_mut().rev().nth(back)?;
                asked.2 = true;
                let id = asked.0;
                write_welcome(out, id, how);
                Some(Note::Welcome { id, how })
            }
            Step::Answer(which) => Some(self.answer(pick(&self.open, which)?, false, out)),
            Step::Error(which) => Some(self.answer(pick(&self.open, which)?, true, out)),
            Step::Guess(which) => Some(self.answer(pick(&self.made, which)?, false, out)),
            Step::Again(which) => {
                let id = pick(&self.answered, which)?;
                write_answer(out, id, serial, false);
                Some(Note::Answer {
                    id,
                    serial,
                    error: false,
                })
            }
            Step::Stray(kind) => {
                out.extend_from_slice(stray(kind));
                Some(Note::Stray)
            }
            Step::Garbage(kind) => {
                // Invalid JSON would corrupt the whole frame, not only this message.
                out.extend_from_slice(if in_batch { b"7" } else { garbage(kind) });
                Some(Note::Garbage)
            }
            Step::Ping(id) => Some(write_request(out, server_id(id), "ping", Note::Ping)),
            Step::Ask(id) => Some(write_request(out, server_id(id), "roots/list", Note::Ask)),
            Step::News => {
                write_news(out, "notifications/tools/list_changed", serial);
                Some(Note::News { serial })
            }
            Step::Log => {
                write_news(out, "notifications/message", serial);
                Some(Note::Log { serial })
            }
            Step::Progress(which) => {
                let seen = if which < 128 { &self.open } else { &self.made };
                let id = pick(seen, which)?;
                let params = format_args!(r#"{{"progressToken":{id},"progress":{serial}}}"#);
                write(
                    out,
                    format_args!(r#""method":"notifications/progress","params":{params}"#),
                );
                Some(Note::Progress { id, serial })
            }
            Step::WithdrawOwn(id) => {
                let own = server_id(id);
                let text = SERVER_IDS[usize::from(own)];
                write_withdrawal(out, text);
                let number = text.parse().ok();
                Some(Note::Withdraw {
                    own: Some(own),
                    number,
                })
            }
            Step::WithdrawCall(which) => {
                let number = pick(&self.open, which)?;
                let text = number.to_string();
                write_withdrawal(out, &text);
                let own = SERVER_IDS.iter().zip(0..).find(|(own, _)| **own == text);
                let own = own.map(|(_, own)| own);
                Some(Note::Withdraw {
                    own,
                    number: Some(number),
                })
            }
            _ => None,
        }
    }

    fn answer(&mut self, id: u64, error: bool, out: &mut Vec<u8>) -> Note {
        self.open.retain(|open| *open != id);
        self.answered.push(id);
        let serial = self.serial;
        write_answer(out, id, serial, error);
        Note::Answer { id, serial, error }
    }
}

/// The response of a well-behaved server.
fn greeting(server: Server, asked: Asked) -> Welcome {
    match (server, asked) {
        (Server::Modern, Asked::Discover) => Welcome::Modern,
        (Server::Modern, Asked::Initialize) => Welcome::NamesModern,
        (Server::Old | Server::Older, Asked::Discover) => Welcome::NotFound,
        (Server::Old, Asked::Initialize) => Welcome::V2025_11_25,
        (Server::Older, Asked::Initialize) => Welcome::V2024_11_05,
    }
}

fn write(out: &mut Vec<u8>, members: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = write!(out, r#"{{"jsonrpc":"2.0",{members}}}"#);
}

fn write_answer(out: &mut Vec<u8>, id: u64, serial: u32, error: bool) {
    if error {
        write(
            out,
            format_args!(r#""id":{id},"error":{{"code":{serial},"message":"no"}}"#),
        );
    } else {
        write(out, format_args!(r#""id":{id},"result":{{"s":{serial}}}"#));
    }
}

fn write_request(out: &mut Vec<u8>, own: u8, method: &str, note: fn(u8) -> Note) -> Note {
    let id = SERVER_IDS[usize::from(own)];
    write(out, format_args!(r#""id":{id},"method":"{method}""#));
    note(own)
}

fn write_news(out: &mut Vec<u8>, method: &str, serial: u32) {
    write(
        out,
        format_args!(r#""method":"{method}","params":{{"s":{serial}}}"#),
    );
}

fn write_withdrawal(out: &mut Vec<u8>, id: &str) {
    let params = format_args!(r#"{{"requestId":{id}}}"#);
    write(
        out,
        format_args!(r#""method":"notifications/cancelled","params":{params}"#),
    );
}

fn write_welcome(out: &mut Vec<u8>, id: u64, how: Welcome) {
    let body = match how {
        Welcome::Modern => r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{}}"#,
        Welcome::V2024_11_05 => r#""result":{"protocolVersion":"2024-11-05","capabilities":{}}"#,
        Welcome::V2025_03_26 => r#""result":{"protocolVersion":"2025-03-26","capabilities":{}}"#,
        Welcome::V2025_06_18 => r#""result":{"protocolVersion":"2025-06-18","capabilities":{}}"#,
        Welcome::V2025_11_25 => r#""result":{"protocolVersion":"2025-11-25","capabilities":{}}"#,
        Welcome::V2026_07_28 => r#""result":{"protocolVersion":"2026-07-28","capabilities":{}}"#,
        Welcome::Strange => r#""result":{"protocolVersion":"1999-01-01","capabilities":{}}"#,
        Welcome::Empty => r#""result":{}"#,
        Welcome::NotFound => r#""error":{"code":-32601,"message":"what?"}"#,
        Welcome::NamesModern => {
            r#""error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}"#
        }
        Welcome::NamesOld => {
            r#""error":{"code":-32022,"message":"no","data":{"supported":["2024-11-05","2025-11-25"]}}"#
        }
        Welcome::NamesStrange => {
            r#""error":{"code":-32022,"message":"no","data":{"supported":["2030-01-01"]}}"#
        }
        Welcome::ListsOld => r#""result":{"supportedVersions":["2025-03-26","2025-06-18"]}"#,
        Welcome::ModernError => r#""error":{"code":-32020,"message":"no"}"#,
    };
    write(out, format_args!(r#""id":{id},{body}"#));
}

fn stray(kind: Stray) -> &'static [u8] {
    match kind {
        Stray::Future => br#"{"jsonrpc":"2.0","id":1099511627776,"result":{}}"#,
        Stray::Zero => br#"{"jsonrpc":"2.0","id":0,"result":{}}"#,
        Stray::Text => br#"{"jsonrpc":"2.0","id":"2","result":{}}"#,
        Stray::Huge => br#"{"jsonrpc":"2.0","id":12345678901234567890123,"result":{}}"#,
        Stray::Null => br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
    }
}

fn garbage(kind: Garbage) -> &'static [u8] {
    match kind {
        Garbage::Text => b"npm warn deprecated",
        Garbage::Utf8 => b"{\"jsonrpc\":\"2.0\",\"method\":\"\xc3",
        Garbage::Json => br#"{"jsonrpc":"2.0","id":2,"result":{},"error":{}}"#,
        Garbage::Deep => &[b'['; 300],
        Garbage::EmptyBatch => b"[]",
        Garbage::Version => br#"{"jsonrpc":"1.0","id":2,"result":{}}"#,
    }
}

/// The item that a step refers to, counted from the latest.
pub(crate) fn pick<T: Copy>(from: &[T], which: u8) -> Option<T> {
    let back = usize::from(which) % from.len().max(1);
    from.iter().rev().nth(back).copied()
}
