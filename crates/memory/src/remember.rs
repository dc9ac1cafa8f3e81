//! Storing, changing and deleting memories.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_recall::extract;
use switchboard_store::memory::{Made, MemoryChange, NewMention, NewVersion, Scope, Version};

use crate::{
    error::Error,
    record,
    scope::{self, Scoped, time},
    service::Memory,
    times,
};

/// The default kind of a memory.
pub(crate) const KIND: &str = "semantic";
/// The default importance of a memory.
pub(crate) const IMPORTANCE: f32 = 0.5;
/// The least similarity at which a stored memory is reported as nearly the same as another.
const SIMILAR: f32 = 0.85;
/// The greatest number of similar memories that are reported.
const SIMILAR_MOST: usize = 3;
/// The most bytes of metadata.
const METADATA_BYTES: usize = 64 * 1024;

/// An entity that a memory mentions, as tools take it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Named {
    Name(String),
    Typed {
        name: String,
        entity_type: Option<Arc<str>>,
    },
}

#[derive(Debug, Deserialize)]
pub(crate) struct Store {
    content: Arc<str>,
    #[serde(flatten)]
    scope: Scoped,
    memory_type: Option<Arc<str>>,
    importance: Option<f32>,
    valid_from: Option<String>,
    valid_until: Option<String>,
    learned_at: Option<String>,
    #[serde(default)]
    pub(crate) entities: Vec<Named>,
    metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Update {
    id: String,
    #[serde(flatten)]
    scope: Scoped,
    content: Option<Arc<str>>,
    memory_type: Option<Arc<str>>,
    importance: Option<f32>,
    #[serde(default)]
    valid_from: NewTime,
    #[serde(default)]
    valid_until: NewTime,
    entities: Option<Vec<Named>>,
    metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Invalidate {
    id: String,
    #[serde(flatten)]
    scope: Scoped,
    reason: Option<Arc<str>>,
    superseded_by: Option<Arc<str>>,
    valid_until: Option<String>,
}

impl Store {
    /// Returns the first version of a memory with this ID, learned now unless the arguments say
    /// when.
    pub(crate) fn version(&self, id: Arc<str>, now: i64) -> Result<NewVersion, Error> {
        let kind = self.memory_type.clone();
        Ok(NewVersion {
            kind: kind.unwrap_or_else(|| KIND.into()),
            importance: self.importance.unwrap_or(IMPORTANCE),
            metadata: spelled(self.metadata.as_ref())?,
            valid_from: time("valid_from", self.valid_from.as_deref())?,
            valid_until: time("valid_until", self.valid_until.as_deref())?,
            learned_at: time("learned_at", self.learned_at.as_deref())?.unwrap_or(now),
            ..fresh(id, self.scope.scope(), Arc::clone(&self.content), now)
        })
    }
}

/// A memory, given by its ID.
#[derive(Debug, Deserialize)]
pub(crate) struct One {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) scope: Scoped,
}

/// A change of a time.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Option<String>")]
enum NewTime {
    /// Not given.
    #[default]
    Kept,
    /// `null`.
    Removed,
    Set(String),
}

impl From<Option<String>> for NewTime {
    fn from(given: Option<String>) -> Self {
        given.map_or(Self::Removed, Self::Set)
    }
}

impl NewTime {
    /// Changes the time of this field. Returns `true` if it was given.
    fn change(&self, to: &mut Option<i64>, field: &str) -> Result<bool, Error> {
        match self {
            Self::Kept => return Ok(false),
            Self::Removed => *to = None,
            Self::Set(text) => *to = time(field, Some(text))?,
        }
        Ok(true)
    }
}

impl Memory {
    pub(crate) async fn store_memory(&self, wish: Store) -> Result<Value, Error> {
        let now = times::now();
        let id = new_id(now)?;
        let version = wish.version(Arc::clone(&id), now)?;
        check(&version)?;
        let mentions = self.mentions(&version.content, &wish.entities, now)?;
        let added = MemoryChange::Add { version, mentions };
        let made = self.write(vec![added]).await?;
        let mut answer = json!({ "id": id });
        if let Some(Made::Version { row, .. }) = made.first() {
            let similar = self.similar(*row).await;
            if !similar.is_empty() {
                answer["similar"] = json!(similar);
            }
        }
        Ok(answer)
    }

