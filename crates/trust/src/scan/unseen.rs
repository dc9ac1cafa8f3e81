//! Characters that a model reads and a person cannot see.
//!
//! Some are part of normal writing: a joiner in Persian or between two emoji, a selector after a
//! symbol, a direction mark in Hebrew. These are ignored. A single one at the edge of a word is a
//! remnant of copying from a web page, and is a note. All others carry a message or break up a word,
//! and count as hidden.

use switchboard_wire::tree::Text;

use super::{Kind, Severity};
use crate::show;

/// The fewest noted characters that can form a message, at one bit each.
const MESSAGE: usize = 8;

/// The most lone surrogates that careless cutting leaves behind.
const HALVES: usize = 2;

/// The number of marks on one letter that no script reaches.
const MARKS_ON_LETTER: usize = 5;

/// Characters of one kind in a text.
#[derive(Clone, Debug)]
pub(super) struct Unseen {
    pub(super) kind: Kind,
    pub(super) severity: Severity,
    pub(super) says: &'static str,
    /// Position of the first of the most severe ones.
    pub(super) at: usize,
    /// Number of characters.
    pub(super) count: usize,
    /// The text that they encode, if any.
    pub(super) reads: Option<String>,
}

/// Finds invisible characters in a text.
pub(super) fn find(text: &Text<'_>) -> Vec<Unseen> {
    let mut found = Vec::new();
    if is_plain(text) {
        return found;
    }
    if let Some((at, _)) = text.halves.first() {
        let count = text.halves.len();
        found.push(Unseen {
            kind: Kind::Invisible,
            severity: if count > HALVES {
                Severity::Hidden
            } else {
                Severity::Note
            },
            says: HALF,
            at: *at,
            count,
            reads: None,
        });
    }
    let text = &*text.text;
    let has_rtl = text.chars().any(is_rtl);
    let mut chars = text.char_indices().peekable();
    // The previous character, and the last one that is not a selector or a skin tone.
    let (mut last, mut base) = (None, None);
    let mut marks = 0;
    while let Some((at, c)) = chars.next() {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        if marks == MARKS_ON_LETTER {
            note(&mut found, Kind::Invisible, Severity::Hidden, STACKS, at);
        }
        if c == FLAG {
            for _ in 0..flag_tags(&text[at + FLAG.len_utf8()..]) {
                chars.next();
            }
        }
        let next = chars.peek().map(|(_, next)| *next);
        if let Some((kind, severity, says)) = sort(c, last, base, next, has_rtl) {
            note(&mut found, kind, severity, says, at);
        }
        last = Some(c);
        if !is_selector(c) && !is_skin(c) {
            base = last;
        }
    }
    for one in &mut found {
        if one.kind == Kind::Invisible && one.severity == Severity::Note && one.count > MESSAGE {
            one.severity = Severity::Hidden;
        }
        if one.says == TAGS || one.says == SELECTORS {
            one.reads = smuggled(text);
        }
    }
    found
}

/// The start of the text that tags and selectors encode: a tag stands for a letter, a selector for a
/// byte.
fn smuggled(text: &str) -> Option<String> {
    let bytes = text.chars().filter_map(|c| {
        let code = u32::from(c);
        match c {
            '\u{E0020}'..='\u{E007E}' => u8::try_from(code - 0xE0000).ok(),
            '\u{FE00}'..='\u{FE0E}' => u8::try_from(code - 0xFE00).ok(),
            '\u{E0100}'..='\u{E01EF}' => u8::try_from(code - 0xE0100 + 16).ok(),
            _ => None,
        }
    });
    let bytes: Vec<u8> = bytes.take(show::EXCERPT_CHARACTERS).collect();
    let printed = bytes
        .iter()
        .filter(|byte| matches!(byte, b' '..=b'~'))
        .count();
    (printed > 3 && printed * 10 > bytes.len() * 9)
        .then(|| show::excerpt(&String::from_utf8_lossy(&bytes), 0))
}

