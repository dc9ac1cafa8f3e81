//! The rules that hold, and what another one would do.

use std::{sync::Arc, time::SystemTime};

use axum::{
    Json,
    extract::{Extension, Path, State},
};
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
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
use switchboard_core::approvals::{millis, policy, time_of};
use switchboard_inbound::problem::Problem;
use switchboard_redact::redact;
use switchboard_store::{Change, OutcomeKind, Query, Which};
use switchboard_wire::method;

use super::{approvals::patiently, ask::Said};
use crate::admin::Admin;

#[derive(Serialize)]
pub(super) struct List {
    rules: Vec<Shown>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    id: String,
    rule: Rule,
    text: String,
    source: rules::Source,
    /// Whether it holds for the arguments that were decided about, and no others.
    exactly: bool,
    /// Whether it has no effect, since it was decided about another server.
    inert: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<rules::Scope>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "time::rfc3339_option"
    )]
    expires_at: Option<SystemTime>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "time::rfc3339_option"
    )]
    created_at: Option<SystemTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

pub(super) async fn list(State(admin): State<Arc<Admin>>) -> Json<List> {
    let policy = admin.core.approvals.policy();
    let rules = policy.rules().list().into_iter().map(|listed| Shown {
        text: match listed.remembered {
            Some(one) if one.exactly.is_some() => {
                format!("{}, for exactly the arguments of then", listed.rule)
            }
            _ => listed.rule.to_string(),
        } + if listed.is_inert {
            " (no effect: it was approved for another server)"
        } else {
            ""
        },
        inert: listed.is_inert,
        exactly: listed.remembered.is_some_and(|one| one.exactly.is_some()),
        expires_at: listed.rule.expires().map(time_of),
        id: listed.id,
        rule: listed.rule,
        source: listed.source,
        scope: listed.remembered.map(|one| one.scope.clone()),
        created_at: listed.remembered.map(|one| time_of(one.created_at)),
        by: listed.remembered.map(|one| one.by.clone()),
    });
    Json(List {
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
        let detail = format!("no decision {:?} is remembered", cut(&id));
        return Err(Problem::new(StatusCode::NOT_FOUND, detail).hint(
            "`switchboard approvals rules` lists those that are. Rules of the configuration are changed there",
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Test {
    rule: Value,
}

#[derive(Serialize)]
pub(super) struct Tested {
    text: String,
    tools: Vec<Tool>,
    calls: Calls,
    approvals: Calls,
}

#[derive(Serialize)]
struct Tool {
    name: String,
    kind: &'static str,
    /// What is done about a call of it as things are.
    now: &'static str,
    /// What would be done if the rule held, too.
    then: &'static str,
}

#[derive(Default, Serialize)]
struct Calls {
    looked: usize,
    matched: usize,
    unsure: usize,
    examples: Vec<Example>,
}

#[derive(Serialize)]
struct Example {
    #[serde(serialize_with = "time::rfc3339")]
    at: SystemTime,
    server: String,
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Raw>,
}

impl Calls {
    fn take(&mut self, rule: &Rule, case: &Case<'_>, at: SystemTime) {
        self.looked += 1;
        match matches(rule, case, millis(at)) {
            Match::No => return,
            Match::Yes => self.matched += 1,
            Match::Unsure => self.unsure += 1,
        }
        if self.examples.len() < EXAMPLES {
            self.examples.push(Example {
                at,
                server: case.server.to_owned(),
                tool: case.tool.to_owned(),
                client: (!case.client.is_empty()).then(|| case.client.to_owned()),
                arguments: case.arguments.map(|raw| redact(raw, EXAMPLE_BYTES)),
            });
        }
    }
}

/// How far back is looked, and how many are shown.
const CALLS: usize = 1_000;
const EXAMPLES: usize = 20;
const EXAMPLE_BYTES: usize = 500;
/// What servers offer, and what rules call it.
const OFFERED: [(switchboard_catalog::Kind, rules::Kind); 3] = [
    (switchboard_catalog::Kind::Tool, rules::Kind::ToolCall),
    (switchboard_catalog::Kind::Prompt, rules::Kind::Prompt),
    (switchboard_catalog::Kind::Resource, rules::Kind::Resource),
];
/// The most tools that are listed.
const TOOLS: usize = 200;

pub(super) async fn test(
    State(admin): State<Arc<Admin>>,
    Said(Test { rule }): Said<Test>,
) -> Result<Json<Tested>, Problem> {
    let rule = Rule::parse(&rule).map_err(|error| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).maybe_hint(error.hint())
    })?;
    let core = &admin.core;
    let query = Query {
        limit: CALLS,
        ..Query::default()
    };
    let mut calls = Calls::default();
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
            // Nothing was called.
            let refused = call.outcome.kind() == OutcomeKind::Error && call.request_bytes == 0;
            if let Some(kind) = kind_of(&call.method)
                && !refused
            {
                let case = Case {
                    kind,
                    client: &call.client,
                    ..Case::tool_call(&call.server, &call.name)
                };
                calls.take(&rule, &case, call.at);
            }
        }
    }
    let which = Which {
        limit: CALLS,
        ..Which::default()
    };
    let mut approvals = Calls::default();
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
        let case = Case {
            kind,
            client: record.ask.client.as_deref().unwrap_or_default(),
            arguments: arguments.as_ref(),
            annotations,
            ..Case::tool_call(
                &record.ask.server,
                record.ask.tool.as_deref().unwrap_or_default(),
            )
        };
        approvals.take(&rule, &case, time_of(record.created));
    }
    Ok(Json(Tested {
        text: rule.to_string(),
        tools: tools(&admin, &rule),
        calls,
        approvals,
    }))
}

/// The kind of a call that is on record.
fn kind_of(called: &str) -> Option<rules::Kind> {
    match called {
        method::TOOLS_CALL => Some(rules::Kind::ToolCall),
        method::RESOURCES_READ => Some(rules::Kind::Resource),
        method::PROMPTS_GET => Some(rules::Kind::Prompt),
        _ => None,
    }
}

/// The tools, prompts and resources that a rule is about.
fn tools(admin: &Admin, rule: &Rule) -> Vec<Tool> {
    let core = &admin.core;
    let now = core.approvals.now();
    let policy = core.approvals.policy();
    let with = policy.rules().with(rule.clone());
    let catalog = core.live_catalog.catalog();
    // For a client that the rule is about.
    let client = rule.client_for_example();
    let mut tools = Vec::new();
    for part in catalog.servers() {
        for (of, kind) in OFFERED {
            for item in part.items(of) {
                let annotations = match kind {
                    rules::Kind::ToolCall => policy::hints(Some(item.raw())),
                    _ => rules::Hints::default(),
                };
                let case = Case {
                    kind,
                    client: &client,
                    annotations,
                    ..Case::tool_call(part.name(), item.name())
                };
                if tools.len() < TOOLS && matches(rule, &case, now) != Match::No {
                    tools.push(Tool {
                        name: format!("{}:{}", part.name(), item.name()),
                        kind: kind.as_str(),
                        now: policy.judge(&case, now).action.as_str(),
                        then: with.judge(&case, now).action.as_str(),
                    });
                }
            }
        }
    }
    tools
}
