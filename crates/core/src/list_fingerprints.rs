//! What a client has been shown: tells which lists have changed since.

use switchboard_base::view::View;
use switchboard_catalog::Kind;

use crate::{core::Core, dispatch::menu};

/// Fingerprints of what a client has been shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListFingerprints {
    tools: Look,
    prompts: Look,
    resources: Look,
}

/// One list at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Look {
    hash: u64,
    /// How often its server has announced that it has changed, where the client sees one server alone.
    announced: u64,
}

/// Stands for the menu.
const MENU: u64 = 1;

impl ListFingerprints {
    /// The state of this view at this moment.
    pub fn now(core: &Core, view: &View) -> Self {
        let catalog = core.live_catalog.catalog();
        match view {
            View::All(_) => {
                let look = |hash| Look { hash, announced: 0 };
                let [mut tools, prompts, resources] = catalog.hashes().map(look);
                // The menu is the same whatever there is behind it.
                if menu::is_shown(core, view) {
                    tools = look(MENU);
                }
                Self {
                    tools,
                    prompts,
                    resources,
                }
            }
            View::Server(name) => {
                let part = catalog.server(name);
                let hashes = part.map_or([0; 3], |part| part.hashes());
                let announced = core.live_catalog.announced(name);
                // Templates are announced with resources.
                let kinds = [Kind::Tool, Kind::Prompt, Kind::Resource];
                let [tools, prompts, resources] = [0, 1, 2].map(|at| Look {
                    hash: hashes[at],
                    announced: announced[kinds[at] as usize],
                });
                Self {
                    tools,
                    prompts,
                    resources,
                }
            }
        }
    }

    /// The notifications for what differs from `before`.
    pub fn changes_since(self, before: Self) -> impl Iterator<Item = &'static str> {
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
