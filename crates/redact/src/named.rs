//! Secrets after their names: in assignments, options, commands, sentences, tables and markup.

use std::{ops::Range, sync::OnceLock};

use crate::{
    numbers::{before, run},
    patterns::{GAP, JUDGED, REDACTED, Text},
    words::is_secret_name,
};

/// Names that a secret follows after `=` or `:`. They may also be the end of a longer name.
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

/// Names that count only as whole words.
const WHOLE_NAMES: [&str; 2] = ["psk", "pw"];

/// Names that a secret follows in a sentence.
const SPOKEN: [&str; 6] = [
    "password",
    "passwort",
    "passphrase",
    "passcode",
    "kennwort",
    "passwd",
];

/// Programs that have a password option under another name.
pub(crate) const COMMANDS: [&str; 6] = [
    "mysql",
    "mysqldump",
    "mysqladmin",
    "mariadb",
    "sshpass",
    "curl",
];

/// The longest name of a member, an option or an element, in bytes.
const NAME_MAX: usize = 64;

/// A name that a secret follows.
#[derive(Clone, Copy)]
struct Name {
    text: &'static str,
    is_whole: bool,
    is_spoken: bool,
}

/// The names that begin with this byte, regardless of case.
pub(crate) fn names(byte: u8) -> impl Iterator<Item = &'static str> {
    by_first_byte()[usize::from(byte)]
        .iter()
        .map(|name| name.text)
}

fn by_first_byte() -> &'static [Vec<Name>; 256] {
    static TABLE: OnceLock<[Vec<Name>; 256]> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = [const { Vec::new() }; 256];
        let spoken = |name: &&&str| !NAMES.contains(*name);
        let all = NAMES.iter().chain(&WHOLE_NAMES);
        for text in all.chain(SPOKEN.iter().filter(spoken)) {
            let name = Name {
                text,
                is_whole: WHOLE_NAMES.contains(text),
                is_spoken: SPOKEN.contains(text),
            };
            let first = text.as_bytes()[0];
            table[usize::from(first)].push(name);
            table[usize::from(first.to_ascii_uppercase())].push(name);
        }
        table
    })
}

