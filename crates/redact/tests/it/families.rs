//! Issued tokens, passwords after their names, and similar text that contains neither.

use serde_json::{Value, json};
use switchboard_redact::{redact, redact_text};
use switchboard_wire::Raw;

const MIXED: &str = "k7Qw2Zr9Tb4Xn6Vd1Mj8Lc3Hs5Gf0PyAeUiOo7Rk2Wq9Bz4Nx6Vd1Mj8Lc3Hs5Gf0Py";
const HEX: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const SMALL: &str = "k7qw2zr9tb4xn6vd1mj8lc3hs5gf0pya";
const CAPITALS: &str = "K7QW2ZR9TB4XN6VD1MJ8LC3HS5GF0PYA";

/// The shapes of tokens: a template, the characters that replace `…`, and their number.
const TOKENS: &[(&str, &str, usize)] = &[
    ("tvly-…", MIXED, 32),
    ("tvly-dev-…", MIXED, 32),
    ("fc-…", HEX, 32),
    ("BSA…", MIXED, 28),
    ("e2b_…", HEX, 40),
    ("bb_live_…", MIXED, 27),
    ("apify_api_…", MIXED, 36),
    ("re_k7Qw2Zr9_…", MIXED, 24),
    ("pcsk_4Abcd_…", MIXED, 60),
    ("jina_…", MIXED, 60),
    ("lsv2_pt_…_0123456789", HEX, 32),
    ("pplx-…", MIXED, 48),
    ("secret_…", MIXED, 43),
    ("ntn_…", MIXED, 46),
    ("patk7Qw2Zr9Tb4Xn6.…", HEX, 64),
    ("ATATT3xFfGF0…", MIXED, 60),
    ("ATBB…", MIXED, 36),
    ("glsa_…_0123abcd", MIXED, 32),
    ("sntrys_eyJ…", MIXED, 60),
    ("sntryu_…", HEX, 64),
    ("PMAK-0123456789abcdef01234567-…", HEX, 34),
    ("NRAK-…", CAPITALS, 27),
    ("dapi…", HEX, 32),
    ("dp.pt.…", MIXED, 43),
    ("pul-…", HEX, 40),
    ("pscale_tkn_…", MIXED, 43),
    ("rubygems_…", HEX, 48),
    ("CLOJARS_…", HEX, 60),
    ("cio…", MIXED, 32),
    ("HRKU-AA…", MIXED, 58),
    ("fm2_lJPE…", MIXED, 60),
    ("vercel_blob_rw_…", MIXED, 40),
    ("nfp_…", MIXED, 36),
    ("glptt-…", HEX, 40),
    ("glcbt-64_…", MIXED, 20),
    ("glft-…", MIXED, 20),
    ("glagent-…", MIXED, 50),
    ("hvb.AAAAAQ…", MIXED, 60),
    ("hvs.CAES…", MIXED, 60),
    ("k7Qw2Zr9Tb4Xn6.atlasv1.…", MIXED, 60),
    ("key-…", HEX, 32),
    ("key-…", SMALL, 32),
    ("…-us12", HEX, 32),
    ("SK…", HEX, 32),
    ("AC…", HEX, 32),
    ("k7Q8Q~…", MIXED, 34),
    ("AKCp8…", MIXED, 68),
    ("EAAAE…", MIXED, 59),
    ("EAACEdEose0cBA…", MIXED, 60),
    ("AAAAk7Qw2Zr:APA91b…", MIXED, 66),
    ("https://hooks.slack.com/services/T0000/B0000/…", MIXED, 24),
    (
        "https://discord.com/api/webhooks/123456789012345678/…",
        MIXED,
        60,
    ),
    (
        "https://discordapp.com/api/webhooks/123456789012345678/…",
        MIXED,
        60,
    ),
    ("https://hooks.zapier.com/hooks/catch/123456/…", SMALL, 7),
    ("https://mcp.zapier.com/api/mcp/s/…/mcp", MIXED, 48),
    ("ops_eyJ…", MIXED, 60),
    ("sb_secret_…", MIXED, 31),
    ("nvapi-…", MIXED, 64),
    ("xkeysib-…-k7Qw2Zr9Tb4Xn6Vd", HEX, 64),
    ("CCIPAT_k7Qw2Zr9Tb4X_…", HEX, 40),
    ("bkua_…", HEX, 40),
    ("squ_…", HEX, 40),
    ("CFPAT-…", MIXED, 43),
    ("FLWSECK-…-X", HEX, 32),
    ("FLWSECK_TEST-…-X", HEX, 32),
    ("LTAI…", MIXED, 20),
    ("AKID…", MIXED, 32),
    ("sl.B…", MIXED, 130),
    ("SSWS 00…", MIXED, 40),
    ("v1.0-0123456789abcdef01234567-…", HEX, 146),
    ("sgp_…", HEX, 40),
    ("sgp_0123456789abcdef_…", HEX, 40),
    ("napi_…", SMALL, 64),
    ("phx_…", MIXED, 43),
    ("rnd_…", MIXED, 28),
    ("fw_…", MIXED, 22),
    ("vcp_…", MIXED, 56),
    ("tfp_…", MIXED, 44),
    ("pnu_…", MIXED, 36),
    ("EZAK…", MIXED, 54),
    ("dbtc_…", MIXED, 43),
    ("wandb_v1_…", MIXED, 77),
    ("csk-…", SMALL, 48),
    ("secret-live-…", MIXED, 32),
    ("sdk-9f86d081-884c-7d65-9a2f-…", HEX, 12),
    ("cmVmdGtuOjAxOj…", MIXED, 50),
    ("oy2…", SMALL, 43),
];

