//! Cuts a stream into pieces, as the head of the fuzz input says.

/// A stream, the limit to read it with, and the sizes of the pieces in which it arrives.
pub(crate) struct Plan<'a> {
    pub(crate) limit: usize,
    pub(crate) stream: &'a [u8],
    sizes: &'a [u8],
}

impl<'a> Plan<'a> {
    /// Reads a byte for the limit, a byte for the number of sizes, the sizes, and the stream.
    pub(crate) fn read(data: &'a [u8]) -> Option<Self> {
        let [limit, count, rest @ ..] = data else {
            return None;
        };
        let (sizes, stream) = rest.split_at_checked(usize::from(count % 6))?;
        let limit = usize::from(*limit);
        Some(Self {
            limit,
            stream,
            sizes,
        })
    }

    /// The stream in pieces, with the sizes taken in turn; in one piece if there are no sizes. A size of zero
    /// gives an empty piece, as a read may.
    pub(crate) fn pieces(&self) -> Vec<&'a [u8]> {
        if self.sizes.iter().all(|size| *size == 0) {
            return vec![self.stream];
        }
        let mut pieces = Vec::new();
        let mut rest = self.stream;
        for size in self.sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at(rest.len().min(usize::from(*size)));
            pieces.push(piece);
            rest = after;
        }
        pieces
    }
}
