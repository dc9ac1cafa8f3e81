//! The approved definitions of servers, and decisions about definitions that are held.

use std::{collections::HashSet, sync::Arc};

use axum::{
    Json,
    extract::{Extension, FromRequestParts, State},
    http::request::Parts,
};
use hyper::StatusCode;
use switchboard_base::audit::{self, Actor};
use switchboard_catalog::Kind;
use switchboard_client::Raw;
use switchboard_config::shell_word;
use switchboard_core::scope::Scope;
use switchboard_inbound::problem::Problem;
use switchboard_outbound::{
    pins::{Decision, Seen, Undecided, item_kind},
    start_approval,
    upstream::Upstream,
};
use switchboard_rest::{
    events::TrustEvent,
    trust::{
        ApprovedTool, Change, Finding, Flagged, HeldTool, SeenTool, ServerTrust, ToolQuery,
        ToolTrust, Trust, TrustDecision, TrustQuery,
    },
    words,
};
use switchboard_trust::{
    DecisionError, Fingerprint, Held, ItemKind, Offer, Others, Pin, Pins, Severity, scan,
};

use super::ask::{Asked, Named, Said, Within, find_in};
use crate::admin::Admin;

/// The most bytes of definitions, held and approved, that a list shows and compares for one server. A
/// server that changes many long definitions must not make its list useless.
const TEXT_BYTES: usize = 512 * 1024;
/// The most names of tools in one entry of the audit log.
const AUDITED_MAX: usize = 1_000;

/// The scope of a sender that may review servers: as a whole, not single tools.
pub(super) struct Reviewer(Arc<Scope>);

impl FromRequestParts<Arc<Admin>> for Reviewer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, admin: &Arc<Admin>) -> Result<Self, Problem> {
        let Within(scope) = Within::from_request_parts(parts, admin).await?;
        if scope.selects_tools() {
            let detail = "this token is held to a profile that selects single tools, and a review is about all tools of a server";
            return Err(Problem::new(StatusCode::FORBIDDEN, detail)
                .hint("use a token that is held to servers, with `--server`"));
        }
        Ok(Self(scope))
    }
}

/// Lists the trust of all servers, or of one.
pub(super) async fn list(
    State(admin): State<Arc<Admin>>,
    Reviewer(scope): Reviewer,
    Asked(TrustQuery { server, brief }): Asked<TrustQuery>,
) -> Result<Json<Trust>, Problem> {
    let servers = if let Some(name) = server.filter(|server| !server.is_empty()) {
        vec![find_in(&admin, &scope, &name)?]
    } else {
        let all = admin.core.upstreams();
        let seen = all.values().filter(|one| scope.permits_server(&one.name));
        seen.cloned().collect()
    };
    // This reads files, and may have to scan many tools.
    let looking = tokio::task::spawn_blocking(move || {
        let look = if brief { glance_at } else { look_at };
        let servers = servers.iter();
        servers
            .map(|upstream| look(&admin, &scope, upstream))
            .collect()
    });
    match looking.await {
        Ok(servers) => Ok(Json(Trust { servers })),
        Err(_) => Err(stopping()),
    }
}

pub(super) async fn show(
    State(admin): State<Arc<Admin>>,
    Reviewer(scope): Reviewer,
    Named(upstream): Named,
    Asked(ToolQuery { tool }): Asked<ToolQuery>,
) -> Result<Json<ToolTrust>, Problem> {
    let name = Arc::clone(&upstream.name);
    let looking = tokio::task::spawn_blocking(move || {
        let others = others(&admin, &scope, &upstream.name);
        let pins = pins(&admin, &upstream);
        let held = pins.held().find(|held| *held.tool == *tool);
        let pin = pins.approved().find(|pin| *pin.tool == *tool);
        let shown = ToolTrust {
            held: held.map(|held| held_tool(&upstream.name, held, &others)),
            approved: pin.map(|pin| approved(&upstream.name, pin, &others)),
            server: upstream.name.to_string(),
        };
        (tool, shown)
    });
    let Ok((tool, shown)) = looking.await else {
        return Err(stopping());
    };
    if shown.held.is_none() && shown.approved.is_none() {
        let detail = format!("there is no definition `{name}:{tool}`");
        return Err(Problem::new(StatusCode::NOT_FOUND, detail)
            .hint("`switchboard trust list` lists the held definitions"));
    }
    Ok(Json(shown))
}

