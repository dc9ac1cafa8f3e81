//! Tests of the public interface, on real files.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod backups;
mod connecting;
mod hostile;
mod importing;
mod moving;
mod places;
mod surroundings;

use std::path::{Path, PathBuf};

use serde_json::Value;
use switchboard_client_configs::{Client, Dirs, Found, GatewayEntry, Os, Plan, read_file};
use tempfile::TempDir;

/// A machine without any configurations.
struct Machine {
    folder: TempDir,
    dirs: Dirs,
}

impl Machine {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let home = folder.path().join("home");
        let project = folder.path().join("project");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(&project).unwrap();
        let dirs = Dirs::new(home, project, Os::Linux);
        Self { folder, dirs }
    }

    /// The usual file of a client's servers.
    fn file(&self, client: Client) -> PathBuf {
        client.config_files(&self.dirs)[0].clone()
    }

    fn write(&self, client: Client, text: &str) -> PathBuf {
        let file = self.file(client);
        write(&file, text);
        file
    }

    fn backups(&self) -> PathBuf {
        self.folder.path().join("backups")
    }

    fn connect(&self, client: Client) -> Plan {
        switchboard_client_configs::plan_connect(client, &self.dirs, &gateway()).unwrap()
    }

    fn disconnect(&self, client: Client) -> Plan {
        switchboard_client_configs::plan_disconnect(client, &self.dirs, &gateway()).unwrap()
    }

    fn apply(&self, plan: &Plan) -> switchboard_client_configs::Applied {
        switchboard_client_configs::apply(plan, &self.backups()).unwrap()
    }

    /// Reads a text as a file with this name.
    fn found(&self, name: &str, text: &str) -> Found {
        let file = self.folder.path().join(name);
        write(&file, text);
        read_file(&file, &self.dirs).unwrap()
    }
}

fn gateway() -> GatewayEntry {
    GatewayEntry {
        args: vec!["--home".to_owned(), "/data/home of mine".to_owned()],
        ..GatewayEntry::new("switchboard", "/opt/bin/switchboard")
    }
}

fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap()
}

/// The entries by name.
fn entries(found: &Found) -> Vec<(&str, &Value)> {
    let servers = found.servers.iter();
    servers
        .map(|server| (server.name.as_str(), &server.entry))
        .collect()
}
