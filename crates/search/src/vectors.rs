//! [`Vectors`]: the embeddings of one server's tools by a model; and a [`Cache`] of them, because
//! good models are slow.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use switchboard_embed::{Embedder, Matrix, ModelError, Quantised, Role};

use crate::{
    document,
    segment::{Segment, Tool},
};

/// The weight of a tool's name relative to its description.
const NAME: f32 = 0.3;
/// The largest possible nearness of a tool.
pub(crate) const NEAREST: f32 = 1.0 + NAME;
/// The number of tools that are embedded at a time.
const BATCH: usize = 16;

/// The embedding of a query by one model.
#[derive(Debug, Clone, Copy)]
pub struct Meaning<'a> {
    /// The fingerprint of the model. Only vectors of the same model are compared.
    pub model: &'a str,
    /// The query's vector.
    pub vector: &'a [f32],
    /// The weight of the words relative to the meaning. The better the model, the lower.
    pub words: f32,
}

/// The embeddings of one server's tools by a model.
#[derive(Debug)]
pub struct Vectors {
    model: String,
    matrix: Matrix,
}

impl Vectors {
    /// Embeds every tool that the cache does not have. This may take long, so `go_on` is called
    /// before each batch; if it returns `false`, the result is `None`.
    pub fn new(
        tools: &[Tool<'_>],
        model: &dyn Embedder,
        cache: &mut Cache,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, ModelError> {
        let mut matrix = Matrix::new(model.dimensions());
        for tools in tools.chunks(BATCH) {
            if !go_on() {
                return Ok(None);
            }
            let texts: Vec<(String, String)> = tools
                .iter()
                .map(|tool| document::sentences(tool.name, tool.definition))
                .collect();
            let unknown: Vec<_> = texts.iter().filter(|text| !cache.knows(text)).collect();
            let names: Vec<&str> = unknown.iter().map(|(name, _)| name.as_str()).collect();
            let says: Vec<&str> = unknown.iter().map(|(_, says)| says.as_str()).collect();
            let names = model.embed_all(Role::Passage, &names)?;
            let says = model.embed_all(Role::Passage, &says)?;
            let mut fresh = names.into_iter().zip(says);
            for text in &texts {
                let row = if let Some(row) = cache.get(text) {
                    row
                } else {
                    let (name, says) = fresh.next().unwrap_or_default();
                    let row = both(name, says, model.dimensions());
                    cache.put(text, &row);
                    row
                };
                matrix.push(&row)?;
            }
        }
        Ok(Some(Self {
            model: model.fingerprint().to_owned(),
            matrix,
        }))
    }

    /// The vectors of these tools, by name, from those of another segment. A tool that is not there has none.
    #[must_use]
    pub fn select(&self, from: &Segment, tools: &Segment) -> Self {
        let rows = tools.tools().iter().map(|tool| from.find(&tool.name));
        Self {
            model: self.model.clone(),
            matrix: self.matrix.select(rows),
        }
    }

    /// The model's fingerprint.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The nearness of each tool to the query; `None` if the query was embedded by another model.
    pub(crate) fn nearness(&self, meaning: &Meaning<'_>) -> Option<Vec<f32>> {
        if self.model != meaning.model {
            return None;
        }
        let mut products = Vec::new();
        self.matrix.dot_all(meaning.vector, &mut products).ok()?;
        Some(products)
    }
}

/// Combines both into one vector, since the dot product with a sum is the sum of the dot products.
fn both(name: Option<Vec<f32>>, says: Option<Vec<f32>>, dimensions: usize) -> Vec<f32> {
    let Some(mut both) = says else {
        // Without a description, the name is all there is.
        return name.unwrap_or_else(|| vec![0.0; dimensions]);
    };
    for (sum, part) in both.iter_mut().zip(name.into_iter().flatten()) {
        *sum += NAME * part;
    }
    both
}

/// Vectors of one model by their text. Its size is limited; vectors that do not fit are computed
/// again.
#[derive(Debug, Default)]
pub struct Cache {
    dimensions: usize,
    rows: HashMap<Key, Quantised>,
    changed: bool,
}

type Key = [u8; 16];

/// The most vectors.
const ROWS: usize = 200_000;
const MAGIC: &[u8; 8] = b"SBVECTS1";

impl Cache {
    /// An empty cache for vectors with this many dimensions.
    pub fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            ..Self::default()
        }
    }

    /// A cache that stores nothing, for models that are faster than a lookup.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns `true` if it has new entries.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    fn knows(&self, text: &(String, String)) -> bool {
        self.dimensions > 0 && self.rows.contains_key(&key(text))
    }

    fn get(&self, text: &(String, String)) -> Option<Vec<f32>> {
        if self.rows.is_empty() {
            return None;
        }
        self.rows.get(&key(text)).map(Quantised::to_vector)
    }

    fn put(&mut self, text: &(String, String), row: &[f32]) {
        if row.len() != self.dimensions || self.rows.len() >= ROWS {
            return;
        }
        self.rows.insert(key(text), Quantised::from_vector(row));
        self.changed = true;
    }

    /// Encodes the cache as a file.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.rows.len() * (self.dimensions + 20));
        for (key, row) in &self.rows {
            body.extend_from_slice(key);
            body.extend_from_slice(&row.scale.to_le_bytes());
            body.extend(row.numbers.iter().map(|number| number.cast_unsigned()));
        }
        let mut file = MAGIC.to_vec();
        let dimensions = u32::try_from(self.dimensions).unwrap_or(0).to_le_bytes();
        file.extend_from_slice(&dimensions);
        file.extend_from_slice(&checksum(dimensions, &body));
        file.extend_from_slice(&body);
        file
    }

    /// Decodes a file; `None` if it is damaged.
    pub fn decode(file: &[u8]) -> Option<Self> {
        let rest = file.strip_prefix(MAGIC)?;
        let (dimensions, rest) = rest.split_first_chunk::<4>()?;
        let (hash, body) = rest.split_first_chunk::<32>()?;
        if checksum(*dimensions, body) != *hash {
            return None;
        }
        let dimensions = usize::try_from(u32::from_le_bytes(*dimensions)).ok()?;
        let mut rows = HashMap::new();
        for row in body.chunks_exact(dimensions.checked_add(20)?).take(ROWS) {
            let (key, rest) = row.split_first_chunk::<16>()?;
            let (scale, numbers) = rest.split_first_chunk::<4>()?;
            let scale = f32::from_le_bytes(*scale);
            if !scale.is_finite() {
                return None;
            }
            let numbers = numbers.iter().map(|number| number.cast_signed()).collect();
            rows.insert(*key, Quantised { scale, numbers });
        }
        Some(Self {
            dimensions,
            rows,
            changed: false,
        })
    }
}

fn checksum(dimensions: [u8; 4], body: &[u8]) -> [u8; 32] {
    let hash = Sha256::new().chain_update(dimensions).chain_update(body);
    hash.finalize().into()
}

fn key((name, says): &(String, String)) -> Key {
    let mut hash = Sha256::new();
    hash.update((name.len() as u64).to_le_bytes());
    hash.update(name);
    hash.update(says);
    let hash = hash.finalize();
    std::array::from_fn(|at| hash[at])
}
