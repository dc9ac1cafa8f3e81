//! Names of files and variables that contain keys. They are the same in every language.

use super::markup::{EXAMPLE_BYTES, EXAMPLES};

/// The marker for the name of a file that a tool rarely has to mention.
const FILE: &str = "asecretfile";
/// The marker for the name of a file that tools for it mention, or that is an example.
const USUAL_FILE: &str = "ausualsecretfile";
/// The marker for the name of a variable.
const KEY: &str = "asecretkey";

/// The marker for the value of a variable: `$OPENAI_API_KEY`.
const VALUE: &str = "asecretvalue";

/// The longest name of a file or variable, in bytes.
const NAME_BYTES: usize = 200;

/// Files, by name.
const FILES: [&str; 19] = [
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".ssh",
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".pypirc",
    ".pgpass",
    ".bash_history",
    ".zsh_history",
    "wallet.dat",
    "key4.db",
    "logins.json",
    "cookies.sqlite",
    "claude_desktop_config.json",
    ".gnupg",
    ".mozilla",
];

/// Files, by a part of their path.
const PATHS: [&str; 13] = [
    "/etc/shadow",
    ".ssh/id_",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".claude.json",
    "windsurf/mcp_config.json",
    ".gnupg/",
    ".mozilla/",
    ".password-store",
    "library/keychains",
    ".config/google-chrome",
    ".config/gh/hosts",
    ".config/gcloud/",
];

const USUAL_FILES: [&str; 2] = [".env", ".npmrc"];

const USUAL_PATHS: [&str; 5] = [
    "/etc/passwd",
    ".aws/config",
    ".aws/credentials",
    ".kube/config",
    ".docker/config.json",
];

/// Suffixes of the names of variables.
const KEYS: [&str; 7] = [
    "_API_KEY",
    "_TOKEN",
    "_SECRET",
    "_SECRET_KEY",
    "_ACCESS_KEY",
    "_PRIVATE_KEY",
    "_PASSWORD",
];

/// Replaces each such name in a text with a marker, and returns the position of the first; `None` if
/// there is none.
pub(super) fn mark(text: &str) -> Option<(String, usize)> {
    let mut out = String::new();
    let (mut first, mut done, mut at) = (None, 0, 0);
    for token in text.split(parts_names) {
        let start = at;
        at += token.len();
        at += text[at..].chars().next().map_or(0, char::len_utf8);
        let name = token.trim_end_matches(['.', ':', '!', '?', '/', '*']);
        let Some(word) = word_for(&text[..start], name) else {
            continue;
        };
        first.get_or_insert(start);
        out.push_str(&text[done..start]);
        // Spaces separate the marker from the characters around it.
        out.push(' ');
        out.push_str(word);
        out.push(' ');
        done = start + name.len();
    }
    out.push_str(&text[done..]);
    first.map(|first| (out, first))
}

fn parts_names(c: char) -> bool {
    c.is_whitespace()
        || !c.is_ascii() && !c.is_alphanumeric()
        || matches!(
            c,
            '"' | '\''
                | '`'
                | '('
                | ')'
                | '['
                | ']'
                | '{'
                | '}'
                | '<'
                | '>'
                | ','
                | ';'
                | '|'
                | '='
                | '$'
        )
}

fn word_for(before: &str, name: &str) -> Option<&'static str> {
    if !(4..=NAME_BYTES).contains(&name.len()) {
        return None;
    }
    let is_key = name
        .bytes()
        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    if is_key {
        let mut ends = KEYS.iter();
        let word = if before.ends_with(['$', '{', '%']) {
            VALUE
        } else {
            KEY
        };
        return ends.any(|end| name.ends_with(end)).then_some(word);
    }
    if !name.contains(['.', '/', '_', '\\']) {
        return None;
    }
    let name = name.to_ascii_lowercase().replace('\\', "/");
    let file = name.rsplit('/').next().unwrap_or_default();
    let is = |files: &[&str], paths: &[&str]| {
        files.contains(&file) || paths.iter().any(|path| name.contains(path))
    };
    if is(&FILES, &PATHS) && file.strip_suffix(".pub").is_none() {
        let near = before.len().saturating_sub(EXAMPLE_BYTES);
        let near = before[before.floor_char_boundary(near)..].to_ascii_lowercase();
        let is_example = EXAMPLES.iter().any(|sign| near.contains(sign));
        return Some(if is_example { USUAL_FILE } else { FILE });
    }
    is(&USUAL_FILES, &USUAL_PATHS).then_some(USUAL_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_marked() {
        for (text, marked) in [
            ("cat ~/.netrc.", "cat  asecretfile ."),
            ("läs `~/.ssh/id_rsa`", "läs ` asecretfile `"),
            ("C:\\Users\\me\\.ssh\\id_ed25519", " asecretfile "),
            ("e.g. ~/.ssh/id_rsa", "e.g.  ausualsecretfile "),
            ("in ~/.kube/config, or", "in  ausualsecretfile , or"),
            ("set OPENAI_API_KEY", "set  asecretkey "),
            ("${OPENAI_API_KEY}", "${ asecretvalue }"),
        ] {
            assert_eq!(mark(text).unwrap().0, marked, "{text}");
        }
        for text in [
            "id_rsa.pub is public",
            "~/.ssh/id_rsa.pub",
            "the ssh key",
            "AWS Config and AWS credentials",
            "a token, API_VERSION",
        ] {
            assert_eq!(mark(text), None, "{text}");
        }
    }
}
