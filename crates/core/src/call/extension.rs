//! Rules for requests and notifications of extensions, which the gateway forwards without knowing
//! their meaning.

use std::sync::Arc;

use switchboard_approvals::rules::{Action, Case, Kind, Verdict};
use switchboard_base::{
    caller::Caller,
    error::{Error, cut},
    view::View,
};
use switchboard_catalog::Kind as Item;
use switchboard_client::Raw;
use switchboard_config::Overrides;
use switchboard_outbound::upstream::Upstream;
use switchboard_wire::Era;

use super::CallContext;
use super::approval::{case, is_quiet, judged_resource, record_denied, until_rules_are_known};
use crate::{approvals::policy::hints, core::Core};

/// Tests if a tool has another name or fewer arguments for clients. The gateway cannot complete the arguments of a
/// method that it does not know.
fn is_changed(overrides: &Overrides, tool: &str) -> bool {
    let changes = overrides.get(tool);
    changes.is_some_and(|changes| changes.name.is_some() || !changes.arguments.is_empty())
}

/// Checks that a client may send this to a server.
///
/// The request is judged as a call of a tool with the name of the method, also by `tools` in the
/// server's settings, and in addition as the tool, prompt and resource that its parameters name in
/// the protocol's standard members. A method not spelled `words/in/lower/case` is judged in that
/// spelling as well, and the stricter verdict counts, because a server may not distinguish the two.
/// Other members are not judged, since the gateway does not know their meaning. For the same reason
/// no person is asked.
pub(crate) async fn may_pass(
    core: &Core,
    caller: &Caller,
    upstream: &Upstream,
    method: &str,
    params: Option<&Raw>,
) -> Result<(), Error> {
    let server = &upstream.name;
    let live_catalog = &core.live_catalog;
    let scope = core.scopes.of(caller.realm)?;
    core.may_use(&scope, upstream, None)?;
    let plain = plain(method);
    let settings = upstream.settings();
    let permits = settings.shows_tool(method) && scope.permits(Item::Tool, server, method);
    let denies = settings.tools.denies(&plain) || scope.denies(server, &plain);
    if !permits || denies || scope.is_confined_in(server) {
        return Err(Error::method_not_found(method));
    }
    let named = Named::read(params)?;
    if let Some(uri) = &named.uri {
        core.may_use(&scope, upstream, Some((Item::Resource, uri)))?;
    }
    let hides_some = scope.selects_tools() || !settings.overrides.is_empty();
    if let Some(name) = named.name.as_deref().filter(|_| hides_some) {
        // The server's own answer would tell a missing name from a hidden one.
        let catalog = scope.catalog(live_catalog);
        let part = catalog.server(server);
        let is_listed = |kind| part.is_some_and(|part| part.find(kind, name).is_some());
        if !is_listed(Item::Tool) && !is_listed(Item::Prompt) {
            return Err(nothing_named(server, name));
        }
    }
    let mut items = Vec::new();
    for kind in [Item::Tool, Item::Prompt] {
        let Some(name) = &named.name else { break };
        // A server may ignore letter case.
        for known in live_catalog.offered_as(server, kind, name) {
            let is_changed = kind == Item::Tool && is_changed(&settings.overrides, &known);
            let is_seen = live_catalog.lists(server, kind, &known);
            if is_changed || !is_seen || !scope.permits(kind, server, &known) {
                // Held back, hidden by the settings or the profile, or not to be called like this.
                return Err(nothing_named(server, name));
            }
            items.push((kind, known));
        }
    }
    let all = [Kind::ToolCall, Kind::Resource, Kind::Prompt];
    if all.into_iter().all(|kind| is_quiet(core, caller, kind)) {
        return Ok(());
    }
    until_rules_are_known(core, server, method, "called").await?;
    let judge = |case: &Case<'_>| {
        let approvals = &core.approvals;
        approvals.policy().judge(case, approvals.now())
    };
    let judge_method = |method| {
        let of_method = Case {
            arguments: params,
            ..case(core, caller, server, method)
        };
        judge(&of_method)
    };
    let mut verdicts: Vec<(&str, Verdict)> = vec![(method, judge_method(method))];
    if plain != method {
        verdicts.push((&plain, judge_method(&plain)));
    }
    for (kind, name) in &items {
        let catalog = live_catalog.catalog();
        let part = catalog.server(server);
        let definition = part.and_then(|part| Some(part.find(*kind, name)?.raw().clone()));
        let of_name = Case {
            kind: match kind {
                Item::Prompt => Kind::Prompt,
                _ => Kind::ToolCall,
            },
            arguments: named.arguments.as_ref(),
            annotations: hints(definition.as_ref()),
            ..case(core, caller, server, name)
        };
        verdicts.push((name, judge(&of_name)));
    }
    if let Some(uri) = named.uri.as_deref() {
        verdicts.push((uri, judged_resource(core, caller, server, uri)));
    }
    let denied = verdicts.iter().find(|(_, it)| it.action == Action::Deny);
    if let Some((subject, verdict)) = denied {
        let of = (&**server, *subject);
        record_denied(core, method, of, Some(caller), verdict);
        return Err(Error::Denied {
            server: Arc::clone(server),
            tool: (*subject).into(),
            done: "called",
            for_agents: verdict.denial().into(),
            why: verdict.why.as_str().into(),
        });
    }
    let asked = verdicts.iter().find(|(_, it)| it.action == Action::Ask);
    match asked {
        None => Ok(()),
        Some((subject, _)) => Err(Error::Unasked {
            server: Arc::clone(server),
            tool: (*subject).into(),
            done: "called",
            why: "requests of extensions cannot ask for approval".into(),
            allow: Some(format!("allow {server}:{}", cut(subject)).into()),
        }),
    }
}

fn nothing_named(server: &str, name: &str) -> Error {
    let message = format!("server `{server}` offers nothing named `{}`", cut(name));
    Error::invalid_params(message)
}

/// A method in the usual spelling: `skills/get` for `Skills.get`.
fn plain(method: &str) -> String {
    let words = method.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("/").to_ascii_lowercase()
}

impl CallContext<'_> {
    /// Tests if the client sees this server alone and can receive requests. A client of 2026-07-28
    /// is asked through results, which cannot carry the requests of extensions.
    pub(super) fn is_alone(&self) -> bool {
        let outgoing = self.outgoing;
        matches!(outgoing.view, View::Server(_))
            && outgoing.guest.era() == Era::Legacy
            && outgoing.backchannel.is_some()
    }
}

/// The subject of an extension's request, as far as its parameters name it in standard members.
struct Named {
    uri: Option<String>,
    name: Option<String>,
    arguments: Option<Raw>,
}

impl Named {
    /// Reads the members. Parameters that have one of them twice, or in another letter case, are
    /// rejected: the server might read the other one.
    fn read(params: Option<&Raw>) -> Result<Self, Error> {
        let member = |name: &str| match params.map(|params| params.distinct_member(&[name])) {
            None => Ok(None),
            Some(found) => found.map_err(|error| Error::invalid_params(error.to_string())),
        };
        let text = |name: &str| match member(name)? {
            None => Ok(None),
            Some(found) => found
                .to_text()
                .map(Some)
                .ok_or_else(|| Error::invalid_params(format!("`{name}` must be a string"))),
        };
        Ok(Self {
            uri: text("uri")?,
            name: text("name")?,
            arguments: member("arguments")?,
        })
    }
}
