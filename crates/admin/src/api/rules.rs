//! The active rules, and the effect that another rule would have.

use std::{borrow::Cow, sync::Arc, time::SystemTime};

use axum::{
    Json,
    extract::{Extension, Path, State},
};
use hyper::StatusCode;
use switchboard_approvals::{
    Record,
    rules::{self, Case, Match, Rule, matches},
};
use switchboard_base::{
    audit::{self, Actor, Event},
    error::cut,
    scrub, time,
};
use switchboard_client::Raw;
use switchboard_core::{
    approvals::{millis, policy, time_of},
    call::approval::overridden,
};
use switchboard_inbound::problem::Problem;
use switchboard_redact::redact;
use switchboard_rest::{
    rules::{MatchedTool, PastCall, PastCalls, Rules, TestRule, TestedRule},
    words::RuleSource,
};
use switchboard_store::{Change, OutcomeKind, Query, Which};
use switchboard_wire::method;

use super::{approvals::patiently, ask::Said};
use crate::admin::Admin;

pub(super) async fn list(State(admin): State<Arc<Admin>>) -> Json<Rules> {
    let policy = admin.core.approvals.policy();
    let at = |millis| time::shown(time_of(millis));
    let rules = policy
        .rules()
        .list()
        .into_iter()
        .map(|listed| switchboard_rest::rules::Rule {
            text: match listed.remembered {
                Some(one) if one.exactly.is_some() => {
                    format!("{}, only for exactly the same arguments", listed.rule)
                }
                _ => listed.rule.to_string(),
            } + if listed.is_inert {
                " (no effect: it was approved for another server)"
            } else {
                ""
            },
            inert: listed.is_inert,
            exactly: listed.remembered.is_some_and(|one| one.exactly.is_some()),
            expires_at: listed.rule.expires().map(at),
            id: listed.id,
            // Plain data always serializes.
            rule: Raw::from_value(&listed.rule).unwrap_or_else(|_| Raw::empty_object()),
            source: RuleSource::of(&listed.source),
            scope: listed
                .remembered
                .and_then(|one| Raw::from_value(&one.scope).ok()),
            created_at: listed.remembered.map(|one| at(one.created_at)),
            by: listed.remembered.map(|one| one.by.clone()),
        });
    Json(Rules {
        rules: rules.collect(),
    })
}

pub(super) async fn forget(
    State(admin): State<Arc<Admin>>,
    Extension(actor): Extension<Actor>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let core = &admin.core;
    let known = {
        let policy = core.approvals.policy();
        let mut remembered = policy.rules().remembered().iter();
        remembered.find(|one| one.id == id).cloned()
    };
    let Some(known) = known else {
        let detail = format!("there is no remembered decision `{}`", cut(&id));
        return Err(Problem::new(StatusCode::NOT_FOUND, detail).hint(
            "`switchboard approvals rules` lists the remembered decisions; to change a configured rule, edit `approvals.rules` in switchboard.json",
        ));
    };
    let event = Event {
        what: "forgot",
        subject: id.as_str().into(),
        actor: Some(actor),
        details: serde_json::json!({
            "rule": scrub::brief(&known.rule.to_string()),
            "rememberedBy": known.by,
        }),
    };
    let entry = audit::entry(SystemTime::now(), event);
    let changes = vec![Change::Forget(id.as_str().into()), Change::Audit(entry)];
    patiently(core, core.store.write(changes)).await?;
    core.approvals.set_policy(|policy| policy.without(&id));
    Ok(StatusCode::NO_CONTENT)
}

fn count(calls: &mut PastCalls, rule: &Rule, case: &Case<'_>, at: SystemTime) {
    calls.looked += 1;
    match matches(rule, case, millis(at)) {
        Match::No => return,
        Match::Yes => calls.matched += 1,
        Match::Unsure => calls.unsure += 1,
    }
    if calls.examples.len() < EXAMPLES {
        calls.examples.push(PastCall {
            at: time::shown(at),
            server: case.server.to_owned(),
            tool: case.tool.to_owned(),
            client: (!case.client.is_empty()).then(|| case.client.to_owned()),
            arguments: case.arguments.map(|raw| redact(raw, EXAMPLE_BYTES)),
        });
    }
}

/// The number of calls to check, the most examples, and the most bytes of arguments of an example.
const CALLS: usize = 1_000;
const EXAMPLES: usize = 20;
const EXAMPLE_BYTES: usize = 500;
/// The kinds of items that servers offer, and their kinds in rules.
const OFFERED: [(switchboard_catalog::Kind, rules::Kind); 3] = [
    (switchboard_catalog::Kind::Tool, rules::Kind::ToolCall),
    (switchboard_catalog::Kind::Prompt, rules::Kind::Prompt),
    (switchboard_catalog::Kind::Resource, rules::Kind::Resource),
];
/// The most tools that are listed.
const TOOLS: usize = 200;

