//! The forms of secrets.
//!
//! Each form begins with something that is cheap to look for: a few bytes of a prefix, a name or a
//! digit. A table by the first byte leads to the forms that may begin at a place. Every form looks
//! at a bounded part of the text, or consumes what it looks at, so that the time is linear.

use std::{ops::Range, sync::OnceLock};

use crate::{
    numbers::{before, card, iban, is_token, run, telegram},
    plain::{is_random, is_uuid},
    view::View,
};

/// The places of all secrets in the view.
pub(crate) fn find(view: &View<'_>) -> Vec<Range<usize>> {
    let mut found = private_keys(view.text());
    let text = Text {
        view,
        bytes: view.text().as_bytes(),
    };
    let table = table();
    let (mut at, mut told) = (0, 0);
    while at < text.bytes.len() {
        let kinds = table[usize::from(text.bytes[at])];
        let secret = if kinds == 0 {
            None
        } else {
            text.secret(kinds, at, told)
        };
        match secret {
            Some(secret) => {
                // At least one byte on, and never into a secret again.
                at = secret.end.max(at + 1);
                told = secret.end;
                found.push(secret);
            }
            None => at += 1,
        }
    }
    found
}

const PREFIX: u16 = 1;
const DIGITS: u16 = 2;
const CAPITALS: u16 = 4;
const DISCORD: u16 = 8;
const NAME: u16 = 16;
const ADDRESS: u16 = 32;
const EQUALS: u16 = 64;
const HEADER: u16 = 128;
const KEY: u16 = 256;

/// The kinds of secrets that may begin with a byte.
fn table() -> &'static [u16; 256] {
    static TABLE: OnceLock<[u16; 256]> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = [0; 256];
        let mut add = |byte: u8, kind: u16| table[usize::from(byte)] |= kind;
        for family in &FAMILIES {
            add(family.begins.as_bytes()[0], PREFIX);
        }
        (b'0'..=b'9').for_each(|digit| add(digit, DIGITS));
        (b'A'..=b'Z').for_each(|letter| add(letter, CAPITALS));
        b"MNO".iter().for_each(|letter| add(*letter, DISCORD));
        for name in NAMES.iter().chain(&SPOKEN) {
            add(name.as_bytes()[0], NAME);
            add(name.as_bytes()[0].to_ascii_uppercase(), NAME);
        }
        add(b':', ADDRESS);
        add(b'=', EQUALS);
        b"aAbB".iter().for_each(|letter| add(*letter, HEADER));
        b"kK".iter().for_each(|letter| add(*letter, KEY));
        table
    })
}

/// A prefix that an issuer gives its tokens so that they are found.
struct Family {
    begins: &'static str,
    /// The characters of the rest besides letters and digits.
    also: &'static [u8],
    /// The least length of the rest.
    least: usize,
}

const fn family(begins: &'static str, also: &'static [u8], least: usize) -> Family {
    Family {
        begins,
        also,
        least,
    }
}

static FAMILIES: [Family; 56] = [
    family("sk-", b"-_", 12),
    family("sk_live_", b"", 8),
    family("sk_test_", b"", 8),
    family("rk_live_", b"", 8),
    family("rk_test_", b"", 8),
    family("pk_live_", b"", 8),
    family("pk_test_", b"", 8),
    family("ghp_", b"", 16),
    family("gho_", b"", 16),
    family("ghu_", b"", 16),
    family("ghs_", b"", 16),
    family("ghr_", b"", 16),
    family("github_pat_", b"_", 16),
    family("glpat-", b"-_.", 16),
    family("gldt-", b"-_", 16),
    family("glrt-", b"-_", 16),
    family("glc_", b"+/=", 24),
    family("xoxa-", b"-", 8),
    family("xoxb-", b"-", 8),
    family("xoxc-", b"-", 8),
    family("xoxd-", b"-%+/=", 8),
    family("xoxe-", b"-", 8),
    family("xoxe.", b"-.", 8),
    family("xoxp-", b"-", 8),
    family("xoxr-", b"-", 8),
    family("xoxs-", b"-", 8),
    family("xapp-", b"-", 8),
    family("AKIA", b"", 12),
    family("ASIA", b"", 12),
    family("AIza", b"-_", 30),
    family("GOCSPX-", b"-_", 16),
    family("ya29.", b"-_.", 16),
    family("1//0", b"-_", 20),
    family("npm_", b"", 30),
    family("pypi-", b"-_", 16),
    family("hf_", b"", 30),
    family("gsk_", b"", 30),
    family("xai-", b"", 30),
    family("r8_", b"", 30),
    family("dop_v1_", b"", 16),
    family("doo_v1_", b"", 16),
    family("dor_v1_", b"", 16),
    family("dckr_pat_", b"-_", 16),
    family("shpat_", b"", 24),
    family("shpss_", b"", 24),
    family("SG.", b"-_.", 32),
    family("lin_api_", b"", 24),
    family("ntn_", b"", 30),
    family("figd_", b"-_", 24),
    family("hvs.", b"-_", 20),
    family("sbp_", b"", 24),
    family("tskey-", b"-", 16),
    family("whsec_", b"+/=", 16),
    family("AGE-SECRET-KEY-1", b"", 24),
    family("sq0csp-", b"-_", 24),
    family("eyJ", b"-_.", 8),
];

