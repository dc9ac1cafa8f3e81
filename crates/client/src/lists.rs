//! The lists of a server that may change, and a record of the ones that were requested.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use switchboard_wire::method;

/// A list that may change.
pub(crate) struct List {
    /// The capability it belongs to.
    pub(crate) capability: &'static str,
    /// The name of its changes in the filter of a listen stream.
    pub(crate) wish: &'static str,
    /// The notification that the list has changed.
    pub(crate) changed: &'static str,
    /// The methods that fetch the list.
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

/// The lists that were ever requested. From then on, a caller may hold an outdated copy.
///
/// A flag is set before the request is passed to the connection, so that it is visible to any code
/// that observes a later event of the connection.
#[derive(Debug, Default)]
pub(crate) struct AskedFor([AtomicBool; LISTS.len()]);

impl AskedFor {
    /// Records that a request of this method is about to be made.
    pub(crate) fn note(&self, method: &str) {
        for (list, asked) in LISTS.iter().zip(&self.0) {
            if list.methods.contains(&method) {
                asked.store(true, Relaxed);
            }
        }
    }

    /// Returns the lists that were requested.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &'static List> {
        let all = LISTS.iter().zip(&self.0);
        all.filter(|(_, asked)| asked.load(Relaxed))
            .map(|(list, _)| list)
    }
}
