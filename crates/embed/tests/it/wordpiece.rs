//! Vocabularies and the splitting of texts, tested with a small vocabulary.

use proptest::prelude::*;
use switchboard_embed::{ModelError, WordPiece, limits};

const LINES: &str = "[UNK]\nun\n##aff\n##able\n##a\na\n##b\n,\n\u{4e2d}\ncafe\n!";

fn vocabulary() -> WordPiece {
    WordPiece::new(LINES).unwrap()
}

#[test]
fn longest_pieces_are_taken_from_the_left() {
    let vocabulary = vocabulary();
    assert_eq!(vocabulary.len(), 11);
    for (text, expected) in [
        ("unaffable", vec![1, 2, 3]),
        ("UN unaab", vec![1, 1, 4, 4, 6]),
        ("una,a!", vec![1, 4, 7, 5, 10]),
        ("unx a", vec![0, 5]),
        ("Caf\u{e9}\u{4e2d}cafe\u{301}", vec![9, 8, 9]),
        ("a\u{0}b a\u{200d}b", vec![5, 6, 5, 6]),
        ("\n \u{3000}", vec![]),
        // A prefix that is not inside a word does not count as one.
        ("##able", vec![0, 0, 0]),
    ] {
        assert_eq!(vocabulary.ids(text, 100), expected, "{text:?}");
    }
}

#[test]
fn piece_limit_is_respected() {
    let vocabulary = vocabulary();
    assert_eq!(vocabulary.ids("unaffable a", 2), [1, 2]);
    assert!(vocabulary.ids("a b", 0).is_empty());
}

#[test]
fn unknown_words_are_skipped_without_unk() {
    let vocabulary = WordPiece::new("a\nb\n").unwrap();
    assert_eq!(vocabulary.ids("a x b", 100), [0, 1]);
}

#[test]
fn only_start_of_large_text_is_read() {
    let vocabulary = vocabulary();
    let ids = vocabulary.ids(&"a ".repeat(5_000_000), usize::MAX);
    assert_eq!(ids.len(), limits::TEXT_BYTES / 2);
    // Here the limit is in the middle of a character, or of a word.
    let ids = vocabulary.ids(&format!(",{}", "\u{4e2d}".repeat(100_000)), usize::MAX);
    assert_eq!(ids.len(), 1 + (limits::TEXT_BYTES - 1) / 3);
    assert_eq!(vocabulary.ids(&"a".repeat(100_000), usize::MAX), [0]);
    assert!(
        vocabulary
            .ids(&"\u{0}".repeat(100_000), usize::MAX)
            .is_empty()
    );
}

#[test]
fn invalid_vocabularies_are_refused() {
    let long_line = "x".repeat(limits::VOCABULARY_LINE_BYTES + 1);
    let many: Vec<String> = (0..=limits::VOCABULARY_LINES)
        .map(|i| i.to_string())
        .collect();
    let many = many.join(
        "
",
    );
    for lines in ["", "\n", "a\nb\na", &long_line, &many] {
        let error = WordPiece::new(lines.to_owned()).unwrap_err();
        assert!(matches!(error, ModelError::Vocabulary(_)), "{error:?}");
    }
}

proptest! {
    #[test]
    fn any_text_can_be_split(text in any::<String>()) {
        let vocabulary = vocabulary();
        let ids = vocabulary.ids(&text, 1000);
        prop_assert!(ids.iter().all(|id| *id < 11));
    }
}
