//! The forms of secrets.
//!
//! Each form begins with something that is cheap to search for: a few bytes of a prefix, a name or a
//! digit. A table keyed by the first byte gives the forms that may begin at a position. Every form
//! examines a bounded part of the text, or consumes the part that it examines, so the time is linear.

use std::{ops::Range, sync::OnceLock};

use crate::{
    issued,
    named::{COMMANDS, names},
    numbers::{before, card, iban, is_token, run, telegram},
    plain::{is_random, is_uuid},
    view::View,
};

/// Replaces a secret that was recognised by its form.
pub const REDACTED: &str = "[redacted]";

/// The characters that end the authority of a URL.
pub(crate) const AUTHORITY_ENDS: [char; 4] = ['/', '?', '#', '\\'];

/// The positions of all secrets in the view.
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
                // Advance by at least one byte, and never back into a secret.
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
const ANCHOR: u16 = 512;
const MEMBER: u16 = 1024;
const COMMAND: u16 = 2048;

/// The kinds of secrets that may begin with each byte.
fn table() -> &'static [u16; 256] {
    static TABLE: OnceLock<[u16; 256]> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = [0; 256];
        let mut add = |byte: u8, kind: u16| table[usize::from(byte)] |= kind;
        for byte in 0..=255 {
            if issued::may_begin_with(byte) {
                add(byte, PREFIX);
            }
            if names(byte).next().is_some() {
                add(byte, NAME);
            }
        }
        for byte in issued::ANCHORS {
            add(byte, ANCHOR);
        }
        for command in COMMANDS {
            add(command.as_bytes()[0], COMMAND);
        }
        add(b'"', MEMBER);
        (b'0'..=b'9').for_each(|digit| add(digit, DIGITS));
        (b'A'..=b'Z').for_each(|letter| add(letter, CAPITALS));
        b"MNO".iter().for_each(|letter| add(*letter, DISCORD));
        add(b':', ADDRESS);
        add(b'=', EQUALS);
        b"aAbB".iter().for_each(|letter| add(*letter, HEADER));
        b"kK".iter().for_each(|letter| add(*letter, KEY));
        table
    })
}

/// The most white space between a name and its value, in bytes.
pub(crate) const GAP: usize = 8;
/// The longest value after `=` that is checked for randomness, in bytes.
const RANDOM_MAX: usize = 4096;
/// The longest user name and password of a URL, in bytes.
const USER_MAX: usize = 256;
/// The length of the prefix by which a token is judged, in bytes.
pub(crate) const JUDGED: usize = 512;
/// The longest name before `=`, in bytes.
const NAME_MAX: usize = 128;

/// A text that is searched.
pub(crate) struct Text<'v> {
    pub(crate) view: &'v View<'v>,
    pub(crate) bytes: &'v [u8],
}

