//! An incremental parser for Server-Sent Events.
//!
//! MCP streams its responses over HTTP as `text/event-stream`. This module parses that format and
//! does nothing else: no sockets, no reconnection, no interpretation of events. It follows the
//! WHATWG event-stream rules with two differences that a browser does not need:
//!
//! * An event without data is reported when it carries an `id` or a `retry`. Servers of revision
//!   2025-11-25 open a stream with such a priming event, so that a client can resume a stream that
//!   broke before its first message.
//! * The `id` is reported on the event that carried it, and not remembered for later events. The
//!   transport decides what to send as `Last-Event-ID`.
//!
//! The parser does not let the peer exhaust memory: bytes go straight from the chunk into the one
//! event under construction, comments and unknown fields are discarded, and an event larger than
//! the limit becomes one [`SseTooLarge`] while the stream remains readable.

use std::{collections::VecDeque, fmt, time::Duration};

use bytes::Bytes;

/// The longest `event` or `retry` value. MCP uses the names `message` and `endpoint`.
const MAX_WORD: usize = 1024;
/// The longest `id` value. Servers put cursors here, and the value has to fit into a request header
/// anyway.
const MAX_ID: usize = 64 * 1024;
/// The longest field name that has a meaning (`event`, `retry`).
const MAX_NAME: usize = 5;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// The event type; `None` if the stream named none, which WHATWG calls `message`.
    pub event: Option<String>,
    /// The `data` lines joined with line feeds, as sent. The JSON layer checks the UTF-8, so that
    /// no byte is silently replaced before that.
    pub data: Bytes,
    /// The id that this event carried. An empty id differs from none: it resets the resume point.
    pub id: Option<String>,
    /// The time that the server asks the client to wait before it reconnects.
    pub retry: Option<Duration>,
}

/// The fields of an event, to name the one that was too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SseField {
    /// The payload.
    Data,
    /// The event type.
    Event,
    /// The event id.
    Id,
    /// The reconnection time.
    Retry,
}

impl SseField {
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"data" => Some(Self::Data),
            b"event" => Some(Self::Event),
            b"id" => Some(Self::Id),
            b"retry" => Some(Self::Retry),
            _ => None,
        }
    }
}

impl fmt::Display for SseField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "data",
            Self::Event => "event",
            Self::Id => "id",
            Self::Retry => "retry",
        })
    }
}

/// An event that was dropped because one of its fields exceeded its limit.
///
/// Reported once per event, as soon as the limit is exceeded and not at the end of the event, so
/// that a caller that wants to disconnect need not read the rest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` of a server-sent event over the limit of {limit} bytes")]
pub struct SseTooLarge {
    /// The field that did not fit.
    pub field: SseField,
    /// The limit of the field, in bytes.
    pub limit: usize,
}

/// An incremental `text/event-stream` parser.
///
/// [`push`](Self::push) the bytes that were read, then call [`next_event`](Self::next_event) until
/// it returns `None`. At the end of the stream drop the parser: an event without its closing blank
/// line is incomplete, and the format says to discard it.
///
/// Every byte is processed once, regardless of the size of the chunks. The parser holds the event
/// under construction (at most the limit) plus the finished events that were not taken yet.
///
/// ```
/// use switchboard_wire::SseParser;
///
/// let mut parser = SseParser::new(1024);
/// parser.push(b"id: 7\ndata: {\"jsonrpc\"");
/// assert!(parser.next_event().is_none());
/// parser.push(b":\"2.0\"}\n\n");
///
/// let event = parser.next_event().unwrap()?;
/// assert_eq!(event.id.as_deref(), Some("7"));
/// assert_eq!(&event.data[..], br#"{"jsonrpc":"2.0"}"#);
/// # Ok::<(), switchboard_wire::SseTooLarge>(())
/// ```
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    line: Line,
    /// The last line ended in CR, so an LF that follows is part of that line end.
    after_cr: bool,
    name: [u8; MAX_NAME],
    /// The value being read, of every field but `data`.
    value: Vec<u8>,
    block: Block,
    /// The block was reported as too large; everything up to its end is dropped.
    skipping: bool,
    ready: VecDeque<Result<SseEvent, SseTooLarge>>,
}

