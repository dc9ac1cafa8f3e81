//! Spellings of a path or an address: every text that a server may make of one text.
//!
//! Servers decode percent signs, fold Unicode, take backslashes for slashes and walk `..` before
//! they open a file. A rule that holds back has to match whichever of these texts the server ends up
//! with, and a rule that lets pass has to match all of them. Only the text is looked at: symbolic
//! links other than those of every system, short names (`PROGRA~1`) and the working directory of a
//! server cannot be known here. What is behind a link cannot be told either, so that an absolute path
//! with `..` may lead anywhere.

use std::collections::HashSet;

use super::address::{Place, begins_with_host, parsed, shared, without_user, wrapped};
use super::decode::{decoded, folded, is_unseen, seen};
use super::expand::{Expansions, may_climb, may_lead_elsewhere};
use super::limits::SPELLINGS;
use super::reading::{Doubt, Reading};

/// How often percent signs are decoded. A text that changes even then is in doubt.
const DECODINGS: usize = 5;

/// The work that a spelling takes beside its bytes, as bytes.
const SPELLING_BYTES: usize = 64;

/// The cost of comparing a byte of pieces, relative to a byte of plain text.
const PIECES_WEIGHT: usize = 8;

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

/// The schemes of an address that says none.
const UNSAID: [&str; 2] = ["http", "https"];

/// The most names of a link.
const LINK_NAMES: usize = 4;

/// Links of Linux and macOS, and where they lead.
const LINKS: [(&str, &str); 23] = [
    ("bin", "usr/bin"),
    ("sbin", "usr/sbin"),
    ("lib", "usr/lib"),
    ("lib32", "usr/lib32"),
    ("lib64", "usr/lib64"),
    ("libx32", "usr/libx32"),
    ("var/run", "run"),
    ("var/lock", "run/lock"),
    ("var/spool/mail", "var/mail"),
    ("run/shm", "dev/shm"),
    ("usr/bin/x11", "usr/bin"),
    ("usr/tmp", "var/tmp"),
    ("var/home", "home"),
    ("private/etc", "etc"),
    ("private/var", "var"),
    ("private/tmp", "tmp"),
    ("usr/lib/ssl/certs", "etc/ssl/certs"),
    ("usr/lib/ssl/private", "etc/ssl/private"),
    ("usr/lib/ssl/openssl.cnf", "etc/ssl/openssl.cnf"),
    ("var/lib/dbus/machine-id", "etc/machine-id"),
    ("proc/net", "proc/self/net"),
    ("proc/mounts", "proc/self/mounts"),
    ("dev/fd", "proc/self/fd"),
];

/// The first names of paths that lead elsewhere.
const LEADING: [&str; 14] = [
    "bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "var", "private", "proc", "dev",
    "run", "system", ".vol",
];

/// The spellings of one text, in lower case.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Spellings {
    /// Every text that it may be read as.
    pub(crate) texts: HashSet<String>,
    /// The path below the home directory, beginning with `~`, if it is one.
    pub(crate) home: Vec<String>,
    /// The paths among them that begin at no root.
    pub(crate) relative: HashSet<String>,
    /// The beginnings of those with wildcards, up to the first one.
    pub(crate) wild: Vec<String>,
    /// The beginnings of those with braces that expand to more than can be looked at.
    pub(crate) open: HashSet<String>,
    /// Those with braces or brackets, as they are before these are expanded.
    pub(crate) braced: HashSet<String>,
    /// Some of these expand to more than can be listed.
    pub(crate) is_cut: bool,
    /// Some part of it is `..`, or expands to it.
    pub(crate) climbs: bool,
    /// It is an address, and readers differ in its host.
    pub(crate) is_unclear: bool,
    /// The doubt about a path.
    pub(crate) doubt: Doubt,
}

/// A text to look at.
struct Waiting {
    text: String,
    /// The number of times that its percent signs were decoded.
    decodings: usize,
    /// Its braces were expanded.
    is_expanded: bool,
}

impl Spellings {
    /// Reads a text as a rule does that holds back, or as one that lets pass.
    pub(crate) fn of(text: &str, reading: Reading) -> Self {
        if is_plain(text) {
            let text = text.to_ascii_lowercase();
            let is_absolute = text.starts_with('/');
            return Self {
                relative: (!is_absolute).then(|| text.clone()).into_iter().collect(),
                texts: HashSet::from([text]),
                ..Self::default()
            };
        }
        Self::of_any(text, reading)
    }

