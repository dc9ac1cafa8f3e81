//! The server behind every subject: small, fast, and the same for all.
//!
//! It answers `initialize` or, in the modern era, `server/discover`; `tools/list` and `tools/call`. It reads
//! and writes in bulk, and parses no more than necessary. Its response to a call contains the text of the
//! call, so that the caller can verify that the response belongs to it.

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

/// Tools per page.
const PAGE: usize = 1_000;

/// Caching hints of the modern era: lifetime and scope.
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

/// The settings from the command line.
struct Echo<'a> {
    era: Era,
    /// Number of tools, the first of which is `echo`.
    tools: usize,
    /// A file with the seconds to sleep before `initialize` is answered.
    delay: Option<&'a Path>,
}

/// The name of an era on the command line and in the results.
pub(super) const fn word(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

/// Serves standard input until it ends, according to the command line: era, number of tools, and an optional
/// delay file.
pub(crate) fn serve(words: &[&str]) -> Result<()> {
    let [era, tools, delay @ ..] = words else {
        return Err("the echo server needs an era and a number of tools".into());
    };
    let eras = [Era::Legacy, Era::Modern];
    let era = eras.into_iter().find(|known| word(*known) == *era);
    let echo = Echo {
        era: era.ok_or("unknown era")?,
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
        // Methods of the other era are not answered, so that no measurement uses the wrong era.
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

    /// Writes the start of a result, as the era requires it.
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
                r#"{comma}{{"name":"{name}","description":"Says again what it is told, as tool number {number} of its server.","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string","description":"What to say."}},"voice":{{"type":"string"}}}},"required":["text"]}}}}"#
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
