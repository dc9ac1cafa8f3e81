//! Scopes: the part of the gateway that a caller may see and call.
//!
//! A scope has a catalog of its own, which lacks everything that the scope leaves out. A caller whose requests are
//! answered from there gets the same answer for a hidden item as for one that does not exist.

use std::sync::{Arc, Weak};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use switchboard_approvals::rules::Guard;
use switchboard_base::{
    caller::{Principal, ProfileId, Realm},
    error::Error,
};
use switchboard_catalog::{Catalog, Kind, Presented};
use switchboard_client::Raw;
use switchboard_config::{Argument, Config, Override, Profile, View};
use switchboard_outbound::{
    builtin, live_catalog::LiveCatalog, memory, overrides, upstream::Upstream,
};
use switchboard_tokens::{Token, TokenId};

use crate::approvals::policy::guard_of;

/// The part of the gateway that a caller may see and call.
#[derive(Debug, Default)]
pub struct Scope {
    /// The profile that decides; `None` if everything is permitted.
    profile: Option<Profile>,
    /// The servers that the caller's token is held to, in order; `None` if it is held to none.
    servers: Option<Arc<[String]>>,
    /// The names that overrides give to tools, which patterns match as well.
    new_names: Arc<NewNames>,
    /// The part of the memory that the profile has, if it does not have all of it.
    namespace: Option<Namespace>,
    /// The catalog without what the profile leaves out, from the last time that it was needed.
    reduced: ArcSwapOption<Reduced>,
}

/// The new names of tools, by server and the server's own name.
type NewNames = FxHashMap<String, FxHashMap<String, String>>;

/// The namespace of the memory that a profile is confined to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Namespace {
    /// The memory among the servers.
    server: &'static str,
    /// The change to each of its tools: the namespace is fixed.
    changes: Arc<Override>,
}

#[derive(Debug)]
struct Reduced {
    /// The catalog that it was made of.
    of: Weak<Catalog>,
    catalog: Arc<Catalog>,
}

/// The changes to a tool: those of the owner, and those of the scope of a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes([Option<Arc<Override>>; 2]);