    fn of_any(text: &str, reading: Reading) -> Self {
        let mut found = Self::default();
        found.add(text.to_lowercase());
        let mut known = HashSet::new();
        let mut waiting = vec![Waiting {
            text: text.to_owned(),
            decodings: 0,
            is_expanded: reading == Reading::Strict,
        }];
        while let Some(next) = waiting.pop() {
            if found.is_full() {
                break;
            }
            if known.insert(next.text.clone()) {
                found.look_through(&next, reading, &mut waiting);
            }
        }
        // Windows, which has backslashes, expands no braces: they are wildcards only if not all is listed.
        let is_listed = !found.is_cut && text.contains('\\') && !text.contains('/');
        let is_block = is_block_comment(text);
        let wild = found.texts.iter().flat_map(|text| {
            let start = before_wildcard(text).filter(|start| {
                let is_brace = text[start.len()..].starts_with('{');
                !((is_listed && is_brace) || (is_block && *start == "/"))
            });
            start.into_iter().chain(in_braces(text))
        });
        let wild: Vec<String> = wild.map(str::to_owned).collect();
        found.wild.extend(wild);
        found.doubt_if(found.is_full(), Doubt::All);
        found
    }

    /// Adds what a text may be read as, and the texts that programs make of it on the way.
    fn look_through(&mut self, next: &Waiting, reading: Reading, waiting: &mut Vec<Waiting>) {
        let text = &next.text;
        let whole = folded(text);
        // Parsers take characters for what they are.
        if whole != *text || text.contains(is_unseen) {
            self.look_at_parsed(text, reading);
        }
        // Some end the host at a character that others fold into a sign.
        if !text.is_ascii() && text.contains("://") {
            let unfolded = seen(&text.to_lowercase()).replace('\\', "/");
            self.look_at_place(&unfolded, reading);
        }
        let current = seen(&whole);
        if !next.is_expanded && current.contains(['{', '[']) {
            self.braced.insert(current.clone());
        }
        self.look_at(&current, reading);
        // C ends a text there.
        if let Some((before, _)) = current.split_once('\0') {
            self.look_at(before, reading);
        }
        if reading == Reading::Strict {
            self.doubt_if(may_lead_elsewhere(&current), Doubt::Place);
        }
        // What stands on lines of its own is not seen without their ends.
        self.doubt_if(is_substituted(&whole) && !is_prose(&whole), Doubt::Place);
        let mut then = |text, decodings, is_expanded| {
            waiting.push(Waiting {
                text,
                decodings,
                is_expanded,
            });
        };
        let mut texts = vec![&**text];
        for other in [
            &*current,
            text.trim_matches(is_quote),
            current.trim_matches(is_quote),
        ] {
            if !texts.contains(&other) {
                texts.push(other);
            }
        }
        for text in texts {
            if let Some(other) = without_user(text) {
                then(other, next.decodings, next.is_expanded);
            }
            if next.is_expanded {
                continue;
            }
            let found = Expansions::of(text);
            // Windows, which has drives, expands nothing.
            found
                .listed
                .into_iter()
                .filter(|text| !is_drive(text.trim_start()) || text.contains('@'))
                .for_each(|text| then(text, next.decodings, true));
            self.is_cut |= found.is_cut;
            self.doubt = self.doubt.max(found.doubt);
            let starts = found.starts.iter().map(|start| start.to_ascii_lowercase());
            self.open
                .extend(starts.map(|start| start.replace('\\', "/")));
        }
        if let Some(decoded) = decoded(&current) {
            if next.decodings == DECODINGS {
                self.doubt_if(true, Doubt::Place);
                self.is_unclear = true;
            } else {
                then(decoded, next.decodings + 1, next.is_expanded);
            }
        }
    }

    fn doubt_if(&mut self, is_so: bool, doubt: Doubt) {
        if is_so {
            self.doubt = self.doubt.max(doubt);
        }
    }

    fn add(&mut self, text: String) {
        if !self.is_full() {
            self.texts.insert(text);
        }
    }

    /// Tests if there is no room for another spelling.
    fn is_full(&self) -> bool {
        self.texts.len() >= SPELLINGS
    }

