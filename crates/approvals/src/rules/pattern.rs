//! Patterns for values: held against every [spelling](super::spelling) of a text.
//!
//! Letter case does not count: the file systems of macOS and Windows ignore it. On others a rule
//! holds back a little more than it says.

use regex_lite::{Regex, RegexBuilder};

use super::condition::Reading;
use super::glob::Glob;
use super::limits::PROGRAM_BYTES;
use super::spelling::{Spellings, folded};

/// Where home directories are. Names of users follow those that end in a slash.
const HOMES: [&str; 6] = [
    "/home/",
    "/users/",
    "/var/home/",
    "c:/users/",
    "/root",
    "/var/root",
];

/// A pattern with wildcards, or a text, for paths and addresses.
#[derive(Clone, Debug)]
pub(crate) struct PathPattern {
    /// As it was written.
    written: Glob,
    /// The same without case.
    plain: Glob,
    /// The same as a path is spelled shortest.
    normal: Glob,
    /// The same from the home directory on, if it leads there.
    below_home: Option<Glob>,
    /// Whether it was written from the home directory on.
    is_of_home: bool,
    /// What it begins with up to the first wildcard.
    head: String,
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
        Self {
            written: written.clone(),
            plain: Glob::from_marked(&text),
            normal: Glob::from_marked(&normal),
            below_home: below_home.map(|text| Glob::from_marked(&text)),
            is_of_home,
            head,
        }
    }

    /// Whether a server may read the text as one that the pattern means.
    pub(crate) fn may_match(&self, text: &str) -> bool {
        if self.written.matches(text) {
            return true;
        }
        let spellings = Spellings::of(text, Reading::Generous);
        if spellings.texts.iter().any(|text| self.has(text)) {
            return true;
        }
        if !spellings.home.is_empty() && self.has_home(&spellings) {
            return true;
        }
        if self.head.is_empty() {
            // Relative paths have directories before them.
            let somewhere = |path: &String| self.normal.matches(&format!("/\u{fffc}/{path}"));
            return spellings.relative.iter().any(somewhere);
        }
        self.is_absolute() && (spellings.is_unclear || self.meets(&spellings))
    }

    /// Whether the text matches, and so does every text that a server may make of it.
    pub(crate) fn surely_matches(&self, text: &str) -> bool {
        if !self.written.matches(text) {
            return false;
        }
        if self.written.is_exact() || self.written.is_any() {
            return true;
        }
        let spellings = Spellings::of(text, Reading::Strict);
        !spellings.climbs
            && !spellings.is_unclear
            && spellings.texts.iter().all(|text| self.has(text))
    }

    fn has(&self, text: &str) -> bool {
        // A directory is the same with a slash and without.
        let is_directory = || self.normal.matches(&format!("{text}/"));
        self.plain.matches(text)
            || self.normal.matches(text)
            || is_directory()
            || (self.is_of_home
                && HOMES
                    .iter()
                    .filter_map(|home| below(text, home))
                    .any(|text| self.has_below_home(&text)))
    }

    fn has_below_home(&self, text: &str) -> bool {
        let below = self.below_home.as_ref();
        below.is_some_and(|glob| glob.matches(text) || glob.matches(&format!("{text}/")))
    }

    /// The same of a path that begins at a home directory.
    fn has_home(&self, spellings: &Spellings) -> bool {
        let head = &self.head;
        let is_wide = self.is_absolute() && HOMES.iter().any(|home| home.starts_with(&**head));
        is_wide || spellings.home.iter().any(|text| self.has_below_home(text))
    }

    /// Whether it says where a path begins.
    fn is_absolute(&self) -> bool {
        let is_drive = |head: &str| {
            head.as_bytes().get(1) == Some(&b':')
                && head.starts_with(|c: char| c.is_ascii_alphabetic())
        };
        self.head.starts_with('/') || self.head.contains("://") || is_drive(&self.head)
    }

    /// Whether the text has wildcards of its own, and may mean the same: a shell expands them.
    fn meets(&self, spellings: &Spellings) -> bool {
        spellings.texts.iter().any(|text| {
            let Some(at) = text.find(['*', '?', '[', '{']) else {
                return false;
            };
            let start = &text[..at];
            (start.starts_with('/') || start.contains("://"))
                && (self.head.starts_with(start) || start.starts_with(&self.head))
        })
    }
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
    let text = text.replace('\\', "/");
    let path =
        text.strip_prefix("file:")
            .map_or(text.as_str(), |rest| match rest.strip_prefix("//") {
                Some(after) => after.find('/').map_or("/", |at| &after[at..]),
                None => rest,
            });
    let (prefix, path) = match path.split_once("://") {
        Some((scheme, after)) => {
            let at = after.find('/').unwrap_or(after.len());
            path.split_at(scheme.len() + 3 + at)
        }
        None => ("", path),
    };
    let path = path.strip_prefix("/private").map_or(path, |rest| {
        let is_linked = ["/etc", "/var", "/tmp"]
            .iter()
            .any(|to| rest.starts_with(to));
        if is_linked { rest } else { path }
    });
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        let is_plain = |part: &&str| *part != ".." && !part.contains([Glob::ONE, Glob::MANY]);
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(is_plain) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let start = if path.starts_with('/') { "/" } else { "" };
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
    /// Whether it says where a path begins.
    is_absolute: bool,
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
        Ok(Self {
            written,
            plain,
            is_absolute: begins_at_root(pattern),
        })
    }

    /// As [`PathPattern::may_match`].
    pub(crate) fn may_match(&self, text: &str) -> bool {
        if self.written.is_match(text) || self.plain.is_match(text) {
            return true;
        }
        let spellings = Spellings::of(text, Reading::Generous);
        let at_home = spellings.home.iter().flat_map(|path| {
            let rest = &path[1..];
            HOMES.map(|home| {
                let user = if home.ends_with('/') { "me" } else { "" };
                format!("{home}{user}{rest}")
            })
        });
        let at_home: Vec<String> = at_home.collect();
        (self.is_absolute && spellings.is_unclear)
            || spellings
                .texts
                .iter()
                .chain(&at_home)
                .any(|text| self.plain.is_match(text) || self.plain.is_match(&format!("{text}/")))
    }

    /// As [`PathPattern::surely_matches`].
    pub(crate) fn surely_matches(&self, text: &str) -> bool {
        if !self.written.is_match(text) {
            return false;
        }
        let spellings = Spellings::of(text, Reading::Strict);
        !spellings.climbs
            && !spellings.is_unclear
            && spellings
                .texts
                .iter()
                .all(|text| self.plain.is_match(text) || self.plain.is_match(&format!("{text}/")))
    }
}

/// Whether an expression begins with a path that is absolute.
fn begins_at_root(pattern: &str) -> bool {
    let mut rest = pattern;
    while let Some(after) = ["(?i)", "(?:", "(", "^", "\\A", "\\", "[", "file:"]
        .iter()
        .find_map(|start| rest.strip_prefix(start))
    {
        rest = after;
    }
    rest.starts_with('/')
}
