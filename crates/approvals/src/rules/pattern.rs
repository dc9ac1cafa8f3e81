//! Patterns for values: held against every [spelling](super::spelling) of a text.
//!
//! Letter case does not count: the file systems of macOS and Windows ignore it. On others a rule
//! holds back a little more than it says.

use std::sync::LazyLock;

use regex_lite::{Regex, RegexBuilder};
use switchboard_text::glob::Glob;

use super::address::prefixes;
use super::decode::folded;
use super::error::ArgumentsError;
use super::expand::ANY_HOST;
use super::limits::PROGRAM_BYTES;
use super::look::Texts;
use super::pieces::Pieces;
use super::reading::{Doubt, Reading};
use super::spelling::{Spellings, follow, through_links};

/// Where home directories are. Names of users follow those that end in a slash.
const USUAL_HOMES: [&str; 9] = [
    "/home/",
    "/users/",
    "/var/home/",
    "/usr/home/",
    "/export/home/",
    "/mnt/c/users/",
    "c:/users/",
    "/root",
    "/var/root",
];

/// These, and the home directory of this process, which may be anywhere.
static HOMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let own = std::env::home_dir().filter(|home| home.is_absolute());
    let real = own.as_ref().and_then(|own| own.canonicalize().ok());
    let own = own.into_iter().chain(real).filter_map(|home| {
        let home = folded(home.to_str()?).replace('\\', "/");
        let home = home.trim_end_matches('/');
        (!home.is_empty()).then(|| home.to_owned())
    });
    USUAL_HOMES
        .map(str::to_owned)
        .into_iter()
        .chain(own)
        .collect()
});

/// The fewest characters that tell a host from others.
const HOST_CHARACTERS: usize = 2;

/// The longest text that may be a host, with a user before it and a port behind it.
const HOST_BYTES: usize = 512;

/// Directories through which a path leads elsewhere.
const THROUGH: [&str; 2] = ["/proc/", "/dev/fd/"];

/// Where a path to a home directory may begin.
fn ways_home() -> impl Iterator<Item = &'static str> {
    HOMES.iter().map(String::as_str).chain(THROUGH)
}

/// The beginning of a pattern, up to its first wildcard.
#[derive(Clone, Debug, Default)]
struct Start {
    /// Every spelling of it, if it says where a path begins.
    heads: Vec<String>,
    /// From the home directory on, if it leads there.
    below_home: Option<String>,
    /// Whether it was written from the home directory on.
    is_of_home: bool,
    /// It is the beginning of an address.
    is_address: bool,
}

impl Start {
    fn new(head: &str, below_home: Option<String>, is_of_home: bool) -> Self {
        let is_drive = head.as_bytes().get(1) == Some(&b':')
            && head.starts_with(|c: char| c.is_ascii_alphabetic());
        let mut heads = Vec::new();
        if head.starts_with('/') || head.contains("://") || is_drive {
            heads.push(head.to_owned());
            heads.extend(through_links(head));
        }
        if head.starts_with('/') {
            heads.extend(THROUGH.map(str::to_owned));
        }
        Self {
            heads,
            below_home,
            is_of_home,
            // A letter is a drive.
            is_address: head.find("://").is_some_and(|at| at > 1),
        }
    }

    /// Whether it says where a path begins.
    fn is_absolute(&self) -> bool {
        !self.heads.is_empty()
    }

    /// Whether a text may begin so although it is spelled otherwise: it is unclear, or a shell expands its
    /// wildcards. A text that need not begin so at all may be prose.
    fn may_begin(&self, spellings: &Spellings, is_anchored: bool) -> bool {
        if self.is_address {
            let meets = || {
                let mut open = spellings.open.iter();
                self.meets(spellings) || open.any(|start| self.meets_open(start))
            };
            return is_anchored && meets();
        }
        let is_known = self.is_absolute() || self.is_of_home;
        let is_path = spellings.doubt >= Doubt::IfPath || self.meets(spellings);
        let is_path = is_path || spellings.open.iter().any(|start| self.meets_open(start));
        is_known && (spellings.doubt >= Doubt::Place || (is_anchored && is_path))
    }

