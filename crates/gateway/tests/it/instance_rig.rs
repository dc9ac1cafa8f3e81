//! Servers whose processes tell which they are, and their callers.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    api_rig::{Rig, program},
    mcp_rig::{LEGACY, Pipe, server, until},
};

/// A server that tells which process it is.
pub(crate) fn mirror(settings: Value) -> Value {
    let mut entry = json!({ "command": program(), "args": ["mirror"] });
    let settings: serde_json::Map<_, _> = serde_json::from_value(settings).unwrap();
    entry.as_object_mut().unwrap().extend(settings);
    entry
}

/// One that gets the directory of its callers.
pub(crate) fn of_project() -> Value {
    mirror(json!({
        "args": ["mirror", "--root=${project}"],
        "env": { "PROJECT": "${project.name}", "EXTRA": "in_${project.name}" },
    }))
}

pub(crate) async fn rig(entry: Value) -> Rig {
    Rig::with(json!({ "s": entry, "other": mirror(json!({})) })).await
}

/// A directory with the name `name`.
pub(crate) fn project(parent: &TempDir, name: &str) -> std::path::PathBuf {
    let path = parent.path().canonicalize().unwrap().join(name);
    std::fs::create_dir(&path).unwrap();
    path
}

pub(crate) async fn open_in(rig: &Rig, project: &Path) -> Pipe {
    Pipe::open_in(rig, server("s"), Some(project), LEGACY, json!({})).await
}

/// The structured result of a tool.
pub(crate) async fn told(pipe: &mut Pipe, tool: &str) -> Value {
    pipe.call(tool, json!({})).await["structuredContent"].clone()
}

pub(crate) async fn pid(pipe: &mut Pipe) -> u64 {
    told(pipe, "whoami").await["pid"].as_u64().unwrap()
}

/// The instances that run or have failed.
pub(crate) async fn instances(rig: &Rig) -> Vec<Value> {
    let server = rig.get("/api/v1/servers/s").await.json();
    server["instances"].as_array().cloned().unwrap_or_default()
}

pub(crate) async fn until_instances(rig: &Rig, count: usize) {
    until("the instances are as expected", async || {
        instances(rig).await.len() == count
    })
    .await;
}

pub(crate) fn is_alive(pid: u64) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The answer to `roots/list` for callers in this directory.
pub(crate) fn roots_in(dir: &Path) -> Value {
    let uri = format!("file://{}", dir.display());
    json!({ "roots": [{ "uri": uri, "name": dir.file_name().unwrap().to_str().unwrap() }] })
}

/// A file that calls wait for.
pub(crate) struct Gate(TempDir);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.0.path().join("open")
    }

    /// Lets the calls begin their work.
    pub(crate) fn open(&self) {
        std::fs::write(self.path(), "").unwrap();
    }
}

/// Waits until the processes of the server have this many calls in flight.
pub(crate) async fn until_in_flight(rig: &Rig, count: u64) {
    rig.until("/api/v1/servers/s", |server| server["inFlight"] == count)
        .await;
}
