//! Finds names in a text: the people and things it is about.
//!
//! This module does not understand text. It knows the forms in which names are written: capitals,
//! `@handles`, `#tags`, addresses, code, paths and quoted titles. The same text always gives the same
//! names.

use std::{collections::HashSet, sync::LazyLock};

use crate::{
    dates::{MONTHS, WEEKDAYS},
    limits,
};

mod forms;

/// A name found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The name as written in the text.
    pub name: String,
    /// Kind of the name, if its form tells: `email`, `host`, `handle`, `tag`, `code`, `file` or `title`.
    pub kind: Option<&'static str>,
}

/// Normalises a name for comparison: lower case, trimmed, single spaces inside.
pub fn key(name: &str) -> String {
    let mut key = String::with_capacity(name.len());
    for word in name.split_whitespace() {
        if !key.is_empty() {
            key.push(' ');
        }
        key.extend(word.chars().flat_map(char::to_lowercase));
    }
    key
}

/// Returns the names in a text, each once, in order of first occurrence; at most
/// [`ENTITIES`](limits::ENTITIES), none longer than [`NAME_BYTES`](limits::NAME_BYTES).
pub fn entities(text: &str) -> Vec<Found> {
    let text = &text[..text.floor_char_boundary(limits::NAMED_BYTES)];
    let mut names = Names::default();
    let mut run = Run::default();
    let mut rest = text;
    let mut starts_sentence = true;
    while let Some(first) = rest.chars().next() {
        if names.found.len() >= limits::ENTITIES {
            break;
        }
        let at = text.len() - rest.len();
        if let Some((name, kind, length)) = forms::at_start(rest, &text[..at]) {
            names.add(run.end(), None);
            names.add(name, Some(kind));
            rest = &rest[length..];
            starts_sentence = false;
            continue;
        }
        if is_word(first) {
            let length = word_length(rest);
            let word = &rest[..length];
            let after = rest[length..].chars().next();
            let introduces = after == Some(':');
            let counts = is_name(word) && (!starts_sentence || introduces || is_uncommon(word));
            if counts {
                run.extend(text, at, at + length);
            } else if !(run.is_open() && LINKS.contains(&word)) {
                names.add(run.end(), None);
            }
            rest = &rest[length..];
            starts_sentence = false;
            continue;
        }
        if !matches!(first, ' ' | '&') {
            names.add(run.end(), None);
            starts_sentence |=
                matches!(first, '.' | '!' | '?' | ':' | '\n' | '\r' | ';' | '(' | '[')
                    || (first.is_whitespace() && first != ' ');
            // A list item begins a sentence.
            starts_sentence |=
                matches!(first, '-' | '*' | '•' | '"' | '“') && is_line_start(&text[..at]);
        }
        rest = &rest[first.len_utf8()..];
    }
    names.add(run.end(), None);
    names.found
}

/// Small words inside names.
const LINKS: [&str; 14] = [
    "of", "the", "de", "la", "le", "du", "da", "di", "van", "von", "der", "den", "al", "y",
];

#[derive(Default)]
struct Names {
    found: Vec<Found>,
    keys: HashSet<String>,
}

impl Names {
    fn add(&mut self, name: &str, kind: Option<&'static str>) {
        let name = name.trim();
        let is_fit = (2..=limits::NAME_BYTES).contains(&name.len())
            && name.chars().any(char::is_alphanumeric)
            && self.found.len() < limits::ENTITIES;
        if is_fit && self.keys.insert(key(name)) {
            let name = name.to_owned();
            self.found.push(Found { name, kind });
        }
    }
}

/// Consecutive capitalised words.
#[derive(Default)]
struct Run<'a> {
    text: &'a str,
    start: usize,
    end: usize,
}

impl<'a> Run<'a> {
    fn is_open(&self) -> bool {
        self.end > self.start
    }

    fn extend(&mut self, text: &'a str, start: usize, end: usize) {
        if !self.is_open() {
            self.text = text;
            self.start = start;
        }
        self.end = end;
    }

    fn end(&mut self) -> &'a str {
        let run = std::mem::take(self);
        &run.text[run.start..run.end]
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric()
}

/// Returns the length of the word at the start: `O'Brien`, `Jean-Luc`, `U.S.` and `C++` are words.
fn word_length(text: &str) -> usize {
    let mut length = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let joins = match c {
            '-' | '_' => next.is_some_and(is_word),
            // The possessive `s` is not part of the name.
            '\'' | '’' => next.is_some_and(char::is_uppercase),
            '.' => length == 1 && next.is_some_and(char::is_uppercase) || is_initials(&text[..at]),
            '+' | '#' => length == 1 || text[..at].ends_with('+'),
            c => is_word(c),
        };
        if !joins {
            break;
        }
        length = at + c.len_utf8();
    }
    length
}

/// Returns `true` if this is a short run of letters with a dot after each but the last: `U.S`.
fn is_initials(text: &str) -> bool {
    let mut letters = text.split('.');
    text.len() < INITIALS && text.contains('.') && letters.all(|letter| letter.len() == 1)
}

