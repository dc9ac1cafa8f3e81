//! Finds the places at which a text may be cut.

use crate::json::Scan;

/// Returns the last good place to cut `text` after `from` and not after `upto`: between JSON
/// elements, else at the end of a paragraph, a line, a sentence or a word, else between two
/// characters that do not belong together. The place is after `from` unless the text ends there, so
/// that every read makes progress.
pub(crate) fn border(text: &str, json: bool, from: usize, upto: usize) -> usize {
    let from = text.floor_char_boundary(from);
    if upto >= text.len() {
        return text.len();
    }
    let upto = text.floor_char_boundary(upto);
    if upto <= from {
        // Less than one character was requested; return one.
        return text.ceil_char_boundary(from + 1);
    }
    let found = json
        .then(|| between_elements(text, from, upto))
        .flatten()
        .or_else(|| between_words(&text[from..upto], &text[upto..]).map(|at| from + at))
        .unwrap_or_else(|| between_characters(text, from, upto));
    debug_assert!(found > from && found <= upto && text.is_char_boundary(found));
    found
}

/// Cuts after the comma between two elements and the white space that follows it. The shallowest
/// comma wins; among equals, the last one.
fn between_elements(text: &str, from: usize, upto: usize) -> Option<usize> {
    let mut scan = Scan::default();
    scan.run(&text.as_bytes()[..from]);
    let middle = from + (upto - from) / 2;
    // A cut in the first half wastes room, so it is used only if there is no other.
    let mut early: Option<(usize, usize)> = None;
    let mut late: Option<(usize, usize)> = None;
    for (at, byte) in text.bytes().enumerate().take(upto).skip(from) {
        if !scan.step(byte) {
            continue;
        }
        let best = if at < middle { &mut early } else { &mut late };
        let depth = scan.depth();
        if best.is_none_or(|(least, _)| depth <= least) {
            *best = Some((depth, at + 1));
        }
    }
    let (_, at) = late.or(early)?;
    let space = text[at..upto].len() - text[at..upto].trim_ascii_start().len();
    Some(at + space)
}

/// Returns the end of a paragraph, a line, a sentence or a word in the second half of a piece of
/// text; `None` if there is none.
fn between_words(piece: &str, next: &str) -> Option<usize> {
    let half = piece.ceil_char_boundary(piece.len() / 2);
    let late = piece.ceil_char_boundary(piece.len() / 4 * 3);
    let last = |start: usize, end: &str| {
        let at = piece[start..].rfind(end)?;
        Some(start + at + end.len())
    };
    if next.starts_with('\n') || piece.ends_with('\n') {
        // The line ends exactly here, with or without its line break.
        return Some(piece.len());
    }
    last(late, "\n\n")
        .or_else(|| last(half, "\n"))
        .or_else(|| sentence(piece, half))
        .or_else(|| word(piece, half))
}

fn sentence(piece: &str, half: usize) -> Option<usize> {
    let mut found = None;
    let mut before = ' ';
    for (at, c) in piece[half..].char_indices() {
        if c == ' ' && matches!(before, '.' | '!' | '?') {
            found = Some(half + at + 1);
        }
        if matches!(c, '。' | '！' | '？') {
            found = Some(half + at + c.len_utf8());
        }
        before = c;
    }
    found
}

fn word(piece: &str, half: usize) -> Option<usize> {
    let at = piece[half..].rfind(char::is_whitespace)?;
    let space = piece[half + at..].chars().next()?;
    // White space that does not end a line may belong to the text before it, as in a list.
    Some(half + at + space.len_utf8())
}

/// Cuts between two characters, but not within a cluster that is displayed as one.
fn between_characters(text: &str, from: usize, upto: usize) -> usize {
    let mut at = upto;
    for _ in 0..32 {
        let before = text[from..at].chars().next_back();
        let after = text[at..].chars().next();
        match (before, after) {
            (Some(before), Some(after)) if belong_together(before, after) => {
                at -= before.len_utf8();
            }
            (Some(_), _) => return at,
            (None, _) => break,
        }
    }
    upto
}

fn belong_together(before: char, after: char) -> bool {
    before == '\u{200d}'
        || (before == '\r' && after == '\n')
        || (is_flag(before) && is_flag(after))
        || is_mark(after)
}

