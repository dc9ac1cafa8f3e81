//! Every limit of this crate, with its reason.

/// How much of a text is looked at. A model reads the first few hundred pieces only, and a text that needs
/// more bytes than these for them is none that a person wrote.
pub const TEXT_BYTES: usize = 32 * 1024;

/// A longer word is unknown as a whole, as in the tokeniser that the models were trained with.
pub const WORD_CHARACTERS: usize = 100;

/// How many pieces of a text a sentence model reads. The published model was measured with as many.
pub const MODEL_PIECES: usize = 256;

/// The longest words that a model may want before a text: they take part of the pieces that it reads.
pub const PROMPT_BYTES: usize = 512;

/// How many pieces of a text are looked up in a table. There they cost next to nothing.
pub const TABLE_PIECES: usize = 1024;

/// The most lines of a vocabulary.
pub const VOCABULARY_LINES: usize = 200_000;

/// The longest line of a vocabulary, in bytes.
pub const VOCABULARY_LINE_BYTES: usize = 256;

/// The largest `config.json` or `config_sentence_transformers.json`.
pub const CONFIG_BYTES: u64 = 1024 * 1024;

/// The largest `vocab.txt` or `tokenizer.json`.
pub const VOCABULARY_BYTES: u64 = 16 * 1024 * 1024;

/// The largest `model.safetensors`. All of it but the word vectors is held in memory.
pub const WEIGHTS_BYTES: u64 = 512 * 1024 * 1024;

/// The largest head of a `model.safetensors`: names and places of tensors.
pub const WEIGHTS_HEAD_BYTES: u64 = 1024 * 1024;

/// The most layers of a sentence model.
pub const LAYERS: usize = 24;

/// The longest vector of one piece inside a model, or of a text outside.
pub const DIMENSIONS: usize = 1024;

/// The widest inner layer of a model.
pub const INNER_DIMENSIONS: usize = 4096;

/// The most positions that a model may know.
pub const POSITIONS: usize = 8192;

/// How many pieces of several texts are worked on at once. More of them make the products no faster, and
/// take memory.
pub const BATCH_PIECES: usize = 512;
