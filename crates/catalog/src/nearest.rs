//! Suggestions for names that do not exist.

/// Suggests the first of each pair if it, or the second on its own, is close to `wrong`. Of equally
/// close pairs, the first wins.
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

/// A name of at most 64 bytes, prepared for comparison with many others. Uses Myers' bit-parallel
/// edit distance: one step for each byte of the other name, so that ten thousand names take
/// milliseconds.
struct Pattern {
    bytes: Vec<u8>,
    length: usize,
    /// For each byte, the bit set of its positions in the pattern.
    places: [u64; 256],
}

impl Pattern {
    fn new(text: &str) -> Option<Self> {
        // Names of tools are not longer. A name that the caller made up may be; its start is
        // enough.
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

    /// The distance to a name; 0 is closest.
    fn score(&self, name: &str, short: &str) -> usize {
        // The caller may have omitted the server, or put a prefix in front, as some clients show
        // it.
        let ends = name.len() < self.length
            && std::iter::zip(self.bytes.iter().rev(), name.bytes().rev())
                .all(|(own, other)| *own == plain(other));
        if ends {
            return 0;
        }
        self.distance(name).min(self.distance(short))
    }

    /// The number of bytes to insert, delete or replace.
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

/// Folds letter case, and maps all common separators to one.
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
        fn distance_is_the_edit_distance(a in "[a-d]{1,64}", b in "[a-d]{0,80}") {
            let fast = Pattern::new(&a).unwrap().distance(&b);
            prop_assert_eq!(fast, slow(a.as_bytes(), b.as_bytes()));
        }
    }

    #[test]
    fn typical_misspellings_are_matched() {
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
