//! The texts of the memories: the same in every run, with word frequencies as in a natural language, and
//! names as in notes.

use std::collections::HashSet;

/// Number of namespaces that share the memories. A filter by one of them keeps 1 %.
pub(super) const NAMESPACES: u64 = 100;

const WORDS: usize = 20_000;
const NAMES: usize = 600;
/// Function words are the most frequent of any language.
const FREQUENT: [&str; 24] = [
    "the", "of", "and", "to", "a", "in", "is", "that", "for", "it", "with", "was", "on", "as",
    "are", "by", "this", "be", "from", "at", "not", "or", "we", "has",
];
const ONSETS: [&str; 20] = [
    "b", "br", "c", "ch", "d", "f", "g", "gr", "h", "l", "m", "n", "p", "pr", "r", "s", "st", "t",
    "tr", "v",
];
const VOWELS: [&str; 8] = ["a", "e", "i", "o", "u", "ai", "ea", "ou"];
const CODAS: [&str; 10] = ["", "", "n", "r", "l", "s", "t", "nd", "rt", "m"];

/// A deterministic pseudorandom number generator.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xd1b5_4a32_d192_ed03)
    }

    pub(super) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `0..end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll() % end.max(1) as u64).unwrap_or(0)
    }

    /// A number in `0.0..1.0`.
    #[expect(clippy::cast_precision_loss)] // An `f64` holds 53 bits.
    pub(super) fn part(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The source of the texts.
pub(super) struct Texts {
    /// Words, the most frequent first.
    words: Vec<String>,
    /// For each word, the cumulative frequency of it and those before it.
    shares: Vec<f64>,
    names: Vec<String>,
}

impl Texts {
    pub(super) fn new() -> Self {
        let mut dice = Dice::new(1);
        let mut known: HashSet<String> = HashSet::new();
        let mut words: Vec<String> = FREQUENT.map(str::to_owned).to_vec();
        known.extend(words.iter().cloned());
        while words.len() < WORDS {
            let word = word(&mut dice);
            if known.insert(word.clone()) {
                words.push(word);
            }
        }
        let mut total = 0.0;
        let shares = (1..=WORDS).map(|rank| {
            total += 1.0 / f64::from(u32::try_from(rank).unwrap_or(u32::MAX));
            total
        });
        let shares: Vec<f64> = shares.collect();
        let shares = shares.iter().map(|share| share / total).collect();
        let names = (0..NAMES).map(|_| capitalised(&word(&mut dice))).collect();
        Self {
            words,
            shares,
            names,
        }
    }

    /// The memory with this number: 15 to 30 words, every second one with a name.
    pub(super) fn text(&self, number: u64) -> String {
        let mut dice = Dice::new(number.wrapping_add(1_000_003));
        let length = 15 + dice.below(16);
        let mut text: Vec<&str> = (0..length).map(|_| self.word(&mut dice)).collect();
        if dice.below(2) == 0 {
            let place = 1 + dice.below(length - 1);
            text[place] = &self.names[dice.below(NAMES)];
        }
        format!("{}.", capitalised(&text.join(" ")))
    }

    /// A question that this memory answers: a few of its words.
    pub(super) fn question(&self, number: u64) -> String {
        let text = self.text(number);
        let words: Vec<&str> = text.trim_end_matches('.').split(' ').collect();
        let mut dice = Dice::new(number ^ 0x5eed);
        let begin = dice.below(words.len() - 6);
        let mut asked: Vec<&str> = words[begin..begin + 5].to_vec();
        let name = words
            .iter()
            .skip(1)
            .find(|word| word.starts_with(char::is_uppercase));
        asked.extend(name.filter(|name| !words[begin..begin + 5].contains(name)));
        format!("what about {}", asked.join(" "))
    }

    /// A word of this memory that most others do not contain.
    pub(super) fn rare_word(&self, number: u64) -> String {
        let text = self.text(number).to_lowercase();
        let words = text.trim_end_matches('.').split(' ');
        let rank = |word: &&str| self.words.iter().position(|known| known == word);
        let rarest = words.max_by_key(rank);
        rarest.unwrap_or_default().to_owned()
    }

    fn word(&self, dice: &mut Dice) -> &str {
        let part = dice.part();
        let rank = self.shares.partition_point(|share| *share < part);
        &self.words[rank.min(WORDS - 1)]
    }
}

/// The namespace of the memory with this number.
pub(super) fn namespace(number: u64) -> String {
    format!("project-{:02}", number % NAMESPACES)
}

fn word(dice: &mut Dice) -> String {
    let syllables = 1 + dice.below(3);
    let mut word = String::new();
    for _ in 0..=syllables {
        word.push_str(ONSETS[dice.below(ONSETS.len())]);
        word.push_str(VOWELS[dice.below(VOWELS.len())]);
    }
    word.push_str(CODAS[dice.below(CODAS.len())]);
    word
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
