//! Normalises single characters before text is split into words: BERT's clean-up of uncased text.

use icu_normalizer::properties::{CanonicalDecompositionBorrowed, Decomposed};
use icu_properties::{
    CodePointMapData, CodePointMapDataBorrowed,
    props::{GeneralCategory, GeneralCategoryGroup},
};

const DECOMPOSITION: CanonicalDecompositionBorrowed<'static> =
    CanonicalDecompositionBorrowed::new();
const CATEGORY: CodePointMapDataBorrowed<'static, GeneralCategory> =
    CodePointMapData::<GeneralCategory>::new();

/// A normalised character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Simple {
    /// The end of a word.
    Space,
    /// A word on its own: punctuation, or a Chinese character.
    Alone(char),
    /// A part of a word.
    Letter(char),
}

/// Appends the normalised form of a character: nothing for control characters and accents, several
/// characters for some letters.
pub(crate) fn simplify(original: char, simple: &mut Vec<Simple>) {
    if original.is_ascii() {
        simple.extend(simplify_ascii(original));
        return;
    }
    if is_noise(original) {
        return;
    }
    if original.is_whitespace() {
        simple.push(Simple::Space);
        return;
    }
    let alone = is_chinese(original);
    decompose(original, &mut |part| {
        if CATEGORY.get(part) != GeneralCategory::NonspacingMark {
            simple.extend(part.to_lowercase().map(|letter| classify(letter, alone)));
        }
    });
}

fn simplify_ascii(character: char) -> Option<Simple> {
    match character {
        '\t' | '\n' | '\r' | ' ' => Some(Simple::Space),
        _ if character.is_ascii_control() => None,
        _ => Some(classify(character.to_ascii_lowercase(), false)),
    }
}

fn classify(letter: char, alone: bool) -> Simple {
    if letter.is_whitespace() {
        Simple::Space
    } else if alone || is_punctuation(letter) {
        Simple::Alone(letter)
    } else {
        Simple::Letter(letter)
    }
}

/// Decomposes a character into its letter and its accents, recursively.
fn decompose(character: char, part: &mut dyn FnMut(char)) {
    match DECOMPOSITION.decompose(character) {
        Decomposed::Default => part(character),
        Decomposed::Singleton(single) => decompose(single, part),
        Decomposed::Expansion(first, second) => {
            decompose(first, part);
            part(second);
        }
    }
}

/// Returns `true` for control, format and private-use characters, and for the replacement character.
fn is_noise(character: char) -> bool {
    use GeneralCategory::{Control, Format, PrivateUse};
    character == char::REPLACEMENT_CHARACTER
        || matches!(CATEGORY.get(character), Control | Format | PrivateUse)
}

fn is_punctuation(character: char) -> bool {
    character.is_ascii_punctuation()
        || !character.is_ascii()
            && GeneralCategoryGroup::Punctuation.contains(CATEGORY.get(character))
}

/// Returns `true` for the blocks that BERT calls Chinese. The gap before `2B920` is in the tokeniser of
/// the published models, too.
fn is_chinese(character: char) -> bool {
    matches!(character,
        '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{2A6DF}'
        | '\u{2A700}'..='\u{2B81F}'
        | '\u{2B920}'..='\u{2CEAF}'
        | '\u{2F800}'..='\u{2FA1F}')
}
