//! Pins on disk: complete, private, and never trusted when damaged.

use std::fs;

use switchboard_trust::{Pins, PinsError, Policy, folder};

use crate::tool;

fn pins(server: &str) -> Pins {
    let mut pins = Pins::new(server, "identity");
    pins.judge(Policy::First, &[tool("a", "x"), tool("b", "y")], 1);
    pins.judge(
        Policy::First,
        &[tool("a", "\"changed\"\n"), tool("c", "z")],
        2,
    );
    pins.reject("a", None).unwrap();
    pins
}

#[test]
fn written_pins_are_read_back() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("trust");
    assert!(folder::load(&dir, "math").unwrap().is_none());
    assert_eq!(folder::load_all(&dir).0, []);
    let names = ["math", "Math", "a/../b", "", "ünïcode", &"long".repeat(100)];
    for name in names {
        folder::write(&dir, &pins(name)).unwrap();
        folder::write(&dir, &pins(name)).unwrap();
    }
    for name in names {
        assert_eq!(folder::load(&dir, name).unwrap(), Some(pins(name)));
    }
    let (all, failed) = folder::load_all(&dir);
    assert_eq!((all.len(), failed.len()), (names.len(), 0));
    folder::remove(&dir, "math").unwrap();
    folder::remove(&dir, "math").unwrap();
    assert!(folder::load(&dir, "math").unwrap().is_none());
    assert!(folder::load(&dir, "Math").unwrap().is_some());
}

#[cfg(unix)]
#[test]
fn file_is_private_and_links_are_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("trust");
    let bystander = home.path().join("bystander");
    fs::create_dir(&dir).unwrap();
    fs::write(&bystander, "mine").unwrap();
    symlink(&bystander, dir.join("math.new")).unwrap();
    folder::write(&dir, &pins("math")).unwrap();
    assert_eq!(fs::read_to_string(&bystander).unwrap(), "mine");
    let path = dir.join("math.json");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );

    fs::rename(&path, &bystander).unwrap();
    symlink(&bystander, &path).unwrap();
    let error = folder::load(&dir, "math").unwrap_err();
    assert!(matches!(error, PinsError::NotPins), "{error}");
}

#[test]
fn file_is_human_readable() {
    let file = String::from_utf8(pins("math").encode()).unwrap();
    let lines: Vec<_> = file.lines().collect();
    assert_eq!(lines.len(), 5);
    assert!(lines[0].starts_with(r#"{"version":3,"checksum":""#));
    assert!(lines[0].contains(r#""server":"math""#));
    assert!(lines[1].starts_with(r#""a":{"approved":{"fingerprint":""#));
    assert!(lines[1].contains(r#""why":"rejected""#));
    let value: serde_json::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(value["items"]["b"]["approved"]["by"], "first");
    assert_eq!(value["items"]["b"]["vanished_ms"], 2);
}

#[test]
fn every_changed_byte_and_cut_is_detected() {
    let file = pins("math").encode();
    assert_eq!(Pins::decode(&file).unwrap(), pins("math"));
    for at in 0..file.len() {
        assert!(Pins::decode(&file[..at]).is_err(), "cut at {at}");
        let mut damaged = file.clone();
        damaged[at] ^= 1;
        assert!(Pins::decode(&damaged).is_err(), "changed at {at}");
    }
    let longer = [file.as_slice(), b" "].concat();
    assert!(Pins::decode(&longer).is_err());
}

#[test]
fn problems_of_a_file_are_reported() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    folder::write(dir, &pins("math")).unwrap();
    fs::copy(dir.join("math.json"), dir.join("physics.json")).unwrap();
    fs::write(dir.join("other.json"), "{}").unwrap();
    fs::write(dir.join("note.txt"), "").unwrap();
    fs::create_dir(dir.join("folder.json")).unwrap();
    let mut file = fs::read(dir.join("math.json")).unwrap();
    let last = file.len() - 4;
    file[last] = b'x';
    fs::write(dir.join("math.json"), file).unwrap();

    let says = |server| folder::load(dir, server).unwrap_err().to_string();
    assert!(says("math").contains("held until you approve it"));
    assert!(
        says("physics").contains("in a file named \"math.json\"")
            || says("physics").contains("\"math.json\"")
    );
    assert!(says("other").contains("not a record"));
    let (all, failed) = folder::load_all(dir);
    assert_eq!((all.len(), failed.len()), (0, 4));

    let file = dir.join("file");
    fs::write(&file, "").unwrap();
    let error = folder::write(&file, &pins("math")).unwrap_err();
    assert!(error.to_string().contains("cannot create"), "{error}");
    assert!(folder::load(&file, "math").is_err());
}
