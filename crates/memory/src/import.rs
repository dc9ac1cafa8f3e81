//! Imports JSON lines, including those of the reference server.

use std::{collections::HashMap, sync::Arc};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use switchboard_recall::extract;
use switchboard_store::memory::{MemoryChange, NewVersion, Scope};
use switchboard_text::hex;

use crate::{
    error::{Error, shortened},
    remember::{self, Named, Store, new_id},
    scope::{self, Scoped, time},
    service::Memory,
    times,
};

/// The most lines that are written at once.
const BATCH: usize = 200;
/// The most invalid lines that are reported.
const ERRORS: usize = 100;
/// The longest ID, in bytes.
const ID_BYTES: usize = 128;

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
    pub(crate) async fn import_memory(&self, wish: Import) -> Result<Value, Error> {
        self.ready().await?;
        let mut import = Importing {
            memory: self,
            on_conflict: wish.on_conflict,
            is_trial: wish.dry_run,
            known: HashMap::new(),
            waiting: Vec::new(),
            counts: Counts::default(),
            errors: Vec::new(),
        };
        for (number, line) in (1_u64..).zip(wish.jsonl.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            match import.read(line).await {
                Ok(Some((changes, counts))) => import.waiting.push(Entry {
                    number,
                    changes,
                    counts,
                }),
                Ok(None) => {}
                Err(trouble) => import.complain(number, trouble)?,
            }
            if import.waiting.len() >= BATCH {
                import.flush().await?;
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

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    memories: u64,
    entities: u64,
    relations: u64,
    skipped: u64,
}

impl Counts {
    fn add(&mut self, more: Self) {
        self.memories += more.memories;
        self.entities += more.entities;
        self.relations += more.relations;
        self.skipped += more.skipped;
    }
}

/// An import in progress.
struct Importing<'a> {
    memory: &'a Memory,
    on_conflict: OnConflict,
    is_trial: bool,
    /// Memories of this import by their ID in the file; `None` for skipped ones.
    known: HashMap<String, Option<Known>>,
    waiting: Vec<Entry>,
    counts: Counts,
    errors: Vec<Value>,
}

/// A memory of this import.
struct Known {
    /// ID of the memory in the store.
    id: Arc<str>,
    scope: Scope,
    version: u32,
    learned_at: i64,
}

/// A line that waits to be written, and its contribution to the counts.
struct Entry {
    number: u64,
    changes: Vec<MemoryChange>,
    counts: Counts,
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
    #[serde(flatten)]
    memory: Store,
    reason: Option<Arc<str>>,
    superseded_by: Option<Arc<str>>,
}

/// An entity, also in the format of the reference server, with its observations.
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

/// The changes and counts of a line; `None` if it is skipped.
type Meaning = Option<(Vec<MemoryChange>, Counts)>;

impl Importing<'_> {
    async fn read(&mut self, line: &str) -> Result<Meaning, Error> {
        let line: Value = serde_json::from_str(line).map_err(|error| {
            Error::invalid(format!(
                "the line is not valid JSON (column {})",
                error.column()
            ))
        })?;
        check_members(&line)?;
        let line: Line = serde_json::from_value(line).map_err(|error| {
            Error::invalid(format!("the line is not a line of an export: {error}"))
        })?;
        let meaning = match line {
            Line::Memory(line) => self.memory(*line).await?,
            Line::Entity(line) => Some(self.entity(line).await?),
            Line::Relation(line) => Some(self.relation(&line).await?),
        };
        // Checked here, so that an invalid line does not fail the whole batch.
        for change in meaning.iter().flat_map(|(changes, _)| changes) {
            change.check()?;
        }
        Ok(meaning)
    }

    async fn memory(&mut self, line: MemoryLine) -> Result<Meaning, Error> {
        let now = times::now();
        let given: Arc<str> = match &line.id {
            Some(id) => checked_id(id)?.into(),
            None => new_id(now)?,
        };
        let mut version = NewVersion {
            reason: line.reason,
            superseded_by: line.superseded_by,
            ..line.memory.version(Arc::clone(&given), now)?
        };
        remember::check(&version)?;
        check_kind(&version.kind)?;
        let mentions = self
            .memory
            .mentions(&version.content, &line.memory.entities, now)?;
        match self.known.get_mut(&*given) {
            Some(Some(known)) => {
                let was = known.follow(&mut version)?;
                let revised = MemoryChange::Revise {
                    id: Arc::clone(&known.id),
                    was,
                    version,
                    mentions,
                };
                return Ok(Some((vec![revised], Counts::default())));
            }
            Some(None) => {
                self.counts.skipped += 1;
                return Ok(None);
            }
            None => {}
        }
        let mut changes = Vec::new();
        let memories = &self.memory.inner.memories;
        if self.memory.ask(memories.get(&given)).await?.is_some() {
            match self.on_conflict {
                OnConflict::Skip => {
                    self.counts.skipped += 1;
                    self.known.insert(given.to_string(), None);
                    return Ok(None);
                }
                OnConflict::Replace => changes.push(MemoryChange::Delete {
                    id: Arc::clone(&given),
                }),
                OnConflict::Copy => version.id = new_id(now)?,
            }
        }
        let known = Known {
            id: Arc::clone(&version.id),
            scope: version.scope.clone(),
            version: 1,
            learned_at: version.learned_at,
        };
        self.known.insert(given.to_string(), Some(known));
        changes.push(MemoryChange::Add { version, mentions });
        let counts = Counts {
            memories: 1,
            ..Counts::default()
        };
        Ok(Some((changes, counts)))
    }

    async fn entity(&mut self, line: EntityLine) -> Result<(Vec<MemoryChange>, Counts), Error> {
        let now = times::now();
        let key = extract::key(&line.name);
        if key.is_empty() {
            return Err(Error::invalid("the entity has no name"));
        }
        let scope = line.scope.scope();
        let mut counts = Counts {
            entities: 1,
            ..Counts::default()
        };
        let mut changes = vec![MemoryChange::Entity {
            id: new_id(now)?,
            scope: scope.clone(),
            name: line.name.trim().into(),
            key: key.into(),
            kind: line.entity_type,
            description: line.description,
            learned_at: time("learned_at", line.learned_at.as_deref())?.unwrap_or(now),
            found: false,
        }];
        for observation in line.observations {
            let content = format!("{}: {observation}", line.name.trim());
            // The file has no IDs, so the ID is derived from the content: repeated content is
            // recognised.
            let mut id: Arc<str> = told_id(&scope, &content).into();
            let memories = &self.memory.inner.memories;
            let is_known = self.known.contains_key(&*id);
            if is_known || self.memory.ask(memories.get(&id)).await?.is_some() {
                if self.on_conflict != OnConflict::Copy {
                    self.counts.skipped += 1;
                    continue;
                }
                id = new_id(now)?;
            }
            self.known.insert(id.to_string(), None);
            let version = remember::fresh(id, scope.clone(), content.into(), now);
            let named = [Named::Name(line.name.to_string())];
            let mentions = self.memory.mentions(&version.content, &named, now)?;
            counts.memories += 1;
            changes.push(MemoryChange::Add { version, mentions });
        }
        Ok((changes, counts))
    }

    async fn relation(
        &mut self,
        line: &RelationLine,
    ) -> Result<(Vec<MemoryChange>, Counts), Error> {
        let now = times::now();
        let learned_at = time("learned_at", line.learned_at.as_deref())?.unwrap_or(now);
        let counts = Counts {
            relations: 1,
            ..Counts::default()
        };
        if self.is_trial {
            return Ok((Vec::new(), counts));
        }
        // The entities may still be waiting to be written.
        if self.waiting.iter().any(|entry| entry.counts.relations == 0) {
            self.flush().await?;
        }
        let scope = line.scope.scope();
        let (from, to) = self.memory.ends(&line.from, &line.to, &scope).await?;
        let related = MemoryChange::Relation {
            id: new_id(now)?,
            from: from.row,
            to: to.row,
            kind: Arc::clone(&line.relation_type),
            weight: line.weight.unwrap_or(1.0),
            learned_at,
        };
        Ok((vec![related], counts))
    }

    /// Writes the waiting lines: all at once or, if that fails, one by one.
    async fn flush(&mut self) -> Result<(), Error> {
        let waiting = std::mem::take(&mut self.waiting);
        if !self.is_trial && !waiting.is_empty() {
            let all = waiting
                .iter()
                .flat_map(|entry| entry.changes.iter().cloned());
            match self.memory.write(all.collect()).await {
                Ok(_) => {}
                Err(trouble) if trouble.error().is_some() => return Err(trouble),
                Err(_) => return self.write_each(waiting).await,
            }
        }
        for entry in waiting {
            self.counts.add(entry.counts);
        }
        Ok(())
    }

    async fn write_each(&mut self, entries: Vec<Entry>) -> Result<(), Error> {
        for entry in entries {
            match self.memory.write(entry.changes).await {
                Ok(_) => self.counts.add(entry.counts),
                Err(trouble) => self.complain(entry.number, trouble)?,
            }
        }
        Ok(())
    }

    /// Records a problem with a line; a problem with the memory itself ends the import.
    fn complain(&mut self, line: u64, trouble: Error) -> Result<(), Error> {
        if trouble.error().is_some() {
            return Err(trouble);
        }
        if self.errors.len() < ERRORS {
            let message = trouble.text();
            self.errors
                .push(json!({ "line": line, "message": message }));
        }
        Ok(())
    }
}