    /// Tests if a text that expands in many ways after this start may begin as the pattern does.
    fn meets_open(&self, start: &str) -> bool {
        let overlap = |one: &str| one.starts_with(start) || start.starts_with(one);
        let of_file = |head: &str| overlap(&format!("file:{head}")) || start.starts_with("file:");
        let is_home = self.is_of_home || self.below_home.is_some();
        if start == ANY_HOST {
            return self.heads.iter().any(|head| head.contains(ANY_HOST));
        }
        start.is_empty()
            || (is_home && start.starts_with(['~', '$', '%']))
            || (self.is_of_home && ways_home().any(|way| overlap(way) || of_file(way)))
            || self.heads.iter().any(|head| {
                let host = head.split_once("://").map(|(_, host)| host);
                overlap(head) || host.map_or_else(|| of_file(head), overlap)
            })
    }

    fn meets(&self, spellings: &Spellings) -> bool {
        let overlap = |one: &str, other: &str| one.starts_with(other) || other.starts_with(one);
        let below_home = |start: &str| {
            self.below_home
                .as_ref()
                .is_some_and(|head| overlap(head, start))
        };
        let in_home = |start: &str, home: &str| {
            home.starts_with(start) || below(start, home).is_some_and(|start| below_home(&start))
        };
        spellings.wild.iter().any(|start| {
            if start.starts_with('~') {
                return below_home(start);
            }
            (start.starts_with('/') || start.contains("://"))
                && (self.heads.iter().any(|head| overlap(head, start))
                    || (self.is_of_home && HOMES.iter().any(|home| in_home(start, home)))
                    || (self.is_of_home && THROUGH.iter().any(|way| overlap(way, start))))
        })
    }
}

/// A pattern with wildcards, or a text, for paths and addresses.
#[derive(Clone, Debug)]
pub(crate) struct PathPattern {
    /// As it was written.
    written: Glob,
    /// The same without case.
    plain: Glob,
    /// The same as a path is spelled shortest, if that is another.
    normal: Option<Glob>,
    /// The same from the home directory on, if it leads there.
    below_home: Option<Glob>,
    /// Whether it begins with a wildcard.
    begins_anywhere: bool,
    /// Whether it is about all of a directory that homes are in.
    has_homes: bool,
    /// The scheme and the host that it names, if that is a website.
    site: Option<String>,
    /// The same for texts with braces, whose pieces may be a scheme and a user as well.
    loose: Vec<Glob>,
    /// Its parts, if it is an address with a wildcard before its path.
    wild_address: Option<WildAddress>,
    start: Start,
}

impl PathPattern {
    pub(crate) fn new(written: &Glob) -> Self {
        let text = folded(&written.marked());
        let normal = normal(&text);
        let head = Glob::from_marked(&normal).head();
        let tilde = ["~", "${home}", "$home", "%userprofile%"]
            .iter()
            .find_map(|home| normal.strip_prefix(home))
            .filter(|rest| rest.starts_with('/'));
        let is_of_home = tilde.is_some();
        let below_home = match tilde {
            Some(rest) => Some(format!("~{rest}")),
            None => HOMES.iter().find_map(|home| below(&normal, home)),
        };
        let below_home = below_home.map(|text| Glob::from_marked(&text));
        let mut start = Start::new(&head, below_home.as_ref().map(Glob::head), is_of_home);
        // Its scheme may be wild.
        start.is_address |= address_parts(&normal).is_some_and(|(scheme, ..)| {
            let is_wild = scheme.contains([Glob::ONE, Glob::MANY]);
            is_wild || scheme.len() > 1
        });
        Self {
            written: written.clone(),
            plain: Glob::from_marked(&text),
            normal: (normal != text).then(|| Glob::from_marked(&normal)),
            below_home,
            begins_anywhere: head.is_empty(),
            has_homes: start.is_absolute() && HOMES.iter().any(|home| home.starts_with(&*head)),
            site: site(&head),
            loose: loose(&normal),
            wild_address: WildAddress::new(&text),
            start,
        }
    }

    /// Whether a server may read the text as one that the pattern means.
    pub(crate) fn may_match(&self, text: &str, texts: &Texts) -> Result<bool, ArgumentsError> {
        texts.count(text)?;
        if self.written.matches(text) {
            return Ok(true);
        }
        let spellings = texts.spellings(text, Reading::Generous)?;
        if spellings.doubt == Doubt::All
            || spellings.texts.iter().any(|text| self.has(text))
            || self.may_have(&spellings)
        {
            return Ok(true);
        }
        if !spellings.home.is_empty() && self.has_home(&spellings) {
            return Ok(true);
        }
        if self.start.is_address && spellings.is_unclear {
            return Ok(true);
        }
        if self.begins_anywhere {
            // Relative paths have directories before them.
            let somewhere = |path: &String| self.normal().matches(&format!("/\u{fffc}/{path}"));
            return Ok(spellings.relative.iter().any(somewhere));
        }
        let is_below = |site: &String, path: &String| {
            let (host, rest) = path.split_at(path.find(['/', '?', '#']).unwrap_or(path.len()));
            let rest = if rest.is_empty() { "/" } else { rest };
            is_host(host, site) && self.has(&format!("{site}{rest}"))
        };
        let mut paths = spellings.relative.iter();
        if let Some(site) = &self.site
            && paths.any(|path| is_below(site, path))
        {
            return Ok(true);
        }
        Ok(self.start.may_begin(&spellings, true))
    }

