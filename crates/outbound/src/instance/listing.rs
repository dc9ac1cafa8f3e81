//! Combines the lists of the connections of a server.
//!
//! If callers have their own instances, agents see the lists of the instance that was listed last, and the items that
//! other running instances alone list. An approved definition stays in the lists as long as another running instance
//! has it; one that differs is held apart. An instance is called only for the items that it defines like the lists that
//! agents see.
//!
//! An instance may have two connections. Agents see the lists of the first one, and these are what the user approves.
//! The second connection changes none of them, so a list of one process never lifts a hold that the other's has caused. It only
//! adds the items that it alone has. Items that it defines differently or does not list are called on the
//! first connection, and items that it alone has are called on it, regardless of the client's era.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{Arc, Weak, atomic::Ordering::Relaxed},
    time::Instant,
};

use switchboard_base::uri;
use switchboard_catalog::{Kind, Offers};
use switchboard_client::Raw;
use switchboard_config::Trust;
use switchboard_trust::{Offer, Places, fingerprint_at};

use super::{Instance, Items};
use crate::{
    discovery::{BYTES_MAX, ITEMS_MAX, Learnt},
    pins::item_kind,
};

const KINDS: usize = Kind::ALL.len();

/// The lists of a second connection, by kind and name.
#[derive(Debug, Default, Clone)]
pub(super) struct Listing([BTreeMap<String, Raw>; KINDS]);

/// The names, by kind, of the items that only the second connection lists.
#[derive(Debug, Default, Clone)]
pub(super) struct Added([HashSet<String>; KINDS]);

/// The items of a second connection that match the server's known definitions.
#[derive(Debug, Default)]
pub(super) struct Agreement {
    same: [HashSet<String>; KINDS],
    /// The names, by kind, of items that only one connection lists, or that the two define differently.
    other: [BTreeSet<String>; KINDS],
    /// The items that only this connection lists.
    alone: Added,
}

impl Instance {
    /// The known offers of a server, combined with the current lists of its connections. `learnt` are newly
    /// fetched lists of the first connection, which is this one. Items that only the second lists come and go
    /// with it.
    pub(super) fn combined(&self, known: Option<&Offers>, learnt: Option<Learnt>) -> Offers {
        let mut added = self.added.lock();
        let mut own = known.cloned().unwrap_or_else(Offers::unlisted);
        own.apart.clear();
        for kind in Kind::ALL {
            let names = &added.0[kind as usize];
            if !names.is_empty() {
                let is_own = |item: &Raw| name_of(kind, item).is_none_or(|it| !names.contains(&it));
                list_mut(&mut own, kind).retain(is_own);
            }
        }
        let own = match learnt {
            Some(learnt) => {
                if self.is_split() {
                    let listing = self.listing.load().with(learnt.clone());
                    self.listing.store(Arc::new(listing));
                }
                learnt.merge(own)
            }
            None => own,
        };
        *added = Added::default();
        let own = match self.other() {
            Some(other) => other.listing.load().added_to(own, &mut added),
            None => own,
        };
        if self.is_split() {
            self.with_others(known, own)
        } else {
            own
        }
    }

    /// Adds the items that other running instances of the server alone list, and the directories that descriptions
    /// may name.
    fn with_others(&self, known: Option<&Offers>, own: Offers) -> Offers {
        let others = self.split().into_iter();
        let others = others.filter(|other| other.id != self.id && other.live().is_some());
        let others: Vec<_> = others.collect();
        let mut all = own;
        let mut directories: Vec<_> = self.directories().collect();
        for other in &others {
            all = other.listing.load().added_to(all, &mut Added::default());
            directories.extend(other.directories());
        }
        directories.sort();
        directories.dedup();
        // Each instance of a trusted server is called as it is.
        if self.settings().trust == Trust::Always {
            return Offers { directories, ..all };
        }
        let places = Places::of_callers(&directories);
        let mut listings: Vec<_> = others
            .iter()
            .map(|other| other.listing.load_full())
            .collect();
        if let Some(known) = known {
            let is_approved = |kind, name: &str| {
                let item = Some((kind, name));
                self.deps.live_catalog.permits(&self.name, item).is_ok()
            };
            keep_approved(&mut all, known, &listings, is_approved, &places);
        }
        listings.push(self.listing.load_full());
        let apart = apart_from(&all, &listings, &places);
        Offers {
            directories,
            apart,
            ..all
        }
    }

    /// Has the lists fetched and judged again, and waits for that up to the deadline.
    pub(crate) async fn list_again(&self, until: Instant) {
        let Some(live) = self.live() else { return };
        live.judgements.change(Kind::ALL.into_iter().collect());
        self.wake.notify_one();
        for kind in Kind::ALL {
            live.judgements.wait(kind, until).await;
        }
    }