impl Text<'_> {
    /// `password=SECRET`, `"token": "SECRET"`, `--password SECRET`, `my password is SECRET`.
    pub(crate) fn named(&self, at: usize, starts_word: bool) -> Option<Range<usize>> {
        let names = by_first_byte()[usize::from(self.bytes[at])].iter();
        let mut ends = names
            .filter(|name| starts_word || !name.is_whole)
            .filter_map(|name| Some((name, self.word(at, name.text)?)))
            .peekable();
        ends.peek()?;
        if self.bytes[..at].ends_with(b"${") {
            return None;
        }
        let ends: Vec<(&Name, usize)> = ends.collect();
        let assigned = ends.iter().find_map(|(name, end)| {
            let assigned = NAMES.contains(&name.text) || name.is_whole;
            (assigned.then(|| self.assigned(name.text, *end)).flatten())
                .or_else(|| self.follows(at, *end))
        });
        let spoken = || {
            let mut spoken = ends.iter().filter(|(name, _)| name.is_spoken);
            spoken.find_map(|(_, end)| self.spoken(at, *end))
        };
        assigned.or_else(spoken)
    }

    fn assigned(&self, name: &str, end: usize) -> Option<Range<usize>> {
        let mut at = end + usize::from(self.is_quote(end));
        at += run(self.bytes.get(at..)?, GAP, u8::is_ascii_whitespace);
        if !matches!(self.bytes.get(at), Some(b'=' | b':')) {
            return None;
        }
        at += 1;
        if self.bytes.get(at) == Some(&b'>') {
            at += 1;
        }
        // The signature of a message is a secret only in a signed URL, where it is long.
        let least = match name {
            "sig" | "signature" => 20,
            _ => 3,
        };
        self.assigned_value(at, least)
    }

    /// The value after an `=` or `:`.
    fn assigned_value(&self, at: usize, least: usize) -> Option<Range<usize>> {
        let at = at + run(self.bytes.get(at..)?, GAP, u8::is_ascii_whitespace);
        if self.is_quote(at) {
            return self.quoted(at);
        }
        let rest = &self.bytes[at..];
        if rest.starts_with(b"${") || rest.starts_with(b"{") {
            return None;
        }
        if let Some(block) = self.block(at) {
            return Some(block);
        }
        let is_end = |byte: &u8| {
            byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'&' | b',' | b';' | b'[')
        };
        let length = run(rest, usize::MAX, |byte| !is_end(byte));
        let value = &self.view.text()[at..at + length];
        (length >= least && !is_type(value)).then_some(at..at + length)
    }

    fn is_quote(&self, at: usize) -> bool {
        matches!(self.bytes.get(at), Some(b'"' | b'\''))
    }

    /// A quoted value, which may contain quotes that are escaped once more.
    fn quoted(&self, open: usize) -> Option<Range<usize>> {
        let (quote, depth) = (self.bytes[open], self.view.slashes(open));
        let start = open + 1;
        if self.bytes[start..].starts_with(&[quote, quote]) {
            return self.long_quoted(start + 2, quote);
        }
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

    /// A value between triple quotes, which may have several lines.
    fn long_quoted(&self, start: usize, quote: u8) -> Option<Range<usize>> {
        let rest = self.view.text().get(start..)?;
        let end = memchr::memmem::find(rest.as_bytes(), &[quote; 3]).unwrap_or(rest.len());
        let value = rest[..end].trim();
        let is_secret = !value.is_empty() && !value.starts_with("${") && !value.starts_with('[');
        let from = start + rest.len() - rest.trim_start().len();
        is_secret.then(|| from..from + value.len())
    }

    /// The indented lines after `|` or `>` in YAML.
    fn block(&self, at: usize) -> Option<Range<usize>> {
        let rest = &self.bytes[at..];
        if !matches!(rest.first(), Some(b'|' | b'>')) {
            return None;
        }
        let sign = run(rest, 3, |byte| !byte.is_ascii_whitespace());
        let blank = run(&rest[sign..], GAP, |byte| matches!(byte, b' ' | b'\r'));
        let mut end = sign + blank;
        let start = end;
        while rest.get(end) == Some(&b'\n') && matches!(rest.get(end + 1), Some(b' ' | b'\t')) {
            end += 1 + run(&rest[end + 1..], usize::MAX, |byte| *byte != b'\n');
        }
        let lines = &self.view.text()[at + start..at + end];
        let value = lines.trim();
        let from = at + start + lines.len() - lines.trim_start().len();
        (!value.is_empty() && value != REDACTED).then(|| from..from + value.len())
    }

    /// A value next to a name without `=` or `:`: of an option, an element, a table or a `.netrc` file.
    fn follows(&self, at: usize, end: usize) -> Option<Range<usize>> {
        match self.bytes.get(end)? {
            b'>' => self.element(at, end + 1),
            quote @ (b'"' | b'\'') => {
                // The arguments of a program as a list.
                let comma = end + 1 + run(&self.bytes[end + 1..], GAP, |byte| *byte == b' ');
                let is_next = self.bytes.get(comma) == Some(&b',');
                let open =
                    comma + 1 + run(self.bytes.get(comma + 1..)?, GAP, u8::is_ascii_whitespace);
                let is_quoted = is_next && self.bytes.get(open) == Some(quote);
                (is_quoted && self.is_option(at)).then(|| self.quoted(open))?
            }
            b' ' | b'\t' | b'|' => {
                let start = end + run(&self.bytes[end..], GAP, |byte| matches!(byte, b' ' | b'\t'));
                if self.bytes.get(start) == Some(&b'|') {
                    return self.cell(at, start + 1);
                }
                if !self.is_option(at) && !self.is_entry(at) && !self.is_access_key(end, start) {
                    return None;
                }
                if self.is_quote(start) {
                    return self.quoted(start);
                }
                let value = self.argument(start)?;
                let word = &self.view.text()[value.clone()];
                let is_secret = word.len() >= 3
                    && !word.starts_with(['-', '<', '[', '$', '|', '&', '(', '='])
                    && !is_type(word)
                    && !is_said_of_options(word);
                is_secret.then_some(value)
            }
            _ => None,
        }
    }

    /// A word up to white space, a quote, a comma or a semicolon.
    fn argument(&self, start: usize) -> Option<Range<usize>> {
        let is_end = |byte: &u8| {
            byte.is_ascii_whitespace() || matches!(byte, b',' | b';' | b'"' | b'\'' | b'`')
        };
        let length = run(self.bytes.get(start..)?, usize::MAX, |byte| !is_end(byte));
        (length > 0).then_some(start..start + length)
    }

    /// Tests if the name that ends here is an option, such as `--db-password`.
    fn is_option(&self, at: usize) -> bool {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let front = self.back(at, is_part);
        let begins = &self.bytes[at - front..at];
        begins.starts_with(b"-")
            && begins
                .last()
                .is_some_and(|byte| matches!(byte, b'-' | b'_'))
    }

    /// Tests if the name that ends here is that of an AWS secret, and a value of its length begins at
    /// `start`, as in `aws configure set aws_secret_access_key SECRET`.
    fn is_access_key(&self, end: usize, start: usize) -> bool {
        const NAME: &[u8] = b"secret_access_key";
        let name = end
            .checked_sub(NAME.len())
            .map(|from| &self.bytes[from..end]);
        name.is_some_and(|name| name.eq_ignore_ascii_case(NAME))
            && self.argument(start).is_some_and(|value| value.len() == 40)
    }

    /// Tests if a login name precedes this position, as in `.netrc`.
    fn is_entry(&self, at: usize) -> bool {
        let from = at.saturating_sub(2 * NAME_MAX);
        let mut words = self.bytes[from..at]
            .rsplit(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let is_alone = before(self.bytes, at).is_some_and(|byte| byte.is_ascii_whitespace());
        is_alone && matches!(words.nth(1), Some(b"login" | b"account"))
    }

    /// The length of the run that ends at `at`.
    fn back(&self, at: usize, is: impl Fn(&u8) -> bool) -> usize {
        let before = self.bytes[..at].iter().rev().take(NAME_MAX);
        before.take_while(|byte| is(byte)).count()
    }

    /// `<password>SECRET</password>`.
    fn element(&self, at: usize, start: usize) -> Option<Range<usize>> {
        let is_part =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':' | b'.');
        let front = at - self.back(at, is_part);
        if before(self.bytes, front) != Some(b'<') {
            return None;
        }
        let length = run(&self.bytes[start..], usize::MAX, |byte| *byte != b'<');
        let value = self.view.text()[start..start + length].trim();
        let is_closed = self.bytes[start + length..].starts_with(b"</");
        let is_secret = !value.is_empty() && !value.starts_with("${") && value != REDACTED;
        (is_closed && is_secret).then_some(start..start + length)
    }

    /// `| password | SECRET |`, if the name is the first in its row and the value looks like a password.
    fn cell(&self, at: usize, start: usize) -> Option<Range<usize>> {
        let is_part = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'*' | b'`' | b'_' | b'-')
        };
        let bar = at - self.back(at, is_part);
        let line = bar.checked_sub(1).filter(|bar| self.bytes[*bar] == b'|')?;
        let line = line - self.back(line, |byte| *byte == b' ');
        if before(self.bytes, line).is_some_and(|byte| byte != b'\n') {
            return None;
        }
        let start = start + run(&self.bytes[start..], GAP, |byte| *byte == b' ');
        let length = run(&self.bytes[start..], JUDGED, |byte| {
            !byte.is_ascii_whitespace() && *byte != b'|'
        });
        let value = &self.view.text().get(start..start + length)?;
        let looks = |byte: u8| byte.is_ascii_digit() || b"!#$%&*+=?@^~".contains(&byte);
        let is_secret = length >= 4 && value.bytes().any(looks) && !value.starts_with("${");
        let after = start + length;
        let gap = run(&self.bytes[after..], NAME_MAX, |byte| *byte == b' ');
        let ends = matches!(self.bytes.get(after + gap), Some(b'|'));
        (is_secret && ends).then_some(start..after)
    }

    /// `"auth": "SECRET"`, and `"name": "Authorization", "value": "SECRET"`.
    pub(crate) fn member(&self, at: usize) -> Option<Range<usize>> {
        let is_part =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' ' | b'.');
        let length = run(&self.bytes[at + 1..], NAME_MAX, is_part);
        let close = at + 1 + length;
        if length == 0 || self.bytes.get(close) != Some(&b'"') {
            return None;
        }
        let colon = close + 1 + run(&self.bytes[close + 1..], GAP, u8::is_ascii_whitespace);
        if self.bytes.get(colon) != Some(&b':') {
            return None;
        }
        let name = &self.view.text()[at + 1..close];
        let is_value = || {
            let called = self.string_before(at, b',')?;
            let label = self.string_before(called.start - 1, b':')?;
            let label = &self.view.text()[label];
            let called = &self.view.text()[called];
            Some(is_label(label) && is_secret_name(called))
        };
        let is_secret = match name {
            "value" => is_value() == Some(true),
            name => is_secret_name(name),
        };
        let value = is_secret
            .then(|| self.assigned_value(colon + 1, 3))
            .flatten();
        value.filter(|value| !is_type(&self.view.text()[value.clone()]))
    }

    /// The string before the byte `sign`, which precedes `at`.
    fn string_before(&self, at: usize, sign: u8) -> Option<Range<usize>> {
        let blank = |byte: &u8| byte.is_ascii_whitespace();
        let at = at - self.back(at, blank);
        let at = at.checked_sub(1).filter(|at| self.bytes[*at] == sign)?;
        let at = at - self.back(at, blank);
        let close = at.checked_sub(1).filter(|at| self.bytes[*at] == b'"')?;
        let length = self.back(close, |byte| *byte != b'"' && byte.is_ascii());
        let open = (close - length).checked_sub(1)?;
        (self.bytes[open] == b'"').then_some(open + 1..close)
    }

    /// `mysql -pSECRET`, `sshpass -p SECRET`, `curl -u NAME:SECRET`.
    pub(crate) fn command(&self, at: usize) -> Option<Range<usize>> {
        let names = COMMANDS
            .iter()
            .filter(|name| self.bytes[at..].starts_with(name.as_bytes()));
        let name = names.max_by_key(|name| name.len())?;
        let mut at = at + name.len();
        let line = at + run(&self.bytes[at..], JUDGED, |byte| *byte != b'\n');
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        loop {
            let gap = run(&self.bytes[at..line], JUDGED, blank);
            let start = at + gap;
            if gap == 0 || start == line {
                return None;
            }
            let end = start + run(&self.bytes[start..line], JUDGED, |byte| !blank(byte));
            let next = end + run(&self.bytes[end..line], JUDGED, blank);
            let value = match (*name, &self.bytes[start..end]) {
                ("curl", b"-u" | b"-U" | b"--user" | b"--proxy-user") => self.password(next),
                ("curl", [b'-', b'u' | b'U', _, ..]) => self.password(start + 2),
                ("sshpass", b"-p") => self.whole(next),
                ("curl", _) => None,
                (_, [b'-', b'p', _, ..]) => self.whole(start + 2),
                _ => None,
            };
            if value.is_some() {
                return value;
            }
            at = end;
        }
    }

    /// An argument, with or without quotes.
    fn whole(&self, start: usize) -> Option<Range<usize>> {
        if self.is_quote(start) {
            return self.quoted(start);
        }
        let value = self.argument(start)?;
        let is_shown = [&b"$"[..], b"<", b"["]
            .iter()
            .any(|sign| self.bytes[value.start..].starts_with(sign));
        (!is_shown).then_some(value)
    }

    /// The part of an argument after its first colon.
    fn password(&self, start: usize) -> Option<Range<usize>> {
        let value = self.whole(start)?;
        let colon = memchr::memchr(b':', &self.bytes[value.clone()])?;
        let password = value.start + colon + 1..value.end;
        let is_shown = [&b"$"[..], b"<", b"["]
            .iter()
            .any(|sign| self.bytes[password.start..].starts_with(sign));
        (!password.is_empty() && !is_shown).then_some(password)
    }

    /// A password in a sentence. Most sentences about passwords contain none, so the word has to look like
    /// one, unless the sentence speaks of "my" or "your" password.
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

    /// Tests if "my", "our" or "your" is among the three words before this position.
    fn is_owned(&self, at: usize) -> bool {
        let from = at.saturating_sub(32);
        let before = String::from_utf8_lossy(&self.bytes[from..at]).to_ascii_lowercase();
        let words = before.rsplit(|c: char| !c.is_alphanumeric());
        let owner = |word: &str| matches!(word, "my" | "our" | "your" | "mein" | "unser");
        words.filter(|word| !word.is_empty()).take(3).any(owner)
    }
}

