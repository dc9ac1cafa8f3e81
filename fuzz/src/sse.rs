//! Server-sent events.

use std::time::Duration;

use switchboard_wire::{SseEvent, SseField, SseParser, SseTooLarge};

use crate::chunks::Plan;

type Events = Vec<Result<SseEvent, SseTooLarge>>;

/// The limits of the parser on everything but data.
const WORD: usize = 1024;
const ID: usize = 64 * 1024;
/// Streams up to this length are compared with the model after every piece, not only at the end.
const SHORT: usize = 64;

/// Events do not depend on how the bytes arrive, and are available as early as possible. The limit is exact.
pub fn sse(data: &[u8]) {
    let Some(plan) = Plan::read(data) else { return };
    let whole = model(plan.limit, plan.stream);
    assert_eq!(parse(&plan, &[plan.stream]), whole);
    assert_eq!(parse(&plan, &plan.pieces()), whole);
}

fn parse(plan: &Plan<'_>, pieces: &[&[u8]]) -> Events {
    let mut parser = SseParser::new(plan.limit);
    let mut events = Vec::new();
    let mut taken = 0;
    for piece in pieces {
        parser.push(piece);
        taken += piece.len();
        while let Some(event) = parser.next_event() {
            events.push(event);
        }
        if plan.stream.len() <= SHORT {
            assert_eq!(events, model(plan.limit, &plan.stream[..taken]));
        }
    }
    events
}

/// The WHATWG rules applied to the whole stream, with the parser's two differences.
fn model(limit: usize, stream: &[u8]) -> Events {
    let mut rest = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let mut events = Vec::new();
    let mut block = Block::default();
    loop {
        let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        let line = &rest[..end.unwrap_or(rest.len())];
        match block.line(limit, line, end.is_some()) {
            Some(too_large) => {
                events.push(Err(too_large));
                block.dropped = true;
            }
            None if line.is_empty() && end.is_some() => events.extend(block.take().map(Ok)),
            None => {}
        }
        let Some(end) = end else { return events };
        let ended = &rest[end..];
        rest = ended.strip_prefix(b"\r\n").unwrap_or(&ended[1..]);
    }
}

#[derive(Default)]
struct Block {
    event: SseEvent,
    lines: Vec<Vec<u8>>,
    dropped: bool,
}

impl Block {
    fn line(&mut self, limit: usize, line: &[u8], complete: bool) -> Option<SseTooLarge> {
        let colon = line.iter().position(|byte| *byte == b':');
        // The name of a field is unknown until it ends.
        if self.dropped || (colon.is_none() && !complete) {
            return None;
        }
        let name = &line[..colon.unwrap_or(line.len())];
        let value = colon.map_or(&[][..], |colon| &line[colon + 1..]);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let (field, limit) = match name {
            b"data" => (SseField::Data, limit),
            b"event" => (SseField::Event, WORD),
            b"id" => (SseField::Id, ID),
            b"retry" => (SseField::Retry, WORD),
            _ => return None,
        };
        let length = if field == SseField::Data {
            self.lines.push(value.to_vec());
            self.lines.join(&b'\n').len()
        } else {
            value.len()
        };
        if length > limit {
            return Some(SseTooLarge { field, limit });
        }
        if complete {
            self.set(field, value);
        }
        None
    }

    fn set(&mut self, field: SseField, value: &[u8]) {
        let text = String::from_utf8_lossy(value).into_owned();
        match field {
            SseField::Data => {}
            SseField::Event => self.event.event = (!text.is_empty()).then_some(text),
            SseField::Id => {
                if !text.contains('\0') {
                    self.event.id = Some(text);
                }
            }
            SseField::Retry => {
                if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
                    let millis = text.parse().unwrap_or(u64::MAX);
                    self.event.retry = Some(Duration::from_millis(millis));
                }
            }
        }
    }

    /// Ends the block at a blank line, and returns its event, if there is one to report.
    fn take(&mut self) -> Option<SseEvent> {
        let block = std::mem::take(self);
        let has_news =
            !block.lines.is_empty() || block.event.id.is_some() || block.event.retry.is_some();
        (has_news && !block.dropped).then(|| SseEvent {
            data: block.lines.join(&b'\n').into(),
            ..block.event
        })
    }
}
