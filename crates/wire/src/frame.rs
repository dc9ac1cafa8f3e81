//! Splitting of a byte stream into frames: one JSON text per line, as on stdio and sockets.

use bytes::{Buf, Bytes, BytesMut};

/// Splits a byte stream into lines, with a limit on their length.
///
/// Blank lines are skipped, and a carriage return before the line feed is not part of the frame. A line over
/// the limit yields one error and is then skipped to its end; it is never buffered in full.
///
/// ```
/// use switchboard_wire::Splitter;
///
/// let mut splitter = Splitter::new(8);
/// splitter.push(b"{\"a\":1}\r\n\n{\"b\"");
/// assert_eq!(splitter.next_frame().unwrap().unwrap(), "{\"a\":1}");
/// assert!(splitter.next_frame().is_none());
/// splitter.push(b":2}\n123456789\n[]\n");
/// assert_eq!(splitter.next_frame().unwrap().unwrap(), "{\"b\":2}");
/// assert!(splitter.next_frame().unwrap().is_err());
/// assert_eq!(splitter.next_frame().unwrap().unwrap(), "[]");
/// ```
#[derive(Debug)]
pub struct Splitter {
    buffer: BytesMut,
    limit: usize,
    /// Number of bytes at the start of the buffer that contain no line end, so that each byte is searched
    /// only once.
    searched: usize,
    skipping: bool,
}

/// A line was longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("frame over the limit of {limit} bytes")]
pub struct FrameTooLarge {
    /// The largest allowed frame, in bytes.
    pub limit: usize,
}

impl Splitter {
    /// Creates a splitter for frames of at most `limit` bytes, not counting the line end.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            limit,
            searched: 0,
            skipping: false,
        }
    }

    /// Appends bytes that were read.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the buffer, for readers that append to one instead of calling [`push`](Self::push). The bytes
    /// that are already in it must not be changed.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Returns the next complete frame, if there is one. Call it until it returns `None` before reading more:
    /// this bounds the memory to the limit plus one read.
    pub fn next_frame(&mut self) -> Option<Result<Bytes, FrameTooLarge>> {
        loop {
            let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                return self.wait_for_more();
            };
            let end = self.searched + found;
            self.searched = 0;
            if self.skipping {
                self.skipping = false;
                self.buffer.advance(end + 1);
                continue;
            }
            let line = self.buffer.split_to(end + 1).freeze();
            let line = line.slice(..end);
            let line = match line.strip_suffix(b"\r") {
                Some(stripped) => line.slice_ref(stripped),
                None => line,
            };
            if line.len() > self.limit {
                return Some(Err(self.too_large()));
            }
            if !line.trim_ascii().is_empty() {
                return Some(Ok(line));
            }
        }
    }

    fn wait_for_more(&mut self) -> Option<Result<Bytes, FrameTooLarge>> {
        if self.skipping {
            self.buffer.clear();
            self.searched = 0;
            return None;
        }
        self.searched = self.buffer.len();
        // The carriage return may turn out to be part of the line end.
        let length = self
            .buffer
            .strip_suffix(b"\r")
            .unwrap_or(&self.buffer)
            .len();
        if length <= self.limit {
            return None;
        }
        self.buffer = BytesMut::new();
        self.searched = 0;
        self.skipping = true;
        Some(Err(self.too_large()))
    }

    fn too_large(&self) -> FrameTooLarge {
        FrameTooLarge { limit: self.limit }
    }
}

/// Appends a frame to `lines` as one line.
///
/// JSON may contain line breaks between its tokens, and a peer over HTTP may send such a frame. Written as it
/// is, each of its lines would become a message of its own, one that was never checked. JSON strings contain
/// no raw line breaks, so replacing each with a space does not change the meaning.
///
/// ```
/// use bytes::BytesMut;
/// use switchboard_wire::put_line;
///
/// let mut lines = BytesMut::new();
/// put_line(&mut lines, b"{\"a\":\r\n{\"b\":1}\n}");
/// assert_eq!(&lines[..], b"{\"a\":  {\"b\":1} }\n");
/// ```
pub fn put_line(lines: &mut BytesMut, frame: &[u8]) {
    lines.reserve(frame.len() + 1);
    let start = lines.len();
    lines.extend_from_slice(frame);
    let mut rest = &mut lines[start..];
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        rest[at] = b' ';
        rest = &mut rest[at + 1..];
    }
    lines.extend_from_slice(b"\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(limit: usize, chunks: &[&[u8]]) -> Vec<Result<Vec<u8>, FrameTooLarge>> {
        let mut splitter = Splitter::new(limit);
        let mut out = Vec::new();
        for chunk in chunks {
            splitter.push(chunk);
            while let Some(frame) = splitter.next_frame() {
                out.push(frame.map(|frame| frame.to_vec()));
            }
        }
        out
    }

    #[test]
    fn limit_is_exact() {
        let limit = crate::limits::FRAME_BYTES;
        for end in [b"\n".as_slice(), b"\r\n"] {
            let exact = [vec![b'x'; limit], end.to_vec()].concat();
            assert_eq!(split(limit, &[&exact]), [Ok(vec![b'x'; limit])]);
            let over = [vec![b'x'; limit + 1], end.to_vec(), b"1\n".to_vec()].concat();
            assert_eq!(
                split(limit, &[&over]),
                [Err(FrameTooLarge { limit }), Ok(b"1".to_vec())]
            );
        }
    }

    #[test]
    fn endless_line_is_not_buffered() {
        let mut splitter = Splitter::new(1024);
        let mut errors = 0;
        for _ in 0..10_000 {
            splitter.push(&[b'x'; 512]);
            while let Some(frame) = splitter.next_frame() {
                assert!(frame.is_err());
                errors += 1;
            }
            assert!(splitter.buffer.capacity() <= 8 * 1024);
        }
        assert_eq!(errors, 1);
    }

    #[test]
    fn carriage_return_may_arrive_before_its_line_feed() {
        assert_eq!(split(2, &[b"ab\r", b"\n"]), [Ok(b"ab".to_vec())]);
        assert_eq!(
            split(2, &[b"ab\r", b"c\n"]),
            [Err(FrameTooLarge { limit: 2 })]
        );
    }

    #[test]
    fn chunking_does_not_change_the_frames() {
        let text = b"{\"a\":1}\n\r\n  \n123456789012\n\n[]\r\n\"\xff\"\n";
        let whole = split(10, &[text]);
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(split(10, &bytes), whole);
        assert_eq!(whole.len(), 4);
    }
}