/// The longest initials, in bytes.
const INITIALS: usize = 16;

/// Returns `true` if a word in the middle of a sentence is written like a name.
fn is_name(word: &str) -> bool {
    let mut characters = word.chars();
    let Some(first) = characters.next() else {
        return false;
    };
    let capitals = || word.chars().filter(|c| c.is_uppercase()).count();
    let is_written_so = first.is_uppercase()
        || (first.is_lowercase() && capitals() > 0)
        || (first.is_numeric() && capitals() > 1);
    let is_pronoun = matches!(word, "I" | "I'm" | "OK" | "TV");
    is_written_so && !is_pronoun && !is_of_calendar(word) && (word.len() > 1 || capitals() > 1)
}

/// Returns `true` if the first word of a sentence, which is capitalised in any case, may be a name.
fn is_uncommon(word: &str) -> bool {
    static COMMON: LazyLock<HashSet<&'static str>> =
        LazyLock::new(|| forms::COMMON.split_whitespace().collect());
    // Capitals inside a word are deliberate.
    if word.chars().skip(1).any(char::is_uppercase) {
        return true;
    }
    let word = word.to_lowercase();
    let is_form = ["ing", "ed", "ly", "tion", "ness", "ment", "ful", "less"]
        .iter()
        .any(|ending| word.len() > ending.len() + 2 && word.ends_with(ending));
    !is_form && !COMMON.contains(&*word) && !crate::words::is_empty_word(&word)
}

/// Weekdays and months are capitalised but are not names.
fn is_of_calendar(word: &str) -> bool {
    let mut names = WEEKDAYS.iter().chain(&MONTHS);
    names.any(|name| word.eq_ignore_ascii_case(name))
}

fn is_line_start(before: &str) -> bool {
    before.trim_end_matches([' ', '\t']).is_empty()
        || before.trim_end_matches([' ', '\t']).ends_with('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        entities(text).into_iter().map(|found| found.name).collect()
    }

    #[test]
    fn names_are_found_by_their_spelling() {
        let table: &[(&str, &[&str])] = &[
            (
                "Anna met Bob Miller in New York.",
                &["Anna", "Bob Miller", "New York"],
            ),
            ("Caroline: Hey Mel! Good to see you!", &["Caroline", "Mel"]),
            ("Yesterday I went to the shop. Then we left.", &[]),
            (
                "The Bank of England raised rates on Monday",
                &["Bank of England"],
            ),
            ("Thanks, Maria! Running was fun.", &["Maria"]),
            (
                "I met Dr Ursula von der Leyen",
                &["Dr Ursula von der Leyen"],
            ),
            ("Anna's sister likes O'Brien's book", &["Anna", "O'Brien"]),
            (
                "we use GitHub, iPhone and NASA data",
                &["GitHub", "iPhone", "NASA"],
            ),
            ("- Paris is the capital\n- buy milk", &["Paris"]),
            ("It snowed in the U.S. in May", &["U.S."]),
            ("", &[]),
            ("I", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(names(text), *expected, "{text}");
        }
    }

    #[test]
    fn distinctive_forms_give_the_kind() {
        let text = "ask @bob_k or bob@example.org, see https://docs.example.org/a?b and #release-2, \
                    run `cargo test`, edit src/main.rs and ~/notes.txt, she read \"Becoming Nicole\"";
        let found: Vec<(String, Option<&str>)> = entities(text)
            .into_iter()
            .map(|found| (found.name, found.kind))
            .collect();
        let expected = [
            ("@bob_k", "handle"),
            ("bob@example.org", "email"),
            ("docs.example.org", "host"),
            ("#release-2", "tag"),
            ("cargo test", "code"),
            ("src/main.rs", "file"),
            ("~/notes.txt", "file"),
            ("Becoming Nicole", "title"),
        ];
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), Some(*kind)))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn names_are_unique_and_limited() {
        assert_eq!(names("I saw Anna, and ANNA saw Anna"), ["Anna"]);
        let many: Vec<String> = (0..100).map(|n| format!("met Anna{n} and")).collect();
        assert_eq!(names(&many.join(" ")).len(), limits::ENTITIES);
        let long = format!("met {} and Bob", "X".repeat(1000));
        assert_eq!(names(&long), ["Bob"]);
    }

    #[test]
    fn odd_texts_do_not_panic() {
        for text in [
            "@",
            "#",
            "`",
            "``",
            "\"",
            "\"\"",
            "http://",
            "a@",
            "@@@@",
            "/",
            "~/",
            "…“”",
            "é`É",
            "İstanbul’",
        ] {
            for repeat in [1, 3] {
                let _ = entities(&text.repeat(repeat));
            }
        }
        let _ = entities(&"`".repeat(100_000));
        let _ = entities(&"\"A ".repeat(30_000));
        let _ = entities(&"http://".repeat(10_000));
    }

    #[test]
    fn keys_normalise_case_and_spaces() {
        assert_eq!(key("  New \t York\n"), "new york");
        assert_eq!(key("ÉMILE"), "émile");
        assert_eq!(key(""), "");
    }
}
