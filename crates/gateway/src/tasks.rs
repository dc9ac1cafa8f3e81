//! Tasks: work that goes on at a server after it has answered, known by a name that the server gave.
//!
//! A client gets a name of the gateway's making, which says, under seal, whose task it is and at which
//! server. So it is found again by its name alone, and nobody else's principal can use it.

use switchboard_client::Raw;

use crate::{caller::Principal, seal::Seal};

const PURPOSE: &str = "task";
/// Under this name of `_meta` a message says which task it belongs to (2025-11-25).
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The name of a task as its client knows it.
pub(crate) fn expose(seal: &Seal, principal: Principal, server: &str, task: &str) -> String {
    let payload = format!("{}{server}\0{task}", mark(principal));
    seal.close(PURPOSE, payload.as_bytes())
}

/// The server of a task, and its name there.
pub(crate) fn locate(seal: &Seal, principal: Principal, exposed: &str) -> Option<(String, String)> {
    let payload = String::from_utf8(seal.open(PURPOSE, exposed)?).ok()?;
    let (server, task) = payload.strip_prefix(mark(principal))?.split_once('\0')?;
    Some((server.to_owned(), task.to_owned()))
}

const fn mark(principal: Principal) -> char {
    match principal {
        Principal::Owner => 'o',
        Principal::Anyone => 'a',
    }
}

/// A result with the names of tasks in it exposed: its own, that of the task in it or of those in its
/// list, and that of the task it says it belongs to.
pub(crate) fn expose_result(result: Raw, expose: &dyn Fn(&str) -> String) -> Raw {
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
    related(result, expose)
}

fn related(result: Raw, expose: &dyn Fn(&str) -> String) -> Raw {
    let Some(meta) = result.member("_meta") else {
        return result;
    };
    let Some(task) = meta.member(RELATED).filter(Raw::is_object) else {
        return result;
    };
    let exposed = meta.with_member(RELATED, &renamed(task, expose));
    exposed
        .and_then(|meta| result.with_member("_meta", &meta))
        .unwrap_or(result)
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
        let seal = Seal::new().unwrap();
        let name = expose(&seal, Principal::Owner, "s", "t\0x");
        assert_eq!(
            locate(&seal, Principal::Owner, &name),
            Some(("s".to_owned(), "t\0x".to_owned()))
        );
        assert_eq!(locate(&seal, Principal::Anyone, &name), None);
        assert_eq!(locate(&seal, Principal::Owner, "t"), None);
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