impl Text<'_> {
    /// The secret that begins here, or after a name that begins here. `told` is the end of the last one
    /// found.
    fn secret(&self, kinds: u16, at: usize, told: usize) -> Option<Range<usize>> {
        let has = |kind: u16| kinds & kind != 0;
        let before = before(self.bytes, at).filter(|_| at != told);
        let starts_word = before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && byte != b'_');
        if starts_word {
            let found = (has(PREFIX).then(|| issued::token(self.bytes, at)).flatten())
                .or_else(|| has(DIGITS).then(|| self.number(at)).flatten())
                .or_else(|| has(CAPITALS).then(|| iban(self.bytes, at)).flatten())
                .or_else(|| has(DISCORD).then(|| self.discord(at)).flatten())
                .or_else(|| has(HEADER).then(|| self.header(at)).flatten())
                .or_else(|| has(COMMAND).then(|| self.command(at)).flatten());
            if found.is_some() {
                return found;
            }
        }
        (has(NAME).then(|| self.named(at, starts_word)).flatten())
            .or_else(|| has(MEMBER).then(|| self.member(at)).flatten())
            .or_else(|| {
                has(ANCHOR)
                    .then(|| issued::around(self.bytes, at))
                    .flatten()
            })
            .or_else(|| has(ADDRESS).then(|| self.pgpass(at)).flatten())
            .or_else(|| has(ADDRESS).then(|| self.userinfo(at)).flatten())
            .or_else(|| has(EQUALS).then(|| self.random(at, at + 1)).flatten())
            .or_else(|| has(KEY).then(|| self.key(at)).flatten())
    }

    /// The password in a line of `.pgpass`, `HOST:5432:DATABASE:USER:PASSWORD`, starting at its first
    /// colon.
    fn pgpass(&self, at: usize) -> Option<Range<usize>> {
        const PORTS: [&[u8]; 4] = [b":5432:", b":5433:", b":6432:", b":6543:"];
        let is_part = |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'\'');
        before(self.bytes, at).filter(is_part)?;
        let mut ports = PORTS.iter();
        let port = ports.find(|port| self.bytes[at..].starts_with(port))?;
        let mut start = at + port.len();
        for _ in 0..2 {
            let rest = self.bytes.get(start..)?;
            let length = run(rest, NAME_MAX, |byte| is_part(byte) && *byte != b':');
            if length == 0 || rest.get(length) != Some(&b':') {
                return None;
            }
            start += length + 1;
        }
        let length = run(&self.bytes[start..], USER_MAX, is_part);
        (length > 0).then_some(start..start + length)
    }

    fn number(&self, at: usize) -> Option<Range<usize>> {
        telegram(self.bytes, at).or_else(|| card(self.bytes, at))
    }

    /// The token of a Discord bot: its number in base64, a time, and a signature.
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
            // Only a value that is then consumed may be scanned to its end.
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

    /// The end of this word, in any case, if it begins here.
    pub(crate) fn word(&self, at: usize, word: &str) -> Option<usize> {
        let here = self.bytes.get(at..at + word.len())?;
        here.eq_ignore_ascii_case(word.as_bytes())
            .then_some(at + word.len())
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
        // After one of these the host of a web URL is complete, and an `@` has no meaning.
        let is_web = ["http", "https"].iter().any(|scheme| {
            let before = at.checked_sub(scheme.len());
            before.is_some_and(|before| self.word(before, scheme).is_some())
        });
        let is_delimiter =
            |byte: &u8| *byte == b'/' || (is_web && AUTHORITY_ENDS.contains(&char::from(*byte)));
        let stop = rest.iter().position(is_delimiter).unwrap_or(rest.len());
        let colon = memchr::memchr2(b':', b'@', &rest[..stop]).filter(|at| rest[*at] == b':');
        let end = match (colon, memchr::memrchr(b'@', &rest[..stop])) {
            (Some(_), Some(end)) => end,
            (None, Some(end)) => {
                let token = std::str::from_utf8(&rest[..end]).ok()?;
                return (end >= 16 && is_random("", token)).then_some(start..start + end);
            }
            // The password contains such a character, unless this is a host with a port.
            (Some(colon), None) => {
                let is_host =
                    rest.starts_with(b"[") || rest[colon + 1..stop].iter().all(u8::is_ascii_digit);
                stop + memchr::memchr(b'@', &rest[stop..]).filter(|_| !is_host)?
            }
            (None, None) => return None,
        };
        let is_marked = &rest[..end] == REDACTED.as_bytes();
        (!is_marked).then_some(start..start + end)
    }

    /// `…key: SECRET`, for names that only end in `key`.
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

    /// The value of a name that ends at `name`, if it is too random to be words.
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

/// Private keys in PEM, up to the end of the text if the end marker is missing.
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
    found.extend(putty(text));
    found
}

/// The private part of a `PuTTY` key, up to the end of the text if the end marker is missing.
fn putty(text: &str) -> Option<Range<usize>> {
    const BEGIN: &str = "Private-Lines:";
    let start = text.find(BEGIN)? + BEGIN.len();
    let end = text.rfind("Private-MAC:").filter(|end| *end > start);
    let lines = &text[start..end.unwrap_or(text.len())];
    let count = lines.len()
        - lines
            .trim_start_matches([' ', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
            .len();
    let lines = lines[count..].trim();
    let at = start + count;
    let at = at + text[at..].len() - text[at..].trim_start().len();
    (!lines.is_empty() && lines != REDACTED).then_some(at..at + lines.len())
}

/// The length of `… PRIVATE KEY-----`.
fn label(text: &str) -> Option<usize> {
    let is_part = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    let length = run(text.as_bytes(), 64, is_part);
    let is_private = text[..length].contains("PRIVATE KEY");
    (is_private && text[length..].starts_with("-----")).then_some(length + 5)
}

/// Tests if a value begins like an image in base64.
fn is_picture(value: &str) -> bool {
    ["iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "PHN2Zy"]
        .iter()
        .any(|begins| value.starts_with(begins))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::work;

    /// The number of bytes examined to find the secrets in a text.
    fn work_of(text: &str) -> usize {
        let before = work();
        find(&View::plain(text));
        work() - before
    }

    #[test]
    fn work_is_proportional_to_the_text() {
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
            "--password ",
            "login a password ",
            "<password>",
            "| password | ",
            "password: |\n ",
            "password=\"\"\"",
            "\"auth\":\"",
            "\"name\":\"auth\",\"value\":",
            "curl -u ",
            "mysql -p ",
            "sshpass -p ",
            "hooks.slack.com/services/",
            ".atlasv1.",
            "8Q~",
            ":APA91",
            "0-us1",
            "Private-Lines: 1",
        ] {
            let once = work_of(&part.repeat(1_000));
            let twice = work_of(&part.repeat(2_000));
            // Near its end, a text has less to examine.
            assert!(
                twice <= 2 * once + JUDGED * JUDGED,
                "{part:?}: {once}, {twice}"
            );
        }
    }
}
