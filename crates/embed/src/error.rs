//! Why a model cannot be used.

use std::{borrow::Cow, io, path::PathBuf};

/// Why a model cannot be opened, or gives no vector.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file of the model is missing or unreadable.
    #[error("cannot read {path:?}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file of the model is not JSON, or not of the expected shape.
    #[error("{path:?} is not the description of a model")]
    Json {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// A file is larger than any model for which this program is made.
    #[error("{path:?} has {bytes} bytes, and at most {most} are read")]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        most: u64,
    },
    /// A model of another kind.
    #[error("{path:?} describes a model that cannot be run here: {what}")]
    Unsupported {
        /// Which file.
        path: PathBuf,
        /// What is different.
        what: String,
    },
    /// The weights are not what the model's description promises.
    #[error("{path:?} is damaged or belongs to another model: {what}")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The vocabulary cannot be used.
    #[error("the vocabulary cannot be used: {0}")]
    Vocabulary(String),
    /// The bytes are no table of word vectors.
    #[error("the table of word vectors cannot be used: {0}")]
    Table(String),
    /// Two vectors of different lengths were to be compared: they are of different models.
    #[error("a vector of {found} numbers, where {expected} were expected")]
    Dimensions {
        /// The length of the others.
        expected: usize,
        /// The length of this one.
        found: usize,
    },
}

impl ModelError {
    /// Advice for the user, apart from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Read { .. } => "check that the model's folder is complete and may be read".into(),
            Self::Json { .. } | Self::Damaged { .. } => "fetch the model again".into(),
            Self::TooLarge { .. } => "choose a smaller model".into(),
            Self::Dimensions { .. } => "compute it with the same model as the others".into(),
            Self::Unsupported { .. } | Self::Vocabulary(_) | Self::Table(_) => return None,
        })
    }
}
