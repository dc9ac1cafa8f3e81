//! A model small enough to be generated here, and errors when one of its files is invalid.

use std::{fs, path::Path};

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_embed::{Embedder, MiniLm, ModelError, Role};
use tempfile::TempDir;

const PIECES: [&str; 6] = ["[UNK]", "[CLS]", "[SEP]", "read", "file", "##s"];

/// The files of a one-layer model, before they are written.
pub(crate) struct Files {
    config: Value,
    /// Name and shape of every tensor.
    tensors: Vec<(String, Vec<usize>)>,
    vocabulary: String,
}

impl Files {
    pub(crate) fn new() -> Self {
        let mut tensors = vec![
            ("embeddings.word_embeddings.weight".to_owned(), vec![6, 8]),
            (
                "embeddings.position_embeddings.weight".to_owned(),
                vec![5, 8],
            ),
            (
                "embeddings.token_type_embeddings.weight".to_owned(),
                vec![2, 8],
            ),
        ];
        let mut both = |name: &str, shape: &[usize]| {
            tensors.push((format!("{name}.weight"), shape.to_vec()));
            tensors.push((format!("{name}.bias"), vec![shape[0]]));
        };
        both("embeddings.LayerNorm", &[8]);
        for part in ["query", "key", "value"] {
            both(&format!("encoder.layer.0.attention.self.{part}"), &[8, 8]);
        }
        both("encoder.layer.0.attention.output.dense", &[8, 8]);
        both("encoder.layer.0.attention.output.LayerNorm", &[8]);
        both("encoder.layer.0.intermediate.dense", &[12, 8]);
        both("encoder.layer.0.output.dense", &[8, 12]);
        both("encoder.layer.0.output.LayerNorm", &[8]);
        Self {
            config: json!({
                "model_type": "bert",
                "hidden_act": "gelu",
                "hidden_size": 8,
                "intermediate_size": 12,
                "layer_norm_eps": 1e-12,
                "max_position_embeddings": 5,
                "num_attention_heads": 2,
                "num_hidden_layers": 1,
                "type_vocab_size": 2,
                "vocab_size": 6,
            }),
            tensors,
            vocabulary: PIECES.join("\n"),
        }
    }

    /// The header of the weights, and the number of values that follow it.
    fn head(&self) -> (Value, usize) {
        let mut head = json!({ "__metadata__": { "format": "pt" } });
        let mut end = 0;
        for (name, shape) in &self.tensors {
            let start = end;
            end += shape.iter().product::<usize>();
            head[name] = json!({
                "dtype": "F32",
                "shape": shape,
                "data_offsets": [4 * start, 4 * end],
            });
        }
        (head, end)
    }

    fn weights(&self) -> Vec<u8> {
        let (head, count) = self.head();
        let numbers =
            (0..count).map(|i| f32::from(u16::try_from(i * 37 % 101).unwrap()) / 50.0 - 1.0);
        safetensors(&head.to_string(), numbers)
    }

    pub(crate) fn write(&self) -> TempDir {
        self.write_with(&self.weights())
    }

    fn write_with(&self, weights: &[u8]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("config.json"), self.config.to_string()).unwrap();
        fs::write(at("vocab.txt"), &self.vocabulary).unwrap();
        fs::write(at("model.safetensors"), weights).unwrap();
        folder
    }
}

fn safetensors(head: &str, numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
    let mut bytes = (head.len() as u64).to_le_bytes().to_vec();
    bytes.extend(head.bytes());
    bytes.extend(numbers.into_iter().flat_map(f32::to_le_bytes));
    bytes
}