pub(super) async fn test(
    State(admin): State<Arc<Admin>>,
    Said(TestRule { rule }): Said<TestRule>,
) -> Result<Json<TestedRule>, Problem> {
    let rule = Rule::parse(&rule).map_err(|error| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).maybe_hint(error.hint())
    })?;
    let core = &admin.core;
    let query = Query {
        limit: CALLS,
        ..Query::default()
    };
    let mut calls = PastCalls::default();
    let is_about = |kind: &rules::Kind| rule.covers(*kind);
    if [
        rules::Kind::ToolCall,
        rules::Kind::Resource,
        rules::Kind::Prompt,
    ]
    .iter()
    .any(is_about)
    {
        for call in patiently(core, core.store.activity(query)).await? {
            // Refused before it was sent to the server.
            let refused = call.outcome.kind() == OutcomeKind::Error && call.request_bytes == 0;
            if let Some(kind) = kind_of(&call.method)
                && !refused
            {
                let (new_name, owner) = overridden(core, &call.server, &call.name);
                let case = Case {
                    kind,
                    new_name: new_name.map(Cow::Owned),
                    overridden: owner,
                    client: &call.client,
                    ..Case::tool_call(&call.server, &call.name)
                };
                count(&mut calls, &rule, &case, call.at);
            }
        }
    }
    let which = Which {
        limit: CALLS,
        ..Which::default()
    };
    let mut approvals = PastCalls::default();
    for row in patiently(core, core.store.approvals(which)).await? {
        let Ok(record) = serde_json::from_str::<Record>(&row.body) else {
            continue;
        };
        let Some(kind) = policy::kind_of(record.ask.kind) else {
            continue;
        };
        let request = &record.ask.request;
        let arguments = policy::arguments_of(record.ask.kind, request);
        let annotations = policy::hints(Some(request));
        let tool = record.ask.tool.as_deref().unwrap_or_default();
        let (new_name, owner) = overridden(core, &record.ask.server, tool);
        let case = Case {
            kind,
            new_name: new_name.map(Cow::Owned),
            overridden: owner,
            client: record.ask.client.as_deref().unwrap_or_default(),
            arguments: arguments.as_ref(),
            annotations,
            ..Case::tool_call(&record.ask.server, tool)
        };
        count(&mut approvals, &rule, &case, time_of(record.created));
    }
    Ok(Json(TestedRule {
        text: rule.to_string(),
        tools: tools(&admin, &rule),
        calls,
        approvals,
    }))
}

/// The kind of a recorded call.
fn kind_of(called: &str) -> Option<rules::Kind> {
    match called {
        method::TOOLS_CALL => Some(rules::Kind::ToolCall),
        method::RESOURCES_READ => Some(rules::Kind::Resource),
        method::PROMPTS_GET => Some(rules::Kind::Prompt),
        _ => None,
    }
}

/// The tools, prompts and resources that a rule matches.
fn tools(admin: &Admin, rule: &Rule) -> Vec<MatchedTool> {
    let core = &admin.core;
    let now = core.approvals.now();
    let policy = core.approvals.policy();
    let with = policy.rules().with(rule.clone());
    let catalog = core.live_catalog.catalog();
    // A client that the rule applies to.
    let client = rule.client_for_example();
    let mut tools = Vec::new();
    for part in catalog.servers() {
        for (of, kind) in OFFERED {
            for item in part.items(of) {
                let annotations = match kind {
                    rules::Kind::ToolCall => policy::hints(Some(item.raw())),
                    _ => rules::Hints::default(),
                };
                let (new_name, owner) = match kind {
                    rules::Kind::ToolCall => overridden(core, part.name(), item.name()),
                    _ => Default::default(),
                };
                let case = Case {
                    kind,
                    new_name: new_name.map(Cow::Owned),
                    overridden: owner,
                    client: &client,
                    annotations,
                    ..Case::tool_call(part.name(), item.name())
                };
                if tools.len() < TOOLS && matches(rule, &case, now) != Match::No {
                    tools.push(MatchedTool {
                        name: format!("{}:{}", part.name(), item.name()),
                        kind: kind.as_str().into(),
                        now: policy.judge(&case, now).action.as_str().into(),
                        then: with.judge(&case, now).action.as_str().into(),
                    });
                }
            }
        }
    }
    tools
}
