//! The stem of an English word: Porter's second algorithm, as described by Snowball.
//!
//! A stem need not be a word. It matters only that `searches`, `searching` and `searched` share
//! one.

/// Exceptions to the rules.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("skis", "ski"),
    ("skies", "sky"),
    ("idly", "idl"),
    ("gently", "gentl"),
    ("ugly", "ugli"),
    ("early", "earli"),
    ("only", "onli"),
    ("singly", "singl"),
    ("sky", "sky"),
    ("news", "news"),
    ("howe", "howe"),
    ("atlas", "atlas"),
    ("cosmos", "cosmos"),
    ("bias", "bias"),
    ("andes", "andes"),
];

/// Words that stay unchanged after the plural ending is removed.
const KEPT: &[&str] = &[
    "inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed",
];

/// The stem of a word in lower case. A word with characters other than ASCII letters is its own
/// stem.
pub(crate) fn stem(word: &str) -> String {
    if word.len() <= 2 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    if let Some((_, stem)) = EXCEPTIONS.iter().find(|(exception, _)| *exception == word) {
        return (*stem).to_owned();
    }
    let mut stem = Stem::new(word);
    stem.plural();
    if KEPT.iter().any(|kept| kept.as_bytes() == stem.letters) {
        return stem.finish();
    }
    stem.past();
    stem.final_y();
    stem.long_endings();
    stem.shorter_endings();
    stem.bare_endings();
    stem.final_e_or_l();
    stem.finish()
}

struct Stem {
    /// ASCII; an upper-case `Y` is a consonant.
    letters: Vec<u8>,
    /// The start of the first and of the second region in which endings may be removed.
    first: usize,
    second: usize,
}

impl Stem {
    fn new(word: &str) -> Self {
        let mut letters = word.as_bytes().to_vec();
        for at in 0..letters.len() {
            if letters[at] == b'y' && (at == 0 || is_vowel(letters[at - 1])) {
                letters[at] = b'Y';
            }
        }
        let prefix = [
            "gener", "commun", "arsen", "past", "univers", "later", "emerg", "organ",
        ]
        .into_iter()
        .find(|prefix| word.starts_with(prefix));
        let first = prefix.map_or_else(|| region(&letters, 0), str::len);
        let second = region(&letters, first);
        Self {
            letters,
            first,
            second,
        }
    }

    fn plural(&mut self) {
        if self.ends("sses") {
            self.cut(2);
        } else if self.ends("ied") || self.ends("ies") {
            self.cut(if self.letters.len() > 4 { 2 } else { 1 });
        } else if self.ends("us") || self.ends("ss") {
        } else if self.ends("s") {
            let before = self.letters.len().saturating_sub(2);
            if self.letters[..before].iter().copied().any(is_vowel) {
                self.cut(1);
            }
        }
    }

    fn past(&mut self) {
        if let Some(ending) = ["eedly", "eed"]
            .into_iter()
            .find(|ending| self.ends(ending))
        {
            if self.in_first(ending) {
                self.replace(ending, "ee");
            }
            return;
        }
        let endings = ["ingly", "edly", "ing", "ed"];
        let Some(ending) = endings.into_iter().find(|ending| self.ends(ending)) else {
            return;
        };
        let rest = self.letters.len() - ending.len();
        if !self.letters[..rest].iter().copied().any(is_vowel) {
            return;
        }
        self.cut(ending.len());
        if self.ends("at") || self.ends("bl") || self.ends("iz") {
            self.letters.push(b'e');
        } else if self.is_double() {
            let keep = self.letters.len() == 3 && matches!(self.letters[0], b'a' | b'e' | b'o');
            if !keep {
                self.cut(1);
            }
        } else if self.is_short() {
            self.letters.push(b'e');
        }
    }

    fn final_y(&mut self) {
        let length = self.letters.len();
        if length > 2
            && matches!(self.letters[length - 1], b'y' | b'Y')
            && !is_vowel(self.letters[length - 2])
        {
            self.letters[length - 1] = b'i';
        }
    }

    fn long_endings(&mut self) {
        const ENDINGS: &[(&str, &str)] = &[
            ("ization", "ize"),
            ("ational", "ate"),
            ("fulness", "ful"),
            ("ousness", "ous"),
            ("iveness", "ive"),
            ("tional", "tion"),
            ("biliti", "ble"),
            ("lessli", "less"),
            ("entli", "ent"),
            ("ation", "ate"),
            ("alism", "al"),
            ("aliti", "al"),
            ("ousli", "ous"),
            ("iviti", "ive"),
            ("fulli", "ful"),
            ("ogist", "og"),
            ("enci", "ence"),
            ("anci", "ance"),
            ("abli", "able"),
            ("izer", "ize"),
            ("ator", "ate"),
            ("alli", "al"),
            ("bli", "ble"),
        ];
        if let Some((ending, by)) = self.longest(ENDINGS) {
            if self.in_first(ending) {
                self.replace(ending, by);
            }
        } else if self.ends("ogi") {
            let before = self.letters.len().checked_sub(4).map(|at| self.letters[at]);
            if self.in_first("ogi") && before == Some(b'l') {
                self.cut(1);
            }
        } else if self.ends("li") && self.in_first("li") {
            let before = self.letters.len().checked_sub(3).map(|at| self.letters[at]);
            if before.is_some_and(|letter| b"cdeghkmnrt".contains(&letter)) {
                self.cut(2);
            }
        }
    }

