//! Snapshots: reading gives exactly what was written, or an error.

use std::{fs, path::Path, sync::Arc};

use proptest::{collection, option, prelude::*, sample};
use switchboard_catalog::{Held, Offers, Snapshot, SnapshotError, limits, load_all, remove, write};
use switchboard_wire::{Era, Raw, Revision};

use crate::{raw, tools};

fn snapshot(server: &str, offers: Offers) -> Snapshot {
    Snapshot {
        server: server.into(),
        fingerprint: "f".into(),
        offers: Arc::new(offers),
        held: Held::default(),
    }
}

fn json() -> impl Strategy<Value = Raw> {
    prop_oneof![
        sample::select(
            [
                "{}",
                "null",
                "[1,\n\n2]",
                "{ \"name\" :\r\n\"x\", \"n\":12345678901234567890123 }",
                r#"{"name":"\ud800","x":",\n]}"}"#,
                r#""é😀""#,
            ]
            .as_slice()
        )
        .prop_map(raw),
        any::<String>().prop_map(|text| Raw::string(&text)),
    ]
}

prop_compose! {
    fn offers()(
        tools in collection::vec(json(), 0..5),
        prompts in collection::vec(json(), 0..3),
        resources in collection::vec(json(), 0..3),
        templates in collection::vec(json(), 0..3),
        capabilities in option::of(json()),
        server_info in option::of(json()),
        meta in option::of(json()),
        instructions in option::of(any::<String>()),
        era in option::of(sample::select([Era::Legacy, Era::Modern].as_slice())),
        revision in option::of(sample::select(Revision::ALL.as_slice())),
        (unlisted, asks_back) in any::<(bool, bool)>(),
        directories in collection::vec(any::<String>(), 0..3),
    ) -> Offers {
        Offers { tools, prompts, resources, templates, capabilities, server_info, meta, instructions, era, revision, unlisted, asks_back, directories, apart: Vec::new() }
    }
}

proptest! {
    #[test]
    fn written_snapshot_is_read_back(server in any::<String>(), fingerprint in any::<String>(), offers in offers()) {
        let written = Snapshot { server, fingerprint, offers: Arc::new(offers), held: Held::default() };
        let file = written.encode();
        prop_assert_eq!(&Snapshot::decode(file.clone()).unwrap(), &written);
        // Common JSON tools can read it, too.
        let whole: serde_json::Value = serde_json::from_slice(&replace_halves(&file)).unwrap();
        prop_assert_eq!(whole["version"].as_u64(), Some(1));
    }

    #[test]
    fn damaged_snapshot_is_an_error(
        offers in offers(),
        at in any::<sample::Index>(),
        byte in any::<u8>(),
        length in any::<sample::Index>(),
    ) {
        let written = snapshot("s", offers);
        let file = written.encode();
        let mut damaged = file.clone();
        let at = at.index(file.len());
        damaged[at] = byte;
        // A checksum may be spelled in capitals.
        if !damaged.eq_ignore_ascii_case(&file) {
            prop_assert!(Snapshot::decode(damaged).is_err());
        }
        prop_assert!(Snapshot::decode(file[..length.index(file.len())].to_vec()).is_err());
        prop_assert!(Snapshot::decode([file.as_slice(), b" "].concat()).is_err());
    }

    #[test]
    fn decoding_arbitrary_bytes_does_not_panic(bytes in collection::vec(any::<u8>(), 0..200), start in 0_usize..40) {
        let file = snapshot("s", Offers::default()).encode();
        let bytes = [&file[..start.min(file.len())], &bytes].concat();
        prop_assert!(Snapshot::decode(bytes).is_err());
    }
}

/// Lone surrogates are valid JSON, but not for every reader.
fn replace_halves(file: &[u8]) -> Vec<u8> {
    String::from_utf8(file.to_vec())
        .unwrap()
        .replace(r"\ud800", r"\u0020")
        .into_bytes()
}

