//! A small sentence model of the BERT family, such as all-MiniLM-L6-v2, from a folder in the published layout.

mod arithmetic;
mod files;
mod network;
mod product;
mod prompts;
mod weights;

use std::{fmt, ops::Range, path::Path};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use self::{
    arithmetic::count,
    network::{Layer, Linear, Network, Norm},
    prompts::Prompts,
    weights::{Directory, Place, Weights},
};
use crate::{Embedder, ModelError, Role, WordPiece, arithmetic::to_unit, digest_text, limits};

/// A sentence model: the vector of a text is the mean of the vectors of its pieces.
///
/// The word vectors, which are half of the weights, stay in the file, which is kept open; the rest is in
/// memory, 43 MB for all-MiniLM-L6-v2.
pub struct MiniLm {
    name: String,
    fingerprint: String,
    vocabulary: WordPiece,
    special: Special,
    prompts: Prompts,
    weights: Weights,
    words: Place,
    /// Vectors added to the word at each position: the sum of the position embedding and the embedding of the
    /// first segment.
    positions: Vec<f32>,
    network: Network,
    dimensions: usize,
}

/// The special pieces around every text.
struct Special {
    first: u32,
    last: u32,
}

/// The keys of `config.json` that are used.
#[derive(Deserialize)]
struct Config {
    model_type: String,
    hidden_act: String,
    hidden_size: usize,
    intermediate_size: usize,
    layer_norm_eps: f32,
    max_position_embeddings: usize,
    num_attention_heads: usize,
    num_hidden_layers: usize,
    #[serde(default = "absolute")]
    position_embedding_type: String,
    type_vocab_size: usize,
    vocab_size: usize,
}

impl MiniLm {
    /// Opens the model in a folder with `config.json`, `model.safetensors`, and `vocab.txt` or
    /// `tokenizer.json`. If `config_sentence_transformers.json` exists, the prompts for queries and passages
    /// are read from it.
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        let config = Config::read(&folder.join("config.json"))?;
        let vocabulary = read_vocabulary(folder, config.vocab_size)?;
        let special = Special::of(&vocabulary)?;
        let prompts = Prompts::read(folder)?;
        let weights = Weights::open(&folder.join("model.safetensors"))?;

        let directory = weights.directory()?;
        let dimensions = config.hidden_size;
        let words = directory.place(
            "embeddings.word_embeddings.weight",
            &[config.vocab_size, dimensions],
        )?;
        let positions = read_positions(&directory, &config)?;
        let network = read_network(&directory, &config)?;

        let name = folder.file_name().unwrap_or(folder.as_os_str());
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            fingerprint: fingerprint(&weights, &vocabulary, &network, &prompts),
            vocabulary,
            special,
            prompts,
            words,
            positions,
            network,
            dimensions,
            weights,
        })
    }

    /// Returns the piece IDs of the prompt and the text, between the special ones; `None` if the text has no
    /// pieces.
    fn pieces(&self, role: Role, text: &str) -> Option<Vec<u32>> {
        if self.vocabulary.ids(text, 1).is_empty() {
            return None;
        }
        let most = self.positions.len() / self.dimensions;
        let text = self.prompts.before(role, text);
        let inner = self.vocabulary.ids(&text, most.saturating_sub(2));
        let mut pieces = Vec::with_capacity(inner.len() + 2);
        pieces.push(self.special.first);
        pieces.extend(inner);
        pieces.push(self.special.last);
        Some(pieces)
    }

    /// Returns the vectors of several texts, computed in one batch.
    fn run(&self, batch: &[Vec<u32>]) -> Result<Vec<Vec<f32>>, ModelError> {
        let mut texts: Vec<Range<usize>> = Vec::with_capacity(batch.len());
        let mut end = 0;
        for pieces in batch {
            texts.push(end..end + pieces.len());
            end += pieces.len();
        }
        let mut rows = vec![0.0; end * self.dimensions];
        let mut bytes = Vec::new();
        let places = batch.iter().flat_map(|pieces| {
            let positions = self.positions.chunks_exact(self.dimensions);
            pieces.iter().zip(positions)
        });
        for (row, (piece, position)) in rows.chunks_exact_mut(self.dimensions).zip(places) {
            self.weights
                .load_row(self.words, *piece as usize, &mut bytes, row)?;
            for (number, addend) in row.iter_mut().zip(position) {
                *number += addend;
            }
        }

        let rows = self.network.run(rows, &texts);
        texts
            .into_iter()
            .map(|text| {
                let rows = &rows[text.start * self.dimensions..text.end * self.dimensions];
                self.pool(rows)
            })
            .collect()
    }

    /// Returns the mean of the rows, scaled to length 1.
    fn pool(&self, rows: &[f32]) -> Result<Vec<f32>, ModelError> {
        let mut mean = vec![0.0; self.dimensions];
        for row in rows.chunks_exact(self.dimensions) {
            for (sum, number) in mean.iter_mut().zip(row) {
                *sum += number;
            }
        }
        let rows = count(rows.len() / self.dimensions);
        for sum in &mut mean {
            *sum /= rows;
        }
        if to_unit(&mut mean) {
            Ok(mean)
        } else {
            Err(self
                .weights
                .damaged("the result is not a number".to_owned()))
        }
    }
}

