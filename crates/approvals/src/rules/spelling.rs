//! Spellings of a path or an address: every text that a server may make of one text.
//!
//! Servers decode percent signs, fold Unicode, take backslashes for slashes and walk `..` before
//! they open a file. A rule that holds back has to match whichever of these texts the server ends up
//! with, and a rule that lets pass has to match all of them. Only the text is looked at: symbolic
//! links, short names (`PROGRA~1`) and the working directory of a server cannot be known here.

use icu_normalizer::ComposingNormalizerBorrowed;

use super::condition::Reading;

/// How often percent signs are decoded. A text that changes even then is in doubt.
const DECODINGS: usize = 5;

/// Schemes whose slashes are optional to lenient readers.
const WEB: [&str; 4] = ["http", "https", "ws", "wss"];

/// Names of the home directory at the start of a path.
const HOMES: [&str; 8] = [
    "${home}",
    "$home",
    "$env:userprofile",
    "$env:home",
    "%userprofile%",
    "%homedrive%%homepath%",
    "%homepath%",
    "%home%",
];

/// The spellings of one text, in lower case.
#[derive(Debug, Default)]
pub(crate) struct Spellings {
    /// Every text that it may be read as.
    pub(crate) texts: Vec<String>,
    /// The path below the home directory, beginning with `~`, if it is one.
    pub(crate) home: Vec<String>,
    /// The paths among them that begin at no root.
    pub(crate) relative: Vec<String>,
    /// Whether some part of it is `..`.
    pub(crate) climbs: bool,
    /// Whether it leads to a place that the text does not tell.
    pub(crate) is_unclear: bool,
}

impl Spellings {
    /// Reads a text as a rule does that holds back, or as one that lets pass.
    pub(crate) fn of(text: &str, reading: Reading) -> Self {
        let mut found = Self::default();
        let mut current = seen(&folded(text));
        found.add(text.to_lowercase());
        for round in 0..=DECODINGS {
            found.look_at(&current, reading);
            // C ends a text there.
            if let Some((before, _)) = current.split_once('\0') {
                found.look_at(before, reading);
            }
            let Some(decoded) = decoded(&current) else {
                break;
            };
            if round == DECODINGS {
                found.is_unclear = true;
            }
            current = seen(&folded(&decoded));
        }
        found
    }

    fn add(&mut self, text: String) {
        if !self.texts.contains(&text) {
            self.texts.push(text);
        }
    }

    /// Adds what one decoded text may be read as.
    fn look_at(&mut self, text: &str, reading: Reading) {
        let text = text.replace('\0', "");
        self.add(text.clone());
        let quotes = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`');
        let slashed = text.trim_matches(quotes).replace('\\', "/");
        let after_home = slashed.strip_prefix(HOMES[0]).unwrap_or(&slashed);
        self.is_unclear |= ["${", "$(", "`"]
            .iter()
            .any(|sign| after_home.contains(sign));
        let (prefix, path) = split(&slashed);
        let Some(prefix) = prefix else {
            return self.look_at_path(path, reading);
        };
        for exactness in [Exactness::Letter, Exactness::Loose] {
            let walk = walk(path, exactness);
            self.climbs |= walk.climbs;
            self.add(format!("{prefix}/{}", walk.parts.join("/")));
        }
    }

    fn look_at_path(&mut self, path: &str, reading: Reading) {
        let path = match below_home(path) {
            Some(rest) => {
                for exactness in Exactness::ALL {
                    let walk = walk(rest.trim_start_matches('/'), exactness);
                    self.climbs |= walk.climbs;
                    self.is_unclear |= walk.leaves;
                    let below = format!("~/{}", walk.parts.join("/"));
                    self.add(below.clone());
                    self.home.push(below);
                }
                return;
            }
            None => without_device(path),
        };
        self.is_unclear |= begins_with_variable(path);
        // Words that end in a full stop or a question mark need not be paths.
        let is_path = reading == Reading::Generous || path.contains('/');
        let readings = if is_path {
            &Exactness::ALL[..]
        } else {
            &[Exactness::Letter]
        };
        // A query or a fragment is no part of the name of a file.
        let cut = path.find(['?', '#']).filter(|_| is_path);
        for path in [Some(path), cut.map(|at| &path[..at])]
            .into_iter()
            .flatten()
        {
            for exactness in readings {
                self.add_walk(&walk(path, *exactness));
            }
        }
    }