    /// Takes the known lists of the server for those of this instance, the only one so far.
    pub(super) fn adopt_known_lists(&self) {
        // Held as in a comparison, so that the later one sees the latest lists.
        let _added = self.added.lock();
        let known = self.deps.live_catalog.offers(&self.name);
        let known = known.unwrap_or_default();
        let listing = Listing::of(&known);
        self.agreement.store(Arc::new(listing.agreement(&known)));
        self.listing.store(Arc::new(listing));
    }

    /// The instances of the server whose lists may differ.
    fn split(&self) -> Vec<Arc<Self>> {
        let split = self.common.split.lock();
        split.iter().filter_map(Weak::upgrade).collect()
    }

    /// Compares the lists of the connections after they have been judged.
    pub(super) async fn compare(self: &Arc<Self>) {
        let all = if self.is_split() {
            self.split()
        } else if self.other().is_some() {
            vec![Arc::clone(self)]
        } else {
            return;
        };
        let comparing = tokio::task::spawn_blocking(move || {
            for instance in all {
                instance.compare_now();
            }
        });
        // An error means that the runtime is shutting down.
        let _ = comparing.await;
    }

    fn compare_now(&self) {
        // The comparison that runs last sees the latest state of all.
        let added = self.added.lock();
        let known = self.deps.live_catalog.offers(&self.name);
        let known = known.unwrap_or_default();
        if self.is_split() {
            let agreement = self.listing.load().agreement(&known);
            self.agreement.store(Arc::new(agreement));
        }
        if let Some(second) = self.other() {
            let agreement = Agreement {
                alone: added.clone(),
                ..second.listing.load().agreement(&known)
            };
            second.agreement.store(Arc::new(agreement));
            let has_added = added.0.iter().any(|names| !names.is_empty());
            self.has_added.store(has_added, Relaxed);
        }
    }

    /// The second connection, if it alone lists one of these items.
    pub fn other_with(&self, items: &Items<'_>) -> Option<Arc<Self>> {
        if !self.has_added.load(Relaxed) {
            return None;
        }
        self.other().filter(|other| {
            let Added(alone) = &other.agreement.load().alone;
            let mut items = items.iter().flatten();
            items.any(|(kind, name)| alone[*kind as usize].contains(&**name))
        })
    }
}

impl Listing {
    /// The lists of a server.
    fn of(offers: &Offers) -> Self {
        let mut all = Self::default();
        for kind in Kind::ALL {
            // Of two items with one name, the first counts.
            let items = offers.list(kind).iter().rev();
            let named = items.filter_map(|item| Some((name_of(kind, item)?, item.clone())));
            all.0[kind as usize] = named.collect();
        }
        all
    }

    /// Replaces the lists that were fetched, and keeps the others.
    pub(super) fn with(&self, learnt: Learnt) -> Self {
        let mut all = self.clone();
        for (kind, items) in learnt.into_lists() {
            // Of two items with one name, the first counts, as in the judgement.
            let last_first = items.into_iter().rev();
            let named = last_first.filter_map(|item| Some((name_of(kind, &item)?, item)));
            all.0[kind as usize] = named.collect();
        }
        all
    }

    pub(super) fn has(&self, kind: Kind, name: &str) -> bool {
        self.0[kind as usize].contains_key(name)
    }

    /// Adds the items that only this connection lists to the lists of the first one, within the limits of a
    /// list.
    fn added_to(&self, mut own: Offers, added: &mut Added) -> Offers {
        for kind in Kind::ALL {
            let list = list_mut(&mut own, kind);
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
                added.0[kind as usize].insert(name.clone());
            }
        }
        own
    }

    fn agreement(&self, known: &Offers) -> Agreement {
        let places = Places::of_callers(&known.directories);
        let mut agreement = Agreement::default();
        for kind in Kind::ALL {
            let (own, known) = (&self.0[kind as usize], known.list(kind));
            let other = &mut agreement.other[kind as usize];
            other.extend(own.keys().cloned());
            // Of two items with one name, the first counts.
            for item in known.iter().rev() {
                let Some(name) = name_of(kind, item) else {
                    continue;
                };
                if own
                    .get(&name)
                    .is_some_and(|own| is_same(kind, own, item, &places))
                {
                    other.remove(&name);
                    agreement.same[kind as usize].insert(name);
                } else {
                    agreement.same[kind as usize].remove(&name);
                    other.insert(name);
                }
            }
        }
        agreement
    }
}

