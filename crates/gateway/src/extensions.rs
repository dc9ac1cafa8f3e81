//! Methods and notifications that the gateway does not know, between a server and the clients at its own address.
//!
//! Extensions add them. They are handed on as they are if the server has declared an extension, or something
//! experimental. A name that a reader may take for one of the protocol is never handed on: those have rules and
//! translations of their own.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use switchboard_client::Raw;
use switchboard_wire::{Notification, method};
use tokio::time::timeout;

use crate::{
    apps,
    call::extension::may_pass,
    caller::{Caller, Guest},
    context::Context,
    gateway::Gateway,
    handshake::TASKS,
    live::Live,
    translate,
    upstream::Upstream,
    view::View,
};

/// The longest name of a method that is handed on.
const METHOD_BYTES: usize = 128;
/// The most bytes of the parameters of a notification to a server.
const NOTIFICATION_BYTES: usize = 64 * 1024;
/// The most notifications of one principal that wait for one server.
const NOTIFICATIONS_MAX: usize = 64;

/// What the first part of a method's name says it is about, where rules and people are asked: the gateway hands on nothing
/// of it that it does not know.
const GUARDED: [&str; 6] = [
    "tools",
    "prompts",
    "tasks",
    "sampling",
    "elicitation",
    "roots",
];

/// Tests if a method or notification may be handed on as it is.
pub(crate) fn is_foreign(method: &str) -> bool {
    let first = method.split(|c: char| !c.is_ascii_alphanumeric()).next();
    let is_guarded = |name: &&str| first.is_some_and(|first| first.eq_ignore_ascii_case(name));
    method.len() <= METHOD_BYTES
        // A server may read a name as a path: `a//b`, `a/./b`, `a%2Fb` and `a/b?c` as `a/b`. Rules do not.
        && method.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_-.:$@".contains(&byte))
        && !method.split('/').any(|part| matches!(part, "" | "." | ".."))
        && !GUARDED.iter().any(is_guarded)
        && !method::is_known(method)
}

/// Tests if these capabilities, of a server or of a client, declare an extension with methods that the gateway does not
/// know. Those for tasks are its own, and apps add none.
pub(crate) fn declares(capabilities: &Raw) -> bool {
    let has = |what: &str, served: &[&str]| {
        let said = capabilities.member(what).and_then(|said| said.members());
        let said = said.unwrap_or_default();
        said.iter().any(|(name, _)| !served.contains(&&**name))
    };
    has("extensions", &[TASKS, apps::EXTENSION]) || has("experimental", &[])
}

/// What a server of both eras says it can do in the older one, with the extensions that it is known for: servers declare
/// them in the newer one alone.
pub(crate) fn with_extensions(said: Raw, known: Option<&Raw>) -> Raw {
    ["extensions", "experimental"]
        .into_iter()
        .fold(said, |said, what| {
            match known.and_then(|known| known.member(what)) {
                Some(known) if said.member(what).is_none() => {
                    said.with_member(what, &known).unwrap_or(said)
                }
                _ => said,
            }
        })
}

/// Tests if this server has declared an extension, in what is shown of it.
pub(crate) fn is_declared(context: &Context, server: &str) -> bool {
    let catalogue = context.shelf.catalogue();
    let offers = catalogue.server(server).map(|part| part.offers());
    let said = offers.and_then(|offers| offers.capabilities.as_ref());
    said.is_some_and(declares)
}

/// Notifications of clients on their way to one server, in their order.
#[derive(Debug, Default)]
pub(crate) struct Outbound(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Told>,
    /// A task hands them on.
    is_moving: bool,
}

#[derive(Debug)]
struct Told {
    caller: Caller,
    guest: Guest,
    method: String,
    params: Option<Raw>,
}