/// Tests if a character is half of a flag. Adjacent flags are kept together, because the halves are
/// not paired up.
fn is_flag(c: char) -> bool {
    matches!(c, '\u{1f1e6}'..='\u{1f1ff}')
}

/// Tests if a character modifies the one before it: accents, vowel signs, variation selectors,
/// joiners, skin tones.
fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}' | '\u{6d6}'..='\u{6dc}' | '\u{900}'..='\u{903}' | '\u{93a}'..='\u{94f}'
        | '\u{981}'..='\u{983}' | '\u{9bc}'..='\u{9cd}' | '\u{a3c}'..='\u{a4d}' | '\u{abc}'..='\u{acd}'
        | '\u{b3c}'..='\u{b4d}' | '\u{bbe}'..='\u{bcd}' | '\u{c3e}'..='\u{c4d}' | '\u{cbc}'..='\u{ccd}'
        | '\u{d3e}'..='\u{d4d}' | '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}'
        | '\u{eb1}' | '\u{eb4}'..='\u{ebc}' | '\u{ec8}'..='\u{ece}' | '\u{f71}'..='\u{f84}'
        | '\u{102b}'..='\u{103e}' | '\u{1160}'..='\u{11ff}' | '\u{17b4}'..='\u{17d3}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{200c}' | '\u{200d}'
        | '\u{20d0}'..='\u{20ff}' | '\u{302a}'..='\u{302f}' | '\u{3099}' | '\u{309a}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{1f3fb}'..='\u{1f3ff}'
        | '\u{e0020}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, limit: usize, first: &str) {
        assert_eq!(&text[..border(text, false, 0, limit)], first);
    }

    #[test]
    fn texts_are_cut_at_natural_ends() {
        check("one two", 100, "one two");
        check(
            "First paragraph here.\n\nSecond\nparagraph",
            28,
            "First paragraph here.\n\n",
        );
        check("line one\nline two\nline three", 20, "line one\nline two\n");
        check("A sentence. Another one that is long", 20, "A sentence. ");
        check("句子一。句子二还没有结束", 20, "句子一。");
        check("just some words without an end", 18, "just some words ");
        check("averyveryverylongword", 10, "averyveryv");
        check("line\nnext", 4, "line");
        check("x y", 0, "x");
    }

    #[test]
    fn character_clusters_are_not_cut_apart() {
        let family = "👩‍👩‍👧";
        check(&format!("aaaaaaaa{family}"), 8 + 10, "aaaaaaaa");
        check("aaaae\u{301}e", 5, "aaaa");
        check("aaaa👍🏽b", 8, "aaaa");
        check("aaaa🇩🇪", 8, "aaaa");
        // A cluster is cut if there is no other place.
        let accents = format!("e{}", "\u{301}".repeat(100));
        assert!(border(&accents, false, 0, 20) > 0);
    }

    #[test]
    fn json_is_cut_between_its_elements() {
        let cut = |text: &str, from, limit| border(text, true, from, from + limit);
        let text = r#"{"n":1,"rows":[{"a":"x, y","b":2},{"a":3,"b":4},{"a":5}],"end":true}"#;
        let first = cut(text, 0, 40);
        assert_eq!(&text[..first], r#"{"n":1,"rows":[{"a":"x, y","b":2},"#);
        let second = cut(text, first, 20);
        assert_eq!(&text[first..second], r#"{"a":3,"b":4},"#);
        assert_eq!(&text[second..cut(text, second, 12)], r#"{"a":5}],"#);
        let pretty = "[\n  1,\n  2,\n  3\n]";
        assert_eq!(&pretty[..cut(pretty, 0, 10)], "[\n  1,\n  ");
        // An element that is too long is cut like plain text.
        let long = r#"["one two three four"]"#;
        assert_eq!(&long[..cut(long, 0, 12)], r#"["one two "#);
    }

    proptest! {
        #[test]
        fn cuts_make_progress_and_lose_nothing(
            text in "[a-c \n.,😀é\u{301}\u{200d}\"\\[\\]{}]{0,80}",
            json: bool,
            limit in 0_usize..20,
        ) {
            let mut pieces = String::new();
            let mut at = 0;
            while at < text.len() {
                let next = border(&text, json, at, at + limit);
                prop_assert!(next > at);
                prop_assert!(next - at <= limit.max(4));
                pieces.push_str(&text[at..next]);
                at = next;
            }
            prop_assert_eq!(pieces, text);
        }
    }
}
