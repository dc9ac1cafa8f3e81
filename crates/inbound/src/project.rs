//! The directory that a client works in, as it is known when the client connects.

use std::{
    path::{Component, Path},
    sync::Arc,
};

use hyper::{StatusCode, Uri};
use switchboard_base::{
    error::cut,
    project::{Project, is_project, project_dir, real_dir},
};
use switchboard_text::percent;

/// The parameter of an MCP address over HTTP.
const PARAMETER: &str = "project";

/// The directory of a client on a pipe, in which its process was started.
pub(crate) async fn of_process(directory: Option<Arc<str>>) -> Project {
    let Some(directory) = directory else {
        return Project::default();
    };
    let project = move || project_dir(Path::new(&*directory));
    let found = tokio::task::spawn_blocking(project).await.ok().flatten();
    found.map_or_else(Project::default, |path| Project::known(path.into()))
}

/// A directory that a request over HTTP may not, or cannot, name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) hint: &'static str,
}

/// The directories that a sender of requests over HTTP may name. Servers get access to the directory of their caller, and
/// a token grants nothing beyond its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice<'a> {
    /// The owner may name any.
    Any,
    /// The directory of a token, or one below it.
    Within(&'a Arc<str>),
    /// The token has none.
    OfToken,
    /// There is no token.
    OfAnyone,
}

/// The directory of a client over HTTP: the one that the address names, or else that of its token.
pub(crate) async fn of_request(uri: &Uri, choice: Choice<'_>) -> Result<Project, Refused> {
    let Some(named) = named(uri) else {
        return Ok(match choice {
            Choice::Within(own) => Project::known(Arc::clone(own)),
            Choice::Any | Choice::OfToken | Choice::OfAnyone => Project::default(),
        });
    };
    let forbidden = |message: &str, hint| {
        Err(Refused {
            status: StatusCode::FORBIDDEN,
            message: message.to_owned(),
            hint,
        })
    };
    let own = match choice {
        Choice::Any => None,
        Choice::Within(own) => Some(own),
        Choice::OfToken => {
            return forbidden(
                "this token does not permit to choose a project directory",
                "create one with `switchboard token create NAME --project DIR`",
            );
        }
        Choice::OfAnyone => {
            return forbidden(
                "clients without a token cannot choose a project directory",
                "send a token",
            );
        }
    };
    // The same for all of them, or the answer would tell which directories exist outside.
    let outside = || {
        forbidden(
            "there is no such directory below the one that the token permits",
            "leave out `?project=`, or name a directory below the one of the token, without `..`",
        )
    };
    if own.is_some() && goes_up(&named) {
        return outside();
    }
    let shown = cut(&named).to_owned();
    let wrong = |message, hint| {
        Err(Refused {
            status: StatusCode::BAD_REQUEST,
            message,
            hint,
        })
    };
    let directory = move || {
        let path = real_dir(Path::new(&named))?;
        Some((is_project(&path), path))
    };
    let found = tokio::task::spawn_blocking(directory).await.ok().flatten();
    let is_permitted = |path: &str| own.is_none_or(|own| is_within(own, path));
    let Some((is_project, path)) = found.filter(|(_, path)| is_permitted(path)) else {
        if own.is_some() {
            return outside();
        }
        return wrong(
            format!("there is no directory `{shown}`"),
            "name an existing directory by its absolute path, percent-encoded",
        );
    };
    if !is_project {
        return wrong(
            format!("the directory `{shown}` cannot be a project"),
            "name another one than the root directory, the home directory and the directories above it",
        );
    }
    Ok(Project::known(path.into()))
}

/// The directory that the query names.
fn named(uri: &Uri) -> Option<String> {
    let mut pairs = uri.query()?.split('&');
    let value = pairs.find_map(|pair| pair.strip_prefix(PARAMETER)?.strip_prefix('='))?;
    // In a query, a space may be spelled as a plus sign.
    let value = value.replace('+', "%20");
    let decoded = percent::decode(&value).map(std::borrow::Cow::into_owned);
    // An undecodable path names no directory.
    Some(decoded.unwrap_or(value))
}

