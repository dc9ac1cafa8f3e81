//! Locations of the configuration file and of all other files.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use switchboard_files::{create_dir, private_dir};
use switchboard_text::percent;

/// Name of the configuration file in its directory.
const CONFIG_FILE: &str = "switchboard.json";

/// Environment variable with the path of the home.
const HOME_VARIABLE: &str = "SWITCHBOARD_HOME";

/// The longest socket path, in bytes, that every supported system accepts. macOS has 104, including the
/// terminating zero.
const SOCKET_PATH_MAX: usize = 103;

/// The longest file name made from a server's name, in bytes. File systems allow 255, and rotated logs
/// add a suffix.
const LOG_NAME_MAX: usize = 120;

/// The files and directories of one gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    config_file: PathBuf,
    data: PathBuf,
}

/// The reason why there is no home.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Neither a home nor the user's home directory is known.
    #[error(
        "cannot find Switchboard's home directory: neither --home nor SWITCHBOARD_HOME is set, and \
         your home directory is unknown"
    )]
    Unknown,
    /// The given path cannot be used.
    #[error("cannot use {what} {path:?}")]
    Path {
        /// The origin of the path.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// The underlying I/O error.
        #[source]
        source: io::Error,
    },
    /// A directory cannot be created, or not with the required mode.
    #[error("cannot prepare the directory {}", path.display())]
    Create {
        /// The directory.
        path: PathBuf,
        /// The underlying I/O error.
        #[source]
        source: io::Error,
    },
    /// The directory of a server cannot be created, or is not private to the user.
    #[error("cannot prepare the directory {}: {reason}", path.display())]
    ServerDir {
        /// The directory.
        path: PathBuf,
        /// The underlying I/O error.
        reason: io::Error,
    },
    /// The socket's path is longer than systems allow.
    #[error(
        "the path {} has {} bytes, but a socket's path may have at most {SOCKET_PATH_MAX}",
        path.display(), path.as_os_str().len()
    )]
    TooLong {
        /// The socket's path.
        path: PathBuf,
    },
}

impl HomeError {
    /// A hint for the user, separate from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Unknown => "set one with --home DIR".into(),
            Self::Path { .. } => "use the path of a directory or file that you can write to".into(),
            Self::Create { .. } => {
                "check its owner and permissions, or use another --home DIR".into()
            }
            Self::ServerDir { .. } => {
                "move the existing entry away, or set \"cwd\" for the server".into()
            }
            Self::TooLong { .. } => "use a shorter --home DIR".into(),
        })
    }
}

impl Home {
    /// Finds the home: `home` (from `--home`), else `$SWITCHBOARD_HOME`, else the platform's directories
    /// for configuration and data. `config` (from `--config`) overrides the file only. Nothing is
    /// created and nothing is read.
    pub fn locate(home: Option<&Path>, config: Option<&Path>) -> Result<Self, HomeError> {
        Self::locate_with(home, config, &|name| std::env::var_os(name))
    }

    fn locate_with(
        home: Option<&Path>,
        config: Option<&Path>,
        env: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, HomeError> {
        let variable = env(HOME_VARIABLE)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from);
        let (folder, data) = match (home, &variable) {
            (Some(home), _) => one_folder("--home", home)?,
            (None, Some(home)) => one_folder(HOME_VARIABLE, home)?,
            (None, None) => platform_folders(env)?,
        };
        let config_file = match config {
            Some(file) => absolute("--config", file)?,
            None => folder.join(CONFIG_FILE),
        };
        Ok(Self { config_file, data })
    }

    /// `switchboard.json`.
    pub fn config_file(&self) -> &Path {
        &self.config_file
    }

    /// `switchboard.db`, the store.
    pub fn database(&self) -> PathBuf {
        self.data.join("switchboard.db")
    }

    /// `catalog/`, the last known lists of the servers.
    pub fn catalog(&self) -> PathBuf {
        self.data.join("catalog")
    }

    /// `trust/`, the approved definitions.
    pub fn trust(&self) -> PathBuf {
        self.data.join("trust")
    }

    /// `search/`, the feedback from searches, and vectors that are expensive to compute.
    pub fn search(&self) -> PathBuf {
        self.data.join("search")
    }

    /// `models/`, one directory per model.
    pub fn models(&self) -> PathBuf {
        self.data.join("models")
    }

    /// `results/`, the full text of results that were cut.
    pub fn results(&self) -> PathBuf {
        self.data.join("results")
    }

    /// `logs/`.
    pub fn logs(&self) -> PathBuf {
        self.data.join("logs")
    }

    /// `logs/NAME.log`. Every server has its own file: characters other than letters, digits, `_`, `-`
    /// and inner dots are encoded as `%XX`, and a long name is cut and gets a hash.
    pub fn log_of(&self, server: &str) -> PathBuf {
        self.logs().join(format!("{}.log", file_name(server)))
    }

