//! The environment of a local server: a fixed list of variables from the gateway's own environment, then
//! the variables that its entry inherits or sets.
//!
//! Everything else is withheld: the gateway's environment contains keys of other servers, of the user
//! and of the client that started it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::home::Home;
use crate::model::{CommandLine, Inherit};

/// The variable with the key of the vault, which no server gets.
const VAULT_KEY: &str = "SWITCHBOARD_KEY";

/// Variables that every server gets. Names are listed individually: families such as `npm_config_*`,
/// `UV_*` and `PIP_*` also have members that contain credentials or name code to run.
const PASSED: &[&str] = &[
    // The user and the system.
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "USER",
    "XDG_BIN_HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_CURRENT_DESKTOP",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_TYPE",
    "XDG_STATE_HOME",
    // Language, time and terminal. `LC_*` is passed as well.
    "COLORTERM",
    "LANG",
    "LANGUAGE",
    "NO_COLOR",
    "TERM",
    "TZ",
    // Certificates.
    "CURL_CA_BUNDLE",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    // Proxies. They may contain a password, but without them a server behind a proxy has no network.
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    // Locations of language toolchains, which programs on PATH look up.
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "DOTNET_ROOT",
    "JAVA_HOME",
    "MISE_DATA_DIR",
    "NVM_DIR",
    "PYENV_ROOT",
    "VOLTA_HOME",
    // uv and pip.
    "PIP_CACHE_DIR",
    "PIP_CERT",
    "PIP_CONFIG_FILE",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_TRUSTED_HOST",
    "UV_CACHE_DIR",
    "UV_CONFIG_FILE",
    "UV_HTTP_TIMEOUT",
    "UV_INDEX_STRATEGY",
    "UV_KEYRING_PROVIDER",
    "UV_LINK_MODE",
    "UV_NATIVE_TLS",
    "UV_NO_CACHE",
    "UV_OFFLINE",
    "UV_PYTHON",
    "UV_PYTHON_DOWNLOADS",
    "UV_PYTHON_INSTALL_DIR",
    "UV_PYTHON_PREFERENCE",
    "UV_SYSTEM_CERTS",
    "UV_TOOL_BIN_DIR",
    "UV_TOOL_DIR",
];

/// Addresses of package indexes, passed unless they contain credentials.
const INDEXES: &[&str] = &[
    "PIP_EXTRA_INDEX_URL",
    "PIP_INDEX_URL",
    "PIP_PROXY",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_PYTHON_INSTALL_MIRROR",
];

/// npm settings that are passed as `npm_config_NAME`, in any letter case.
const NPM: &[&str] = &[
    "ca",
    "cache",
    "cafile",
    "fetch_retries",
    "fetch_timeout",
    "https_proxy",
    "loglevel",
    "noproxy",
    "offline",
    "prefer_offline",
    "proxy",
    "registry",
    "strict_ssl",
    "update_notifier",
    "userconfig",
];

/// The most directories between a directory and the root of its repository.
const DEPTH: usize = 128;

/// The directory in which the gateway was started, and who started it.
#[derive(Clone, Copy, Debug)]
pub enum Started<'a> {
    /// A client, in its working directory. The directory may be another person's, repository or not.
    ByClient(&'a Path),
    /// The user or a service. A repository may be another person's; any other directory is the user's
    /// own.
    ByUser(&'a Path),
}

impl Started<'_> {
    /// The directory that no server's variables may point into: the repository that contains the
    /// starting directory, or the client's working directory. Never the root of the file system or a
    /// directory that contains the user's home.
    fn untrusted(self, home: Option<&OsStr>) -> Option<PathBuf> {
        let (Self::ByClient(directory) | Self::ByUser(directory)) = self;
        let directory = resolved(directory);
        let home = home.map(|home| resolved(Path::new(home)));
        let is_own = |dir: &Path| {
            dir.parent().is_none() || home.as_ref().is_some_and(|home| home.starts_with(dir))
        };
        let foreign = || directory.ancestors().take_while(|dir| !is_own(dir));
        let root = foreign().take(DEPTH).find(|dir| dir.join(".git").exists());
        let root = match self {
            Self::ByClient(_) => root.or_else(|| foreign().next()),
            Self::ByUser(_) => root,
        };
        root.map(ToOwned::to_owned)
    }
}

