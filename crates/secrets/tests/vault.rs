//! The vault on disk.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may fail")]

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Barrier,
    thread,
    time::Duration,
};

use proptest::prelude::*;
use switchboard_secrets::{Error, KeySource, SECRET_BYTES, Vault};
use tempfile::TempDir;

const SECRET: &[u8] = b"a secret of some length";

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn key(&self) -> PathBuf {
        self.0.path().join("vault.key")
    }

    fn dir(&self) -> PathBuf {
        self.0.path().join("vault")
    }

    /// Opens the vault as another process would.
    fn vault(&self) -> Vault {
        self.with(KeySource::File(self.key()))
    }

    fn with(&self, source: KeySource) -> Vault {
        Vault::new(self.dir(), source)
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let found = self.vault().get(name)?;
        Ok(found.map(|secret| secret.to_vec()))
    }
}

fn variable(text: &str) -> KeySource {
    KeySource::Variable(text.to_owned().into())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn secrets_outlive_the_process() {
    let home = Home::new();
    assert_eq!(home.read("mail").unwrap(), None);
    assert!(!home.dir().exists() && !home.key().exists());
    home.vault().set("mail", b"old").unwrap();
    home.vault().set("mail", SECRET).unwrap();
    home.vault().set("oauth/GitHub", b"").unwrap();
    assert_eq!(home.read("mail").unwrap().unwrap(), SECRET);
    assert_eq!(home.read("oauth/GitHub").unwrap().unwrap(), b"");
    assert_eq!(home.vault().names().unwrap(), ["mail", "oauth/GitHub"]);
    home.vault().remove("mail").unwrap();
    home.vault().remove("mail").unwrap();
    assert_eq!(home.read("mail").unwrap(), None);
}

#[test]
fn only_the_owner_has_access() {
    let home = Home::new();
    home.vault().set("mail", SECRET).unwrap();
    let _lock = home.vault().lock("mail", Duration::ZERO).unwrap();
    assert_eq!(mode(&home.dir()), 0o700);
    assert_eq!(mode(&home.key()), 0o600);
    for entry in fs::read_dir(home.dir()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        let content = fs::read(&path).unwrap();
        let has_secret = content.windows(SECRET.len()).any(|part| part == SECRET);
        assert!(!has_secret, "{}", path.display());
    }
    fs::set_permissions(home.key(), fs::Permissions::from_mode(0o640)).unwrap();
    let error = home.read("mail").unwrap_err();
    assert!(matches!(error, Error::OpenKey { .. }), "{error}");
}

#[test]
fn other_key_is_named() {
    let home = Home::new();
    let [one, other] = [[1; 32], [2; 32]].map(|bytes| {
        use base64::Engine as _;
        variable(&base64::engine::general_purpose::STANDARD.encode(bytes))
    });
    home.with(one.clone()).set("mail", SECRET).unwrap();
    assert!(!home.key().exists());
    let error = home.with(other.clone()).get("mail").unwrap_err();
    assert!(matches!(error, Error::OtherKey { .. }), "{error}");
    assert!(error.to_string().contains("SWITCHBOARD_KEY"), "{error}");
    assert!(home.with(one).get("mail").unwrap().is_some());
    for wrong in [
        "short",
        "AAAA",
        "not Base64 at all, but long enough for a key",
    ] {
        let error = home.with(variable(wrong)).get("mail").unwrap_err();
        assert!(matches!(error, Error::BadKey { .. }), "{error}");
        assert!(!format!("{error:?}").contains(wrong), "{error:?}");
    }
    // Without any key, names are known.
    assert_eq!(home.vault().names().unwrap(), ["mail"]);
}

#[test]
fn lost_key_is_not_replaced() {
    let home = Home::new();
    home.vault().set("mail", SECRET).unwrap();
    let key = fs::read(home.key()).unwrap();
    fs::remove_file(home.key()).unwrap();
    for error in [
        home.read("mail").unwrap_err(),
        home.vault().set("other", b"x").unwrap_err(),
    ] {
        assert!(matches!(error, Error::NoKey { .. }), "{error}");
    }
    assert!(!home.key().exists());
    fs::write(home.key(), key).unwrap();
    fs::set_permissions(home.key(), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(home.read("mail").unwrap().unwrap(), SECRET);
}

#[test]
fn file_of_another_secret_is_refused() {
    let home = Home::new();
    home.vault().set("one", b"1").unwrap();
    home.vault().set("two", SECRET).unwrap();
    let [one, two] = ["one", "two"].map(|name| home.dir().join(format!("{name}.json")));
    let content = fs::read_to_string(&two).unwrap();
    fs::write(&one, &content).unwrap();
    let error = home.read("one").unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    // The name in the file is verified, too.
    fs::write(&one, content.replace(r#""name":"two""#, r#""name":"one""#)).unwrap();
    let error = home.read("one").unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

#[test]
fn newer_version_is_named_and_kept() {
    let home = Home::new();
    home.vault().set("mail", SECRET).unwrap();
    let path = home.dir().join("mail.json");
    let newer = br#"{"version":2,"something":"else"}"#;
    fs::write(&path, newer).unwrap();
    let error = home.read("mail").unwrap_err();
    assert!(matches!(error, Error::Newer { .. }), "{error}");
    assert!(home.vault().names().unwrap().is_empty());
    assert_eq!(fs::read(&path).unwrap(), newer);
}

#[test]
fn every_change_of_a_byte_is_noticed() {
    let home = Home::new();
    home.vault().set("mail", SECRET).unwrap();
    let path = home.dir().join("mail.json");
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        for flip in [0x01, 0x20, 0x80] {
            let mut changed = whole.clone();
            changed[at] ^= flip;
            fs::write(&path, &changed).unwrap();
            // A change that has no meaning in JSON, such as another line break, changes nothing.
            if let Ok(read) = home.read("mail") {
                assert_eq!(read.unwrap(), SECRET, "byte {at}");
            }
        }
        fs::write(&path, &whole[..at]).unwrap();
        if let Ok(read) = home.read("mail") {
            assert_eq!(read.unwrap(), SECRET, "cut at {at}");
        }
    }
}

#[test]
fn long_secret_is_refused() {
    let home = Home::new();
    let secret = vec![7; SECRET_BYTES];
    home.vault().set("mail", &secret).unwrap();
    assert_eq!(home.read("mail").unwrap().unwrap(), secret);
    let error = home.vault().set("mail", &vec![7; SECRET_BYTES + 1]);
    assert!(matches!(error, Err(Error::TooLong)));
    assert_eq!(home.read("mail").unwrap().unwrap(), secret);
}

#[test]
fn first_secrets_of_many_processes_share_one_key() {
    for _ in 0..20 {
        let home = Home::new();
        let names: BTreeSet<String> = (0..8).map(|number| format!("s{number}")).collect();
        let start = Barrier::new(names.len());
        thread::scope(|scope| {
            for name in &names {
                let (home, start) = (&home, &start);
                scope.spawn(move || {
                    let vault = home.vault();
                    start.wait();
                    vault.set(name, name.as_bytes()).unwrap();
                });
            }
        });
        for name in &names {
            assert_eq!(home.read(name).unwrap().unwrap(), name.as_bytes());
        }
    }
}

#[test]
fn locks_are_exclusive_for_each_secret() {
    let home = Home::new();
    let held = home.vault().lock("mail", Duration::ZERO).unwrap();
    let error = home.vault().lock("mail", Duration::ZERO);
    assert!(matches!(error, Err(Error::Lock(_))));
    assert!(home.vault().lock("other", Duration::ZERO).is_ok());
    drop(held);
    assert!(home.vault().lock("mail", Duration::ZERO).is_ok());
    // A lock is no secret.
    assert!(home.vault().names().unwrap().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_secret_is_read_back(name in ".{0,120}", secret in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let home = Home::new();
        home.vault().set(&name, &secret).unwrap();
        prop_assert_eq!(home.read(&name).unwrap().unwrap(), secret);
        prop_assert_eq!(home.vault().names().unwrap(), [name]);
    }
}