    /// `servers/NAME.IDENTITY/`, the working directory of a server without a configured one. `NAME` is
    /// encoded as in [`log_of`](Self::log_of). `identity` must be unique for each name and program: a
    /// program must not find the files of another one, and some file systems ignore case.
    pub fn server_dir(&self, server: &str, identity: &str) -> PathBuf {
        let name = format!("{}.{identity}", file_name(server));
        self.servers().join(name)
    }

    /// Creates the directory of a server, private to its owner.
    pub fn create_server_dir(&self, server: &str, identity: &str) -> Result<PathBuf, HomeError> {
        let path = self.server_dir(server, identity);
        match private_dir(&path) {
            Ok(()) => Ok(path),
            Err(reason) => Err(HomeError::ServerDir { path, reason }),
        }
    }

    /// The directories of all identities of a server. Reads `servers/`.
    pub fn server_dirs(&self, server: &str) -> Vec<PathBuf> {
        let name = file_name(server);
        let is_its = |path: &PathBuf| {
            // An identity has no dot; a name may have some.
            let file = path.file_name().and_then(|file| file.to_str());
            let parts = file.and_then(|file| file.rsplit_once('.'));
            parts.is_some_and(|(of, _)| of == name)
        };
        let entries = std::fs::read_dir(self.servers()).into_iter().flatten();
        let mut dirs: Vec<_> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(is_its)
            .collect();
        dirs.sort();
        dirs
    }

    fn servers(&self) -> PathBuf {
        self.data.join("servers")
    }

    /// The base directory for relative paths in the configuration: that of its file.
    pub fn base(&self) -> &Path {
        self.config_file.parent().unwrap_or(Path::new("/"))
    }

    /// `run/`, for files that live as long as the gateway. Only its owner has access.
    pub fn run(&self) -> PathBuf {
        self.data.join("run")
    }

    /// `run/switchboard.sock`.
    pub fn socket(&self) -> PathBuf {
        self.run().join("switchboard.sock")
    }

    /// `run/token`, the token that clients send.
    pub fn token_file(&self) -> PathBuf {
        self.run().join("token")
    }

    /// `run/groups`, records of the process groups to end after a crash.
    pub fn groups(&self) -> PathBuf {
        self.run().join("groups")
    }

    /// `secrets/`, one file per `${secret:NAME}`.
    pub fn secrets(&self) -> PathBuf {
        self.data.join("secrets")
    }

    /// `vault/`, the encrypted secrets.
    pub fn vault(&self) -> PathBuf {
        self.data.join("vault")
    }

    /// `vault.key`, the key of the vault, unless it is in the environment.
    pub fn vault_key(&self) -> PathBuf {
        self.data.join("vault.key")
    }

    /// `seal.key`, the key for signed tokens that stay valid after a restart.
    pub fn seal_key(&self) -> PathBuf {
        self.data.join("seal.key")
    }

    /// `rules.json`, the remembered decisions: a copy of the store's, which can be read immediately.
    pub fn rules(&self) -> PathBuf {
        self.data.join("rules.json")
    }

    /// `tokens.json`, the tokens of clients, without their secrets.
    pub fn tokens(&self) -> PathBuf {
        self.data.join("tokens.json")
    }

    /// `first-contact.json`, the servers that were started but never listed.
    pub fn first_contact(&self) -> PathBuf {
        self.data.join("first-contact.json")
    }

    /// `run/lock`, held by the single gateway of this home.
    pub fn lock_file(&self) -> PathBuf {
        self.run().join("lock")
    }

    /// `run/instance`, the name that marks the containers of this home's gateway.
    pub fn instance_file(&self) -> PathBuf {
        self.run().join("instance")
    }

    /// Creates the directories, private to the owner. Existing directories are left unchanged, except
    /// `run/` and `secrets/`: they are closed to other users, and rejected if they are links or belong
    /// to another user.
    pub fn create(&self) -> Result<(), HomeError> {
        let socket = self.socket();
        if socket.as_os_str().len() > SOCKET_PATH_MAX {
            return Err(HomeError::TooLong { path: socket });
        }
        if let Some(folder) = self.config_file.parent() {
            make(folder)?;
        }
        for folder in [&self.data, &self.catalog(), &self.logs()] {
            make(folder)?;
        }
        for folder in [self.run(), self.secrets()] {
            private_dir(&folder).map_err(|source| create_error(&folder, source))?;
        }
        Ok(())
    }
}

/// One directory for both configuration and data.
fn one_folder(what: &'static str, path: &Path) -> Result<(PathBuf, PathBuf), HomeError> {
    let folder = absolute(what, path)?;
    Ok((folder.clone(), folder))
}