#[test]
fn other_files_and_versions_are_rejected() {
    let decode = |text: &str| Snapshot::decode(text.as_bytes().to_vec()).unwrap_err();
    assert!(matches!(decode(""), SnapshotError::NotASnapshot));
    assert!(matches!(decode("{}"), SnapshotError::NotASnapshot));
    assert!(matches!(
        decode(r#"{"version":,"#),
        SnapshotError::NotASnapshot
    ));
    assert!(matches!(
        decode(r#"{"version":2,"#),
        SnapshotError::Version(2)
    ));
    assert!(matches!(
        decode(r#"{"version":1,"checksum":"0"#),
        SnapshotError::Damaged
    ));
    let large = vec![b' '; limits::SNAPSHOT_BYTES + 1];
    assert!(matches!(
        Snapshot::decode(large).unwrap_err(),
        SnapshotError::TooLarge(_)
    ));
}

#[test]
fn decoded_items_share_one_buffer() {
    let file = snapshot("s", tools(["a", "b"])).encode();
    let bytes = bytes::Bytes::from(file);
    let range = bytes.as_ptr_range();
    let read = Snapshot::decode(bytes).unwrap();
    for tool in &read.offers.tools {
        assert!(range.contains(&tool.as_bytes().as_ptr()));
    }
}

#[test]
fn snapshot_keeps_the_catalog_item_limit() {
    let many = snapshot("s", tools((0..=limits::ITEMS).map(|n| n.to_string())));
    let read = Snapshot::decode(many.encode()).unwrap();
    assert_eq!(read.offers.tools, many.offers.tools[..limits::ITEMS]);
}

fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn folder_has_one_file_per_server() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("catalog");
    assert!(load_all(&dir).0.is_empty() && load_all(&dir).1.is_empty());
    let long = "x".repeat(300);
    let names = [
        "files", "Files", "FILES", "a/b", "a_b", "..", ".", "", "é", "con:", "\0", "files.x", &long,
    ];
    for name in names {
        write(&dir, &snapshot(name, tools([name, "old"]))).unwrap();
        write(&dir, &snapshot(name, tools([name]))).unwrap();
    }
    assert_eq!(files(&dir).len(), names.len());
    assert!(files(&dir).contains(&"files.json".to_owned()));
    let lower: std::collections::BTreeSet<_> =
        files(&dir).iter().map(|name| name.to_lowercase()).collect();
    assert_eq!(
        lower.len(),
        names.len(),
        "some file systems do not know case"
    );
    let (read, failed) = load_all(&dir);
    assert!(failed.is_empty(), "{failed:?}");
    let mut sorted = names;
    sorted.sort_unstable();
    assert_eq!(
        read.iter()
            .map(|snapshot| &*snapshot.server)
            .collect::<Vec<_>>(),
        sorted
    );
    assert!(
        read.iter()
            .all(|snapshot| *snapshot.offers == tools([&snapshot.server]))
    );

    remove(&dir, "Files").unwrap();
    remove(&dir, "Files").unwrap();
    let left = load_all(&dir).0;
    assert_eq!(left.len(), names.len() - 1);
    assert!(left.iter().all(|snapshot| snapshot.server != "Files"));
}

#[test]
fn bad_file_affects_its_server_only() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    for name in ["good", "cut", "copied"] {
        write(dir, &snapshot(name, tools(["x"]))).unwrap();
    }
    let cut = fs::read(dir.join("cut.json")).unwrap();
    fs::write(dir.join("cut.json"), &cut[..cut.len() - 5]).unwrap();
    fs::rename(dir.join("copied.json"), dir.join("other.json")).unwrap();
    fs::create_dir(dir.join("folder.json")).unwrap();
    fs::write(dir.join("good.new"), "half written").unwrap();
    let sparse = fs::File::create(dir.join("huge.json")).unwrap();
    sparse.set_len(limits::SNAPSHOT_BYTES as u64 + 1).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("/dev/zero", dir.join("link.json")).unwrap();

    let (read, failed) = load_all(dir);
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].server, "good");
    let failed: Vec<_> = failed
        .iter()
        .map(|(path, error)| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let kind = match error {
                SnapshotError::NotASnapshot => "not a snapshot",
                SnapshotError::Damaged => "damaged",
                SnapshotError::TooLarge(_) => "too large",
                SnapshotError::Misplaced { .. } => "misplaced",
                other => panic!("{other:?}"),
            };
            (name, kind)
        })
        .collect();
    let mut expected = vec![
        ("cut.json", "damaged"),
        ("folder.json", "not a snapshot"),
        ("huge.json", "too large"),
    ];
    #[cfg(unix)]
    expected.push(("link.json", "not a snapshot"));
    expected.push(("other.json", "misplaced"));
    assert_eq!(failed, expected);
}

#[test]
fn oversized_or_unwritable_snapshot_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let large = Offers {
        instructions: Some("x".repeat(limits::SNAPSHOT_BYTES)),
        ..Offers::default()
    };
    let error = write(home.path(), &snapshot("s", large)).unwrap_err();
    assert!(matches!(error, SnapshotError::TooLarge(_)));
    assert_eq!(files(home.path()), [""; 0]);
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    let error = write(&file, &snapshot("s", Offers::default())).unwrap_err();
    assert!(matches!(error, SnapshotError::Io { .. }));
    assert!(error.to_string().starts_with("cannot create"), "{error}");
}
