//! Tests of the public interface of the crate.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod finding;
mod keeping;

use std::sync::Arc;

use switchboard_embed::StaticTable;
use switchboard_search::{
    Cache, Filter, Found, Index, Language, Learnt, Meaning, Query, Segment, Tool, Vectors,
    WORDS_BESIDE_TABLE,
};
use switchboard_wire::Raw;

/// A tool with a description.
fn definition(name: &str, says: &str) -> (String, Raw) {
    let raw = serde_json::json!({ "name": name, "description": says });
    (name.to_owned(), Raw::from_value(&raw).unwrap())
}

fn tools(definitions: &[(String, Raw)]) -> Vec<Tool<'_>> {
    let tool = |(name, definition)| Tool {
        name,
        definition,
        trusted: true,
    };
    definitions
        .iter()
        .map(|(name, raw)| tool((name, raw)))
        .collect()
}

fn segment(server: &str, definitions: &[(String, Raw)]) -> Arc<Segment> {
    let language = Language::built_in();
    Arc::new(Segment::new(server, &language, tools(definitions)))
}

fn ask(index: &Index, text: &str, filter: Filter<'_>) -> Found {
    search(index, &Learnt::default(), text, filter, None)
}

fn search(
    index: &Index,
    learnt: &Learnt,
    text: &str,
    filter: Filter<'_>,
    meaning: Option<Meaning<'_>>,
) -> Found {
    let query = Query {
        text,
        limit: 5,
        filter,
        explain: true,
    };
    index.search(&Language::built_in(), learnt, meaning, &query)
}

fn names(found: &Found) -> Vec<&str> {
    found.hits.iter().map(|hit| &*hit.name).collect()
}

/// Vectors of the built-in table.
fn vectors(definitions: &[(String, Raw)]) -> Vectors {
    let table = StaticTable::built_in();
    let vectors = Vectors::new(&tools(definitions), table, &mut Cache::none(), &|| true);
    vectors.unwrap().unwrap()
}

fn meaning(vector: &[f32]) -> Meaning<'_> {
    use switchboard_embed::Embedder;
    Meaning {
        model: StaticTable::built_in().fingerprint(),
        vector,
        words: WORDS_BESIDE_TABLE,
    }
}
