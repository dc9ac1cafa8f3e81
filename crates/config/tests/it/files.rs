//! Reading and writing real files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use switchboard_config::{Config, ConfigError, write_atomically};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn load_error(content: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchboard.json");
    fs::write(&path, content).unwrap();
    let message = Config::load(&path).unwrap_err().to_string();
    message.replace(&*path.display().to_string(), "FILE")
}

#[test]
fn a_missing_file_is_an_empty_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none/switchboard.json");
    assert_eq!(Config::load(&path).unwrap(), Config::default());
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
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
        "FILE:2:3: unknown key \"veiw\"; did you mean \"view\"?\n\
         FILE:3:11: \"auth\" must be an object, not a number"
    );
}

#[test]
fn bytes_that_are_no_text_have_a_place() {
    assert_eq!(
        load_error(b"{\n  // gr\xfc\xdfe\n}"),
        "FILE:2:8: the byte FC is not UTF-8 text; save the file as UTF-8"
    );
    assert_eq!(
        load_error(b"\xff\xfe{\0}\0"),
        "FILE:1:1: the byte FF is not UTF-8 text; save the file as UTF-8"
    );
}

#[test]
fn a_huge_file_is_refused() {
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
fn a_new_file_is_for_its_owner_and_an_old_one_keeps_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchboard.json");
    write_atomically(&path, "{}").unwrap();
    assert_eq!(mode(&path), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    write_atomically(&path, "{ }").unwrap();
    assert_eq!(mode(&path), 0o640);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{ }");
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing is left over"
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
    // The first write goes through a link that leads to nothing yet.
    for text in ["{}", "{ }"] {
        write_atomically(&second, text).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        assert!(second.is_symlink() && link.is_symlink() && !file.is_symlink());
    }
    let round = folder.path().join("round");
    symlink("round", &round).unwrap();
    assert!(write_atomically(&round, "{}").is_err());
}

#[test]
fn a_failed_write_leaves_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("taken");
    fs::create_dir_all(target.join("inside")).unwrap();
    assert!(write_atomically(&target, "{}").is_err());
    assert!(target.join("inside").is_dir());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(write_atomically(&folder.path().join("none/x"), "{}").is_err());
}

#[test]
fn a_reader_never_sees_a_part() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switchboard.json");
    let texts = ["a".repeat(100_000), "b".repeat(200_000)];
    write_atomically(&path, &texts[0]).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..50 {
                write_atomically(&path, &texts[round % 2]).unwrap();
            }
        });
        while !writer.is_finished() {
            let text = fs::read_to_string(&path).unwrap();
            assert!(texts.contains(&text), "{} bytes", text.len());
        }
    });
}
