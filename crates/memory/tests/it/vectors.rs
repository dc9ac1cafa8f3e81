//! Vectors: computed in the background, used for one model at a time, and removed with their
//! memories.

use std::sync::{Arc, Mutex};

use serde_json::json;
use switchboard_embed::{Embedder, ModelError, Role, StaticTable};
use switchboard_memory::{Model, Settings};
use switchboard_test_support::until_async;

use crate::rig::Rig;

/// A model like the built-in one, but with a different fingerprint, or one that fails.
struct Other {
    fingerprint: &'static str,
    works: bool,
}

impl Embedder for Other {
    fn name(&self) -> &str {
        self.fingerprint
    }

    fn fingerprint(&self) -> &str {
        self.fingerprint
    }

    fn dimensions(&self) -> usize {
        StaticTable::built_in().dimensions()
    }

    fn embed(&self, role: Role, text: &str) -> Result<Option<Vec<f32>>, ModelError> {
        Ok(self.embed_all(role, &[text])?.remove(0))
    }

    fn embed_all(&self, role: Role, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        if !self.works {
            return Err(ModelError::Dimensions {
                expected: 1,
                found: 0,
            });
        }
        let mut made = StaticTable::built_in().embed_all(role, texts)?;
        // Negated, so that vectors of the two models are never similar.
        for number in made.iter_mut().flatten().flatten() {
            *number = -*number;
        }
        Ok(made)
    }
}

#[tokio::test]
async fn similar_meaning_is_found_once_vectors_exist() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::with_vectors(folder.path());
    rig.store(json!({ "content": "the automobile is in the workshop" }))
        .await;
    rig.store(json!({ "content": "bread is baked on Sundays" }))
        .await;
    rig.embedded().await;
    let found = rig
        .call(
            "search_memory",
            json!({ "query": "car repair", "mode": "vector", "limit": 1 }),
        )
        .await;
    assert_eq!(
        found["memories"][0]["content"],
        "the automobile is in the workshop"
    );
    assert!(found["memories"][0]["channels"]["vector"].is_number());
    assert_eq!(found["vectors"], "ready");
}

#[tokio::test]
async fn recall_without_model_uses_words_alone() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::open(folder.path());
    rig.store(json!({ "content": "bread is baked on Sundays" }))
        .await;
    let found = rig
        .call("recall", json!({ "query": "when is bread baked" }))
        .await;
    assert_eq!(
        (&found["count"], &found["vectors"]),
        (&json!(1), &json!("off"))
    );
    let said = rig
        .refused(
            "search_memory",
            json!({ "query": "bread", "mode": "vector" }),
        )
        .await;
    assert!(said.contains("vectors: off"), "{said}");
}

#[tokio::test]
async fn new_model_takes_over_once_complete() {
    let folder = tempfile::tempdir().unwrap();
    let wanted: Arc<Mutex<Option<Model>>> = Arc::default();
    let source = Arc::clone(&wanted);
    *wanted.lock().unwrap() = Some(Arc::new(StaticTable::built_in()));
    let rig = Rig::with(folder.path(), Settings::default(), move || {
        source.lock().unwrap().clone()
    });
    for n in 0..100 {
        rig.store(json!({ "content": format!("the automobile number {n}") }))
            .await;
    }
    rig.embedded().await;
    let search = json!({ "query": "car", "mode": "vector", "limit": 3 });
    assert_eq!(rig.contents("search_memory", search.clone()).await.len(), 3);
    // A model that fails changes nothing: the old one stays in use.
    let use_model = |fingerprint, works| {
        *wanted.lock().unwrap() = Some(Arc::new(Other { fingerprint, works }));
        rig.memory.model_changed();
    };
    use_model("broken", false);
    let status = until_async("it has failed", async || {
        let status = rig.call("get_status", json!({})).await;
        Some(status).filter(|status| status["parts"]["embeddings"]["state"] == "error")
    })
    .await;
    assert_eq!(status["parts"]["embeddings"]["model"], "static table");
    assert_eq!(rig.contents("search_memory", search.clone()).await.len(), 3);
    use_model("turned", true);
    loop {
        let status = rig.call("get_status", json!({})).await;
        // At every moment something is found, by the vectors of one model.
        let found = rig.call("search_memory", search.clone()).await;
        assert_eq!(found["count"], 3, "{found}");
        if status["parts"]["embeddings"]["model"] == "turned" {
            break;
        }
    }
    rig.embedded().await;
    let models = rig.store.memories().models().await.unwrap();
    let active: Vec<_> = models.iter().filter(|model| model.active).collect();
    assert_eq!(active.len(), 1);
    assert_eq!(
        (&*active[0].fingerprint, active[0].vectors),
        ("turned", 100)
    );
}
