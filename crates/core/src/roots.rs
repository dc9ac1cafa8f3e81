//! The roots of clients: they determine the project of a client that has not named one, and they never widen what
//! a client with a token can reach.

use std::{path::PathBuf, sync::Arc, time::Duration};

use switchboard_base::{
    backchannel::Backchannel,
    caller::{About, Caller, Guest, Principal, answers},
    project::{project_dir, project_name},
};
use switchboard_client::Raw;
use switchboard_outbound::{instance::Instance, upstream::Upstream};
use switchboard_text::percent;
use switchboard_wire::{RawError, method};
use tokio::time::timeout;

/// The longest time that a client may take to list its roots.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks the client for its roots if a server needs a project and none is known. The first root that can be a project
/// counts, for as long as the client is connected.
pub(crate) async fn settle_project(
    upstream: &Upstream,
    caller: &Caller,
    guest: &Guest,
    backchannel: Option<&Backchannel>,
) {
    if !caller.project.is_open() || !upstream.needs_project() {
        return;
    }
    let (Guest::Legacy { about, .. }, Some(backchannel)) = (guest, backchannel) else {
        return;
    };
    if !backchannel.is_open() || !are_told(caller, about) {
        return;
    }
    let asking = async {
        let asking = backchannel.ask(&upstream.name, method::ROOTS_LIST, None);
        let answer = timeout(PATIENCE, asking).await.ok()?.ok()?;
        let found = tokio::task::spawn_blocking(move || directory_in(&answer));
        found.await.ok().flatten()
    };
    caller.project.settle(asking).await;
}

fn directory_in(answer: &Raw) -> Option<Arc<str>> {
    let roots = answer.member("roots")?.elements()?.into_iter();
    let mut paths = roots.filter_map(|root| path_of(&root.member("uri")?.to_text()?));
    paths.find_map(|path| project_dir(&path)).map(Arc::from)
}

/// The path of a `file` URI on this machine.
fn path_of(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://")?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let path = percent::decode(path).filter(|path| path.starts_with('/'))?;
    Some(PathBuf::from(path.into_owned()))
}

/// The roots of callers in this directory.
pub(crate) fn of_project(project: &str) -> Raw {
    let uri = format!("file://{}", percent::encode(project, b"-._~/"));
    let name = project_name(project);
    let root = Raw::object([("uri", Raw::string(&uri)), ("name", Raw::string(name))]);
    Raw::object([("roots", Raw::array([root]))])
}

/// Tests if a client is asked for its roots. They are what the client says, so only the owner's are: others could widen
/// the scope of a token.
pub(crate) fn are_told(caller: &Caller, about: &About) -> bool {
    let is_owner = caller.realm.principal == Principal::Owner;
    is_owner && answers(&about.capabilities, method::ROOTS_LIST, None)
}

/// Records that this client can be asked for its roots, which a server that is not for all callers may want when it
/// starts.
pub(crate) fn offer(
    instance: &Instance,
    caller: &Caller,
    guest: &Guest,
    backchannel: Option<&Backchannel>,
) {
    if instance.key().is_some()
        && let (Guest::Legacy { about, .. }, Some(backchannel)) = (guest, backchannel)
        && are_told(caller, about)
    {
        instance.questions.set_roots(caller, backchannel.clone());
    }
}

/// The answer to a question for roots that is not put to the client: the project of the caller, or no root. `None` for
/// other questions, and for the owner.
pub(crate) fn granted(question: &str, caller: &Caller) -> Option<Raw> {
    if question != method::ROOTS_LIST || caller.realm.principal == Principal::Owner {
        return None;
    }
    let project = caller.project().map(|project| of_project(project));
    Some(project.unwrap_or_else(|| Raw::object([("roots", Raw::array([]))])))
}

/// The parameters of a request to a server of 2026-07-28. Roots among the answers of the client, which it may give
/// without being asked, are replaced by the granted ones.
pub(crate) fn confined(params: Raw, caller: &Caller) -> Result<Raw, RawError> {
    let Some(roots) = granted(method::ROOTS_LIST, caller) else {
        return Ok(params);
    };
    let given = params.distinct_member(&["inputResponses"])?;
    let Some(given) = given.and_then(|given| given.members()) else {
        return Ok(params);
    };
    // Some programs read an array as an object, or ignore the case of names.
    let is_other =
        |answer: &Raw| answer.is_object() && matches!(answer.distinct_member(&["roots"]), Ok(None));
    let answers = given.iter().map(|(key, answer)| {
        let answer = if is_other(answer) { answer } else { &roots };
        (&**key, answer.clone())
    });
    params.with_member("inputResponses", &Raw::object(answers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_directory_among_the_roots_is_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let project = dir.join("a b");
        std::fs::create_dir(&project).unwrap();
        let uri = |path: &str| Raw::object([("uri", Raw::string(path))]);
        let roots = |uris: &[&str]| {
            let roots = Raw::array(uris.iter().map(|path| uri(path)));
            directory_in(&Raw::object([("roots", roots)]))
        };
        let own = of_project(project.to_str().unwrap());
        let own = own.member("roots").unwrap().elements().unwrap();
        let own = own[0].member("uri").unwrap().to_text().unwrap();
        assert!(own.ends_with("/a%20b"), "{own}");
        let home = std::env::home_dir().unwrap();
        let home = format!("file://{}", home.display());
        let found = roots(&[
            "https://example.com/",
            "file:///no/such/directory",
            "file:///",
            &home,
            &own,
        ]);
        assert_eq!(found.as_deref(), project.to_str());
        assert_eq!(roots(&["file://host/tmp", "relative", "file:///"]), None);
    }
}
