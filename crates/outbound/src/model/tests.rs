//! Models in folders and at URLs, and the selection among them.

use std::{fs, io::ErrorKind, sync::atomic::AtomicUsize, sync::atomic::Ordering::Relaxed};

use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};

use super::*;

const PIECES: [&str; 5] = ["[UNK]", "[CLS]", "[SEP]", "read", "file"];

/// Writes a model with one layer and four dimensions into a folder.
fn write_model(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let config = json!({
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": 4, "intermediate_size": 4,
        "layer_norm_eps": 1e-12, "max_position_embeddings": 8, "num_attention_heads": 1,
        "num_hidden_layers": 1, "type_vocab_size": 1, "vocab_size": PIECES.len(),
    });
    let vocab: serde_json::Map<_, _> = PIECES
        .iter()
        .enumerate()
        .map(|(id, piece)| ((*piece).to_owned(), json!(id)))
        .collect();
    let tokenizer = json!({ "model": { "vocab": vocab } });
    let mut tensors = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![5, 4]),
        (
            "embeddings.position_embeddings.weight".to_owned(),
            vec![8, 4],
        ),
        (
            "embeddings.token_type_embeddings.weight".to_owned(),
            vec![1, 4],
        ),
    ];
    for (name, shape) in [
        ("embeddings.LayerNorm", vec![4]),
        ("encoder.layer.0.attention.self.query", vec![4, 4]),
        ("encoder.layer.0.attention.self.key", vec![4, 4]),
        ("encoder.layer.0.attention.self.value", vec![4, 4]),
        ("encoder.layer.0.attention.output.dense", vec![4, 4]),
        ("encoder.layer.0.attention.output.LayerNorm", vec![4]),
        ("encoder.layer.0.intermediate.dense", vec![4, 4]),
        ("encoder.layer.0.output.dense", vec![4, 4]),
        ("encoder.layer.0.output.LayerNorm", vec![4]),
    ] {
        tensors.push((format!("{name}.weight"), shape));
        tensors.push((format!("{name}.bias"), vec![4]));
    }
    let mut head = json!({});
    let mut numbers: Vec<u8> = Vec::new();
    for (name, shape) in tensors {
        let start = numbers.len();
        let count: u8 = shape.iter().product();
        numbers.extend((0..count).flat_map(|at| (f32::from(at % 7) - 2.5).to_le_bytes()));
        head[name] =
            json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, numbers.len()] });
    }
    let head = head.to_string();
    let mut weights = (head.len() as u64).to_le_bytes().to_vec();
    weights.extend(head.bytes());
    weights.extend(numbers);
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    fs::write(folder.join("model.safetensors"), weights).unwrap();
}

fn models(home: &TempDir) -> Models {
    Models::new(home.path().join("models"), home.path().join("kept"))
}

fn folder(path: &Path) -> Embeddings {
    Embeddings::Folder(path.to_str().unwrap().to_owned())
}

fn failure() -> ModelError {
    ModelError::Read {
        path: PathBuf::from("model"),
        source: ErrorKind::UnexpectedEof.into(),
    }
}

#[test]
fn built_in_model_is_the_default() {
    let home = tempfile::tempdir().unwrap();
    let models = models(&home);
    assert!(models.best(&Embeddings::Off).is_none());
    for settings in [Embeddings::BuiltIn, Embeddings::Auto, Embeddings::MiniLm] {
        let model = models.best(&settings).unwrap();
        assert!(!model.is_sentences(), "{settings:?}");
        assert_eq!(model.alone().dimensions(), 256);
    }
}

#[test]
fn all_callers_share_one_model() {
    let home = tempfile::tempdir().unwrap();
    let models = models(&home);
    write_model(&home.path().join("models").join(fetch::MINILM));
    let best = || models.best(&Embeddings::Auto).unwrap();
    let all: Vec<Arc<Model>> = std::thread::scope(|scope| {
        let asking = [(); 4].map(|()| scope.spawn(best));
        asking.map(|asked| asked.join().unwrap()).into()
    });
    assert!(all[0].is_sentences());
    assert!(all.iter().all(|model| Arc::ptr_eq(model, &all[0])));

    let alone = all[0].alone();
    assert_eq!(alone.dimensions(), 4);
    assert_ne!(alone.fingerprint(), all[0].fingerprint());
    let vector = alone.embed(Role::Passage, "read file").unwrap().unwrap();
    let length: f32 = vector.iter().map(|x| x * x).sum();
    assert!((length - 1.0).abs() < 1e-5);
    assert_eq!(vector[..], all[0].embed("read file").unwrap()[..4]);
}

