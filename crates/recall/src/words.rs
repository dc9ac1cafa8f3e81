//! The words of a query: which ones are significant, and how much.

use std::{collections::HashSet, sync::LazyLock};

use switchboard_embed::{StaticTable, WordPiece};
use switchboard_search::words;

use crate::limits;

/// Stop words: words that hold a sentence or a question together, but carry no content. The list is that
/// of any English grammar.
const EMPTY: &str = "
a an the of and in to is for on with as by at from it its be are was were been being am this that these those
or if but not no nor so than then there here where when what which who whom whose why how do does did done doing
have has had having can could will would shall should may might must i me my mine myself we us our ours you your
yours yourself he him his himself she her hers herself they them their theirs themselves itself one ones some any all
each every both few more most other another such only own same too very just also about into over after before again
further once during while up down out off above below between through because until against
im ive id ill dont doesnt didnt cant couldnt wouldnt shouldnt isnt arent wasnt whats hows wheres theres
don doesn didn couldn wouldn shouldn isn aren wasn etc
";

/// A word to search for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sought {
    /// Stem that is compared.
    pub(crate) stem: String,
    /// Word as written in the query, in lower case.
    pub(crate) word: String,
    /// Share of ordinary texts that contain it.
    pub(crate) common: f32,
}

/// Returns the significant words of a query, each once; all of its words if none is significant.
pub(crate) fn sought(text: &str) -> Vec<Sought> {
    let text = &text[..text.floor_char_boundary(limits::QUERY_BYTES)];
    let mut seen = HashSet::new();
    let mut all: Vec<Sought> = words::terms(text)
        .into_iter()
        .filter(|term| seen.insert(term.stem.clone()))
        .map(|term| Sought {
            common: share_of_texts(&term.word),
            stem: term.stem,
            word: term.word,
        })
        .collect();
    if all.iter().any(|one| !is_empty(&one.stem)) {
        all.retain(|one| !is_empty(&one.stem));
    }
    if all.len() > limits::QUERY_WORDS {
        all.sort_by(|one, other| one.common.total_cmp(&other.common));
        all.truncate(limits::QUERY_WORDS);
    }
    all
}

/// Returns `true` if this is the stem of a stop word.
pub(crate) fn is_empty(stem: &str) -> bool {
    static STEMS: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let terms = words::terms(EMPTY).into_iter();
        terms.map(|term| term.stem).collect()
    });
    STEMS.contains(stem)
}

/// Returns `true` if a lower-case word is a stop word.
pub(crate) fn is_empty_word(word: &str) -> bool {
    EMPTY.split_whitespace().any(|empty| empty == word)
}

/// Estimates the share of ordinary texts that contain a word: 100 / r for the word of rank r, at most
/// one half. Ranks come from the built-in vocabulary, which has the most common words first.
fn share_of_texts(word: &str) -> f32 {
    static WORDS: LazyLock<(&'static WordPiece, u32)> = LazyLock::new(|| {
        let words = StaticTable::built_in().vocabulary();
        (words, words.id("the").unwrap_or_default())
    });
    let (words, first) = *WORDS;
    match words.id(word) {
        Some(id) => (100.0 / (id.saturating_sub(first) + 1) as f32).min(0.5),
        None => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(text: &str) -> Vec<String> {
        sought(text).into_iter().map(|one| one.word).collect()
    }

    #[test]
    fn stop_words_are_dropped_unless_alone() {
        assert_eq!(
            words_of("Where did Anna's sisters keep the spare keys, and the key?"),
            ["anna", "sisters", "keep", "spare", "keys"]
        );
        assert_eq!(words_of("who are you?"), ["who", "are", "you"]);
        assert!(words_of(" ?! ").is_empty());
    }

    #[test]
    fn rarest_words_are_kept_beyond_the_limit() {
        let many: Vec<String> = (0..500).map(|n| format!("house{n}")).collect();
        let text = format!("time people {} xylophonist", many.join(" "));
        let kept = words_of(&text);
        assert_eq!(kept.len(), limits::QUERY_WORDS);
        assert!(!kept.iter().any(|word| word == "time" || word == "people"));
    }

    #[test]
    fn common_words_have_a_larger_share() {
        assert!(share_of_texts("people") > share_of_texts("violin"));
        assert!(share_of_texts("violin") > share_of_texts("zzyzzx"));
    }
}