    /// The work that all spellings take, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        // Other characters than those of ASCII take longer to compare, and so do pieces.
        let weight = |text: &String| if text.is_ascii() { 1 } else { 4 };
        let texts = self.texts.iter();
        let texts = texts.map(|text| text.len() * weight(text) + SPELLING_BYTES);
        let times = if self.is_cut { 2 } else { 1 };
        let braced = self.braced.iter();
        let braced = braced.map(|text| text.len() * PIECES_WEIGHT * times);
        texts.chain(braced).sum()
    }

    /// Adds what one decoded text may be read as.
    fn look_at(&mut self, text: &str, reading: Reading) {
        let text = text.replace('\0', "");
        self.add(text.clone());
        let text = text.trim_matches(is_quote);
        let slashed = text.replace('\\', "/");
        for text in [Some(&*slashed), wrapped(&slashed)].into_iter().flatten() {
            self.look_at_place(text, reading);
            self.look_at_parsed(text, reading);
        }
        if reading == Reading::Generous {
            self.look_at_unsaid(text);
            if text.contains('\\') {
                self.look_at_unsaid(&text.replace('\\', "/"));
            }
        }
        self.look_at_quoted(text, reading);
    }

    /// Adds the addresses of a text that does not say its scheme.
    fn look_at_unsaid(&mut self, text: &str) {
        // One that begins with two slashes has the scheme of the page that it stands on.
        let address = text.strip_prefix("//");
        // The name of a user may have blanks.
        let address = address.filter(|_| text.contains('@') || !is_comment(text));
        let address = address.or_else(|| begins_with_host(text).then_some(text));
        for scheme in address.iter().flat_map(|_| UNSAID) {
            let address = address.unwrap_or_default();
            self.look_at_place(&format!("{scheme}://{address}"), Reading::Generous);
        }
    }

    /// Looks at the path that a shell makes of one with quotes in it.
    fn look_at_quoted(&mut self, text: &str, reading: Reading) {
        let bare = if text.contains("$'") || text.contains("$\"") {
            &text.replace("$'", "").replace("$\"", "")
        } else {
            text
        };
        let bare = bare.replace(['"', '\''], "");
        let is_quoted = bare.len() < text.len() && bare.contains('/');
        // Elsewhere than on Windows, where paths begin with a drive.
        let is_drive = bare.as_bytes().get(1) == Some(&b':');
        let is_escaped = bare.contains('\\') && bare.contains(['/', '~']) && !is_drive;
        let readings = [
            is_quoted.then(|| bare.replace('\\', "/")),
            is_escaped.then(|| bare.replace('\\', "")),
        ];
        for text in readings.into_iter().flatten() {
            if reading == Reading::Generous {
                self.look_at_place(&text, reading);
            } else {
                // A rule that allows matches the text as written: each word only has to stay below its directory.
                let mut words = text.split_whitespace();
                self.climbs |= may_climb(&text);
                self.climbs |= words.any(|word| walk(word, Exactness::Loose).climbs);
            }
        }
    }

    /// Adds what a parser of addresses makes of a text, if that is another.
    fn look_at_parsed(&mut self, text: &str, reading: Reading) {
        let Some(written) = parsed(text) else {
            return;
        };
        let plain = decoded(&written).map(|plain| folded(&plain));
        let is_known = |text: &String| self.texts.contains(text);
        let is_new = !is_known(&written);
        if let Some(plain) = plain.as_ref().filter(|plain| !is_known(plain)) {
            self.look_at_place(plain, reading);
        }
        // What the parser spells in ASCII is no reason to ask.
        let is_generous = reading == Reading::Generous;
        if is_new && (is_generous || plain.is_none()) {
            self.look_at_place(&written, reading);
        }
        if is_generous {
            self.add(written);
        }
    }

    fn look_at_place(&mut self, text: &str, reading: Reading) {
        if self.is_full() {
            return;
        }
        let may_climb = may_climb(text);
        self.climbs |= may_climb;
        match Place::of(text, reading) {
            Place::Path(path) => {
                if may_climb {
                    self.doubt_if(!is_prose(text), Doubt::Place);
                    self.doubt_if(true, Doubt::IfPath);
                }
                self.look_at_path(path, reading);
            }
            Place::File { host, path } => {
                self.doubt_if(may_climb, Doubt::Place);
                self.look_at_path(if path.is_empty() { "/" } else { path }, reading);
                if matches!(host, "" | "localhost") {
                    return;
                }
                // Some take the host for the first part of the path.
                if reading == Reading::Generous {
                    for root in ["", "/", "//"] {
                        self.look_at_path(&format!("{root}{host}{path}"), reading);
                    }
                } else {
                    self.doubt_if(true, Doubt::Place);
                }
            }
            Place::Address {
                prefixes,
                path,
                is_unclear,
            } => {
                self.is_unclear |= is_unclear;
                if may_climb {
                    // It stays at its host.
                    let anywhere = prefixes.iter().map(|prefix| format!("{prefix}/"));
                    self.wild.extend(anywhere);
                }
                // The fragment stays with the reader. Some walk through the query, and others do not.
                let bare = path.find('#').map(|at| &path[..at]);
                let ways = [Some(path), bare].into_iter().flatten();
                let ways = ways.flat_map(|path| {
                    let cut = path.find(['?', '#']).map(|at| path.split_at(at));
                    [Some((path, "")), cut].into_iter().flatten()
                });
                for (path, query) in ways {
                    for exactness in [Exactness::Letter, Exactness::Loose] {
                        let walk = walk(path, exactness);
                        self.climbs |= walk.climbs;
                        let path = walk.parts.join("/");
                        for prefix in &prefixes {
                            self.add(format!("{prefix}/{path}{query}"));
                        }
                    }
                }
            }
        }
    }

    fn look_at_path(&mut self, path: &str, reading: Reading) {
        if let Some(rest) = below_home(path) {
            // The home of another user, and the directories of a shell, may be anywhere.
            self.doubt_if(is_home_of_other(path), Doubt::Place);
            for exactness in Exactness::ALL {
                let walk = walk(rest.trim_start_matches('/'), exactness);
                self.climbs |= walk.climbs;
                self.doubt_if(walk.climbs, Doubt::Place);
                let below = format!("~/{}", walk.parts.join("/"));
                self.add(below.clone());
                self.home.push(below);
            }
            return;
        }
        if let Some(path) = shared(path) {
            self.add_walks(&path, reading);
        }
        // `os.path.expandvars` takes variables anywhere.
        let bare = path.trim_start_matches('/');
        if bare.len() < path.len() && bare.starts_with('$') {
            self.look_at_path(bare, reading);
        }
        let path = without_device(path);
        self.doubt_if(begins_with_variable(path), Doubt::Place);
        self.add_walks(path, reading);
    }

    fn add_walks(&mut self, path: &str, reading: Reading) {
        // Words that end in a full stop or a question mark need not be paths.
        let is_path = reading == Reading::Generous || path.contains('/');
        let readings = if is_path {
            &Exactness::ALL[..]
        } else {
            &[Exactness::Letter]
        };
        // A query, a fragment or a part of an archive is no part of the name of a file.
        let cut = path
            .find(['?', '#'])
            .or_else(|| path.find("!/"))
            .filter(|_| is_path);
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
        self.doubt_if(walk.leaves || walk.is_unclear, Doubt::Place);
        let path = walk.parts.join("/");
        if let Some(root) = walk.root {
            // A directory may be a link, and what is above it another directory than it seems.
            self.doubt_if(walk.climbs, Doubt::Place);
            // A drive is named or meant.
            if !root.is_empty() {
                self.add(format!("/{path}"));
            }
            self.add(format!("{root}/{path}"));
        } else {
            self.relative.insert(path.clone());
            self.add(path);
        }
    }
}

