//! Exposed names: what a tool or prompt is called in the direct view.
//!
//! A **clean** name is `{server}__{name}`, both as they are. It needs allowed characters only, no
//! `__` in the server's name and no `_` at its end, and 64 characters in all. Then the first `__` is
//! where the server ends, so two clean names are never the same.
//!
//! Any other name is **hashed**: made of allowed characters, cut, and ended with a hash of what it
//! stands for. A hashed name that is taken gets the next hash; clean names always win.

use sha2::{Digest as _, Sha256};

use crate::limits::NAME_CHARACTERS;

/// What stands between the server and the name.
pub(crate) const SEPARATOR: &str = "__";

/// Five bits each, 50 in all: out of the question that two meet by chance.
const HASH_CHARACTERS: usize = 10;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Whether names of this server can be clean.
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

/// The two halves of what may be a clean name.
pub(crate) fn split(exposed: &str) -> Option<(&str, &str)> {
    exposed.split_once(SEPARATOR)
}

/// The hashed name; another one for each round.
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

/// Ten letters and digits that stand for these pieces, put together.
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
    fn what_could_be_mistaken_is_not() {
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
    fn hashed_names_tell_what_they_can_and_keep_the_limit() {
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
    fn hashed_names_are_the_same_in_every_version() {
        // Clients keep these in their own settings, as what a person has allowed.
        assert_eq!(hashed("a b", "read file", 0), "a_b__read_file_vmrn7xhwsv");
    }
}