    fn add_walk(&mut self, walk: &Walk<'_>) {
        self.climbs |= walk.climbs;
        self.is_unclear |= walk.leaves || walk.is_unclear;
        let path = walk.parts.join("/");
        match walk.root {
            Some(root) => {
                // A drive is named or meant.
                if !root.is_empty() {
                    self.add(format!("/{path}"));
                }
                self.add(format!("{root}/{path}"));
            }
            None if !self.relative.contains(&path) => {
                self.relative.push(path.clone());
                self.add(path);
            }
            None => {}
        }
    }
}

/// How a path is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exactness {
    /// As POSIX does.
    Letter,
    /// As Windows does, which drops dots and spaces at the end of names, and names of streams.
    Loose,
    /// As `Loose`, and through the directories of Linux and macOS that lead elsewhere.
    Through,
}

impl Exactness {
    const ALL: [Self; 3] = [Self::Letter, Self::Loose, Self::Through];
}

/// A path without `.`, `..` and empty parts.
struct Walk<'t> {
    /// The drive, or nothing; none if the path is relative.
    root: Option<&'t str>,
    parts: Vec<&'t str>,
    /// Some part is `..`.
    climbs: bool,
    /// It climbs out of the directory that it starts in, which is not known.
    leaves: bool,
    /// It goes through a file or directory of another process.
    is_unclear: bool,
}

fn walk(path: &str, exactness: Exactness) -> Walk<'_> {
    let (drive, path) = match path.as_bytes() {
        [letter, b':', ..] if letter.is_ascii_alphabetic() => path.split_at(2),
        _ => ("", path),
    };
    let is_absolute = path.starts_with('/');
    let mut walk = Walk {
        root: is_absolute.then_some(drive),
        parts: Vec::new(),
        climbs: false,
        leaves: false,
        // Each drive has a working directory.
        is_unclear: !drive.is_empty() && !is_absolute,
    };
    for part in path.split('/') {
        let bare = part.split(';').next().unwrap_or_default().trim();
        if bare == ".." {
            walk.climbs = true;
            if walk.parts.pop().is_none() && !is_absolute {
                walk.leaves = true;
            }
            continue;
        }
        let part = match exactness {
            Exactness::Letter => part,
            Exactness::Loose | Exactness::Through => {
                let named = part.find("::$").map_or(part, |at| &part[..at]);
                named.trim_end_matches(['.', ' ']).trim_start()
            }
        };
        if !matches!(part, "" | ".") {
            walk.parts.push(part);
        }
        if exactness == Exactness::Through && is_absolute {
            walk.go_through();
        }
    }
    walk
}

impl Walk<'_> {
    /// Follows directories that lead elsewhere on every Linux or macOS.
    fn go_through(&mut self) {
        match self.parts.as_slice() {
            ["proc", _, "root"]
            | ["proc", _, "task", _, "root"]
            | ["system", "volumes", "data"] => {
                self.parts.clear();
            }
            ["proc", _, "cwd" | "fd" | "exe" | "map_files"]
            | ["proc", _, "task", _, "cwd" | "fd" | "exe" | "map_files"]
            | ["dev", "fd" | "stdin" | "stdout" | "stderr"]
            | [".vol"] => self.is_unclear = true,
            ["private", "etc" | "var" | "tmp"] => {
                self.parts.remove(0);
            }
            _ => {}
        }
    }
}

