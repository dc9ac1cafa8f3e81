//! [`Offers`]: what one server offers, as it was last seen.

use switchboard_wire::{Era, Raw, Revision};

/// What one server offers, as it was last seen. Raw JSON, every byte as the server sent it.
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
    /// What the server said it can do.
    pub capabilities: Option<Raw>,
    /// Who the server said it is.
    pub server_info: Option<Raw>,
    /// The `_meta` of the answer that opened the connection, without the server's name.
    pub meta: Option<Raw>,
    /// What the server wants a model to know.
    pub instructions: Option<String>,
    /// Which of the two worlds the server belongs to.
    pub era: Option<Era>,
    /// The revision that was agreed on.
    pub revision: Option<Revision>,
    /// Whether `tools/list` has never been answered, so that an empty list of tools says nothing.
    pub unlisted: bool,
}

impl Offers {
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

/// The kinds of things a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Something to call.
    Tool,
    /// A prompt to fill in.
    Prompt,
    /// Something to read.
    Resource,
    /// A pattern of URIs that can be read.
    Template,
}

impl Kind {
    /// All of them.
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

    /// Whether items of this kind are known by a name (or else by a URI).
    pub(crate) const fn is_named(self) -> bool {
        matches!(self, Self::Tool | Self::Prompt)
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}
