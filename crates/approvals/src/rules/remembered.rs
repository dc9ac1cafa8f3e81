//! Decisions that a person wanted to be remembered: rules with a scope.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use switchboard_text::hex;

use super::error::ArgumentsError;
use super::look::Look;
use super::rule::{Action, Rule, Specificity};
use crate::record::Session;

/// A decision that is remembered. Serialised, it is what a store keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remembered {
    /// What it is forgotten by.
    pub id: String,
    /// What was decided, and until when.
    pub rule: Rule,
    /// Where it counts.
    pub scope: Scope,
    /// For these arguments alone: their [`digest`](super::digest).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "to_hex",
        deserialize_with = "from_hex"
    )]
    pub exactly: Option<[u8; 32]>,
    /// The fingerprint of the server that it was decided about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// When it was decided, in milliseconds since 1970.
    pub created_at: u64,
    /// Who decided.
    pub by: String,
}

/// Where a remembered decision counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// In this session of a client.
    Session(Session),
    /// In this project.
    Project(String),
    /// Everywhere.
    Always,
}

impl Remembered {
    /// Whether it says anything about such a case, whoever calls and whatever the arguments. A name
    /// that cannot be judged is none that was decided about.
    pub fn is_about(&self, case: &super::Case<'_>, now: u64) -> bool {
        self.rule.is_about(&Look::new(case), now) == Ok(true)
    }

    pub(crate) fn applies(&self, look: &Look<'_, '_>, now: u64) -> Result<bool, ArgumentsError> {
        let here = match &self.scope {
            // It may be the question of the client that was decided about.
            Scope::Session(_) | Scope::Project(_) if look.case.has_unknown_caller() => {
                self.rule.action != Action::Allow
            }
            Scope::Session(session) => *session == look.case.session,
            Scope::Project(project) => look.case.project == Some(project),
            Scope::Always => true,
        };
        if !here || !self.rule.is_about(look, now)? {
            return Ok(false);
        }
        if self
            .exactly
            .as_ref()
            .is_some_and(|digest| digest != look.digest())
        {
            return Ok(false);
        }
        self.rule.applies(look, now)
    }

    pub(crate) fn specificity(&self) -> Specificity {
        Specificity {
            exact_arguments: self.exactly.is_some(),
            scope: match self.scope {
                // A person who said "always" is not asked again.
                Scope::Session(_) => 3,
                Scope::Project(_) => 2,
                Scope::Always => 1,
            },
            ..self.rule.specificity()
        }
    }
}

#[expect(clippy::ref_option, reason = "it is called with what serde has")]
fn to_hex<S: Serializer>(digest: &Option<[u8; 32]>, serializer: S) -> Result<S::Ok, S::Error> {
    let digest = digest.unwrap_or_default();
    serializer.serialize_str(&hex::encode(&digest))
}

fn from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[u8; 32]>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = || serde::de::Error::custom("a digest has 64 hexadecimal digits");
    hex::decode(&text).map(Some).ok_or_else(wrong)
}
