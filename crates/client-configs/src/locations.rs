//! Locations of the clients' configurations on each system.

use std::path::{Path, PathBuf};

use crate::client::Client;
use crate::error::Error;

/// The folders that locations are built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// The user's home directory.
    pub home: PathBuf,
    /// The directory for settings: `$XDG_CONFIG_HOME` or `~/.config`, `~/Library/Application Support`,
    /// or `%APPDATA%`.
    pub config: PathBuf,
    /// The current directory, whose project may have its own configuration.
    pub cwd: PathBuf,
    /// The operating system.
    pub os: Os,
    /// `CODEX_HOME`, which replaces `~/.codex`.
    pub codex_home: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`, which replaces the home directory for `.claude.json`.
    pub claude_config: Option<PathBuf>,
}

/// The operating systems with different locations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Os {
    Linux,
    MacOs,
    Windows,
}

impl Dirs {
    /// The directories of this process.
    pub fn current() -> Result<Self, Error> {
        let home = std::env::home_dir()
            .filter(|home| home.is_absolute())
            .ok_or(Error::NoHome)?;
        let cwd = std::env::current_dir().map_err(Error::io("find", Path::new(".")))?;
        let os = if cfg!(windows) {
            Os::Windows
        } else if cfg!(target_os = "macos") {
            Os::MacOs
        } else {
            Os::Linux
        };
        let mut dirs = Self::new(home, cwd, os);
        let moved = match os {
            Os::Linux => folder_from("XDG_CONFIG_HOME"),
            Os::MacOs => None,
            Os::Windows => folder_from("APPDATA"),
        };
        dirs.config = moved.unwrap_or(dirs.config);
        dirs.codex_home = folder_from("CODEX_HOME");
        dirs.claude_config = folder_from("CLAUDE_CONFIG_DIR");
        Ok(dirs)
    }

    /// The default directories of a system.
    pub fn new(home: PathBuf, cwd: PathBuf, os: Os) -> Self {
        let config = match os {
            Os::Linux => home.join(".config"),
            Os::MacOs => home.join("Library").join("Application Support"),
            Os::Windows => home.join("AppData").join("Roaming"),
        };
        Self {
            home,
            config,
            cwd,
            os,
            codex_home: None,
            claude_config: None,
        }
    }
}

fn folder_from(variable: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os(variable)?);
    folder.is_absolute().then_some(folder)
}

/// All files, with the user's own first.
pub(crate) fn all(client: Client, dirs: &Dirs) -> Vec<PathBuf> {
    let mut files = of_the_user(client, dirs);
    for file in of_the_project(client, &dirs.cwd) {
        // In the home directory, both may be the same file.
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

/// The user's own files.
pub(crate) fn of_the_user(client: Client, dirs: &Dirs) -> Vec<PathBuf> {
    let Dirs {
        home, config, os, ..
    } = dirs;
    // Two clients follow XDG on every system.
    let xdg = match os {
        Os::Linux => config.clone(),
        Os::MacOs | Os::Windows => home.join(".config"),
    };
    match client {
        Client::ClaudeDesktop => {
            let mut files = vec![under(config, &["Claude", "claude_desktop_config.json"])];
            if *os == Os::Windows {
                // The application from the Microsoft Store has a sandboxed directory.
                files.push(under(
                    home,
                    &[
                        "AppData",
                        "Local",
                        "Packages",
                        "Claude_pzs8sxrjxfjjc",
                        "LocalCache",
                        "Roaming",
                        "Claude",
                        "claude_desktop_config.json",
                    ],
                ));
            }
            files
        }
        Client::ClaudeCode => {
            let folder = dirs.claude_config.as_ref().unwrap_or(home);
            vec![folder.join(".claude.json")]
        }
        Client::Cursor => vec![under(home, &[".cursor", "mcp.json"])],
        Client::VsCode => ["Code", "Code - Insiders", "VSCodium"]
            .map(|variant| under(config, &[variant, "User", "mcp.json"]))
            .into(),
        Client::Windsurf => vec![
            under(home, &[".codeium", "windsurf", "mcp_config.json"]),
            // The plug-in for other editors.
            under(home, &[".codeium", "mcp_config.json"]),
        ],
        Client::Zed => match os {
            Os::Linux | Os::MacOs => vec![under(&xdg, &["zed", "settings.json"])],
            Os::Windows => vec![under(config, &["Zed", "settings.json"])],
        },
        Client::OpenCode => ["opencode.json", "opencode.jsonc"]
            .map(|name| under(&xdg, &["opencode", name]))
            .into(),
        Client::Codex => {
            let folder = dirs.codex_home.clone();
            let folder = folder.unwrap_or_else(|| home.join(".codex"));
            vec![folder.join("config.toml")]
        }
        Client::GeminiCli => vec![under(home, &[".gemini", "settings.json"])],
    }
}

/// Tests if a client seems to be installed: one of the user's files exists, or the directory for one.
pub(crate) fn is_installed(client: Client, dirs: &Dirs) -> bool {
    let is_there = |file: PathBuf| {
        let folder = file.parent().filter(|folder| *folder != dirs.home);
        file.symlink_metadata().is_ok() || folder.is_some_and(Path::is_dir)
    };
    // Claude Code has its file directly in the home directory, and the directory beside it.
    let beside =
        (client == Client::ClaudeCode).then(|| under(&dirs.home, &[".claude", "settings.json"]));
    of_the_user(client, dirs)
        .into_iter()
        .chain(beside)
        .any(is_there)
}

/// The most directories between a file and the root of its repository.
const DEPTH: usize = 128;

/// Returns `true` if a file belongs, or may belong, to a repository.
pub(crate) fn is_of_a_project(file: &Path, dirs: &Dirs) -> bool {
    let target = real(&dirs.cwd.join(file));
    let own = Client::ALL.map(|client| of_the_user(client, dirs));
    let own = own.iter().flatten();
    let mut own = own.filter(|own| !is_moved_into_a_project(own, dirs));
    !own.any(|own| real(own) == target) && is_in_a_project(file, dirs)
}

/// Returns `true` if an environment variable moves a file of the user into a project.
pub(crate) fn is_moved_into_a_project(file: &Path, dirs: &Dirs) -> bool {
    let usual = Dirs::new(dirs.home.clone(), dirs.cwd.clone(), dirs.os);
    let is_usual = Client::ALL
        .iter()
        .any(|client| of_the_user(*client, &usual).iter().any(|own| own == file));
    !is_usual && is_in_a_project(file, dirs)
}

/// Tests if a directory is the home directory or one above it. They belong to the user, and are no projects.
pub(crate) fn is_home_or_above(folder: &Path, dirs: &Dirs) -> bool {
    let homes = [&dirs.home, &real(&dirs.home)];
    let folders = [folder, &real(folder)];
    let mut folders = folders.iter();
    folders.any(|folder| homes.iter().any(|home| home.starts_with(folder)))
}

/// Returns `true` if a file is in a project by its location: it has the name of a project's file, it is
/// below the current directory, or a directory above it is a repository. A link is in a project if
/// either the link or its target is.
fn is_in_a_project(file: &Path, dirs: &Dirs) -> bool {
    let given = dirs.cwd.join(file);
    let homes = [dirs.home.clone(), real(&dirs.home)];
    let folders = [dirs.cwd.clone(), real(&dirs.cwd)];
    // The home directory and the directories above it belong to the user, and so does a file directly in
    // the home directory.
    let is_own = |folder: &Path| homes.iter().any(|home| home.starts_with(folder));
    [real(&given), given].iter().any(|file| {
        let above = || file.ancestors().skip(1).take(DEPTH);
        let is_named_so = above().take(2).any(|folder| {
            let files = Client::ALL.map(|client| of_the_project(client, folder));
            files.iter().flatten().any(|known| known == file)
        });
        let is_in_home = file.parent().is_some_and(is_own);
        is_named_so
            || (folders.iter().any(|folder| file.starts_with(folder)) && !is_in_home)
            || above()
                .take_while(|folder| !is_own(folder))
                .any(|folder| folder.join(".git").exists())
    })
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn of_the_project(client: Client, project: &Path) -> Vec<PathBuf> {
    match client {
        Client::ClaudeDesktop | Client::Windsurf => Vec::new(),
        Client::ClaudeCode => vec![project.join(".mcp.json")],
        Client::Cursor => vec![under(project, &[".cursor", "mcp.json"])],
        Client::VsCode => vec![under(project, &[".vscode", "mcp.json"])],
        Client::Zed => vec![under(project, &[".zed", "settings.json"])],
        Client::OpenCode => vec![
            project.join("opencode.json"),
            project.join("opencode.jsonc"),
            under(project, &[".opencode", "opencode.json"]),
            under(project, &[".opencode", "opencode.jsonc"]),
        ],
        Client::Codex => vec![under(project, &[".codex", "config.toml"])],
        Client::GeminiCli => vec![under(project, &[".gemini", "settings.json"])],
    }
}

fn under(folder: &Path, names: &[&str]) -> PathBuf {
    let mut path = folder.to_owned();
    path.extend(names);
    path
}
