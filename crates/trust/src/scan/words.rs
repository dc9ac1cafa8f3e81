//! Splits a text into the words that a model would read, however they are disguised.
//!
//! Letters are normalised: wide, bold, circled and accented ones to plain ones, upper case to lower
//! case, look-alikes of other scripts within a Latin word to Latin letters, and digits within a word
//! to the letters that they stand for (`1gn0re`). Invisible characters are dropped, and letters that
//! stand `a p a r t` are joined. The result is split into words; scripts that do not separate words
//! are split into characters.

use icu_normalizer::{DecomposingNormalizer, DecomposingNormalizerBorrowed};

use super::alike;
use crate::show;

/// The fewest consecutive single letters that form a word.
const APART: usize = 4;

/// The most words of a short sentence. Consecutive short sentences count as one: `Do. Not. Tell.`
const SHORT: usize = 3;

/// The longest word. A longer one is no word of any rule, and is cut.
const WORD_LETTERS: usize = 64;

/// A text split into words.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// All words, concatenated.
    letters: String,
    words: Vec<Word>,
}

#[derive(Clone, Copy, Debug)]
struct Word {
    /// End in `letters`; it begins at the end of the previous word.
    end: usize,
    /// Position in the text.
    at: usize,
    /// The word ends a sentence.
    last: bool,
}

impl Words {
    /// Splits a text.
    pub(super) fn of(text: &str) -> Self {
        Cutter::new(text, false).cut()
    }

    /// Splits a name, also at capitals: `readMyFile` is three words.
    pub(super) fn of_name(name: &str) -> Self {
        Cutter::new(name, true).cut()
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The word with this index; empty after the last one.
    pub(super) fn get(&self, n: usize) -> &str {
        let before = n.checked_sub(1).and_then(|before| self.words.get(before));
        let start = before.map_or(0, |before| before.end);
        let word = self.words.get(n);
        word.map_or("", |word| &self.letters[start..word.end])
    }

    /// The position of a word in the text.
    pub(super) fn at(&self, n: usize) -> usize {
        self.words.get(n).map_or(0, |word| word.at)
    }

    /// Tests if a sentence ends with this word.
    pub(super) fn ends_sentence(&self, n: usize) -> bool {
        self.words.get(n).is_some_and(|word| word.last)
    }

    /// Transforms each word.
    pub(super) fn map(&self, mut change: impl FnMut(&str, &mut String)) -> Self {
        let mut letters = String::with_capacity(self.letters.len());
        let mut words = self.words.clone();
        for (n, word) in words.iter_mut().enumerate() {
            change(self.get(n), &mut letters);
            word.end = letters.len();
        }
        Self { letters, words }
    }

    fn push(&mut self, word: impl IntoIterator<Item = char>, at: usize) {
        self.letters.extend(word);
        self.words.push(Word {
            end: self.letters.len(),
            at,
            last: false,
        });
    }
}

struct Cutter<'a> {
    text: &'a str,
    humps: bool,
    /// All words are Latin, so a word of look-alikes alone is Latin too.
    latin: bool,
    words: Words,
    /// The current word, and its position.
    word: Vec<char>,
    start: usize,
    /// Single letters with their positions, and the end of the last one.
    apart: Vec<(char, usize)>,
    apart_end: usize,
    /// The first word after the last possible end of a sentence, and `true` if the sentence before it
    /// is short.
    since: usize,
    after_short: bool,
}

impl<'a> Cutter<'a> {
    fn new(text: &'a str, humps: bool) -> Self {
        Self {
            text,
            humps,
            latin: alike::is_latin(text),
            words: Words::default(),
            word: Vec::new(),
            start: 0,
            apart: Vec::new(),
            apart_end: 0,
            since: 0,
            after_short: false,
        }
    }

