//! Rules about code that belongs in one place: `unsafe`, and helpers that already exist.

use super::places::Rule;

pub(super) const RULES: &[Rule] = &[UNSAFE, RENAME, HEX, PERCENT, NEAREST, UNHEX, MEMBER];

const UNSAFE: Rule = Rule {
    crates: &[],
    part: |source| &source.all,
    words: &["unsafe"],
    home: &[
        "crates/contain/src/guard/signals.rs",
        "crates/embed/src/minilm/product.rs",
    ],
    known: &[],
    advice: "use safe code, or a crate that provides it",
};

/// The known renames move a file or directory, and replace none that is in use.
const RENAME: Rule = Rule {
    crates: &[],
    part: |source| &source.code,
    words: &["fs::rename"],
    home: &["crates/files/src/"],
    known: &[
        ("crates/client-configs/src/undo.rs", 1),
        ("crates/outbound/src/fetch.rs", 1),
        ("crates/outbound/src/logs.rs", 2),
        ("crates/store/src/engine/sqlite.rs", 2),
        ("crates/cli/src/backups.rs", 1),
    ],
    advice: "replace files with the crate `files`, which does it atomically",
};

const HEX: Rule = Rule {
    crates: &[],
    part: |source| &source.text,
    words: &[":02x}", "char::from_digit"],
    home: &[],
    known: &[],
    advice: "call `text::hex::encode`",
};

/// The known place shows a byte in a message.
const PERCENT: Rule = Rule {
    crates: &[],
    part: |source| &source.text,
    words: &[":02X}", "0123456789ABCDEF"],
    home: &[],
    known: &[("crates/config/src/load.rs", 1)],
    advice: "call `text::percent::encode`",
};

/// The known place compares a name with ten thousand others at once.
const NEAREST: Rule = Rule {
    crates: &[],
    part: |source| &source.code,
    words: &["strsim::", "fn distance("],
    home: &["crates/text/src/nearest.rs"],
    known: &[("crates/catalog/src/nearest.rs", 1)],
    advice: "call `text::nearest`",
};

/// The known places look for text that an author hides.
const UNHEX: Rule = Rule {
    crates: &[],
    part: |source| &source.code,
    words: &["percent_encoding", "u8::from_str_radix", "to_digit(16)"],
    home: &["crates/text/src/hex.rs", "crates/text/src/percent.rs"],
    known: &[
        ("crates/approvals/src/rules/decode.rs", 1),
        ("crates/redact/src/place.rs", 1),
        ("crates/trust/src/scan/encoded.rs", 3),
    ],
    advice: "decode digits with `text::hex`, and percent-encoding with `text::percent`",
};

/// The known place looks for the end of a quotation.
const MEMBER: Rule = Rule {
    crates: &[],
    part: |source| &source.text,
    words: &["memmem", r#"contains("\""#, r#"contains(r#"""#],
    home: &["crates/wire/src/"],
    known: &[("crates/redact/src/named.rs", 1)],
    advice: "look for a JSON member with `Raw::may_name`, which recognises names with escapes",
};

#[cfg(test)]
mod tests {
    use super::{super::places::tests::found, *};

    #[test]
    fn each_rule_finds_its_words() {
        for (rule, text) in [
            (UNSAFE, "fn a() { unsafe { b() } }"),
            (
                UNSAFE,
                "#[cfg(test)]\nmod tests { unsafe impl Send for A {} }",
            ),
            (RENAME, "std::fs::rename(a, b)?;"),
            (HEX, r#"let _ = write!(text, "{byte:02x}");"#),
            (PERCENT, r#"let _ = write!(out, "%{byte:02X}");"#),
            (PERCENT, r#"b"0123456789ABCDEF"[usize::from(half)]"#),
            (UNHEX, "u8::from_str_radix(digits, 16)"),
            (UNHEX, "percent_encoding::percent_decode_str(text)"),
            (MEMBER, "static SAYS: LazyLock<memmem::Finder<'static>>"),
            (MEMBER, r#"json.contains("\"taskId\"")"#),
            (MEMBER, "json.contains(r#\"\"taskId\"\"#)"),
        ] {
            assert_eq!(found(&rule, "crates/new/src/a.rs", text), 1, "{text}");
            for home in rule.home {
                let file = if home.ends_with('/') { "a.rs" } else { "" };
                assert_eq!(found(&rule, &format!("{home}{file}"), text), 0, "{text}");
            }
        }
    }

    #[test]
    fn other_code_passes() {
        let text = "#![forbid(unsafe_code)]\n// unsafe\nlet a = \"unsafe\";\nfiles::replace(a)?;\nformat!(\"{a:x}\");\n\
                    u32::from_str_radix(a, 16);\nresult.may_name(&NAME);\n\
                    #[cfg(test)]\nmod tests { fn a() { fs::rename(b, c); format!(\"{byte:02x}\"); } }";
        for rule in RULES {
            assert_eq!(
                found(rule, "crates/new/src/a.rs", text),
                0,
                "{:?}",
                rule.words
            );
        }
    }
}