const TAGS: &str =
    "it contains tag characters, which a model reads as letters but the user cannot see";
const ZERO_WIDTH: &str = "it contains zero-width characters where no script needs them, which can carry a message or \
     split a word";
const SOFT: &str = "it contains soft hyphens, which are visible only at the end of a line";
const STRAY: &str = "it contains a zero-width character at the edge of a word";
const SELECTORS: &str =
    "it contains variation selectors after characters without variants, which can carry a message";
const FILLERS: &str = "it contains letters or marks that are never visible";
const PRIVATE: &str = "it contains private-use characters, whose meaning is not public";
const DIRECTION: &str =
    "it changes the direction of the text, so that the text is not what it seems to be";
const MARKS: &str = "it contains direction marks in a text that has only one direction";
const ESCAPES: &str = "it contains control sequences, with which a terminal hides or replaces text";
const CONTROLS: &str = "it contains control characters";
const BREAKS: &str = "it contains unusual line breaks";
const STACKS: &str = "it stacks marks on letters, which cover the surrounding text";
const HALF: &str = "it contains lone surrogates, which stand for no character";

fn note(found: &mut Vec<Unseen>, kind: Kind, severity: Severity, says: &'static str, at: usize) {
    match found.iter_mut().find(|one| one.says == says) {
        Some(one) => {
            one.count += 1;
            if severity > one.severity {
                (one.severity, one.at) = (severity, at);
            }
        }
        None => found.push(Unseen {
            kind,
            severity,
            says,
            at,
            count: 1,
            reads: None,
        }),
    }
}

/// Classifies a character; `None` if it is harmless here.
fn sort(
    c: char,
    last: Option<char>,
    base: Option<char>,
    next: Option<char>,
    has_rtl: bool,
) -> Option<(Kind, Severity, &'static str)> {
    use Kind::{Control, Direction, Invisible, PrivateUse};
    use Severity::{Hidden, Note, Warn};

    Some(match c {
        '\t' | '\n' | '\r' => return None,
        '\u{1B}' | '\u{9B}' | '\u{8}' => (Control, Hidden, ESCAPES),
        '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}' => (Control, Note, BREAKS),
        '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}' => (Control, Hidden, CONTROLS),
        '\u{AD}' => (Invisible, Note, SOFT),
        '\u{E0000}'..='\u{E007F}' => (Invisible, Hidden, TAGS),
        '\u{200C}' | '\u{200D}' => {
            let joins_emoji =
                c == '\u{200D}' && base.is_some_and(is_symbol) && next.is_some_and(is_symbol);
            let joins_letters = last.is_some_and(has_joiners)
                && next.is_none_or(|next| has_joiners(next) || !next.is_alphanumeric());
            if joins_emoji || joins_letters {
                return None;
            }
            (Invisible, between(last, next), stray(last, next))
        }
        // Some editors write a byte order mark at the start.
        '\u{FEFF}' if last.is_none() => return None,
        '\u{200B}' | '\u{2060}' | '\u{FEFF}' => {
            // These scripts break lines without spaces.
            if last.is_some_and(has_no_spaces) && !next.is_some_and(is_zero_width) {
                return None;
            }
            (Invisible, between(last, next), stray(last, next))
        }
        '\u{200E}' | '\u{200F}' | '\u{61C}' => {
            if has_rtl {
                return None;
            }
            (Invisible, Note, MARKS)
        }
        '\u{202D}' | '\u{202E}' => (Direction, Hidden, DIRECTION),
        '\u{202A}'..='\u{202C}' | '\u{2066}'..='\u{2069}' => {
            if has_rtl {
                return None;
            }
            (Direction, Warn, DIRECTION)
        }
        '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}' => {
            if last.is_some_and(|last| has_variants(last, c)) {
                return None;
            }
            (Invisible, Hidden, SELECTORS)
        }
        '\u{180B}'..='\u{180F}' => {
            if last.is_some_and(|last| matches!(last, '\u{1800}'..='\u{18AF}')) {
                return None;
            }
            (Invisible, Hidden, FILLERS)
        }
        '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..='\u{10FFFF}' => (PrivateUse, Warn, PRIVATE),
        // A space, within Braille.
        '\u{2800}' => {
            if last.is_some_and(is_braille) || next.is_some_and(is_braille) {
                return None;
            }
            (Invisible, Hidden, FILLERS)
        }
        _ if is_unseen(c) => (Invisible, Hidden, FILLERS),
        _ => return None,
    })
}