pub(super) async fn approve(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Reviewer(scope): Reviewer,
    Named(upstream): Named,
    Said(mut decided): Said<TrustDecision>,
) -> Result<Json<ServerTrust>, Problem> {
    let tools = decided.tools.take();
    let ways = [
        decided.start.is_some(),
        decided.tool.is_some() || decided.fingerprint.is_some(),
        tools.is_some(),
    ];
    if ways.into_iter().filter(|way| *way).count() > 1 {
        let detail = "`start`, `tools`, and `tool` with `fingerprint` are mutually exclusive";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    if let Some(fingerprint) = &decided.start {
        return start(admin, actor, (&scope, upstream), fingerprint).await;
    }
    let decision = match tools {
        Some(tools) => {
            let seen = tools.into_iter().map(read);
            Decision::ApproveThese(seen.collect::<Result<_, _>>()?)
        }
        None => Decision::Approve(seen(decided)?),
    };
    decide(admin, actor, (&scope, upstream), decision).await
}

pub(super) async fn reject(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Reviewer(scope): Reviewer,
    Named(upstream): Named,
    Said(decided): Said<TrustDecision>,
) -> Result<Json<ServerTrust>, Problem> {
    if decided.tools.is_some() || decided.start.is_some() {
        let detail = "a rejection cannot have `tools` or `start`";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    let Some(seen) = seen(decided)? else {
        let problem = Problem::new(StatusCode::BAD_REQUEST, "`tool` is missing");
        return Err(problem.hint("name the tool to reject"));
    };
    decide(admin, actor, (&scope, upstream), Decision::Reject(seen)).await
}

/// Starts a server that is held.
async fn start(
    admin: Arc<Admin>,
    actor: Actor,
    (scope, upstream): (&Arc<Scope>, Arc<Upstream>),
    fingerprint: &str,
) -> Result<Json<ServerTrust>, Problem> {
    let name = &upstream.name;
    if !admin.core.release(name, fingerprint, Some(actor)).await? {
        let detail = format!("server `{name}` is not held with this fingerprint");
        let hint = format!(
            "review it again with `switchboard trust list {}`",
            shell_word(name)
        );
        return Err(Problem::new(StatusCode::CONFLICT, detail).hint(hint));
    }
    let upstream = find_in(&admin, scope, name)?;
    let scope = Arc::clone(scope);
    let looking = tokio::task::spawn_blocking(move || look_at(&admin, &scope, &upstream));
    looking.await.map(Json).map_err(|_| stopping())
}

fn seen(decided: TrustDecision) -> Result<Option<Seen>, Problem> {
    let fingerprint = decided
        .fingerprint
        .as_deref()
        .map(fingerprint)
        .transpose()?;
    if decided.tool.is_none() && fingerprint.is_some() {
        let problem = Problem::new(StatusCode::BAD_REQUEST, "`tool` is missing");
        return Err(problem.hint("name the tool that has this fingerprint"));
    }
    Ok(decided.tool.map(|tool| Seen { tool, fingerprint }))
}

fn read(seen: SeenTool) -> Result<Seen, Problem> {
    Ok(Seen {
        fingerprint: Some(fingerprint(&seen.fingerprint)?),
        tool: seen.tool,
    })
}

fn fingerprint(text: &str) -> Result<Fingerprint, Problem> {
    text.parse().map_err(|_| {
        Problem::new(StatusCode::BAD_REQUEST, "`fingerprint` is invalid")
            .hint("send the fingerprint that is shown with the tool")
    })
}

async fn decide(
    admin: Arc<Admin>,
    actor: Actor,
    (scope, upstream): (&Arc<Scope>, Arc<Upstream>),
    decision: Decision,
) -> Result<Json<ServerTrust>, Problem> {
    let core = Arc::clone(&admin.core);
    let room = core.audit.room().await?;
    let decided = upstream.decide(decision.clone()).await;
    let decided = decided.map_err(|error| {
        let status = match &error {
            Undecided::Decision(DecisionError::NotHeld { .. }) => StatusCode::NOT_FOUND,
            Undecided::Decision(DecisionError::Changed { .. }) => StatusCode::CONFLICT,
            Undecided::File(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem::new(status, error.to_string()).maybe_hint(error.hint())
    })?;
    let done = decision.as_str();
    if !decided.is_empty() {
        let tools: Vec<_> = decided.iter().take(AUDITED_MAX).collect();
        room.record([audit::Event {
            what: "trust",
            subject: Arc::clone(&upstream.name),
            actor: Some(actor),
            details: serde_json::json!({ "decision": done, "tools": tools, "count": decided.len() }),
        }]);
    }
    if matches!(decision, Decision::Approve(_) | Decision::ApproveThese(_)) {
        // Decisions remembered for the earlier definitions no longer apply.
        for tool in &decided {
            switchboard_core::trust_requests::forget(&core, &upstream.name, tool).await;
        }
    }
    core.events.tell("trust.decided", || TrustEvent {
        decision: Some(done.to_owned()),
        server: upstream.name.to_string(),
    });
    switchboard_core::trust_requests::tell_changed(&core, &upstream.name);
    let scope = Arc::clone(scope);
    let looking = tokio::task::spawn_blocking(move || look_at(&admin, &scope, &upstream));
    looking.await.map(Json).map_err(|_| stopping())
}

/// The trust in a server. Reads its pins, and scans every definition.
fn look_at(admin: &Admin, scope: &Scope, upstream: &Upstream) -> ServerTrust {
    let others = others(admin, scope, &upstream.name);
    let name = &upstream.name;
    let mut room = TEXT_BYTES;
    let held = |held: Held| {
        let texts = [&held.definition, &held.approved].into_iter().flatten();
        let bytes = texts.map(|text| text.as_bytes().len()).sum();
        match room.checked_sub(bytes) {
            Some(rest) => {
                room = rest;
                held_tool(name, held, &others)
            }
            None => HeldTool {
                findings: findings(held.findings(&others)),
                ..without_texts(name, held)
            },
        }
    };
    let trust = server_trust(admin, upstream, held);
    // After the pins: an item that was approved in between is shown, and one that is held is not.
    let catalog = admin.core.live_catalog.catalog();
    let parts = catalog.server(name).into_iter();
    let items = parts.flat_map(|part| Kind::ALL.map(|kind| (kind, part.items(kind))));
    let items = items.flat_map(|(kind, items)| items.map(move |item| (item_kind(kind), item)));
    let flagged = items.filter_map(|(kind, item)| {
        let findings = suspicious(kind, item.raw(), &others);
        let key = kind.key(item.name());
        (!findings.is_empty()).then(|| Flagged {
            name: format!("{name}:{key}"),
            kind: kind.as_str().into(),
            tool: key.into_owned(),
            findings,
        })
    });
    ServerTrust {
        flagged: flagged.collect(),
        ..trust
    }
}

/// The trust in a server, without scanning the definitions.
fn glance_at(admin: &Admin, _: &Scope, upstream: &Upstream) -> ServerTrust {
    server_trust(admin, upstream, |held| without_texts(&upstream.name, held))
}

fn server_trust(
    admin: &Admin,
    upstream: &Upstream,
    held: impl FnMut(Held) -> HeldTool,
) -> ServerTrust {
    let pins = pins(admin, upstream);
    let name = &upstream.name;
    let held: Vec<HeldTool> = pins.held().map(held).collect();
    let names: HashSet<&str> = held.iter().map(|held| &*held.tool).collect();
    let counts = |pin: &Pin| {
        let is_shown = pin.vanished_ms.is_none() && !names.contains(&*pin.tool);
        is_shown && pin.kind != ItemKind::Instructions
    };
    let approved = pins.approved().filter(counts).count();
    ServerTrust {
        name: name.to_string(),
        trust: upstream.settings().trust.as_str().into(),
        start: start_approval::waiting(name, &upstream.settings(), admin.core.deps()),
        approved: approved as u64,
        held,
        flagged: Vec::new(),
        note: pins.note().map(Into::into),
    }
}

fn pins(admin: &Admin, upstream: &Upstream) -> Pins {
    let live_catalog = &admin.core.live_catalog;
    live_catalog.pins(&upstream.name, &upstream.settings())
}

fn held_tool(server: &str, held: Held, others: &Others) -> HeldTool {
    let diff = held.diff();
    let changes = diff.iter().flat_map(|diff| &diff.changes);
    HeldTool {
        name: format!("{server}:{}", held.tool),
        kind: held.kind.as_str().into(),
        why: words::HeldReason::of(&held.why),
        fingerprint: held.fingerprint.to_string(),
        since_ms: held.since_ms,
        diff: diff.as_ref().map(ToString::to_string),
        changes: changes.map(change).collect(),
        findings: findings(held.findings(others)),
        tool: held.tool.to_string(),
        definition: held.definition,
        approved: held.approved,
        omitted: false,
    }
}

/// The item without its texts, and without the work of parsing and comparing them.
fn without_texts(server: &str, held: Held) -> HeldTool {
    let bare = Held {
        definition: None,
        approved: None,
        ..held
    };
    HeldTool {
        omitted: true,
        ..held_tool(server, bare, &Others::default())
    }
}

fn approved(server: &str, pin: Pin, others: &Others) -> ApprovedTool {
    let definition = pin.definition;
    ApprovedTool {
        name: format!("{server}:{}", pin.tool),
        kind: pin.kind.as_str().into(),
        tool: pin.tool.to_string(),
        fingerprint: pin.fingerprint.to_string(),
        at_ms: pin.at_ms,
        findings: definition.as_ref().map_or_else(Vec::new, |definition| {
            let kind = pin.kind;
            findings(scan(Offer { kind, definition }, others))
        }),
        definition,
    }
}

/// The findings that a person should read before an agent sees the definition.
fn suspicious(kind: ItemKind, definition: &Raw, others: &Others) -> Vec<Finding> {
    let mut found = scan(Offer { kind, definition }, others);
    found.retain(|finding| finding.severity >= Severity::Warn);
    findings(found)
}

fn findings(found: Vec<switchboard_trust::Finding>) -> Vec<Finding> {
    let findings = found.into_iter().map(|finding| Finding {
        kind: words::FindingKind::of(&finding.kind),
        severity: words::Severity::of(&finding.severity),
        field: finding.field,
        excerpt: finding.excerpt,
        says: finding.says,
    });
    findings.collect()
}

fn change(change: &switchboard_trust::Change) -> Change {
    Change {
        field: change.field.clone(),
        before: change.before.clone(),
        after: change.after.clone(),
    }
}

/// The items of other servers that the reviewer may know of.
fn others(admin: &Admin, scope: &Scope, name: &str) -> Others {
    switchboard_core::finder::others(&scope.catalog(&admin.core.live_catalog), name)
}

fn stopping() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the gateway is stopping")
        .hint("try again when the gateway is running again")
}
