//! Merges memories that say the same: a preview first, then the change.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use switchboard_store::memory::{Listing, MemoryChange, NewMention, Version};
use switchboard_text::hex;

use crate::{count::Count, error::Error, record, remember, scope::Scoped, service::Memory, times};

/// The default for the least similarity of two memories.
const SIMILARITY: f32 = 0.9;
/// The default for the most groups that are shown and merged at once.
const GROUPS: usize = 50;
/// The most memories that are compared, the latest first.
const LOOKED_AT: usize = 20_000;
const LOOKED_AT_BYTES: usize = 64 * 1024 * 1024;
const PAGE: usize = 1_000;
/// The greatest number of similar memories that are found for each.
const OTHERS: usize = 16;

#[derive(Debug, Deserialize)]
pub(crate) struct Consolidate {
    similarity: Option<f32>,
    limit: Option<Count>,
    apply: Option<String>,
    #[serde(flatten)]
    scope: Scoped,
}

/// Memories of one scope that say nearly the same.
struct Group {
    keep: Version,
    /// Memories that are merged into the kept one, with their similarity to it.
    merge: Vec<(Version, f32)>,
}

impl Memory {
    pub(crate) async fn consolidate_memory(&self, wish: Consolidate) -> Result<Value, Error> {
        self.ready().await?;
        let least = wish.similarity.unwrap_or(SIMILARITY);
        let limit = wish.limit.map_or(GROUPS, Count::get);
        let groups = self.groups(&wish.scope, least, limit).await?;
        let plan = fingerprint(&groups);
        if let Some(apply) = &wish.apply {
            if *apply != plan {
                return Err(Error::Conflict {
                    message: "the plan is out of date: memories have changed since the preview",
                    hint: "request a new preview",
                });
            }
            self.merge(&groups).await?;
        }
        let told: Vec<Value> = groups.iter().map(told).collect();
        let count: usize = groups.iter().map(|group| group.merge.len()).sum();
        let applied = wish.apply.is_some();
        Ok(json!({ "plan": plan, "groups": told, "count": count, "applied": applied }))
    }

    async fn groups(&self, scope: &Scoped, least: f32, limit: usize) -> Result<Vec<Group>, Error> {
        let now = times::now();
        let versions = self.all(scope, now).await?;
        let rows: Vec<u64> = versions.keys().copied().collect();
        // A few at a time, so that other queries to the library do not wait for long.
        let mut alike: HashMap<u64, Vec<(u64, f32)>> = HashMap::new();
        for rows in rows.chunks(PAGE / 10) {
            let rows = rows.to_vec();
            let found = self.inner.index.ask(move |library| {
                let of = |row: u64| (row, library.alike(row, now, least, OTHERS));
                rows.into_iter().map(of).collect::<Vec<_>>()
            });
            alike.extend(self.consult(found).await?);
        }
        let mut taken = BTreeSet::new();
        let mut groups = Vec::new();
        for (row, version) in &versions {
            if taken.contains(row) || groups.len() >= limit {
                continue;
            }
            let mut members = vec![version];
            let others = alike.get(row).into_iter().flatten();
            members.extend(
                others
                    .filter(|(other, _)| !taken.contains(other))
                    .filter_map(|(other, _)| versions.get(other))
                    .filter(|other| is_same_matter(version, other)),
            );
            if members.len() < 2 {
                continue;
            }
            let Some(keep) = members
                .iter()
                .copied()
                .max_by(|a, b| worth(a).cmp(&worth(b)))
            else {
                continue;
            };
            taken.extend(members.iter().map(|member| member.row));
            // Only memories that are similar to the kept one are merged; others stay.
            let to_keep: HashMap<u64, f32> = alike
                .get(&keep.row)
                .into_iter()
                .flatten()
                .copied()
                .collect();
            let merge: Vec<_> = members
                .into_iter()
                .filter(|member| covers(keep, member))
                .filter_map(|member| Some((member.clone(), *to_keep.get(&member.row)?)))
                .collect();
            if !merge.is_empty() {
                let keep = keep.clone();
                groups.push(Group { keep, merge });
            }
        }
        Ok(groups)
    }