/// The severity of a zero-width character between these two.
fn between(last: Option<char>, next: Option<char>) -> Severity {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_run = |c: Option<char>| c.is_some_and(is_zero_width);
    if is_word(last) && is_word(next) || is_run(last) || is_run(next) {
        Severity::Hidden
    } else {
        Severity::Note
    }
}

fn stray(last: Option<char>, next: Option<char>) -> &'static str {
    match between(last, next) {
        Severity::Hidden => ZERO_WIDTH,
        _ => STRAY,
    }
}

/// Tests if a text has only plain ASCII characters.
fn is_plain(text: &Text<'_>) -> bool {
    let plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r');
    text.text.as_bytes().iter().all(plain)
}

const FLAG: char = '\u{1F3F4}';

/// The number of tags that follow a flag. Only the flags of England, Scotland and Wales have some.
fn flag_tags(rest: &str) -> usize {
    const FLAGS: [&str; 3] = [
        "\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
        "\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
        "\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
    ];
    let flag = FLAGS.iter().find(|flag| rest.starts_with(**flag));
    flag.map_or(0, |flag| flag.chars().count())
}

fn is_zero_width(c: char) -> bool {
    matches!(c, '\u{200B}'..='\u{200D}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}')
}

/// Tests if a character is invisible in every context.
fn is_unseen(c: char) -> bool {
    !show::is_shown(c)
}

fn is_braille(c: char) -> bool {
    matches!(c, '\u{2801}'..='\u{28FF}')
}

/// Tests if a character is a combining mark that fits any letter.
fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36F}' | '\u{483}'..='\u{489}' | '\u{1AB0}'..='\u{1AFF}'
        | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}' | '\u{FE20}'..='\u{FE2F}')
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

fn is_skin(c: char) -> bool {
    matches!(c, '\u{1F3FB}'..='\u{1F3FF}')
}

/// Tests if a character is an emoji or another symbol with a coloured form.
fn is_symbol(c: char) -> bool {
    matches!(c,
        '©' | '®' | '‼' | '⁉' | '™' | 'ℹ' | 'Ⓜ' | '〰' | '〽' | '㊗' | '㊙'
        | '\u{2190}'..='\u{21FF}' | '\u{2300}'..='\u{23FF}' | '\u{25A0}'..='\u{27BF}'
        | '\u{2900}'..='\u{297F}' | '\u{2B00}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}')
}

fn has_variants(base: char, selector: char) -> bool {
    let is_ideograph = matches!(base,
        '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFD}');
    match selector {
        '\u{FE0E}' | '\u{FE0F}' => {
            is_symbol(base) || is_skin(base) || matches!(base, '#' | '*' | '0'..='9')
        }
        '\u{FE00}'..='\u{FE02}' => {
            is_ideograph || matches!(base, '\u{2200}'..='\u{22FF}' | '\u{2A00}'..='\u{2AFF}')
        }
        '\u{E0100}'.. => is_ideograph,
        _ => false,
    }
}

/// Tests if a script uses joiners to change the form of letters.
fn has_joiners(c: char) -> bool {
    matches!(c,
        '\u{600}'..='\u{8FF}' | '\u{900}'..='\u{DFF}' | '\u{F00}'..='\u{109F}'
        | '\u{1780}'..='\u{18AF}' | '\u{1A20}'..='\u{1BFF}' | '\u{A840}'..='\u{A8FF}'
        | '\u{A980}'..='\u{ABFF}' | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}'
        | '\u{11000}'..='\u{11FFF}')
}

