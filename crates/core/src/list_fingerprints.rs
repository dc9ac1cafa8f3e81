//! Fingerprints of the lists that a client has seen, to tell which have changed since.

use switchboard_base::{caller::Caller, view::View};
use switchboard_catalog::Kind;

use crate::{core::Core, dispatch::menu};

/// Fingerprints of the lists that a client has seen.
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
    /// Number of times that its server has announced a change, in a view of one server.
    announced: u64,
}

/// The hash of the menu.
const MENU: u64 = 1;

impl ListFingerprints {
    /// The state of this view at this moment.
    pub fn now(core: &Core, caller: &Caller, view: &View) -> Self {
        // Without its profile, a client sees nothing.
        let Ok(scope) = core.scopes.of(caller.realm) else {
            return Self::default();
        };
        let catalog = scope.catalog(&core.live_catalog);
        match view {
            View::All(_) => {
                let look = |hash| Look { hash, announced: 0 };
                let [mut tools, prompts, resources] = catalog.hashes().map(look);
                // The menu does not depend on the tools behind it.
                if menu::choose(core, &scope, view, caller).is_menu {
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
                // An announced change may concern a hidden tool.
                let announced = if scope.is_everything() {
                    core.live_catalog.announced(name)
                } else {
                    Default::default()
                };
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

    /// The notifications for the lists that differ from `before`.
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
