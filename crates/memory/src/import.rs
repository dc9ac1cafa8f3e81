//! Lines of JSON: in again, also those of the reference server.

use std::{collections::HashMap, sync::Arc};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_recall::extract;
use switchboard_store::memory::{MemoryChange, NewVersion};

use crate::{
    remember::{self, Named, new_id},
    scope::{Scoped, time},
    service::Memory,
    times,
    trouble::Trouble,
};

/// So many changes are written at once.
const BATCH: usize = 200;
/// So many lines that are wrong are told.
const ERRORS: usize = 100;

#[derive(Debug, Deserialize)]
pub(crate) struct Import {
    jsonl: String,
    #[serde(default)]
    on_conflict: OnConflict,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OnConflict {
    #[default]
    Skip,
    Replace,
    Copy,
}

impl Memory {
    pub(crate) async fn import_memory(&self, wish: Import) -> Result<Value, Trouble> {
        self.ready().await?;
        let mut import = Importing {
            memory: self,
            on_conflict: wish.on_conflict,
            is_trial: wish.dry_run,
            ids: HashMap::new(),
            waiting: Vec::new(),
            counts: Counts::default(),
            errors: Vec::new(),
        };
        for (number, line) in (1_u64..).zip(wish.jsonl.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            if let Err(trouble) = import.line(line).await {
                if trouble.error().is_some() {
                    return Err(trouble);
                }
                if import.errors.len() < ERRORS {
                    let message = trouble.to_string();
                    import
                        .errors
                        .push(json!({ "line": number, "message": message }));
                }
            }
        }
        import.flush().await?;
        let Counts {
            memories,
            entities,
            relations,
            skipped,
        } = import.counts;
        Ok(json!({
            "memories": memories,
            "entities": entities,
            "relations": relations,
            "skipped": skipped,
            "errors": import.errors,
            "dry_run": wish.dry_run,
        }))
    }
}

#[derive(Debug, Default)]
struct Counts {
    memories: u64,
    entities: u64,
    relations: u64,
    skipped: u64,
}

/// Lines on their way in.
struct Importing<'a> {
    memory: &'a Memory,
    on_conflict: OnConflict,
    is_trial: bool,
    /// The memories of this import by the id that they have in it: what they are called here, and their
    /// last version. `None` for those that are skipped.
    ids: HashMap<String, Option<(Arc<str>, u32)>>,
    waiting: Vec<MemoryChange>,
    counts: Counts,
    errors: Vec<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Memory(Box<MemoryLine>),
    Entity(EntityLine),
    Relation(RelationLine),
}

#[derive(Debug, Deserialize)]
struct MemoryLine {
    id: Option<String>,
    content: Arc<str>,
    #[serde(flatten)]
    scope: Scoped,
    memory_type: Option<Arc<str>>,
    importance: Option<f32>,
    valid_from: Option<String>,
    valid_until: Option<String>,
    learned_at: Option<String>,
    #[serde(default)]
    entities: Vec<Named>,
    metadata: Option<Map<String, Value>>,
    reason: Option<Arc<str>>,
    superseded_by: Option<Arc<str>>,
}

/// Also as the reference server writes it, with what was observed of an entity.
#[derive(Debug, Deserialize)]
struct EntityLine {
    name: Arc<str>,
    #[serde(alias = "entityType")]
    entity_type: Option<Arc<str>>,
    description: Option<Arc<str>>,
    learned_at: Option<String>,
    #[serde(default)]
    observations: Vec<String>,
    #[serde(flatten)]
    scope: Scoped,
}

#[derive(Debug, Deserialize)]
struct RelationLine {
    from: String,
    to: String,
    #[serde(alias = "relationType")]
    relation_type: Arc<str>,
    weight: Option<f32>,
    learned_at: Option<String>,
    #[serde(flatten)]
    scope: Scoped,
}

