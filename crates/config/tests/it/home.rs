//! Directories on a real file system.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use switchboard_config::{Home, HomeError};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn everything_is_under_the_home() {
    let home = Home::locate(Some(Path::new("/h")), None).unwrap();
    for (path, expected) in [
        (home.config_file().to_owned(), "/h/switchboard.json"),
        (home.database(), "/h/switchboard.db"),
        (home.catalog(), "/h/catalog"),
        (home.logs(), "/h/logs"),
        (home.log_of("files"), "/h/logs/files.log"),
        (home.secrets(), "/h/secrets"),
        (home.run(), "/h/run"),
        (home.socket(), "/h/run/switchboard.sock"),
        (home.token_file(), "/h/run/token"),
        (home.groups(), "/h/run/groups"),
        (home.lock_file(), "/h/run/lock"),
        (home.instance_file(), "/h/run/instance"),
    ] {
        assert_eq!(path, Path::new(expected));
    }
    let elsewhere = Home::locate(Some(Path::new("/h")), Some(Path::new("/c/x.json"))).unwrap();
    assert_eq!(elsewhere.config_file(), Path::new("/c/x.json"));
    assert_eq!(elsewhere.run(), home.run());
}

#[test]
fn relative_paths_become_absolute() {
    let here = std::env::current_dir().unwrap();
    let home = Home::locate(Some(Path::new("h")), Some(Path::new("c.json"))).unwrap();
    assert_eq!(home.run(), here.join("h/run"));
    assert_eq!(home.config_file(), here.join("c.json"));
    let error = Home::locate(Some(Path::new("")), None).unwrap_err();
    assert!(
        matches!(error, HomeError::Path { what: "--home", .. }),
        "{error}"
    );
}

#[test]
fn server_name_cannot_leave_the_logs() {
    let home = Home::locate(Some(Path::new("/h")), None).unwrap();
    let names = [
        "files", "Files", "a b", "a%20b", "..", ".", ".a", "a.b", "../../x", "a/b", "a\\b", "a:b",
        "ü", "CON", "\0", "",
    ];
    let long = [
        "x".repeat(300),
        "x".repeat(301),
        "ü".repeat(64),
        format!("{}a", "ü".repeat(63)),
    ];
    let mut seen = std::collections::BTreeSet::new();
    for name in names.into_iter().chain(long.iter().map(String::as_str)) {
        let path = home.log_of(name);
        assert_eq!(path.parent(), Some(home.logs().as_path()), "{name:?}");
        let file = path.file_name().unwrap().to_str().unwrap();
        assert!(
            file.len() <= 124 && path.extension() == Some("log".as_ref()),
            "{file}"
        );
        assert!(!file.starts_with('.'), "{file}");
        assert!(seen.insert(file.to_owned()), "{name:?} shares {file}");
        let dir = home.server_dir(name, "0af1");
        assert_eq!(dir.parent(), Some(Path::new("/h/servers")), "{name:?}");
        assert_eq!(dir.file_stem(), path.file_stem(), "{name:?}");
        assert_eq!(dir.extension(), Some("0af1".as_ref()), "{name:?}");
    }
    assert_eq!(home.log_of("a b"), Path::new("/h/logs/a%20b.log"));
}

#[test]
fn folders_are_closed_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::locate(
        Some(&folder.path().join("deep/home")),
        Some(&folder.path().join("other/switchboard.json")),
    )
    .unwrap();
    home.create().unwrap();
    for path in [
        home.run(),
        home.secrets(),
        home.logs(),
        home.catalog(),
        folder.path().join("other"),
    ] {
        assert_eq!(mode(&path), 0o700, "{path:?}");
    }
    assert!(!home.config_file().exists());

    fs::set_permissions(home.run(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(home.logs(), fs::Permissions::from_mode(0o755)).unwrap();
    home.create().unwrap();
    assert_eq!(mode(&home.run()), 0o700);
    assert_eq!(mode(&home.logs()), 0o755, "what a person opened stays open");
}

#[test]
fn directory_of_a_server_is_closed_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::locate(Some(folder.path()), None).unwrap();
    for _ in 0..2 {
        let dir = home.create_server_dir("../../etc", "0af1").unwrap();
        assert_eq!(dir, folder.path().join("servers/%2E.%2F..%2Fetc.0af1"));
        assert_eq!(mode(&dir), 0o700);
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn directories_of_a_name_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::locate(Some(folder.path()), None).unwrap();
    assert!(home.server_dirs("a").is_empty());
    let make = |name: &str, identity: &str| home.create_server_dir(name, identity).unwrap();
    let both = [make("a", "01"), make("a", "02")];
    let dotted = make("a.b", "01");
    assert_eq!(home.server_dirs("a"), both);
    assert_eq!(home.server_dirs("a.b"), [dotted]);
}

#[test]
fn linked_directory_of_a_server_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::locate(Some(folder.path()), None).unwrap();
    let dir = home.server_dir("a", "01");
    fs::create_dir(dir.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(folder.path(), &dir).unwrap();
    let error = home.create_server_dir("a", "01").unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cannot prepare the directory {}: it is a symbolic link",
            dir.display()
        )
    );
    assert_eq!(
        error.hint().unwrap(),
        "move the existing entry away, or set \"cwd\" for the server"
    );
}

#[test]
fn failed_directory_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let home = Home::locate(Some(&file), None).unwrap();
    let error = home.create().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot prepare the directory {}", file.display())
    );
    assert_eq!(
        error.hint().unwrap(),
        "check its owner and permissions, or use another --home DIR"
    );

    let long = folder.path().join("x".repeat(100));
    let home = Home::locate(Some(&long), None).unwrap();
    let error = home.create().unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("but a socket's path may have at most 103"),
        "{error}"
    );
    assert_eq!(error.hint().unwrap(), "use a shorter --home DIR");
    assert!(!long.exists());
}

#[test]
fn linked_run_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o755)).unwrap();
    let home = Home::locate(Some(&folder.path().join("home")), None).unwrap();
    fs::create_dir(folder.path().join("home")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, home.run()).unwrap();
    assert!(matches!(home.create(), Err(HomeError::Create { .. })));
    assert_eq!(mode(&elsewhere), 0o755);
}
