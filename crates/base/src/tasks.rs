//! Tasks: work that goes on at a server after it has answered, known by a name that the server gave.
//!
//! A client gets a name of the gateway's making, which says, signed, whose task it is and at which
//! server. So it is found again by its name alone, and nobody else's principal can use it.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use switchboard_client::{ErrorObject, Raw};
use switchboard_wire::{RawError, code, method};

use crate::{caller::Principal, error::Error, health::Reason, signed_token::TokenSigner};

const PURPOSE: &str = "task";
/// The extension of 2026-07-28.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// Under this name of `_meta` a message says which task it belongs to (2025-11-25).
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The name of a task as its client knows it.
pub fn expose(signer: &TokenSigner, principal: Principal, server: &str, task: &str) -> String {
    let payload = format!("{}{server}\0{task}", mark(principal));
    signer.sign(PURPOSE, payload.as_bytes())
}

/// The server of a task, and its name there.
pub fn locate(
    signer: &TokenSigner,
    principal: Principal,
    exposed: &str,
) -> Option<(String, String)> {
    let payload = String::from_utf8(signer.verify(PURPOSE, exposed)?).ok()?;
    let (server, task) = payload.strip_prefix(mark(principal))?.split_once('\0')?;
    Some((server.to_owned(), task.to_owned()))
}

const fn mark(principal: Principal) -> char {
    match principal {
        Principal::Owner => 'o',
        Principal::Anyone => 'a',
    }
}

/// The task that a message says it belongs to, by the server's name for it.
pub fn related_task(params: &Raw) -> Option<String> {
    let task = params.member("_meta")?.member(RELATED)?;
    task.member("taskId")?.to_text()
}

/// The tasks of one server that clients have begun, the newest of them. Only those are listed for them: a server may
/// know no clients apart, and list the tasks of all.
#[derive(Debug, Default)]
pub struct Begun(Mutex<[Recent; 2]>);

/// The tasks of one principal, by the server's names for them.
#[derive(Debug, Default)]
struct Recent {
    known: FxHashSet<Arc<str>>,
    /// The oldest first.
    order: VecDeque<Arc<str>>,
}

/// So many tasks of each principal are known.
const BEGUN_MAX: usize = 1_000;
/// The name of a task that can be known has so many bytes at most.
const NAME_BYTES_MAX: usize = 1_024;

impl Begun {
    /// The call of a client has become a task, by its result.
    pub fn add(&self, principal: Principal, result: &Raw) {
        let task = result.member("task").filter(Raw::is_object);
        let id = task.as_ref().unwrap_or(result).member("taskId");
        if let Some(task) = id.and_then(|id| id.to_text()) {
            self.insert(principal, &task);
        }
    }

    fn insert(&self, principal: Principal, task: &str) {
        let mut recent = self.0.lock();
        let recent = &mut recent[place(principal)];
        if task.len() > NAME_BYTES_MAX || recent.known.contains(task) {
            return;
        }
        if recent.order.len() >= BEGUN_MAX
            && let Some(oldest) = recent.order.pop_front()
        {
            recent.known.remove(&oldest);
        }
        let task: Arc<str> = task.into();
        recent.known.insert(Arc::clone(&task));
        recent.order.push_back(task);
    }

    /// A list of tasks without those that this principal has not begun.
    pub fn only_of(&self, principal: Principal, result: &Raw) -> Result<Raw, RawError> {
        let tasks = result.distinct_member(&["tasks"])?;
        let tasks = tasks.and_then(|tasks| tasks.elements()).unwrap_or_default();
        let recent = self.0.lock();
        let known = &recent[place(principal)].known;
        let own = tasks.into_iter().filter(|task| {
            let id = task.distinct_member(&["taskId"]).ok().flatten();
            id.and_then(|id| id.to_text())
                .is_some_and(|id| known.contains(&*id))
        });
        result.with_member("tasks", &Raw::array(own))
    }
}

/// Tests if a request is about a task, which it names.
pub fn is_about_task(method: &str) -> bool {
    matches!(
        method,
        method::TASKS_GET | method::TASKS_RESULT | method::TASKS_UPDATE | method::TASKS_CANCEL
    )
}

/// The failure of a request about tasks whose answer programs would read in different ways.
pub fn unclear(server: &str, error: &RawError) -> Error {
    Error::Broken {
        server: server.into(),
        reason: Reason::plain(&format!("its answer about tasks cannot be read: {error}")),
    }
}

/// What is said of a task, with a plain error if it has one. One that wants a person to open addresses is replaced: as
/// the error of a call it would be judged, and here nothing judges it.
pub fn without_opening(result: Raw) -> Raw {
    let error = result
        .member("error")
        .filter(|error| error.as_bytes() != b"null");
    let Some(error) = error.map(ErrorObject::from_raw) else {
        return result;
    };
    let error = if error.code == code::URL_ELICITATION_REQUIRED {
        let message =
            "the server wants a person to open an address first, which a task cannot ask for";
        ErrorObject::new(code::INTERNAL, message)
    } else {
        error
    };
    result.with_member("error", error.raw()).unwrap_or(result)
}

const fn place(principal: Principal) -> usize {
    match principal {
        Principal::Owner => 0,
        Principal::Anyone => 1,
    }
}

/// A result with the names of tasks in it exposed: its own, that of the task in it or of those in its
/// list, and that of the task it says it belongs to.
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

/// A question in which the task that it says it belongs to has the name that its client knows.
pub fn expose_related(
    params: Raw,
    signer: &TokenSigner,
    principal: Principal,
    server: &str,
) -> Raw {
    rename_related(params, &|task| expose(signer, principal, server, task))
}

/// A message with another name of the task that it says it belongs to.
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

    #[test]
    fn a_task_is_found_by_its_own_principal_only() {
        let signer = TokenSigner::new().unwrap();
        let name = expose(&signer, Principal::Owner, "s", "t\0x");
        assert_eq!(
            locate(&signer, Principal::Owner, &name),
            Some(("s".to_owned(), "t\0x".to_owned()))
        );
        assert_eq!(locate(&signer, Principal::Anyone, &name), None);
        assert_eq!(locate(&signer, Principal::Owner, "t"), None);
    }

    #[test]
    fn tasks_that_are_listed_are_bounded_for_each_principal() {
        let begun = Begun::default();
        let listed = |principal| {
            let list = Raw::parse(r#"{"tasks":[{"taskId":"a"},{"taskId":"b"},{}],"n":1.0}"#);
            let list = begun.only_of(principal, &list.unwrap()).unwrap();
            list.to_string()
        };
        assert_eq!(listed(Principal::Owner), r#"{"tasks":[],"n":1.0}"#);
        begun.insert(Principal::Owner, "a");
        for n in 0..2 * BEGUN_MAX {
            begun.insert(Principal::Anyone, &n.to_string());
        }
        begun.insert(Principal::Anyone, "b");
        begun.insert(Principal::Anyone, &"x".repeat(NAME_BYTES_MAX + 1));
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
    fn every_name_of_a_task_in_a_result_is_exposed() {
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
