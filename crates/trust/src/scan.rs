//! [`scan()`]: finds suspicious parts of a definition.
//!
//! It examines everything that a client may show to a model: names, titles, descriptions, enums,
//! defaults and examples, of parameters and of results. It is an aid for the reader, not a proof:
//! findings deserve a look, but a text without findings may still be an attack in words that no rule
//! covers.
//!
//! The scan is deterministic, and its time depends only on the length of the text.

use std::{cmp::Reverse, collections::HashSet};

use serde::Serialize;
use switchboard_wire::tree::{Json, Text};

use crate::{
    ItemKind, Offer,
    fields::{self, Field, Role},
    limits, show,
};

mod alike;
mod commands;
mod encoded;
mod joined;
mod markup;
mod others;
mod rules;
mod secrets;
mod unseen;
mod words;

pub use others::Others;

use rules::Hit;
use words::Words;

const COMMAND: &str = "it contains a command that runs remote code or sends data away";

/// The depth to which encoded texts are decoded: base64 of base64.
const LAYERS: usize = 2;

/// Encoded text with at least this many words is always reported.
const ENCODED_WORDS: usize = 4;

/// The longest name, in bytes. A longer one is scanned as text.
const NAME_BYTES: usize = 64;

/// A suspicious part of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The kind.
    pub kind: Kind,
    /// The severity.
    pub severity: Severity,
    /// Path of the field: `description`, `parameters.path.description`.
    pub field: String,
    /// The surrounding text, cut, with invisible characters as ⟨U+200B⟩.
    pub excerpt: String,
    /// An explanation in one sentence, whose subject "it" is the field.
    pub says: String,
}

/// The severity of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// For information.
    Note,
    /// The approver should read the text before approving it.
    Warn,
    /// No honest definition says this. It is held on first sight, unless the policy trusts everything.
    Danger,
    /// Text that a model reads and a person cannot see.
    Hidden,
}

/// The kind of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// Invisible characters.
    Invisible,
    /// Marks that change the direction of the text.
    Direction,
    /// Control characters and escape sequences of terminals.
    Control,
    /// Private-use characters, which mean what two parties have agreed on.
    PrivateUse,
    /// Letters of one script that look like those of another.
    LookAlike,
    /// Text that is pushed out of sight with whitespace.
    OutOfSight,
    /// Comments, made-up tags and the delimiters of a model's prompt.
    Markup,
    /// Encoded text: base64, escapes, reversed letters.
    Encoded,
    /// Tells the model to drop or reveal its instructions.
    Override,
    /// Keeps something from the user.
    Secrecy,
    /// Sends keys, files, conversations or messages elsewhere.
    Exfiltration,
    /// Makes the model use the tool when the user did not ask for it.
    Steering,
    /// Mentions the tools of other servers.
    OtherTools,
    /// The definition is too long to be scanned completely.
    Cut,
}

/// Finds suspicious parts of a definition, most severe first.
pub fn scan<'a>(offer: impl Into<Offer<'a>>, others: &Others) -> Vec<Finding> {
    let Offer { kind, definition } = offer.into();
    let mut findings = Scan::of(kind, &Json::read(definition), others).findings;
    findings.sort_by_key(|finding| Reverse(finding.severity));
    findings.truncate(limits::FINDINGS);
    findings
}

/// The highest severity of a definition's findings, if there are any.
pub(crate) fn worst(kind: ItemKind, value: &Json<'_>) -> Option<Severity> {
    Scan::of(kind, value, &Others::default()).worst
}

/// Tests if a name has three words or more, and so is prose.
fn is_phrase(name: &str) -> bool {
    name.split_whitespace().nth(2).is_some()
}

struct Scan<'o> {
    kind: ItemKind,
    others: &'o Others,
    /// Names that the definition gives to its own parts. Mentioning them is not suspicious.
    own: HashSet<String>,
    findings: Vec<Finding>,
    /// The highest severity of all findings, kept or not.
    worst: Option<Severity>,
    /// Bytes that may still be scanned.
    left: usize,
    /// The limit was exceeded, which is reported once.
    cut: bool,
}

