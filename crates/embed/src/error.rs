//! Errors of models.

use std::{borrow::Cow, io, path::PathBuf};

/// An error in opening or running a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file of the model is missing or unreadable.
    #[error("cannot read {path:?}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file of the model is not JSON, or not of the expected shape.
    #[error("{path:?} is not a model description")]
    Json {
        /// The file.
        path: PathBuf,
        /// Position and cause.
        #[source]
        source: serde_json::Error,
    },
    /// A file is larger than that of any supported model.
    #[error("{path:?} has {bytes} bytes, but at most {most} are allowed")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Size of the file in bytes.
        bytes: u64,
        /// Greatest size in bytes.
        most: u64,
    },
    /// The model is of a different kind.
    #[error("{path:?} describes an unsupported model: {what}")]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Difference from the supported kind.
        what: String,
    },
    /// The weights do not match the model's description.
    #[error("{path:?} is damaged or belongs to another model: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Description of the mismatch.
        what: String,
    },
    /// The vocabulary cannot be used.
    #[error("invalid vocabulary: {0}")]
    Vocabulary(String),
    /// The bytes are not a table of word vectors.
    #[error("invalid table of word vectors: {0}")]
    Table(String),
    /// Two vectors to compare have different lengths: they are from different models.
    #[error("the vector has {found} numbers, but {expected} are expected")]
    Dimensions {
        /// Expected length.
        expected: usize,
        /// Actual length.
        found: usize,
    },
}

impl ModelError {
    /// Advice for the user, separate from the message.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Read { .. } => "check that the model's directory is complete and readable".into(),
            Self::Json { .. } | Self::Damaged { .. } => "download the model again".into(),
            Self::TooLarge { .. } => "choose a smaller model".into(),
            Self::Dimensions { .. } => {
                "compute the vector with the same model as the others".into()
            }
            Self::Unsupported { .. } | Self::Vocabulary(_) | Self::Table(_) => return None,
        })
    }
}
