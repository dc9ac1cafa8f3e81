//! Writing with a backup, and undoing it.

use switchboard_client_configs::{Client, Error, ErrorKind, How, Which, apply, undo};

use super::{Machine, text};

const BEFORE: &str = "{\n  // mine\n  \"mcpServers\": { \"a\": {\"command\": \"a\"} }\n}";

#[test]
fn undo_restores_every_byte_for_every_client() {
    for client in Client::ALL {
        let machine = Machine::new();
        let before = match client {
            Client::Codex => "# mine\nmodel = \"x\"",
            _ => "{ \"x\" :1, // mine\n }\n\n",
        };
        let file = machine.write(client, before);
        let applied = machine.apply(&machine.connect(client));
        assert_eq!(applied.written.as_ref(), Some(&file));
        assert_eq!(text(&applied.backup.unwrap()), before);
        let undone = undo(Which::Client(client), &machine.backups()).unwrap();
        assert_eq!((undone.client, &undone.file), (client, &file));
        assert_eq!(undone.how, How::Restored);
        assert_eq!(text(&file), before);
        let error = undo(Which::Client(client), &machine.backups()).unwrap_err();
        assert!(matches!(error, Error::NothingToUndo { .. }), "{error}");
    }
}

#[test]
fn undo_deletes_file_created_for_the_gateway() {
    let machine = Machine::new();
    let applied = machine.apply(&machine.connect(Client::Zed));
    assert_eq!(applied.backup, None);
    let undone = undo(Which::Last, &machine.backups()).unwrap();
    assert_eq!(undone.how, How::Deleted);
    assert!(!machine.file(Client::Zed).exists());
}

#[test]
fn undo_keeps_other_changes() {
    let machine = Machine::new();
    let file = machine.write(Client::Cursor, "{\n  \"mcpServers\": {}\n}\n");
    machine.apply(&machine.connect(Client::Cursor));
    let changed = text(&file).replacen('{', "{\n  \"new\": true,", 1);
    std::fs::write(&file, &changed).unwrap();
    let undone = undo(Which::Last, &machine.backups()).unwrap();
    let How::Edited { copy, .. } = &undone.how else {
        panic!("{:?}", undone.how);
    };
    assert_eq!(text(copy), changed);
    assert_eq!(
        text(&file),
        "{\n  \"new\": true,\n  \"mcpServers\": {}\n}\n"
    );
    assert!(
        undone
            .how
            .message(&undone.file)
            .contains("only the gateway's entry")
    );
}

#[test]
fn undo_accepts_entry_that_is_gone() {
    let machine = Machine::new();
    let file = machine.write(Client::Cursor, BEFORE);
    machine.apply(&machine.connect(Client::Cursor));
    std::fs::write(&file, "{\"mcpServers\": {}}").unwrap();
    let undone = undo(Which::Last, &machine.backups()).unwrap();
    assert_eq!(undone.how, How::AlreadyGone);
    assert_eq!(text(&file), "{\"mcpServers\": {}}");

    machine.apply(&machine.connect(Client::Cursor));
    std::fs::remove_file(&file).unwrap();
    let undone = undo(Which::Last, &machine.backups()).unwrap();
    assert_eq!(undone.how, How::AlreadyGone);
    assert!(!file.exists());
}

#[test]
fn undo_keeps_entry_of_another_server() {
    let machine = Machine::new();
    let file = machine.write(Client::Cursor, "{}");
    machine.apply(&machine.connect(Client::Cursor));
    let theirs = r#"{"mcpServers": {"switchboard": {"command": "theirs"}}}"#;
    std::fs::write(&file, theirs).unwrap();
    let error = undo(Which::Last, &machine.backups()).unwrap_err();
    assert!(matches!(error, Error::NameTaken { .. }), "{error}");
    assert_eq!(text(&file), theirs);
}

