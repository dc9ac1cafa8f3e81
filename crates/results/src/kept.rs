//! [`Kept`]: a whole result, which is read in pages.

use switchboard_wire::Raw;

use crate::border::border;
use crate::budget::{Allowance, Budget};
use crate::note::{self, Reader};
use crate::part::{Part, Text, Whole, whole};

/// A whole result, which is read in pages.
///
/// Offsets count bytes from 0 through the texts of all blocks and then the structured content, unless
/// the texts repeat it. An indivisible block, such as an image, counts as one byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    parts: Vec<Part>,
}

/// A page of a kept result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The blocks of this page. A text is a block of its own, or continues the text of the previous
    /// page.
    pub content: Vec<Raw>,
    /// Offset of the page: the requested offset, moved back to the start of a character.
    pub offset: usize,
    /// Offset of the next page; `None` at the end.
    pub next: Option<usize>,
    /// Length of the whole result.
    pub total: usize,
}

impl Kept {
    pub(crate) fn new(parts: Vec<Part>) -> Self {
        Self { parts }
    }

    /// Length of the whole result.
    pub fn total(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }

    /// Reads the page at `offset`, of at most `limit` bytes and within the budget. It ends at a
    /// natural border and says where to read on; all pages together are the whole result.
    ///
    /// An image is returned whole regardless of its size, because the caller requested it.
    pub fn read(&self, offset: usize, limit: Option<usize>, budget: &Budget) -> Page {
        let total = self.total();
        let mut room = Allowance::new(budget);
        room.reserve_note();
        room.bytes = room.bytes.min(limit.unwrap_or(usize::MAX)).max(1);
        let mut page = Page {
            content: Vec::new(),
            offset: offset.min(total),
            next: None,
            total,
        };
        let mut start = 0;
        let mut at = page.offset;
        for part in &self.parts {
            let end = start + part.len();
            if at < end {
                let taken = match part {
                    Part::Text(text) => page.take_text(text, start, &mut at, &mut room),
                    Part::Whole(block) => page.take_whole(block, &mut room),
                };
                if !taken {
                    page.next = Some(at);
                    break;
                }
                at = end;
            }
            start = end;
        }
        page
    }
}

/// The stored form of a kept result: for each part a letter, two lengths, and the frame and the text
/// that they measure.
impl Kept {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for part in &self.parts {
            let (letter, frame, words) = match part {
                Part::Text(text) => {
                    let letter = if text.json { JSON } else { TEXT };
                    (letter, text.frame.as_bytes(), text.words.as_bytes())
                }
                Part::Whole(block) => (WHOLE, block.as_bytes(), &[][..]),
            };
            out.push(letter);
            out.extend_from_slice(&(frame.len() as u64).to_le_bytes());
            out.extend_from_slice(&(words.len() as u64).to_le_bytes());
            out.extend_from_slice(frame);
            out.extend_from_slice(words);
        }
        out
    }

    /// Decodes a result; `None` if [`encode`](Self::encode) did not write it.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut parts = Vec::new();
        while let Some((letter, rest)) = bytes.split_first() {
            let (frame_length, rest) = rest.split_first_chunk()?;
            let (words_length, rest) = rest.split_first_chunk()?;
            let length = |bytes| usize::try_from(u64::from_le_bytes(bytes)).ok();
            let (frame, rest) = rest.split_at_checked(length(*frame_length)?)?;
            let (words, rest) = rest.split_at_checked(length(*words_length)?)?;
            let frame = Raw::parse(frame.to_vec()).ok()?;
            parts.push(match *letter {
                WHOLE => Part::Whole(frame),
                letter @ (TEXT | JSON) => Part::Text(Text {
                    frame,
                    words: String::from_utf8(words.to_vec()).ok()?,
                    json: letter == JSON,
                }),
                _ => return None,
            });
            bytes = rest;
        }
        Some(Self { parts })
    }
}

const TEXT: u8 = b't';
const JSON: u8 = b'j';
const WHOLE: u8 = b'w';

impl Page {
    /// Takes from a text that begins at `start`, from `at` on. Returns `false` if some of it is left.
    fn take_text(
        &mut self,
        part: &Text,
        start: usize,
        at: &mut usize,
        room: &mut Allowance,
    ) -> bool {
        let text = &part.words;
        let from = text.floor_char_boundary(*at - start);
        if self.content.is_empty() {
            self.offset = start + from;
        }
        let most = room.prefix(&text[from..]);
        if most == 0 && !self.content.is_empty() {
            return false;
        }
        let end = border(text, part.json, from, from + most);
        let piece = &text[from..end];
        self.content.push(part.piece(piece, from == 0));
        room.spend(piece);
        // Count the frames too, or very many short texts would bring very many frames.
        room.spend(part.frame.as_str());
        *at = start + end;
        end == text.len()
    }

    /// Takes an indivisible block, if it fits or the page is still empty.
    fn take_whole(&mut self, block: &Raw, room: &mut Allowance) -> bool {
        let fits = match whole(block) {
            Whole::Media => room.take_media(block),
            Whole::Other => room.take(block.as_str()),
        };
        let taken = fits || self.content.is_empty();
        if taken {
            self.content.push(block.clone());
        }
        if !fits {
            // A block that exceeds the budget gets a page of its own.
            room.bytes = 0;
        }
        taken
    }

    /// The page as a tool result. Its last block says where to read on.
    pub fn to_result(&self, reader: Reader<'_>) -> Raw {
        let (offset, total) = (self.offset, self.total);
        let note = match self.next {
            Some(next) => {
                let call = reader.next_call(next);
                format!("[Bytes {offset} to {next} of {total}. Next: {call}]")
            }
            None if offset >= total => {
                format!("[The result ends at byte {total}: nothing is left.]")
            }
            None => format!("[Bytes {offset} to {total} of {total}: this is the end.]"),
        };
        let blocks = self.content.iter().cloned();
        Raw::object([("content", Raw::array(blocks.chain([note::block(&note)])))])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_not_written_by_encode_are_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..60), letter in "[tjwx]") {
            let _ = Kept::decode(&bytes);
            bytes.splice(0..0, letter.bytes());
            let _ = Kept::decode(&bytes);
            let part = Part::Whole(Raw::number(7));
            let mut written = Kept::new(vec![part]).encode();
            prop_assert!(Kept::decode(&written).is_some());
            written.pop();
            prop_assert!(Kept::decode(&written).is_none());
        }
    }
}