#[test]
fn changes_are_announced_and_change_the_model() {
    let home = tempfile::tempdir().unwrap();
    let models = models(&home);
    let own = home.path().join("own");
    write_model(&own);
    let settings = folder(&own);
    let mut changes = models.changes();
    let model = models.best(&settings).unwrap();
    assert!(model.is_sentences());
    // Reading it is not a change: every caller gets it.
    assert!(!changes.has_changed().unwrap());

    models.failed(&model, &failure());
    assert!(changes.has_changed().unwrap());
    changes.borrow_and_update();
    assert!(!models.best(&settings).unwrap().is_sentences());
    // A model that is no longer used cannot fail again.
    models.failed(&model, &failure());
    assert!(!changes.has_changed().unwrap());

    models.pardon();
    assert!(changes.has_changed().unwrap());
    let again = models.best(&settings).unwrap();
    assert!(again.is_sentences() && !Arc::ptr_eq(&again, &model));
}

#[test]
fn loaded_model_is_not_pending_without_search() {
    let home = tempfile::tempdir().unwrap();
    let models = models(&home);
    write_model(&home.path().join("models").join(fetch::MINILM));
    models.best(&Embeddings::Auto).unwrap();
    let state = |used: Option<&Model>| models.part(used, &Embeddings::Auto).state;
    assert!(matches!(state(None), PartState::Ready));
    let built_in = Model::built_in();
    assert!(matches!(state(Some(&built_in)), PartState::Initializing));
}

/// Serves the files of a folder, and counts the requests.
async fn serve(folder: PathBuf) -> (Embeddings, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counting.fetch_add(1, Relaxed);
            let mut stream = BufReader::new(stream);
            let mut asked = String::new();
            stream.read_line(&mut asked).await.unwrap();
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).await.unwrap();
            }
            let name = asked.split(' ').nth(1).unwrap().trim_start_matches('/');
            let file = fs::read(folder.join(name)).ok();
            let status = file.as_ref().map_or("404 Not Found", |_| "200 OK");
            let file = file.unwrap_or_default();
            let length = file.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&file).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    (Embeddings::Folder(address), count)
}

#[tokio::test]
async fn model_is_fetched_once_with_optional_prompts() {
    let mut prints = Vec::new();
    for prompts in [None, Some(r#"{"prompts": {"query": "read "}}"#)] {
        let home = tempfile::tempdir().unwrap();
        let models = models(&home);
        let published = home.path().join("published");
        write_model(&published);
        if let Some(prompts) = prompts {
            fs::write(published.join("config_sentence_transformers.json"), prompts).unwrap();
        }
        let (settings, count) = serve(published).await;
        let changes = models.changes();
        let both = tokio::join!(models.fetch(&settings), models.fetch(&settings));
        assert_eq!(both, (None, None));
        assert_eq!(count.load(Relaxed), 4);
        assert!(changes.has_changed().unwrap());
        let model = models.best(&settings).unwrap();
        assert!(model.is_sentences());
        prints.push(model.fingerprint().to_owned());
        assert_eq!(models.fetch(&settings).await, None);
        assert_eq!(count.load(Relaxed), 4);
    }
    assert_ne!(prints[0], prints[1]);
}

#[tokio::test]
async fn failed_download_is_retried_after_a_pause() {
    let home = tempfile::tempdir().unwrap();
    let models = models(&home);
    let (settings, count) = serve(home.path().join("nothing")).await;
    let changes = models.changes();
    let first = models.fetch(&settings).await.unwrap();
    assert_eq!(first, FETCH_PAUSE * 2);
    assert_eq!(count.load(Relaxed), 1);
    let part = models.part(None, &settings);
    assert!(matches!(part.state, PartState::Error { message } if message.contains("404")));

    let rest = models.fetch(&settings).await.unwrap();
    assert!(rest <= first && !rest.is_zero());
    assert_eq!(count.load(Relaxed), 1);
    assert!(!changes.has_changed().unwrap());

    tokio::time::pause();
    tokio::time::advance(first).await;
    tokio::time::resume();
    assert_eq!(models.fetch(&settings).await, Some(FETCH_PAUSE * 4));
    assert_eq!(count.load(Relaxed), 2);

    // A change of settings resets the pause.
    models.pardon();
    assert_eq!(models.fetch(&settings).await, Some(first));
    assert_eq!(count.load(Relaxed), 3);
}