fn token(shape: &(&str, &str, usize)) -> (String, String) {
    let rest: String = shape.1.chars().cycle().take(shape.2).collect();
    (shape.0.replace('…', &rest), rest)
}

#[test]
fn tokens_of_issuers_are_redacted() {
    for shape in TOKENS {
        let (token, rest) = token(shape);
        for text in [
            token.clone(),
            format!("use {token}, please"),
            format!("a={token}&b=1"),
            format!("[\"{token}\"]"),
            format!("[\\\"{token}\\\"]"),
        ] {
            let clean = redact_text(&text);
            assert!(!clean.contains(&rest[..6]), "{text}: {clean}");
            assert_eq!(redact_text(&clean), clean);
        }
    }
}

/// A prefix that is also a word needs a rest of the right length and characters.
#[test]
fn text_similar_to_tokens_stays() {
    for text in [
        "SSWS 007 and SSWS 00",
        "fw_version_2_of_the_update",
        "fw_0123456789",
        "rnd_seed_1234567890_of_the_run",
        "oy2 and oy2024",
        "LTAI 2026, AKID 12",
        "sdk-2.10.4-android",
        "sdk-550e8400",
        "v1.0-beta-2, v1.0-0123abcd",
        "csk-build-2026",
        "napi_version_8",
        "sl.Benchmark.2026",
        "squ_0123",
        "tfp_probability_0.24",
        "vcp_plan",
        "secret-live-stream-of-2026",
        "https://mcp.zapier.com/api/mcp/s/",
        "re_",
        "re_run_the_tests_with_python3_again",
        "re_match_group_0123456789_abcdefghijk",
        "fc-1234",
        "fc-match monospace:size=12",
        "fc-9f86d081884c7d659a2feaa0c55ad01",
        "fc-9f86d081884c7d659a2feaa0c55ad015a3",
        "patience and patterns 2.0",
        "patch.9f86d081884c7d65",
        "key-value-store-v2",
        "key-1 key-2 key-3",
        "key-0123456789",
        "cio and cto of the year 2026",
        "cioabcdefghijklmnopqrstuvwxyz012345",
        "SKU 12345678, SKIP 99",
        "SK0123456789",
        "AC/DC 1975, AC 220 V",
        "AC0123456789abcdef",
        "pul-0123",
        "dapi.example.com",
        "dapi0123456789",
        "BSA/AML rules of 2001",
        "BSA0123456789",
        "secret_manager_v2_of_the_project_number_12345678",
        "secret_name",
        "e2b_sandbox",
        "jina_embeddings_v3",
        "rubygems_version=3.5.1",
        "hvs.example",
        "nfp_report_2026",
        "the us-east-1 and the -us12 regions",
        "EAAA 2026",
        "https://discord.com/api/webhooks/",
        "https://hooks.slack.com/services/",
        "https://hooks.zapier.com/hooks/catch/",
        "user.atlasv1.docs",
        "8Q~",
        "~/8Q~x",
        "a:APA91",
        "HRKU-docs",
        "fm2_band",
        "PMAK-12",
    ] {
        assert_eq!(redact_text(text), text);
    }
}

