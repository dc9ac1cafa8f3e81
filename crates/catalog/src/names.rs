//! Exposed names: the names of tools and prompts in the direct view.
//!
//! A **clean** name is `{server}__{name}`, both unchanged. It contains allowed characters only and
//! has at most 64 of them; the server's name contains no `__` and does not end in `_`. Then the
//! first `__` marks the end of the server's name, so two clean names are never equal.
//!
//! Any other name is **hashed**: converted to allowed characters, cut, and ended with a hash of the
//! original. If a hashed name is taken, the next hash is used; clean names take precedence.

use sha2::{Digest as _, Sha256};

use crate::limits::NAME_CHARACTERS;

/// Separates the server from the name.
pub(crate) const SEPARATOR: &str = "__";

/// Five bits each, 50 in total, so an accidental collision is practically impossible.
const HASH_CHARACTERS: usize = 10;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Tests if names of this server can be clean.
pub(crate) fn is_clean_server(server: &str) -> bool {
    !server.is_empty()
        && server.bytes().all(is_allowed)
        && !server.contains(SEPARATOR)
        && !server.ends_with('_')
}

/// The clean name, if there is one.
pub(crate) fn clean(server: &str, name: &str) -> Option<String> {
    let fits = server.len() + SEPARATOR.len() + name.len() <= NAME_CHARACTERS;
    (fits && is_clean_server(server) && name.bytes().all(is_allowed))
        .then(|| format!("{server}{SEPARATOR}{name}"))
}

/// The two halves of a name that may be clean.
pub(crate) fn split(exposed: &str) -> Option<(&str, &str)> {
    exposed.split_once(SEPARATOR)
}

/// The hashed name; a different one for each round.
pub(crate) fn hashed(server: &str, name: &str, round: u32) -> String {
    let room = NAME_CHARACTERS - HASH_CHARACTERS - 1;
    let mut exposed = String::with_capacity(NAME_CHARACTERS);
    exposed.extend(server.chars().map(allowed).take(room - SEPARATOR.len()));
    exposed.push_str(SEPARATOR);
    let left = room - exposed.len();
    exposed.extend(name.chars().map(allowed).take(left));
    exposed.push('_');
    exposed.push_str(&hash(&[
        &(server.len() as u64).to_le_bytes(),
        server.as_bytes(),
        name.as_bytes(),
        &round.to_le_bytes(),
    ]));
    exposed
}

/// Ten letters and digits that identify the concatenation of these pieces.
pub(crate) fn hash(pieces: &[&[u8]]) -> String {
    let sum = pieces
        .iter()
        .fold(Sha256::new(), Sha256::chain_update)
        .finalize();
    sum.iter()
        .take(HASH_CHARACTERS)
        .map(|byte| char::from(ALPHABET[usize::from(byte % 32)]))
        .collect()
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

fn allowed(character: char) -> char {
    match u8::try_from(character) {
        Ok(byte) if is_allowed(byte) => character,
        _ => '_',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_clean() {
        for (server, name, exposed) in [
            ("files", "read", "files__read"),
            ("a", "_x", "a___x"),
            ("a-b.c", "d__e", "a-b.c__d__e"),
            ("_a", "", "_a__"),
        ] {
            assert_eq!(clean(server, name).as_deref(), Some(exposed));
            assert_eq!(split(exposed), Some((server, name)));
        }
        assert!(clean("a", &"x".repeat(61)).is_some());
    }

    #[test]
    fn ambiguous_names_are_not_clean() {
        for (server, name) in [
            ("", "x"),
            ("a_", "x"),
            ("a__b", "x"),
            ("a b", "x"),
            ("a", "x y"),
            ("é", "x"),
            ("a", "é"),
        ] {
            assert_eq!(clean(server, name), None, "{server} {name}");
        }
        assert_eq!(clean("a", &"x".repeat(62)), None);
    }

    #[test]
    fn hashed_names_stay_readable_within_the_limit() {
        let long = "x".repeat(300);
        for (server, name, start) in [
            ("a b", "read file", "a_b__read_file_"),
            ("a", long.as_str(), "a__xxxx"),
            (long.as_str(), "read", "xxxx"),
            ("é", "", "___"),
        ] {
            let exposed = hashed(server, name, 0);
            assert!(exposed.starts_with(start), "{exposed}");
            assert!(exposed.len() <= NAME_CHARACTERS);
            assert!(exposed.bytes().all(is_allowed));
            assert_ne!(exposed, hashed(server, name, 1));
        }
        assert_ne!(hashed("ab", "c", 0), hashed("a", "bc", 0));
    }

    #[test]
    fn hashed_names_are_stable_across_versions() {
        // Users have these names in their clients' settings, as tools that they allowed.
        assert_eq!(hashed("a b", "read file", 0), "a_b__read_file_vmrn7xhwsv");
    }
}
