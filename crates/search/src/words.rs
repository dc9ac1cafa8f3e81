//! Splits text into terms, for indexing and for queries.
//!
//! Names are split where a person would (`getUserByID`, `read_file`, `db.query`), words are
//! stemmed, and scripts without spaces are cut into pairs of characters. A run of letters that has
//! parts is also kept whole, so that `GitHub` is found as `github`, as `git` and as `hub`.

use crate::stem::stem;

/// The longest word, in bytes. Longer runs are ignored.
const WORD_BYTES: usize = 64;

/// One term of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The form that is compared.
    pub stem: String,
    /// The original word in lower case.
    pub word: String,
}

/// The terms of a text, in order.
pub fn terms(text: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    for run in runs(text) {
        match run {
            Run::Word(word) => {
                let parts = parts(word);
                if parts.len() > 1 {
                    push(&mut terms, word);
                }
                for part in parts {
                    push(&mut terms, part);
                }
            }
            Run::Unspaced(run) => pairs(&mut terms, run),
            Run::Sign(sign) => terms.push(Term {
                stem: sign.to_string(),
                word: sign.to_string(),
            }),
        }
    }
    terms
}

/// The runs of a text, in order: words, signs, and stretches of a script without spaces. The
/// [`terms`] of a text are the concatenated terms of its runs, so a caller can cache the terms of a
/// run.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    runs(text).map(|run| match run {
        Run::Word(run) | Run::Unspaced(run) | Run::Sign(run) => run,
    })
}

/// The words of a name, as a person would say them.
pub(crate) fn spelled(name: &str) -> impl Iterator<Item = String> {
    runs(name).flat_map(|run| match run {
        Run::Word(word) => parts(word).into_iter().map(str::to_lowercase).collect(),
        Run::Unspaced(run) => vec![run.to_owned()],
        Run::Sign(sign) => vec![sign.to_string()],
    })
}

fn push(terms: &mut Vec<Term>, word: &str) {
    if word.len() > WORD_BYTES {
        return;
    }
    let word: String = word
        .chars()
        .flat_map(char::to_lowercase)
        .map(plain)
        .collect();
    // A single letter has no meaning; a digit may have.
    if word.len() == 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return;
    }
    terms.push(Term {
        stem: stem(&word),
        word,
    });
}

/// Pairs of adjacent characters, by which scripts without spaces are searched. A single character
/// stands for itself.
fn pairs(terms: &mut Vec<Term>, run: &str) {
    let characters: Vec<char> = run.chars().collect();
    let mut push = |piece: &[char]| {
        let piece: String = piece.iter().collect();
        terms.push(Term {
            stem: piece.clone(),
            word: piece,
        });
    };
    if let [one] = *characters {
        push(&[one]);
    }
    characters.windows(2).for_each(&mut push);
}

enum Run<'a> {
    Word(&'a str),
    Unspaced(&'a str),
    /// An emoji or another pictogram.
    Sign(&'a str),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Word,
    Unspaced,
    Sign,
    Between,
}

fn class(c: char) -> Class {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' => Class::Word,
        '\u{0}'..='\u{7f}' => Class::Between,
        // Kana, ideographs, Hangul, and their compatibility forms.
        '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}' => Class::Unspaced,
        // Thai, Lao, Khmer and Burmese have no spaces either.
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => {
            Class::Unspaced
        }
        '\u{2600}'..='\u{27bf}' | '\u{1f000}'..='\u{1faff}' | '\u{2b00}'..='\u{2bff}' => {
            Class::Sign
        }
        c if c.is_alphanumeric() => Class::Word,
        _ => Class::Between,
    }
}

fn runs(text: &str) -> impl Iterator<Item = Run<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            let class_of_run = class(first);
            let end = match class_of_run {
                Class::Sign => first.len_utf8(),
                _ => rest
                    .find(|c| class(c) != class_of_run)
                    .unwrap_or(rest.len()),
            };
            let (run, after) = rest.split_at(end);
            rest = after;
            match class_of_run {
                Class::Word => {
                    rest = without_contraction(rest);
                    return Some(Run::Word(run));
                }
                Class::Unspaced => return Some(Run::Unspaced(run)),
                Class::Sign => return Some(Run::Sign(run)),
                Class::Between => {}
            }
        }
    })
}

/// The rest of a text after a word, without a contraction such as `'s`, `'re` or `n't`.
fn without_contraction(rest: &str) -> &str {
    let Some(after) = rest.strip_prefix(['\'', '’']) else {
        return rest;
    };
    let end = after
        .find(|c: char| class(c) != Class::Word)
        .unwrap_or(after.len());
    match &after[..end] {
        "s" | "t" | "d" | "m" | "re" | "ll" | "ve" => &after[end..],
        _ => rest,
    }
}

/// The parts of a name in camel case; letters and digits are separated, too.
fn parts(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let characters: Vec<(usize, char)> = word.char_indices().collect();
    for (at, pair) in characters.windows(2).enumerate() {
        let ((_, before), (here, c)) = (pair[0], pair[1]);
        let next = characters.get(at + 2).map(|(_, next)| *next);
        let begins = (before.is_lowercase() && c.is_uppercase())
            || (before.is_uppercase() && c.is_uppercase() && next.is_some_and(char::is_lowercase))
            || (before.is_numeric() != c.is_numeric());
        if begins {
            parts.push(&word[start..here]);
            start = here;
        }
    }
    parts.push(&word[start..]);
    parts
}

/// A letter without its accent, for common accents.
fn plain(c: char) -> char {
    match c {
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ė' | 'ę' | 'ě' => 'e',
        'ì' | 'í' | 'î' | 'ï' | 'ī' | 'į' => 'i',
        'ñ' | 'ń' | 'ň' => 'n',
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' | 'ō' => 'o',
        'ś' | 'š' | 'ş' => 's',
        'ù' | 'ú' | 'û' | 'ü' | 'ū' | 'ů' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        'ł' => 'l',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        terms(text).into_iter().map(|term| term.word).collect()
    }

    #[test]
    fn names_are_split_where_a_person_would() {
        let table: &[(&str, &[&str])] = &[
            ("read_file", &["read", "file"]),
            ("getUserByID", &["getuserbyid", "get", "user", "by", "id"]),
            ("HTTPServer", &["httpserver", "http", "server"]),
            ("db.query-all/now", &["db", "query", "all", "now"]),
            ("GitHub", &["github", "git", "hub"]),
            ("base64", &["base64", "base", "64"]),
            ("don't John's we’re", &["don", "john", "we"]),
            ("x a 7", &["7"]),
            ("Café", &["cafe"]),
        ];
        for (text, expected) in table {
            assert_eq!(words(text), *expected, "{text}");
        }
    }

    #[test]
    fn terms_of_pieces_add_up_to_the_text() {
        let text = "getUserByID, don't 天气预报 mail🌧️ Café-2024";
        let apart: Vec<Term> = pieces(text).flat_map(terms).collect();
        assert_eq!(apart, terms(text));
    }

    #[test]
    fn scripts_without_spaces_are_cut_into_pairs() {
        assert_eq!(words("天气预报 now"), ["天气", "气预", "预报", "now"]);
        assert_eq!(words("天"), ["天"]);
        assert_eq!(words("メール🌧️"), ["メー", "ール", "🌧"]);
    }

    #[test]
    fn overlong_words_are_ignored() {
        assert!(words(&"x".repeat(5_000)).is_empty());
    }
}
