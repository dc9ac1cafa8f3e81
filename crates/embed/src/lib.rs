//! Texts as vectors whose closeness is closeness in meaning, computed here and now.
//!
//! There are two ways, and both are an [`Embedder`]. A [`MiniLm`] is a small sentence model of the BERT
//! family, read from a folder in the published layout: milliseconds for a sentence. A [`StaticTable`] has one
//! vector for each piece of a word and adds them up: microseconds, and it is part of the program.
//!
//! [`WordPiece`] cuts texts into the pieces that both work on. A [`Matrix`] keeps the vectors of many texts
//! in a quarter of their memory and compares one with all of them; a [`Quantised`] is one of them, to be kept.
//!
//! Builds without the feature `minilm` have no sentence model: [`MiniLm::open`] fails in them.
//!
//! Nothing here reaches for the network, starts a thread or asks for a clock.

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

/// Something that makes vectors of texts.
///
/// All vectors have the same number of dimensions and, but for those of a [`Joined`], length 1, so that the
/// product of two of them is the cosine of their angle.
pub trait Embedder: Send + Sync {
    /// What it is called, for people.
    fn name(&self) -> &str;

    /// What tells vectors of this embedder from those of any other: they are not comparable. It stays the same
    /// for the same model, so vectors can be kept together with it.
    fn fingerprint(&self) -> &str;

    /// How many numbers a vector has.
    fn dimensions(&self) -> usize;

    /// The vector of a text; none if there is nothing in the text that the embedder knows.
    fn embed(&self, role: Role, text: &str) -> Result<Option<Vec<f32>>, ModelError>;

    /// The vectors of several texts, in their order. This is faster than one at a time.
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

/// What a text is for. Some models are trained to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Something is looked for with it.
    Query,
    /// It is to be found.
    Passage,
}

/// The start of a digest, as text: enough to tell models apart.
fn digest_text(digest: &[u8]) -> String {
    hex::encode(&digest[..digest.len().min(8)])
}
