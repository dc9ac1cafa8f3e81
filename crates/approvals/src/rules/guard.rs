//! Guards: the calls that need approval if no rule matches.

use serde::{Deserialize, Serialize};
use switchboard_text::glob::Glob;

use super::hints::Hints;
use super::look::Look;
use super::rule::{Action, Rule};
use super::{RuleRef, Verdict};

/// The calls that need approval if no rule matches, from the fewest to all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// No calls.
    #[default]
    #[serde(alias = "rules")]
    Never,
    /// Calls of tools that may destroy data.
    Destructive,
    /// Calls of tools that may change data.
    Writes,
    /// Calls of every tool, resource and prompt.
    All,
}

impl Guard {
    /// The equivalent rule; `None` for [`Never`](Self::Never).
    pub(crate) fn rule(self, server: Glob) -> Option<Rule> {
        let annotations = match self {
            Self::Never => return None,
            Self::Destructive => Hints {
                destructive: Some(true),
                ..Hints::default()
            },
            Self::Writes => Hints {
                read_only: Some(false),
                ..Hints::default()
            },
            Self::All => Hints::default(),
        };
        Some(Rule {
            server,
            annotations,
            ..Rule::any(Action::Ask)
        })
    }

    pub(crate) fn verdict(self, id: String, look: &Look<'_, '_>) -> Verdict {
        let server = if id == "default" {
            Glob::any()
        } else {
            Glob::literal(look.case.server)
        };
        let asks = self
            .rule(server)
            .filter(|rule| rule.annotations.hold(look.believed()));
        let Some(rule) = asks else {
            return Verdict {
                action: Action::Allow,
                rule: None,
                why: "no rule denies it or requires approval".to_owned(),
                reason: None,
            };
        };
        let why = match self {
            Self::Destructive => "the tool may destroy data",
            Self::Writes => "the tool may change data",
            Self::Never | Self::All => "every request requires approval",
        };
        Verdict {
            action: Action::Ask,
            rule: Some(RuleRef {
                id,
                text: rule.to_string(),
            }),
            why: why.to_owned(),
            reason: None,
        }
    }
}
