//! [`fit`]: cuts a result to the budget of an agent.

use std::sync::Arc;

use switchboard_wire::Raw;

use crate::border::border;
use crate::budget::{Allowance, Budget};
use crate::json;
use crate::kept::Kept;
use crate::limits::{MEDIA_TOKENS, NOTES, PIECE_BYTES};
use crate::note::{self, Reader};
use crate::part::{self, Part, Parts, Text, Whole, whole};
use crate::shrink::shrink;
use crate::tokens::estimate_tokens;

/// The treatment of a result's structured content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Structured {
    /// The tool has an output schema, so clients reject its results without structured content. Arrays lose
    /// elements and texts lose their ends, and the shape is kept.
    Keep,
    /// It is dropped if it is too large.
    MayGo,
}

/// The outcome of [`fit`].
#[derive(Debug)]
pub enum Fit {
    /// The result fits and stays as it is.
    Whole,
    /// The result does not fit.
    Cut(Box<Cut>),
}

/// A result that is cut: the part that is shown, and the whole to be kept.
#[derive(Debug)]
pub struct Cut {
    result: Raw,
    blocks: Vec<Shown>,
    structured: Option<Raw>,
    end: End,
    kept: Arc<Kept>,
}

/// One block of the shown part.
#[derive(Debug)]
enum Shown {
    Block(Raw),
    /// A note in place of a block that is at this offset of the kept result.
    Note {
        what: String,
        offset: usize,
    },
}

/// The part that is missing at the end.
#[derive(Debug, Default)]
struct End {
    /// Offset of the first byte that is not shown.
    next: Option<usize>,
    /// For an array that was cut: the number of elements shown, and the total.
    elements: Option<(usize, usize)>,
    /// The structured content was dropped or shortened, and no other note says so.
    structured: bool,
}

/// Cuts a result that is larger than a budget. The shown part has the beginning of the texts, structured
/// content that has to stay in at most half of the room, and the images that fit. The whole result is kept,
/// in an order that lets a reader continue where the shown part ends.
///
/// Most results fit, and cost no more than a check of their length. A result that has to be cut takes about
/// ten milliseconds per megabyte, so cut large ones on a thread that may block. Values that are not tool
/// results, and unknown members, are left alone. The budget counts texts in their decoded form, without
/// escapes.
///
/// ```
/// use switchboard_results::{Budget, Fit, Structured, fit};
/// use switchboard_wire::Raw;
///
/// let budget = Budget { bytes: 1000, tokens: 400, ..Budget::default() };
/// let short = Raw::parse(r#"{"content":[{"type":"text","text":"It is done."}]}"#)?;
/// assert!(matches!(fit(&short, &budget, Structured::MayGo), Fit::Whole));
///
/// let text = Raw::string(&"All work and no play. ".repeat(1000));
/// let block = Raw::object([("type", Raw::string("text")), ("text", text)]);
/// let long = Raw::object([("content", Raw::array([block]))]);
/// let Fit::Cut(cut) = fit(&long, &budget, Structured::MayGo) else { panic!() };
/// assert!(cut.shown(None).as_bytes().len() < 1200);
/// assert_eq!(cut.kept().total(), 22_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fit(result: &Raw, budget: &Budget, structured: Structured) -> Fit {
    let bytes = result.as_bytes().len();
    // No token is shorter than a byte.
    if bytes <= budget.bytes && bytes <= budget.tokens {
        return Fit::Whole;
    }
    if bytes <= budget.bytes && estimate_tokens(result.as_str()) <= budget.tokens {
        return Fit::Whole;
    }
    let Some(parts) = part::read(result) else {
        return Fit::Whole;
    };
    Cutter::new(result, parts, budget).cut(structured)
}

impl Cut {
    /// The whole result, to be stored under the ID that [`shown`](Self::shown) mentions.
    pub fn kept(&self) -> &Arc<Kept> {
        &self.kept
    }

    /// The shown part of the result. Its last block says what is missing and how to read on or, without a
    /// reader, that the rest is gone.
    pub fn shown(&self, reader: Option<Reader<'_>>) -> Raw {
        let mut blocks: Vec<Raw> = Vec::with_capacity(self.blocks.len() + 1);
        for shown in &self.blocks {
            blocks.push(match shown {
                Shown::Block(block) => block.clone(),
                Shown::Note { what, offset } => note::block(&match reader {
                    Some(reader) => {
                        let call = reader.next_call(*offset);
                        format!("[Not shown: {what}. To get it: {call}]")
                    }
                    None => format!("[Not shown, because it is too large: {what}.]"),
                }),
            });
        }
        blocks.extend(self.last_note(reader).map(|text| note::block(&text)));
        self.assembled(&Raw::array(blocks))
    }

