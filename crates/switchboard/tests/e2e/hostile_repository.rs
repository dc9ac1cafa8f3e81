//! Clients in an untrusted repository: nothing of it runs, and no server learns of it.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use serde_json::json;
use switchboard_test_support::{
    Home, Tools, fixture, pipe::Pipe, processes, server, tools, until, with,
};
use tempfile::TempDir;

/// The name of a program that the repository contains, too.
const PROBE: &str = "sb-probe";
/// A package of the repository.
const PACKAGE: &str = "@sb-e2e/probe";

/// The kinds of code that the repository ships.
const KINDS: [&str; 2] = ["program", "package"];

/// A repository that ships code wherever a program might look for it. All code that runs leaves a note.
struct Repository {
    dir: TempDir,
}

impl Repository {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("repo-").tempdir().unwrap();
        let repository = Self { dir };
        let bait = repository.bait("program");
        let programs = [
            PROBE,
            "npx",
            "node",
            "uvx",
            "docker",
            "podman",
            "notify-send",
        ];
        for program in programs {
            for place in ["", "bin", "node_modules/.bin"] {
                repository.program(&Path::new(place).join(program), &bait);
            }
        }
        repository.program("sub/deep/sb-relative".as_ref(), &bait);
        repository.program("sb-relative".as_ref(), &bait);
        let package = Path::new("node_modules").join(PACKAGE);
        let note = repository.note("package");
        repository.file(
            package.join("index.js"),
            &format!(
                "#!/usr/bin/env node\nrequire('fs').writeFileSync('{}', '');\n",
                note.display()
            ),
        );
        let manifest =
            json!({ "name": PACKAGE, "version": "1.0.0", "bin": { "probe": "index.js" } });
        repository.file(package.join("package.json"), &manifest.to_string());
        let path = repository.path("node_modules");
        symlink(path.join(PACKAGE).join("index.js"), path.join(".bin/probe")).unwrap();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(path.join(PACKAGE).join("index.js"), mode).unwrap();

        let root = json!({
            "name": "repo", "version": "1.0.0", "dependencies": { PACKAGE: "1.0.0" },
            "scripts": { "preinstall": "sh ./bin/sb-probe" },
        });
        repository.file("package.json", &root.to_string());
        let shell = repository.path("bin/sb-probe");
        let shell = shell.display();
        repository.file(
            ".npmrc",
            &format!("script-shell={shell}\nnode-options=--require=./evil.js\n"),
        );
        repository.file(
            "evil.js",
            &format!("require('fs').writeFileSync('{}', '');\n", note.display()),
        );
        repository.file(
            "uv.toml",
            "[pip]\nindex-url = \"http://127.0.0.1:9/evil\"\n",
        );
        repository.file(".env", "FROM_DOTENV=1\n");
        let servers = json!({ "mcpServers": { "evil": { "command": shell.to_string() } } });
        for name in ["switchboard.json", ".mcp.json"] {
            repository.file(name, &servers.to_string());
        }
        repository.file(".git/HEAD", "ref: refs/heads/main\n");
        repository
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The file in which code of this kind leaves its note.
    fn note(&self, kind: &str) -> PathBuf {
        self.path(format!("RAN-{kind}"))
    }

    fn bait(&self, kind: &str) -> String {
        let note = self.note(kind);
        format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\n", note.display())
    }

    fn file(&self, name: impl AsRef<Path>, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, name: &Path, text: &str) {
        self.file(name, text);
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.path(name), mode).unwrap();
    }

    /// A search path on which the repository comes before everything else, in every spelling.
    fn search_path(&self, rest: &[&Path]) -> OsString {
        let mut dirs = vec![
            PathBuf::new(),
            ".".into(),
            "bin".into(),
            "node_modules/.bin".into(),
        ];
        dirs.extend([self.path("bin"), self.path("node_modules/.bin")]);
        dirs.extend(rest.iter().map(|dir| dir.to_path_buf()));
        dirs.extend(env::split_paths(&env::var_os("PATH").unwrap()));
        env::join_paths(dirs).unwrap()
    }

    fn something_ran(&self) -> bool {
        KINDS.iter().any(|kind| self.note(kind).exists())
    }

    #[track_caller]
    fn assert_nothing_ran(&self) {
        for kind in KINDS {
            let note = fs::read_to_string(self.note(kind));
            assert!(note.is_err(), "ran: {kind}: {}", note.unwrap_or_default());
        }
    }
}

/// A directory with links of these names to the fixture.
fn programs(names: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in names {
        symlink(fixture("mcp_fixture"), dir.path().join(name)).unwrap();
    }
    dir
}

/// The process ID of a server, once it responds.
fn pid(pipe: &mut Pipe, server: &str) -> i32 {
    let tool = format!("{server}__pid");
    let pid = until(&tool, || pipe.call(&tool, json!({})).ok());
    pid.parse().unwrap()
}

/// Disconnects, and checks that no process is left and nothing ran.
fn leave(home: &Home, mut pipe: Pipe, repository: &Repository) {
    pipe.leave();
    assert!(pipe.ended().success());
    home.until_nobody("the client has left");
    repository.assert_nothing_ran();
}

