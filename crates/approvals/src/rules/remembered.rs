//! Remembered decisions: rules with a scope.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use switchboard_text::hex;

use super::error::ArgumentsError;
use super::look::Look;
use super::rule::{Action, Rule, Specificity};
use crate::record::Session;

/// A remembered decision. A store keeps its serialized form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remembered {
    /// ID by which it is forgotten.
    pub id: String,
    /// The decision, and its expiry.
    pub rule: Rule,
    /// The clients to which it applies.
    pub scope: Scope,
    /// The [`digest`](super::digest) of the only arguments to which it applies.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "to_hex",
        deserialize_with = "from_hex"
    )]
    pub exactly: Option<[u8; 32]>,
    /// The fingerprint of the server that it was made about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Time of the decision, in milliseconds since 1970.
    pub created_at: u64,
    /// The approver.
    pub by: String,
}

/// The clients to which a remembered decision applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// This session of a client.
    Session(Session),
    /// Clients that work on this project.
    Project(String),
    /// Every client.
    Always,
}

impl Remembered {
    /// Tests if it applies to such a case, regardless of the caller and the arguments. It does not apply to a
    /// name that cannot be judged.
    pub fn is_about(&self, case: &super::Case<'_>, now: u64) -> bool {
        self.rule.is_about(&Look::new(case), now) == Ok(true)
    }

    pub(crate) fn applies(&self, look: &Look<'_, '_>, now: u64) -> Result<bool, ArgumentsError> {
        let here = match &self.scope {
            // The question may come from the client that it was made about.
            Scope::Session(_) | Scope::Project(_) if look.case.has_unknown_caller() => {
                self.rule.action != Action::Allow
            }
            Scope::Session(session) => *session == look.case.session,
            Scope::Project(project) => look.case.project == Some(project),
            Scope::Always => true,
        };
        // It was made about a tool's own name, which may since be the new name of another.
        let is_other = look.case.new_name.is_some() && !self.rule.names(look.case.tool);
        if !here || is_other || !self.rule.is_about(look, now)? {
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
                // All outrank the configuration, so an approver who chose "always" is not asked again.
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
    let wrong = || serde::de::Error::custom("a digest must have 64 hexadecimal digits");
    hex::decode(&text).map(Some).ok_or_else(wrong)
}
