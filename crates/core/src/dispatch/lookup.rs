//! The tools that names of clients stand for.

use std::sync::Arc;

use switchboard_base::{
    apps,
    error::{Error, cut},
};
use switchboard_catalog::{Catalog, Kind, Target};
use switchboard_client::Raw;
use switchboard_outbound::upstream::Upstream;

use super::Dispatch;
use crate::translate::no_tool;

impl Dispatch<'_> {
    /// Tests if a server lists a tool that the caller sees.
    pub(super) fn lists(&self, server: &str, tool: &str) -> bool {
        let catalog = self.catalog();
        let part = catalog.server(server);
        part.is_some_and(|part| part.find(Kind::Tool, tool).is_some())
    }

    /// The same, after a wait for a server that was never listed. The server's own error for an unknown tool would
    /// tell it from a hidden one.
    pub(super) async fn will_list(&self, upstream: &Upstream, tool: &str) -> Result<(), Error> {
        let settings = upstream.settings();
        let shown = settings.overrides.new_name(tool).unwrap_or(tool);
        self.seek(upstream, shown).await?;
        if self.lists(&upstream.name, tool) {
            return Ok(());
        }
        Err(no_tool(shown))
    }

    /// Waits for the lists of a server that was never listed, for a tool that is in none. The error is that the
    /// server cannot be used, or that the tool is held. Nothing depends on a tool that the caller does not see.
    pub(super) async fn seek(&self, upstream: &Upstream, shown: &str) -> Result<(), Error> {
        let own = own_name_of(upstream, shown);
        let item = own.as_deref().map(|own| (Kind::Tool, own));
        let item = item.filter(|_| self.scope.is_everything());
        self.core.is_approved(upstream, item)?;
        if self
            .core
            .live_catalog
            .catalog()
            .server(&upstream.name)
            .is_none()
        {
            self.part(&upstream.name).await?;
        }
        let held = own.and_then(|own| self.held(upstream, &own));
        held.map_or(Ok(()), Err)
    }

    /// The error for a tool that is held, if the caller would see it otherwise.
    pub(super) fn held(&self, upstream: &Upstream, tool: &str) -> Option<Error> {
        let (live_catalog, server) = (&self.core.live_catalog, &upstream.name);
        let is_offered = || {
            let offered = live_catalog.offered_as(server, Kind::Tool, tool);
            offered.iter().any(|offered| offered == tool)
        };
        let is_seen = self.scope.is_everything()
            || self.scope.permits(Kind::Tool, server, tool) && is_offered();
        let approved = self.core.is_approved(upstream, Some((Kind::Tool, tool)));
        approved.err().filter(|_| is_seen)
    }

    /// The server's own name for a tool in its view. A name that is not known is returned as it is.
    pub(super) async fn own_name(&self, server: &str, shown: &str) -> Result<Arc<str>, Error> {
        let upstream = self.upstream(server)?;
        let is_listed = || self.core.live_catalog.catalog().server(server).is_some();
        if !upstream.settings().overrides.is_empty() && !is_listed() {
            Box::pin(self.part(server)).await?;
        }
        let catalog = self.catalog();
        let part = catalog.server(server);
        if let Some(tool) = part.and_then(|part| part.find_shown(Kind::Tool, shown)) {
            return Ok(tool.name().into());
        }
        // It may be held. A tool may also have another name for clients.
        let own = own_name_of(&upstream, shown).ok_or_else(|| no_tool(shown))?;
        Ok(own.into())
    }

    /// The server of a tool, and the tool's name there.
    pub(super) fn find_tool(
        &self,
        exposed: &str,
        params: &Raw,
    ) -> Result<(Arc<str>, Arc<str>), Error> {
        let catalog = self.catalog();
        let of_app = || {
            let shows_apps = apps::are_shown(&self.guest.capabilities(Some(params)));
            let tool = shows_apps.then(|| apps::own_tool(&catalog, exposed));
            tool.flatten().map(Target::from)
        };
        let target = catalog
            .tool(exposed)
            .or_else(of_app)
            .ok_or_else(|| unknown_tool(&catalog, exposed))?;
        Ok((Arc::clone(target.server), target.name.into()))
    }

    /// Resolves a tool that no server lists. Waits for the server that its name begins with if that
    /// has not been listed yet, and reports a list that cannot be fetched.
    pub(super) async fn learn_of(
        &self,
        exposed: &str,
        params: &Raw,
        mut unknown: Error,
    ) -> Result<(Arc<str>, Arc<str>), Error> {
        let named = exposed.split_once("__").and_then(|(server, tool)| {
            let upstream = self.upstream(server).ok()?;
            Some((upstream, tool))
        });
        let Some((upstream, tool)) = named else {
            return Err(unknown);
        };
        self.seek(&upstream, tool).await?;
        match self.find_tool(exposed, params) {
            Ok(found) => return Ok(found),
            Err(still) => unknown = still,
        }
        Err(upstream.lacks(Kind::Tool).unwrap_or(unknown))
    }
}

/// The server's own name for a tool, which may be held. `None` if the configuration has no tool with this name for
/// clients.
pub(super) fn own_name_of(upstream: &Upstream, shown: &str) -> Option<String> {
    let settings = upstream.settings();
    let overrides = &settings.overrides;
    let own = overrides.renamed_to(shown).unwrap_or(shown);
    let has_other_name = || overrides.new_name(own).is_some_and(|name| name != shown);
    (settings.shows_tool(own) && !has_other_name()).then(|| own.to_owned())
}

fn unknown_tool(catalog: &Catalog, exposed: &str) -> Error {
    let message = format!("there is no tool `{}`", cut(exposed));
    let near = catalog.suggest_tool(exposed);
    let is_for_models = |near: &&str| {
        let tool = catalog.find(Kind::Tool, near);
        tool.is_some_and(|tool| !apps::is_for_apps_alone(tool.raw()))
    };
    match near.filter(is_for_models) {
        Some(near) => Error::advised(message, &format!("did you mean `{near}`?")),
        None => Error::invalid_params(message),
    }
}
