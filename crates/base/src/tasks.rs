//! Tasks: work that continues at a server after it has responded, under an ID that the server assigned.
//!
//! Clients see an ID made by the gateway: a signed token that contains the realm, the instance of
//! the server and the server's ID. So a task is found by its ID alone, and another realm cannot use it.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use switchboard_client::{ErrorObject, Raw};
use switchboard_wire::{RawError, code, method};

use crate::{
    caller::{Principal, Realm},
    error::Error,
    health::Reason,
    signed_token::TokenSigner,
};

const PURPOSE: &str = "task";
/// The tasks extension of 2026-07-28.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The key of `_meta` under which a message names the task that it belongs to (2025-11-25).
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The ID of a task as its client knows it. The place identifies the instance of the server that has it.
pub fn expose(signer: &TokenSigner, realm: Realm, place: &str, task: &str) -> String {
    let payload = format!("{realm}\0{place}\0{task}");
    signer.sign(PURPOSE, payload.as_bytes())
}

/// The instance of a task, and the server's ID for it.
pub fn locate(signer: &TokenSigner, realm: Realm, exposed: &str) -> Option<(String, String)> {
    let payload = String::from_utf8(signer.verify(PURPOSE, exposed)?).ok()?;
    let (issued_to, rest) = payload.split_once('\0')?;
    let (place, task) = rest.split_once('\0')?;
    (issued_to == realm.to_string()).then(|| (place.to_owned(), task.to_owned()))
}

/// The task that a message names as its own, by the server's ID.
pub fn related_task(params: &Raw) -> Option<String> {
    let task = params.member("_meta")?.member(RELATED)?;
    task.member("taskId")?.to_text()
}

/// The tasks of one server that clients have begun, up to a limit. Clients see only these in lists, because a
/// server may not tell clients apart, and list the tasks of all.
#[derive(Debug, Default)]
pub struct Begun(Mutex<Vec<Recent>>);

/// The tasks of one realm, by the server's IDs.
#[derive(Debug)]
struct Recent {
    realm: Realm,
    known: FxHashSet<Arc<str>>,
    /// The IDs, oldest first.
    order: VecDeque<Arc<str>>,
}

/// The most realms whose tasks are remembered. The one that has begun none for the longest time makes room, and those
/// of the owner last.
const REALMS_MAX: usize = 64;
/// The most tasks remembered per realm.
const BEGUN_MAX: usize = 1_000;
/// The longest ID of a task that is remembered, in bytes.
const NAME_BYTES_MAX: usize = 1_024;

impl Begun {
    /// Remembers the task that a client's call has become, according to its result.
    pub fn add(&self, realm: Realm, result: &Raw) {
        let task = result.member("task").filter(Raw::is_object);
        let id = task.as_ref().unwrap_or(result).member("taskId");
        if let Some(task) = id.and_then(|id| id.to_text()) {
            self.insert(realm, &task);
        }
    }

    fn insert(&self, realm: Realm, task: &str) {
        if task.len() > NAME_BYTES_MAX {
            return;
        }
        let mut all = self.0.lock();
        let at = all.iter().position(|recent| recent.realm == realm);
        // The last one is the latest.
        if let Some(at) = at {
            all[at..].rotate_left(1);
        } else {
            if all.len() >= REALMS_MAX {
                let is_other = |recent: &Recent| recent.realm.principal != Principal::Owner;
                let oldest = all.iter().position(is_other).unwrap_or_default();
                all.remove(oldest);
            }
            all.push(Recent {
                realm,
                known: FxHashSet::default(),
                order: VecDeque::new(),
            });
        }
        let Some(recent) = all.last_mut().filter(|recent| !recent.known.contains(task)) else {
            return;
        };
        if recent.order.len() >= BEGUN_MAX
            && let Some(oldest) = recent.order.pop_front()
        {
            recent.known.remove(&oldest);
        }
        let task: Arc<str> = task.into();
        recent.known.insert(Arc::clone(&task));
        recent.order.push_back(task);
    }

    /// A list of tasks, reduced to the tasks that this realm has begun.
    pub fn only_of(&self, realm: Realm, result: &Raw) -> Result<Raw, RawError> {
        let tasks = result.distinct_member(&["tasks"])?;
        let tasks = tasks.and_then(|tasks| tasks.elements()).unwrap_or_default();
        let all = self.0.lock();
        let recent = all.iter().find(|recent| recent.realm == realm);
        let own = tasks.into_iter().filter(|task| {
            let id = task.distinct_member(&["taskId"]).ok().flatten();
            id.and_then(|id| id.to_text())
                .is_some_and(|id| recent.is_some_and(|recent| recent.known.contains(&*id)))
        });
        result.with_member("tasks", &Raw::array(own))
    }
}

/// Tests if a request names a task.
pub fn is_about_task(method: &str) -> bool {
    matches!(
        method,
        method::TASKS_GET | method::TASKS_RESULT | method::TASKS_UPDATE | method::TASKS_CANCEL
    )
}

/// The error for a request about tasks whose response is ambiguous: parsers would read it differently.
pub fn unclear(server: &str, error: &RawError) -> Error {
    Error::Broken {
        server: server.into(),
        reason: Reason::plain(&format!("cannot parse its task data: {error}")),
    }
}

