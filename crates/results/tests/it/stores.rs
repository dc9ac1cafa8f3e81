//! Ownership, lifetime and limits of kept results, in a real folder.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use switchboard_results::{Kept, Limits, ResultId, Store, StoreError, Structured};

use crate::{budget, cut, image_block, raw, result, text_block, texts};

const OWNER: &str = "alice";

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
}

fn kept(words: &str) -> Arc<Kept> {
    let blocks = [text_block(words), image_block(200_000)];
    Arc::clone(cut(&result(blocks), &budget(300), Structured::MayGo).kept())
}

fn small() -> Limits {
    Limits {
        memory_bytes: 1_000_000,
        disk_bytes: 2_000_000,
        each_bytes: 1_000_000,
        ttl: Duration::from_hours(1),
    }
}

pub(crate) fn an_id() -> ResultId {
    ResultId::parse("r_0123456789abcdefghjkmnpqrstvwxyz01").unwrap()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn is_kept(store: &Store, id: &ResultId, words: &str, now: SystemTime) -> bool {
    match store.get(OWNER, id.as_str(), now) {
        Ok(found) => {
            assert_eq!(found, kept(words));
            true
        }
        Err(StoreError::Unknown) => false,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn results_are_read_back_by_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("results");
    let store = Store::open(&folder, small(), at(0));
    let id = store.put(OWNER, kept("words"), at(0)).unwrap();
    assert!(is_kept(&store, &id, "words", at(1)));
    assert!(is_kept(
        &store,
        &ResultId::parse(&id.as_str().to_uppercase()).unwrap(),
        "words",
        at(1)
    ));
    for (owner, id) in [
        ("bob", id.as_str()),
        ("", id.as_str()),
        (OWNER, an_id().as_str()),
        (OWNER, "../../etc/passwd"),
        (OWNER, ""),
        (OWNER, "r_"),
    ] {
        let error = store.get(owner, id, at(1)).unwrap_err();
        assert!(
            matches!(error, StoreError::Unknown | StoreError::Expired { .. }),
            "{error}"
        );
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join(id.as_str())), 0o600);
    // The owner cannot be read from the file.
    let file = fs::read(folder.join(id.as_str())).unwrap();
    assert!(
        !file
            .windows(OWNER.len())
            .any(|window| window == OWNER.as_bytes())
    );
}

#[test]
fn expired_results_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), small(), at(0));
    let id = store.put(OWNER, kept("words"), at(0)).unwrap();
    assert!(is_kept(&store, &id, "words", at(3599)));
    let error = store
        .get(OWNER, id.as_str(), at(3600 + 12 * 60))
        .unwrap_err();
    assert_eq!(error.to_string(), "this result expired 12 min ago");
    assert_eq!(error.hint().unwrap(), "call the tool again");
    assert_eq!(files(folder.path()), Vec::<String>::new());

    store.put(OWNER, kept("others"), at(5000)).unwrap();
    store.sweep(at(8599));
    assert_eq!(files(folder.path()).len(), 1);
    store.sweep(at(8600));
    assert_eq!(files(folder.path()).len(), 0);
}

#[test]
fn oldest_results_are_removed_for_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), small(), at(0));
    let ids: Vec<_> = (0..15)
        .map(|n| {
            store
                .put(OWNER, kept(&format!("words {n}")), at(n))
                .unwrap()
        })
        .collect();
    let kept: Vec<_> = (0..15)
        .filter(|n| is_kept(&store, &ids[*n], &format!("words {n}"), at(20)))
        .collect();
    // Each has about 200 kB, so nine fit on the disk.
    assert_eq!(kept, (6..15).collect::<Vec<_>>());
    assert_eq!(files(folder.path()).len(), 9);
    let size: u64 = files(folder.path())
        .iter()
        .map(|name| fs::metadata(folder.path().join(name)).unwrap().len())
        .sum();
    assert!(size <= 2_000_000);
}

#[test]
fn too_large_results_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits {
        each_bytes: 100_000,
        ..small()
    };
    let store = Store::open(folder.path(), limits, at(0));
    let error = store.put(OWNER, kept("words"), at(0)).unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::TooLarge {
                bytes: 200_000..,
                most: 100_000
            }
        ),
        "{error}"
    );
    assert_eq!(files(folder.path()).len(), 0);
}

#[test]
fn small_results_stay_in_memory_without_disk() {
    let folder = tempfile::tempdir().unwrap();
    let blocked = folder.path().join("blocked");
    fs::write(&blocked, "a file where the folder should be").unwrap();
    let store = Store::open(&blocked, small(), at(0));
    let id = store.put(OWNER, kept("words"), at(0)).unwrap();
    assert!(is_kept(&store, &id, "words", at(1)));
    let ids: Vec<_> = (0..10)
        .map(|_| store.put(OWNER, kept("more"), at(2)).unwrap())
        .collect();
    assert!(!is_kept(&store, &id, "words", at(3)), "it made room");
    assert!(is_kept(&store, &ids[9], "more", at(3)));
    let limits = Limits {
        memory_bytes: 1000,
        ..small()
    };
    let error = Store::open(&blocked, limits, at(0))
        .put(OWNER, kept("words"), at(0))
        .unwrap_err();
    assert!(matches!(error, StoreError::Unwritable { .. }), "{error}");
}

