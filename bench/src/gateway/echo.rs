//! The server behind every subject: small, fast, and the same for all.
//!
//! It answers `initialize`, `tools/list` and `tools/call`, reads and writes in bulk, and looks no
//! closer than that takes. Its answer to a call holds the text that the call brought, so that whoever
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

use crate::Result;

/// How many tools go into one page.
const PAGE: usize = 1_000;

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

/// Serves standard input until it ends. `tools` is how many tools there are, the first of them
/// `echo`; `delay` names a file with the seconds to sleep before `initialize` is answered.
pub(crate) fn serve(tools: usize, delay: Option<&Path>) -> Result<()> {
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
            answer(&rest[..end], tools, delay, &mut answers)?;
            rest = &rest[end + 1..];
        }
        let done = unread.len() - rest.len();
        unread.drain(..done);
        output.write_all(&answers)?;
        answers.clear();
    }
}

fn answer(line: &[u8], tools: usize, delay: Option<&Path>, out: &mut Vec<u8>) -> Result<()> {
    let envelope: Envelope<'_> = serde_json::from_slice(line)?;
    let (Some(id), Some(method)) = (envelope.id, envelope.method) else {
        return Ok(());
    };
    let params = envelope.params.map_or("{}", RawValue::get);
    write!(out, r#"{{"jsonrpc":"2.0","id":{id},"#)?;
    match &*method {
        "tools/call" => {
            let call: Call<'_> = serde_json::from_str(params)?;
            let text = call.arguments.text;
            write!(
                out,
                r#""result":{{"content":[{{"type":"text","text":{text}}}],"isError":false}}"#
            )?;
        }
        "initialize" => {
            if let Some(delay) = delay {
                let seconds = fs::read_to_string(delay)?.trim().parse()?;
                thread::sleep(Duration::from_secs_f64(seconds));
            }
            write!(
                out,
                r#""result":{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"echo","version":"0"}}}}"#
            )?;
        }
        "tools/list" => {
            let listing: Listing<'_> = serde_json::from_str(params)?;
            let first = listing.cursor.map_or(Ok(0), |cursor| cursor.parse())?;
            list(first, tools, out)?;
        }
        "ping" => write!(out, r#""result":{{}}"#)?,
        _ => write!(
            out,
            r#""error":{{"code":-32601,"message":"unknown method"}}"#
        )?,
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

fn list(first: usize, tools: usize, out: &mut Vec<u8>) -> Result<()> {
    let last = tools.min(first.saturating_add(PAGE));
    write!(out, r#""result":{{"tools":["#)?;
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
    if last < tools {
        write!(out, r#","nextCursor":"{last}""#)?;
    }
    out.push(b'}');
    Ok(())
}