/// Tests if a text begins with a drive.
fn is_drive(text: &str) -> bool {
    matches!(text.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

/// Tests if a character is put around a text.
fn is_quote(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>')
}

/// Whether a text is a path that has no spelling but its own, letter case aside.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-. ,+=@()&".contains(&byte);
    let path = text.strip_prefix('/');
    let mut parts = path.unwrap_or(text).split('/');
    let first = parts.clone().next().unwrap_or_default();
    let leads = |name: &&str| path.is_some() && first.eq_ignore_ascii_case(name);
    let is_group = |part: &str| part.contains('(') && (part.contains("(.") || part.contains(".."));
    let is_kept =
        |part: &str| !part.starts_with(' ') && !part.ends_with(['.', ' ']) && !is_group(part);
    parts.all(|part| !part.is_empty() && is_kept(part) && part.bytes().all(is_plain))
        && !LEADING.iter().any(leads)
        && (path.is_some() || !begins_with_host(text))
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
        walk.climbs |= bare == "..";
        // To the letter, `..;` is a name.
        if part == ".." || (bare == ".." && exactness != Exactness::Letter) {
            if walk.parts.pop().is_none() && !is_absolute {
                walk.leaves = true;
            }
            continue;
        }
        let part = match exactness {
            Exactness::Letter => part,
            Exactness::Loose | Exactness::Through => {
                let named = part.find("::$").map_or(part, |at| &part[..at]);
                // Servers take parameters off the names of a path.
                let named = named.split(';').next().unwrap_or_default();
                named.trim_end_matches(['.', ' ']).trim_start()
            }
        };
        if matches!(part, "" | ".") {
            continue;
        }
        walk.parts.push(part);
        if exactness == Exactness::Through && is_absolute {
            walk.go_through();
        }
    }
    walk
}

