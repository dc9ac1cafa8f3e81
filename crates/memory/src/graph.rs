//! The entities that memories mention, and their relations.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_recall::extract;
use switchboard_store::memory::{Entity, Made, MemoryChange, Relation, Scope};

use crate::{
    count::Count,
    error::Error,
    record,
    remember::new_id,
    scope::{self, Filter, Scoped},
    service::Memory,
    times,
};

/// The default number of entities in an answer.
const ENTITIES: usize = 50;
/// The most memories in an answer that mention an entity.
const MEMORIES: usize = 20;
/// The most relations that are followed in one step.
const RELATIONS: usize = 1_000;

#[derive(Debug, Deserialize)]
pub(crate) struct CreateEntity {
    name: String,
    entity_type: Option<Arc<str>>,
    description: Option<Arc<str>>,
    #[serde(flatten)]
    scope: Scoped,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CreateRelation {
    from: String,
    to: String,
    relation_type: Arc<str>,
    weight: Option<f32>,
    #[serde(flatten)]
    scope: Scoped,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Related {
    entity: Option<String>,
    depth: Option<Count>,
    #[serde(default)]
    direction: Direction,
    limit: Option<Count>,
    #[serde(flatten)]
    scope: Scoped,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    #[default]
    Both,
    Out,
    In,
}

impl Memory {
    pub(crate) async fn create_entity(&self, wish: CreateEntity) -> Result<Value, Error> {
        let now = times::now();
        let key = extract::key(&wish.name);
        if key.is_empty() {
            return Err(Error::invalid(
                "name is empty: give the name of a person or thing",
            ));
        }
        let change = MemoryChange::Entity {
            id: new_id(now)?,
            scope: wish.scope.scope(),
            name: wish.name.trim().into(),
            key: key.into(),
            kind: wish.entity_type,
            description: wish.description,
            learned_at: now,
            found: false,
        };
        match self.write(vec![change]).await?.into_iter().next() {
            Some(Made::Entity {
                id, name, created, ..
            }) => Ok(json!({ "id": id, "name": name, "created": created })),
            _ => Err(Error::Internal("the entity was not created".to_owned())),
        }
    }

    pub(crate) async fn create_relation(&self, wish: CreateRelation) -> Result<Value, Error> {
        let scope = wish.scope.scope();
        if wish.relation_type.trim().is_empty() {
            return Err(Error::invalid(
                "relation_type is empty: say how they are related, e.g. \"works at\"",
            ));
        }
        let (from, to) = self.ends(&wish.from, &wish.to, &scope).await?;
        let now = times::now();
        let change = MemoryChange::Relation {
            id: new_id(now)?,
            from: from.row,
            to: to.row,
            kind: Arc::clone(&wish.relation_type),
            weight: wish.weight.unwrap_or(1.0),
            learned_at: now,
        };
        match self.write(vec![change]).await?.into_iter().next() {
            Some(Made::Relation { id, created, .. }) => Ok(json!({
                "id": id,
                "from": from.name,
                "to": to.name,
                "relation_type": wish.relation_type,
                "created": created,
            })),
            _ => Err(Error::Internal("the relation was not created".to_owned())),
        }
    }

    /// Returns the two entities of a relation, which must be in one scope: preferably the given one.
    pub(crate) async fn ends(
        &self,
        from: &str,
        to: &str,
        scope: &Scope,
    ) -> Result<(Entity, Entity), Error> {
        let froms = self.entities_named(from, scope).await?;
        let tos = self.entities_named(to, scope).await?;
        let pairs = || {
            let pairs = froms
                .iter()
                .flat_map(|from| tos.iter().map(move |to| (from, to)));
            pairs.filter(|(from, to)| from.scope == to.scope)
        };
        let named = pairs().find(|(from, _)| from.scope == *scope);
        let mut others = pairs();
        let (from, to) = match (named, others.next(), others.next()) {
            (Some(pair), ..) => pair,
            (None, Some(pair), None) => pair,
            (None, Some(_), Some(_)) => {
                return Err(Error::invalid(
                    "these entities exist in several scopes: give the scope, or their IDs",
                ));
            }
            (None, None, _) => {
                return Err(Error::invalid(
                    "the two entities are in different scopes: a relation cannot cross scopes",
                ));
            }
        };
        Ok((from.clone(), to.clone()))
    }

    /// Returns the entities with this name or ID within a scope, or an error if there are none.
    async fn entities_named(&self, name: &str, scope: &Scope) -> Result<Vec<Entity>, Error> {
        let memories = &self.inner.memories;
        let mut found = self.ask(memories.entity(scope, name)).await?;
        if found.is_empty() {
            let key = extract::key(name);
            found = self.ask(memories.entity(scope, &key)).await?;
        }
        if found.is_empty() {
            return Err(Error::no_entity(name));
        }
        Ok(found)
    }

    /// Returns the rows of the entities that are mentioned most within a scope.
    pub(crate) async fn most_mentioned(
        &self,
        scope: &Scope,
        limit: usize,
    ) -> Result<Vec<u64>, Error> {
        let filter = Filter::of(scope.clone());
        let counted = self
            .inner
            .index
            .ask(move |library| library.most_mentioned(&filter.for_library(), limit));
        self.consult(counted).await
    }

    pub(crate) async fn get_related(&self, wish: Related) -> Result<Value, Error> {
        let scope = wish.scope.scope();
        let memories = &self.inner.memories;
        let limit = wish.limit.map_or(ENTITIES, Count::get);
        let (starts, depth): (Vec<u64>, usize) = if let Some(name) = &wish.entity {
            let named = self.entities_named(name, &scope).await?;
            let rows = named.iter().map(|entity| entity.row);
            (rows.collect(), wish.depth.map_or(1, Count::get))
        } else {
            // Only the relations between the entities that are mentioned most.
            (self.most_mentioned(&scope, limit).await?, 0)
        };
        let mut walk = Walk {
            limit,
            direction: wish.direction,
            distances: starts.iter().map(|row| (*row, 0)).collect(),
            order: starts.clone(),
            relations: Vec::new(),
        };
        let mut frontier = starts.clone();
        for distance in 1..=depth.max(1) {
            let steps = memories.relations_of(frontier.clone(), RELATIONS);
            let steps = self.ask(steps).await?;
            frontier = walk.step(&frontier, steps, (depth > 0).then_some(distance));
        }
        let entities = self.ask(memories.entities(walk.order)).await?;
        let ids: HashMap<u64, &Arc<str>> = entities
            .iter()
            .map(|(entity, _)| (entity.row, &entity.id))
            .collect();
        let distance = |row| walk.distances.get(row).copied().unwrap_or(0);
        let told: Vec<Value> = entities
            .iter()
            .map(|(entity, mentions)| told(entity, *mentions, distance(&entity.row)))
            .collect();
        let relations: Vec<Value> = walk
            .relations
            .iter()
            .filter_map(|relation| {
                Some(json!({
                    "id": relation.id,
                    "from": ids.get(&relation.from)?,
                    "to": ids.get(&relation.to)?,
                    "relation_type": relation.kind,
                    "weight": record::number(relation.weight),
                }))
            })
            .collect();
        let mentioning = match wish.entity {
            Some(_) => self.ask(memories.mentioning(starts, MEMORIES)).await?,
            None => Vec::new(),
        };
        let mentioning: Vec<Value> = mentioning
            .iter()
            .map(|version| Value::Object(record::brief(version)))
            .collect();
        Ok(json!({ "entities": told, "relations": relations, "memories": mentioning }))
    }
}

/// A walk from some entities to the ones around them.
struct Walk {
    limit: usize,
    direction: Direction,
    /// Distance of each entity reached.
    distances: HashMap<u64, usize>,
    order: Vec<u64>,
    /// Relations between these entities.
    relations: Vec<Relation>,
}

impl Walk {
    /// Follows the relations of the entities that were reached last. Returns the entities reached by them,
    /// if `distance` is set.
    fn step(
        &mut self,
        frontier: &[u64],
        steps: Vec<Relation>,
        distance: Option<usize>,
    ) -> Vec<u64> {
        let last: HashSet<u64> = frontier.iter().copied().collect();
        let mut reached = Vec::new();
        for relation in steps {
            let ways = [
                (relation.from, relation.to, Direction::In),
                (relation.to, relation.from, Direction::Out),
            ];
            let mut is_taken = false;
            for (start, end, against) in ways {
                if !last.contains(&start) || self.direction == against {
                    continue;
                }
                if let Some(distance) = distance
                    && self.order.len() < self.limit
                    && !self.distances.contains_key(&end)
                {
                    self.distances.insert(end, distance);
                    self.order.push(end);
                    reached.push(end);
                }
                is_taken |= self.distances.contains_key(&end);
            }
            let is_known = self.relations.iter().any(|known| known.row == relation.row);
            if is_taken && !is_known {
                self.relations.push(relation);
            }
        }
        reached
    }
}

fn told(entity: &Entity, mentions: u64, distance: usize) -> Value {
    let mut members = record::entity(entity);
    members.insert("mentions".to_owned(), json!(mentions));
    members.insert("distance".to_owned(), json!(distance));
    scope::put(&entity.scope, &mut members);
    Value::Object(members)
}