impl<'o> Scan<'o> {
    fn of(kind: ItemKind, value: &Json<'_>, others: &'o Others) -> Self {
        let mut scan = Self {
            kind,
            others,
            own: HashSet::new(),
            findings: Vec::new(),
            worst: None,
            left: limits::SCAN_BYTES,
            cut: false,
        };
        if !others.is_empty() {
            fields::each(value, &mut |_, role, text| {
                if role == Role::Name {
                    scan.own.insert(text.text.to_ascii_lowercase());
                }
            });
        }
        fields::each(value, &mut |field, role, text| {
            scan.text(field, role, text);
        });
        for joined in joined::find(value) {
            let words = Words::of(&joined.text);
            for hit in rules::find(&words) {
                if let Some(severity) = joined.severity(&hit)
                    && scan.findings.iter().all(|known| known.says != hit.says)
                {
                    scan.hit(&joined.field, &joined.text, &words, Hit { severity, ..hit });
                }
            }
        }
        scan
    }

    fn text(&mut self, field: &Field<'_>, role: Role, text: &Text<'_>) {
        self.unseen(field, text);
        let whole = &*text.text;
        let end = whole.floor_char_boundary(self.left);
        if end < whole.len() && !self.cut {
            self.cut = true;
            let says = "the definition is too long to be scanned completely";
            self.find(field, Kind::Cut, Severity::Danger, says.to_owned(), || {
                show::excerpt(whole, end)
            });
        }
        self.left -= end;
        let text = &whole[..end];
        if role == Role::Name && field.is_item_name() && alike::is_masked_name(text) {
            let says = "it is a name in look-alike letters, so it can pass for another name";
            let (kind, severity) = (Kind::LookAlike, Severity::Danger);
            self.find(field, kind, severity, says.to_owned(), || {
                show::excerpt(text, 0)
            });
            return;
        }
        // Keywords of schemas and short values are most of the texts, and nothing can hide in them.
        if text.len() < 4 {
            return;
        }
        if let Some(at) = alike::find_mixed(text) {
            let says = "it mixes look-alike letters of different scripts, so a word is not what it seems to be";
            self.find(
                field,
                Kind::LookAlike,
                Severity::Warn,
                says.to_owned(),
                || show::excerpt(text, at),
            );
        }
        // A single short word says no more than a name does, and most values are one.
        let is_word = text.len() < encoded::RUN && text.bytes().all(|byte| byte.is_ascii_graphic());
        let is_name = role == Role::Name && text.len() <= NAME_BYTES && !is_phrase(text);
        if is_word || is_name {
            // A file may have any name, and listing it requests nothing.
            let is_resource = matches!(self.kind, ItemKind::Resource | ItemKind::Template);
            if is_resource && field.is_item_name_or_uri() {
                return;
            }
            let words = Words::of_name(text);
            for hit in rules::find_in_name(&words) {
                self.hit(field, text, &words, hit);
            }
            return;
        }
        self.prose(field, text);
        if let Some(mention) = self.others.find(text, &self.own) {
            let says = if mention.name == mention.server {
                format!("it mentions another server, {}", mention.server)
            } else {
                format!(
                    "it mentions {}, a tool of the server {}",
                    mention.name, mention.server
                )
            };
            self.find(field, Kind::OtherTools, mention.severity, says, || {
                show::excerpt(text, mention.at)
            });
        }
    }

    fn unseen(&mut self, field: &Field<'_>, text: &Text<'_>) {
        for found in unseen::find(text) {
            let times = (found.count > 1).then(|| format!("{} times", found.count));
            let reads = found.reads.map(|reads| format!("as text: {reads:?}"));
            let more: Vec<_> = times.into_iter().chain(reads).collect();
            let says = if more.is_empty() {
                found.says.to_owned()
            } else {
                format!("{} ({})", found.says, more.join("; "))
            };
            self.find(field, found.kind, found.severity, says, || {
                show::excerpt(&text.text, found.at)
            });
        }
    }

