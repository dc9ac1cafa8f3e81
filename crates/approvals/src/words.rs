//! Names that were probably meant.

/// The name that was probably meant.
pub(crate) fn nearest<'n>(wrong: &str, names: &[&'n str]) -> Option<&'n str> {
    let letters = |name: &str| -> Vec<char> {
        let letters = name.chars().filter(|c| c.is_alphanumeric());
        letters.take(64).flat_map(char::to_lowercase).collect()
    };
    let wrong = letters(wrong);
    let near = names
        .iter()
        .map(|name| (slips(&wrong, &letters(name)), *name));
    near.min_by_key(|(slips, _)| *slips)
        .filter(|(slips, name)| *slips <= name.len().min(wrong.len()).div_ceil(3))
        .map(|(_, name)| name)
}

/// How many letters have to be added, removed, replaced or swapped with their neighbour.
fn slips(one: &[char], other: &[char]) -> usize {
    let mut before = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (n, a) in one.iter().enumerate() {
        let mut row = vec![n + 1];
        for (m, b) in other.iter().enumerate() {
            let replaced = above[m] + usize::from(a != b);
            let mut least = replaced.min(above[m + 1] + 1).min(row[m] + 1);
            if n > 0 && m > 0 && one[n - 1] == *b && other[m - 1] == *a {
                least = least.min(before[m - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_understood() {
        let names = ["action", "arguments", "annotations", "tool"];
        assert_eq!(nearest("otol", &names), Some("tool"));
        assert_eq!(nearest("acton", &names), Some("action"));
        assert_eq!(nearest("argument", &names), Some("arguments"));
        assert_eq!(nearest("tools", &names), Some("tool"));
        assert_eq!(nearest("zzz", &names), None);
        assert_eq!(nearest("", &names), None);
    }
}
