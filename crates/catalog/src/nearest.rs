//! What somebody may have meant by a name that does not exist.

/// The first of each pair is suggested if it, or the second by itself, is near to `wrong`. Of equally
/// near ones the first is taken.
pub(crate) fn nearest<'a>(
    wrong: &str,
    names: impl Iterator<Item = (&'a str, &'a str)>,
) -> Option<&'a str> {
    let pattern = Pattern::new(wrong)?;
    let bound = pattern.length / 3 + 1;
    names
        .map(|(name, short)| (pattern.score(name, short), name))
        .min_by_key(|(score, _)| *score)
        .filter(|(score, _)| *score <= bound)
        .map(|(_, name)| name)
}

/// A name of at most 64 bytes, made ready to be compared with many (Myers' bit-parallel edit
/// distance: one step for each byte of the other name, so that ten thousand names are milliseconds).
struct Pattern {
    bytes: Vec<u8>,
    length: usize,
    /// For each byte, at which places of the pattern it stands.
    places: [u64; 256],
}

impl Pattern {
    fn new(text: &str) -> Option<Self> {
        // Names of tools are not longer. What a caller made up may be; its start will do.
        let bytes: Vec<u8> = text.bytes().take(64).map(plain).collect();
        if bytes.is_empty() {
            return None;
        }
        let mut places = [0; 256];
        for (at, byte) in bytes.iter().enumerate() {
            places[usize::from(*byte)] |= 1 << at;
        }
        Some(Self {
            length: bytes.len(),
            bytes,
            places,
        })
    }

    /// How far a name is away; 0 is nearest.
    fn score(&self, name: &str, short: &str) -> usize {
        // The tool may have been called without its server, or with something in front, as some
        // clients show it.
        let ends = name.len() < self.length
            && std::iter::zip(self.bytes.iter().rev(), name.bytes().rev())
                .all(|(own, other)| *own == plain(other));
        if ends {
            return 0;
        }
        self.distance(name).min(self.distance(short))
    }

    /// How many bytes have to be added, removed or replaced.
    fn distance(&self, text: &str) -> usize {
        let last = 1_u64 << (self.length - 1);
        let (mut plus, mut minus) = (u64::MAX, 0_u64);
        let mut score = self.length;
        for byte in text.bytes().take(4 * 64) {
            let equal = self.places[usize::from(plain(byte))];
            let vertical = equal | minus;
            let horizontal = ((equal & plus).wrapping_add(plus) ^ plus) | equal;
            let more = minus | !(horizontal | plus);
            let less = plus & horizontal;
            score += usize::from(more & last != 0);
            score -= usize::from(less & last != 0);
            let more = more << 1 | 1;
            plus = less << 1 | !(vertical | more);
            minus = more & vertical;
        }
        score
    }
}

/// Letters without case, and one separator for all that people use.
fn plain(byte: u8) -> u8 {
    match byte {
        b':' | b'.' | b'/' | b'-' | b' ' => b'_',
        other => other.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slow(a: &[u8], b: &[u8]) -> usize {
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, x) in a.iter().enumerate() {
            let mut corner = row[0];
            row[0] = i + 1;
            for (j, y) in b.iter().enumerate() {
                let replaced = corner + usize::from(x != y);
                corner = row[j + 1];
                row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
            }
        }
        row[b.len()]
    }

    proptest! {
        #[test]
        fn the_distance_is_the_edit_distance(a in "[a-d]{1,64}", b in "[a-d]{0,80}") {
            let fast = Pattern::new(&a).unwrap().distance(&b);
            prop_assert_eq!(fast, slow(a.as_bytes(), b.as_bytes()));
        }
    }

    #[test]
    fn people_are_understood() {
        let names = [
            ("math__add", "add"),
            ("math__subtract", "subtract"),
            ("files__read_file", "read_file"),
        ];
        for (wrong, meant) in [
            ("math__ad", Some("math__add")),
            ("math:add", Some("math__add")),
            ("Math.Add", Some("math__add")),
            ("add", Some("math__add")),
            ("read-file", Some("files__read_file")),
            ("mcp__gateway__math__subtract", Some("math__subtract")),
            ("files__readfile", Some("files__read_file")),
            ("weather", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, names.into_iter()), meant, "{wrong}");
        }
    }
}