    /// Whether the text matches, and so does every text that a server may make of it.
    pub(crate) fn surely_matches(&self, text: &str, texts: &Texts) -> Result<bool, ArgumentsError> {
        texts.count(text)?;
        if !self.written.matches(text) {
            return Ok(false);
        }
        if self.written.is_exact() || self.written.is_any() {
            return Ok(true);
        }
        let spellings = texts.spellings(text, Reading::Strict)?;
        let is_there = |text: &String| {
            let wild = self.wild_address.as_ref();
            self.has(text) && wild.is_none_or(|wild| wild.matches(text))
        };
        Ok(is_certain(&spellings) && spellings.texts.iter().all(is_there))
    }

    fn normal(&self) -> &Glob {
        self.normal.as_ref().unwrap_or(&self.plain)
    }

    fn has(&self, text: &str) -> bool {
        self.plain.matches(text)
            || self.normal.as_ref().is_some_and(|glob| glob.matches(text))
            // A directory is the same with a slash and without.
            || self.normal().matches_directory(text)
            || (self.start.is_of_home
                && HOMES
                    .iter()
                    .filter_map(|home| below(text, home))
                    .any(|text| self.has_below_home(&text)))
    }

    /// The same of a text whose braces may be expanded.
    fn may_have(&self, spellings: &Spellings) -> bool {
        let globs = || {
            let globs = [&self.plain].into_iter();
            globs.chain(&self.normal).chain(&self.loose)
        };
        let is_matched = |text: &str| {
            Pieces::of(text).is_some_and(|pieces| globs().any(|glob| pieces.may_match(glob)))
        };
        let mut texts = spellings.braced.iter();
        texts.any(|text| {
            // A host is the same with a slash and without.
            is_matched(text) || (spellings.is_cut && is_matched(&format!("{text}/")))
        })
    }

    fn has_below_home(&self, text: &str) -> bool {
        let below = self.below_home.as_ref();
        below.is_some_and(|glob| glob.matches(text) || glob.matches_directory(text))
    }

    /// The same of a path that begins at a home directory.
    fn has_home(&self, spellings: &Spellings) -> bool {
        self.has_homes || spellings.home.iter().any(|text| self.has_below_home(text))
    }
}

/// The pattern without its scheme, or behind that of a file.
fn loose(normal: &str) -> Vec<Glob> {
    let any = Glob::MANY;
    if let Some((_, authority, rest)) = address_parts(normal) {
        let is_literal = |c: &char| !matches!(*c, Glob::ONE | Glob::MANY);
        let is_told = authority.chars().filter(is_literal).count() >= HOST_CHARACTERS;
        let loose = is_told.then(|| Glob::from_marked(&format!("{any}{authority}{rest}")));
        return loose.into_iter().collect();
    }
    let file = normal.starts_with('/');
    let file = file.then(|| Glob::from_marked(&format!("file:{any}{normal}")));
    file.into_iter().collect()
}

/// The parts of an address that a wildcard is meant for one of: who allows `https://*.example/*` does not mean
/// `https://evil.test/.example/`.
#[derive(Clone, Debug)]
struct WildAddress {
    scheme: Glob,
    authority: Glob,
    rest: Glob,
}

impl WildAddress {
    fn new(marked: &str) -> Option<Self> {
        let (scheme, authority, rest) = address_parts(marked)?;
        let is_wild = |part: &str| part.contains([Glob::ONE, Glob::MANY]);
        // A wildcard at the very end means all that follows.
        let goes_on = rest.is_empty() && authority.ends_with(Glob::MANY);
        (is_wild(scheme) || is_wild(authority)).then(|| Self {
            scheme: Glob::from_marked(scheme),
            authority: Glob::from_marked(authority),
            rest: if goes_on {
                Glob::any()
            } else {
                Glob::from_marked(rest)
            },
        })
    }