/// Tests if this is the name of a member that names the thing whose value stands next to it.
pub(crate) fn is_label(name: &str) -> bool {
    ["name", "key", "header"]
        .iter()
        .any(|label| name.eq_ignore_ascii_case(label))
}

/// Tests if a word follows an option in prose, or stands for its value.
fn is_said_of_options(word: &str) -> bool {
    const SAID: [&str; 48] = [
        "a",
        "an",
        "and",
        "argument",
        "as",
        "at",
        "be",
        "can",
        "cannot",
        "does",
        "file",
        "flag",
        "flags",
        "for",
        "from",
        "has",
        "if",
        "in",
        "instead",
        "into",
        "is",
        "it",
        "may",
        "must",
        "not",
        "on",
        "only",
        "option",
        "options",
        "or",
        "parameter",
        "parameters",
        "password",
        "secret",
        "setting",
        "should",
        "switch",
        "takes",
        "than",
        "that",
        "the",
        "to",
        "token",
        "value",
        "was",
        "when",
        "will",
        "with",
    ];
    let word = word.trim_end_matches(['.', ',', ':', ')']);
    SAID.iter().any(|known| word.eq_ignore_ascii_case(known)) || is_said_of_passwords(word)
}

/// Tests if a word is a type or another word that follows `token:` in a description.
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

/// Tests if a word is one that prose says of passwords.
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