/// The position of the parser within its line.
#[derive(Debug, Clone, Copy)]
enum Line {
    /// Before the first byte that is not part of a byte order mark.
    Bom { matched: usize },
    /// In the field name; at the start of the line if `len` is 0.
    Name { len: usize },
    /// In the value; `fresh` until the optional space after the colon has been consumed.
    Value { field: SseField, fresh: bool },
    /// In a comment, an unknown field or a dropped event: only the line end matters.
    Rest,
}

/// The event under construction.
#[derive(Debug, Default)]
struct Block {
    event: Option<String>,
    data: Vec<u8>,
    /// Distinguishes an empty `data:` line from no data line at all.
    has_data: bool,
    id: Option<String>,
    retry: Option<Duration>,
}

impl SseParser {
    /// Creates a parser for the start of a stream that accepts up to `limit` bytes of data per
    /// event.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Line::Bom { matched: 0 },
            after_cr: false,
            name: [0; MAX_NAME],
            value: Vec::new(),
            block: Block::default(),
            skipping: false,
            ready: VecDeque::new(),
        }
    }

    /// Parses the next bytes of the stream. Chunks may end anywhere.
    pub fn push(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while let Some((&byte, after)) = rest.split_first() {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                rest = after;
                continue;
            }
            rest = match self.line {
                Line::Bom { matched } => self.read_bom(matched, rest),
                Line::Name { len } => {
                    self.read_name(len, byte);
                    after
                }
                Line::Value { field, fresh } => {
                    let fresh_space = fresh && byte == b' ';
                    self.line = Line::Value {
                        field,
                        fresh: false,
                    };
                    self.read_value(field, if fresh_space { after } else { rest })
                }
                Line::Rest => match memchr::memchr2(b'\r', b'\n', rest) {
                    Some(end) => self.end_line(&rest[end..]),
                    None => &[],
                },
            };
        }
    }

    /// Returns the next finished event, or `None` until more bytes are pushed.
    ///
    /// An error stands for one event; the events after it are parsed as usual.
    pub fn next_event(&mut self) -> Option<Result<SseEvent, SseTooLarge>> {
        self.ready.pop_front()
    }

    fn read_bom<'a>(&mut self, matched: usize, rest: &'a [u8]) -> &'a [u8] {
        if rest.first() == BOM.get(matched) {
            self.line = match matched + 1 {
                matched if matched == BOM.len() => Line::Name { len: 0 },
                matched => Line::Bom { matched },
            };
            return &rest[1..];
        }
        // Part of a byte order mark is the start of an unknown field name.
        self.line = if matched == 0 {
            Line::Name { len: 0 }
        } else {
            Line::Rest
        };
        rest
    }

    fn read_name(&mut self, len: usize, byte: u8) {
        match byte {
            b'\r' | b'\n' => {
                if len == 0 {
                    self.end_block();
                } else if let Some(field) = SseField::named(&self.name[..len])
                    && self.begin(field)
                {
                    self.finish(field);
                }
                self.after_cr = byte == b'\r';
                self.line = Line::Name { len: 0 };
            }
            _ if self.skipping => self.line = Line::Rest,
            b':' => match SseField::named(&self.name[..len]) {
                Some(field) if self.begin(field) => self.line = Line::Value { field, fresh: true },
                _ => self.line = Line::Rest,
            },
            _ if len == MAX_NAME => self.line = Line::Rest,
            _ => {
                self.name[len] = byte;
                self.line = Line::Name { len: len + 1 };
            }
        }
    }

    fn read_value<'a>(&mut self, field: SseField, rest: &'a [u8]) -> &'a [u8] {
        let Some(end) = memchr::memchr2(b'\r', b'\n', rest) else {
            self.append(field, rest);
            return &[];
        };
        let (text, line_end) = rest.split_at(end);
        if self.append(field, text) {
            self.finish(field);
        }
        self.end_line(line_end)
    }

    /// Consumes the CR or LF that `rest` starts with.
    fn end_line<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        self.line = Line::Name { len: 0 };
        self.after_cr = rest.first() == Some(&b'\r');
        &rest[1..]
    }

    /// Prepares for a value. Returns `false` if the event is now too large.
    fn begin(&mut self, field: SseField) -> bool {
        if field != SseField::Data {
            self.value.clear();
            return true;
        }
        let first = !std::mem::replace(&mut self.block.has_data, true);
        first || self.append(field, b"\n")
    }

    /// Appends to a value. Returns `false` if the event is now too large.
    fn append(&mut self, field: SseField, bytes: &[u8]) -> bool {
        let (buffer, limit) = match field {
            SseField::Data => (&mut self.block.data, self.limit),
            SseField::Event | SseField::Retry => (&mut self.value, MAX_WORD),
            SseField::Id => (&mut self.value, MAX_ID),
        };
        let Some(len) = buffer
            .len()
            .checked_add(bytes.len())
            .filter(|len| *len <= limit)
        else {
            self.ready.push_back(Err(SseTooLarge { field, limit }));
            self.block = Block::default();
            self.value = Vec::new();
            self.skipping = true;
            self.line = Line::Rest;
            return false;
        };
        if len > buffer.capacity() {
            // A data line within one chunk gets exactly the memory it needs and is never moved; for
            // one spread over many chunks the buffer doubles as usual, but never beyond the limit.
            let room = len.max(buffer.capacity().saturating_mul(2).min(limit));
            buffer.reserve_exact(room - buffer.len());
        }
        buffer.extend_from_slice(bytes);
        true
    }

    /// Stores a complete value in the block.
    fn finish(&mut self, field: SseField) {
        match field {
            SseField::Data => {}
            SseField::Event => {
                self.block.event = (!self.value.is_empty()).then(|| lossy(&self.value));
            }
            SseField::Id if self.value.contains(&0) => {}
            SseField::Id => self.block.id = Some(lossy(&self.value)),
            SseField::Retry => {
                if !self.value.is_empty() && self.value.iter().all(u8::is_ascii_digit) {
                    // There are only digits, so parsing fails only for a number beyond 64 bits.
                    let millis = lossy(&self.value).parse().unwrap_or(u64::MAX);
                    self.block.retry = Some(Duration::from_millis(millis));
                }
            }
        }
    }

    /// Handles a blank line: the event is complete.
    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        if std::mem::take(&mut self.skipping) {
            return;
        }
        if block.has_data || block.id.is_some() || block.retry.is_some() {
            self.ready.push_back(Ok(SseEvent {
                event: block.event,
                data: Bytes::from(block.data),
                id: block.id,
                retry: block.retry,
            }));
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Outcome = Result<SseEvent, SseTooLarge>;

    fn drain(parser: &mut SseParser) -> Vec<Outcome> {
        std::iter::from_fn(|| parser.next_event()).collect()
    }

    fn parse_with(limit: usize, input: &[u8]) -> Vec<Outcome> {
        let mut parser = SseParser::new(limit);
        parser.push(input);
        drain(&mut parser)
    }

    fn parse(input: &[u8]) -> Vec<SseEvent> {
        parse_with(1 << 20, input)
            .into_iter()
            .map(Result::unwrap)
            .collect()
    }

    fn data(input: &[u8]) -> Vec<Bytes> {
        parse(input).into_iter().map(|event| event.data).collect()
    }

    fn too_large(field: SseField, limit: usize) -> Outcome {
        Err(SseTooLarge { field, limit })
    }

    /// Parses a whole stream at once, literally as WHATWG specifies it and without limits.
    fn reference(input: &[u8]) -> Vec<SseEvent> {
        let mut rest = input.strip_prefix(BOM).unwrap_or(input);
        let mut events = Vec::new();
        let mut event = SseEvent::default();
        let mut lines: Vec<&[u8]> = Vec::new();
        while let Some(end) = rest.iter().position(|b| matches!(b, b'\r' | b'\n')) {
            let line = &rest[..end];
            rest = &rest[end..];
            rest = rest.strip_prefix(b"\r\n").unwrap_or(&rest[1..]);
            if line.is_empty() {
                let done = std::mem::take(&mut event);
                if !lines.is_empty() || done.id.is_some() || done.retry.is_some() {
                    events.push(SseEvent {
                        data: lines.join(&b'\n').into(),
                        ..done
                    });
                }
                lines.clear();
                continue;
            }
            let colon = line.iter().position(|b| *b == b':').unwrap_or(line.len());
            let value = line.get(colon + 1..).unwrap_or_default();
            let value = value.strip_prefix(b" ").unwrap_or(value);
            let text = String::from_utf8_lossy(value).into_owned();
            match &line[..colon] {
                b"data" => lines.push(value),
                b"event" => event.event = Some(text).filter(|text| !text.is_empty()),
                b"id" if !text.contains('\0') => event.id = Some(text),
                b"retry" if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
                    let millis = text.parse().unwrap_or(u64::MAX);
                    event.retry = Some(Duration::from_millis(millis));
                }
                _ => {}
            }
        }
        events
    }

    #[test]
    fn examples_of_the_standard_are_parsed() {
        assert_eq!(
            data(b"data: YHOO\ndata: +2\ndata: 10\n\n"),
            ["YHOO\n+2\n10"]
        );
        let events = parse(
            b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
        );
        assert_eq!(events[0].id.as_deref(), Some("1"));
        assert_eq!(events[1].id.as_deref(), Some(""));
        assert_eq!(events[2].id, None);
        assert_eq!(events[2].data, " third event");
        assert_eq!(data(b"data\n\ndata\ndata\n\ndata:"), ["", "\n"]);
        assert_eq!(data(b"data:test\n\ndata: test\n\n"), ["test", "test"]);
    }

    #[test]
    fn events_with_an_id_or_retry_are_reported() {
        let primed = SseEvent {
            id: Some("0".into()),
            retry: Some(Duration::from_secs(3)),
            ..SseEvent::default()
        };
        for input in ["id: 0\nretry: 3000\ndata:\n\n", "id: 0\nretry: 3000\n\n"] {
            assert_eq!(parse(input.as_bytes()).remove(0), primed);
        }
        let nothing = b"event: ping\n\n:\n\n\n\nid: a\0b\n\nretry: 1s\n\n";
        assert_eq!(parse(nothing), []);
    }

    #[test]
    fn fields_follow_the_standard_to_the_letter() {
        let one = |input: &[u8]| parse(input).remove(0);
        assert_eq!(one(b"event: a\nevent:\ndata\n\n").event, None);
        assert_eq!(
            one(b"event: \xff\ndata\n\n").event.as_deref(),
            Some("\u{fffd}")
        );
        assert_eq!(one(b"id: a\nid: b\0\ndata\n\n").id.as_deref(), Some("a"));
        assert_eq!(one(b"data: \xff\xfe\n\n").data, &b"\xff\xfe"[..]);
        assert_eq!(one(b"data: a\nDATA: b\n data: c\ndatax: d\n\n").data, "a");
        assert_eq!(
            one(b"retry: 5\nretry\nretry: -1\n\n").retry,
            Some(Duration::from_millis(5))
        );
        assert_eq!(
            one(b"retry: 99999999999999999999999\n\n").retry,
            Some(Duration::from_millis(u64::MAX))
        );
    }

    #[test]
    fn line_ends_and_byte_order_mark_are_handled() {
        assert_eq!(data(b"data: a\r\ndata: b\rdata: c\n\r\n"), ["a\nb\nc"]);
        assert_eq!(data(b"data: a\r\rdata: b\n\n"), ["a", "b"]);
        assert_eq!(
            data(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n"),
            ["a"]
        );
        assert_eq!(data(b"\xef\xbbdata: a\ndata: b\n\n"), ["b"]);
        let mut parser = SseParser::new(10);
        for chunk in [&b"\xef"[..], b"\xbb", b"\xbfdata: a\r", b"\n\r"] {
            assert_eq!(parser.next_event(), None);
            parser.push(chunk);
        }
        // The blank line is complete at its CR; waiting for an LF would delay the event.
        assert_eq!(drain(&mut parser).len(), 1);
        parser.push(b"\ndata: b\n\n");
        assert_eq!(drain(&mut parser)[0].clone().unwrap().data, "b");
    }

    #[test]
    fn event_over_the_limit_is_dropped_alone() {
        let full = |text: &'static str| {
            Ok(SseEvent {
                data: text.into(),
                ..SseEvent::default()
            })
        };
        let input = b"data: 1234\n\ndata: 12345\ndata: 12345\nid: 3\n\ndata: 12\ndata: 3\n\ndata: 12\ndata: 34\n\ndata: ok\n\n";
        let error = || too_large(SseField::Data, 4);
        assert_eq!(
            parse_with(4, input),
            [full("1234"), error(), full("12\n3"), error(), full("ok")]
        );
        assert_eq!(
            parse_with(0, b"data\ndata\n\ndata\n\n"),
            [too_large(SseField::Data, 0), full("")]
        );
        let mut parser = SseParser::new(4);
        parser.push(b"data: 12345");
        assert_eq!(
            drain(&mut parser),
            [error()],
            "reported before the event ends"
        );
    }

    #[test]
    fn endless_lines_are_not_buffered() {
        let mut parser = SseParser::new(100);
        let held = |parser: &SseParser| parser.block.data.capacity() + parser.value.capacity();
        for start in ["\n: ", "\nunknown: ", "\nunknown", "\n\u{fffd}", "\ndata: "] {
            parser.push(start.as_bytes());
            for _ in 0..1000 {
                parser.push(&[b'x'; 1000]);
                assert!(held(&parser) <= 100);
            }
        }
        assert_eq!(drain(&mut parser), [too_large(SseField::Data, 100)]);
        for (start, field, limit) in [
            ("\n\nid: ", SseField::Id, MAX_ID),
            ("\n\nevent: ", SseField::Event, MAX_WORD),
            ("\n\nretry: ", SseField::Retry, MAX_WORD),
        ] {
            parser.push(start.as_bytes());
            parser.push(&vec![b'1'; limit]);
            assert_eq!(parser.next_event(), None);
            parser.push(b"1");
            assert_eq!(drain(&mut parser), [too_large(field, limit)]);
        }
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            "data",
            "event",
            "id",
            "retry",
            "datax",
            ":",
            ": ",
            " ",
            "\n",
            "\r",
            "\r\n",
            "\n\n",
            "\u{feff}",
            "\0",
            "7",
            "42",
            "text",
            "é",
            "data: x\n",
            "id: 1\n",
        ]);
        let piece = prop_oneof![
            20 => piece.prop_map(|piece| piece.as_bytes().to_vec()),
            1 => any::<u8>().prop_map(|byte| vec![byte]),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn agrees_with_the_reference(input in stream()) {
            prop_assert_eq!(parse(&input), reference(&input));
        }

        #[test]
        fn chunking_changes_nothing(
            input in stream(),
            limit in 0_usize..8,
            sizes in prop::collection::vec(1_usize..5, 1..20),
        ) {
            let mut parser = SseParser::new(limit);
            let mut rest = &input[..];
            for size in sizes.iter().cycle() {
                let (chunk, after) = rest.split_at((*size).min(rest.len()));
                parser.push(chunk);
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(drain(&mut parser), parse_with(limit, &input));
        }
    }
}