    fn matches(&self, text: &str) -> bool {
        address_parts(text).is_some_and(|(scheme, authority, rest)| {
            self.scheme.matches(scheme)
                && self.authority.matches(authority)
                && (self.rest.matches(rest) || self.rest.matches_directory(rest))
        })
    }
}

/// The scheme, the authority and the rest of an address.
fn address_parts(text: &str) -> Option<(&str, &str, &str)> {
    let (scheme, after) = text.split_once("://")?;
    let end = after.find(['/', '\\', '?', '#']).unwrap_or(after.len());
    let (authority, rest) = after.split_at(end);
    Some((scheme, authority, rest))
}

/// The scheme and the host that a pattern begins with, of the schemes that programs put before a bare host.
fn site(head: &str) -> Option<String> {
    let after = ["http://", "https://"]
        .iter()
        .find_map(|scheme| head.strip_prefix(scheme))?;
    let host = after.split('/').next().filter(|host| !host.is_empty())?;
    Some(head[..head.len() - after.len() + host.len()].to_owned())
}

/// Tests if a text is the host of a site alone. The program that opens it adds the scheme.
fn is_host(text: &str, site: &str) -> bool {
    let Some((scheme, host)) = site.split_once("://") else {
        return false;
    };
    if text.len() > HOST_BYTES || text.contains(['/', '?', '#']) {
        return false;
    }
    let is_word = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.is_ascii()
        && !text.contains(['@', ':'])
        && !text.contains("xn--");
    if is_word {
        return text.trim_end_matches('.') == host;
    }
    let authority = text.rsplit('@').next().unwrap_or_default();
    prefixes(scheme, authority, Reading::Generous)
        .iter()
        .any(|prefix| prefix == site)
}

/// Whether a text tells where it leads.
fn is_certain(spellings: &Spellings) -> bool {
    !spellings.climbs && !spellings.is_unclear && spellings.doubt == Doubt::None
}

/// A path below a home directory from there on: `~/x` for `/home/me/x`.
fn below(text: &str, home: &str) -> Option<String> {
    let rest = text.strip_prefix(home)?;
    if !home.ends_with('/') {
        return (rest.is_empty() || rest.starts_with('/')).then(|| format!("~{rest}"));
    }
    let (user, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // A wildcard in the place of the user goes on beyond it.
    let wild = if user.contains(Glob::MANY) {
        "\u{e001}"
    } else {
        ""
    };
    Some(format!("~{wild}{rest}"))
}

/// A pattern as a path is spelled shortest. Wildcards stay what they are, and so does `..` behind one.
fn normal(text: &str) -> String {
    let is_wild = |text: &str| text.contains([Glob::ONE, Glob::MANY]);
    let text = text.replace('\\', "/");
    let path =
        text.strip_prefix("file:")
            .map_or(text.as_str(), |rest| match rest.strip_prefix("//") {
                Some(after) => after.find('/').map_or("/", |at| &after[at..]),
                None => rest,
            });
    let (prefix, path) = match path.split_once("://") {
        Some((scheme, after)) => {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            if is_wild(scheme) || authority.contains('@') {
                (format!("{scheme}://{authority}"), path)
            } else {
                let mut prefixes = prefixes(scheme, authority, Reading::Strict);
                let is_host = path.is_empty() && !is_wild(authority);
                let path = if is_host { "/" } else { path };
                (prefixes.pop().unwrap_or_default(), path)
            }
        }
        None => (String::new(), path),
    };
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        let is_plain = |part: &&str| *part != ".." && !is_wild(part);
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(is_plain) => {
                parts.pop();
            }
            part => {
                parts.push(part);
                if is_absolute && prefix.is_empty() {
                    follow(&mut parts);
                }
            }
        }
    }
    let start = if is_absolute { "/" } else { "" };
    let end = if path.ends_with('/') && !parts.is_empty() {
        "/"
    } else {
        ""
    };
    format!("{prefix}{start}{}{end}", parts.join("/"))
}

/// A regular expression for values.
#[derive(Clone, Debug)]
pub(crate) struct TextPattern {
    written: Regex,
    /// The same without case.
    plain: Regex,
    /// Its literal beginning.
    start: Start,
    /// Whether a text has to begin so.
    is_anchored: bool,
    /// It is about addresses.
    is_address: bool,
}

