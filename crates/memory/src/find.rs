//! Recalling, reading and listing memories.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_recall::{Channels, Hit, Library, Query};

use crate::{
    count::Count,
    error::{Error, shortened},
    record,
    remember::One,
    scope::{Filter, Which, time},
    service::Memory,
};

/// The default number of hits.
const FOUND: usize = 10;
/// The longest query, in bytes.
const QUERY_BYTES: usize = 16 * 1024;
/// The default length of a list.
const LISTED: usize = 20;

#[derive(Debug, Deserialize)]
pub(crate) struct Recall {
    query: String,
    limit: Option<Count>,
    mode: Option<Mode>,
    #[serde(flatten)]
    which: Which,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Text,
    Vector,
}

#[derive(Debug, Deserialize)]
pub(crate) struct List {
    #[serde(flatten)]
    which: Which,
    limit: Option<Count>,
    #[serde(default)]
    offset: Count,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Get {
    #[serde(flatten)]
    one: One,
    known_at: Option<String>,
    #[serde(default)]
    history: bool,
}

impl Memory {
    pub(crate) async fn recall(&self, wish: Recall) -> Result<Value, Error> {
        let channels = Channels::default();
        self.seek(wish, channels).await
    }

    pub(crate) async fn search_memory(&self, wish: Recall) -> Result<Value, Error> {
        let mode = wish.mode.unwrap_or(Mode::Text);
        let channels = Channels {
            lexical: mode == Mode::Text,
            vector: mode == Mode::Vector,
            graph: false,
        };
        if mode == Mode::Vector && self.inner.backfill.serving().is_none() {
            let vectors = self.vectors_word();
            if vectors != "off" {
                return Err(Error::Initializing { part: "embeddings" });
            }
            return Err(Error::Invalid {
                message: format!("search by meaning is not available (vectors: {vectors})"),
                hint: Some("use mode \"text\", or see get_status".into()),
            });
        }
        self.seek(wish, channels).await
    }

    async fn seek(&self, wish: Recall, channels: Channels) -> Result<Value, Error> {
        if wish.query.trim().is_empty() {
            return Err(Error::invalid(
                "query is empty: give a question or keywords",
            ));
        }
        if wish.query.len() > QUERY_BYTES {
            return Err(Error::invalid(format!(
                "query has {} bytes, but at most {QUERY_BYTES} are allowed: ask in one sentence",
                wish.query.len()
            )));
        }
        self.ready().await?;
        let filter = wish.which.filter()?;
        let limit = wish.limit.map_or(FOUND, Count::get);
        let mut hits = self.hits(wish.query, filter, limit, channels).await?;
        if channels.is_words_alone() {
            // A search by words leaves out memories that were found only through their neighbours.
            hits.retain(|hit| !hit.words.is_empty());
            hits.truncate(limit);
        }
        let rows = hits.iter().map(|hit| hit.row).collect();
        let versions = self.ask(self.inner.memories.versions(rows)).await?;
        let by_row: HashMap<u64, &Hit> = hits.iter().map(|hit| (hit.row, hit)).collect();
        let memories = versions.iter().filter_map(|version| {
            let hit = by_row.get(&version.row)?;
            let mut members = record::whole(version);
            members.insert("score".to_owned(), json!(record::number(hit.score)));
            members.insert("channels".to_owned(), channels_of(hit));
            let why = json!({ "words": hit.words, "entities": hit.entities });
            members.insert("why".to_owned(), why);
            Some(members)
        });
        let memories = record::as_many_as_fit(memories);
        let count = memories.len();
        let vectors = self.vectors_word();
        Ok(json!({ "memories": memories, "count": count, "vectors": vectors }))
    }

