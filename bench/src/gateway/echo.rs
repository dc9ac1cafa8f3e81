//! The server behind every subject: small, fast, and the same for all.
//!
//! It answers `initialize` or, if it is of the modern era, `server/discover`; `tools/list` and
//! `tools/call`. It reads and writes in bulk, and looks no closer than that takes. Its answer to a call holds the text that the call brought, so that whoever
//! asks can see that it is the answer to this call.

use std::{
    borrow::Cow,
    fs::{self, File},
    io::{self, Read, Write},
    os::fd::AsFd,
    path::Path,
    thread,
    time::Duration,
};

use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_wire::Era;

use crate::Result;

/// How many tools go into one page.
const PAGE: usize = 1_000;

/// How long what the modern era lets be kept may be kept, and by whom.
const HINTS: &str = r#""ttlMs":3600000,"cacheScope":"public""#;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    arguments: Arguments<'a>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

#[derive(Deserialize)]
struct Listing<'a> {
    #[serde(borrow)]
    cursor: Option<Cow<'a, str>>,
}

/// What the command line makes of it.
struct Echo<'a> {
    era: Era,
    /// How many tools there are, the first of them `echo`.
    tools: usize,
    /// A file with the seconds to sleep before `initialize` is answered.
    delay: Option<&'a Path>,
}

/// The word for an era on the command line, and in the figures.
pub(super) const fn word(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

/// Serves standard input until it ends, as the words of the command line say: era, tools, and the
/// delay if there is one.
pub(crate) fn serve(words: &[&str]) -> Result<()> {
    let [era, tools, delay @ ..] = words else {
        return Err("the echo server needs an era and a number of tools".into());
    };
    let eras = [Era::Legacy, Era::Modern];
    let era = eras.into_iter().find(|known| word(*known) == *era);
    let echo = Echo {
        era: era.ok_or("there is no such era")?,
        tools: tools.parse()?,
        delay: delay.first().map(Path::new),
    };
    // Without the buffers of the standard library, which are small.
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut chunk = vec![0; 64 * 1024];
    let mut unread = Vec::new();
    let mut answers = Vec::new();
    loop {
        let read = input.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        unread.extend_from_slice(&chunk[..read]);
        let mut rest = &unread[..];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            echo.answer(&rest[..end], &mut answers)?;
            rest = &rest[end + 1..];
        }
        let done = unread.len() - rest.len();
        unread.drain(..done);
        output.write_all(&answers)?;
        answers.clear();
    }
}

impl Echo<'_> {
    fn answer(&self, line: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let envelope: Envelope<'_> = serde_json::from_slice(line)?;
        let (Some(id), Some(method)) = (envelope.id, envelope.method) else {
            return Ok(());
        };
        let params = envelope.params.map_or("{}", RawValue::get);
        write!(out, r#"{{"jsonrpc":"2.0","id":{id},"#)?;
        // Nobody is answered in the way of the other era, so that none is measured for the other.
        match (self.era, &*method) {
            (_, "tools/call") => {
                let call: Call<'_> = serde_json::from_str(params)?;
                let text = call.arguments.text;
                self.begin_result(out)?;
                write!(
                    out,
                    r#""content":[{{"type":"text","text":{text}}}],"isError":false}}"#
                )?;
            }
            (Era::Legacy, "initialize") => {
                if let Some(delay) = self.delay {
                    let seconds = fs::read_to_string(delay)?.trim().parse()?;
                    thread::sleep(Duration::from_secs_f64(seconds));
                }
                self.begin_result(out)?;
                write!(
                    out,
                    r#""protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"echo","version":"0"}}}}"#
                )?;
            }
            (Era::Modern, "server/discover") => {
                self.begin_result(out)?;
                write!(
                    out,
                    r#""supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}},{HINTS}}}"#
                )?;
            }
            (_, "tools/list") => {
                let listing: Listing<'_> = serde_json::from_str(params)?;
                let first = listing.cursor.map_or(Ok(0), |cursor| cursor.parse())?;
                self.list(first, out)?;
            }
            (Era::Legacy, "ping") => write!(out, r#""result":{{}}"#)?,
            _ => write!(
                out,
                r#""error":{{"code":-32601,"message":"unknown method"}}"#
            )?,
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }

    /// Writes what every result of the era begins with.
    fn begin_result(&self, out: &mut Vec<u8>) -> Result<()> {
        write!(out, r#""result":{{"#)?;
        if self.era == Era::Modern {
            write!(out, r#""resultType":"complete","#)?;
        }
        Ok(())
    }

    fn list(&self, first: usize, out: &mut Vec<u8>) -> Result<()> {
        let last = self.tools.min(first.saturating_add(PAGE));
        self.begin_result(out)?;
        write!(out, r#""tools":["#)?;
        for number in first..last {
            let comma = if number > first { "," } else { "" };
            let name = match number {
                0 => "echo".to_owned(),
                _ => format!("echo_{number}"),
            };
            write!(
                out,
                r#"{comma}{{"name":"{name}","description":"Says again what it is told, as tool number {number} of its server.","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string","description":"What to say."}}}},"required":["text"]}}}}"#
            )?;
        }
        out.push(b']');
        if last < self.tools {
            write!(out, r#","nextCursor":"{last}""#)?;
        }
        if self.era == Era::Modern {
            write!(out, ",{HINTS}")?;
        }
        out.push(b'}');
        Ok(())
    }
}
