//! Reading and writing real files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use switchboard_config::{Config, ConfigError, ConfigLock, LockError, Written};
use switchboard_test_support::left_out::{Lack, lacks};

fn write(path: &Path, text: &str) -> Result<Written, LockError> {
    let lock = ConfigLock::take(path)?;
    lock.write(text).map_err(|source| LockError::File {
        path: path.to_owned(),
        source,
    })
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn load_error(content: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchboard.json");
    fs::write(&path, content).unwrap();
    let error = Config::load(&path).unwrap_err();
    let message = match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    };
    message.replace(&*path.display().to_string(), "FILE")
}

#[test]
fn missing_file_is_an_empty_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none/switchboard.json");
    assert_eq!(Config::load(&path).unwrap(), Config::default());
}

#[test]
fn unreadable_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = Config::load(folder.path()).unwrap_err();
    assert!(
        matches!(&error, ConfigError::Read { path, .. } if path == folder.path()),
        "{error:?}"
    );
}

#[test]
fn problems_name_the_file() {
    assert_eq!(
        load_error(b"{\n  \"veiw\": 1,\n  \"auth\": 1\n}"),
        "FILE:2:3: unknown key \"veiw\" (did you mean \"view\"?)\n\
         FILE:3:11: \"auth\" must be an object, not a number"
    );
}

#[test]
fn invalid_utf8_is_reported_with_its_position() {
    assert_eq!(
        load_error(b"{\n  // gr\xfc\xdfe\n}"),
        "FILE:2:8: the byte FC is not valid UTF-8; save the file as UTF-8"
    );
    assert_eq!(
        load_error(b"\xff\xfe{\0}\0"),
        "FILE:1:1: the byte FF is not valid UTF-8; save the file as UTF-8"
    );
}

#[test]
fn huge_file_is_refused() {
    let huge = vec![b' '; 4 * 1024 * 1024 + 10];
    assert_eq!(
        load_error(&huge),
        "FILE:1:1: the file is larger than 4194304 bytes; make it smaller"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchboard.json");
    fs::write(&path, &huge[..4 * 1024 * 1024]).unwrap();
    assert_eq!(Config::load(&path).unwrap(), Config::default());
}

#[test]
fn new_file_is_private_old_keeps_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchboard.json");
    write(&path, "{}").unwrap();
    assert_eq!(mode(&path), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    write(&path, "{ }").unwrap();
    assert_eq!(mode(&path), 0o640);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{ }");
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        2,
        "nothing is left over but the lock"
    );
}

#[test]
fn links_are_followed_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    fs::create_dir(&real).unwrap();
    let (file, link, second) = (
        real.join("x.json"),
        folder.path().join("a"),
        folder.path().join("b"),
    );
    symlink("real/x.json", &link).unwrap();
    symlink(&link, &second).unwrap();
    // The first write goes through a link without a target.
    for text in ["{}", "{ }"] {
        write(&second, text).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        assert!(second.is_symlink() && link.is_symlink() && !file.is_symlink());
    }
    let round = folder.path().join("round");
    symlink("round", &round).unwrap();
    assert!(write(&round, "{}").is_err());
}

#[test]
fn failed_write_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("taken");
    fs::create_dir_all(target.join("inside")).unwrap();
    assert!(write(&target, "{}").is_err());
    assert!(target.join("inside").is_dir());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    assert!(write(&folder.path().join("none/x"), "{}").is_err());
}

#[test]
fn reader_never_sees_a_partial_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchboard.json");
    let texts = ["a".repeat(100_000), "b".repeat(200_000)];
    write(&path, &texts[0]).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..50 {
                write(&path, &texts[round % 2]).unwrap();
            }
        });
        while !writer.is_finished() {
            let text = fs::read_to_string(&path).unwrap();
            assert!(texts.contains(&text), "{} bytes", text.len());
        }
    });
}

#[test]
fn file_with_clear_secrets_becomes_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchboard.json");
    let text = |value: &str| {
        format!(r#"{{"mcpServers": {{"a": {{"command": "x", "env": {{"API_KEY": "{value}"}}}}}}}}"#)
    };
    for (value, written, expected) in [
        ("${secret:a}", Written::SameMode, 0o644),
        ("swordfish", Written::Narrowed, 0o600),
    ] {
        fs::write(&path, "{}").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(write(&path, &text(value)).unwrap(), written);
        assert_eq!(mode(&path), expected);
    }
}

#[test]
fn concurrent_edits_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchboard.json");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for round in 0..10 {
                    let lock = ConfigLock::take(path).unwrap();
                    let text = fs::read_to_string(path).unwrap_or_default();
                    let name = format!("s{writer}-{round}");
                    let entry = serde_json::json!({"command": "x"});
                    let text = switchboard_config::add_server(&text, &name, &entry).unwrap();
                    lock.write(&text).unwrap();
                }
            });
        }
    });
    assert_eq!(Config::load(&path).unwrap().servers.len(), 40);
}

#[test]
fn file_writable_by_others_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchboard.json");
    fs::write(&path, "{}").unwrap();
    for (mode, is_trusted) in [(0o600, true), (0o664, true), (0o666, false), (0o602, false)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let loaded = Config::load(&path);
        assert_eq!(loaded.is_ok(), is_trusted, "{mode:o}");
        if let Err(error) = loaded {
            let hint = error.hint().unwrap();
            assert!(hint.starts_with("run `chmod go-w "), "{hint}");
        }
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(Config::load(&path).is_err(), "a folder of everybody");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    assert!(Config::load(&path).is_ok(), "as /tmp is");
}

#[test]
fn file_of_another_user_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchboard.json");
    fs::write(&path, "{}").unwrap();
    // Only root can change the owner of a file.
    if let Err(error) = std::os::unix::fs::chown(&path, Some(65_534), None) {
        return lacks(Lack::Root, &error.to_string());
    }
    let error = Config::load(&path).unwrap_err();
    assert!(
        error.to_string().contains("another user (uid 65534)"),
        "{error}"
    );
}

#[test]
fn every_link_on_the_way_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (own, open) = (folder.path().join("own"), folder.path().join("open"));
    for dir in [&own, &open] {
        fs::create_dir(dir).unwrap();
    }
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let file = own.join("real.json");
    fs::write(&file, "{}").unwrap();
    symlink(&file, open.join("link")).unwrap();
    symlink(open.join("link"), own.join("switchboard.json")).unwrap();
    let error = Config::load(&own.join("switchboard.json")).unwrap_err();
    assert!(
        matches!(&error, ConfigError::Unsafe { path, .. } if *path == open),
        "{error}"
    );
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    Config::load(&own.join("switchboard.json")).unwrap();
    // Only root can change the owner of a link.
    if std::os::unix::fs::lchown(open.join("link"), Some(65_534), None).is_ok() {
        let error = Config::load(&own.join("switchboard.json")).unwrap_err();
        assert!(error.to_string().contains("another user"), "{error}");
    }
}

#[test]
fn configuration_may_come_through_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    std::thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipe, r#"{"mcpServers": {"a": {"command": "x"}}}"#));
        assert_eq!(Config::load(&pipe).unwrap().servers.len(), 1);
    });
}

#[test]
fn removal_keeps_the_link() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("real"), folder.path().join("link"));
    fs::write(&file, "{}").unwrap();
    symlink(&file, &link).unwrap();
    ConfigLock::take(&link).unwrap().remove().unwrap();
    assert!(link.is_symlink() && !file.exists());
}