#[test]
fn passwords_after_their_names_are_redacted() {
    for text in [
        "run --password s3cr3t-x now",
        "run --password swordfish-s3cr3t",
        "run --db-password 's3cr3t x'",
        "java -password s3cr3t",
        "x --token s3cr3t",
        r#"["--password", "s3cr3t"]"#,
        "mysql -u root -ps3cr3t db",
        "mysqldump -h db -p's3cr3t' x",
        "sshpass -p s3cr3t ssh x",
        "sshpass -p 's3cr3t x' ssh x",
        "curl -u bob:s3cr3t https://x",
        "curl -s -u 'bob:s3cr3t' https://x",
        "curl --user bob:s3cr3t https://x",
        "curl -ubob:s3cr3t https://x",
        "aws configure set aws_secret_access_key s3cr3tK7MDENG/bPxRfiCYEXAMPLEKEYx1234567",
        "AWS_SECRET_ACCESS_KEY  s3cr3tK7MDENG+bPxRfiCYEXAMPLEKEYx1234567",
        "db.example.org:5432:shop:ann:s3cr3t",
        "x\n*:5432:*:ann:s3cr3t:x\ny",
        "machine h login bob password s3cr3t",
        "machine h\n  login bob\n  password s3cr3t\n",
        "<password>s3cr3t</password>",
        "<db:userPassword>s3cr3t</db:userPassword>",
        "| password | s3cr3t |",
        "x\n| DB password | `s3cr3t` |\n",
        "https://x/?q=password%3Ds3cr3t%26b",
        "password%253Ds3cr3t",
        "psk=\"s3cr3t\"",
        "pw=s3cr3t",
        "password: |\n  s3cr3t\n",
        "password: >-\n  a\n  s3cr3t\nb: c",
        "password = \"\"\"\ns3cr3t\n\"\"\"",
        "password = '''s3cr3t'''",
        "pass\u{200b}word=s3cr3t",
        r"pass\u200bword=s3cr3t",
        "ｐａｓｓｗｏｒｄ＝s3cr3t",
        "PuTTY-User-Key-File-3: x\nPrivate-Lines: 1\ns3cr3t\nPrivate-MAC: 0",
        "Private-Lines: 1\ns3cr3t",
        r#"{"auth":"s3cr3t"}"#,
        r#"{\"auth\": \"s3cr3t\"}"#,
        r#"{"pin": 3333333, "otp": "s3cr3t"}"#,
        r#"{"session_id":"s3cr3t"}"#,
        r#"{"name":"Authorization","value":"s3cr3t"}"#,
        r#"[{\"key\": \"password\", \"value\": \"s3cr3t\"}]"#,
    ] {
        let clean = redact_text(text);
        assert!(!clean.contains("s3cr3t"), "{text}: {clean}");
        assert!(clean.contains("[redacted]"), "{text}: {clean}");
        assert_eq!(redact_text(&clean), clean, "{text}");
    }
}

#[test]
fn names_without_a_password_stay() {
    for text in [
        "the --password option is required",
        "aws_secret_access_key is required",
        "ports 5432:5432 and 127.0.0.1:5432:5432/tcp",
        "db:5432:shop:ready, db:5432:: none",
        "give --token to log in",
        "--password <password> --token $TOKEN",
        "use --password, or --secret",
        "--password-file /etc/x",
        "mysql -p -u root",
        "mysql --port 3306",
        "curl -u bob https://example.org:8080/",
        "curl -u bob:$PASS https://example.org",
        "curls -u a:b",
        "the login needs a password manager",
        "password manager",
        "<password></password>",
        "type <password> and press <enter>",
        "| user | password | note |",
        "| Password | Description |",
        "| --- | --- |",
        "password: |\n",
        "password = \"\"\"\"\"\"",
        "100%3D1",
        r#"{"auth":"none"}"#,
        r#"{"name":"Accept","value":"text/html"}"#,
        r#"{"type":"token","value":"x12345"}"#,
        r#"{"author":"ann","cookies":3}"#,
        "Private-Lines: 3",
    ] {
        assert_eq!(redact_text(text), text);
    }
}

#[test]
fn values_beside_secret_names_are_redacted() {
    let clean = |value: &Value| redact(&Raw::from_value(value).unwrap(), 4096).to_string();
    for value in [
        json!({ "name": "Authorization", "value": "s3cr3t" }),
        json!({ "key": "password", "value": ["s3cr3t"] }),
        json!([{ "value": "s3cr3t", "name": "GITHUB_TOKEN" }]),
        json!({ "header": "Cookie", "Value": "s3cr3t" }),
        json!({ "pw": "s3cr3t" }),
        json!({ "pass word": "s3cr3t" }),
        json!({ "session_id": "s3cr3t", "sessionId": "s3cr3t" }),
        json!({ "args": ["--password", "s3cr3t"] }),
        json!({ "body": json!({ "auth": "s3cr3t" }).to_string() }),
    ] {
        let clean = clean(&value);
        assert!(!clean.contains("s3cr3t"), "{value}: {clean}");
    }
    for value in [
        json!({ "name": "Accept", "value": "text/html" }),
        json!({ "name": "token bucket size", "size": 3 }),
        json!({ "args": ["--verbose", "x", "--password"] }),
    ] {
        assert_eq!(clean(&value), value.to_string());
    }
}