/// Makes a path absolute, so that it stays valid when the working directory changes.
fn absolute(what: &'static str, path: &Path) -> Result<PathBuf, HomeError> {
    std::path::absolute(path).map_err(|source| HomeError::Path {
        what,
        path: path.to_owned(),
        source,
    })
}

#[cfg(target_os = "macos")]
fn platform_folders(
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(PathBuf, PathBuf), HomeError> {
    let folder = user_folder(env)?.join("Library/Application Support/switchboard");
    Ok((folder.clone(), folder))
}

/// The XDG directories. A relative value of a variable is ignored, as the specification requires.
#[cfg(not(target_os = "macos"))]
fn platform_folders(
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Result<(PathBuf, PathBuf), HomeError> {
    let folder = |variable, default| -> Result<PathBuf, HomeError> {
        let base = match absolute_variable(env, variable) {
            Some(base) => base,
            None => user_folder(env)?.join(default),
        };
        Ok(base.join("switchboard"))
    };
    Ok((
        folder("XDG_CONFIG_HOME", ".config")?,
        folder("XDG_DATA_HOME", ".local/share")?,
    ))
}

fn user_folder(env: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, HomeError> {
    absolute_variable(env, "HOME").ok_or(HomeError::Unknown)
}

fn absolute_variable(env: &dyn Fn(&str) -> Option<OsString>, name: &str) -> Option<PathBuf> {
    env(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

fn make(folder: &Path) -> Result<(), HomeError> {
    create_dir(folder).map_err(|source| create_error(folder, source))
}

fn create_error(folder: &Path, source: io::Error) -> HomeError {
    HomeError::Create {
        path: folder.to_owned(),
        source,
    }
}

/// A unique file name for the name of a server.
fn file_name(server: &str) -> String {
    if server.is_empty() {
        return "%".to_owned();
    }
    let mut name = percent::encode(server, b"-._");
    if name.starts_with('.') {
        name.replace_range(..1, "%2E");
    }
    if name.len() > LOG_NAME_MAX {
        name.truncate(LOG_NAME_MAX - 17);
        return format!("{name}-{:016x}", fnv(server));
    }
    name
}

/// FNV-1a, a hash that is stable across releases.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locate(home: Option<&str>, variables: &[(&str, &str)]) -> Result<Home, HomeError> {
        let env = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        };
        Home::locate_with(home.map(Path::new), None, &env)
    }

    fn folders(home: Option<&str>, variables: &[(&str, &str)]) -> (PathBuf, PathBuf) {
        let home = locate(home, variables).unwrap();
        (home.config_file, home.data)
    }

    #[test]
    fn option_overrides_variable() {
        let variables = [("SWITCHBOARD_HOME", "/v"), ("HOME", "/u")];
        let at = |folder: &str| (Path::new(folder).join(CONFIG_FILE), PathBuf::from(folder));
        assert_eq!(folders(Some("/h"), &variables), at("/h"));
        assert_eq!(folders(None, &variables), at("/v"));
        let here = std::env::current_dir().unwrap().join("v");
        assert_eq!(folders(None, &[("SWITCHBOARD_HOME", "v")]).1, here);
    }

    #[cfg(not(target_os = "macos"))]
    #[test]
    fn xdg_directories_are_used() {
        for (variables, config, data) in [
            (&[("HOME", "/u")][..], "/u/.config", "/u/.local/share"),
            (
                &[("HOME", "/u"), ("SWITCHBOARD_HOME", "")],
                "/u/.config",
                "/u/.local/share",
            ),
            (
                &[("HOME", "/u"), ("XDG_CONFIG_HOME", "/c")],
                "/c",
                "/u/.local/share",
            ),
            (
                &[("HOME", "/u"), ("XDG_DATA_HOME", "/d")],
                "/u/.config",
                "/d",
            ),
            (
                &[("HOME", "/u"), ("XDG_DATA_HOME", "d")],
                "/u/.config",
                "/u/.local/share",
            ),
            (
                &[("XDG_CONFIG_HOME", "/c"), ("XDG_DATA_HOME", "/d")],
                "/c",
                "/d",
            ),
        ] {
            let expected = (
                Path::new(config).join("switchboard").join(CONFIG_FILE),
                Path::new(data).join("switchboard"),
            );
            assert_eq!(folders(None, variables), expected, "{variables:?}");
        }
    }

    #[test]
    fn missing_home_is_an_error() {
        for variables in [&[][..], &[("HOME", "")], &[("HOME", "relative")]] {
            let error = locate(None, variables).unwrap_err();
            assert!(
                matches!(error, HomeError::Unknown),
                "{variables:?}: {error}"
            );
        }
    }
}