/// Names that a secret follows, after `=` or `:`.
const NAMES: [&str; 27] = [
    "password",
    "passwort",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "access-key",
    "accountkey",
    "account_key",
    "sharedaccesskey",
    "private_key_id",
    "privatekey",
    "private_key",
    "private-key",
    "secret_key",
    "secretkey",
    "credentials",
    "credential",
    "kennwort",
    "signature",
    "sig",
];

/// Names that a secret follows in a sentence.
const SPOKEN: [&str; 6] = [
    "password",
    "passwort",
    "passphrase",
    "passcode",
    "kennwort",
    "passwd",
];

/// The most white space between a name and its value.
const GAP: usize = 8;
/// The longest value after `=` that is judged by its randomness.
const RANDOM_MAX: usize = 4096;
/// The longest name and password of an address.
const USER_MAX: usize = 256;
/// The first bytes of a token, by which it is judged.
const JUDGED: usize = 512;
/// The longest name in front of `=`.
const NAME_MAX: usize = 128;

struct Text<'v> {
    view: &'v View<'v>,
    bytes: &'v [u8],
}

impl Text<'_> {
    /// The secret that begins here, or after a name that begins here. `told` is the end of the last
    /// one.
    fn secret(&self, kinds: u16, at: usize, told: usize) -> Option<Range<usize>> {
        let has = |kind: u16| kinds & kind != 0;
        let before = before(self.bytes, at).filter(|_| at != told);
        let starts_word = before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && byte != b'_');
        if starts_word {
            let found = (has(PREFIX).then(|| self.family(at)).flatten())
                .or_else(|| has(DIGITS).then(|| self.number(at)).flatten())
                .or_else(|| has(CAPITALS).then(|| iban(self.bytes, at)).flatten())
                .or_else(|| has(DISCORD).then(|| self.discord(at)).flatten())
                .or_else(|| has(HEADER).then(|| self.header(at)).flatten());
            if found.is_some() {
                return found;
            }
        }
        (has(NAME).then(|| self.named(at)).flatten())
            .or_else(|| has(ADDRESS).then(|| self.userinfo(at)).flatten())
            .or_else(|| has(EQUALS).then(|| self.random(at, at + 1)).flatten())
            .or_else(|| has(KEY).then(|| self.key(at)).flatten())
    }

    fn family(&self, at: usize) -> Option<Range<usize>> {
        let rest = &self.bytes[at..];
        let fits = |family: &&Family| rest.starts_with(family.begins.as_bytes());
        let family = FAMILIES.iter().find(fits)?;
        let start = at + family.begins.len();
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || family.also.contains(byte);
        let length = run(&self.bytes[start..], JUDGED, is_part);
        let token = &self.bytes[start..start + length];
        // A sentence has points and dashes too; what issuers make has digits.
        let is_made = token.iter().any(u8::is_ascii_digit) || family.begins == "eyJ";
        if length < family.least || !is_made {
            return None;
        }
        let end = start + length;
        Some(at..end + run(&self.bytes[end..], usize::MAX, is_part))
    }

    fn number(&self, at: usize) -> Option<Range<usize>> {
        telegram(self.bytes, at).or_else(|| card(self.bytes, at))
    }

    /// The token of a Discord bot: its number in base64, a time, a signature.
    fn discord(&self, at: usize) -> Option<Range<usize>> {
        let part = |start: usize| run(&self.bytes[start..], 80, |byte| is_token(*byte));
        let point = |at: usize| (self.bytes.get(at) == Some(&b'.')).then_some(at + 1);
        let id = part(at);
        let time_at = point(at + id).filter(|_| (23..=28).contains(&id))?;
        let time = part(time_at);
        let signature_at = point(time_at + time).filter(|_| time == 6)?;
        let signature = part(signature_at);
        (signature >= 27).then_some(at..signature_at + signature)
    }

    /// `Authorization: SCHEME SECRET`, and `Bearer SECRET` anywhere.
    fn header(&self, at: usize) -> Option<Range<usize>> {
        if let Some(end) = self.word(at, "authorization") {
            let odd = |byte: &u8| !byte.is_ascii_alphanumeric() && *byte != b'\n';
            let gap = run(&self.bytes[end..], 4, odd);
            if gap == 0 {
                return None;
            }
            let start = end + gap;
            let scheme = run(&self.bytes[start..], 32, u8::is_ascii_alphabetic);
            let spaces = run(&self.bytes[start + scheme..], GAP, |byte| *byte == b' ');
            if scheme > 0 && spaces > 0 {
                let value = self.value(start + scheme + spaces);
                return value.filter(|value| value.len() >= 4);
            }
            let judged = &self.bytes[start..self.bytes.len().min(start + JUDGED)];
            let is_part = |byte: &&u8| !byte.is_ascii_whitespace();
            // Only a value that is then consumed may be looked at to its end.
            if !judged.iter().take_while(is_part).any(u8::is_ascii_digit) {
                return None;
            }
            return self.value(start).filter(|value| value.len() >= 8);
        }
        let end = self.word(at, "bearer")?;
        let gap = run(&self.bytes[end..], GAP, u8::is_ascii_whitespace);
        if gap == 0 {
            return None;
        }
        let start = end + gap;
        let symbol = |byte: &u8| matches!(byte, b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b'-');
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || symbol(byte);
        let length = run(&self.bytes[start..], usize::MAX, is_part);
        let token = &self.bytes[start..start + length];
        let inner = token.strip_suffix(b".").unwrap_or(token);
        let is_made = inner
            .iter()
            .any(|byte| byte.is_ascii_digit() || symbol(byte));
        (length >= 8 && (is_made || length >= 24)).then_some(start..start + length)
    }

    /// A value up to white space, a comma, a semicolon or a quote.
    fn value(&self, start: usize) -> Option<Range<usize>> {
        let is_end =
            |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b';' | b'"' | b'\'');
        let length = run(self.bytes.get(start..)?, usize::MAX, |byte| !is_end(byte));
        (length > 0).then_some(start..start + length)
    }

    /// The end of this word, in whatever case, if it stands here.
    fn word(&self, at: usize, word: &str) -> Option<usize> {
        let here = self.bytes.get(at..at + word.len())?;
        here.eq_ignore_ascii_case(word.as_bytes())
            .then_some(at + word.len())
    }

    /// `password=SECRET`, `"token": "SECRET"`, `my password is SECRET`.
    fn named(&self, at: usize) -> Option<Range<usize>> {
        if self.bytes[..at].ends_with(b"${") {
            return None;
        }
        let assigned = NAMES.iter().find_map(|name| {
            let end = self.word(at, name)?;
            self.assigned(name, end)
        });
        let spoken = || {
            let end = SPOKEN.iter().find_map(|name| self.word(at, name))?;
            self.spoken(at, end)
        };
        assigned.or_else(spoken)
    }

    fn assigned(&self, name: &str, end: usize) -> Option<Range<usize>> {
        let quote = |at: usize| matches!(self.bytes.get(at), Some(b'"' | b'\''));
        let blank = |byte: &u8| byte.is_ascii_whitespace();
        let mut at = end + usize::from(quote(end));
        at += run(self.bytes.get(at..)?, GAP, blank);
        if !matches!(self.bytes.get(at), Some(b'=' | b':')) {
            return None;
        }
        at += 1;
        if self.bytes.get(at) == Some(&b'>') {
            at += 1;
        }
        at += run(self.bytes.get(at..)?, GAP, blank);
        if quote(at) {
            return self.quoted(at);
        }
        let rest = &self.bytes[at..];
        if rest.starts_with(b"${") || rest.starts_with(b"{") {
            return None;
        }
        let is_end = |byte: &u8| {
            byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'&' | b',' | b';' | b'[')
        };
        let length = run(rest, usize::MAX, |byte| !is_end(byte));
        let value = &self.view.text()[at..at + length];
        // The signature of a message is a secret only in a signed address.
        let least = match name {
            "sig" | "signature" => 20,
            _ => 3,
        };
        (length >= least && !is_type(value)).then_some(at..at + length)
    }

    /// A value in quotes, which may hold quotes that are escaped once more.
    fn quoted(&self, open: usize) -> Option<Range<usize>> {
        let (quote, depth) = (self.bytes[open], self.view.slashes(open));
        let start = open + 1;
        let mut at = start;
        while let Some(&byte) = self.bytes.get(at) {
            if byte == quote {
                let slashes = self.view.slashes(at);
                let closes = slashes <= depth || (slashes - depth).is_multiple_of(2 * (depth + 1));
                if closes {
                    break;
                }
            }
            if byte == b'\n' && self.view.slashes(at) == 0 {
                break;
            }
            at += 1;
        }
        let value = self.view.text()[start..at].trim();
        let is_reference = value.starts_with("${") && value.ends_with('}');
        (!value.is_empty() && !is_reference).then_some(start..at)
    }

    /// A password in a sentence. Most sentences about passwords do not hold one, so that the word has
    /// to look like one, unless it is said to be the speaker's or the listener's.
    fn spoken(&self, at: usize, end: usize) -> Option<Range<usize>> {
        const VERBS: [&str; 6] = ["is", "was", "ist", "lautet", "war", "will be"];
        let gap = run(&self.bytes[end..], GAP, u8::is_ascii_whitespace);
        let verb = VERBS
            .iter()
            .find_map(|verb| self.word(end + gap, verb))
            .filter(|_| gap > 0)?;
        let colon = usize::from(self.bytes.get(verb) == Some(&b':'));
        let gap = run(&self.bytes[verb + colon..], GAP, u8::is_ascii_whitespace);
        let start = verb + colon + gap;
        if gap == 0 {
            return None;
        }
        if matches!(self.bytes.get(start), Some(b'"' | b'\'' | b'`')) {
            return self.quoted(start);
        }
        let length = run(&self.bytes[start..], usize::MAX, |byte| {
            !byte.is_ascii_whitespace() && *byte != b'"'
        });
        let word = &self.view.text()[start..start + length];
        let word = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '\'']);
        let owned = self.is_owned(at);
        let looks = word.bytes().any(|byte| byte.is_ascii_digit())
            || word
                .bytes()
                .any(|byte| byte.is_ascii_punctuation() && byte != b'-');
        let is_secret = word.len() >= 4
            && !word.starts_with('[')
            && !word.starts_with("${")
            && (looks || (owned && !is_said_of_passwords(word)));
        is_secret.then_some(start..start + word.len())
    }

    /// Whether "my", "our" or "your" is among the three words in front.
    fn is_owned(&self, at: usize) -> bool {
        let from = at.saturating_sub(32);
        let before = String::from_utf8_lossy(&self.bytes[from..at]).to_ascii_lowercase();
        let words = before.rsplit(|c: char| !c.is_alphanumeric());
        let owner = |word: &str| matches!(word, "my" | "our" | "your" | "mein" | "unser");
        words.filter(|word| !word.is_empty()).take(3).any(owner)
    }

    /// `://USER:PASSWORD@`, and `://TOKEN@`.
    fn userinfo(&self, at: usize) -> Option<Range<usize>> {
        if !self.bytes[at..].starts_with(b"://") {
            return None;
        }
        let start = at + 3;
        let is_end =
            |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'<' | b'>');
        let length = run(&self.bytes[start..], USER_MAX, |byte| !is_end(byte));
        let rest = &self.bytes[start..start + length];
        let slash = memchr::memchr(b'/', rest).unwrap_or(rest.len());
        let colon = memchr::memchr2(b':', b'@', &rest[..slash]).filter(|at| rest[*at] == b':');
        let end = match (colon, memchr::memrchr(b'@', &rest[..slash])) {
            (Some(_), Some(end)) => end,
            (None, Some(end)) => {
                let token = std::str::from_utf8(&rest[..end]).ok()?;
                return (end >= 16 && is_random("", token)).then_some(start..start + end);
            }
            // A password with a slash, unless it is a port and a path.
            (Some(colon), None) => {
                let is_port = rest[colon + 1..slash].iter().all(u8::is_ascii_digit);
                slash + memchr::memchr(b'@', &rest[slash..]).filter(|_| !is_port)?
            }
            (None, None) => return None,
        };
        let is_marked = &rest[..end] == crate::REDACTED.as_bytes();
        (!is_marked).then_some(start..start + end)
    }

    /// `…key: SECRET`, with a name that is not among [`NAMES`].
    fn key(&self, at: usize) -> Option<Range<usize>> {
        let end = self.word(at, "key")?;
        let mut start = end + usize::from(matches!(self.bytes.get(end), Some(b'"' | b'\'')));
        let blank = |byte: &u8| byte.is_ascii_whitespace();
        start += run(self.bytes.get(start..)?, GAP, blank);
        if self.bytes.get(start) != Some(&b':') {
            return None;
        }
        start += 1;
        start += run(self.bytes.get(start..)?, GAP, blank);
        self.random(end, start)
    }

    /// A value of a name that ends at `name`, if it is too random to be words.
    fn random(&self, name: usize, start: usize) -> Option<Range<usize>> {
        let quote = usize::from(matches!(self.bytes.get(start), Some(b'"' | b'\'')));
        let start = start + quote;
        let is_part =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-');
        let length = run(self.bytes.get(start..)?, RANDOM_MAX + 1, is_part);
        if !(24..=RANDOM_MAX).contains(&length) {
            return None;
        }
        let padding = run(&self.bytes[start + length..], 2, |byte| *byte == b'=');
        let text = self.view.text();
        let in_name = |byte: &u8| is_token(*byte) || matches!(byte, b'.' | b'=' | b'"' | b'\'');
        let begins = self.bytes[..name].iter().rev();
        let begins = name
            - begins
                .take(NAME_MAX)
                .take_while(|byte| in_name(byte))
                .count();
        let value = &text[start..start + length];
        let is_secret = is_random(&text[begins..name].to_ascii_lowercase(), value)
            && !is_uuid(value)
            && !is_picture(value);
        is_secret.then_some(start..start + length + padding)
    }
}