impl Changes {
    /// In the order in which they apply.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Override>> {
        self.0.iter().flatten()
    }

    /// Tests if calls of the tool mean the same under both.
    pub(crate) fn are_called_like(&self, other: &Self) -> bool {
        let is_same = |pair| match pair {
            (Some(one), Some(other)) => Override::is_called_like(one, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let pairs = self.0.iter().map(Option::as_deref);
        pairs.zip(other.0.iter().map(Option::as_deref)).all(is_same)
    }
}

impl Scope {
    /// Decides if an item may be seen and used. The gateway's own tools always may.
    pub fn permits(&self, kind: Kind, server: &str, name: &str) -> bool {
        let permits_tool = || {
            let profile = self.profile.as_ref().filter(|_| server != builtin::SERVER);
            let new_name = || {
                // Most gateways have none, which takes no lookup.
                let has_some = !self.new_names.is_empty();
                let names = has_some.then(|| self.new_names.get(server)).flatten()?;
                names.get(name).map(String::as_str)
            };
            profile.is_none_or(|profile| profile.permits_tool(server, name, new_name()))
        };
        let in_namespace = || kind == Kind::Tool && memory::takes_namespace(name);
        self.permits_server(server)
            && (kind != Kind::Tool || permits_tool())
            && (!self.is_confined_in(server) || in_namespace())
    }

    /// Returns `true` if it has only a part of this server's data, so that every item has to be one that it permits.
    pub(crate) fn is_confined_in(&self, server: &str) -> bool {
        self.namespace
            .as_ref()
            .is_some_and(|part| part.server == server)
    }

    /// Tests if a call of a server's tool with these arguments can have been made within it.
    pub fn permits_arguments(&self, server: &str, arguments: Option<&Raw>) -> bool {
        let Some(changes) = self.changes(server) else {
            return true;
        };
        arguments.is_some_and(|arguments| overrides::check(changes, arguments).is_ok())
    }

    /// The change that it makes to the tools of a server.
    pub(crate) fn changes(&self, server: &str) -> Option<&Arc<Override>> {
        let part = self.namespace.as_ref()?;
        (part.server == server).then_some(&part.changes)
    }

    /// The changes to a tool: the owner's, and its own.
    pub(crate) fn changes_to(&self, upstream: &Upstream, tool: &str) -> Changes {
        let settings = upstream.settings();
        Changes([
            settings.overrides.get(tool).cloned(),
            self.changes(&upstream.name).cloned(),
        ])
    }

    fn present(&self, server: &str, kind: Kind, name: &str, raw: &Raw) -> Presented {
        match self.changes(server) {
            _ if !self.permits(kind, server, name) => Presented::Hidden,
            Some(changes) => overrides::present(changes, raw),
            None => Presented::Unchanged,
        }
    }

    /// Tests if it leaves a tool out by name, and not for lack of mention.
    pub(crate) fn denies(&self, server: &str, tool: &str) -> bool {
        let profile = self.profile.as_ref();
        profile.is_some_and(|profile| profile.denies(server, tool))
    }

    /// Decides if a server may be seen and used.
    pub fn permits_server(&self, server: &str) -> bool {
        if server == builtin::SERVER {
            return true;
        }
        let servers = self.servers.as_ref();
        let has = |servers: &Arc<[String]>| {
            let found = servers.binary_search_by(|known| known.as_str().cmp(server));
            found.is_ok()
        };
        servers.is_none_or(has)
            && (self.profile.as_ref()).is_none_or(|profile| profile.permits_server(server))
    }

    /// Returns `true` if it leaves nothing out.
    pub fn is_everything(&self) -> bool {
        self.profile.is_none() && self.servers.is_none()
    }

    /// Returns `true` if it leaves out nothing of this server.
    pub(crate) fn sees_all_of(&self, server: &str) -> bool {
        self.permits_server(server) && !self.selects_tools() && !self.is_confined_in(server)
    }

    /// Returns `true` if it leaves out single tools of servers.
    pub fn selects_tools(&self) -> bool {
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
        let reduced = whole.presented(
            &|server| self.permits_server(server),
            &|server, kind, name, raw| self.present(server, kind, name, raw),
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

/// The scopes of all callers, by the configuration and the tokens in force.
#[derive(Debug)]
pub struct Scopes {
    table: ArcSwap<Table>,
    /// Held while the table is replaced.
    changing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Table {
    everything: Arc<Scope>,
    profiles: FxHashMap<ProfileId, Named>,
    /// The IDs of the profiles. Computing one takes longer than finding it.
    by_name: FxHashMap<Arc<str>, ProfileId>,
    tokens: FxHashMap<TokenId, Held>,
}

/// A profile with its name.
#[derive(Debug, Clone)]
struct Named {
    name: Arc<str>,
    scope: Arc<Scope>,
}

/// The scopes of a token.
#[derive(Debug, Clone)]
struct Held {
    /// The profile that it is held to.
    profile: Option<ProfileId>,
    /// The servers that it is held to; `None` if it is held to none.
    servers: Option<Arc<[String]>>,
    /// Its scopes under each profile that exists for it and without one, if it is held to servers.
    scopes: FxHashMap<Option<ProfileId>, Arc<Scope>>,
}

impl Held {
    /// Tests if a profile exists for it.
    fn has(&self, profile: ProfileId) -> bool {
        match self.profile {
            Some(held_to) => held_to == profile,
            None => self.servers.is_none() || self.scopes.contains_key(&Some(profile)),
        }
    }
}

impl Scopes {
    pub(crate) fn new(config: &Config) -> Self {
        let table = Table::default().under(config);
        Self {
            table: ArcSwap::from_pointee(table),
            changing: Mutex::default(),
        }
    }

    /// Applies a configuration.
    pub(crate) fn set(&self, config: &Config) {
        let _changing = self.changing.lock();
        let table = self.table.load().under(config);
        self.table.store(Arc::new(table));
    }

    /// Applies the tokens.
    pub(crate) fn set_tokens<'a>(&self, tokens: impl Iterator<Item = &'a Token>) {
        let _changing = self.changing.lock();
        let table = self.table.load().with(tokens);
        self.table.store(Arc::new(table));
    }

    /// The profile with this name, if there is one for a principal. For a token, there is only the profile that it
    /// is held to; if it is held to servers, there are only profiles that include one of them.
    pub fn profile(&self, principal: Principal, name: &str) -> Option<ProfileId> {
        let table = self.table.load();
        let profile = table.by_name.get(name).copied()?;
        let Principal::Token(id) = principal else {
            return Some(profile);
        };
        // A token that has just been revoked has no scope, which ends the request.
        let token = table.tokens.get(&id);
        token
            .is_none_or(|token| token.has(profile))
            .then_some(profile)
    }

    /// The name of a profile, if it still exists.
    pub fn name(&self, profile: ProfileId) -> Option<Arc<str>> {
        let table = self.table.load();
        table
            .profiles
            .get(&profile)
            .map(|known| Arc::clone(&known.name))
    }

    /// The scope of a realm.
    pub fn of(&self, realm: Realm) -> Result<Arc<Scope>, Error> {
        let table = self.table.load();
        if let Principal::Token(id) = realm.principal {
            let token = table.tokens.get(&id).ok_or_else(revoked)?;
            if token.profile.is_some() && token.profile != realm.profile {
                return Err(no_profile());
            }
            if token.servers.is_some() {
                let scope = token.scopes.get(&realm.profile).map(Arc::clone);
                return scope.ok_or_else(no_profile);
            }
        }
        let scope = match realm.profile {
            None => Some(&table.everything),
            Some(profile) => table.profiles.get(&profile).map(|known| &known.scope),
        };
        scope.map(Arc::clone).ok_or_else(no_profile)
    }
}

fn new_names(config: &Config) -> NewNames {
    let servers = config.servers.iter().filter_map(|(server, settings)| {
        let all = settings.overrides.iter();
        let names = all.filter_map(|(own, of)| Some((own.to_owned(), of.name.clone()?)));
        let names: FxHashMap<_, _> = names.collect();
        (!names.is_empty()).then(|| (server.clone(), names))
    });
    servers.collect()
}

fn namespace(config: &Config, profile: &Profile) -> Option<Namespace> {
    let namespace = profile.memory_namespace.as_deref()?;
    let fixed = Argument::Fixed(Raw::string(namespace));
    Some(Namespace {
        server: memory::among(config)?,
        changes: Arc::new(Override {
            arguments: [("namespace".to_owned(), fixed)].into(),
            ..Override::default()
        }),
    })
}

fn no_profile() -> Error {
    Error::advised(
        "the profile of this connection no longer exists",
        "ask the user to add it to `profiles` in the configuration, or to connect to another address",
    )
}

fn revoked() -> Error {
    Error::advised(
        "the token of this connection was revoked",
        "ask the user for a new one",
    )
}

impl Table {
    /// The scopes under another configuration. Those of unchanged profiles keep their catalogs.
    fn under(&self, config: &Config) -> Self {
        let new_names = Arc::new(new_names(config));
        let profiles = config.profiles.iter().map(|(name, profile)| {
            let id = ProfileId::of(name);
            let known = self.profiles.get(&id).map(|known| &known.scope);
            let namespace = namespace(config, profile);
            let known = known.filter(|known| {
                known.profile.as_ref() == Some(profile)
                    && known.new_names == new_names
                    && known.namespace == namespace
            });
            let new = || {
                Arc::new(Scope {
                    profile: Some(profile.clone()),
                    new_names: Arc::clone(&new_names),
                    namespace: namespace.clone(),
                    ..Scope::default()
                })
            };
            let scope = known.map_or_else(new, Arc::clone);
            let name = name.as_str().into();
            (id, Named { name, scope })
        });
        let profiles: FxHashMap<_, Named> = profiles.collect();
        let named = profiles.iter();
        let mut table = Self {
            everything: Arc::clone(&self.everything),
            by_name: named
                .map(|(id, named)| (Arc::clone(&named.name), *id))
                .collect(),
            profiles,
            tokens: FxHashMap::default(),
        };
        let held = |token: &Held| Held {
            scopes: table.scopes(token.profile, token.servers.as_ref(), &token.scopes),
            ..token.clone()
        };
        let tokens = self.tokens.iter().map(|(id, token)| (*id, held(token)));
        table.tokens = tokens.collect();
        table
    }

    /// The scopes with other tokens.
    fn with<'a>(&self, tokens: impl Iterator<Item = &'a Token>) -> Self {
        let tokens = tokens.map(|token| {
            let mut servers = token.servers.clone();
            servers.sort_unstable();
            let servers = (!servers.is_empty()).then(|| Arc::from(servers));
            let profile = token.profile.as_deref().map(ProfileId::of);
            let known = self.tokens.get(&token.id()).map(|known| &known.scopes);
            let none = FxHashMap::default();
            let scopes = self.scopes(profile, servers.as_ref(), known.unwrap_or(&none));
            (
                token.id(),
                Held {
                    profile,
                    servers,
                    scopes,
                },
            )
        });
        Self {
            everything: Arc::clone(&self.everything),
            profiles: self.profiles.clone(),
            by_name: self.by_name.clone(),
            tokens: tokens.collect(),
        }
    }

    /// The scopes of a token that is held to these servers, and may be held to a profile: without a profile, under
    /// its own, and under each that includes one of the servers. Known scopes are kept with their catalogs, unless
    /// they have changed.
    fn scopes(
        &self,
        held_to: Option<ProfileId>,
        servers: Option<&Arc<[String]>>,
        known: &FxHashMap<Option<ProfileId>, Arc<Scope>>,
    ) -> FxHashMap<Option<ProfileId>, Arc<Scope>> {
        let Some(servers) = servers else {
            return FxHashMap::default();
        };
        let shares_server = |scope: &Scope| servers.iter().any(|name| scope.permits_server(name));
        let named = self.profiles.iter();
        let named =
            named.filter(|(id, named)| held_to == Some(**id) || shares_server(&named.scope));
        let named = named.map(|(id, named)| (Some(*id), &named.scope));
        let all = named.chain([(None, &self.everything)]);
        let scope = |(id, profile): (Option<ProfileId>, &Arc<Scope>)| {
            let known = known.get(&id).filter(|known| {
                known.profile == profile.profile
                    && known.new_names == profile.new_names
                    && known.namespace == profile.namespace
                    && known.servers.as_ref() == Some(servers)
            });
            let new = || {
                Arc::new(Scope {
                    profile: profile.profile.clone(),
                    servers: Some(Arc::clone(servers)),
                    new_names: Arc::clone(&profile.new_names),
                    namespace: profile.namespace.clone(),
                    ..Scope::default()
                })
            };
            (id, known.map_or_else(new, Arc::clone))
        };
        all.map(scope).collect()
    }
}
