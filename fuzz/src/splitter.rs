//! Splitting a stream into lines.

use bytes::BufMut as _;
use switchboard_wire::{FrameTooLarge, Splitter};

use crate::chunks::Plan;

type Frames = Vec<Result<Vec<u8>, FrameTooLarge>>;

/// Streams up to this length are compared with the model after every piece, not only at the end.
const SHORT: usize = 64;

/// Frames do not depend on how the bytes arrive, and are available as early as possible. The limit is exact.
/// The buffer never exceeds the limit plus one read.
pub fn splitter(data: &[u8]) {
    let Some(plan) = Plan::read(data) else { return };
    let whole = model(plan.limit, plan.stream);
    assert_eq!(split(&plan, &[plan.stream], Splitter::push), whole);
    assert_eq!(split(&plan, &plan.pieces(), Splitter::push), whole);
    let fill = |splitter: &mut Splitter, piece: &[u8]| splitter.buffer().put_slice(piece);
    assert_eq!(split(&plan, &plan.pieces(), fill), whole);
}

fn split(plan: &Plan<'_>, pieces: &[&[u8]], take: impl Fn(&mut Splitter, &[u8])) -> Frames {
    let largest = pieces.iter().map(|piece| piece.len()).max().unwrap_or(0);
    let mut splitter = Splitter::new(plan.limit);
    let mut frames = Vec::new();
    let mut taken = 0;
    for piece in pieces {
        take(&mut splitter, piece);
        taken += piece.len();
        while let Some(frame) = splitter.next_frame() {
            frames.push(frame.map(|frame| frame.to_vec()));
        }
        assert!(splitter.next_frame().is_none(), "none must mean none");

        // One more than the limit, for a carriage return that may belong to the line end.
        let held = splitter.buffer().len();
        assert!(held <= plan.limit + 1, "holds {held} bytes");
        // `BytesMut` doubles its allocation, and frames that were already taken may fill half of it.
        let room = splitter.buffer().capacity();
        assert!(
            room <= 4 * (plan.limit + 1 + largest).max(8),
            "room for {room} bytes"
        );
        if plan.stream.len() <= SHORT {
            assert_eq!(frames, model(plan.limit, &plan.stream[..taken]));
        }
    }
    frames
}

fn model(limit: usize, stream: &[u8]) -> Frames {
    let lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    let mut frames = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let complete = number + 1 < lines.len();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > limit {
            frames.push(Err(FrameTooLarge { limit }));
        } else if complete && !line.iter().all(u8::is_ascii_whitespace) {
            frames.push(Ok(line.to_vec()));
        }
    }
    frames
}