/// The gateway's own environment, and the part of it that each server gets.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    /// Entries of `PATH` that were dropped.
    dropped: Vec<PathBuf>,
    /// The untrusted directory in which the gateway was started. No variable of a server may point into
    /// it.
    untrusted: Option<PathBuf>,
}

impl Environment {
    /// The environment of this process.
    pub fn current(started: Option<Started<'_>>) -> Self {
        Self::new(std::env::vars_os(), started)
    }

    /// Creates an environment of these variables. `PATH` keeps only absolute directories outside the
    /// untrusted directory in which the gateway was started: a relative one would lead into the working
    /// directory of the client that started it.
    pub fn new(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        started: Option<Started<'_>>,
    ) -> Self {
        let mut variables: BTreeMap<_, _> = variables.into_iter().collect();
        let home = variables.get(OsStr::new("HOME"));
        let untrusted =
            started.and_then(|started| started.untrusted(home.map(OsString::as_os_str)));
        let mut dropped = Vec::new();
        if let Some(path) = variables.remove(OsStr::new("PATH")) {
            let kept = search_path(&path, untrusted.as_deref(), &mut dropped);
            variables.extend(kept.map(|path| ("PATH".into(), path)));
        }
        Self {
            variables,
            dropped,
            untrusted,
        }
    }

    /// The entries of `PATH` that were dropped, in order.
    pub fn dropped(&self) -> &[PathBuf] {
        &self.dropped
    }

    /// The value of a variable.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.variables.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// All variables.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let all = self.variables.iter();
        all.map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The variables that a server is started with: first the list that every server gets, then the
    /// inherited variables of its entry, then the variables that the entry sets. `PATH` has only
    /// absolute directories.
    pub fn of_server(&self, line: &CommandLine) -> BTreeMap<OsString, OsString> {
        let mut environment: BTreeMap<OsString, OsString> = self
            .variables
            .iter()
            .filter(|(name, value)| self.is_passed(name, value) || line.inherits(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let own = line.env.iter();
        environment.extend(own.map(|(name, value)| (name.into(), value.into())));
        if let Some(path) = environment.remove(OsStr::new("PATH")) {
            let kept = search_path(&path, None, &mut Vec::new());
            environment.extend(kept.map(|path| ("PATH".into(), path)));
        }
        environment
    }

    /// Returns `true` if a variable is set here and a server with this entry does not get it.
    pub(crate) fn withholds(&self, name: &str, line: &CommandLine) -> bool {
        let value = self.get(name).filter(|value| !value.is_empty());
        value.is_some_and(|value| {
            !self.is_passed(OsStr::new(name), value)
                && !line.inherits(OsStr::new(name))
                && !line.env.contains_key(name)
        })
    }

    /// Returns `true` if every server gets this variable.
    fn is_passed(&self, name: &OsStr, value: &OsStr) -> bool {
        let (Some(name), text) = (name.to_str(), value.to_string_lossy()) else {
            return false;
        };
        // An exported shell function is code.
        if text.starts_with("()") || !(is_listed(name) || (is_index(name) && !text.contains('@'))) {
            return false;
        }
        let outside = |root: &PathBuf| !leads_into(value, root);
        name == "PATH" || self.untrusted.as_ref().is_none_or(outside)
    }
}

/// Shows the number of variables only, since their values may be secrets.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.len())
            .field("dropped", &self.dropped)
            .field("untrusted", &self.untrusted)
            .finish()
    }
}

impl CommandLine {
    /// The configured working directory. A relative path is relative to the directory of the
    /// configuration file.
    pub fn directory(&self, home: &Home) -> Option<PathBuf> {
        self.cwd.as_ref().map(|cwd| home.base().join(cwd))
    }

    /// The program: a name to look up in `PATH`, or an absolute path. A relative path is relative to the
    /// configured working directory, or else to the directory of the configuration file.
    pub fn program(&self, home: &Home) -> PathBuf {
        if !self.command.contains('/') {
            return PathBuf::from(&self.command);
        }
        let from = self.directory(home);
        from.unwrap_or_else(|| home.base().to_owned())
            .join(&self.command)
    }