    fn last_note(&self, reader: Option<Reader<'_>>) -> Option<String> {
        let structured = self.end.structured;
        let Some(next) = self.end.next else {
            let note = "[The structured content is truncated. The text above contains all of it.]";
            return structured.then(|| note.to_owned());
        };
        let structured = if structured {
            " The structured content is truncated, too."
        } else {
            ""
        };
        let total = self.kept.total();
        let elements = match self.end.elements {
            Some((shown @ 1.., all)) => format!(", elements 0 to {} of {all}", shown - 1),
            _ => String::new(),
        };
        let rest = match reader {
            Some(reader) => format!("Next: {}", reader.next_call(next)),
            None => "The rest is too large to keep; ask the tool for less".to_owned(),
        };
        Some(format!(
            "[Truncated: these are the first {next} of {total} bytes{elements}.{structured} {rest}]"
        ))
    }

    /// The result with other content; everything else stays.
    fn assembled(&self, content: &Raw) -> Raw {
        let with = |result: &Raw| {
            let result = match &self.structured {
                Some(structured) => result.with_member("structuredContent", structured).ok()?,
                // `without` respells the result, so it is not called for a member that is missing.
                None if result.member("structuredContent").is_none() => result.clone(),
                None => result.without(&["structuredContent"]),
            };
            result.with_member("content", content).ok()
        };
        with(&self.result)
            // The member occurs twice; remove both.
            .or_else(|| with(&self.result.without(&["content", "structuredContent"])))
            .unwrap_or_else(|| self.result.clone())
    }
}

struct Cutter<'a> {
    result: &'a Raw,
    parts: Parts,
    /// The structured content repeats the texts.
    twice: bool,
    room: Allowance,
    blocks: Vec<Shown>,
    end: End,
}

impl<'a> Cutter<'a> {
    fn new(result: &'a Raw, parts: Parts, budget: &Budget) -> Self {
        let mut room = Allowance::new(budget);
        for other in &parts.others {
            room.spend(other.as_str());
        }
        let structured = parts.structured.as_ref();
        let twice = structured.is_some_and(|structured| {
            is_told(structured, &parts.content) || repeats_content(structured, result)
        });
        Self {
            result,
            parts,
            twice,
            room,
            blocks: Vec::new(),
            end: End::default(),
        }
    }

    fn cut(mut self, structured: Structured) -> Fit {
        if self.fits() {
            return Fit::Whole;
        }
        self.room.reserve_note();
        // Shorten structured content that has to stay first, so that the texts get the remaining room.
        let shortened = match (&self.parts.structured, structured) {
            (Some(value), Structured::Keep) => {
                let half = self.room.half();
                let short = shrink(value, half.bytes.min(2 * half.tokens));
                self.room.spend(short.as_str());
                Some(short)
            }
            _ => None,
        };
        let mut parts = std::mem::take(&mut self.parts.content);
        self.show(&parts);
        let shown = match (self.parts.structured.take(), shortened) {
            (None, _) => None,
            (Some(value), Some(short)) => Some(self.kept_short(&value, short, &mut parts)),
            (Some(value), None) => self.kept_whole(value, &mut parts),
        };
        Fit::Cut(Box::new(Cut {
            result: self.result.clone(),
            blocks: self.blocks,
            structured: shown,
            end: self.end,
            kept: Arc::new(Kept::new(parts)),
        }))
    }

    /// Tests if the result fits after all: repeated content counts once, and images do not count as text.
    fn fits(&self) -> bool {
        let mut room = self.room;
        let content = self.parts.content.iter().all(|part| match part {
            Part::Text(text) => room.take(text.frame.as_str()) && room.take(&text.words),
            Part::Whole(block) => match whole(block) {
                Whole::Media => room.take_media(block),
                Whole::Other => room.take(block.as_str()),
            },
        });
        let structured = self.parts.structured.as_ref().filter(|_| !self.twice);
        content && structured.is_none_or(|value| room.take(value.as_str()))
    }

    /// Shows the beginning of the texts, and every other block if it fits, else a note about it.
    fn show(&mut self, parts: &[Part]) {
        let mut wholes = self.wholes(parts).into_iter();
        let mut notes = 0;
        let mut start = 0;
        for part in parts {
            match part {
                Part::Text(text) => self.show_text(text, start),
                Part::Whole(block) if wholes.next() == Some(true) => {
                    self.blocks.push(Shown::Block(block.clone()));
                }
                Part::Whole(block) => {
                    notes += 1;
                    if notes <= NOTES {
                        let what = note::describe(block);
                        self.blocks.push(Shown::Note {
                            what,
                            offset: start,
                        });
                    } else if notes == NOTES + 1 {
                        let what = "more blocks of this kind".to_owned();
                        self.blocks.push(Shown::Note {
                            what,
                            offset: start,
                        });
                    }
                }
            }
            start += part.len();
        }
    }