impl Walk<'_> {
    /// Follows directories that lead elsewhere on every Linux or macOS.
    fn go_through(&mut self) {
        follow(&mut self.parts);
        match self.parts.as_slice() {
            ["proc", _, "root"]
            | ["proc", _, "task", _, "root"]
            | ["system", "volumes", "data"] => self.parts.clear(),
            ["proc", _, "cwd" | "fd" | "exe" | "map_files"]
            | ["proc", _, "task", _, "cwd" | "fd" | "exe" | "map_files"]
            | ["dev", "stdin" | "stdout" | "stderr"]
            | [".vol"] => self.is_unclear = true,
            _ => {}
        }
    }
}

/// Puts the place that a link leads to in place of the link.
pub(crate) fn follow(parts: &mut Vec<&str>) {
    if parts.len() > LINK_NAMES {
        return;
    }
    let link = LINKS
        .iter()
        .find(|(link, _)| link.split('/').eq(parts.iter().copied()));
    if let Some((_, to)) = link {
        parts.clear();
        parts.extend(to.split('/'));
    }
}

/// The same absolute path through the links that lead to it.
pub(crate) fn through_links(path: &str) -> impl Iterator<Item = String> {
    let rest = path.strip_prefix('/');
    LINKS.iter().filter_map(move |(link, to)| {
        let below = rest?.strip_prefix(to)?;
        let is_below = below.is_empty() || below.starts_with('/');
        is_below.then(|| format!("/{link}{below}"))
    })
}

/// Whether a shell would put something else in place of a part of the text, the home directory aside.
fn is_substituted(text: &str) -> bool {
    let quotes = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`');
    let text = text.trim_matches(quotes);
    let text = text.strip_prefix(HOMES[0]).unwrap_or(text);
    ["${", "$(", "`"].iter().any(|sign| text.contains(sign))
        // Backslashes spell any character there.
        || text.split("$'").skip(1).any(|rest| {
            rest.split('\'').next().is_some_and(|quoted| quoted.contains('\\'))
        })
}

/// Whether a text that a shell would change is prose and no path: it has several words, does not begin
/// as a path does, and every substitution in it is a word of its own.
fn is_prose(text: &str) -> bool {
    let kept = |c: &char| c.is_whitespace() || !is_unseen(*c);
    let text: String = text.trim().chars().filter(kept).collect();
    let is_drive = text.as_bytes().get(1) == Some(&b':');
    let is_path = || text.starts_with(['/', '\\', '.', '~', '$', '%']) && !is_comment(&text);
    if is_drive || !text.contains(char::is_whitespace) || is_path() {
        return false;
    }
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '/' | '\\' | '_' | '$' | '%');
    let leads = |c: char| joins(c) || matches!(c, '.' | '-' | '~');
    let mut before = None;
    let mut in_ticks = false;
    text.char_indices().all(|(at, c)| {
        let after = text[at + c.len_utf8()..].chars().next();
        in_ticks ^= c == '`';
        let opens = (c == '`' && in_ticks) || (c == '$' && matches!(after, Some('{' | '(')));
        let closes = (c == '`' && !in_ticks) || matches!(c, '}' | ')');
        let is_joined =
            (opens && before.is_some_and(leads)) || (closes && after.is_some_and(joins));
        before = Some(c);
        !is_joined
    })
}

/// Tests if a text begins with a comment of a program.
fn is_comment(text: &str) -> bool {
    let line = text.trim_start().strip_prefix("//");
    let is_line = line.is_some_and(|rest| {
        let end = rest.find(char::is_whitespace);
        end.is_some_and(|end| !rest[..end].contains(['/', '.']))
    });
    is_line || is_block_comment(text)
}