    fn inherits(&self, name: &OsStr) -> bool {
        if name == VAULT_KEY {
            return false;
        }
        match &self.inherit_env {
            Inherit::All => true,
            Inherit::Names(names) => names.iter().any(|known| OsStr::new(known) == name),
        }
    }
}

fn is_listed(name: &str) -> bool {
    PASSED.contains(&name)
        || name.starts_with("LC_")
        || npm_setting(name).is_some_and(|setting| NPM.contains(&&*setting))
}

fn is_index(name: &str) -> bool {
    let is_scope = |setting: String| setting.starts_with('@') && setting.ends_with(":registry");
    INDEXES.contains(&name) || npm_setting(name).is_some_and(is_scope)
}

/// The setting in `npm_config_SETTING`, in lower case: npm ignores the case.
fn npm_setting(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase().replace('-', "_");
    name.strip_prefix("npm_config_").map(str::to_owned)
}

/// The absolute directories of a search path outside the untrusted directory; `None` if there are none.
/// The others are added to `dropped`.
fn search_path(
    path: &OsStr,
    untrusted: Option<&Path>,
    dropped: &mut Vec<PathBuf>,
) -> Option<OsString> {
    let is_kept =
        |dir: &PathBuf| dir.is_absolute() && untrusted.is_none_or(|root| !is_inside(dir, root));
    let (kept, left): (Vec<_>, Vec<_>) = std::env::split_paths(path).partition(is_kept);
    dropped.extend(left);
    std::env::join_paths(kept)
        .ok()
        .filter(|path| !path.is_empty())
}

/// Tests if a value contains a path inside a directory: by itself, in a list such as `PATH`, in an
/// address, or in a list of addresses such as `name=file:///path https://host`.
fn leads_into(value: &OsStr, root: &Path) -> bool {
    let text = value.to_string_lossy();
    let is_between = |c: char| c.is_whitespace() || matches!(c, ':' | '=' | ',' | ';');
    let parts = text.split(is_between).map(PathBuf::from);
    std::env::split_paths(value)
        .chain(parts)
        .any(|path| path.is_absolute() && is_inside(&path, root))
}

fn is_inside(path: &Path, root: &Path) -> bool {
    path.starts_with(root) || resolved(path).starts_with(root)
}

