//! [`Offers`]: the last known lists of one server.

use switchboard_wire::{Era, Raw, Revision};

/// The last known lists of one server: raw JSON, exactly as the server sent it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offers {
    /// The elements of `tools/list`, all pages.
    pub tools: Vec<Raw>,
    /// The elements of `prompts/list`, all pages.
    pub prompts: Vec<Raw>,
    /// The elements of `resources/list`, all pages.
    pub resources: Vec<Raw>,
    /// The elements of `resources/templates/list`, all pages.
    pub templates: Vec<Raw>,
    /// The server's capabilities.
    pub capabilities: Option<Raw>,
    /// The server's description of itself.
    pub server_info: Option<Raw>,
    /// The `_meta` of the server's handshake response, without the server info.
    pub meta: Option<Raw>,
    /// The server's instructions to a model.
    pub instructions: Option<String>,
    /// The era of the server.
    pub era: Option<Era>,
    /// The negotiated revision.
    pub revision: Option<Revision>,
    /// `true` if `tools/list` has never been answered, so that an empty list of tools means
    /// nothing.
    pub unlisted: bool,
    /// `true` if the server has asked clients something over a pipe, without naming them.
    pub asks_back: bool,
    /// The directories of single callers in which the server was listed: its descriptions may name them.
    pub directories: Vec<String>,
    /// Definitions of single processes that differ from those in the lists. They are not stored.
    pub apart: Vec<(Kind, Raw)>,
}

impl Offers {
    /// The offers of a server that has not been listed.
    pub fn unlisted() -> Self {
        Self {
            unlisted: true,
            ..Self::default()
        }
    }

    /// The list of one kind.
    pub fn list(&self, kind: Kind) -> &[Raw] {
        match kind {
            Kind::Tool => &self.tools,
            Kind::Prompt => &self.prompts,
            Kind::Resource => &self.resources,
            Kind::Template => &self.templates,
        }
    }
}

/// The kinds of items that a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A function to call.
    Tool,
    /// A prompt to fill in.
    Prompt,
    /// Content to read.
    Resource,
    /// A pattern of URIs that can be read.
    Template,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Prompt, Self::Resource, Self::Template];

    /// The member of a list result that holds the items, such as `tools`.
    pub(crate) const fn list_member(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Prompt => "prompts",
            Self::Resource => "resources",
            Self::Template => "resourceTemplates",
        }
    }

    /// The member of an item that names it, such as `uri`.
    pub const fn key_member(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Resource => "uri",
            Self::Template => "uriTemplate",
        }
    }

    /// Returns `true` if items of this kind are identified by a name rather than a URI.
    pub(crate) const fn is_named(self) -> bool {
        matches!(self, Self::Tool | Self::Prompt)
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}
