//! Letters that look like other letters.

const CAPITALS: &str = "вкмнт";

/// Letters of other scripts and what they look like, those that are used to pass for Latin ones.
const ALIKE: [(&str, &str); 5] = [
    // Cyrillic.
    ("аеорсухіѕјԁԛԝһӏгѵь", "aeopcyxisjdqwhlrvb"),
    // Cyrillic that is alike as a capital only.
    (CAPITALS, "bkmht"),
    // Greek.
    ("οναρτυικχ", "ovaptuikx"),
    // Armenian.
    ("օսոհցԁղ", "ounhgdn"),
    // Cherokee and others, in small letters.
    ("ɡɑıǀ", "gail"),
];

/// A letter that stands for a plain one without being made of it: small capitals, letters in boxes,
/// letters with strokes.
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

/// Puts what a word looks like in its place: look-alikes beside Latin letters, or alone in a Latin
/// text, and digits between letters.
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

/// Whether a text has Latin letters, and no letters of the scripts with look-alikes that are none.
pub(super) fn is_latin(text: &str) -> bool {
    let is_other = |c: char| matches!(c, '\u{370}'..='\u{58F}') && c.is_alphabetic();
    let is_alike = |c: char| c.to_lowercase().all(|c| latin(c).is_some());
    text.is_ascii()
        || text.bytes().any(|byte| byte.is_ascii_alphabetic())
            && !text.chars().any(|c| is_other(c) && !is_alike(c))
}

/// Where a word begins that mixes Latin letters with look-alikes of another script, so that it is not
/// what it seems to be.
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

/// Whether a name passes for a Latin one: it has Latin letters beside look-alikes, or look-alikes only.
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

/// What letters a word has.
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

    /// A formula such as `xα` is no mask, nor is a foreign word with a Latin letter in it.
    fn is_masked(&self) -> bool {
        self.latin > 0 && self.alike > 0 && self.other == 0 && self.latin + self.alike > 3
    }
}

fn latin(c: char) -> Option<char> {
    // Few scripts have any.
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
    fn each_letter_has_its_like() {
        for (alike, latin) in ALIKE {
            assert_eq!(alike.chars().count(), latin.chars().count(), "{alike}");
            assert!(latin.is_ascii());
        }
    }

    #[test]
    fn names_that_pass_for_others_are_masks() {
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
    fn masks_are_told_from_formulas_and_foreign_words() {
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
