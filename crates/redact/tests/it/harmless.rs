//! Text that looks like a secret but is not.

use switchboard_redact::redact_text;

/// Lines that must stay as they are.
const HARMLESS: &[&str] = &[
    "550e8400-e29b-41d4-a716-446655440000",
    "request_id=550e8400-e29b-41d4-a716-446655440000",
    "commit=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
    "merge 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b into main",
    "sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "2026-07-28T10:15:30.123456789Z",
    "1753698930123",
    "timestamp=1753698930123",
    "order 4111111111111112",
    "order number 1234-5678-9012-3456",
    "tracking 1Z999AA10123456784",
    "phone +49 30 901820, call 030 12345678",
    "0.4111111111111111",
    "v4.11.1111111111111",
    "12345678-1234-1234-1234-123456789012",
    "ISBN 978-3-16-148410-0",
    "DE12 reasons to visit Berlin",
    "GB00 0000",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "img=iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "path=/usr/share/some/long/path/to/a/file",
    "a basic understanding of the token bucket",
    "the password is required",
    "your password is wrong",
    "your password is too short",
    "the password is stored in the keychain",
    "if the password is not given, a prompt appears",
    "the passphrase was changed yesterday",
    "token: string",
    "password: ${secret:mail}",
    "\"apiKey\": \"${env:API_KEY}\"",
    "max_tokens: 1000",
    "tokens=4096 of 8192",
    "a bearer certificate is needed",
    "bearer authentication",
    "https://example.org:8080/a@b?page=2",
    "https://example.org/@scope/package",
    "git@github.com:owner/name.git",
    "mail ann@example.org",
    "sk-learn-tutorials-and-notes",
    "ask-me-anything-about-it-now",
    "npm_config_registry",
    "hf_hub_download",
    "-----BEGIN CERTIFICATE-----\nMIIE",
    "-----BEGIN PUBLIC KEY-----\nMIIE",
    "Monday.August.Wednesday-and-Thursday",
    "C:\\new\\table\\report",
    "key: the quick brown fox",
    "color=#ff00ff width=1024",
    "version=1.2.3-beta.4+build.5678",
    "SELECT * FROM users WHERE id = 42",
    "sigma=0.5 and significance=0.05",
    "the secret of success",
    "1//2 and 1//0",
];

#[test]
fn harmless_text_stays_as_it_is() {
    let changed: Vec<_> = HARMLESS
        .iter()
        .map(|text| (*text, redact_text(text)))
        .filter(|(text, clean)| text != clean)
        .collect();
    assert!(changed.is_empty(), "{changed:#?}");
}