/// Private keys in PEM, to the end of the text if their end is missing.
fn private_keys(text: &str) -> Vec<Range<usize>> {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "-----END ";
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = text[at..].find(BEGIN) {
        let start = at + begin;
        at = start + BEGIN.len();
        let Some(label) = label(&text[at..]) else {
            continue;
        };
        at += label;
        let end = text[at..].find(END).map_or(text.len(), |end| {
            let end = at + end + END.len();
            let line = text[end..].find("-----").filter(|line| *line <= 64);
            line.map_or(end, |line| end + line + "-----".len())
        });
        found.push(start..end);
        at = end;
    }
    found
}

/// The length of `… PRIVATE KEY-----`.
fn label(text: &str) -> Option<usize> {
    let is_part = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    let length = run(text.as_bytes(), 64, is_part);
    let is_private = text[..length].contains("PRIVATE KEY");
    (is_private && text[length..].starts_with("-----")).then_some(length + 5)
}

/// Names of types and other words that follow `token:` in a description.
fn is_type(word: &str) -> bool {
    const TYPES: [&str; 16] = [
        "string",
        "str",
        "number",
        "int",
        "integer",
        "bool",
        "boolean",
        "null",
        "none",
        "true",
        "false",
        "undefined",
        "required",
        "optional",
        "any",
        "object",
    ];
    if word.len() > 16 {
        return false;
    }
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    TYPES.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Words that sentences say of passwords.
fn is_said_of_passwords(word: &str) -> bool {
    const SAID: [&str; 44] = [
        "about",
        "accepted",
        "already",
        "always",
        "being",
        "case",
        "changed",
        "compromised",
        "correct",
        "empty",
        "encrypted",
        "expired",
        "good",
        "hashed",
        "hidden",
        "incorrect",
        "invalid",
        "just",
        "kept",
        "known",
        "long",
        "longer",
        "missing",
        "needed",
        "never",
        "only",
        "optional",
        "protected",
        "rejected",
        "required",
        "reset",
        "right",
        "safe",
        "saved",
        "secure",
        "sent",
        "short",
        "stored",
        "strong",
        "unknown",
        "updated",
        "used",
        "valid",
        "wrong",
    ];
    SAID.iter().any(|known| word.eq_ignore_ascii_case(known))
        || word.ends_with("ed")
        || word.ends_with("ing")
}

/// The first characters of pictures in base64.
fn is_picture(value: &str) -> bool {
    ["iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "PHN2Zy"]
        .iter()
        .any(|begins| value.starts_with(begins))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::work;

    /// The bytes that are looked at to find the secrets in a text.
    fn work_of(text: &str) -> usize {
        let before = work();
        find(&View::plain(text));
        work() - before
    }

    #[test]
    fn work_grows_in_proportion_to_the_text() {
        for part in [
            "authorization:",
            "authorization: x ",
            "Authorization=bearer=",
            "bearer ",
            "password=",
            "password=\"${",
            "password='${a} password=\"${b} ",
            "my password is ",
            "password is'",
            "token:",
            "sig=",
            "key:",
            "key=",
            "sk-",
            "eyJ",
            "eyJ.",
            "://",
            "https://a:b",
            "-----BEGIN ",
            "-----BEGIN PRIVATE KEY-----",
            "4111 ",
            "12345678:",
            "DE44 ",
        ] {
            let once = work_of(&part.repeat(1_000));
            let twice = work_of(&part.repeat(2_000));
            // At its end a text has less to look at.
            assert!(
                twice <= 2 * once + JUDGED * JUDGED,
                "{part:?}: {once}, {twice}"
            );
        }
    }
}
