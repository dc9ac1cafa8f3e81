//! Text embeddings: vectors that are close if the texts are close in meaning, computed locally.
//!
//! There are two kinds of [`Embedder`]. A [`MiniLm`] is a small sentence model of the BERT family, read from
//! a folder in the published layout; it takes milliseconds for a sentence. A [`StaticTable`] has one vector
//! for each word piece and adds them up; it takes microseconds, and one is built into the program.
//!
//! [`WordPiece`] splits texts into the pieces that both use. A [`Matrix`] holds the vectors of many texts in
//! a quarter of their memory and compares one with all of them; a [`Quantised`] is a single such vector, for
//! storage.
//!
//! Builds without the feature `minilm` have no sentence model: their [`MiniLm::open`] fails.
//!
//! This crate does not use the network, threads or a clock.

mod arithmetic;
mod characters;
mod error;
mod joined;
pub mod limits;
mod matrix;
#[cfg(not(feature = "minilm"))]
#[path = "minilm/absent.rs"]
mod minilm;
#[cfg(feature = "minilm")]
mod minilm;
mod quantised;
mod table;
mod wordpiece;

use switchboard_text::hex;

pub use error::ModelError;
pub use joined::Joined;
pub use matrix::{Matrix, Prepared};
pub use minilm::MiniLm;
pub use quantised::Quantised;
pub use table::StaticTable;
pub use wordpiece::WordPiece;

/// A source of embeddings.
///
/// All vectors have the same number of dimensions and, except for those of a [`Joined`], length 1, so that
/// the dot product of two of them is the cosine of their angle.
pub trait Embedder: Send + Sync {
    /// Returns the name of the embedder, for display.
    fn name(&self) -> &str;

    /// Returns the fingerprint of the embedder. Vectors with different fingerprints are not comparable. The
    /// fingerprint of a model never changes, so vectors can be stored with it.
    fn fingerprint(&self) -> &str;

    /// Returns the length of the vectors.
    fn dimensions(&self) -> usize;

    /// Returns the vector of a text, or `None` if the embedder knows nothing in the text.
    fn embed(&self, role: Role, text: &str) -> Result<Option<Vec<f32>>, ModelError>;

    /// Returns the vectors of several texts, in order. This is faster than one call per text.
    fn embed_all(&self, role: Role, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError>;
}

impl<E: Embedder + ?Sized> Embedder for &E {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn fingerprint(&self) -> &str {
        (**self).fingerprint()
    }

    fn dimensions(&self) -> usize {
        (**self).dimensions()
    }

    fn embed(&self, role: Role, text: &str) -> Result<Option<Vec<f32>>, ModelError> {
        (**self).embed(role, text)
    }

    fn embed_all(&self, role: Role, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        (**self).embed_all(role, texts)
    }
}

/// The purpose of a text. Some models are trained to distinguish the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A text to search with.
    Query,
    /// A text to be found.
    Passage,
}

/// Formats the first bytes of a digest: enough to tell models apart.
fn digest_text(digest: &[u8]) -> String {
    hex::encode(&digest[..digest.len().min(8)])
}
