//! Suggestions for misspelt names.

/// The most characters of a name that is compared. A longer name is not a typo, and the cost of a
/// comparison is quadratic.
const LENGTH_MAX: usize = 64;

/// The candidate with the fewest slips from `wrong`, if it is close enough to be the intended name. A
/// slip is an extra, missing or replaced character, or a swap of two neighbours. Letter case and
/// separators do not count.
///
/// ```
/// use switchboard_text::nearest;
///
/// assert_eq!(nearest("comand", ["args", "command"]), Some("command"));
/// assert_eq!(nearest("request_timeout", ["requestTimeout"]), Some("requestTimeout"));
/// assert_eq!(nearest("colour", ["args", "command"]), None);
/// ```
pub fn nearest<'c>(wrong: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let (slips, candidate) = closest(wrong, candidates)?;
    let length = letters(wrong).min(letters(candidate));
    // A name of one letter resembles no other.
    let allowed = length.div_ceil(3).min(length - 1);
    (slips <= allowed).then_some(candidate)
}

/// The candidate with the fewest slips from `wrong` and the number of slips, which is not limited.
pub fn closest<'c>(
    wrong: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<(usize, &'c str)> {
    let wrong = plain(wrong)?;
    let compared = candidates.into_iter().filter_map(|candidate| {
        let name = plain(candidate)?;
        Some((strsim::osa_distance(&wrong, &name), candidate))
    });
    compared.min_by_key(|(slips, _)| *slips)
}

/// The number of letters of a name that are compared.
pub fn letters(name: &str) -> usize {
    plain(name).map_or(0, |plain| plain.chars().count())
}

/// Tests if two names differ only in letter case and separators.
pub fn alike(a: &str, b: &str) -> bool {
    plain(a).is_some_and(|a| plain(b).is_some_and(|b| a == b))
}

/// The letters of a name, in lower case; `None` if it has none or is too long to compare.
fn plain(name: &str) -> Option<String> {
    if name.len() > 4 * LENGTH_MAX {
        return None;
    }
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-' | ' ' | '.'));
    let letters: String = letters.flat_map(char::to_lowercase).collect();
    let length = letters.chars().count();
    (1..=LENGTH_MAX).contains(&length).then_some(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood() {
        let names = [
            "command",
            "args",
            "env",
            "url",
            "requestTimeoutMs",
            "path",
            "include_hidden",
            "q",
        ];
        for (wrong, meant) in [
            ("comand", Some("command")),
            ("commnad", Some("command")),
            ("Command", Some("command")),
            ("arg", Some("args")),
            ("urls", Some("url")),
            ("request_timeout_ms", Some("requestTimeoutMs")),
            ("requestTimeout", Some("requestTimeoutMs")),
            ("pth", Some("path")),
            ("paht", Some("path")),
            ("includeHidden", Some("include_hidden")),
            ("Q", Some("q")),
            ("pahts", Some("path")),
            ("colour", None),
            ("weather", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, names), meant, "{wrong:?}");
        }
    }

    #[test]
    fn keys_of_rules_are_understood() {
        let names = ["action", "arguments", "annotations", "tool", "matches"];
        for (wrong, meant) in [
            ("otol", Some("tool")),
            ("tols", Some("tool")),
            ("acton", Some("action")),
            ("argument", Some("arguments")),
            ("tools", Some("tool")),
            ("match", Some("matches")),
            ("zzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, names), meant, "{wrong:?}");
        }
    }

    #[test]
    fn slips_are_counted() {
        let slips = |a, b| closest(a, [b]).map(|(slips, _)| slips);
        assert_eq!(slips("abc", "acb"), Some(1));
        assert_eq!(slips("kitten", "sitting"), Some(3));
        assert_eq!(slips("", "abc"), None);
    }

    #[test]
    fn overlong_names_are_not_compared() {
        let endless = "a".repeat(100_000);
        assert_eq!(nearest(&endless, ["a"]), None);
        assert_eq!(nearest("a", [endless.as_str()]), None);
        assert!(!alike(&endless, &endless));
    }
}