pub(crate) fn refused(folder: &Path) -> String {
    match MiniLm::open(folder) {
        Ok(model) => panic!("opened {model:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn small_model_works() {
    let folder = Files::new().write();
    let model = MiniLm::open(folder.path()).unwrap();
    assert_eq!(model.dimensions(), 8);
    let vector = model.embed(Role::Passage, "Read files").unwrap().unwrap();
    let length: f32 = vector.iter().map(|x| x * x).sum();
    assert!((length - 1.0).abs() < 1e-5);
    // Five positions hold three pieces of text.
    assert_eq!(
        model
            .embed(Role::Passage, "read files read read")
            .unwrap()
            .unwrap(),
        vector
    );
    assert_ne!(
        model.embed(Role::Passage, "read file").unwrap().unwrap(),
        vector
    );
    assert_eq!(model.embed(Role::Passage, " ").unwrap(), None);
}

#[test]
fn vector_does_not_depend_on_the_batch() {
    let folder = Files::new().write();
    let model = MiniLm::open(folder.path()).unwrap();
    let texts = ["read", "files", "", "read file", "file read files", "what"];
    let many: Vec<&str> = texts.iter().copied().cycle().take(600).collect();
    let together = model.embed_all(Role::Passage, &many).unwrap();
    for (text, vector) in many.iter().zip(together) {
        let alone = model.embed(Role::Passage, text).unwrap();
        assert_eq!(alone.is_some(), vector.is_some(), "{text:?}");
        let numbers = alone.iter().flatten().zip(vector.iter().flatten());
        for (alone, together) in numbers {
            assert!((alone - together).abs() < 1e-6, "{text:?}");
        }
    }
}

#[test]
fn vocabulary_is_read_from_the_tokenizer() {
    let folder = Files::new().write();
    let expected = MiniLm::open(folder.path()).unwrap();
    let write = |vocab: Value| {
        let tokenizer =
            json!({ "version": "1.0", "model": { "type": "WordPiece", "vocab": vocab } });
        fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    };
    fs::remove_file(folder.path().join("vocab.txt")).unwrap();
    write(json!({ "[UNK]": 0, "file": 4, "read": 3, "##s": 5, "[CLS]": 1, "[SEP]": 2 }));
    let model = MiniLm::open(folder.path()).unwrap();
    assert_eq!(model.fingerprint(), expected.fingerprint());
    assert_eq!(
        model.embed(Role::Passage, "files").unwrap(),
        expected.embed(Role::Passage, "files").unwrap()
    );

    write(json!({ "[UNK]": 0, "file": 4, "read": 3, "##s": 9, "[CLS]": 1, "[SEP]": 2 }));
    assert!(refused(folder.path()).contains("the ID 9 is"));
    write(json!({ "[UNK]": 0, "file": 4, "read": 4, "##s": 5, "[CLS]": 1, "[SEP]": 2 }));
    assert!(refused(folder.path()).contains("the ID 4 is"));
    write(json!([]));
    assert!(refused(folder.path()).contains("tokenizer.json"));
}

#[test]
fn folder_without_a_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(refused(folder.path()).contains("config.json"));
    let complete = Files::new().write();
    fs::remove_file(complete.path().join("model.safetensors")).unwrap();
    assert!(refused(complete.path()).contains("model.safetensors"));
}

#[test]
fn invalid_configurations_are_refused() {
    for (key, value) in [
        ("model_type", json!("gpt2")),
        ("hidden_act", json!("relu")),
        ("position_embedding_type", json!("relative_key")),
        ("hidden_size", json!(0)),
        ("hidden_size", json!(1_000_000_000)),
        ("intermediate_size", json!(1_000_000)),
        ("num_attention_heads", json!(0)),
        ("num_attention_heads", json!(3)),
        ("num_hidden_layers", json!(1_000_000)),
        ("max_position_embeddings", json!(1)),
        ("vocab_size", json!(1_000_000_000)),
        ("layer_norm_eps", json!(-1.0)),
    ] {
        let mut files = Files::new();
        files.config[key] = value;
        assert!(refused(files.write().path()).contains(key), "{key}");
    }
    for (key, value) in [("hidden_size", json!(-8)), ("model_type", json!(null))] {
        let mut files = Files::new();
        files.config[key] = value;
        assert!(
            refused(files.write().path()).contains("config.json"),
            "{key}"
        );
    }
}

#[test]
fn configuration_of_another_model_is_refused() {
    for (key, value) in [
        ("hidden_size", 16),
        ("intermediate_size", 13),
        ("num_hidden_layers", 2),
        ("max_position_embeddings", 6),
        ("type_vocab_size", 1),
        ("vocab_size", 7),
    ] {
        let mut files = Files::new();
        files.config[key] = json!(value);
        let message = refused(files.write().path());
        let told = ["belongs to another model", "the model has 7 pieces"];
        assert!(told.iter().any(|told| message.contains(told)), "{message}");
    }
}

#[test]
fn invalid_vocabularies_are_refused() {
    for (vocabulary, told) in [
        ("[UNK]\n[CLS]\nread\nfile\n##s\nx", "no `[SEP]`"),
        ("[CLS]\n[SEP]\nread\nfile\n##s\nx", "no `[UNK]`"),
        ("[UNK]\n[CLS]\n[SEP]\nread\nfile", "5 lines"),
        ("[UNK]\n[CLS]\n[SEP]\nread\nread\nfile", "repeats line 4"),
    ] {
        let mut files = Files::new();
        vocabulary.clone_into(&mut files.vocabulary);
        let message = refused(files.write().path());
        assert!(message.contains(told), "{message}");
    }
}

#[test]
fn truncated_weights_are_refused() {
    let files = Files::new();
    let weights = files.weights();
    for length in [0, 7, 8, 100, weights.len() - 1] {
        refused(files.write_with(&weights[..length]).path());
    }
}

#[test]
fn inconsistent_weights_are_refused() {
    let files = Files::new();
    let name = "encoder.layer.0.output.dense.weight";
    let with = |change: &dyn Fn(&mut Value)| {
        let (mut head, count) = files.head();
        change(&mut head);
        let weights = safetensors(&head.to_string(), vec![0.5; count]);
        refused(files.write_with(&weights).path())
    };
    assert!(with(&|head| head[name]["dtype"] = json!("F16")).contains("F16"));
    assert!(with(&|head| head[name]["shape"] = json!([12, 8])).contains("shape"));
    assert!(with(&|head| head[name]["shape"] = json!(vec![1; 1000])).len() < 500);
    assert!(with(&|head| head[name] = json!(7)).contains("model.safetensors"));
    assert!(with(&|head| drop(head.as_object_mut().unwrap().remove(name))).contains("no tensor"));
    for offsets in [
        [0, 1],
        [400, 16],
        [u64::MAX - 1, u64::MAX],
        [1 << 40, (1 << 40) + 384],
        [u64::MAX - 383, 1],
    ] {
        let message = with(&|head| head[name]["data_offsets"] = json!(offsets));
        assert!(message.contains("invalid position"), "{message}");
    }
    for size in [u64::MAX, 1 << 40, 1 << 20] {
        let mut weights = files.weights();
        weights[..8].copy_from_slice(&size.to_le_bytes());
        assert!(refused(files.write_with(&weights).path()).contains("head"));
    }
    let deep = "[".repeat(100_000);
    refused(files.write_with(&safetensors(&deep, [])).path());
}

#[test]
fn oversized_file_is_not_read() {
    let folder = Files::new().write();
    let weights = fs::File::options()
        .write(true)
        .open(folder.path().join("model.safetensors"))
        .unwrap();
    weights.set_len(1 << 40).unwrap();
    let error = MiniLm::open(folder.path()).unwrap_err();
    assert!(matches!(error, ModelError::TooLarge { .. }), "{error:?}");

    let folder = Files::new().write();
    fs::write(folder.path().join("config.json"), " ".repeat(2 << 20)).unwrap();
    let error = MiniLm::open(folder.path()).unwrap_err();
    assert!(matches!(error, ModelError::TooLarge { .. }), "{error:?}");
}

#[test]
fn nan_weights_give_an_error() {
    let files = Files::new();
    let (head, count) = files.head();
    let weights = safetensors(&head.to_string(), vec![f32::NAN; count]);
    let folder = files.write_with(&weights);
    let model = MiniLm::open(folder.path()).unwrap();
    let error = model.embed(Role::Passage, "read").unwrap_err();
    assert!(matches!(error, ModelError::Damaged { .. }), "{error:?}");
}

#[test]
fn file_that_shrinks_later_gives_an_error() {
    let folder = Files::new().write();
    let model = MiniLm::open(folder.path()).unwrap();
    fs::write(folder.path().join("model.safetensors"), "").unwrap();
    let error = model.embed(Role::Passage, "read").unwrap_err();
    assert!(matches!(error, ModelError::Read { .. }), "{error:?}");
}

#[test]
fn fingerprint_distinguishes_models() {
    let files = Files::new();
    let print = |weights: &[u8]| {
        let folder = files.write_with(weights);
        MiniLm::open(folder.path())
            .unwrap()
            .fingerprint()
            .to_owned()
    };
    let mut weights = files.weights();
    let before = print(&weights);
    assert_eq!(before, print(&weights));
    // The last number is part of the last norm.
    *weights.last_mut().unwrap() ^= 1;
    assert_ne!(before, print(&weights));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn damaged_weights_do_no_harm(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let files = Files::new();
        let mut weights = files.weights();
        let (head, _) = files.head();
        for (at, byte) in changes {
            // Mostly in the header: a changed weight is still a number.
            let at = at.index(head.to_string().len() + 40);
            weights[at] = byte;
        }
        let folder = files.write_with(&weights);
        if let Ok(model) = MiniLm::open(folder.path()) {
            let _ = model.embed_all(Role::Passage, &["read files", "file"]);
        }
    }
}