impl Importing<'_> {
    async fn line(&mut self, line: &str) -> Result<(), Trouble> {
        let line: Line = serde_json::from_str(line)
            .map_err(|error| Trouble::Invalid(format!("this is no line of an export: {error}")))?;
        match line {
            Line::Memory(line) => self.memory(*line).await?,
            Line::Entity(line) => self.entity(line)?,
            Line::Relation(line) => self.relation(&line).await?,
        }
        if self.waiting.len() >= BATCH {
            self.flush().await?;
        }
        Ok(())
    }

    async fn memory(&mut self, line: MemoryLine) -> Result<(), Trouble> {
        let now = times::now();
        let id = line.id.as_deref();
        let id = id.map_or_else(|| new_id(now), |id| Ok(id.into()))?;
        let mut version = NewVersion {
            kind: line.memory_type.unwrap_or_else(|| remember::KIND.into()),
            importance: line
                .importance
                .unwrap_or(remember::IMPORTANCE)
                .clamp(0.0, 1.0),
            metadata: remember::spelled(line.metadata.as_ref())?,
            valid_from: time("valid_from", line.valid_from.as_deref())?,
            valid_until: time("valid_until", line.valid_until.as_deref())?,
            learned_at: time("learned_at", line.learned_at.as_deref())?.unwrap_or(now),
            reason: line.reason,
            superseded_by: line.superseded_by,
            ..remember::fresh(id, line.scope.scope(), line.content, now)
        };
        remember::check(&version)?;
        check_kind(&version.kind)?;
        let mentions = self
            .memory
            .mentions(&version.content, &line.entities, now)?;
        let given = version.id.to_string();
        match self.ids.get(&given) {
            // Its next version.
            Some(Some((id, last))) => {
                let (id, was) = (Arc::clone(id), *last);
                version.id = Arc::clone(&id);
                self.ids
                    .insert(given, Some((Arc::clone(&id), was.saturating_add(1))));
                self.waiting.push(MemoryChange::Revise {
                    id,
                    was,
                    version,
                    mentions,
                });
                return Ok(());
            }
            Some(None) => {
                self.counts.skipped += 1;
                return Ok(());
            }
            None => {}
        }
        let known = self
            .memory
            .ask(self.memory.inner.memories.get(&given))
            .await?;
        if known.is_some() {
            match self.on_conflict {
                OnConflict::Skip => {
                    self.counts.skipped += 1;
                    self.ids.insert(given, None);
                    return Ok(());
                }
                OnConflict::Replace => {
                    let id = Arc::clone(&version.id);
                    self.waiting.push(MemoryChange::Delete { id });
                }
                OnConflict::Copy => version.id = new_id(now)?,
            }
        }
        self.counts.memories += 1;
        self.ids.insert(given, Some((Arc::clone(&version.id), 1)));
        self.waiting.push(MemoryChange::Add { version, mentions });
        Ok(())
    }

    fn entity(&mut self, line: EntityLine) -> Result<(), Trouble> {
        let now = times::now();
        let key = extract::key(&line.name);
        if key.is_empty() {
            return Err(Trouble::invalid("an entity without a name"));
        }
        let scope = line.scope.scope();
        self.counts.entities += 1;
        self.waiting.push(MemoryChange::Entity {
            id: new_id(now)?,
            scope: scope.clone(),
            name: line.name.trim().into(),
            key: key.into(),
            kind: line.entity_type,
            description: line.description,
            learned_at: time("learned_at", line.learned_at.as_deref())?.unwrap_or(now),
            found: false,
        });
        for observation in line.observations {
            let content = format!("{}: {observation}", line.name.trim());
            let version = remember::fresh(new_id(now)?, scope.clone(), content.into(), now);
            let named = [Named::Name(line.name.to_string())];
            let mentions = self.memory.mentions(&version.content, &named, now)?;
            self.counts.memories += 1;
            self.waiting.push(MemoryChange::Add { version, mentions });
        }
        Ok(())
    }

    async fn relation(&mut self, line: &RelationLine) -> Result<(), Trouble> {
        self.counts.relations += 1;
        if self.is_trial {
            return Ok(());
        }
        // Its ends may be among what waits.
        self.flush().await?;
        let now = times::now();
        let scope = line.scope.scope();
        let ends = self.memory.ends(&line.from, &line.to, &scope).await;
        let (from, to) = ends.inspect_err(|_| self.counts.relations -= 1)?;
        self.waiting.push(MemoryChange::Relation {
            id: new_id(now)?,
            from: from.row,
            to: to.row,
            kind: Arc::clone(&line.relation_type),
            weight: line.weight.unwrap_or(1.0).clamp(0.0, 1.0),
            learned_at: time("learned_at", line.learned_at.as_deref())?.unwrap_or(now),
        });
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Trouble> {
        let changes = std::mem::take(&mut self.waiting);
        if changes.is_empty() || self.is_trial {
            return Ok(());
        }
        self.memory.write(changes).await.map(|_| ())
    }
}

fn check_kind(kind: &str) -> Result<(), Trouble> {
    match kind {
        "episodic" | "semantic" | "procedural" => Ok(()),
        _ => Err(Trouble::invalid(
            "memory_type is none of episodic, semantic and procedural",
        )),
    }
}