impl Embedder for MiniLm {
    fn name(&self) -> &str {
        &self.name
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed(&self, role: Role, text: &str) -> Result<Option<Vec<f32>>, ModelError> {
        Ok(self.embed_all(role, &[text])?.pop().flatten())
    }

    fn embed_all(&self, role: Role, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        let mut vectors = vec![None; texts.len()];
        let mut batch = Vec::new();
        let mut members = Vec::new();
        let mut pieces_in_batch = 0;
        let mut finish = |batch: &mut Vec<Vec<u32>>, members: &mut Vec<usize>| {
            for (member, vector) in members.drain(..).zip(self.run(batch)?) {
                vectors[member] = Some(vector);
            }
            batch.clear();
            Ok::<_, ModelError>(())
        };
        for (index, text) in texts.iter().enumerate() {
            let Some(pieces) = self.pieces(role, text) else {
                continue;
            };
            if pieces_in_batch + pieces.len() > limits::BATCH_PIECES {
                finish(&mut batch, &mut members)?;
                pieces_in_batch = 0;
            }
            pieces_in_batch += pieces.len();
            batch.push(pieces);
            members.push(index);
        }
        finish(&mut batch, &mut members)?;
        Ok(vectors)
    }
}

impl fmt::Debug for MiniLm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MiniLm")
            .field("name", &self.name)
            .field("fingerprint", &self.fingerprint)
            .field("dimensions", &self.dimensions)
            .finish_non_exhaustive()
    }
}

impl Special {
    fn of(vocabulary: &WordPiece) -> Result<Self, ModelError> {
        let id = |piece| {
            let missing = || ModelError::Vocabulary(format!("it has no `{piece}`"));
            vocabulary.id(piece).ok_or_else(missing)
        };
        id("[UNK]")?;
        Ok(Self {
            first: id("[CLS]")?,
            last: id("[SEP]")?,
        })
    }
}

impl Config {
    fn read(path: &Path) -> Result<Self, ModelError> {
        let text = files::read(path, limits::CONFIG_BYTES)?;
        let config: Self = serde_json::from_slice(&text).map_err(ModelError::json(path))?;
        match config.check() {
            Ok(()) => Ok(config),
            Err(what) => Err(ModelError::Unsupported {
                path: path.to_owned(),
                what,
            }),
        }
    }