    pub(crate) async fn update_memory(&self, wish: Update) -> Result<Value, Error> {
        let current = self.current(&wish.id, &wish.scope.scope()).await?;
        let now = times::now();
        let mut next = next(&current, now);
        let says_otherwise = wish.content.is_some();
        if let Some(content) = wish.content {
            next.content = content;
        }
        if let Some(kind) = wish.memory_type {
            next.kind = kind;
        }
        if let Some(importance) = wish.importance {
            next.importance = importance;
        }
        wish.valid_from.change(&mut next.valid_from, "valid_from")?;
        if wish
            .valid_until
            .change(&mut next.valid_until, "valid_until")?
        {
            // The reason and the successor belong to the old end.
            (next.reason, next.superseded_by) = (None, None);
        }
        if wish.metadata.is_some() {
            next.metadata = spelled(wish.metadata.as_ref())?;
        }
        check(&next)?;
        let mentions = match wish.entities {
            Some(entities) => self.mentions(&next.content, &entities, now)?,
            None if says_otherwise => {
                let named: Vec<_> = explicit(&current).collect();
                self.mentions(&next.content, &named, now)?
            }
            None => kept(&current, now)?,
        };
        self.revise(&current, next, mentions).await
    }

    pub(crate) async fn invalidate(&self, wish: Invalidate) -> Result<Value, Error> {
        let filter = wish.scope.scope();
        let current = self.current(&wish.id, &filter).await?;
        let now = times::now();
        let until = time("valid_until", wish.valid_until.as_deref())?;
        // A memory that has ended already keeps its end.
        let until = until.unwrap_or_else(|| current.valid_until.unwrap_or(now).min(now));
        if let Some(successor) = &wish.superseded_by {
            if **successor == *current.id {
                return Err(Error::invalid("a memory cannot supersede itself"));
            }
            self.current(successor, &filter).await?;
        }
        let mut next = next(&current, now);
        // An end before the beginning is moved to the beginning: the memory was never true.
        next.valid_until = Some(next.valid_from.map_or(until, |from| from.max(until)));
        next.reason = wish.reason.or(next.reason);
        next.superseded_by = wish.superseded_by.or(next.superseded_by);
        let mentions = kept(&current, now)?;
        self.revise(&current, next, mentions).await
    }

    pub(crate) async fn delete_memory(&self, wish: One) -> Result<Value, Error> {
        let current = self.current(&wish.id, &wish.scope.scope()).await?;
        let id = Arc::clone(&current.id);
        self.write(vec![MemoryChange::Delete { id }]).await?;
        Ok(json!({ "deleted": true, "id": current.id }))
    }

    /// Returns the current version of a memory, if it is within this scope.
    pub(crate) async fn current(&self, id: &str, filter: &Scope) -> Result<Version, Error> {
        let found = self.ask(self.inner.memories.get(id)).await?;
        found
            .filter(|found| scope::is_within(&found.scope, filter))
            .ok_or_else(|| Error::no_memory(id))
    }

    async fn revise(
        &self,
        current: &Version,
        version: NewVersion,
        mentions: Vec<NewMention>,
    ) -> Result<Value, Error> {
        let id = Arc::clone(&current.id);
        let revised = MemoryChange::Revise {
            id: Arc::clone(&id),
            was: current.version,
            version,
            mentions,
        };
        self.write(vec![revised]).await?;
        let found = self.ask(self.inner.memories.get(&id)).await?;
        let found = found.ok_or_else(|| Error::no_memory(&id))?;
        Ok(Value::Object(record::whole(&found)))
    }

    /// Returns the entities that a memory mentions: the ones named by the caller, and the ones
    /// found in the text.
    pub(crate) fn mentions(
        &self,
        content: &str,
        named: &[Named],
        now: i64,
    ) -> Result<Vec<NewMention>, Error> {
        let mut mentions: Vec<NewMention> = Vec::new();
        let mut add = |name: &str, kind: Option<Arc<str>>, explicit: bool| {
            let key = extract::key(name);
            if !key.is_empty() && mentions.iter().all(|mention| *mention.key != *key) {
                mentions.push(NewMention {
                    id: new_id(now)?,
                    name: name.trim().into(),
                    key: key.into(),
                    kind,
                    explicit,
                });
            }
            Ok::<_, Error>(())
        };
        for named in named {
            match named {
                Named::Name(name) => add(name, None, true)?,
                Named::Typed { name, entity_type } => add(name, entity_type.clone(), true)?,
            }
        }
        if self.settings().extract {
            for found in extract::entities(content) {
                add(&found.name, found.kind.map(Into::into), false)?;
            }
        }
        Ok(mentions)
    }