    fn shorter_endings(&mut self) {
        const ENDINGS: &[(&str, &str)] = &[
            ("ational", "ate"),
            ("tional", "tion"),
            ("alize", "al"),
            ("icate", "ic"),
            ("iciti", "ic"),
            ("ical", "ic"),
            ("ness", ""),
            ("ful", ""),
        ];
        if self.ends("ative") {
            if self.in_second("ative") {
                self.cut(5);
            }
        } else if let Some((ending, by)) = self.longest(ENDINGS)
            && self.in_first(ending)
        {
            self.replace(ending, by);
        }
    }

    fn bare_endings(&mut self) {
        const ENDINGS: &[(&str, &str)] = &[
            ("ement", ""),
            ("ance", ""),
            ("ence", ""),
            ("able", ""),
            ("ible", ""),
            ("ment", ""),
            ("ant", ""),
            ("ent", ""),
            ("ism", ""),
            ("ate", ""),
            ("iti", ""),
            ("ous", ""),
            ("ive", ""),
            ("ize", ""),
            ("al", ""),
            ("er", ""),
            ("ic", ""),
        ];
        if let Some((ending, _)) = self.longest(ENDINGS) {
            if self.in_second(ending) {
                self.cut(ending.len());
            }
        } else if self.ends("ion") && self.in_second("ion") {
            let before = self.letters.len().checked_sub(4).map(|at| self.letters[at]);
            if matches!(before, Some(b's' | b't')) {
                self.cut(3);
            }
        }
    }

    fn final_e_or_l(&mut self) {
        if self.ends("e") {
            let without = self.letters.len() - 1;
            let cut = self.in_second("e")
                || (self.in_first("e") && !is_short_syllable(&self.letters[..without]));
            if cut {
                self.cut(1);
            }
        } else if self.ends("ll") && self.in_second("l") {
            self.cut(1);
        }
    }

    fn finish(self) -> String {
        let letters = self
            .letters
            .iter()
            .map(|letter| char::from(letter.to_ascii_lowercase()));
        letters.collect()
    }

    fn ends(&self, ending: &str) -> bool {
        self.letters.ends_with(ending.as_bytes())
    }

    /// The longest of these endings that the word has. They are sorted by length, longest first.
    fn longest(
        &self,
        endings: &'static [(&'static str, &'static str)],
    ) -> Option<(&'static str, &'static str)> {
        endings
            .iter()
            .find(|(ending, _)| self.ends(ending))
            .copied()
    }

    fn in_first(&self, ending: &str) -> bool {
        self.letters.len() >= self.first + ending.len()
    }

    fn in_second(&self, ending: &str) -> bool {
        self.letters.len() >= self.second + ending.len()
    }

    fn cut(&mut self, letters: usize) {
        self.letters
            .truncate(self.letters.len().saturating_sub(letters));
    }

    fn replace(&mut self, ending: &str, by: &str) {
        self.cut(ending.len());
        self.letters.extend_from_slice(by.as_bytes());
    }

    fn is_double(&self) -> bool {
        let doubles: [&[u8]; 9] = [
            b"bb", b"dd", b"ff", b"gg", b"mm", b"nn", b"pp", b"rr", b"tt",
        ];
        doubles.iter().any(|double| self.letters.ends_with(double))
    }

    fn is_short(&self) -> bool {
        self.first >= self.letters.len() && is_short_syllable(&self.letters)
    }
}

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

/// The position after the first consonant that follows a vowel.
fn region(letters: &[u8], from: usize) -> usize {
    let pair = letters[from..]
        .windows(2)
        .position(|pair| is_vowel(pair[0]) && !is_vowel(pair[1]));
    pair.map_or(letters.len(), |at| from + at + 2)
}

fn is_short_syllable(letters: &[u8]) -> bool {
    match letters {
        [vowel, consonant] => is_vowel(*vowel) && !is_vowel(*consonant),
        [.., before, vowel, after] => {
            !is_vowel(*before)
                && is_vowel(*vowel)
                && !is_vowel(*after)
                && !matches!(after, b'w' | b'x' | b'Y')
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_one_word_have_one_stem() {
        let families: &[&[&str]] = &[
            &["search", "searches", "searching", "searched"],
            &[
                "calculate",
                "calculates",
                "calculating",
                "calculation",
                "calculator",
            ],
            &["hop", "hops", "hopping", "hopped"],
            &["hope", "hopes", "hoping", "hoped"],
            &[
                "translate",
                "translated",
                "translating",
                "translation",
                "translations",
            ],
            &["generate", "generates", "generating"],
            &["company", "companies"],
            &["query", "queries"],
            &["organize", "organizer", "organized"],
        ];
        for family in families {
            let stems: Vec<_> = family.iter().map(|word| stem(word)).collect();
            assert!(
                stems.iter().all(|one| *one == stems[0]),
                "{family:?} {stems:?}"
            );
        }
    }

    #[test]
    fn stems_match_the_published_examples() {
        let table = [
            ("consign", "consign"),
            ("consistency", "consist"),
            ("consolation", "consol"),
            ("knightly", "knight"),
            ("knitting", "knit"),
            ("agreed", "agre"),
            ("plastered", "plaster"),
            ("relational", "relat"),
            ("happy", "happi"),
            ("by", "by"),
            ("say", "say"),
            ("news", "news"),
            ("beautiful", "beauti"),
            ("generous", "generous"),
            ("controlling", "control"),
            ("electricity", "electr"),
        ];
        for (word, expected) in table {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn other_words_are_left_alone() {
        for word in ["", "a", "go", "café", "価格", "x86", "naïve"] {
            assert_eq!(stem(word), word);
        }
    }
}