    fn check(&self) -> Result<(), String> {
        let words = [
            ("model_type", &self.model_type, "bert"),
            ("hidden_act", &self.hidden_act, "gelu"),
            (
                "position_embedding_type",
                &self.position_embedding_type,
                "absolute",
            ),
        ];
        for (key, found, expected) in words {
            if found != expected {
                let found: String = found.chars().take(40).collect();
                return Err(format!("`{key}` is {found:?}, not {expected:?}"));
            }
        }
        let sizes = [
            ("hidden_size", self.hidden_size, 1, limits::DIMENSIONS),
            (
                "intermediate_size",
                self.intermediate_size,
                1,
                limits::INNER_DIMENSIONS,
            ),
            (
                "max_position_embeddings",
                self.max_position_embeddings,
                3,
                limits::POSITIONS,
            ),
            (
                "num_attention_heads",
                self.num_attention_heads,
                1,
                self.hidden_size,
            ),
            (
                "num_hidden_layers",
                self.num_hidden_layers,
                1,
                limits::LAYERS,
            ),
            ("type_vocab_size", self.type_vocab_size, 1, 16),
            ("vocab_size", self.vocab_size, 1, limits::VOCABULARY_LINES),
        ];
        for (key, found, least, most) in sizes {
            if !(least..=most).contains(&found) {
                return Err(format!("`{key}` is {found}, not {least} to {most}"));
            }
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            return Err("`hidden_size` is not a multiple of `num_attention_heads`".to_owned());
        }
        if !(0.0..1.0).contains(&self.layer_norm_eps) {
            return Err("`layer_norm_eps` is not between 0 and 1".to_owned());
        }
        Ok(())
    }
}

fn absolute() -> String {
    "absolute".to_owned()
}

fn read_vocabulary(folder: &Path, size: usize) -> Result<WordPiece, ModelError> {
    let lines = folder.join("vocab.txt");
    let vocabulary = if lines.exists() {
        let text = files::read(&lines, limits::VOCABULARY_BYTES)?;
        let text = String::from_utf8(text).map_err(|_| {
            ModelError::Vocabulary(format!("{} is not UTF-8 text", lines.display()))
        })?;
        WordPiece::new(text.replace("\r\n", "\n"))?
    } else {
        let path = folder.join("tokenizer.json");
        let text = files::read(&path, limits::VOCABULARY_BYTES)?;
        let tokenizer: Tokenizer =
            serde_json::from_slice(&text).map_err(ModelError::json(&path))?;
        WordPiece::new(tokenizer.lines()?)?
    };
    if vocabulary.len() == size {
        Ok(vocabulary)
    } else {
        let found = vocabulary.len();
        let what = format!("it has {found} lines, but the model has {size} pieces");
        Err(ModelError::Vocabulary(what))
    }
}

/// The keys of `tokenizer.json` that are used.
#[derive(Deserialize)]
struct Tokenizer {
    model: TokenizerModel,
}

#[derive(Deserialize)]
struct TokenizerModel {
    vocab: std::collections::BTreeMap<String, u32>,
}

impl Tokenizer {
    /// Returns the pieces in the order of their IDs, which must be 0, 1, 2 and so on.
    fn lines(self) -> Result<String, ModelError> {
        let vocab = self.model.vocab;
        let mut lines = vec![None; vocab.len()];
        for (piece, id) in vocab {
            let line = lines.get_mut(id as usize).filter(|line| line.is_none());
            let Some(line) = line.filter(|_| !piece.contains('\n')) else {
                return Err(ModelError::Vocabulary(format!(
                    "the ID {id} is a duplicate or out of range"
                )));
            };
            *line = Some(piece);
        }
        Ok(lines.into_iter().flatten().collect::<Vec<_>>().join("\n"))
    }
}

fn read_positions(directory: &Directory<'_>, config: &Config) -> Result<Vec<f32>, ModelError> {
    let dimensions = config.hidden_size;
    let mut positions = directory.load(
        "embeddings.position_embeddings.weight",
        &[config.max_position_embeddings, dimensions],
    )?;
    positions.truncate(limits::MODEL_PIECES * dimensions);
    positions.shrink_to_fit();
    let kinds = directory.load(
        "embeddings.token_type_embeddings.weight",
        &[config.type_vocab_size, dimensions],
    )?;
    for position in positions.chunks_exact_mut(dimensions) {
        for (number, kind) in position.iter_mut().zip(&kinds) {
            *number += kind;
        }
    }
    Ok(positions)
}

