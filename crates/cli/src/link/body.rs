//! The gateway's response: its head, and its body with a known length, in chunks, or up to the end of the
//! connection. All of it is bounded.

use std::io::{self, BufRead, BufReader, Read};

use serde::de::DeserializeOwned;
use switchboard_terminal::error::Error;
use switchboard_wire::Raw;

use super::{Timed, lost};

/// The longest head, in bytes.
const HEAD_BYTES: u64 = 64 * 1024;
/// The longest body that is read as a whole, in bytes.
const BODY_BYTES: u64 = 256 * 1024 * 1024;
/// The longest line with the size of a chunk, in bytes.
const CHUNK_HEAD_BYTES: u64 = 1024;

/// A response whose head has been read.
pub(super) struct Answer {
    status: u16,
    length: Length,
    from: BufReader<Timed>,
}

enum Length {
    /// Bytes left.
    Known(u64),
    /// Bytes left in the chunk.
    Chunk(u64),
    /// The last chunk has been read.
    End,
    /// The body ends with the connection.
    Open,
}

impl Answer {
    pub(super) fn read_head(stream: Timed) -> Result<Self, Error> {
        let mut from = BufReader::new(stream);
        let mut head = (&mut from).take(HEAD_BYTES);
        let mut line = String::new();
        head.read_line(&mut line).map_err(|error| lost(&error))?;
        if line.is_empty() {
            return Err(left());
        }
        let status = line
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3)?.parse().ok())
            .ok_or_else(not_understood)?;
        let mut length = Length::Open;
        loop {
            line.clear();
            head.read_line(&mut line).map_err(|error| lost(&error))?;
            if !line.ends_with('\n') {
                return Err(not_understood());
            }
            if line.trim_end().is_empty() {
                break;
            }
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            if name.eq_ignore_ascii_case("content-length") {
                let bytes = value.trim().parse().map_err(|_| not_understood())?;
                length = Length::Known(bytes);
            } else if name.eq_ignore_ascii_case("transfer-encoding")
                && value.trim().eq_ignore_ascii_case("chunked")
            {
                length = Length::Chunk(0);
            }
        }
        Ok(Self {
            status,
            length,
            from,
        })
    }

    /// The response, or the problem that it reports.
    pub(super) fn or_problem(self) -> Result<Self, Error> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        let status = self.status;
        let text = self.text().unwrap_or_default();
        Err(problem(text, || {
            format!("the gateway responded with HTTP status {status}")
        }))
    }

    pub(super) fn text(mut self) -> Result<String, Error> {
        let mut bytes = Vec::new();
        (&mut self)
            .take(BODY_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| lost(&error))?;
        if bytes.len() as u64 > BODY_BYTES {
            return Err(Error::new("the gateway's response is longer than 256 MiB"));
        }
        String::from_utf8(bytes).map_err(|_| not_understood())
    }

    /// Parses the response. Parts that come from servers should be [`Raw`]: they may hold values that no tree
    /// can represent.
    pub(super) fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        let raw = Raw::parse(self.text()?).map_err(|_| not_understood())?;
        raw.read_owned().map_err(|_| not_understood())
    }

    /// Advances to the next chunk and returns its size, which is 0 for the last.
    fn next_chunk(&mut self) -> io::Result<u64> {
        loop {
            let mut line = String::new();
            (&mut self.from)
                .take(CHUNK_HEAD_BYTES)
                .read_line(&mut line)?;
            if !line.ends_with('\n') {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let digits = line.split(';').next().unwrap_or_default().trim();
            // The line break after the previous chunk.
            if digits.is_empty() {
                continue;
            }
            return u64::from_str_radix(digits, 16)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
        }
    }

    fn read_some(&mut self, to: &mut [u8], left: u64) -> io::Result<usize> {
        let most = usize::try_from(left).map_or(to.len(), |left| left.min(to.len()));
        match self.from.read(&mut to[..most])? {
            0 if most > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => Ok(read),
        }
    }
}

impl Read for Answer {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if let Length::Chunk(0) = self.length {
            self.length = match self.next_chunk()? {
                0 => Length::End,
                bytes => Length::Chunk(bytes),
            };
        }
        match self.length {
            Length::Open => self.from.read(to),
            Length::End | Length::Known(0) => Ok(0),
            Length::Known(left) => {
                let read = self.read_some(to, left)?;
                self.length = Length::Known(left - read as u64);
                Ok(read)
            }
            Length::Chunk(left) => {
                let read = self.read_some(to, left)?;
                self.length = Length::Chunk(left - read as u64);
                Ok(read)
            }
        }
    }
}

/// The error that a problem describes, or `unread` if the problem cannot be parsed.
pub(super) fn problem(text: String, unread: impl FnOnce() -> String) -> Error {
    // Read member by member: fields that another version adds must not hide the error.
    let problem = Raw::parse(text).ok();
    let member = |name: &str| problem.as_ref()?.member(name)?.to_text();
    let mut message = [member("detail"), member("title")].into_iter().flatten();
    let message = message.find(|message| !message.is_empty());
    // Lines of a server must not look like lines of this program.
    let message = message.map(|message| message.replace('\n', "\n  "));
    let failure = Error::new(message.unwrap_or_else(unread));
    match member("hint") {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn left() -> Error {
    Error::unreachable("the gateway closed the connection before it responded")
        .hint("check with `switchboard status` that it is running; the request may have completed")
}

fn not_understood() -> Error {
    Error::unreachable("cannot parse the response on the gateway's socket").hint(
        "if the gateway has another version, run `switchboard stop`, then `switchboard serve`",
    )
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, os::unix::net::UnixStream};

    use super::*;

    fn answer(text: &str) -> Result<Answer, Error> {
        let (mut here, there) = UnixStream::pair().unwrap();
        here.write_all(text.as_bytes()).unwrap();
        drop(here);
        Answer::read_head(Timed::new(there, None))
    }

    #[test]
    fn body_is_read_in_all_three_encodings() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello and more",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nhello",
        ] {
            assert_eq!(answer(text).unwrap().text().unwrap(), "hello", "{text}");
        }
    }

    #[test]
    fn truncated_body_is_an_error() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n",
        ] {
            assert!(answer(text).unwrap().text().is_err(), "{text}");
        }
        for text in ["", "hello", "HTTP/1.1 2", "HTTP/1.1 200 OK\r\nhalf"] {
            assert!(answer(text).is_err(), "{text}");
        }
    }

    #[test]
    fn problem_is_reported_with_its_hint() {
        let problem = |body: &str| {
            let text = format!("HTTP/1.1 404 Not Found\r\n\r\n{body}");
            answer(&text).unwrap().or_problem().err().unwrap()
        };
        let failure = problem(
            r#"{"title":"Not Found","detail":"there is no server \"x\"","hint":"did you mean \"y\"?"}"#,
        );
        assert_eq!(failure.message(), r#"there is no server "x""#);
        assert_eq!(failure.advice(), Some(r#"did you mean "y"?"#));
        let failure = problem(r#"{"title":"Not Found","detail":"there is no server \"x; y\""}"#);
        assert_eq!(failure.message(), r#"there is no server "x; y""#);
        assert_eq!(failure.advice(), None);
        let failure = answer("HTTP/1.1 500 Oh\r\n\r\nno").unwrap().or_problem();
        assert_eq!(
            failure.err().unwrap().message(),
            "the gateway responded with HTTP status 500"
        );
    }
}
