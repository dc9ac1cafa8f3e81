//! What a client has been shown: tells which lists have changed since.

use crate::{context::Context, desk::menu, view::View};

/// Fingerprints of what a client has been shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    tools: u64,
    prompts: u64,
    resources: u64,
}

/// Stands for the menu.
const MENU: u64 = 1;

impl Shown {
    /// Nothing has been shown.
    pub(crate) const NOTHING: Self = Self {
        tools: 0,
        prompts: 0,
        resources: 0,
    };

    pub(crate) fn now(context: &Context, view: &View) -> Self {
        let catalogue = context.shelf.catalogue();
        match view {
            View::All(_) => Self {
                // The menu is the same whatever there is behind it.
                tools: if menu::is_shown(context, view) {
                    MENU
                } else {
                    catalogue.tools_hash()
                },
                prompts: catalogue.prompts_hash(),
                resources: catalogue.resources_hash(),
            },
            View::Server(name) => match catalogue.server(name) {
                None => Self::NOTHING,
                Some(part) => Self {
                    tools: part.tools_hash(),
                    prompts: part.prompts_hash(),
                    resources: part.resources_hash(),
                },
            },
        }
    }

    /// The notifications for what differs from `before`.
    pub(crate) fn changes_since(self, before: Self) -> impl Iterator<Item = &'static str> {
        [
            (
                self.tools != before.tools,
                "notifications/tools/list_changed",
            ),
            (
                self.prompts != before.prompts,
                "notifications/prompts/list_changed",
            ),
            (
                self.resources != before.resources,
                "notifications/resources/list_changed",
            ),
        ]
        .into_iter()
        .filter_map(|(changed, said)| changed.then_some(said))
    }
}
