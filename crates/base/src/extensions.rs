//! Methods and notifications that the gateway does not know, between a server and the clients at its own
//! address.
//!
//! Extensions add them. They are forwarded verbatim if the server has declared an extension, or an
//! experimental capability. A name that a peer may take for one of the protocol is never forwarded, because
//! those have rules and translations of their own.

use std::collections::VecDeque;

use parking_lot::Mutex;
use switchboard_client::Raw;
use switchboard_wire::method;

use crate::{
    apps,
    caller::{Caller, Guest},
    tasks,
};

/// The longest name of a method that is forwarded, in bytes.
const METHOD_BYTES: usize = 128;
/// The most notifications of one principal queued for one server.
const NOTIFICATIONS_MAX: usize = 64;

/// First parts of method names that are subject to rules and approvals: the gateway forwards no unknown
/// method that starts with one of them.
const GUARDED: [&str; 6] = [
    "tools",
    "prompts",
    "tasks",
    "sampling",
    "elicitation",
    "roots",
];

/// Tests if a method or notification may be forwarded verbatim.
pub fn is_foreign(method: &str) -> bool {
    let first = method.split(|c: char| !c.is_ascii_alphanumeric()).next();
    let is_guarded = |name: &&str| first.is_some_and(|first| first.eq_ignore_ascii_case(name));
    method.len() <= METHOD_BYTES
        // A server may read a name as a path, with `a//b`, `a/./b`, `a%2Fb` and `a/b?c` as `a/b`; rules do
        // not.
        && method.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_-.:$@".contains(&byte))
        && !method.split('/').any(|part| matches!(part, "" | "." | ".."))
        && !GUARDED.iter().any(is_guarded)
        && !method::is_known(method)
}

/// Tests if these capabilities, of a server or a client, declare an extension with methods that the gateway
/// does not know. It handles the tasks extension itself, and MCP Apps add no methods.
pub fn declares(capabilities: &Raw) -> bool {
    let has = |what: &str, served: &[&str]| {
        let said = capabilities.member(what).and_then(|said| said.members());
        let said = said.unwrap_or_default();
        said.iter().any(|(name, _)| !served.contains(&&**name))
    };
    has("extensions", &[tasks::EXTENSION, apps::EXTENSION]) || has("experimental", &[])
}

/// Adds the known extensions of a server of both eras to its capabilities in the older era: servers declare
/// them in the newer one alone.
pub fn with_extensions(said: Raw, known: Option<&Raw>) -> Raw {
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

/// Notifications of clients to one server, in order.
#[derive(Debug, Default)]
pub struct Outbound(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Told>,
    /// A task is forwarding them.
    is_moving: bool,
}

/// A notification of a client.
#[derive(Debug)]
pub struct Told {
    /// The client that sent it.
    pub caller: Caller,
    /// That client's description of itself.
    pub guest: Guest,
    /// The name of the notification.
    pub method: String,
    /// Its parameters.
    pub params: Option<Raw>,
}

impl Outbound {
    /// Queues a notification if there is room. Returns `true` if the caller has to start forwarding.
    pub fn put(&self, told: Told) -> bool {
        let mut queue = self.0.lock();
        let principal = told.caller.realm.principal;
        let others = queue.waiting.iter();
        let like =
            others.filter(|other| other.caller.realm.principal.shares_limits_with(principal));
        if like.count() >= NOTIFICATIONS_MAX {
            tracing::debug!(
                method = told.method,
                "Dropped a notification from a client, because too many are queued."
            );
            return false;
        }
        queue.waiting.push_back(told);
        !std::mem::replace(&mut queue.is_moving, true)
    }

    /// Takes the next notification from the queue.
    pub fn next(&self) -> Option<Told> {
        let mut queue = self.0.lock();
        let next = queue.waiting.pop_front();
        queue.is_moving = next.is_some();
        next
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
