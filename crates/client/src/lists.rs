//! The lists of a server that may change, and which of them somebody may be holding.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use switchboard_wire::method;

/// A list that may change.
pub(crate) struct List {
    /// The capability it belongs to.
    pub(crate) capability: &'static str,
    /// What a listen stream calls its changes.
    pub(crate) wish: &'static str,
    /// The notification that it has changed.
    pub(crate) changed: &'static str,
    /// What fetches it.
    methods: &'static [&'static str],
}

pub(crate) const LISTS: [List; 3] = [
    List {
        capability: "tools",
        wish: "toolsListChanged",
        changed: "notifications/tools/list_changed",
        methods: &[method::TOOLS_LIST],
    },
    List {
        capability: "prompts",
        wish: "promptsListChanged",
        changed: "notifications/prompts/list_changed",
        methods: &[method::PROMPTS_LIST],
    },
    List {
        capability: "resources",
        wish: "resourcesListChanged",
        changed: "notifications/resources/list_changed",
        methods: &[method::RESOURCES_LIST, method::RESOURCE_TEMPLATES_LIST],
    },
];

/// Which lists have been asked for, ever: from then on somebody may hold what is out of date.
///
/// Set before the request is handed to the connection, so that whoever hears of something that the
/// connection did after it sees it set.
#[derive(Debug, Default)]
pub(crate) struct AskedFor([AtomicBool; LISTS.len()]);

impl AskedFor {
    /// A request of this method is about to be made.
    pub(crate) fn note(&self, method: &str) {
        for (list, asked) in LISTS.iter().zip(&self.0) {
            if list.methods.contains(&method) {
                asked.store(true, Relaxed);
            }
        }
    }

    /// The lists that have been asked for.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &'static List> {
        let all = LISTS.iter().zip(&self.0);
        all.filter(|(_, asked)| asked.load(Relaxed))
            .map(|(list, _)| list)
    }
}