/// Hands a notification of a client on to the server that it is connected to. A server that does not run, or has too
/// many of them to take, misses it.
pub(crate) fn hand_on(
    gateway: &Gateway,
    view: &View,
    caller: &Caller,
    guest: Guest,
    told: &Notification,
) {
    let View::Server(server) = view else {
        return;
    };
    let context = gateway.context();
    let fits = |params: &Raw| params.is_object() && params.as_bytes().len() <= NOTIFICATION_BYTES;
    if !is_foreign(&told.method)
        || !told.params.as_ref().is_none_or(fits)
        || !is_declared(context, server)
    {
        return;
    }
    let Some(upstream) = gateway.upstream(server) else {
        return;
    };
    if upstream.lives().next().is_none() {
        return;
    }
    let told = Told {
        caller: caller.clone(),
        guest,
        method: told.method.clone(),
        // On its own: a frame may be a batch.
        params: told.params.as_ref().map(Raw::detached),
    };
    if upstream.outbound.put(told) {
        tokio::spawn(move_all(Arc::clone(context), upstream));
    }
}

/// Hands on what waits for a server, one after another.
async fn move_all(context: Arc<Context>, upstream: Arc<Upstream>) {
    while let Some(told) = upstream.outbound.next() {
        let moving = move_one(&context, &upstream, told);
        // It is a notification: nobody waits to hear what became of it.
        let _ = timeout(upstream.request_timeout(), moving).await;
    }
}

async fn move_one(context: &Context, upstream: &Upstream, told: Told) -> Option<()> {
    let Told {
        caller,
        guest,
        method,
        params,
    } = told;
    let passing = may_pass(context, &caller, upstream, &method, params.as_ref());
    passing.await.ok()?;
    let _place = upstream.limiter.acquire(caller.key).ok()?.await;
    let live = connection(upstream, &guest)?;
    // A question that this leads to must not reach a client of another principal.
    upstream.questions.note(caller.principal);
    let params = match guest {
        Guest::Modern => translate::request(params, &guest, live.era(), false),
        Guest::Legacy { .. } => params,
    };
    live.client().notify(method, params).await.ok()
}

/// The connection that requests of this client go to, or else another one.
fn connection(upstream: &Upstream, guest: &Guest) -> Option<Arc<Live>> {
    let of_era = upstream.lives().find(|live| live.era() == guest.era());
    of_era.or_else(|| upstream.lives().next())
}

impl Outbound {
    /// Takes a notification in, if there is room. Says whether somebody has to begin to hand them on.
    fn put(&self, told: Told) -> bool {
        let mut queue = self.lock();
        let principal = told.caller.principal;
        let others = queue.waiting.iter();
        let like = others.filter(|other| other.caller.principal == principal);
        if like.count() >= NOTIFICATIONS_MAX {
            tracing::debug!(method = told.method, "Dropped a notification of a client.");
            return false;
        }
        queue.waiting.push_back(told);
        !std::mem::replace(&mut queue.is_moving, true)
    }

    fn next(&self) -> Option<Told> {
        let mut queue = self.lock();
        let next = queue.waiting.pop_front();
        queue.is_moving = next.is_some();
        next
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unknown_names_are_foreign() {
        for name in [
            "skills/list",
            "resources/directory/read",
            "notifications/skills/list_changed",
            "com.example/x",
            "$/x:y_z-1@2",
        ] {
            assert!(is_foreign(name), "{name}");
        }
        let long = "x".repeat(METHOD_BYTES + 1);
        for name in [
            "tools/call",
            "Tools/Call",
            "tools/other",
            "TOOLS.other",
            "resources/read",
            "resources//read",
            "resources/read/",
            "notifications/cancelled",
            "initialize",
            "ping",
            "a b",
            "",
            "skills//list",
            "skills/list/",
            "/skills/list",
            "skills/./list",
            "skills/../list",
            "skills/%6cist",
            "skills/list?",
            "skills/list#a",
            "skills\\list",
            &*long,
        ] {
            assert!(!is_foreign(name), "{name}");
        }
    }

    #[test]
    fn tasks_alone_are_no_declaration() {
        let declares = |json: &'static str| declares(&Raw::parse(json).unwrap());
        assert!(!declares("{}"));
        assert!(!declares(r#"{"experimental":{},"extensions":{}}"#));
        assert!(!declares(
            r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#
        ));
        assert!(declares(r#"{"extensions":{"com.example/x":{}}}"#));
        assert!(declares(r#"{"experimental":{"x":{}}}"#));
    }
}