    async fn hits(
        &self,
        text: String,
        filter: Filter,
        limit: usize,
        channels: Channels,
    ) -> Result<Vec<Hit>, Error> {
        // Hits that were found only through their context are dropped later.
        let sought = if channels.is_words_alone() {
            limit * 4
        } else {
            limit
        };
        // The model may change once between embedding the query and searching.
        for attempt in 0..2 {
            let meaning = if channels.vector {
                self.meaning(&text).await
            } else {
                None
            };
            let (text, filter) = (text.clone(), filter.clone());
            let asked = self.inner.index.ask(move |library| {
                let meaning = meaning.as_ref();
                let meaning = meaning.map(|(model, vector)| (&**model, &**vector));
                let is_old = meaning.is_some_and(|(model, _)| library.model() != Some(model));
                let found = |library: &Library| {
                    library.recall(&Query {
                        text: &text,
                        meaning,
                        filter: filter.for_library(),
                        limit: sought,
                        channels,
                    })
                };
                (attempt > 0 || !is_old).then(|| found(library))
            });
            if let Some(hits) = self.consult(asked).await? {
                return Ok(hits);
            }
        }
        Ok(Vec::new())
    }

    pub(crate) async fn get_memory(&self, wish: Get) -> Result<Value, Error> {
        let current = self.current(&wish.one.id, &wish.one.scope.scope()).await?;
        let known_at = time("known_at", wish.known_at.as_deref())?;
        if known_at.is_none() && !wish.history {
            return Ok(Value::Object(record::whole(&current)));
        }
        let memories = &self.inner.memories;
        let shown = match known_at {
            None => Some(current),
            Some(at) => self.ask(memories.known(&current.id, at)).await?,
        };
        let shown = shown.ok_or_else(|| Error::Missing {
            what: "memory",
            id: shortened(&wish.one.id),
            hint: "it was not known at that time; use a later known_at",
        })?;
        let mut members = record::whole(&shown);
        if wish.history {
            let mut history = self.ask(memories.history(&shown.id)).await?;
            // If not all versions fit, keep the latest.
            history.reverse();
            let mut versions = record::as_many_as_fit(history.iter().map(record::whole));
            versions.reverse();
            members.insert("history".to_owned(), json!(versions));
        }
        Ok(Value::Object(members))
    }

    pub(crate) async fn list_memories(&self, wish: List) -> Result<Value, Error> {
        let filter = wish.which.filter()?;
        self.list(&filter, wish.limit, wish.offset).await
    }

    pub(crate) async fn get_valid(&self, wish: List) -> Result<Value, Error> {
        let mut filter = wish.which.filter()?;
        filter.as_of = filter.as_of.or(Some(filter.now));
        self.list(&filter, wish.limit, wish.offset).await
    }

    async fn list(
        &self,
        filter: &Filter,
        limit: Option<Count>,
        offset: Count,
    ) -> Result<Value, Error> {
        let (limit, offset) = (limit.map_or(LISTED, Count::get), offset.get());
        let listing = filter.listing(limit, offset);
        let listed = self.ask(self.inner.memories.list(listing)).await?;
        let memories = record::as_many_as_fit(listed.versions.iter().map(record::whole));
        let count = memories.len();
        let mut answer = json!({ "memories": memories, "count": count, "total": listed.total });
        let next = offset + count;
        if count > 0 && (next as u64) < listed.total {
            answer["next_offset"] = json!(next);
        }
        Ok(answer)
    }

    /// Checks that the store works, so that a problem is reported instead of waited for.
    pub(crate) async fn ready(&self) -> Result<(), Error> {
        self.ask(self.inner.memories.counts()).await.map(|_| ())
    }
}

fn channels_of(hit: &Hit) -> Value {
    // A memory without any of the words was found through its neighbours or its time.
    let (lexical, context) = if hit.words.is_empty() {
        (None, hit.lexical)
    } else {
        (hit.lexical, None)
    };
    let channels = [
        ("lexical", lexical),
        ("context", context),
        ("vector", hit.vector),
        ("graph", hit.graph),
    ];
    let found = channels
        .into_iter()
        .filter_map(|(name, score)| Some((name.to_owned(), json!(record::number(score?)))));
    Value::Object(found.collect())
}