/// A server's description of a task, with its error replaced if that asks the user to open addresses. As the
/// error of a call it would be judged by the rules; here nothing judges it.
pub fn without_opening(result: Raw) -> Raw {
    let error = result
        .member("error")
        .filter(|error| error.as_bytes() != b"null");
    let Some(error) = error.map(ErrorObject::from_raw) else {
        return result;
    };
    let error = if error.code == code::URL_ELICITATION_REQUIRED {
        let message = "the server asks the user to open a URL, which a task cannot do";
        ErrorObject::new(code::INTERNAL, message)
    } else {
        error
    };
    result.with_member("error", error.raw()).unwrap_or(result)
}

/// A result with all IDs of tasks exposed: its own, that of its task or those of its list, and that of the
/// task that it belongs to.
pub fn expose_result(result: Raw, expose: &dyn Fn(&str) -> String) -> Raw {
    let result = renamed(result, expose);
    let result = match result.member("task").filter(Raw::is_object) {
        Some(task) => result
            .with_member("task", &renamed(task, expose))
            .unwrap_or(result),
        None => result,
    };
    let result = match result.member("tasks").and_then(|tasks| tasks.elements()) {
        Some(tasks) => {
            let tasks = tasks.into_iter().map(|task| renamed(task, expose));
            let tasks = Raw::array(tasks);
            result.with_member("tasks", &tasks).unwrap_or(result)
        }
        None => result,
    };
    rename_related(result, expose)
}

/// A question with the ID that the client knows for the task that the question belongs to.
pub fn expose_related(params: Raw, signer: &TokenSigner, realm: Realm, place: &str) -> Raw {
    rename_related(params, &|task| expose(signer, realm, place, task))
}

/// A message with the ID of the task that it belongs to replaced.
pub fn rename_related(message: Raw, rename: &dyn Fn(&str) -> String) -> Raw {
    let Some(meta) = message.member("_meta") else {
        return message;
    };
    let Some(task) = meta.member(RELATED).filter(Raw::is_object) else {
        return message;
    };
    let named = meta.with_member(RELATED, &renamed(task, rename));
    named
        .and_then(|meta| message.with_member("_meta", &meta))
        .unwrap_or(message)
}

fn renamed(task: Raw, expose: &dyn Fn(&str) -> String) -> Raw {
    match task.member("taskId").and_then(|id| id.to_text()) {
        Some(id) => task
            .with_member("taskId", &Raw::string(&expose(&id)))
            .unwrap_or(task),
        None => task,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::ProfileId;

    #[test]
    fn task_is_found_by_its_realm_only() {
        let signer = TokenSigner::new().unwrap();
        let work = Realm {
            profile: Some(ProfileId::of("work")),
            ..Realm::OWNER
        };
        let anyone = Principal::Anyone.into();
        for own in [Realm::OWNER, work, anyone] {
            let name = expose(&signer, own, "s", "t\0x");
            for realm in [Realm::OWNER, work, anyone] {
                let found = locate(&signer, realm, &name);
                let known = ("s".to_owned(), "t\0x".to_owned());
                assert_eq!(found, (realm == own).then_some(known));
            }
        }
        assert_eq!(locate(&signer, Realm::OWNER, "t"), None);
    }

    #[test]
    fn listed_tasks_are_bounded_per_realm() {
        let begun = Begun::default();
        let listed = |principal: Principal| {
            let list = Raw::parse(r#"{"tasks":[{"taskId":"a"},{"taskId":"b"},{}],"n":1.0}"#);
            let list = begun.only_of(principal.into(), &list.unwrap()).unwrap();
            list.to_string()
        };
        assert_eq!(listed(Principal::Owner), r#"{"tasks":[],"n":1.0}"#);
        begun.insert(Realm::OWNER, "a");
        for n in 0..2 * BEGUN_MAX {
            begun.insert(Principal::Anyone.into(), &n.to_string());
        }
        begun.insert(Principal::Anyone.into(), "b");
        begun.insert(Principal::Anyone.into(), &"x".repeat(NAME_BYTES_MAX + 1));
        assert_eq!(
            listed(Principal::Owner),
            r#"{"tasks":[{"taskId":"a"}],"n":1.0}"#
        );
        assert_eq!(
            listed(Principal::Anyone),
            r#"{"tasks":[{"taskId":"b"}],"n":1.0}"#
        );
        let recent = begun.0.lock();
        assert_eq!(recent[1].order.len(), BEGUN_MAX);
        assert_eq!(recent[1].known.len(), BEGUN_MAX);
    }

    #[test]
    fn every_task_id_in_a_result_is_exposed() {
        let of = |json: &'static str| {
            expose_result(Raw::parse(json).unwrap(), &|id| format!("x-{id}")).to_string()
        };
        assert_eq!(
            of(r#"{"taskId":"a","n":1.0}"#),
            r#"{"taskId":"x-a","n":1.0}"#
        );
        assert_eq!(
            of(r#"{"task":{"taskId":"a"}}"#),
            r#"{"task":{"taskId":"x-a"}}"#
        );
        assert_eq!(
            of(r#"{"tasks":[{"taskId":"a"},{"taskId":"b"}]}"#),
            r#"{"tasks":[{"taskId":"x-a"},{"taskId":"x-b"}]}"#
        );
        assert_eq!(
            of(r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a"}}}"#),
            r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x-a"}}}"#
        );
    }
}