impl Known {
    /// Treats a line as the next version. Returns the number of the version before it.
    fn follow(&mut self, next: &mut NewVersion) -> Result<u32, Error> {
        if next.scope != self.scope {
            return Err(Error::invalid(
                "a memory with this ID is in another scope: all versions of a memory must be in one scope",
            ));
        }
        if next.learned_at <= self.learned_at {
            return Err(Error::invalid(
                "this version was not learned after the previous one",
            ));
        }
        next.id = Arc::clone(&self.id);
        self.learned_at = next.learned_at;
        let was = self.version;
        self.version = was.saturating_add(1);
        Ok(was)
    }
}

/// Checks the names of the members: a misspelt one is not ignored, since it may name the scope of a
/// memory.
fn check_members(line: &Value) -> Result<(), Error> {
    const MEMORY: &[&str] = &[
        "id",
        "content",
        "memory_type",
        "importance",
        "valid_from",
        "valid_until",
        "learned_at",
        "learned_until",
        "version",
        "entities",
        "metadata",
        "reason",
        "superseded_by",
    ];
    const ENTITY: &[&str] = &[
        "id",
        "name",
        "entity_type",
        "entityType",
        "description",
        "learned_at",
        "observations",
    ];
    const RELATION: &[&str] = &[
        "id",
        "from",
        "to",
        "relation_type",
        "relationType",
        "weight",
        "learned_at",
    ];
    let members = match line["type"].as_str() {
        Some("memory") => MEMORY,
        Some("entity") => ENTITY,
        Some("relation") => RELATION,
        _ => {
            return Err(Error::invalid(
                "the type of a line must be \"memory\", \"entity\" or \"relation\"",
            ));
        }
    };
    let known =
        |name: &str| name == "type" || members.contains(&name) || scope::PARTS.contains(&name);
    let mut names = line.as_object().into_iter().flat_map(Map::keys);
    match names.find(|name| !known(name)) {
        Some(unknown) => Err(Error::invalid(format!(
            "unknown member `{}`",
            shortened(unknown)
        ))),
        None => Ok(()),
    }
}

/// Derives the ID of an observation from its content and scope.
fn told_id(scope: &Scope, content: &str) -> String {
    let mut hash = Sha256::new();
    for part in scope::parts(scope).into_iter().chain([Some(content)]) {
        hash.update((part.map_or(u64::MAX, |part| part.len() as u64)).to_be_bytes());
        hash.update(part.unwrap_or_default());
    }
    let hash = hash.finalize();
    format!("seen-{}", hex::encode(&hash[..14]))
}

/// Checks an ID. IDs are shown to people and models, so only plain characters are allowed.
fn checked_id(id: &str) -> Result<&str, Error> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    if (1..=ID_BYTES).contains(&id.len()) && id.bytes().all(is_plain) {
        return Ok(id);
    }
    Err(Error::invalid(format!(
        "an ID must have 1 to {ID_BYTES} characters of a-z, A-Z, 0-9, `.`, `_`, `:` and `-`"
    )))
}

fn check_kind(kind: &str) -> Result<(), Error> {
    match kind {
        "episodic" | "semantic" | "procedural" => Ok(()),
        _ => Err(Error::invalid(
            "memory_type must be episodic, semantic or procedural",
        )),
    }
}
