//! Exports memories as JSON lines or Markdown.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_store::memory::{Entity, Relation, Scope, Version};

use crate::{
    count::Count,
    error::Error,
    markdown, record,
    scope::{self, Scoped},
    service::Memory,
    times,
};

/// The default number of records in a page.
const PAGE: usize = 200;
/// The approximate size of a page, in bytes.
const PAGE_BYTES: usize = 1024 * 1024;
/// The most rows that are read at once, and for one page, even if few of them match.
const ROWS: usize = 1_000;
const ROWS_PER_PAGE: usize = 20_000;

#[derive(Debug, Deserialize)]
pub(crate) struct Export {
    #[serde(default)]
    format: Format,
    #[serde(default)]
    include_history: bool,
    cursor: Option<String>,
    limit: Option<Count>,
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

/// The position at which an export continues. The order matters: entities come before the records
/// that refer to them.
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

/// A page being filled.
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
    pub(crate) async fn export_memory(&self, wish: Export) -> Result<Value, Error> {
        let scope = wish.scope.scope();
        let place = match (&wish.cursor, wish.format) {
            (Some(cursor), _) => Place::parse(cursor).ok_or_else(|| {
                Error::invalid("invalid cursor: use next_cursor of the previous page")
            })?,
            (None, Format::Jsonl) => Place::Entities(0),
            (None, Format::Markdown) => Place::Memories(0),
        };
        let mut page = Page {
            data: String::new(),
            count: 0,
            read: 0,
            limit: wish.limit.map_or(PAGE, Count::get),
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
    ) -> Result<Option<Place>, Error> {
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
            // Entities found by extraction are found again on import.
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
    ) -> Result<Option<Place>, Error> {
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
    ) -> Result<Option<Place>, Error> {
        let memories = &self.inner.memories;
        // Half as many, because each relation has two entities, which are read in one query.
        let relations = memories.relations_after(after, ROWS / 2);
        let relations = self.ask(relations).await?;
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
    let mut members = record::entity(entity);
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
