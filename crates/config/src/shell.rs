//! Quotes words for shells.

use std::fmt::Write as _;

/// Quotes any word so that a user can paste it into a shell. Invisible characters are escaped.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    // Letters by category, but invisible.
    let is_blank = |c: char| {
        matches!(
            c,
            '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}'
        )
    };
    let is_seen = |c: char| {
        c == ' ' || c.is_ascii_graphic() || (!c.is_ascii() && c.is_alphanumeric() && !is_blank(c))
    };
    if word.chars().all(is_seen) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut quoted = "$'".to_owned();
    for c in word.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            c if is_seen(c) => quoted.push(c),
            // Writing to a string cannot fail.
            c => drop(write!(quoted, "\\U{:08X}", u32::from(c))),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_pasted_into_a_shell() {
        for (name, expected) in [
            ("files:read_file", "files:read_file"),
            ("", "''"),
            ("files:(instructions)", "'files:(instructions)'"),
            ("a; rm -rf $HOME", "'a; rm -rf $HOME'"),
            ("it's", r"'it'\''s'"),
            ("a\nhint: b", r"$'a\U0000000Ahint: b'"),
            ("a\u{3164}b\u{ffa0}ü", r"$'a\U00003164b\U0000FFA0ü'"),
            ("it's a\u{200b}b\\", r"$'it\'s a\U0000200Bb\\'"),
        ] {
            assert_eq!(shell_word(name), expected);
        }
    }
}