fn read_network(directory: &Directory<'_>, config: &Config) -> Result<Network, ModelError> {
    let (outer, inner) = (config.hidden_size, config.intermediate_size);
    let norm = |name: &str| {
        Ok::<_, ModelError>(Norm {
            scale: directory.load(&format!("{name}.weight"), &[outer])?,
            shift: directory.load(&format!("{name}.bias"), &[outer])?,
        })
    };
    let linear = |name: &str, inputs: usize, outputs: usize| {
        Ok::<_, ModelError>(Linear {
            weights: turned(
                &directory.load(&format!("{name}.weight"), &[outputs, inputs])?,
                inputs,
            ),
            bias: directory.load(&format!("{name}.bias"), &[outputs])?,
        })
    };
    let mut layers = Vec::with_capacity(config.num_hidden_layers);
    for index in 0..config.num_hidden_layers {
        let layer = format!("encoder.layer.{index}");
        let three = |what: &str| {
            ["query", "key", "value"].map(|part| format!("{layer}.attention.self.{part}.{what}"))
        };
        layers.push(Layer {
            attention: Linear {
                weights: turned(
                    &directory.load_joined(&three("weight"), &[outer, outer])?,
                    outer,
                ),
                bias: directory.load_joined(&three("bias"), &[outer])?,
            },
            attention_output: linear(&format!("{layer}.attention.output.dense"), outer, outer)?,
            attention_norm: norm(&format!("{layer}.attention.output.LayerNorm"))?,
            widen: linear(&format!("{layer}.intermediate.dense"), outer, inner)?,
            narrow: linear(&format!("{layer}.output.dense"), inner, outer)?,
            output_norm: norm(&format!("{layer}.output.LayerNorm"))?,
        });
    }
    Ok(Network {
        embedding_norm: norm("embeddings.LayerNorm")?,
        layers,
        heads: config.num_attention_heads,
        epsilon: config.layer_norm_eps,
    })
}

/// Transposes a matrix with this many columns. The file has one row for each output of a layer; a product
/// with few rows needs one for each input.
fn turned(numbers: &[f32], columns: usize) -> Vec<f32> {
    /// Rows of the file that are processed together, so that not every number is on a different cache line.
    const STRIPE: usize = 16;

    let rows = numbers.len() / columns;
    let mut turned = vec![0.0; numbers.len()];
    for (stripe, part) in numbers.chunks(STRIPE * columns).enumerate() {
        for column in 0..columns {
            let start = column * rows + stripe * STRIPE;
            let from = part.iter().skip(column).step_by(columns);
            for (to, from) in turned[start..].iter_mut().zip(from) {
                *to = *from;
            }
        }
    }
    turned
}

/// Computes a digest of the header of the weights, their size, the vocabulary, all biases and norms, and the
/// prompts. Further training of a model changes these, and they are a thousandth of the bytes that a digest
/// of all weights would have to read.
fn fingerprint(
    weights: &Weights,
    vocabulary: &WordPiece,
    network: &Network,
    prompts: &Prompts,
) -> String {
    let mut digest = Sha256::new();
    digest.update(b"mean-pooled unit vectors 1\0");
    digest.update(weights.length().to_le_bytes());
    digest.update(weights.head());
    digest.update(vocabulary.text());
    let mut add = |numbers: &[f32]| {
        for number in numbers {
            digest.update(number.to_le_bytes());
        }
    };
    let mut add_norm = |norm: &Norm| {
        add(&norm.scale);
        add(&norm.shift);
    };
    add_norm(&network.embedding_norm);
    for layer in &network.layers {
        add_norm(&layer.attention_norm);
        add_norm(&layer.output_norm);
    }
    for layer in &network.layers {
        for linear in [
            &layer.attention,
            &layer.attention_output,
            &layer.widen,
            &layer.narrow,
        ] {
            add(&linear.bias);
        }
    }
    prompts.add_to(&mut digest);
    format!("minilm-{}", digest_text(&digest.finalize()))
}