    fn cut(mut self) -> Words {
        let mut chars = self.text.char_indices().peekable();
        let mut before = ' ';
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map(|(_, next)| *next);
            if c.is_ascii() {
                self.ascii(at, c, before, next);
            } else if is_cut_alone(c) {
                self.end_word(at);
                self.end_apart();
                self.words.push([c], at);
            } else if show::is_shown(c) || c.is_whitespace() {
                self.other(at, c);
            } else {
                // Invisible characters do not separate words.
                continue;
            }
            before = c;
        }
        self.end_word(self.text.len());
        self.end_apart();
        self.join_short();
        self.words
    }

    fn ascii(&mut self, at: usize, c: char, before: char, next: Option<char>) {
        if c.is_ascii_alphanumeric() {
            if self.humps && c.is_ascii_uppercase() && before.is_ascii_lowercase() {
                self.end_word(at);
            }
            self.letter(at, c.to_ascii_lowercase());
            return;
        }
        // An apostrophe within a word does not split it.
        let within = before.is_alphanumeric() && next.is_some_and(char::is_alphanumeric);
        if c == '\'' && within {
            return;
        }
        self.end_word(at);
        if c == '@' && within {
            self.end_apart();
            self.words.push(['@'], at);
        }
        let ends = match c {
            '.' | '!' | '?' | ';' => next.is_none_or(char::is_whitespace),
            '\n' => next == Some('\n'),
            _ => false,
        };
        if ends {
            self.end_sentence();
        }
    }

    fn other(&mut self, at: usize, c: char) {
        if matches!(c, '’' | 'ʼ' | '＇') && !self.word.is_empty() {
            return;
        }
        if matches!(c, '。' | '！' | '？' | '．' | '…' | '؟' | '।' | '；') {
            self.end_word(at);
            self.end_sentence();
            return;
        }
        if let Some(plain) = alike::plain(c) {
            for c in plain.chars() {
                self.letter(at, c);
            }
            return;
        }
        for c in NORMAL.normalize_iter(std::iter::once(c)) {
            if is_mark(c) {
                continue;
            }
            for c in c.to_lowercase() {
                match alike::plain(c) {
                    Some(plain) => plain.chars().for_each(|c| self.letter(at, c)),
                    None if c.is_alphanumeric() => self.letter(at, c),
                    None => self.end_word(at),
                }
            }
        }
    }

    fn letter(&mut self, at: usize, c: char) {
        if self.word.len() == WORD_LETTERS {
            self.end_word(at);
        }
        if self.word.is_empty() {
            self.start = at;
        }
        self.word.push(c);
    }

    fn end_word(&mut self, at: usize) {
        match self.word.as_slice() {
            [] => return,
            [alone] if alone.is_ascii_alphabetic() => {
                let alone = *alone;
                // More than one character between them separates words.
                if self.start > self.apart_end + 1 {
                    self.end_apart();
                }
                self.apart.push((alone, self.start));
                self.apart_end = at;
            }
            _ => {
                self.end_apart();
                alike::unmask(&mut self.word, self.latin);
                self.words.push(self.word.iter().copied(), self.start);
            }
        }
        self.word.clear();
    }

    /// Joins single letters if there are enough of them; otherwise each is a word.
    fn end_apart(&mut self) {
        match self.apart.as_slice() {
            [] => return,
            [(_, at), ..] if self.apart.len() >= APART => {
                let letters = self.apart.iter().map(|(c, _)| *c);
                self.words.push(letters, *at);
            }
            few => few.iter().for_each(|(c, at)| self.words.push([*c], *at)),
        }
        self.apart.clear();
    }

    fn end_sentence(&mut self) {
        self.end_apart();
        self.join_short();
        if let Some(word) = self.words.words.last_mut() {
            word.last = true;
        }
    }

    /// Joins the words since the last possible end of a sentence to the previous ones, if both are
    /// few.
    fn join_short(&mut self) {
        let count = self.words.len() - self.since;
        if count == 0 {
            return;
        }
        let is_short = count <= SHORT;
        let words = &mut self.words.words[..self.since];
        if let Some(before) = words.last_mut()
            && is_short
            && self.after_short
        {
            before.last = false;
        }
        self.after_short = is_short;
        self.since = self.words.len();
    }
}

/// Joins words that are hyphenated at the ends of lines; `None` if there are none.
pub(super) fn unhyphenated(text: &str) -> Option<String> {
    let text = text.replace('\r', "");
    let (first, rest) = text.split_once("-\n")?;
    let mut out = first.to_owned();
    for part in rest.split("-\n") {
        out.push_str(part.trim_start_matches([' ', '\t']));
    }
    Some(out)
}

/// Compatibility decomposition: `ﬁ` is `fi`, `é` is `e` and an accent, `𝐚` is `a`.
const NORMAL: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizer::new_nfkd();

/// Tests if a character belongs to a script that does not separate words as others do.
fn is_cut_alone(c: char) -> bool {
    matches!(c,
        '\u{3041}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFD}')
}

/// Tests if a character is an accent or a vowel point.
fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36F}' | '\u{483}'..='\u{487}' | '\u{591}'..='\u{5C7}'
        | '\u{64B}'..='\u{65F}' | '\u{670}' | '\u{20D0}'..='\u{20FF}' | '\u{FE20}'..='\u{FE2F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let words = Words::of(text);
        let all: Vec<_> = (0..words.len())
            .map(|n| {
                let end = if words.ends_sentence(n) { "." } else { "" };
                format!("{}{end}", words.get(n))
            })
            .collect();
        all.join(" ")
    }

    #[test]
    fn words_are_normalised() {
        for (text, plain) in [
            ("Don't IGNORE it! e.g. x", "dont ignore it e g x"),
            (
                "Ｉｇｎｏｒｅ 𝐩𝐫𝐞𝐯𝐢𝐨𝐮𝐬 Ⓡⓤⓛⓔⓢ ﬁle",
                "ignore previous rules file",
            ),
            ("ig\u{200b}no\u{ad}re", "ignore"),
            ("ígñóre ìt, Größe", "ignore it grosse"),
            ("іgnоrе аll", "ignore all"),
            ("1gn0re pr3vious base64", "ignore previous basega"),
            ("i g n o r e  a-l-l-o-w", "ignore allow"),
            ("a b", "a b"),
            ("ɪɢɴᴏʀᴇ 🅰🅻🅻", "ignore all"),
            ("忽略。指令", "忽 略 指 令"),
            ("a@b.example", "a @ b example"),
            ("не говори", "не говори"),
            (
                "one line of words\n\nline\nline. Do. Not. Tell",
                "one line of words. line line do not tell",
            ),
            ("Do not tell.\n\nThe user", "do not tell the user"),
        ] {
            assert_eq!(words(text), plain, "{text}");
        }
        assert_eq!(unhyphenated("in-\r\n  form us").unwrap(), "inform us");
        let name = Words::of_name("contentOf_sshKey");
        assert_eq!((name.len(), name.get(2), name.at(2)), (4, "ssh", 10));
    }
}
