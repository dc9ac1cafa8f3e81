//! The prompts that a model expects in front of a text, by the purpose of the text.

use std::{borrow::Cow, collections::BTreeMap, path::Path};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::files;
use crate::{ModelError, Role, limits};

/// The prompts of queries and passages; most models have none.
#[derive(Debug, Default)]
pub(crate) struct Prompts {
    query: String,
    passage: String,
}

/// The keys of `config_sentence_transformers.json` that are used.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    prompts: Option<BTreeMap<String, Option<String>>>,
    default_prompt_name: Option<String>,
}

const FILE: &str = "config_sentence_transformers.json";

impl Prompts {
    /// Reads the prompts of the model in a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, ModelError> {
        let path = folder.join(FILE);
        let Some(text) = files::read_if_there(&path, limits::CONFIG_BYTES)? else {
            return Ok(Self::default());
        };
        let settings: Settings = serde_json::from_slice(&text).map_err(ModelError::json(&path))?;
        let prompts = settings.prompts.unwrap_or_default();
        // The names and their precedence follow the library that wrote the file.
        let pick = |names: &[&str]| {
            let default = settings.default_prompt_name.as_deref();
            let mut names = names.iter().copied().chain(default);
            let name = names.find(|name| prompts.contains_key(*name));
            let prompt = name.and_then(|name| prompts.get(name)?.clone());
            let prompt = prompt.unwrap_or_default();
            if prompt.len() <= limits::PROMPT_BYTES {
                return Ok(prompt);
            }
            let (found, most) = (prompt.len(), limits::PROMPT_BYTES);
            Err(ModelError::Unsupported {
                path: path.clone(),
                what: format!("a prompt has {found} bytes, but at most {most} are allowed"),
            })
        };
        Ok(Self {
            query: pick(&["query"])?,
            passage: pick(&["document", "passage", "corpus"])?,
        })
    }

    /// Returns the text with its prompt, limited to the bytes that are read.
    pub(crate) fn before<'a>(&self, role: Role, text: &'a str) -> Cow<'a, str> {
        let prompt = match role {
            Role::Query => &self.query,
            Role::Passage => &self.passage,
        };
        if prompt.is_empty() {
            return Cow::Borrowed(text);
        }
        let text = &text[..text.floor_char_boundary(limits::TEXT_BYTES)];
        Cow::Owned(format!("{prompt}{text}"))
    }

    /// Adds the prompts to the fingerprint, because they change the vectors. Without prompts, the
    /// digest stays unchanged.
    pub(crate) fn add_to(&self, digest: &mut Sha256) {
        if self.query.is_empty() && self.passage.is_empty() {
            return;
        }
        for prompt in [&self.query, &self.passage] {
            digest.update((prompt.len() as u64).to_le_bytes());
            digest.update(prompt);
        }
    }
}