    /// Decides which of the indivisible blocks are shown. Some room is left for texts.
    fn wholes(&mut self, parts: &[Part]) -> Vec<bool> {
        let mut shown = Vec::new();
        let mut notes = 0;
        for part in parts {
            let Part::Whole(block) = part else {
                continue;
            };
            let fits = match whole(block) {
                Whole::Media => 2 * MEDIA_TOKENS <= self.room.tokens && self.room.take_media(block),
                Whole::Other => {
                    block.as_bytes().len() <= self.room.bytes / 4 && self.room.take(block.as_str())
                }
            };
            notes += usize::from(!fits);
            if !fits && notes <= NOTES + 1 {
                self.room.reserve_note();
            }
            shown.push(fits);
        }
        shown
    }

    /// Shows a text that begins at `start`, or its beginning, unless something before it was cut.
    fn show_text(&mut self, part: &Text, start: usize) {
        if self.end.next.is_some() {
            return;
        }
        let text = &part.words;
        let block =
            |text: &str| part::with_text(&part.frame, text).unwrap_or_else(|| part::plain(text));
        self.room.spend(part.frame.as_str());
        if self.room.take(text) {
            self.blocks.push(Shown::Block(block(text)));
            return;
        }
        let most = self.room.prefix(text);
        if most < PIECE_BYTES {
            self.end.next = Some(start);
            return;
        }
        let cut = border(text, part.json, 0, most);
        self.end.next = Some(start + cut);
        let beginning = part.json.then(|| json::beginning(text, cut)).flatten();
        let shown = match &beginning {
            Some(beginning) => &beginning.text,
            None => &text[..cut],
        };
        self.blocks.push(Shown::Block(block(shown)));
        self.end.elements = beginning.and_then(|beginning| beginning.elements);
    }

    /// Handles structured content that has to stay. If it was shortened, the whole of it follows the texts.
    fn kept_short(&mut self, value: &Raw, short: Raw, parts: &mut Vec<Part>) -> Raw {
        self.end.structured = short != *value;
        if self.end.structured && !self.twice {
            let start = parts.iter().map(Part::len).sum();
            self.end.next.get_or_insert(start);
            parts.push(Part::Text(Text::of_json(value)));
        }
        short
    }

    /// Handles structured content that may be dropped: it stays if all texts are shown and it fits too.
    /// Otherwise it is appended as a text, unless the texts already repeat it.
    fn kept_whole(&mut self, value: Raw, parts: &mut Vec<Part>) -> Option<Raw> {
        if self.end.next.is_none() && self.room.take(value.as_str()) {
            return Some(value);
        }
        if !self.twice {
            let start = parts.iter().map(Part::len).sum();
            let text = Text::of_json(&value);
            self.show_text(&text, start);
            parts.push(Part::Text(text));
        }
        None
    }
}

/// Tests if the structured content repeats the content, images included.
fn repeats_content(structured: &Raw, result: &Raw) -> bool {
    let (inner, content) = (structured.member("content"), result.member("content"));
    inner.zip(content).is_some_and(|(inner, content)| {
        let only = structured
            .members()
            .is_some_and(|members| members.len() == 1);
        only && json::same(inner.as_str(), content.as_str())
    })
}

/// Tests if the texts of a result repeat its structured content, in the ways that servers do so: as JSON, as
/// the one text that a member wraps, or as one text per element.
fn is_told(structured: &Raw, content: &[Part]) -> bool {
    let texts = content.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text),
        Part::Whole(_) => None,
    });
    let texts: Vec<&Text> = texts.collect();
    let says = |text: &Text, value: &Raw| {
        if value.as_bytes().first() == Some(&b'"') {
            value.to_text().as_ref() == Some(&text.words)
        } else {
            json::same(&text.words, value.as_str())
        }
    };
    let inner = match structured.members().as_deref() {
        Some([(_, inner)]) => Some(inner.clone()),
        _ => None,
    };
    match &*texts {
        [] => false,
        [text] if says(text, structured) => true,
        [text] if inner.as_ref().is_some_and(|inner| says(text, inner)) => true,
        texts => {
            let elements = inner.unwrap_or_else(|| structured.clone()).elements();
            elements.is_some_and(|elements| {
                let mut pairs = texts.iter().zip(&elements);
                elements.len() == texts.len() && pairs.all(|(text, value)| says(text, value))
            })
        }
    }
}