#[test]
fn programs_of_the_repository_do_not_run() {
    let repository = Repository::new();
    let installed = programs(&[PROBE]);
    let home = Home::new(json!({ "bare": { "command": PROBE } }));
    let path = repository.search_path(&[installed.path()]);
    let inside = repository.path("sub/deep");
    for dir in [repository.path(""), inside] {
        let mut pipe = Pipe::open_in(&home, &dir, &[("PATH", &path)]);
        let bare = pid(&mut pipe, "bare");
        let handed_on = processes::environment(bare).remove("PATH").unwrap();
        for dir in env::split_paths(&handed_on) {
            assert!(dir.is_absolute(), "{handed_on}");
            assert!(!dir.starts_with(repository.path("")), "{handed_on}");
        }
        leave(&home, pipe, &repository);
    }
}

#[test]
fn relative_command_is_resolved_beside_the_configuration() {
    let repository = Repository::new();
    let home = Home::new(json!({ "relative": { "command": "./sb-relative" } }));
    symlink(fixture("mcp_fixture"), home.path("sb-relative")).unwrap();
    let mut pipe = Pipe::open_in(&home, &repository.path(""), &[]);
    pid(&mut pipe, "relative");
    leave(&home, pipe, &repository);
}

#[test]
fn servers_see_neither_directory_nor_variables_of_clients() {
    let repository = Repository::new();
    let other = tempfile::tempdir().unwrap();
    fs::create_dir(other.path().join("cwd")).unwrap();
    let home = Home::new(json!({
        "plain": server(&[]),
        "placed": with(server(&[]), json!({ "cwd": "placed" })),
    }));
    fs::create_dir(home.path("placed")).unwrap();
    let secret = ("FIRST_CLIENT_KEY", OsStr::new("hush"));
    let mut first = Pipe::open_in(&home, &repository.path(""), &[secret]);
    let plain = pid(&mut first, "plain");
    let placed = pid(&mut first, "placed");
    let mut second = Pipe::open_in(&home, &other.path().join("cwd"), &[]);
    assert_eq!(pid(&mut second, "plain"), plain);
    assert_eq!(pid(&mut second, "placed"), placed);

    let own = processes::directory(plain);
    let servers = fs::canonicalize(home.path("servers")).unwrap();
    assert_eq!(own.parent(), Some(&*servers));
    assert_eq!(own.file_stem(), Some(OsStr::new("plain")));
    assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
    let mode = fs::metadata(&own).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let configured = fs::canonicalize(home.path("placed")).unwrap();
    assert_eq!(processes::directory(placed), configured);
    let root = repository.path("");
    let root = root.to_str().unwrap();
    for pid in [plain, placed] {
        let guard = processes::parent(pid);
        assert_eq!(processes::directory(guard), Path::new("/"));
        for process in [pid, guard] {
            for (name, value) in processes::environment(process) {
                assert_ne!(name, "FIRST_CLIENT_KEY");
                assert!(!value.contains(root), "{name}={value}");
            }
        }
    }
    // The two processes of the program itself do not stay there, either.
    for pipe in [&first, &second] {
        assert_eq!(processes::directory(pipe.pid()), Path::new("/"));
    }
    second.leave();
    assert!(second.ended().success());
    leave(&home, first, &repository);
}

#[test]
fn settings_that_point_into_the_repository_are_dropped() {
    let repository = Repository::new();
    let home = Home::new(json!({ "a": server(&[]) }));
    let inside = |name: &str| repository.path(name).into_os_string();
    let (cache, config, certificate) = (inside("cache"), inside("config"), inside("ca.pem"));
    let variables: [(&str, &OsStr); 5] = [
        ("npm_config_cache", &cache),
        ("XDG_CONFIG_HOME", &config),
        ("SSL_CERT_FILE", &certificate),
        ("npm_config_local_prefix", &cache),
        ("UV_CACHE_DIR", OsStr::new("/var/cache/uv")),
    ];
    let mut pipe = Pipe::open_in(&home, &repository.path("sub"), &variables);
    let environment = processes::environment(pid(&mut pipe, "a"));
    let given = variables.map(|(name, _)| environment.get(name).map(String::as_str));
    assert_eq!(given, [None, None, None, None, Some("/var/cache/uv")]);
    leave(&home, pipe, &repository);
}

#[test]
fn npx_runs_no_package_of_the_repository() {
    if Tools::need(&[]).is_none() {
        return;
    }
    tools::program("npx");
    let cache = tempfile::tempdir().unwrap();
    // The package cannot be fetched, so it runs only if it is found in the repository.
    let npx = json!({
        "command": "npx", "args": ["-y", "--offline", PACKAGE], "start": "eager",
        "env": { "npm_config_cache": cache.path() },
    });
    let repository = Repository::new();
    let home = Home::new(json!({ "npx": npx.clone(), "a": server(&[]) }));
    let mut pipe = Pipe::open_in(&home, &repository.path(""), &[]);
    pid(&mut pipe, "a");
    until("npx has failed", || {
        let log = fs::read_to_string(home.path("logs/npx.log")).unwrap_or_default();
        (log.contains("ENOTCACHED") || repository.something_ran()).then_some(())
    });
    leave(&home, pipe, &repository);

    // In this directory it is found.
    let inside = with(npx, json!({ "cwd": repository.path("") }));
    home.set_servers(json!({ "npx": inside, "a": server(&[]) }));
    let mut pipe = Pipe::open_in(&home, cache.path(), &[]);
    pid(&mut pipe, "a");
    // npm runs it with the shell that the repository names.
    until("npx has run it", || {
        repository.something_ran().then_some(())
    });
    pipe.leave();
    assert!(pipe.ended().success());
}