impl Agreement {
    /// Tests if an item matches the server's known definition. A resource that neither connection lists is
    /// accepted, unless a template that produces it differs.
    pub(super) fn covers(&self, kind: Kind, name: &str) -> bool {
        if self.same[kind as usize].contains(name) {
            return true;
        }
        let is_other = self.other[kind as usize].contains(name);
        match kind {
            Kind::Tool | Kind::Prompt => false,
            Kind::Template => !is_other,
            Kind::Resource => {
                let mut makers = self.other[Kind::Template as usize].iter();
                !is_other && !makers.any(|maker| uri::matches(maker, name))
            }
        }
    }
}

/// Keeps the known definitions that are approved and that one of the other instances has, in place of new ones.
fn keep_approved(
    all: &mut Offers,
    known: &Offers,
    others: &[Arc<Listing>],
    is_approved: impl Fn(Kind, &str) -> bool,
    places: &Places,
) {
    let known = Listing::of(known);
    for kind in Kind::ALL {
        for item in list_mut(all, kind) {
            let Some(name) = name_of(kind, item) else {
                continue;
            };
            let Some(known) = known.0[kind as usize].get(&name) else {
                continue;
            };
            let has_known = |other: &Arc<Listing>| {
                let its = other.0[kind as usize].get(&name);
                its.is_some_and(|its| is_same(kind, its, known, places))
            };
            if !is_same(kind, item, known, places)
                && is_approved(kind, &name)
                && others.iter().any(has_known)
            {
                item.clone_from(known);
            }
        }
    }
}

/// The definitions of instances that differ from those in the lists, within the limits of a list.
fn apart_from(all: &Offers, listings: &[Arc<Listing>], places: &Places) -> Vec<(Kind, Raw)> {
    let listed = Listing::of(all);
    let (mut apart, mut seen, mut bytes) = (Vec::new(), HashSet::new(), 0);
    for (listing, kind) in listings
        .iter()
        .flat_map(|one| Kind::ALL.map(|kind| (one, kind)))
    {
        for (name, item) in &listing.0[kind as usize] {
            let listed = listed.0[kind as usize].get(name);
            let is_other = listed.is_some_and(|listed| !is_same(kind, item, listed, places));
            if !is_other || !seen.insert((kind, item.as_bytes())) {
                continue;
            }
            bytes += item.as_bytes().len();
            if apart.len() >= ITEMS_MAX || bytes > BYTES_MAX {
                return apart;
            }
            apart.push((kind, item.clone()));
        }
    }
    apart
}

fn list_mut(offers: &mut Offers, kind: Kind) -> &mut Vec<Raw> {
    match kind {
        Kind::Tool => &mut offers.tools,
        Kind::Prompt => &mut offers.prompts,
        Kind::Resource => &mut offers.resources,
        Kind::Template => &mut offers.templates,
    }
}

fn name_of(kind: Kind, item: &Raw) -> Option<String> {
    item.member(kind.key_member())?.to_text()
}

fn is_same(kind: Kind, one: &Raw, other: &Raw, places: &Places) -> bool {
    let print = |definition| {
        let kind = item_kind(kind);
        fingerprint_at(Offer { kind, definition }, places)
    };
    one.as_bytes() == other.as_bytes() || print(one) == print(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(kind: Kind, items: &[Raw]) -> Listing {
        let named = items
            .iter()
            .filter_map(|item| Some((name_of(kind, item)?, item.clone())));
        let mut listing = Listing::default();
        listing.0[kind as usize] = named.collect();
        listing
    }

    #[test]
    fn items_are_added_within_list_limits() {
        let items: Vec<Raw> = (0..20)
            .map(|n| {
                let text = "x".repeat(BYTES_MAX / 8);
                Raw::parse(format!(r#"{{"name":"{n}","description":"{text}"}}"#)).unwrap()
            })
            .collect();
        let own = Offers {
            tools: vec![items[0].clone()],
            ..Offers::default()
        };
        let mut added = Added::default();
        let all = listing(Kind::Tool, &items).added_to(own, &mut added);
        assert_eq!(all.tools.len(), 7);
        assert_eq!(added.0[Kind::Tool as usize].len(), 6);
        assert!(!added.0[Kind::Tool as usize].contains("0"));
    }

    #[test]
    fn resource_of_a_differing_template_is_not_covered() {
        let template =
            |text: &str| Raw::parse(format!(r#"{{"uriTemplate":"{text}","name":"x"}}"#)).unwrap();
        let known = Offers {
            templates: vec![template("a://{x}"), template("b://{x}")],
            ..Offers::default()
        };
        let second = listing(Kind::Template, &[template("b://{x}"), template("c://{x}")]);
        let agreement = second.agreement(&known);
        for (uri, is_covered) in [
            ("a://1", false),
            ("b://1", true),
            ("c://1", false),
            ("d://1", true),
        ] {
            assert_eq!(agreement.covers(Kind::Resource, uri), is_covered, "{uri}");
        }
    }
}
