//! No input causes a panic, and functions that must agree do so.

use proptest::prelude::*;
use switchboard_trust::{Fingerprint, Others, Pins, Policy, Verdict, diff, fingerprint, scan};
use switchboard_wire::Raw;

/// Characters and pieces of text that rules match.
fn piece() -> impl Strategy<Value = String> {
    let pieces = vec![
        "ignore",
        "previous",
        "instructions",
        "do not",
        "tell",
        "the user",
        "~/.ssh/id_rsa",
        " ",
        "\n",
        ". ",
        "<",
        ">",
        "<!--",
        "-->",
        "[//]:",
        "<IMPORTANT>",
        "</",
        "![",
        "](http",
        "?",
        ")",
        "&#",
        "105;",
        "%6",
        "9",
        "\\u00",
        "69",
        "\\x",
        "aWdub3Jl",
        "==",
        "01101001",
        "@",
        "'",
        "SYSTEM:",
        "###",
        "\u{200b}",
        "\u{200d}",
        "\u{1f3f4}",
        "\u{e0067}",
        "\u{e007f}",
        "\u{fe0f}",
        "\u{202e}",
        "\u{1b}[",
        "\u{e000}",
        "а",
        "е",
        "ß",
        "ﬁ",
        "𝐚",
        "İ",
        "ǆ",
        "忽略",
        "指令",
        "não",
        "가",
        "\u{301}",
        "mcp__",
        "send_email",
        "`",
        "…",
        "⟨",
        "\u{fffd}",
        "\0",
        "i g n o r e",
    ];
    prop_oneof![
        6 => prop::sample::select(pieces).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => any::<char>().prop_map(String::from),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..24).prop_map(|pieces| pieces.concat())
}

/// JSON as text, with every construct that confuses parsers.
fn json() -> impl Strategy<Value = String> {
    let string = || {
        prop_oneof![
            4 => text().prop_map(|text| Raw::string(&text).to_string()),
            1 => Just(r#""\ud83d\ude00\ud800\u0041""#.to_owned()),
        ]
    };
    let key = prop_oneof![
        4 => prop::sample::select(vec![
            "name", "description", "inputSchema", "properties", "_meta", "enum", "n\\u0061me", "icons",
        ])
        .prop_map(|key| format!("\"{key}\"")),
        1 => string(),
    ];
    let leaf = prop_oneof![
        6 => string(),
        2 => prop::sample::select(vec![
            "null", "true", "false", "0", "-0", "1e400", "1E-7", "0.10", "-12345678901234567890123", "1e99999999999999999999",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..6).prop_map(|all| format!("[{}]", all.join(" , "))),
            3 => prop::collection::vec((key.clone(), inner), 0..6).prop_map(|all| {
                let members: Vec<_> = all.iter().map(|(key, value)| format!("{key} :{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

fn others() -> Others {
    let mut others = Others::default();
    others.add("mail", ["send_email", "search", ""]);
    others.own(["add"]);
    others
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_definition_is_processed(one in json(), two in json(), nested in 0_usize..300) {
        let deep = format!("{}{one}{}", "[".repeat(nested), "]".repeat(nested));
        let raws: Vec<_> = [one, two, deep].map(|json| Raw::parse(json).unwrap()).into();
        for a in &raws {
            for finding in scan(a, &others()) {
                prop_assert!(finding.excerpt.chars().count() <= 1_500);
                prop_assert!(finding.excerpt.chars().all(|c| !c.is_control()));
                prop_assert!(finding.field.chars().all(|c| !c.is_control()));
            }
            for b in &raws {
                // They agree on equality.
                let changes = diff(a, b);
                prop_assert_eq!(changes.changes.is_empty(), fingerprint(a) == fingerprint(b));
                for change in &changes.changes {
                    prop_assert_ne!(&change.before, &change.after);
                }
                let shown = changes.to_string();
                prop_assert!(shown.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
            }
        }
        let mut pins = Pins::new("s", "i");
        let verdicts = pins.judge(Policy::First, &raws, 1);
        prop_assert_eq!(verdicts.items.len(), raws.len());
        for (raw, verdict) in raws.iter().zip(&verdicts.items) {
            if *verdict == Verdict::Approved {
                let print = fingerprint(raw);
                prop_assert!(pins.approved().any(|pin| pin.fingerprint == print
                    && pin.definition.is_some_and(|kept| fingerprint(&kept) == print)));
            }
        }
        prop_assert_eq!(Pins::decode(&pins.encode()).unwrap(), pins);
    }

    #[test]
    fn scan_is_deterministic(text in text()) {
        let raw = Raw::object([("name", Raw::string(&text)), ("description", Raw::string(&text))]);
        prop_assert_eq!(scan(&raw, &others()), scan(&raw, &others()));
    }

    #[test]
    fn random_bytes_are_not_pins(bytes: Vec<u8>, text: String) {
        prop_assert!(Pins::decode(&bytes).is_err());
        let start = format!("{{\"version\":1,\"checksum\":\"{text}");
        prop_assert!(Pins::decode(start.as_bytes()).is_err());
        prop_assert!(text.parse::<Fingerprint>().is_err() || text.len() == 64);
    }

    /// Another order of members, spaces and escapes are the same definition.
    #[test]
    fn spelling_does_not_matter(members in prop::collection::btree_map("[a-z]{1,4}", text(), 0..6), shift in 0_usize..6) {
        let spell = |text: &str| {
            let units: Vec<_> = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            format!("\"{}\"", units.concat())
        };
        let mut all: Vec<_> = members.iter().collect();
        let plain = Raw::object(all.iter().map(|(key, text)| (key.as_str(), Raw::string(text))));
        let places = all.len().max(1);
        all.rotate_left(shift % places);
        let odd: Vec<_> = all.iter().map(|(key, text)| format!(" {} : {} ", spell(key), spell(text))).collect();
        let odd = Raw::parse(format!("{{{}}}", odd.join(","))).unwrap();
        prop_assert_eq!(fingerprint(&plain), fingerprint(&odd));
        prop_assert!(diff(&plain, &odd).changes.is_empty());
    }
}
