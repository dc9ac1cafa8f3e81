//! What a second connection lists.
//!
//! Agents see what the first connection lists, and that is what people approve. The second changes none of it, so no list
//! of one process lifts a hold that the other's has caused. It adds what only it has; what it defines otherwise is called
//! on the first.

use std::collections::{BTreeMap, HashSet};

use switchboard_catalog::{Kind, Offers, ServerPart};
use switchboard_client::Raw;
use switchboard_trust::{Offer, fingerprint};

use crate::{
    learn::{BYTES_MAX, ITEMS_MAX, Learnt},
    trust::item_kind,
    uri,
};

/// The lists of a second connection, by kind and name.
#[derive(Debug, Default, Clone)]
pub(super) struct Listing([BTreeMap<String, Raw>; Kind::ALL.len()]);

impl Listing {
    /// These lists in the place of those before, and the others as they were.
    pub(super) fn with(&self, learnt: Learnt) -> Self {
        let mut all = self.clone();
        for (kind, items) in learnt.into_lists() {
            // Of two with one name the first counts, as it does where they are judged.
            let last_first = items.into_iter().rev();
            let named = last_first.filter_map(|item| Some((name_of(kind, &item)?, item)));
            all.0[kind as usize] = named.collect();
        }
        all
    }

    /// What the server is known to offer, with the items that only this lists. They are taken in as long as the whole
    /// would be taken for a list: a server may make up others each time.
    pub(super) fn added_to(&self, mut known: Offers) -> Offers {
        for kind in Kind::ALL {
            let list = match kind {
                Kind::Tool => &mut known.tools,
                Kind::Prompt => &mut known.prompts,
                Kind::Resource => &mut known.resources,
                Kind::Template => &mut known.templates,
            };
            let names: HashSet<String> = list.iter().filter_map(|it| name_of(kind, it)).collect();
            let mut bytes: usize = list.iter().map(|item| item.as_bytes().len()).sum();
            for (name, item) in &self.0[kind as usize] {
                if names.contains(name) {
                    continue;
                }
                bytes += item.as_bytes().len();
                if list.len() >= ITEMS_MAX || bytes > BYTES_MAX {
                    break;
                }
                list.push(item.clone());
            }
        }
        known
    }

    /// Tests if this lists an item as the server is known to offer it. What neither lists may still be a resource, if no
    /// template that makes it differs.
    pub(super) fn agrees(&self, known: &ServerPart, kind: Kind, name: &str) -> bool {
        let own = &self.0[kind as usize];
        match (own.get(name), known.find(kind, name)) {
            (Some(own), Some(known)) => is_same(kind, own, known.raw()),
            (None, None) => match kind {
                Kind::Tool | Kind::Prompt => false,
                Kind::Template => true,
                Kind::Resource => {
                    let mut makers = self.0[Kind::Template as usize].keys();
                    makers.all(|maker| {
                        !uri::matches(maker, name) || self.agrees(known, Kind::Template, maker)
                    })
                }
            },
            _ => false,
        }
    }
}

fn name_of(kind: Kind, item: &Raw) -> Option<String> {
    item.member(kind.key_member())?.to_text()
}

fn is_same(kind: Kind, one: &Raw, other: &Raw) -> bool {
    let print = |definition| {
        let kind = item_kind(kind);
        fingerprint(Offer { kind, definition })
    };
    one.as_bytes() == other.as_bytes() || print(one) == print(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(items: impl IntoIterator<Item = Raw>) -> Listing {
        let named = items
            .into_iter()
            .filter_map(|item| Some((name_of(Kind::Tool, &item)?, item)));
        let mut listing = Listing::default();
        listing.0[Kind::Tool as usize] = named.collect();
        listing
    }

    #[test]
    fn names_made_up_each_time_are_bounded() {
        let item = |n: usize| {
            let text = "x".repeat(BYTES_MAX / 8);
            Raw::parse(format!(r#"{{"name":"{n}","description":"{text}"}}"#)).unwrap()
        };
        let mut known = Offers::default();
        for n in 0..20 {
            known = listing([item(n)]).added_to(known);
        }
        assert_eq!(known.tools.len(), 7);
        let same = listing([item(3)]).added_to(known.clone());
        assert_eq!(same, known);
    }
}