    /// Returns memories that are nearly the same as this one, if the index is ready.
    async fn similar(&self, row: u64) -> Vec<Value> {
        if self.inner.index.state() != crate::index_thread::IndexState::Ready {
            return Vec::new();
        }
        let alike = self
            .inner
            .index
            .ask(move |library| library.alike(row, times::now(), SIMILAR, SIMILAR_MOST));
        let alike = self.consult(alike).await.unwrap_or_default();
        if alike.is_empty() {
            return Vec::new();
        }
        let rows = alike.iter().map(|(row, _)| *row).collect();
        let versions = self.ask(self.inner.memories.versions(rows)).await;
        let versions = versions.unwrap_or_default();
        let similarity = |row| alike.iter().find(|(of, _)| *of == row).map(|(_, how)| *how);
        let told = versions.iter().filter_map(|version| {
            let mut members = record::brief(version);
            let how = record::number(similarity(version.row)?);
            members.insert("similarity".to_owned(), json!(how));
            Some(Value::Object(members))
        });
        told.collect()
    }
}

/// The first version of a memory with this content and default values.
pub(crate) fn fresh(id: Arc<str>, scope: Scope, content: Arc<str>, now: i64) -> NewVersion {
    NewVersion {
        id,
        version: None,
        scope,
        kind: KIND.into(),
        content,
        importance: IMPORTANCE,
        metadata: None,
        valid_from: None,
        valid_until: None,
        learned_at: now,
        learned_until: None,
        reason: None,
        superseded_by: None,
    }
}

/// The next version of a memory, before any changes.
pub(crate) fn next(current: &Version, now: i64) -> NewVersion {
    let current = current.clone();
    NewVersion {
        id: current.id,
        version: None,
        scope: current.scope,
        kind: current.kind,
        content: current.content,
        importance: current.importance,
        metadata: current.metadata,
        valid_from: current.valid_from,
        valid_until: current.valid_until,
        // A later version is learned later, even if the clock has gone back.
        learned_at: now.max(current.learned_at.saturating_add(1)),
        learned_until: None,
        reason: current.reason,
        superseded_by: current.superseded_by,
    }
}

/// Returns the entities that the caller named for a memory.
pub(crate) fn explicit(version: &Version) -> impl Iterator<Item = Named> {
    let explicit = version.mentions.iter().filter(|mention| mention.explicit);
    explicit.map(|mention| Named::Name(mention.name.to_string()))
}

/// Returns the mentions of a memory, for its next version.
pub(crate) fn kept(version: &Version, now: i64) -> Result<Vec<NewMention>, Error> {
    let mentions = version.mentions.iter().map(|mention| {
        Ok(NewMention {
            id: new_id(now)?,
            name: Arc::clone(&mention.name),
            key: extract::key(&mention.name).into(),
            kind: None,
            explicit: mention.explicit,
        })
    });
    mentions.collect()
}

/// Checks that a version is consistent.
pub(crate) fn check(version: &NewVersion) -> Result<(), Error> {
    if version.content.trim().is_empty() {
        return Err(Error::invalid("content is empty: say what to remember"));
    }
    if let (Some(from), Some(until)) = (version.valid_from, version.valid_until)
        && until < from
    {
        return Err(Error::invalid("valid_until is before valid_from"));
    }
    Ok(())
}

pub(crate) fn spelled(metadata: Option<&Map<String, Value>>) -> Result<Option<Arc<str>>, Error> {
    let Some(metadata) = metadata else {
        return Ok(None);
    };
    let spelled = serde_json::to_string(metadata).unwrap_or_default();
    if spelled.len() > METADATA_BYTES {
        return Err(Error::invalid(format!(
            "metadata has {} bytes, but at most {METADATA_BYTES} are allowed",
            spelled.len()
        )));
    }
    Ok(Some(spelled.into()))
}

/// Creates an ID. Later IDs are greater, and they cannot be guessed.
pub(crate) fn new_id(now: i64) -> Result<Arc<str>, Error> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|_| {
        Error::Internal("cannot create an ID: the system provides no random numbers".to_owned())
    })?;
    let millis = now.div_euclid(1_000);
    let random = u64::from_be_bytes(random);
    Ok(format!("{millis:012x}-{random:016x}").into())
}