#[test]
fn changes_are_undone_from_last_to_first() {
    let machine = Machine::new();
    let cursor = machine.write(Client::Cursor, BEFORE);
    let zed = machine.write(Client::Zed, "{}");
    machine.apply(&machine.connect(Client::Cursor));
    let connected = text(&cursor);
    machine.apply(&machine.connect(Client::Zed));
    machine.apply(&machine.disconnect(Client::Cursor));
    assert_ne!(text(&cursor), connected);

    let last = undo(Which::Last, &machine.backups()).unwrap();
    assert_eq!(last.client, Client::Cursor);
    assert_eq!(text(&cursor), connected);
    undo(Which::Client(Client::Cursor), &machine.backups()).unwrap();
    assert_eq!(text(&cursor), BEFORE);
    let last = undo(Which::Last, &machine.backups()).unwrap();
    assert_eq!(last.client, Client::Zed);
    assert_eq!(text(&zed), "{}");
    let error = undo(Which::Last, &machine.backups()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn disconnect_is_not_undone_over_other_changes() {
    let machine = Machine::new();
    let file = machine.write(Client::Cursor, BEFORE);
    machine.apply(&machine.connect(Client::Cursor));
    let applied = machine.apply(&machine.disconnect(Client::Cursor));
    std::fs::write(&file, "{}").unwrap();
    let error = undo(Which::Last, &machine.backups()).unwrap_err();
    let Error::CannotUndo { backup, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(Some(backup), applied.backup.as_ref());
    assert_eq!(text(&file), "{}");
}

#[test]
fn file_changed_since_plan_is_not_written() {
    let machine = Machine::new();
    for (before, meanwhile) in [(Some("{}"), "{ }"), (None, "{}")] {
        let file = machine.file(Client::Cursor);
        if let Some(before) = before {
            machine.write(Client::Cursor, before);
        }
        let plan = machine.connect(Client::Cursor);
        super::write(&file, meanwhile);
        let error = apply(&plan, &machine.backups()).unwrap_err();
        assert!(matches!(error, Error::Changed { .. }), "{error}");
        assert_eq!(text(&file), meanwhile);
        assert!(!machine.backups().exists());
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn manifest_cannot_point_outside_the_backups() {
    let machine = Machine::new();
    machine.write(Client::Cursor, "{}");
    machine.apply(&machine.connect(Client::Cursor));
    let folder = std::fs::read_dir(machine.backups()).unwrap();
    let note = folder
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_str().unwrap().ends_with("-cursor.json"))
        .unwrap();
    let outside = machine.folder.path().join("outside");
    std::fs::write(&outside, "stolen").unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&text(&note)).unwrap();
    manifest["backup"] = "../outside".into();
    std::fs::write(&note, manifest.to_string()).unwrap();
    let error = undo(Which::Last, &machine.backups()).unwrap_err();
    assert!(error.to_string().ends_with("is not a backup"), "{error}");

    std::fs::write(&note, "{").unwrap();
    let error = undo(Which::Last, &machine.backups()).unwrap_err();
    assert!(matches!(error, Error::Manifest { .. }), "{error}");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn modes_are_kept_and_new_files_are_private() {
        let machine = Machine::new();
        let file = machine.write(Client::Cursor, BEFORE);
        for kept in [0o640, 0o600] {
            std::fs::set_permissions(&file, PermissionsExt::from_mode(kept)).unwrap();
            let applied = machine.apply(&machine.connect(Client::Cursor));
            assert_eq!(mode(&file), kept);
            assert_eq!(mode(&applied.backup.unwrap()), 0o600);
            undo(Which::Last, &machine.backups()).unwrap();
            assert_eq!(mode(&file), kept);
        }
        assert_eq!(mode(&machine.backups()), 0o700);
        machine.apply(&machine.connect(Client::Zed));
        assert_eq!(mode(&machine.file(Client::Zed)), 0o600);
    }

    #[test]
    fn links_are_kept_and_their_targets_changed() {
        let machine = Machine::new();
        let link = machine.file(Client::Cursor);
        let real = machine.folder.path().join("dotfiles").join("cursor.json");
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink("../../dotfiles/cursor.json", &link).unwrap();

        // The target does not exist yet.
        machine.apply(&machine.connect(Client::Cursor));
        assert!(link.is_symlink());
        assert!(text(&real).contains("switchboard"));
        undo(Which::Last, &machine.backups()).unwrap();
        assert!(!real.exists());

        super::super::write(&real, BEFORE);
        machine.apply(&machine.connect(Client::Cursor));
        assert!(link.is_symlink());
        assert!(text(&real).contains("switchboard"));
        undo(Which::Last, &machine.backups()).unwrap();
        assert!(link.is_symlink());
        assert_eq!(text(&real), BEFORE);
    }

    /// The user has moved it to a repository of settings.
    #[test]
    fn undo_follows_a_file_that_became_a_link() {
        for change in ["", " "] {
            let machine = Machine::new();
            let file = machine.write(Client::Cursor, BEFORE);
            machine.apply(&machine.connect(Client::Cursor));
            let real = machine.folder.path().join("settings.json");
            std::fs::write(&real, text(&file) + change).unwrap();
            std::fs::remove_file(&file).unwrap();
            symlink(&real, &file).unwrap();
            undo(Which::Last, &machine.backups()).unwrap();
            assert!(file.is_symlink());
            assert!(text(&real).contains("mine") && !text(&real).contains("switchboard"));
        }
    }

    #[test]
    fn failed_write_leaves_no_files() {
        let machine = Machine::new();
        let file = machine.write(Client::Cursor, BEFORE);
        let plan = machine.connect(Client::Cursor);
        let folder = file.parent().unwrap();
        // Directories with every possible name of a draft make the write fail, even for root.
        let taken = 300;
        for count in 0..taken {
            let draft = format!(".mcp.json.{}.{count}.new", std::process::id());
            std::fs::create_dir(folder.join(draft)).unwrap();
        }
        let error = apply(&plan, &machine.backups()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::System);
        assert_eq!(text(&file), BEFORE);
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), taken + 1);
    }
}