#[test]
fn next_process_takes_over_intact_results() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), small(), at(0));
    let put = |words: &str, second| store.put(OWNER, kept(words), at(second)).unwrap();
    let (old, whole, changed, cut, claimed) = (
        put("old", 0),
        put("whole", 100),
        put("changed", 101),
        put("cut", 102),
        put("claimed", 103),
    );
    drop(store);
    let path = |id: &ResultId| folder.path().join(id.as_str());
    let mut bytes = fs::read(path(&changed)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path(&changed), &bytes).unwrap();
    let bytes = fs::read(path(&cut)).unwrap();
    fs::write(path(&cut), &bytes[..bytes.len() / 2]).unwrap();
    // A draft that a killed process left behind is swept, even if it holds a valid result.
    let theirs = fs::read(path(&claimed)).unwrap();
    let own = std::process::id();
    let draft = folder
        .path()
        .join(format!(".{}.{own}.0.new", whole.as_str()));
    fs::write(&draft, &theirs).unwrap();
    let killed = SystemTime::now() - Duration::from_mins(6);
    let draft = fs::File::options().write(true).open(&draft).unwrap();
    draft.set_modified(killed).unwrap();
    fs::write(path(&claimed), b"nothing like it").unwrap();
    fs::write(folder.path().join("notes.txt"), "not ours").unwrap();

    let store = Store::open(folder.path(), small(), at(3650));
    assert!(is_kept(&store, &whole, "whole", at(3651)));
    let error = |id: &ResultId| store.get(OWNER, id.as_str(), at(3651)).unwrap_err();
    assert!(matches!(error(&old), StoreError::Expired { .. }));
    assert!(matches!(error(&changed), StoreError::Damaged));
    assert!(
        matches!(error(&changed), StoreError::Unknown),
        "it is told once"
    );
    assert!(matches!(error(&cut), StoreError::Damaged));
    assert!(matches!(error(&claimed), StoreError::Unknown));
    assert!(store.get("bob", whole.as_str(), at(3651)).is_err());
    let mut left = files(folder.path());
    left.sort();
    assert_eq!(left, ["notes.txt", whole.as_str()]);
}

#[test]
fn missing_file_is_reported_as_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits {
        memory_bytes: 0,
        ..small()
    };
    let store = Store::open(folder.path(), limits, at(0));
    let id = store.put(OWNER, kept("words"), at(0)).unwrap();
    assert!(is_kept(&store, &id, "words", at(1)));
    fs::remove_file(folder.path().join(id.as_str())).unwrap();
    assert!(matches!(
        store.get(OWNER, id.as_str(), at(1)),
        Err(StoreError::Damaged)
    ));
}

#[test]
fn several_threads_may_put_and_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), small(), at(0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for n in 0..20 {
                    let words = format!("{thread} {n}");
                    let id = store.put(OWNER, kept(&words), at(n)).unwrap();
                    is_kept(store, &id, &words, at(n));
                }
            });
        }
    });
    assert!(files(folder.path()).len() <= 9);
}

/// A process that is killed while it writes leaves nothing that disturbs the next one, and results
/// that it reported as kept are kept.
#[test]
fn a_process_that_is_killed_leaves_whole_results() {
    const FOLDER: &str = "SWITCHBOARD_TEST_RESULTS_FOLDER";
    if let Some(folder) = std::env::var_os(FOLDER) {
        // This is the process that will be killed.
        let store = Store::open(Path::new(&folder), small(), at(0));
        for n in 0..1_000_000 {
            let id = store
                .put(OWNER, kept(&format!("words {n}")), at(n))
                .unwrap();
            println!("kept {id} {n}");
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "stores::a_process_that_is_killed_leaves_whole_results";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = Vec::new();
    while said.len() < 20 {
        let line = lines.next().unwrap().unwrap();
        // The test harness may print before the first line.
        let Some((_, line)) = line.split_once("kept ") else {
            continue;
        };
        let (id, n) = line.split_once(' ').unwrap();
        said.push((ResultId::parse(id).unwrap(), n.parse::<u64>().unwrap()));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let now = at(30);
    let store = Store::open(folder.path(), small(), now);
    let last = said.last().unwrap();
    assert!(is_kept(&store, &last.0, &format!("words {}", last.1), now));
    let kept = said
        .iter()
        .filter(|(id, n)| is_kept(&store, id, &format!("words {n}"), now))
        .count();
    assert!((1..=9).contains(&kept), "{kept}");
    for name in files(folder.path()) {
        assert!(store.get(OWNER, &name, now).is_ok(), "{name}");
    }
}

#[test]
fn everything_of_a_result_outlives_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let structured = raw(r#"{"a":[1.50,"é😀"]}"#);
    let odd = raw(r#"{"type":"resource_link","uri":"x:y","size":1e3}"#);
    let blocks = [
        text_block("é😀\u{0}"),
        odd,
        text_block("[1, 2]"),
        image_block(90_000),
    ];
    let result_ = result(blocks)
        .with_member("structuredContent", &structured)
        .unwrap();
    let cut = cut(&result_, &budget(400), Structured::MayGo);
    let store = Store::open(folder.path(), small(), at(0));
    let id = store.put(OWNER, Arc::clone(cut.kept()), at(0)).unwrap();
    drop(store);
    let found = Store::open(folder.path(), small(), at(1))
        .get(OWNER, id.as_str(), at(1))
        .unwrap();
    assert_eq!(found, *cut.kept());
    let page = found.read(0, None, &budget(1000));
    assert_eq!(texts(&result(page.content)).concat(), "é😀\u{0}[1, 2]");
}