/// The scheme and the host of an address, and the path after them; of a file only the path.
fn split(text: &str) -> (Option<String>, &str) {
    let Some((scheme, rest)) = text.split_once(':') else {
        return (None, text);
    };
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    if !is_scheme {
        return (None, text);
    }
    if scheme == "file" {
        let path = match rest.strip_prefix("//") {
            // What stands before the path is a host.
            Some(after) => after.find('/').map_or("/", |at| &after[at..]),
            None => rest,
        };
        // `/c:/x` is `c:/x`.
        let drive = path.trim_start_matches('/');
        let is_drive = drive.as_bytes().get(1) == Some(&b':');
        return (None, if is_drive { drive } else { path });
    }
    let is_web = WEB.contains(&scheme);
    let Some(after) = rest.strip_prefix("//").or_else(|| is_web.then_some(rest)) else {
        return (None, text);
    };
    let after = if is_web {
        after.trim_start_matches('/')
    } else {
        after
    };
    let at = after.find(['/', '?', '#']).unwrap_or(after.len());
    let (authority, path) = after.split_at(at);
    let host = authority.rsplit('@').next().unwrap_or_default();
    let port = if matches!(scheme, "http" | "ws") {
        ":80"
    } else {
        ":443"
    };
    let host = host.strip_suffix(port).unwrap_or(host);
    let host = host.trim_end_matches('.');
    (Some(format!("{scheme}://{host}")), path)
}

/// The path below a home directory, if the text begins with a name for one.
fn below_home(path: &str) -> Option<&str> {
    if let Some(rest) = path.strip_prefix('~') {
        return Some(rest.find('/').map_or("", |at| &rest[at..]));
    }
    let rest = HOMES.iter().find_map(|home| path.strip_prefix(home))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

fn begins_with_variable(path: &str) -> bool {
    let named = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    path.strip_prefix('$').is_some_and(named)
        || path
            .strip_prefix('%')
            .is_some_and(|rest| named(rest) && rest.contains('%'))
}

/// Without `\\?\` and `\\.\`, which Windows puts before paths.
fn without_device(path: &str) -> &str {
    let device = ["//?/", "//./", "/??/"]
        .iter()
        .find_map(|device| path.strip_prefix(device));
    device
        .filter(|rest| rest.as_bytes().get(1) == Some(&b':'))
        .unwrap_or(path)
}

/// The text in the characters that compatible ones stand for, without case.
pub(crate) fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let nfkc = ComposingNormalizerBorrowed::new_nfkc();
    let plain: String = nfkc.normalize(text).chars().map(plain).collect();
    // Both ways, so that `ß` and `SS` are one.
    let folded = plain.to_uppercase().to_lowercase();
    nfkc.normalize(&folded).into_owned()
}

/// The ASCII character that this one is taken for.
fn plain(c: char) -> char {
    match c {
        '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{27cb}' => '/',
        '\u{2216}' | '\u{29f5}' | '\u{29f9}' | '\u{27cd}' => '\\',
        '\u{3002}' => '.',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        other => other,
    }
}

/// The text without characters that are not seen. NUL stays: it may end the text.
fn seen(text: &str) -> String {
    let chars = text.chars();
    chars.filter(|c| *c == '\0' || !is_unseen(*c)).collect()
}

/// Whether a character is dropped, or not seen, by those who show or normalise text.
pub(crate) fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// The text with its percent signs decoded once; `None` if there is nothing to decode.
fn decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let mut changed = false;
    while let Some(byte) = bytes.get(at) {
        let pair = |at: usize| {
            let value = digit(bytes.get(at))? * 16 + digit(bytes.get(at + 1))?;
            u8::try_from(value).ok()
        };
        if *byte == b'%' {
            if let Some(value) = pair(at + 1) {
                out.push(value);
                at += 3;
                changed = true;
                continue;
            }
            // `%u002f`, as old servers of Microsoft have it.
            if bytes.get(at + 1) == Some(&b'u')
                && let (Some(high), Some(low)) = (pair(at + 2), pair(at + 4))
                && let Some(c) = char::from_u32(u32::from(high) * 256 + u32::from(low))
            {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                at += 6;
                changed = true;
                continue;
            }
        }
        out.push(*byte);
        at += 1;
    }
    changed.then(|| lenient(&out))
}

/// Text of bytes, reading ASCII that was spelled in more bytes than it needs.
fn lenient(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        let (c, taken) = match rest {
            [] => break,
            [first @ 0xc0..=0xc1, second @ 0x80..=0xbf, ..] => {
                ((first & 1) << 6 | second & 0x3f, 2)
            }
            [0xe0, second @ 0x80..=0x81, third @ 0x80..=0xbf, ..] => {
                ((second & 1) << 6 | third & 0x3f, 3)
            }
            [first, ..] => (*first, 1),
        };
        out.push(c);
        rest = &rest[taken..];
    }
    String::from_utf8_lossy(&out).into_owned()
}
