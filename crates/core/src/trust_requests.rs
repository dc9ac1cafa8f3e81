//! Asks a person about tools that are held: one request for each server, about exactly the
//! held definitions. The request stays open for as long as they are held.

mod stale;

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use switchboard_approvals::{
    Outcome,
    rules::{Case, Kind, digest},
};
use switchboard_base::{
    audit::{self, Event},
    uri,
};
use switchboard_client::Raw;
use switchboard_outbound::{
    pins::{Decision, Seen},
    start_approval,
    start_throttle::AFTER_FIRST_ANSWERS,
    upstream::Upstream,
};
use switchboard_rest::{events::TrustEvent, trust::Start};
use switchboard_store::Change;
use switchboard_trust::{Fingerprint, Held, ItemKind, Others, Severity, Why};
use switchboard_wire::with_hint;
use tokio::{sync::watch, task::JoinHandle, time::sleep};

use crate::{approvals::question::About, core::Core, finder};

/// Changes within this time are combined into one request.
const TOGETHER: Duration = Duration::from_millis(200);
/// Pause before a failed request is tried again.
const AGAIN: Duration = Duration::from_secs(5);
/// The most tools in one request, and the most bytes of the diff of each.
const TOOLS_MAX: usize = 200;
const DIFF_BYTES: usize = 4 * 1024;
/// The most findings that are listed as warnings; the others are counted.
const WARNINGS_MAX: usize = 20;
/// The most bytes of a command line in the summary.
const PROGRAM_BYTES: usize = 300;
/// The most names in the summary.
const NAMED: usize = 5;

/// A request about one server.
struct Question {
    tools: Vec<Definition>,
    /// The start to approve, if the request is about that.
    start: Option<Start>,
    request: Raw,
    summary: String,
    /// Suspicious findings in the definitions.
    warnings: Vec<String>,
}

/// A definition that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Definition {
    tool: String,
    fingerprint: Fingerprint,
    changed: bool,
}

