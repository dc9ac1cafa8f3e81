//! The right name for a wrong one.

/// Longer names are not compared: they are no slip of a finger, and comparing costs the square.
const LENGTH_MAX: usize = 64;

/// The candidate that is fewest slips away from `wrong`, if it is near enough to be meant. A slip
/// is a character too many, missing, changed, or swapped with its neighbour; letter case, `_` and
/// `-` count for nothing.
pub(crate) fn nearest<'c>(
    wrong: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    if wrong.len() > LENGTH_MAX {
        return None;
    }
    let wrong = plain(wrong);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LENGTH_MAX)
        .map(|candidate| (slips(&wrong, &plain(candidate)), candidate))
        .filter(|&(slips, candidate)| slips <= allowed(wrong.len().min(candidate.len())))
        .min_by_key(|&(slips, _)| slips)
        .map(|(_, candidate)| candidate)
}

/// Whether two names differ in letter case, `_` and `-` only.
pub(crate) fn alike(a: &str, b: &str) -> bool {
    a.len() <= LENGTH_MAX && b.len() <= LENGTH_MAX && plain(a) == plain(b)
}

/// A third of the name may be wrong.
fn allowed(length: usize) -> usize {
    match length {
        0..=2 => 1,
        length => (length / 3).max(1),
    }
}

fn plain(name: &str) -> Vec<char> {
    name.chars()
        .filter(|character| !matches!(character, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Optimal string alignment: Damerau's distance where no part is edited twice.
fn slips(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i);
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut cost = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                cost = cost.min(before[j - 2] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let known = ["command", "args", "env", "cwd", "url", "requestTimeoutMs"];
        for (wrong, right) in [
            ("comand", Some("command")),
            ("commnad", Some("command")),
            ("Command", Some("command")),
            ("arg", Some("args")),
            ("urls", Some("url")),
            ("request_timeout_ms", Some("requestTimeoutMs")),
            ("requestTimeout", Some("requestTimeoutMs")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, known), right, "{wrong:?}");
        }
        let endless = "a".repeat(100_000);
        assert_eq!(nearest(&endless, known), None);
        assert_eq!(nearest("a", [endless.as_str()]), None);
    }

    #[test]
    fn distance() {
        let count = |a: &str, b: &str| slips(&plain(a), &plain(b));
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("abc", ""), 3);
        assert_eq!(count("abc", "acb"), 1);
        assert_eq!(count("kitten", "sitting"), 3);
    }
}
