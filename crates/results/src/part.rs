//! The parts of a result.

use switchboard_wire::Raw;

use crate::json;
use crate::limits::{BLOCKS, FRAME_BYTES};

/// A part of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(Text),
    /// An indivisible block, shown whole or not at all.
    Whole(Raw),
}

/// A text, and the block that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    /// The block with an empty text.
    pub(crate) frame: Raw,
    pub(crate) words: String,
    /// The text is JSON, so it can be cut between elements.
    pub(crate) json: bool,
}

/// The kind of an indivisible block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whole {
    /// An image or audio, which models do not read as text.
    Media,
    Other,
}

impl Part {
    /// Parses a content block.
    pub(crate) fn of_block(block: &Raw) -> Self {
        // Each member lookup reads the whole block, which may be long, so all members are read once.
        let members = block.members().unwrap_or_default();
        let member = |name: &str| members.iter().rev().find(|(other, _)| other == name);
        let kind = member("type").and_then(|(_, kind)| kind.to_text());
        let text = match kind.as_deref() {
            Some("text") => member("text").and_then(|(_, text)| {
                let frame = block.with_member("text", &Raw::string("")).ok()?;
                Text::new(frame, text)
            }),
            Some("resource") => member("resource").and_then(|(_, resource)| {
                let text = resource.member("text")?;
                let resource = resource.with_member("text", &Raw::string("")).ok()?;
                let frame = block.with_member("resource", &resource).ok()?;
                Text::new(frame, &text)
            }),
            _ => None,
        };
        // A kept block must not keep the message alive that it came in.
        text.map_or_else(|| Self::Whole(block.detached()), Self::Text)
    }

    /// The length of the part in a kept result: one per byte of text, and one for an indivisible
    /// block.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.words.len(),
            Self::Whole(_) => 1,
        }
    }
}

impl Text {
    /// JSON as a text.
    pub(crate) fn of_json(value: &Raw) -> Self {
        let text = value.as_str().to_owned();
        Self {
            frame: plain(""),
            json: json::is_json(&text),
            words: text,
        }
    }

    /// A text in its block. `None` if the value is not a string.
    fn new(frame: Raw, text: &Raw) -> Option<Self> {
        let words = text.to_text()?;
        Some(Self {
            json: json::is_json(&words),
            frame,
            words,
        })
    }

    /// A piece of the text as a block. The first piece keeps the text's own block, unless its frame is
    /// large.
    pub(crate) fn piece(&self, piece: &str, first: bool) -> Raw {
        if first && self.frame.as_bytes().len() <= FRAME_BYTES {
            with_text(&self.frame, piece).unwrap_or_else(|| plain(piece))
        } else {
            plain(piece)
        }
    }
}

/// A result, taken apart.
pub(crate) struct Parts {
    pub(crate) content: Vec<Part>,
    pub(crate) structured: Option<Raw>,
    /// The other members of the result.
    pub(crate) others: Vec<Raw>,
}

/// Parses a result; `None` if it does not have the form of a tool result.
pub(crate) fn read(result: &Raw) -> Option<Parts> {
    let mut blocks = Vec::new();
    let mut structured = None;
    let mut others = Vec::new();
    for (name, value) in result.members()? {
        match &*name {
            "content" => blocks = value.elements()?,
            "structuredContent" => structured = Some(value),
            _ => others.push(value),
        }
    }
    let structured = structured.filter(|value| value.as_bytes() != b"null");
    if blocks.is_empty() && structured.is_none() {
        return None;
    }
    // A result with this many blocks is malicious.
    let rest = blocks.split_off(blocks.len().min(BLOCKS));
    let mut content: Vec<Part> = blocks.iter().map(Part::of_block).collect();
    if !rest.is_empty() {
        content.push(Part::Text(Text::of_json(&Raw::array(rest))));
    }
    Some(Parts {
        content,
        structured,
        others,
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

/// The kind of an indivisible block.
pub(crate) fn whole(block: &Raw) -> Whole {
    match kind(block).as_deref() {
        Some("image" | "audio") => Whole::Media,
        _ => Whole::Other,
    }
}

pub(crate) fn kind(block: &Raw) -> Option<String> {
    block.member("type")?.to_text()
}