/// Resolves the links of the part of a path that exists.
fn resolved(path: &Path) -> PathBuf {
    let exists = path.ancestors().find_map(|above| {
        let real = above.canonicalize().ok()?;
        Some(real.join(path.strip_prefix(above).ok()?))
    });
    exists.unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)], started: Option<Started<'_>>) -> Environment {
        let variables = variables.iter();
        Environment::new(
            variables.map(|(name, value)| ((*name).into(), (*value).into())),
            started,
        )
    }

    fn names(environment: &Environment, line: &CommandLine) -> Vec<String> {
        let given = environment.of_server(line);
        given
            .into_keys()
            .map(|name| name.into_string().unwrap())
            .collect()
    }

    #[test]
    fn key_of_the_vault_is_never_inherited() {
        let environment = environment(&[(VAULT_KEY, "x"), ("OTHER", "y")], None);
        for inherit_env in [Inherit::All, Inherit::Names(vec![VAULT_KEY.to_owned()])] {
            let line = CommandLine {
                inherit_env,
                ..CommandLine::default()
            };
            assert!(!names(&environment, &line).contains(&VAULT_KEY.to_owned()));
        }
    }

    #[test]
    fn credentials_and_code_are_not_passed() {
        for name in [
            "ANTHROPIC_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "BASH_ENV",
            "BASH_FUNC_ls%%",
            "ENV",
            "GH_TOKEN",
            "GIT_SSH_COMMAND",
            "LD_LIBRARY_PATH",
            "LD_PRELOAD",
            "NODE_OPTIONS",
            "NODE_PATH",
            "NPM_CONFIG__AUTHTOKEN",
            "NPM_TOKEN",
            "PIP_PASSWORD",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "SSH_AUTH_SOCK",
            "SWITCHBOARD_HOME",
            "UV_ENV_FILE",
            "UV_INDEX_PRIVATE_PASSWORD",
            "UV_PUBLISH_TOKEN",
            "UV_WORKING_DIRECTORY",
            "npm_config_//registry.npmjs.org/:_authToken",
            "npm_config__auth",
            "npm_config__authToken",
            "npm_config__password",
            "npm_config_call",
            "npm_config_local_prefix",
            "npm_config_node_options",
            "npm_config_package",
            "npm_config_script_shell",
        ] {
            let environment = environment(&[(name, "x")], None);
            assert!(
                names(&environment, &CommandLine::default()).is_empty(),
                "{name}"
            );
            assert!(
                environment.withholds(name, &CommandLine::default()),
                "{name}"
            );
        }
    }

    #[test]
    fn settings_of_package_managers_are_passed() {
        for name in [
            "HTTPS_PROXY",
            "LC_ALL",
            "NPM_CONFIG_REGISTRY",
            "UV_CACHE_DIR",
            "no_proxy",
            "npm_config_@acme:registry",
            "npm_config_prefer-offline",
        ] {
            let environment = environment(&[(name, "x")], None);
            assert_eq!(names(&environment, &CommandLine::default()), [name]);
        }
    }

    #[test]
    fn index_with_a_password_is_not_passed() {
        let with = [("UV_INDEX_URL", "https://user:token@example.com/simple")];
        let without = [("UV_INDEX_URL", "https://example.com/simple")];
        let line = CommandLine::default();
        assert!(names(&environment(&with, None), &line).is_empty());
        assert_eq!(names(&environment(&without, None), &line), ["UV_INDEX_URL"]);
        // Every server needs the proxy.
        let proxy = [("HTTP_PROXY", "http://user:token@example.com")];
        assert_eq!(names(&environment(&proxy, None), &line), ["HTTP_PROXY"]);
    }

    #[test]
    fn relative_paths_start_at_the_configuration() {
        let home = Home::locate(
            Some(Path::new("/h")),
            Some(Path::new("/c/switchboard.json")),
        );
        let home = home.unwrap();
        for (command, cwd, program, directory) in [
            ("npx", None, "npx", None),
            ("/bin/x", Some("d"), "/bin/x", Some("/c/d")),
            ("./x", None, "/c/./x", None),
            ("bin/x", Some("/d"), "/d/bin/x", Some("/d")),
            ("../x", Some("d"), "/c/d/../x", Some("/c/d")),
        ] {
            let line = CommandLine {
                command: command.to_owned(),
                cwd: cwd.map(str::to_owned),
                ..CommandLine::default()
            };
            assert_eq!(line.program(&home), Path::new(program));
            assert_eq!(line.directory(&home).as_deref(), directory.map(Path::new));
        }
    }

    #[test]
    fn shell_functions_are_not_passed() {
        let function = [("TERM", "() { :; }; echo")];
        let line = CommandLine::default();
        assert!(names(&environment(&function, None), &line).is_empty());
    }

    #[test]
    fn own_variables_win_over_inherited_ones() {
        let environment = environment(&[("A", "theirs"), ("B", "theirs"), ("C", "theirs")], None);
        let mut line = CommandLine {
            env: [("A".to_owned(), "own".to_owned())].into(),
            inherit_env: Inherit::Names(vec!["A".into(), "B".into(), "NOT_SET".into()]),
            ..CommandLine::default()
        };
        let given = environment.of_server(&line);
        let expected = [("A", "own"), ("B", "theirs")];
        let expected = expected.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(given, BTreeMap::from(expected));
        assert!(environment.withholds("C", &line));
        for name in ["A", "B", "NOT_SET"] {
            assert!(!environment.withholds(name, &line), "{name}");
        }
        line.inherit_env = Inherit::All;
        assert_eq!(names(&environment, &line), ["A", "B", "C"]);
    }

    #[test]
    fn search_path_has_absolute_directories_only() {
        let path = ":.:bin:/usr/bin::./x:/bin:";
        let listed = environment(&[("PATH", path)], None);
        assert_eq!(listed.get("PATH"), Some(OsStr::new("/usr/bin:/bin")));
        let line = CommandLine {
            env: [("PATH".to_owned(), "/own:.".to_owned())].into(),
            ..CommandLine::default()
        };
        let given = listed.of_server(&line);
        assert_eq!(given[OsStr::new("PATH")], "/own");
        // An empty entry would mean the working directory.
        let nothing = environment(&[("PATH", ".:")], None);
        assert_eq!(nothing.get("PATH"), None);
    }

    #[test]
    fn values_in_the_repository_are_not_passed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("repo");
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::os::unix::fs::symlink(&root, dir.path().join("link")).unwrap();
        let inside = root.join("bin").display().to_string();
        let linked = dir.path().join("link/bin").display().to_string();
        let beside = dir.path().join("repository").display().to_string();
        let path = format!("{inside}:/usr/bin:{linked}:{beside}");
        let variables = [
            ("PATH", &*path),
            ("XDG_CONFIG_HOME", &inside),
            ("UV_CACHE_DIR", &linked),
            ("TMPDIR", &beside),
            ("HOME", "/nonexistent"),
        ];
        let sub = root.join("sub");
        let in_repository = environment(&variables, Some(Started::ByUser(&sub)));
        let given = in_repository.of_server(&CommandLine::default());
        let expected = format!("/usr/bin:{beside}");
        assert_eq!(given[OsStr::new("PATH")], *expected);
        let kept: Vec<_> = given.keys().collect();
        assert_eq!(kept, ["HOME", "PATH", "TMPDIR"]);
        // A directory that contains the user's home is trusted.
        let home = root.display().to_string();
        let mut at_home = variables;
        at_home[4].1 = &home;
        let at_home = environment(&at_home, Some(Started::ByUser(&sub)));
        assert_eq!(at_home.get("PATH"), Some(OsStr::new(&path)));
    }

    /// The entries of `PATH` that the gateway drops.
    fn dropped(started: Started<'_>, home: Option<&str>, path: &str) -> Vec<String> {
        let home = home.map(|home| ("HOME", home));
        let variables: Vec<_> = home.into_iter().chain([("PATH", path)]).collect();
        let environment = environment(&variables, Some(started));
        let dropped = environment.dropped().iter();
        dropped.map(|dir| dir.display().to_string()).collect()
    }

    #[test]
    fn file_system_root_is_never_untrusted() {
        let root = Path::new("/");
        for started in [Started::ByClient(root), Started::ByUser(root)] {
            for home in [None, Some("/srv/app"), Some("/"), Some("")] {
                let dropped = dropped(started, home, "/usr/bin:.:/bin");
                assert_eq!(dropped, ["."], "{started:?} {home:?}");
            }
        }
    }

    #[test]
    fn client_directory_without_repository_is_untrusted() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        let app = home.join("app");
        std::fs::create_dir_all(&app).unwrap();
        // The user keeps settings in a repository.
        std::fs::create_dir(home.join(".git")).unwrap();
        let home = home.to_str();
        let programs = app.join(".venv/bin").display().to_string();
        let path = format!("{programs}:/usr/bin");
        assert_eq!(dropped(Started::ByClient(&app), home, &path), [programs]);
        assert!(dropped(Started::ByUser(&app), home, &path).is_empty());
    }

    #[test]
    fn index_in_the_repository_is_not_passed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("repo");
        std::fs::create_dir_all(root.join(".git")).unwrap();
        let index = root.join("idx").display().to_string();
        for value in [
            index.clone(),
            format!("x={index}"),
            format!("https://a/ {index}"),
            format!("https://a,file://{index}"),
        ] {
            let given = environment(&[("UV_INDEX", &*value)], Some(Started::ByUser(&root)));
            assert!(names(&given, &CommandLine::default()).is_empty(), "{value}");
        }
        let beside = format!("x={index}").replace("repo", "repository");
        let given = environment(&[("UV_INDEX", &*beside)], Some(Started::ByUser(&root)));
        assert_eq!(names(&given, &CommandLine::default()), ["UV_INDEX"]);
    }
}