/// Tests if a path is a directory or below it. Both have no symbolic links.
fn is_within(directory: &str, path: &str) -> bool {
    Path::new(path).starts_with(directory)
}

/// Tests if a path leads through the parent of a directory.
fn goes_up(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    parts.any(|part| part == Component::ParentDir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn root_and_missing_directories_are_no_projects() {
        let dir = tempfile::tempdir().unwrap();
        let path: Arc<str> = dir.path().canonicalize().unwrap().to_str().unwrap().into();
        let project = of_process(Some(Arc::clone(&path))).await;
        assert_eq!(project.path(), Some(&path));
        for none in [Some("/".into()), Some(format!("{path}/x").into()), None] {
            assert_eq!(of_process(none).await.path(), None);
        }
    }

    #[test]
    fn directories_are_read_from_the_query() {
        let of = |query: &str| named(&format!("/mcp?{query}").parse().unwrap());
        assert_eq!(of("project=/a%20b").as_deref(), Some("/a b"));
        assert_eq!(of("x=1&project=/a+b").as_deref(), Some("/a b"));
        assert_eq!(of("projects=/a"), None);
        assert!(is_within("/a", "/a/b") && is_within("/a", "/a") && !is_within("/a", "/ab"));
    }

    #[tokio::test]
    async fn sender_names_only_permitted_directories() {
        let dirs = tempfile::tempdir().unwrap();
        let own = dirs.path().canonicalize().unwrap().join("own");
        std::fs::create_dir_all(own.join("below")).unwrap();
        std::os::unix::fs::symlink(dirs.path(), own.join("up")).unwrap();
        let path = own.to_str().unwrap();
        let within: Arc<str> = path.into();
        let within = Choice::Within(&within);
        let of = async |path: &str, choice| {
            let uri = format!("/mcp?project={path}").parse().unwrap();
            let project = of_request(&uri, choice).await;
            project.map(|project| project.path().unwrap().to_string())
        };
        let below = format!("{path}/below");
        let home = std::env::home_dir().unwrap();
        let home = home.to_str().unwrap();
        for choice in [Choice::Any, within] {
            assert_eq!(of(&below, choice).await.as_deref(), Ok(&*below));
        }
        for (path, choice, status) in [
            (&*below, Choice::OfAnyone, StatusCode::FORBIDDEN),
            (&*below, Choice::OfToken, StatusCode::FORBIDDEN),
            ("/", within, StatusCode::FORBIDDEN),
            (&format!("{path}/up"), within, StatusCode::FORBIDDEN),
            (
                &format!("{path}/below/../.."),
                within,
                StatusCode::FORBIDDEN,
            ),
            ("/no/such/directory", Choice::Any, StatusCode::BAD_REQUEST),
            ("relative", Choice::Any, StatusCode::BAD_REQUEST),
            ("/", Choice::Any, StatusCode::BAD_REQUEST),
            (home, Choice::Any, StatusCode::BAD_REQUEST),
        ] {
            let refused = of(path, choice).await.unwrap_err();
            assert_eq!(refused.status, status, "{path} {choice:?}");
        }
        // A token learns nothing about other directories.
        let elsewhere = tempfile::tempdir().unwrap();
        let elsewhere = elsewhere.path().to_str().unwrap();
        let up = format!("{path}/up");
        let missing = of("/no/such/directory", within).await.unwrap_err();
        for other in [
            elsewhere,
            home,
            &format!("{elsewhere}/missing"),
            &format!("{elsewhere}/../..{path}"),
            &format!("{path}/missing"),
            &format!("{path}/below/.."),
            &format!("{up}/own/../missing"),
            &up,
            &format!("{up}/missing"),
        ] {
            let refused = of(other, within).await;
            assert_eq!(refused, Err(missing.clone()), "{other}");
        }
        // Another spelling of its own is permitted.
        assert_eq!(of(&format!("{up}/own"), within).await.as_deref(), Ok(path));
        let bare = "/mcp".parse().unwrap();
        let own = of_request(&bare, within).await.unwrap();
        assert_eq!(own.path().map(|own| &**own), Some(path));
    }
}