/// Tests if a text begins with a comment between `/*` and `*/`.
fn is_block_comment(text: &str) -> bool {
    let block = text.trim_start().strip_prefix("/*");
    block.is_some_and(|rest| {
        let inner = rest.trim_start_matches(['*', '!']);
        inner.starts_with(char::is_whitespace) && inner.contains("*/")
    })
}

/// What a text begins with up to its first wildcard, if it has one. The brackets of `[::1]` are none.
fn before_wildcard(text: &str) -> Option<&str> {
    let host = text.find("://[").map(|at| at + "://[".len());
    let end = host.and_then(|host| {
        let end = host + text[host..].find(']')?;
        let inner = &text[host..end];
        (inner.contains(':') && !inner.contains(['*', '[', '{'])).then_some(end)
    });
    let from = end.unwrap_or_default();
    let at = text[from..].find(['*', '?', '[', '{'])?;
    Some(&text[..from + at])
}

/// The beginnings of the paths that a shell makes of braces at the start of a text.
fn in_braces(text: &str) -> impl Iterator<Item = &str> {
    let inner = text.strip_prefix('{').unwrap_or_default();
    // Beside nothing, the text behind the braces is a path of its own.
    let has_none = ["{,", ",,", ",}"].iter().any(|none| text.contains(none));
    inner
        .split(move |c| matches!(c, '{' | ',') || (has_none && c == '}'))
        .filter(|path| path.starts_with(['/', '~']))
        .map(|path| &path[..path.find(['*', '?', '[', '}']).unwrap_or(path.len())])
}

/// The path below a home directory, if the text begins with a name for one.
fn below_home(path: &str) -> Option<&str> {
    if let Some(rest) = path.strip_prefix('~') {
        return Some(rest.find('/').map_or("", |at| &rest[at..]));
    }
    let rest = HOMES.iter().find_map(|home| path.strip_prefix(home))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// Tests if a path begins with the home directory of a named user (`~name`), or with a directory that a shell
/// remembers (`~+`, `~-`, `~2`). A number alone is one in prose.
fn is_home_of_other(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('~') else {
        return false;
    };
    let (name, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_amount = name.starts_with(|c: char| c.is_ascii_digit())
        && (below.is_empty() || name.contains('.') || path.contains(char::is_whitespace));
    let is_name = |c: char| !c.is_whitespace() && !matches!(c, '$' | '~');
    !name.is_empty() && !is_amount && name.chars().all(is_name)
}

fn begins_with_variable(path: &str) -> bool {
    let named = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    // `$5 a month` is a price, and so is `$1,000.00`.
    let amount = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let rest = path.strip_prefix('$').unwrap_or_default();
    let is_price = path.contains(char::is_whitespace) || rest.chars().all(amount);
    let special = |rest: &str| {
        let is_sign = |c: char| (c.is_ascii_digit() && !is_price) || "*@!-#?$".contains(c);
        rest.starts_with(is_sign)
    };
    path.strip_prefix('$')
        .is_some_and(|rest| named(rest) || special(rest))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_one_text_are_bounded() {
        let list = (0..60).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let text = format!("http://{{{list}}}.example/a;b%252525252541?c/../d");
        let found = Spellings::of(&text, Reading::Generous);
        assert!(found.texts.len() <= SPELLINGS && found.doubt == Doubt::All);
    }

    proptest! {
        #[test]
        fn plain_paths_have_one_spelling(
            text in "/?((proc|Bin|dev|var|lib64|etc|A|x[.]y|[.]|[.][.]|[.]z|a-_b|9|a b| |[,+=@()&])/?){0,5}",
            is_strict in any::<bool>(),
        ) {
            let reading = if is_strict { Reading::Strict } else { Reading::Generous };
            prop_assert_eq!(Spellings::of(&text, reading), Spellings::of_any(&text, reading));
        }
    }

    #[test]
    fn plain_paths_are_told_from_others() {
        for text in [
            "/srv/me/notes.txt",
            "notes.txt",
            "/Srv/x",
            "src/main.rs",
            "bin/x",
            ".env",
        ] {
            assert!(is_plain(text), "{text}");
        }
        for text in [
            "", "/", "a//b", "a/", "../a", "a/.", "/BIN/x", "~/a", "a /b", "a/ b", "a%20b", "é",
            "$a",
        ] {
            assert!(!is_plain(text), "{text}");
        }
    }
}