    /// Returns the memories within a scope that are true at present.
    async fn all(&self, scope: &Scoped, now: i64) -> Result<BTreeMap<u64, Version>, Error> {
        let mut versions = BTreeMap::new();
        let mut bytes = 0;
        while versions.len() < LOOKED_AT && bytes < LOOKED_AT_BYTES {
            let listing = Listing {
                scope: scope.scope(),
                ended_by: Some(now),
                limit: PAGE,
                offset: versions.len(),
                ..Listing::default()
            };
            let listed = self.ask(self.inner.memories.list(listing)).await?;
            let before = versions.len();
            let lengths = listed.versions.iter().map(|one| one.content.len());
            bytes += lengths.sum::<usize>();
            versions.extend(listed.versions.into_iter().map(|one| (one.row, one)));
            if versions.len() == before {
                break;
            }
        }
        Ok(versions)
    }

    /// Invalidates the merged memories, and adds their mentions to the kept ones, in one write.
    async fn merge(&self, groups: &[Group]) -> Result<(), Error> {
        let now = times::now();
        let mut changes = Vec::new();
        for group in groups {
            let mut mentions = remember::kept(&group.keep, now)?;
            let before = mentions.len();
            for (given_way, _) in &group.merge {
                for mention in remember::kept(given_way, now)? {
                    take(&mut mentions, mention);
                }
                let mut next = remember::next(given_way, now);
                next.valid_until = Some(next.valid_from.map_or(now, |from| from.max(now)));
                next.reason = Some("consolidated".into());
                next.superseded_by = Some(Arc::clone(&group.keep.id));
                changes.push(MemoryChange::Revise {
                    id: Arc::clone(&given_way.id),
                    was: given_way.version,
                    version: next,
                    mentions: remember::kept(given_way, now)?,
                });
            }
            if mentions.len() > before {
                changes.push(MemoryChange::Revise {
                    id: Arc::clone(&group.keep.id),
                    was: group.keep.version,
                    version: remember::next(&group.keep, now),
                    mentions,
                });
            }
        }
        if !changes.is_empty() {
            self.write(changes).await?;
        }
        Ok(())
    }
}

fn take(mentions: &mut Vec<NewMention>, mention: NewMention) {
    if mentions.iter().all(|known| known.key != mention.key) {
        mentions.push(mention);
    }
}

/// Returns `true` if two memories can be one: the same event recorded twice, not two similar events.
fn is_same_matter(one: &Version, other: &Version) -> bool {
    let is_event = &*one.kind == "episodic";
    one.kind == other.kind && (!is_event || one.valid_from == other.valid_from)
}

/// Returns `true` if one memory is true whenever the other is.
fn covers(one: &Version, other: &Version) -> bool {
    let begins = one
        .valid_from
        .is_none_or(|from| other.valid_from.is_some_and(|other| from <= other));
    let ends = one
        .valid_until
        .is_none_or(|until| other.valid_until.is_some_and(|other| other <= until));
    begins && ends
}

/// Ranks the members of a group to choose the one to keep: the most important, then the longest, then
/// the last stored.
fn worth(version: &Version) -> (u32, usize, u64) {
    // The bits of non-negative floats are in the order of the numbers.
    (
        version.importance.max(0.0).to_bits(),
        version.content.len(),
        version.row,
    )
}

/// Returns a digest that identifies this plan.
fn fingerprint(groups: &[Group]) -> String {
    let mut hash = Sha256::new();
    for group in groups {
        hash.update(group.keep.row.to_be_bytes());
        for (version, _) in &group.merge {
            hash.update(version.row.to_be_bytes());
        }
        hash.update(u64::MAX.to_be_bytes());
    }
    let hash = hash.finalize();
    format!("plan-{}", hex::encode(&hash[..12]))
}

fn told(group: &Group) -> Value {
    let merge: Vec<Value> = group
        .merge
        .iter()
        .map(|(version, how)| {
            let mut members = record::brief(version);
            members.insert("similarity".to_owned(), json!(record::number(*how)));
            Value::Object(members)
        })
        .collect();
    json!({ "keep": record::brief(&group.keep), "merge": merge })
}
