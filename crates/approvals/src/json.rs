//! Digests of JSON, and the detection of duplicate members.
//!
//! Arguments decide whether a person is asked, so this module must read them exactly as a server does. It
//! works on the tree of [`switchboard_wire::tree`].

use sha2::{Digest as _, Sha256};
use switchboard_wire::{
    Raw,
    tree::{Json, Tree},
};

/// The most values for which the digest is structural. Larger documents are hashed byte by byte.
const DIGEST_NODES: usize = 200_000;

/// A digest that identifies a value. The order of members and the white space between them do not count,
/// since a client may write them differently the next time; the spelling of numbers does.
pub fn digest(value: &Raw) -> [u8; 32] {
    let tree = Tree::read(value, DIGEST_NODES);
    let mut hash = Sha256::new();
    if tree.whole && tree.exact {
        digest_tree(&tree.value, &mut hash);
    } else {
        hash.update(b"bytes");
        hash.update(value.as_bytes());
    }
    hash.finalize().into()
}

fn digest_tree(value: &Json<'_>, hash: &mut Sha256) {
    let text = |hash: &mut Sha256, tag: &[u8], text: &str| {
        hash.update(tag);
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    match value {
        Json::Null | Json::Unread(_) => hash.update(b"n"),
        Json::Bool(value) => hash.update(if *value { b"t" } else { b"f" }),
        Json::Number(spelled) => text(hash, b"#", spelled),
        Json::Text(value) => text(hash, b"\"", value),
        Json::Array(elements) => {
            hash.update(b"[");
            for element in elements {
                digest_tree(element, hash);
            }
            hash.update(b"]");
        }
        Json::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|one, other| one.0.text.cmp(&other.0.text));
            hash.update(b"{");
            for (name, value) in sorted {
                text(hash, b":", name);
                digest_tree(value, hash);
            }
            hash.update(b"}");
        }
    }
}

/// Tests if an object in the value has a duplicate member, ignoring letter case, or if the value is too large
/// to tell. Parsers would disagree on the meaning of such a value.
pub fn says_twice(value: &Raw) -> bool {
    fn look(value: &Json<'_>) -> bool {
        match value {
            Json::Array(all) => all.iter().any(look),
            Json::Object(members) => {
                let mut names: Vec<String> = members
                    .iter()
                    .map(|(name, _)| name.to_lowercase().to_uppercase())
                    .collect();
                names.sort_unstable();
                names.windows(2).any(|pair| pair[0] == pair[1])
                    || members.iter().any(|(_, value)| look(value))
            }
            _ => false,
        }
    }
    let tree = Tree::read(value, DIGEST_NODES);
    !tree.whole || look(&tree.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn digests_differ_for_different_values() {
        assert_eq!(
            digest(&raw(r#"{"a":1,"b":2}"#)),
            digest(&raw(r#"{ "b":2, "a":1 }"#))
        );
        for (one, other) in [
            (r#"{"a":1}"#, r#"{"a":1.0}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            (r#"{"a":"\ud800"}"#, r#"{"a":"\ud801"}"#),
            ("[[1],2]", "[[1,2]]"),
            ("{}", "[]"),
            ("null", "false"),
        ] {
            assert_ne!(digest(&raw(one)), digest(&raw(other)), "{one}");
        }
    }

    #[test]
    fn partly_read_values_are_hashed_by_bytes() {
        let deep = raw(&format!("[{}{},7]", "[".repeat(5000), "]".repeat(5000)));
        let deeper = raw(&format!("[{}{},7]", "[".repeat(5001), "]".repeat(5001)));
        assert_ne!(digest(&deep), digest(&deeper));
    }
}