/// A request that is open; dropping it withdraws the request.
struct Asking {
    tools: Vec<Definition>,
    start: Option<Start>,
    task: JoinHandle<()>,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Asks about held definitions, for as long as there is a gateway.
pub fn start(core: &Arc<Core>) {
    let held = core.live_catalog.held_changes();
    tokio::spawn(run(Arc::downgrade(core), held));
    stale::start(core);
}

async fn run(core: Weak<Core>, mut held: watch::Receiver<u64>) {
    let mut asking: HashMap<Arc<str>, Asking> = HashMap::new();
    sleep(AFTER_FIRST_ANSWERS).await;
    loop {
        held.borrow_and_update();
        let Some(core) = core.upgrade() else {
            return;
        };
        let looking = Arc::clone(&core);
        let looking = tokio::task::spawn_blocking(move || questions(&looking));
        let Ok(questions) = looking.await else { return };
        asking.retain(|server, asked| {
            let now = questions.get(server).map(|(_, question)| question);
            now.is_some_and(|now| now.tools == asked.tools && now.start == asked.start)
        });
        for (server, (upstream, question)) in questions {
            if asking.contains_key(&server) {
                continue;
            }
            let (tools, start) = (question.tools.clone(), question.start.clone());
            let asked = Arc::downgrade(&core);
            let task = ask(asked, Arc::downgrade(&upstream), Arc::new(question));
            let task = tokio::spawn(task);
            asking.insert(server, Asking { tools, start, task });
        }
        drop(core);
        if held.changed().await.is_err() {
            return;
        }
        sleep(TOGETHER).await;
    }
}

/// The requests about all held definitions, by server. Reads pins.
fn questions(core: &Core) -> HashMap<Arc<str>, (Arc<Upstream>, Question)> {
    let live_catalog = &core.live_catalog;
    let upstreams = core.upstreams();
    let servers = upstreams.values().filter(|upstream| {
        let settings = upstream.settings();
        settings.enabled
            && (start_approval::may_wait(&settings) || live_catalog.holds_something(&upstream.name))
    });
    let asked = servers.filter_map(|upstream| {
        let question = question(core, upstream)?;
        Some((Arc::clone(&upstream.name), (Arc::clone(upstream), question)))
    });
    asked.collect()
}

/// The request about one server, if there is something to decide. Reads its pins.
fn question(core: &Core, upstream: &Upstream) -> Option<Question> {
    let live_catalog = &core.live_catalog;
    let settings = upstream.settings();
    if let Some(waiting) = start_approval::waiting(&upstream.name, &settings, core.deps()) {
        return Some(question_to_start(waiting));
    }
    let pins = live_catalog.pins(&upstream.name, &settings);
    let held = pins.held().filter(|held| held.why != Why::Rejected);
    let held: Vec<_> = held.take(TOOLS_MAX).collect();
    if held.is_empty() {
        return None;
    }
    let tools = held.iter().map(|held| Definition {
        tool: held.tool.to_string(),
        fingerprint: held.fingerprint,
        changed: held.why == Why::Changed,
    });
    let shown: Vec<Value> = held.iter().map(shown).collect();
    let summary = summary(&held);
    let others = finder::others(&live_catalog.catalog(), &upstream.name);
    Some(Question {
        tools: tools.collect(),
        start: None,
        // Plain data always serializes.
        request: Raw::from_value(&json!({ "tools": shown }))
            .unwrap_or_else(|_| Raw::empty_object()),
        summary,
        warnings: warnings(&held, &others),
    })
}

/// The summary of the request in one line. A definition that was approved and has changed is not
/// called new.
fn summary(held: &[Held]) -> String {
    let names: Vec<_> = held.iter().take(NAMED).map(|held| &*held.tool).collect();
    let more = if held.len() > NAMED { ", …" } else { "" };
    let names = format!("{}{more}", names.join(", "));
    let counted = counted(held);
    let changed = held.iter().filter(|held| held.why == Why::Changed).count();
    match (changed, held.len()) {
        (0, _) => format!("offers {counted} not approved yet: {names}"),
        (1, 1) => format!("has changed {counted} after its approval: {names}"),
        (changed, all) if changed == all => {
            format!("has changed {counted} after their approval: {names}")
        }
        (changed, _) => {
            format!("offers {counted} to approve, {changed} of them changed: {names}")
        }
    }
}

/// A definition in the request: its fingerprint, and the beginning of its diff.
fn shown(held: &Held) -> Value {
    let mut shown = json!({
        "name": &*held.tool,
        "kind": held.kind,
        "fingerprint": held.fingerprint,
        "why": held.why,
        "diff": null,
    });
    if let Some(mut diff) = held.diff().map(|diff| diff.to_string()) {
        if diff.len() > DIFF_BYTES {
            diff.truncate(diff.floor_char_boundary(DIFF_BYTES));
            diff.push('…');
            shown["truncated"] = true.into();
        }
        shown["diff"] = diff.into();
    }
    shown
}

/// The findings of all definitions, the worst of each first.
fn warnings(held: &[Held], others: &Others) -> Vec<String> {
    let findings = held.iter().flat_map(|held| {
        let found = held.findings(others).into_iter();
        let found = found.filter(|finding| finding.severity >= Severity::Warn);
        found.map(|finding| format!("{}: {}: {}", held.tool, finding.field, finding.says))
    });
    let mut findings: Vec<String> = findings.collect();
    let more = findings.len().saturating_sub(WARNINGS_MAX);
    findings.truncate(WARNINGS_MAX);
    if more > 0 {
        findings.push(format!("further findings: {more}"));
    }
    findings
}

/// Tests if a request of an earlier run is obsolete: its server is gone, or the current request
/// would be about other definitions. Reads the server's pins.
pub(super) fn is_stale(core: &Core, server: &str, request: &Raw) -> bool {
    let Some(upstream) = core.upstream(server) else {
        return true;
    };
    let now = question(core, &upstream);
    now.is_none_or(|now| digest(&now.request) != digest(request))
}

/// The number of definitions, with their kind if they share one.
fn counted(held: &[Held]) -> String {
    let kind = held.first().map(|first| first.kind);
    let same = held.iter().all(|held| Some(held.kind) == kind);
    match (kind, held.len()) {
        (Some(ItemKind::Instructions), _) if same => "instructions".to_owned(),
        (Some(ItemKind::Server), _) if same => "its own description".to_owned(),
        (Some(kind), 1) => format!("a {}", kind.as_str()),
        (Some(kind), count) if same => format!("{count} {}s", kind.as_str()),
        (_, count) => format!("{count} definitions"),
    }
}

/// The request to approve the start of a server.
fn question_to_start(waiting: Start) -> Question {
    let program = &waiting.program;
    let end = program.floor_char_boundary(PROGRAM_BYTES);
    let more = if end < program.len() { "…" } else { "" };
    let request = json!({
        "start": waiting,
        "tools": [],
    });
    Question {
        tools: Vec::new(),
        summary: format!("wants to start this program: {}{more}", &program[..end]),
        // Plain data always serializes.
        request: Raw::from_value(&request).unwrap_or_else(|_| Raw::empty_object()),
        start: Some(waiting),
        warnings: Vec::new(),
    }
}

/// Asks until the decision has been carried out. Holds no reference to the gateway while it sleeps.
async fn ask(core: Weak<Core>, upstream: Weak<Upstream>, question: Arc<Question>) {
    let mut first = true;
    loop {
        let (Some(core), Some(upstream)) = (core.upgrade(), upstream.upgrade()) else {
            return;
        };
        if ask_once(core, upstream, &question, first).await {
            return;
        }
        first = false;
        sleep(AGAIN).await;
    }
}

/// Asks, and carries out the decision. Returns `false` if no person could be asked, or the decision
/// could not be carried out.
async fn ask_once(
    core: Arc<Core>,
    upstream: Arc<Upstream>,
    question: &Arc<Question>,
    first: bool,
) -> bool {
    let approvals = Arc::clone(&core.approvals);
    let settings = core.config.load().approvals.clone();
    // An open request must not keep the gateway alive.
    let core = {
        let weak = Arc::downgrade(&core);
        drop(core);
        weak
    };
    let about = About {
        server: Arc::clone(&upstream.name),
        identity: None,
        tool: None,
        caller: None,
        principal: None,
        client_info: None,
    };
    let mut ask = about.trust(&settings, &question.summary, &question.request);
    ask.warnings.clone_from(&question.warnings);
    let approved = match approvals.ask(ask).await {
        Outcome::Answer(_) => true,
        Outcome::Rejected(_) => false,
        other => {
            if first {
                tracing::warn!(server = %upstream.name, outcome = ?other, "Cannot ask for approval of held definitions; the gateway tries again.");
            }
            return false;
        }
    };
    // A task of its own: it changes what is held, and that ends this task.
    let question = Arc::clone(question);
    let carrying_out = tokio::spawn(async move {
        let Some(core) = core.upgrade() else {
            return true;
        };
        match &question.start {
            Some(waiting) => settle(&core, &upstream.name, waiting, approved).await,
            None => carry_out(&core, &upstream, &question, approved).await,
        }
    });
    carrying_out.await.unwrap_or(false)
}

/// Starts a held server, or disables it. Returns `false` if that could not be stored. The decision
/// itself is in the audit log, with its actor.
async fn settle(core: &Core, name: &str, waiting: &Start, approved: bool) -> bool {
    let fingerprint = &waiting.fingerprint;
    let changed = if approved {
        core.release(name, fingerprint, None).await
    } else {
        core.refuse(name, fingerprint, None).await
    };
    if let Err(error) = &changed {
        tracing::error!(server = %name, error = %with_hint(error, error.hint()), "Cannot apply a decision about a server.");
    }
    if let Ok(false) = changed {
        // The entry, or the file that it leads to, has changed since.
        core.live_catalog.ask_again();
    }
    changed.is_ok()
}

/// Returns `false` if the decision could not be stored.
async fn carry_out(core: &Core, upstream: &Upstream, question: &Question, approved: bool) -> bool {
    let tools = question.tools.iter();
    let seen = tools.map(|definition| Seen {
        tool: definition.tool.clone(),
        fingerprint: Some(definition.fingerprint),
    });
    let decision = if approved {
        Decision::ApproveThese(seen.collect())
    } else {
        Decision::RejectThese(seen.collect())
    };
    let name = &upstream.name;
    let decided = match upstream.decide(decision).await {
        Ok(decided) => decided,
        Err(error) => {
            tracing::error!(server = %name, error = %with_hint(&error, error.hint()), "Cannot apply a decision about tools.");
            return false;
        }
    };
    let changed = question
        .tools
        .iter()
        .filter(|definition| definition.changed && decided.contains(&definition.tool));
    for definition in changed.filter(|_| approved) {
        forget(core, name, &definition.tool).await;
    }
    tell_changed(core, name);
    true
}

/// Publishes an event: the held definitions of a server have changed.
pub fn tell_changed(core: &Core, server: &str) {
    core.events.tell("trust.changed", || TrustEvent {
        decision: None,
        server: server.to_owned(),
    });
}

/// The template that a server offers under this key.
fn template(core: &Core, server: &str, key: &str) -> Option<String> {
    let offers = core.live_catalog.offers(server)?;
    let mut templates = offers
        .templates
        .iter()
        .filter_map(|raw| raw.member("uriTemplate")?.to_text());
    templates.find(|template| ItemKind::Template.key(template) == key)
}

/// Forgets remembered decisions about an item whose definition has changed. `key` is its key in the
/// pins; the key of a template covers every URI that the template makes.
pub async fn forget(core: &Core, server: &str, key: &str) {
    let now = core.approvals.now();
    let item = ItemKind::of_key(key);
    let kind = match item {
        ItemKind::Tool => Kind::ToolCall,
        ItemKind::Prompt => Kind::Prompt,
        ItemKind::Resource | ItemKind::Template => Kind::Resource,
        ItemKind::Instructions | ItemKind::Server => return,
    };
    let template = || template(core, server, key);
    let template = (item == ItemKind::Template).then(template).flatten();
    let policy = core.approvals.policy().rules().clone();
    let about_it = policy.remembered().iter().filter(|one| {
        let Some(name) = one.rule.name() else {
            return false;
        };
        let is_it = match &template {
            Some(template) => uri::matches(template, &name),
            None => item.key(&name) == key,
        };
        let tool_call = Case::tool_call(server, &name);
        is_it && one.is_about(&Case { kind, ..tool_call }, now)
    });
    let ids: Vec<String> = about_it.map(|one| one.id.clone()).collect();
    for id in ids {
        let event = Event {
            what: "forgot",
            subject: id.as_str().into(),
            actor: None,
            details: json!({ "server": server, "tool": key, "why": "its definition has changed" }),
        };
        let entry = audit::entry(SystemTime::now(), event);
        let changes = vec![Change::Forget(id.as_str().into()), Change::Audit(entry)];
        if let Err(error) = core.store.write(changes).await {
            tracing::error!(error = %with_hint(&error, error.hint()), rule = id, "Cannot forget a remembered decision about a definition that has changed.");
        }
        core.approvals.set_policy(|policy| policy.without(&id));
    }
}
