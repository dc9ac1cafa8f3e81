//! The limits of this crate, with their reasons.

/// The most bytes of a text that are read. A model reads only the first few hundred pieces, and a text
/// that needs more bytes than this for them was not written by a person.
pub const TEXT_BYTES: usize = 32 * 1024;

/// The longest word, in characters. A longer one is unknown as a whole, as in the tokeniser that the
/// models were trained with.
pub const WORD_CHARACTERS: usize = 100;

/// The most pieces of a text that a sentence model reads. The published model was evaluated with this
/// number.
pub const MODEL_PIECES: usize = 256;

/// The longest prompt of a model, in bytes. A prompt uses up some of the pieces that the model reads.
pub const PROMPT_BYTES: usize = 512;

/// The most pieces of a text that are looked up in a table, where they cost next to nothing.
pub const TABLE_PIECES: usize = 1024;

/// The most lines in a vocabulary.
pub const VOCABULARY_LINES: usize = 200_000;

/// The longest line of a vocabulary, in bytes.
pub const VOCABULARY_LINE_BYTES: usize = 256;

/// The largest `config.json` or `config_sentence_transformers.json`, in bytes.
pub const CONFIG_BYTES: u64 = 1024 * 1024;

/// The largest `vocab.txt` or `tokenizer.json`, in bytes.
pub const VOCABULARY_BYTES: u64 = 16 * 1024 * 1024;

/// The largest `model.safetensors`, in bytes. All of it except the word vectors is held in memory.
pub const WEIGHTS_BYTES: u64 = 512 * 1024 * 1024;

/// The largest header of a `model.safetensors`, in bytes: the names and offsets of tensors.
pub const WEIGHTS_HEAD_BYTES: u64 = 1024 * 1024;

/// The most layers of a sentence model.
pub const LAYERS: usize = 24;

/// The longest vector of a piece inside a model, or of a text outside.
pub const DIMENSIONS: usize = 1024;

/// The widest inner layer of a model.
pub const INNER_DIMENSIONS: usize = 4096;

/// The most positions of a model.
pub const POSITIONS: usize = 8192;

/// The most pieces of several texts in one batch. A larger batch makes the products no faster, and takes
/// more memory.
pub const BATCH_PIECES: usize = 512;
