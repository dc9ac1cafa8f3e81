//! Notes to the agent about content that is not shown.

use switchboard_wire::Raw;

use crate::id::ResultId;
use crate::limits::NOTE_BYTES;
use crate::part;

/// The way to read the rest of a result: the tool, under the name that the agent knows, and the ID.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The ID of the result.
    pub id: &'a ResultId,
}

impl Reader<'_> {
    /// The exact call that reads on.
    pub(crate) fn next_call(self, offset: usize) -> String {
        let Self { tool, id } = self;
        format!(r#"{tool} {{"id":"{id}","offset":{offset}}}"#)
    }
}

/// A note as a block. Notes are short by construction; a longer one is cut at its end.
pub(crate) fn block(note: &str) -> Raw {
    let note = &note[..note.floor_char_boundary(NOTE_BYTES)];
    part::plain(note)
}

/// Describes an indivisible block in a few words: `image/png, 340 kB`.
pub(crate) fn describe(block: &Raw) -> String {
    let resource = block.member("resource");
    let mime = [Some(block), resource.as_ref()]
        .into_iter()
        .flatten()
        .find_map(|part| part.member("mimeType")?.to_text())
        .or_else(|| part::kind(block))
        .unwrap_or_else(|| "block".to_owned());
    let data = [
        block.member("data"),
        resource.and_then(|r| r.member("blob")),
    ];
    let data = data.into_iter().flatten().next();
    let bytes = match data {
        // Four base64 characters encode three bytes.
        Some(data) => data.as_bytes().len().saturating_sub(2) / 4 * 3,
        None => block.as_bytes().len(),
    };
    let mime: String = mime
        .chars()
        .filter(char::is_ascii_graphic)
        .take(60)
        .collect();
    format!("{mime}, {}", size(bytes))
}

/// A size in words: `340 kB`.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
