//! The indexes of scopes.
//!
//! A score depends on every tool of its index: on the number of tools with a word, and on the length of their texts. A
//! scope that searched the index of all tools could learn from its scores which words hidden tools contain. So its index
//! is made of its own catalog alone.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use switchboard_catalog::Catalog;
use switchboard_search::{Index, Tool};

use super::{Made, segment};

/// The most indexes that are kept. Another scope takes the place of the one that searched longest ago.
const INDEXES: usize = 32;

/// The indexes of the scopes that searched last.
#[derive(Debug, Default)]
pub(super) struct ScopedIndexes(Mutex<VecDeque<Known>>);

#[derive(Debug)]
struct Known {
    catalog: Weak<Catalog>,
    made: Weak<Made>,
    index: Arc<Index>,
}

impl ScopedIndexes {
    /// The index of a scope's catalog. It takes the work that is done from the index of all tools.
    pub(super) fn of(&self, catalog: &Arc<Catalog>, made: &Arc<Made>) -> Arc<Index> {
        if let Some(index) = self.find(catalog, made) {
            return index;
        }
        // Another search may make it as well, which costs only time.
        let index = Arc::new(index(catalog, made));
        let mut known = self.0.lock();
        known.truncate(INDEXES - 1);
        known.push_front(Known {
            catalog: Arc::downgrade(catalog),
            made: Arc::downgrade(made),
            index: Arc::clone(&index),
        });
        index
    }

    fn find(&self, catalog: &Arc<Catalog>, made: &Arc<Made>) -> Option<Arc<Index>> {
        let mut all = self.0.lock();
        let is_current = |known: &Known| std::ptr::eq(known.made.as_ptr(), Arc::as_ptr(made));
        all.retain(|known| is_current(known) && known.catalog.strong_count() > 0);
        let is_it = |known: &Known| std::ptr::eq(known.catalog.as_ptr(), Arc::as_ptr(catalog));
        let at = all.iter().position(is_it)?;
        let known = all.remove(at)?;
        let index = Arc::clone(&known.index);
        all.push_front(known);
        Some(index)
    }
}

fn index(catalog: &Catalog, made: &Made) -> Index {
    let parts = catalog.servers().filter_map(|part| {
        let whole = made.index.server(part.name());
        let from = made.from.get(part.name());
        if from.is_some_and(|from| Arc::ptr_eq(from, part)) {
            return whole.map(|(segment, vectors)| (Arc::clone(segment), vectors.cloned()));
        }
        let is_trusted = |tool: &Tool<'_>| {
            let known = whole.and_then(|(segment, _)| segment.is_trusted(tool.name));
            known.unwrap_or(true)
        };
        let segment = segment(part, &is_trusted)?;
        let vectors = whole.and_then(|(from, vectors)| Some(vectors?.select(from, &segment)));
        Some((segment, vectors.map(Arc::new)))
    });
    Index::default().with_all(|_| true, parts)
}
