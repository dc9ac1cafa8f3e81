//! Overrides: the owner's changes to the tools of a server.

use std::{collections::BTreeMap, fmt, sync::Arc};

use rustc_hash::FxHashMap;
use switchboard_wire::Raw;

/// The overrides of a server, by the server's own names of its tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    all: BTreeMap<String, Arc<Override>>,
    /// The same, to look one up in each call.
    by_tool: FxHashMap<String, Arc<Override>>,
    /// The tools that have a new name, by that name.
    renamed: FxHashMap<String, String>,
}

/// An entry of `overrides`: the owner's changes to one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Override {
    /// The name under which clients see and call it.
    pub name: Option<String>,
    /// The description that clients see.
    pub description: Option<String>,
    /// The annotations that replace those of the server, an object.
    pub annotations: Option<Raw>,
    /// The arguments that clients neither see nor set.
    pub arguments: BTreeMap<String, Argument>,
    /// Clients do not see the tool.
    pub hidden: bool,
}

impl Override {
    /// Tests if calls of the tool mean the same under both: only texts and annotations differ.
    pub fn is_called_like(&self, other: &Self) -> bool {
        // Destructured, so that a new field has to be considered here.
        let Self {
            name,
            description: _,
            annotations: _,
            arguments,
            hidden,
        } = self;
        *name == other.name && *arguments == other.arguments && *hidden == other.hidden
    }
}

/// An argument that clients neither see nor set.
#[derive(Clone, PartialEq, Eq)]
pub enum Argument {
    /// Every call has this value.
    Fixed(Raw),
    /// No call has it.
    Hidden,
}

/// Without the value, which may be a secret.
impl fmt::Debug for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed(_) => "Fixed(hidden)",
            Self::Hidden => "Hidden",
        })
    }
}

impl From<BTreeMap<String, Arc<Override>>> for Overrides {
    fn from(all: BTreeMap<String, Arc<Override>>) -> Self {
        let renamed = all
            .iter()
            .filter_map(|(tool, of)| Some((of.name.clone()?, tool.clone())));
        Self {
            renamed: renamed.collect(),
            by_tool: all.clone().into_iter().collect(),
            all,
        }
    }
}

impl Overrides {
    /// The override of a tool, by the server's own name.
    pub fn get(&self, tool: &str) -> Option<&Arc<Override>> {
        self.by_tool.get(tool)
    }

    /// All overrides, by the server's own names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Override)> {
        self.all.iter().map(|(tool, of)| (tool.as_str(), &**of))
    }

    /// Returns `true` if there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The tool that has this new name, if there is one.
    pub fn renamed_to(&self, name: &str) -> Option<&str> {
        self.renamed.get(name).map(String::as_str)
    }

    /// The new name of a tool, if it has one.
    pub fn new_name(&self, tool: &str) -> Option<&str> {
        self.get(tool)?.name.as_deref()
    }
}
