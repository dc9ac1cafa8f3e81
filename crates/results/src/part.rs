//! The parts that a result consists of.

use switchboard_wire::Raw;

use crate::json;
use crate::limits::{BLOCKS, FRAME_BYTES};

/// A part of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(Text),
    /// A block that is shown whole or not at all.
    Whole(Raw),
}

/// A text, and the block that it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    /// The block with an empty text.
    pub(crate) frame: Raw,
    pub(crate) words: String,
    /// Whether the text is JSON, so that it can be cut between elements.
    pub(crate) json: bool,
}

/// What kind of block is shown whole or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whole {
    /// An image or audio, which models do not read as text.
    Media,
    Other,
}

impl Part {
    /// Reads a block of content.
    pub(crate) fn of_block(block: &Raw) -> Self {
        let text = match kind(block).as_deref() {
            Some("text") => Text::in_member(block, block.member("text")),
            Some("resource") => {
                let resource = block.member("resource");
                let text = resource.and_then(|resource| resource.member("text"));
                Text::in_member(block, text)
            }
            _ => None,
        };
        text.map_or_else(|| Self::Whole(block.clone()), Self::Text)
    }

    /// How many places of a kept result it takes: one for every byte of text, and one for a block that
    /// cannot be divided.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.words.len(),
            Self::Whole(_) => 1,
        }
    }
}

impl Text {
    /// JSON that is told as text.
    pub(crate) fn of_json(value: &Raw) -> Self {
        let text = value.as_str().to_owned();
        Self {
            frame: plain(""),
            json: json::is_json(&text),
            words: text,
        }
    }

    /// A text that is a member of the block, or of its resource.
    fn in_member(block: &Raw, text: Option<Raw>) -> Option<Self> {
        let text = text?.to_text()?;
        let frame = with_text(block, "")?;
        Some(Self {
            json: json::is_json(&text),
            frame,
            words: text,
        })
    }

    /// A piece of the text as a block. The first piece comes in the block of the text, unless that is
    /// a burden by itself.
    pub(crate) fn piece(&self, piece: &str, first: bool) -> Raw {
        if first && self.frame.as_bytes().len() <= FRAME_BYTES {
            with_text(&self.frame, piece).unwrap_or_else(|| plain(piece))
        } else {
            plain(piece)
        }
    }
}

/// The blocks of a result's content, as parts; and what was structured beside them.
pub(crate) struct Parts {
    pub(crate) content: Vec<Part>,
    pub(crate) structured: Option<Raw>,
}

/// Reads a result; `None` if it is not what results of tools are.
pub(crate) fn read(result: &Raw) -> Option<Parts> {
    if !result.is_object() {
        return None;
    }
    let structured = result.member("structuredContent");
    let structured = structured.filter(|value| value.as_bytes() != b"null");
    let mut blocks = match result.member("content") {
        Some(content) => content.elements()?,
        None => Vec::new(),
    };
    if blocks.is_empty() && structured.is_none() {
        return None;
    }
    // Nobody sends so many blocks but to do harm.
    let rest = blocks.split_off(blocks.len().min(BLOCKS));
    let mut content: Vec<Part> = blocks.iter().map(Part::of_block).collect();
    if !rest.is_empty() {
        content.push(Part::Text(Text::of_json(&Raw::array(rest))));
    }
    Some(Parts {
        content,
        structured,
    })
}

/// A text block.
pub(crate) fn plain(text: &str) -> Raw {
    Raw::object([("type", Raw::string("text")), ("text", Raw::string(text))])
}

/// The block with another text.
pub(crate) fn with_text(block: &Raw, text: &str) -> Option<Raw> {
    let text = Raw::string(text);
    match kind(block).as_deref() {
        Some("resource") => {
            let resource = block.member("resource")?.with_member("text", &text).ok()?;
            block.with_member("resource", &resource).ok()
        }
        _ => block.with_member("text", &text).ok(),
    }
}

/// What kind of block this is.
pub(crate) fn whole(block: &Raw) -> Whole {
    match kind(block).as_deref() {
        Some("image" | "audio") => Whole::Media,
        _ => Whole::Other,
    }
}

pub(crate) fn kind(block: &Raw) -> Option<String> {
    block.member("type")?.to_text()
}
