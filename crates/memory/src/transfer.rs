//! Everything that is remembered as lines of JSON: out, and in again.

use std::{collections::HashMap, sync::Arc};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_recall::extract;
use switchboard_store::memory::{Entity, MemoryChange, NewVersion, Relation, Scope, Version};

use crate::{
    markdown, record,
    remember::{self, Named, new_id},
    scope::{self, Scoped, time},
    service::Memory,
    times,
    trouble::Trouble,
};

/// So many memories are in a page unless asked otherwise.
const PAGE: usize = 200;
/// A page ends at about so many bytes.
const PAGE_BYTES: usize = 1024 * 1024;
/// So many rows are read at once, and in one page at most, however few of them are meant.
const ROWS: usize = 1_000;
const ROWS_PER_PAGE: usize = 20_000;
/// So many changes are written at once.
const BATCH: usize = 200;
/// So many lines that are wrong are told.
const ERRORS: usize = 100;

#[derive(Debug, Deserialize)]
pub(crate) struct Export {
    #[serde(default)]
    format: Format,
    #[serde(default)]
    include_history: bool,
    cursor: Option<String>,
    limit: Option<usize>,
    #[serde(flatten)]
    scope: Scoped,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Jsonl,
    Markdown,
}

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

/// Where an export goes on: what comes first has to be there before what refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Entities(u64),
    Memories(u64),
    Relations(u64),
}

impl Place {
    fn parse(text: &str) -> Option<Self> {
        let (phase, row) = text.split_once('-')?;
        let row = row.parse().ok()?;
        match phase {
            "entities" => Some(Self::Entities(row)),
            "memories" => Some(Self::Memories(row)),
            "relations" => Some(Self::Relations(row)),
            _ => None,
        }
    }

    fn spell(self) -> String {
        match self {
            Self::Entities(row) => format!("entities-{row}"),
            Self::Memories(row) => format!("memories-{row}"),
            Self::Relations(row) => format!("relations-{row}"),
        }
    }
}

/// One page on its way.
struct Page {
    data: String,
    count: usize,
    read: usize,
    limit: usize,
}

impl Page {
    fn is_full(&self) -> bool {
        self.count >= self.limit || self.data.len() >= PAGE_BYTES || self.read >= ROWS_PER_PAGE
    }

    fn line(&mut self, kind: &str, members: Map<String, Value>) {
        let mut line = Map::new();
        line.insert("type".to_owned(), json!(kind));
        line.extend(members);
        self.data.push_str(&Value::Object(line).to_string());
        self.data.push('\n');
        self.count += 1;
    }
}

impl Memory {
    pub(crate) async fn export_memory(&self, wish: Export) -> Result<Value, Trouble> {
        let scope = wish.scope.scope();
        let place = match (&wish.cursor, wish.format) {
            (Some(cursor), _) => Place::parse(cursor).ok_or_else(|| {
                Trouble::invalid(
                    "cursor is none of this tool's: take next_cursor of the page before",
                )
            })?,
            (None, Format::Jsonl) => Place::Entities(0),
            (None, Format::Markdown) => Place::Memories(0),
        };
        let mut page = Page {
            data: String::new(),
            count: 0,
            read: 0,
            limit: wish.limit.unwrap_or(PAGE),
        };
        let mut next = Some(place);
        while let Some(here) = next
            && !page.is_full()
        {
            next = match here {
                Place::Entities(after) => self.export_entities(&mut page, &scope, after).await?,
                Place::Memories(after) => {
                    let which = (wish.format, wish.include_history);
                    self.export_memories(&mut page, &scope, after, which)
                        .await?
                }
                Place::Relations(after) => self.export_relations(&mut page, &scope, after).await?,
            };
        }
        let format = match wish.format {
            Format::Jsonl => "jsonl",
            Format::Markdown => "markdown",
        };
        let mut answer = json!({ "format": format, "data": page.data, "count": page.count });
        if let Some(next) = next {
            answer["next_cursor"] = json!(next.spell());
        }
        Ok(answer)
    }

