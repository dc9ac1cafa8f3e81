//! Look-alike letters of other scripts.

const CAPITALS: &str = "вкмнт";

/// Letters of other scripts that are used in place of Latin ones, with the Latin letters that they
/// look like.
const ALIKE: [(&str, &str); 5] = [
    // Cyrillic.
    ("аеорсухіѕјԁԛԝһӏгѵь", "aeopcyxisjdqwhlrvb"),
    // Cyrillic letters that look alike only as capitals.
    (CAPITALS, "bkmht"),
    // Greek.
    ("οναρτυικχ", "ovaptuikx"),
    // Armenian.
    ("օսոհցԁղ", "ounhgdn"),
    // Other small letters.
    ("ɡɑıǀ", "gail"),
];

/// The plain letter for a variant without a decomposition: small capitals, letters in boxes, letters
/// with strokes.
pub(super) fn plain(c: char) -> Option<&'static str> {
    const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";
    let from = |start: u32| {
        let n = (u32::from(c) - start) as usize;
        LETTERS.get(n..=n)
    };
    match c {
        '\u{1F150}'..='\u{1F169}' => from(0x1F150),
        '\u{1F170}'..='\u{1F189}' => from(0x1F170),
        '\u{1F1E6}'..='\u{1F1FF}' => from(0x1F1E6),
        'ᴀ' => Some("a"),
        'ʙ' => Some("b"),
        'ᴄ' => Some("c"),
        'ᴅ' | 'đ' | 'ð' => Some("d"),
        'ᴇ' => Some("e"),
        'ꜰ' => Some("f"),
        'ɢ' => Some("g"),
        'ʜ' | 'ħ' => Some("h"),
        'ɪ' | 'ı' => Some("i"),
        'ᴊ' => Some("j"),
        'ᴋ' => Some("k"),
        'ʟ' | 'ł' => Some("l"),
        'ᴍ' => Some("m"),
        'ɴ' | 'ŋ' => Some("n"),
        'ᴏ' | 'ø' => Some("o"),
        'ᴘ' => Some("p"),
        'ʀ' => Some("r"),
        'ꜱ' => Some("s"),
        'ᴛ' | 'ŧ' => Some("t"),
        'ᴜ' => Some("u"),
        'ᴠ' => Some("v"),
        'ᴡ' => Some("w"),
        'ʏ' => Some("y"),
        'ᴢ' => Some("z"),
        'ß' => Some("ss"),
        'æ' => Some("ae"),
        'œ' => Some("oe"),
        'þ' => Some("th"),
        _ => None,
    }
}

/// Replaces disguised letters of a word: look-alikes in a word with Latin letters, or in a word of
/// look-alikes alone in a Latin text, and digits that stand for letters.
pub(super) fn unmask(word: &mut [char], latin_text: bool) {
    let has_latin = word.iter().any(char::is_ascii_alphabetic);
    let all_alike = word.iter().all(|c| c.is_ascii() || latin(*c).is_some());
    if has_latin || latin_text && all_alike {
        for c in &mut *word {
            *c = latin(*c).unwrap_or(*c);
        }
    }
    if has_latin && word.iter().any(char::is_ascii_digit) {
        for c in word {
            *c = match *c {
                '0' => 'o',
                '1' => 'i',
                '3' => 'e',
                '4' => 'a',
                '5' => 's',
                '6' => 'g',
                '7' => 't',
                other => other,
            };
        }
    }
}

/// Tests if a text has Latin letters, and from the scripts with look-alikes only letters that are
/// look-alikes.
pub(super) fn is_latin(text: &str) -> bool {
    let is_other = |c: char| matches!(c, '\u{370}'..='\u{58F}') && c.is_alphabetic();
    let is_alike = |c: char| c.to_lowercase().all(|c| latin(c).is_some());
    text.is_ascii()
        || text.bytes().any(|byte| byte.is_ascii_alphabetic())
            && !text.chars().any(|c| is_other(c) && !is_alike(c))
}

/// The start of a word that mixes Latin letters with look-alikes of another script.
pub(super) fn find_mixed(text: &str) -> Option<usize> {
    if text.is_ascii() {
        return None;
    }
    let mut word = Mixed::default();
    for (at, c) in text.char_indices() {
        if c.is_alphabetic() {
            word.see(at, c);
        } else {
            if word.is_masked() {
                return Some(word.start);
            }
            word = Mixed::default();
        }
    }
    word.is_masked().then_some(word.start)
}

/// Tests if a name is disguised as a Latin one: it has Latin letters and look-alikes, or only
/// look-alikes.
pub(super) fn is_masked_name(name: &str) -> bool {
    if name.is_ascii() {
        return false;
    }
    let mut word = Mixed::default();
    for (at, c) in name.char_indices().filter(|(_, c)| c.is_alphabetic()) {
        word.see(at, c);
    }
    word.alike > 0 && word.other == 0 && word.latin + word.alike > 1
}

/// Counts of the letters of a word.
#[derive(Default)]
struct Mixed {
    start: usize,
    latin: usize,
    alike: usize,
    other: usize,
}

impl Mixed {
    fn see(&mut self, at: usize, c: char) {
        if self.latin + self.alike + self.other == 0 {
            self.start = at;
        }
        let small = c.to_lowercase().next().unwrap_or(c);
        if c.is_ascii() {
            self.latin += 1;
        } else if latin(small).is_some() && !(CAPITALS.contains(c) || "ıɑɡǀ".contains(c)) {
            self.alike += 1;
        } else {
            self.other += 1;
        }
    }

    /// Tests if the word is disguised. A formula such as `xα` is not, nor is a foreign word with a
    /// Latin letter.
    fn is_masked(&self) -> bool {
        self.latin > 0 && self.alike > 0 && self.other == 0 && self.latin + self.alike > 3
    }
}

fn latin(c: char) -> Option<char> {
    // Look-alikes occur only in this range.
    if !matches!(c, '\u{131}'..='\u{58F}') {
        return None;
    }
    ALIKE.iter().find_map(|(alike, latin)| {
        let at = alike.chars().position(|other| other == c)?;
        latin.chars().nth(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alike_tables_have_equal_lengths() {
        for (alike, latin) in ALIKE {
            assert_eq!(alike.chars().count(), latin.chars().count(), "{alike}");
            assert!(latin.is_ascii());
        }
    }

    #[test]
    fn disguised_names_are_found() {
        for name in ["аdd", "rеаd_file", "сору", "send_еmail"] {
            assert!(is_masked_name(name), "{name}");
        }
        for name in [
            "add",
            "größe",
            "читать_файл",
            "файл_read",
            "α",
            "検索",
            "naïve",
        ] {
            assert!(!is_masked_name(name), "{name}");
        }
    }

    #[test]
    fn formulas_and_foreign_words_are_not_disguised() {
        assert_eq!(find_mixed("the file раsswd"), Some(9));
        assert_eq!(find_mixed("rеаd_filе"), Some(0));
        for fine in [
            "plain",
            "naïve café",
            "русский text",
            "α-helix, xα, Δt, μs, kΩ, λx",
            "Ελληνικά",
            "ɑ and ɡ",
            "Excel-файл",
            "PDFка",
        ] {
            assert_eq!(find_mixed(fine), None, "{fine}");
        }
    }
}
