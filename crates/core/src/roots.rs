//! The project of a client that has not named one, from its roots.

use std::{path::PathBuf, sync::Arc, time::Duration};

use switchboard_base::{
    backchannel::Backchannel,
    caller::{Caller, Guest, answers},
    project::{project_name, real_dir},
};
use switchboard_client::Raw;
use switchboard_outbound::upstream::Upstream;
use switchboard_text::percent;
use switchboard_wire::method;
use tokio::time::timeout;

/// The longest time that a client may take to list its roots.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks the client for its roots if a server needs a project and none is known. The first root that is a directory
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
    if !answers(&about.capabilities, method::ROOTS_LIST, None) {
        return;
    }
    let asking = backchannel.ask(&upstream.name, method::ROOTS_LIST, None);
    let Ok(Ok(answer)) = timeout(PATIENCE, asking).await else {
        return;
    };
    let found = tokio::task::spawn_blocking(move || directory_in(&answer));
    if let Ok(Some(found)) = found.await {
        caller.project.settle(found);
    }
}

fn directory_in(answer: &Raw) -> Option<Arc<str>> {
    let roots = answer.member("roots")?.elements()?.into_iter();
    let mut paths = roots.filter_map(|root| path_of(&root.member("uri")?.to_text()?));
    paths.find_map(|path| real_dir(&path)).map(Arc::from)
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
        let found = roots(&["https://example.com/", "file:///no/such/directory", &own]);
        assert_eq!(found.as_deref(), project.to_str());
        assert_eq!(roots(&["file://host/tmp", "relative"]), None);
    }
}