    async fn export_entities(
        &self,
        page: &mut Page,
        scope: &Scope,
        mut after: u64,
    ) -> Result<Option<Place>, Trouble> {
        let entities = self
            .ask(self.inner.memories.entities_after(after, ROWS))
            .await?;
        if entities.is_empty() {
            return Ok(Some(Place::Memories(0)));
        }
        for entity in &entities {
            if page.is_full() {
                break;
            }
            after = entity.row;
            page.read += 1;
            // What extraction has found it finds again.
            if !entity.found && scope::is_within(&entity.scope, scope) {
                page.line("entity", entity_members(entity));
            }
        }
        Ok(Some(Place::Entities(after)))
    }

    async fn export_memories(
        &self,
        page: &mut Page,
        scope: &Scope,
        mut after: u64,
        (format, with_history): (Format, bool),
    ) -> Result<Option<Place>, Trouble> {
        let versions = self
            .ask(self.inner.memories.versions_after(after, ROWS))
            .await?;
        if versions.is_empty() {
            return Ok(match format {
                Format::Jsonl => Some(Place::Relations(0)),
                Format::Markdown => None,
            });
        }
        for version in &versions {
            if page.is_full() {
                break;
            }
            after = version.row;
            page.read += 1;
            let is_meant = with_history || version.learned_until.is_none();
            if !is_meant || !scope::is_within(&version.scope, scope) {
                continue;
            }
            match format {
                Format::Jsonl => page.line("memory", memory_members(version)),
                Format::Markdown => {
                    markdown::write(version, &mut page.data);
                    page.count += 1;
                }
            }
        }
        Ok(Some(Place::Memories(after)))
    }

    async fn export_relations(
        &self,
        page: &mut Page,
        scope: &Scope,
        mut after: u64,
    ) -> Result<Option<Place>, Trouble> {
        let memories = &self.inner.memories;
        let relations = self.ask(memories.relations_after(after, ROWS)).await?;
        if relations.is_empty() {
            return Ok(None);
        }
        let ends = relations
            .iter()
            .flat_map(|one| [one.from, one.to])
            .collect();
        let ends = self.ask(memories.entities(ends)).await?;
        let ends: HashMap<u64, &Entity> = ends.iter().map(|(one, _)| (one.row, one)).collect();
        for relation in &relations {
            if page.is_full() {
                break;
            }
            after = relation.row;
            page.read += 1;
            if let (Some(from), Some(to)) = (ends.get(&relation.from), ends.get(&relation.to))
                && scope::is_within(&from.scope, scope)
            {
                page.line("relation", relation_members(relation, from, to));
            }
        }
        Ok(Some(Place::Relations(after)))
    }

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

fn memory_members(version: &Version) -> Map<String, Value> {
    let mut members = record::whole(version);
    let named: Vec<_> = version
        .mentions
        .iter()
        .filter(|mention| mention.explicit)
        .map(|mention| &*mention.name)
        .collect();
    members.insert("entities".to_owned(), json!(named));
    members
}

fn entity_members(entity: &Entity) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("id".to_owned(), json!(entity.id));
    members.insert("name".to_owned(), json!(entity.name));
    if let Some(kind) = &entity.kind {
        members.insert("entity_type".to_owned(), json!(kind));
    }
    if let Some(description) = &entity.description {
        members.insert("description".to_owned(), json!(description));
    }
    members.insert(
        "learned_at".to_owned(),
        json!(times::spell(entity.learned_at)),
    );
    scope::put(&entity.scope, &mut members);
    members
}

fn relation_members(relation: &Relation, from: &Entity, to: &Entity) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("id".to_owned(), json!(relation.id));
    members.insert("from".to_owned(), json!(from.name));
    members.insert("to".to_owned(), json!(to.name));
    members.insert("relation_type".to_owned(), json!(relation.kind));
    members.insert("weight".to_owned(), json!(record::number(relation.weight)));
    members.insert(
        "learned_at".to_owned(),
        json!(times::spell(relation.learned_at)),
    );
    scope::put(&from.scope, &mut members);
    members
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