    fn prose(&mut self, field: &Field<'_>, text: &str) {
        for mark in markup::find(text) {
            self.find(
                field,
                mark.kind,
                mark.severity,
                mark.says.to_owned(),
                || show::excerpt(text, mark.at),
            );
        }
        let words = Words::of(text);
        for hit in rules::find(&words) {
            self.hit(field, text, &words, hit);
        }
        if let Some(joined) = words::unhyphenated(text) {
            let words = Words::of(&joined);
            for hit in rules::find(&words) {
                self.hit(field, &joined, &words, hit);
            }
        }
        if let Some((marked, at)) = secrets::mark(text) {
            for hit in rules::find_near_secrets(&Words::of(&marked)) {
                self.find(field, hit.kind, hit.severity, hit.says.to_owned(), || {
                    show::excerpt(text, at)
                });
            }
        }
        if let Some((at, severity)) = commands::find(text) {
            self.find(
                field,
                Kind::Exfiltration,
                severity,
                COMMAND.to_owned(),
                || show::excerpt(text, at),
            );
        }
        for (turned, how) in encoded::turned(text, &words) {
            let hits = rules::find(&turned);
            if let Some(hit) = hits.iter().find(|hit| hit.severity >= Severity::Warn) {
                self.encoded(field, how, Some(hit), || show::excerpt(text, 0));
            }
        }
        self.layers(field, text, LAYERS);
    }

    /// Scans the encoded texts within a text.
    fn layers(&mut self, field: &Field<'_>, text: &str, layers: usize) {
        for decoded in encoded::find(text) {
            let words = Words::of(&decoded.text);
            let hits = rules::find(&words);
            let hit = hits.iter().find(|hit| hit.severity >= Severity::Warn);
            let telling = match decoded.how {
                encoded::BINARY => true,
                encoded::ESCAPED => false,
                _ => words.len() >= ENCODED_WORDS,
            };
            if hit.is_none()
                && decoded.how != encoded::ESCAPED
                && encoded::is_command(&decoded.text)
            {
                let says = format!("it contains a command in {}", decoded.how);
                self.find(field, Kind::Encoded, Severity::Danger, says, || {
                    show::excerpt(&decoded.text, 0)
                });
            } else if hit.is_some() || telling {
                let at = hit.map_or(0, |hit| words.at(hit.word));
                self.encoded(field, decoded.how, hit, || show::excerpt(&decoded.text, at));
            }
            if layers > 1 {
                self.layers(field, &decoded.text, layers - 1);
            }
        }
    }

    fn encoded(
        &mut self,
        field: &Field<'_>,
        how: &str,
        hit: Option<&Hit>,
        excerpt: impl FnOnce() -> String,
    ) {
        let (severity, says) = match hit {
            Some(hit) => (Severity::Danger, format!("in {how}, {}", hit.says)),
            None if how == encoded::BINARY => {
                (Severity::Danger, format!("it contains text in {how}"))
            }
            None => (Severity::Note, format!("it contains text in {how}")),
        };
        self.find(field, Kind::Encoded, severity, says, excerpt);
    }

    fn hit(&mut self, field: &Field<'_>, text: &str, words: &Words, hit: Hit) {
        self.find(field, hit.kind, hit.severity, hit.says.to_owned(), || {
            show::excerpt(text, words.at(hit.word))
        });
    }

    fn find(
        &mut self,
        field: &Field<'_>,
        kind: Kind,
        severity: Severity,
        says: String,
        excerpt: impl FnOnce() -> String,
    ) {
        self.worst = self.worst.max(Some(severity));
        // Notes stop at twice the limit, so that a flood of them leaves room for more severe findings.
        if self.findings.len() >= 2 * limits::FINDINGS && severity == Severity::Note
            || self.findings.len() >= 8 * limits::FINDINGS
        {
            return;
        }
        let field = field.name();
        let known = |finding: &Finding| finding.says == says && finding.field == field;
        if self.findings.iter().any(known) {
            return;
        }
        self.findings.push(Finding {
            kind,
            severity,
            field,
            excerpt: excerpt(),
            says,
        });
    }
}
