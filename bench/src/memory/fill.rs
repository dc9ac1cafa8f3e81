//! A home with a full store, written through the store itself, which is faster than through the server.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use switchboard_embed::Quantised;
use switchboard_recall::extract;
use switchboard_store::{
    Store,
    memory::{MemoryChange, NewMention, NewVersion, Scope, Vector},
};
use tempfile::TempDir;
use tokio::runtime::Builder;

use super::{
    meanings::Meanings,
    texts::{Texts, namespace},
};
use crate::Result;

/// Number of memories per write.
const AT_ONCE: u64 = 1_000;
/// The time at which the first memory was learned, in 2026; the others follow at intervals of a minute.
const FIRST: i64 = 1_767_225_600_000_000;
const MINUTE: i64 = 60_000_000;

/// A home directory for the program.
pub(super) struct Home {
    dir: TempDir,
}

impl Home {
    /// A home that uses this model, or the built-in one.
    pub(super) fn new(model: Option<&Path>) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("sb-bench-").tempdir()?;
        let embeddings = model.map_or("built-in".into(), |folder| folder.display().to_string());
        let config = json!({
            "listen": "127.0.0.1:0",
            "mcpServers": {},
            "search": {"embeddings": embeddings},
        });
        fs::write(
            dir.path().join("switchboard.json"),
            serde_json::to_vec_pretty(&config)?,
        )?;
        Ok(Self { dir })
    }

    /// Another home with a copy of this home's store.
    pub(super) fn copy(&self, model: Option<&Path>) -> Result<Self> {
        let copy = Self::new(model)?;
        fs::copy(self.database(), copy.database())?;
        Ok(copy)
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn database(&self) -> PathBuf {
        self.path().join("switchboard.db")
    }

    /// The size of the store on disk, in MB.
    #[expect(clippy::cast_precision_loss)]
    pub(super) fn megabytes(&self) -> Result<f64> {
        let mut bytes = 0;
        for entry in fs::read_dir(self.path())? {
            let entry = entry?;
            if entry
                .file_name()
                .to_string_lossy()
                .starts_with("switchboard.db")
            {
                bytes += entry.metadata()?.len();
            }
        }
        Ok(bytes as f64 / (1024.0 * 1024.0))
    }

    /// The memory server alone, over pipes.
    pub(super) fn serve(&self, switchboard: &Path) -> Command {
        let mut command = Command::new(switchboard);
        command
            .arg("--home")
            .arg(self.path())
            .args(["memory", "serve", "--log-level", "off"]);
        command
    }
}

/// The id of the memory with this number; `number` is the inverse.
pub(super) fn id(number: u64) -> String {
    format!("bench-{number:08}")
}

pub(super) fn number(id: &str) -> Option<u64> {
    id.strip_prefix("bench-")?.parse().ok()
}

/// Fills the store with `memories` memories and their vectors. Returns the duration.
pub(super) fn fill(
    home: &Home,
    memories: u64,
    texts: &Texts,
    meanings: &Meanings<'_>,
) -> Result<Duration> {
    let begin = Instant::now();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = Store::open(home.database());
        let model = meanings.model();
        let kept = store.memories();
        kept.add_model(model.fingerprint(), u32::try_from(model.dimensions())?)
            .await?;
        let mut first = 0;
        while first < memories {
            let numbers = first..memories.min(first + AT_ONCE);
            let changes = numbers.clone().map(|number| added(texts, number)).collect();
            let made = kept.write(changes).await?;
            let rows = made.iter().filter_map(|made| match made {
                switchboard_store::memory::Made::Version { row, .. } => Some(*row),
                _ => None,
            });
            let vectors = numbers.zip(rows).map(|(number, row)| {
                let Quantised { scale, numbers } =
                    Quantised::from_vector(&meanings.vector(number)?);
                Ok(Vector {
                    row,
                    scale,
                    numbers,
                })
            });
            let vectors = vectors.collect::<Result<Vec<_>>>()?;
            kept.put_vectors(model.fingerprint(), vectors).await?;
            first += AT_ONCE;
        }
        kept.activate(model.fingerprint()).await?;
        store.close();
        store.closed().await;
        Result::Ok(())
    })?;
    Ok(begin.elapsed())
}

fn added(texts: &Texts, number: u64) -> MemoryChange {
    let content: Arc<str> = texts.text(number).into();
    let found = extract::entities(&content).into_iter().enumerate();
    let mentions = found.map(|(place, found)| NewMention {
        id: format!("found-{number}-{place}").into(),
        key: extract::key(&found.name).into(),
        name: found.name.into(),
        kind: found.kind.map(Into::into),
        explicit: false,
    });
    MemoryChange::Add {
        mentions: mentions.collect(),
        version: NewVersion {
            id: id(number).into(),
            version: None,
            scope: Scope {
                namespace: Some(namespace(number).into()),
                ..Scope::default()
            },
            kind: "semantic".into(),
            content,
            importance: 0.5,
            metadata: None,
            valid_from: None,
            valid_until: None,
            learned_at: FIRST + MINUTE * i64::try_from(number).unwrap_or(0),
            learned_until: None,
            reason: None,
            superseded_by: None,
        },
    }
}
