//! What somebody may have meant by a name that does not exist.

use crate::limits::{CANDIDATES, NAME_CHARACTERS};

/// The nearest of `names`, if one is near.
pub(crate) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain_wrong = plain(wrong);
    let bound = plain_wrong.len() / 3;
    names
        .take(CANDIDATES)
        .map(|name| (distance(&plain_wrong, &plain(name)), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= bound)
        .map(|(_, name)| name)
}

/// Letters without case and without what people put between words.
fn plain(text: &str) -> Vec<char> {
    let letters = text.chars().filter(|c| !matches!(c, '_' | '-' | ' ' | '.'));
    letters
        .take(NAME_CHARACTERS)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// How many letters have to be added, removed, replaced or swapped with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let replaced = above[j] + usize::from(x != y);
            let mut least = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i - 1] == *y && b[j - 1] == *x {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_understood() {
        let names = ["path", "filePath", "limit", "include_hidden", "q"];
        for (wrong, meant) in [
            ("pth", Some("path")),
            ("paht", Some("path")),
            ("Path", Some("path")),
            ("file_path", Some("filePath")),
            ("limits", Some("limit")),
            ("includeHidden", Some("include_hidden")),
            ("Q", Some("q")),
            ("w", None),
            ("weather", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, names.into_iter()), meant, "{wrong}");
        }
    }
}
