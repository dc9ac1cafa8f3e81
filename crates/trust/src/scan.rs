//! [`scan()`]: what is suspicious about a definition.
//!
//! Everything that a client may show a model is looked at: names, titles, descriptions, enums, defaults,
//! examples, of parameters and of results. It is a reader's aid and no proof. What it finds deserves a
//! look; a text in which it finds nothing may still be an attack, in words that nobody thought of.
//!
//! The same definition always has the same findings. The time it takes grows with the length of the
//! text and with nothing else.

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

const COMMAND: &str = "it has a command that runs code from elsewhere or sends data away";

/// How many texts within texts are followed: base64 of base64.
const LAYERS: usize = 2;

/// Encoded text of so many words is worth knowing of, whatever it says.
const ENCODED_WORDS: usize = 4;

/// A name that is longer is a text.
const NAME_BYTES: usize = 64;

/// Something suspicious about a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind of thing it is.
    pub kind: Kind,
    /// How bad that is.
    pub severity: Severity,
    /// Where it is: `description`, `parameters.path.description`.
    pub field: String,
    /// The text around it, cut, with characters that nobody sees written as ⟨U+200B⟩.
    pub excerpt: String,
    /// What it means, in one sentence for a person; "it" is the field.
    pub says: String,
}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// A person should read the text before they agree to it.
    Warn,
    /// No honest definition says this. It is held at first sight, unless everything is trusted.
    Danger,
    /// A model reads what no person can see.
    Hidden,
}

/// What kind of thing a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// Characters that are not shown.
    Invisible,
    /// Marks that turn the direction of the text.
    Direction,
    /// Control characters and the sequences by which a terminal is steered.
    Control,
    /// Characters that mean what two sides agreed on.
    PrivateUse,
    /// Letters of one script that pass for those of another.
    LookAlike,
    /// Text that is pushed out of sight with white space.
    OutOfSight,
    /// Comments, made-up tags, the marks of a model's prompt.
    Markup,
    /// Text within text: base64, escapes, letters in reverse.
    Encoded,
    /// The model is to drop its instructions, or to give them away.
    Override,
    /// The user is not to know.
    Secrecy,
    /// Keys, files, conversations or messages are to go somewhere.
    Exfiltration,
    /// The tool wants to be used where nobody asked for it.
    Steering,
    /// It speaks of the tools of other servers.
    OtherTools,
    /// The definition is too long to be looked at as a whole.
    Cut,
}

/// What is suspicious about a definition, the worst first.
pub fn scan<'a>(offer: impl Into<Offer<'a>>, others: &Others) -> Vec<Finding> {
    let Offer { kind, definition } = offer.into();
    let mut findings = Scan::of(kind, &Json::read(definition), others).findings;
    findings.sort_by_key(|finding| Reverse(finding.severity));
    findings.truncate(limits::FINDINGS);
    findings
}

/// The worst that is found in a definition, if anything is.
pub(crate) fn worst(kind: ItemKind, value: &Json<'_>) -> Option<Severity> {
    Scan::of(kind, value, &Others::default()).worst
}

/// Whether a name is one that nobody would call a name: it is a text.
fn is_phrase(name: &str) -> bool {
    name.split_whitespace().nth(2).is_some()
}

struct Scan<'o> {
    kind: ItemKind,
    others: &'o Others,
    /// The names that the definition gives to its own parts. To speak of them is to speak of itself.
    own: HashSet<String>,
    findings: Vec<Finding>,
    /// The worst of all findings, those that are not kept included.
    worst: Option<Severity>,
    /// How many bytes may still be looked at.
    left: usize,
    /// Whether they were too few, which is told once.
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
            let says = "the definition is too long to be looked at as a whole";
            self.find(field, Kind::Cut, Severity::Danger, says.to_owned(), || {
                show::excerpt(whole, end)
            });
        }
        self.left -= end;
        let text = &whole[..end];
        if role == Role::Name && field.is_item_name() && alike::is_masked_name(text) {
            let says =
                "it is a name in letters that look like others, so it passes for another name";
            let (kind, severity) = (Kind::LookAlike, Severity::Danger);
            self.find(field, kind, severity, says.to_owned(), || {
                show::excerpt(text, 0)
            });
            return;
        }
        // Keywords of schemas and short values are most texts, and there is nothing to say in them.
        if text.len() < 4 {
            return;
        }
        if let Some(at) = alike::find_mixed(text) {
            let says = "it mixes letters that look the same, so a word is not what it seems to be";
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
            // A file may be called by any name, and to list it asks for nothing.
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
                format!("it speaks of another server, {}", mention.server)
            } else {
                format!(
                    "it speaks of {}, a tool of the server {}",
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
            let says = match found.reads {
                Some(reads) => format!(
                    "{} ({} of them; they read {reads:?})",
                    found.says, found.count
                ),
                None => format!("{} ({} of them)", found.says, found.count),
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

    /// Looks into texts within the text.
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
                let says = format!("it holds a command in {}", decoded.how);
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
            None if how == encoded::BINARY => (Severity::Danger, format!("it holds text in {how}")),
            None => (Severity::Note, format!("it holds text in {how}")),
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
        // Twice the limit, so that a flood of notes leaves room for what is worse.
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