/// Tests if a script puts no spaces between words.
fn has_no_spaces(c: char) -> bool {
    matches!(c,
        '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{2E80}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFD}')
}

fn is_rtl(c: char) -> bool {
    matches!(c,
        '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}'
        | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}')
        && c != '\u{61C}'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(text: &str) -> Option<Severity> {
        let text = Text {
            text: text.into(),
            halves: Box::default(),
        };
        let found = find(&text);
        found.iter().map(|one| one.severity).max()
    }

    #[test]
    fn invisible_characters_of_normal_writing_are_ignored() {
        for text in [
            "Plain text,\r\n\twith lines.",
            "Größe, naïve, Ελληνικά, русский, 中文，かな、한국어",
            "family 👨‍👩‍👧‍👦, pilot 👩🏽‍✈️, heart ❤️ or ❤︎, key 1️⃣, pride 🏳️‍🌈, info ℹ️",
            "🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F} Scotland",
            "می\u{200C}خواهم کتاب\u{200C}ها",
            "क्\u{200D}ष and ක්\u{200D}ර",
            "ภาษา\u{200B}ไทย",
            "שלום\u{200F} (English\u{200E}) \u{2067}טקסט\u{2069}",
            "葛\u{E0100}飾区 ≨\u{FE00}",
            "⠓⠑⠇⠇⠕\u{2800}⠺⠕⠗⠇⠙",
            "Tie\u{302}\u{301}ng Vie\u{323}\u{302}t",
            "\u{FEFF}starts with a mark",
        ] {
            assert_eq!(worst(text), None, "{text:?}");
        }
    }

    #[test]
    fn remnants_of_copying_are_noted() {
        for text in [
            "a word\u{200B} and another",
            "hy\u{AD}phen",
            "line\u{2028}line",
            "mark\u{200E} of direction",
        ] {
            assert_eq!(worst(text), Some(Severity::Note), "{text:?}");
        }
    }

    #[test]
    fn invisible_messages_are_hidden() {
        for text in [
            "Adds.\u{E0049}\u{E0067}\u{E006E}",
            "🏴\u{E0073}\u{E0074}\u{E0065}\u{E0061}\u{E006C}\u{E007F}",
            "ig\u{200B}nore",
            "a\u{200B}\u{200C}\u{200B} b",
            "x\u{2062}y",
            "\u{202E}txet\u{202C}",
            "smile 😀\u{E0101}\u{E0123}\u{E0134}",
            "smile 😀\u{FE0F}\u{FE01}\u{FE02}",
            "letter a\u{FE0F}",
            "filler \u{3164}\u{115F}",
            "blank \u{2800}\u{2800}\u{2800} braille",
            "stack o\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}f marks",
            "red \u{1B}[8mhidden\u{1B}[0m",
            "back\u{8}\u{8}\u{8}\u{8}",
            "nul \0",
            "csi \u{9B}8m",
            "note\u{FFF9}a\u{FFFA}b\u{FFFB}",
            "non \u{FFFF}",
            "one \u{200B}bit \u{200B}for \u{200B}each \u{200B}word \u{200B}is \u{200B}a \u{200B}message \u{200B}too \u{200B}here",
        ] {
            assert_eq!(worst(text), Some(Severity::Hidden), "{text:?}");
        }
        assert_eq!(worst("private \u{E123}"), Some(Severity::Warn));
        assert_eq!(worst("isolated \u{2066}x\u{2069}"), Some(Severity::Warn));
    }

    #[test]
    fn few_lone_surrogates_are_noted_many_hidden() {
        let with = |halves: usize| Text {
            text: "\u{fffd}".repeat(halves).into(),
            halves: (0..halves).map(|n| (3 * n, 0xD800)).collect(),
        };
        assert_eq!(find(&with(1))[0].severity, Severity::Note);
        assert_eq!(find(&with(9))[0].severity, Severity::Hidden);
    }
}