impl TextPattern {
    pub(crate) fn new(pattern: &str) -> Result<Self, regex_lite::Error> {
        let build = |plain: bool| {
            let mut builder = RegexBuilder::new(pattern);
            builder.size_limit(PROGRAM_BYTES).case_insensitive(plain);
            builder.build()
        };
        let written = build(false)?;
        // Without case it takes more room. What has too little of it is read as it was written.
        let plain = build(true).unwrap_or_else(|_| written.clone());
        let (start, is_anchored) = beginning(pattern);
        Ok(Self {
            written,
            plain,
            start,
            is_anchored,
            is_address: pattern.contains("://") || pattern.contains(r":\/\/"),
        })
    }

    /// As [`PathPattern::may_match`].
    pub(crate) fn may_match(&self, text: &str, texts: &Texts) -> Result<bool, ArgumentsError> {
        texts.count(text)?;
        if self.written.is_match(text) || self.plain.is_match(text) {
            return Ok(true);
        }
        let spellings = texts.spellings(text, Reading::Generous)?;
        let mut at_home = spellings.home.iter().flat_map(|path| {
            let rest = &path[1..];
            HOMES.iter().map(move |home| {
                let user = if home.ends_with('/') { "me" } else { "" };
                format!("{home}{user}{rest}")
            })
        });
        let is_open = |start: &String| {
            let (scheme, rest) = start.split_once(':').unwrap_or((start, ""));
            let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
            (is_scheme && scheme.len() < start.len() && !rest.starts_with(' '))
                || "http".starts_with(&**start)
        };
        Ok(spellings.doubt == Doubt::All
            || (self.is_address && (spellings.is_unclear || spellings.open.iter().any(is_open)))
            || self.start.may_begin(&spellings, self.is_anchored)
            || spellings.texts.iter().any(|text| self.has(text))
            || at_home.any(|text| self.has(&text)))
    }

    /// As [`PathPattern::surely_matches`].
    pub(crate) fn surely_matches(&self, text: &str, texts: &Texts) -> Result<bool, ArgumentsError> {
        texts.count(text)?;
        if !self.written.is_match(text) {
            return Ok(false);
        }
        let spellings = texts.spellings(text, Reading::Strict)?;
        Ok(is_certain(&spellings) && spellings.texts.iter().all(|text| self.has(text)))
    }

    fn has(&self, text: &str) -> bool {
        let is_match =
            |text: &str| self.plain.is_match(text) || self.plain.is_match(&format!("{text}/"));
        let is_home = |home: &String| {
            let found = below(text, home);
            found.is_some_and(|text| is_match(&text) || is_match(&text.replacen('~', "$home", 1)))
        };
        is_match(text)
            || through_links(text).any(|text| is_match(&text))
            || (self.start.is_of_home && HOMES.iter().any(is_home))
    }
}

/// The literal beginning of an expression, and whether a text has to begin so.
fn beginning(pattern: &str) -> (Start, bool) {
    let mut rest = pattern;
    let mut is_anchored = false;
    // What stands in a class or a group, or beside another branch, need not be there.
    let mut is_whole = !pattern.contains('|');
    while let Some((begin, after)) = ["(?i)", "(?:", "(", "^", "\\A", "\\", "[", "file:"]
        .iter()
        .find_map(|begin| Some((*begin, rest.strip_prefix(begin)?)))
    {
        is_anchored |= matches!(begin, "^" | "\\A");
        is_whole &= !matches!(begin, "(?:" | "(" | "[");
        rest = after;
    }
    let rest = rest.to_lowercase();
    let path = rest.trim_start_matches('/');
    if path.len() < rest.len() {
        let path = if is_whole {
            literal(path)
        } else {
            String::new()
        };
        return (Start::new(&format!("/{path}"), None, false), is_anchored);
    }
    let home = ["~/", "$home/"];
    match home.iter().find_map(|home| rest.strip_prefix(home)) {
        Some(path) => {
            let path = if is_whole {
                literal(path)
            } else {
                String::new()
            };
            let below_home = Some(format!("~/{path}"));
            (Start::new("", below_home, true), is_anchored)
        }
        None => (Start::default(), is_anchored),
    }
}

/// The characters that every match of an expression begins with.
fn literal(pattern: &str) -> String {
    let mut found = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c) if !c.is_alphanumeric() => found.push(c),
                _ => break,
            },
            '*' | '?' | '{' => {
                found.pop();
                break;
            }
            '.' | '[' | '(' | ')' | '+' | '^' | '$' => break,
            c => found.push(c),
        }
    }
    found
}
