//! What a model was trained to find in front of a text, by what the text is for.

use std::{borrow::Cow, collections::BTreeMap, path::Path};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::files;
use crate::{ModelError, Role, limits};

/// The words in front of queries and of passages; most models have none.
#[derive(Debug, Default)]
pub(crate) struct Prompts {
    query: String,
    passage: String,
}

/// What is read of `config_sentence_transformers.json`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    prompts: Option<BTreeMap<String, Option<String>>>,
    default_prompt_name: Option<String>,
}

const FILE: &str = "config_sentence_transformers.json";

impl Prompts {
    /// Those of the model in a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, ModelError> {
        let path = folder.join(FILE);
        let Some(text) = files::read_if_there(&path, limits::CONFIG_BYTES)? else {
            return Ok(Self::default());
        };
        let settings: Settings = serde_json::from_slice(&text).map_err(ModelError::json(&path))?;
        let prompts = settings.prompts.unwrap_or_default();
        // The names, and which counts, are those of the library that wrote the file.
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
                what: format!("a prompt has {found} bytes, at most {most} are put before a text"),
            })
        };
        Ok(Self {
            query: pick(&["query"])?,
            passage: pick(&["document", "passage", "corpus"])?,
        })
    }

    /// The text as the model wants it, as much of it as is looked at.
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

    /// Makes other vectors of other prompts. Without any, the digest is what it is without this.
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
