//! The supported clients.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::Error;
use crate::locations::{self, Dirs};

/// A program that uses MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Client {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    VsCode,
    Windsurf,
    Zed,
    OpenCode,
    Codex,
    GeminiCli,
}

impl Client {
    /// Every supported client.
    pub const ALL: [Self; 9] = [
        Self::ClaudeDesktop,
        Self::ClaudeCode,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::Zed,
        Self::OpenCode,
        Self::Codex,
        Self::GeminiCli,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "claude-desktop",
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
            Self::OpenCode => "opencode",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini",
        }
    }

    /// The product name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::OpenCode => "OpenCode",
            Self::Codex => "Codex",
            Self::GeminiCli => "Gemini CLI",
        }
    }

    /// Returns `true` if its configuration can have servers over HTTP with a token.
    pub fn connects_over_http(self) -> bool {
        self.http_entry("", "").is_some()
    }

    /// The possible locations of its configuration: first the user's own, in order of likelihood, then
    /// that of the project in the current folder.
    pub fn config_files(self, dirs: &Dirs) -> Vec<PathBuf> {
        locations::all(self, dirs)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Client {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self, Error> {
        let wanted: String = given
            .chars()
            .take(40)
            .map(|letter| match letter {
                '_' | ' ' => '-',
                other => other.to_ascii_lowercase(),
            })
            .collect();
        if let Some(client) = Self::ALL.into_iter().find(|client| client.name() == wanted) {
            return Ok(client);
        }
        // A prefix of a name, or a name with a suffix, is a better match than any typo.
        let is_part = |name: &str| {
            !wanted.is_empty() && (name.starts_with(&wanted) || wanted.starts_with(name))
        };
        let part = Self::ALL
            .into_iter()
            .filter(|client| is_part(client.name()));
        let part = part.min_by_key(|client| client.name().len());
        let nearest = part.or_else(|| {
            let near =
                switchboard_text::nearest(&wanted, Self::ALL.iter().map(|client| client.name()));
            Self::ALL
                .into_iter()
                .find(|client| Some(client.name()) == near)
        });
        Err(Error::UnknownClient {
            given: given.to_owned(),
            nearest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        for client in Client::ALL {
            assert_eq!(client.name().parse::<Client>().unwrap(), client);
        }
        assert_eq!(
            "Claude_Desktop".parse::<Client>().unwrap(),
            Client::ClaudeDesktop
        );
    }

    #[test]
    fn unknown_name_suggests_the_nearest() {
        for (given, answer) in [
            ("vs-code", "did you mean `vscode`?"),
            ("claude", "did you mean `claude-code`?"),
            ("gemini-cli", "did you mean `gemini`?"),
            ("emacs-of-old", "the clients are claude-desktop, "),
        ] {
            let error = given.parse::<Client>().unwrap_err();
            assert_eq!(error.to_string(), format!("there is no client `{given}`"));
            assert!(error.hint().unwrap().contains(answer), "{error:?}");
        }
    }
}
