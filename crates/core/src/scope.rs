//! Scopes: the part of the gateway that a caller may see and call.
//!
//! A scope has a catalog of its own, which lacks everything that the scope leaves out. A caller whose requests are
//! answered from there gets the same answer for a hidden item as for one that does not exist.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use switchboard_approvals::rules::Guard;
use switchboard_base::{
    caller::{ProfileId, Realm},
    error::Error,
};
use switchboard_catalog::{Catalog, Kind};
use switchboard_config::{Config, Profile, View};
use switchboard_outbound::{builtin, live_catalog::LiveCatalog};

use crate::approvals::policy::guard_of;

/// The part of the gateway that a caller may see and call.
#[derive(Debug, Default)]
pub struct Scope {
    /// The profile that decides; `None` if everything is permitted.
    profile: Option<Profile>,
    /// The catalog without what the profile leaves out, from the last time that it was needed.
    reduced: ArcSwapOption<Reduced>,
}

#[derive(Debug)]
struct Reduced {
    /// The catalog that it was made of.
    of: Weak<Catalog>,
    catalog: Arc<Catalog>,
}

impl Scope {
    /// Decides if an item may be seen and used. The gateway's own tools always may.
    pub fn permits(&self, kind: Kind, server: &str, name: &str) -> bool {
        let Some(profile) = self.profile.as_ref().filter(|_| server != builtin::SERVER) else {
            return true;
        };
        match kind {
            Kind::Tool => profile.permits_tool(server, name),
            Kind::Prompt | Kind::Resource | Kind::Template => profile.permits_server(server),
        }
    }

    /// Tests if it leaves a tool out by name, and not for lack of mention.
    pub(crate) fn denies(&self, server: &str, tool: &str) -> bool {
        let profile = self.profile.as_ref();
        profile.is_some_and(|profile| profile.denies(server, tool))
    }

    /// Decides if a server may be seen and used.
    pub fn permits_server(&self, server: &str) -> bool {
        let profile = self.profile.as_ref().filter(|_| server != builtin::SERVER);
        profile.is_none_or(|profile| profile.permits_server(server))
    }

    /// Returns `true` if it leaves nothing out.
    pub fn is_everything(&self) -> bool {
        self.profile.is_none()
    }

    /// Returns `true` if it leaves out single tools of servers.
    pub(crate) fn selects_tools(&self) -> bool {
        let selects = |profile: &Profile| profile.allow.is_some() || !profile.deny.is_empty();
        self.profile.as_ref().is_some_and(selects)
    }

    /// The catalog of what it permits.
    pub fn catalog(&self, live_catalog: &LiveCatalog) -> arc_swap::Guard<Arc<Catalog>> {
        let whole = live_catalog.catalog();
        if self.is_everything() {
            return whole;
        }
        if let Some(known) = &*self.reduced.load()
            && std::ptr::eq(known.of.as_ptr(), Arc::as_ptr(&whole))
        {
            return arc_swap::Guard::from_inner(Arc::clone(&known.catalog));
        }
        let reduced = whole.reduced(
            &|server| self.permits_server(server),
            &|kind, server, name| self.permits(kind, server, name),
        );
        let catalog = Arc::new(reduced);
        self.reduced.store(Some(Arc::new(Reduced {
            of: Arc::downgrade(&whole),
            catalog: Arc::clone(&catalog),
        })));
        arc_swap::Guard::from_inner(catalog)
    }

    /// The calls that need approval in it if no rule matches.
    pub(crate) fn guard(&self) -> Guard {
        let guard = self.profile.as_ref().and_then(|profile| profile.approvals);
        guard.map(guard_of).unwrap_or_default()
    }

    /// The presentation of its tools, if it differs from that of the configuration.
    pub(crate) fn view(&self) -> Option<View> {
        self.profile.as_ref()?.view
    }
}

/// The scopes of all callers, by the configuration in force.
#[derive(Debug)]
pub struct Scopes(ArcSwap<Table>);

#[derive(Debug, Default)]
struct Table {
    everything: Arc<Scope>,
    profiles: HashMap<ProfileId, Named>,
}

/// A profile with its name.
#[derive(Debug)]
struct Named {
    name: Arc<str>,
    scope: Arc<Scope>,
}

impl Scopes {
    pub(crate) fn new(config: &Config) -> Self {
        let table = Table::default().under(config);
        Self(ArcSwap::from_pointee(table))
    }

    /// Applies a configuration. Returns `true` if a scope has changed.
    pub(crate) fn set(&self, config: &Config) -> bool {
        let before = self.0.load();
        let table = before.under(config);
        let is_same = |(id, now): (&ProfileId, &Named)| {
            let then = before.profiles.get(id);
            then.is_some_and(|then| Arc::ptr_eq(&then.scope, &now.scope))
        };
        let is_changed =
            table.profiles.len() != before.profiles.len() || !table.profiles.iter().all(is_same);
        self.0.store(Arc::new(table));
        is_changed
    }

    /// The profile with this name, if there is one.
    pub fn profile(&self, name: &str) -> Option<ProfileId> {
        let id = ProfileId::of(name);
        self.0.load().profiles.contains_key(&id).then_some(id)
    }

    /// The name of a profile, if it still exists.
    pub fn name(&self, profile: ProfileId) -> Option<Arc<str>> {
        let table = self.0.load();
        table
            .profiles
            .get(&profile)
            .map(|known| Arc::clone(&known.name))
    }

    /// The scope of a realm.
    pub fn of(&self, realm: Realm) -> Result<Arc<Scope>, Error> {
        let table = self.0.load();
        let scope = match realm.profile {
            None => Some(&table.everything),
            Some(profile) => table.profiles.get(&profile).map(|known| &known.scope),
        };
        scope.map(Arc::clone).ok_or_else(|| {
            Error::advised(
                "the profile of this connection no longer exists",
                "ask the user to add it to `profiles` in the configuration, or to connect to another address",
            )
        })
    }
}

impl Table {
    /// The scopes under another configuration. Those of unchanged profiles keep their catalogs.
    fn under(&self, config: &Config) -> Self {
        let profiles = config.profiles.iter().map(|(name, profile)| {
            let id = ProfileId::of(name);
            let known = self.profiles.get(&id).map(|known| &known.scope);
            let known = known.filter(|known| known.profile.as_ref() == Some(profile));
            let new = || {
                Arc::new(Scope {
                    profile: Some(profile.clone()),
                    ..Scope::default()
                })
            };
            let scope = known.map_or_else(new, Arc::clone);
            let name = name.as_str().into();
            (id, Named { name, scope })
        });
        Self {
            everything: Arc::clone(&self.everything),
            profiles: profiles.collect(),
        }
    }
}
