//! The child: a minimal server. It answers every request with the same hundred bytes, and parses no more of a
//! request than that takes, so that the measured time is the client's.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::AsFd,
};

use switchboard_wire::method;

use crate::Result;

const RESULT: &str = r#"{"content":[{"type":"text","text":"the quick brown fox jumps over the lazy dog"}],"isError":false}"#;
pub(super) const WELCOME: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"0"}}"#;

/// The start of every request that the library and the bare pipes write; their notifications start
/// differently.
pub(super) const REQUEST: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
const METHOD: &[u8] = b",\"method\":\"";

/// Serves standard input until it ends. Responses are collected while there is more input at hand, and then
/// written together.
pub(crate) fn serve() -> Result<()> {
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
            answer(&rest[..end], &mut answers);
            rest = &rest[end + 1..];
        }
        let done = unread.len() - rest.len();
        unread.drain(..done);
        output.write_all(&answers)?;
        answers.clear();
    }
}

fn answer(line: &[u8], out: &mut Vec<u8>) {
    let Some(rest) = line.strip_prefix(REQUEST) else {
        return;
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (id, rest) = rest.split_at(digits);
    let method = rest.strip_prefix(METHOD).unwrap_or_default();
    let is = |name: &str| {
        method
            .strip_prefix(name.as_bytes())
            .is_some_and(|rest| rest.starts_with(b"\""))
    };
    let body = if is(method::INITIALIZE) {
        format!(r#""result":{WELCOME}"#)
    } else if is(method::DISCOVER) {
        r#""error":{"code":-32601,"message":"unknown method"}"#.to_owned()
    } else {
        format!(r#""result":{RESULT}"#)
    };
    out.extend_from_slice(REQUEST);
    out.extend_from_slice(id);
    out.push(b',');
    out.extend_from_slice(body.as_bytes());
    out.extend_from_slice(b"}\n");
}
