//! The directories that clients work in.

use std::{
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use tokio::sync::Mutex;

/// The directory that a client works in, if it is known: an absolute path without symbolic links.
#[derive(Debug, Clone, Default)]
pub struct Project {
    given: Option<Arc<str>>,
    /// Shared by the clones, so that the client is asked once.
    from_roots: Option<Arc<FromRoots>>,
}

/// A directory that is determined from the roots of the client.
#[derive(Debug, Default)]
struct FromRoots {
    found: OnceLock<Arc<str>>,
    /// The number of times that the client has announced other roots.
    changes: AtomicU64,
    /// That number when the client was last asked, without success. Locked while it is asked.
    asked_at: Mutex<Option<u64>>,
}

impl Project {
    /// A directory that is known from the start.
    pub fn known(path: Arc<str>) -> Self {
        Self {
            given: Some(path),
            from_roots: None,
        }
    }

    /// A directory that is to be determined from the roots of the client.
    pub fn of_roots() -> Self {
        Self {
            given: None,
            from_roots: Some(Arc::default()),
        }
    }

    /// The path.
    pub fn path(&self) -> Option<&Arc<str>> {
        let found = || self.from_roots.as_ref().and_then(|roots| roots.found.get());
        self.given.as_ref().or_else(found)
    }

    /// The path, if it was known before the client was asked.
    pub fn given(&self) -> Option<&Arc<str>> {
        self.given.as_ref()
    }

    /// Tests if the directory has to be determined from the roots of the client.
    pub fn is_open(&self) -> bool {
        self.path().is_none() && self.from_roots.is_some()
    }

    /// Determines the directory by asking the client, unless it was asked before and has not announced other roots
    /// since. Requests at the same time wait for one answer.
    pub async fn settle(&self, asking: impl Future<Output = Option<Arc<str>>>) {
        let Some(roots) = &self.from_roots else {
            return;
        };
        let mut asked_at = roots.asked_at.lock().await;
        let now = roots.changes.load(Relaxed);
        if roots.found.get().is_some() || *asked_at == Some(now) {
            return;
        }
        match asking.await {
            Some(path) => {
                // Set under the lock, and only once.
                let _ = roots.found.set(path);
            }
            None => *asked_at = Some(now),
        }
    }

    /// Has the client asked again if it has named no directory so far.
    pub fn roots_changed(&self) {
        if let Some(roots) = &self.from_roots {
            roots.changes.fetch_add(1, Relaxed);
        }
    }
}

/// The directory that a program works in, if that is a project.
pub fn project_dir(path: &Path) -> Option<String> {
    real_dir(path).filter(|path| is_project(path))
}

/// Tests if a directory, named without symbolic links, can be a project: not the home directory or one above it, in
/// which programs run that are started from a menu.
pub fn is_project(path: &str) -> bool {
    let home = std::env::home_dir().and_then(|home| real_dir(&home));
    path != "/" && !home.is_some_and(|home| Path::new(&home).starts_with(path))
}

/// The path of an existing directory, without symbolic links; `None` for a relative path, and for one that is not
/// UTF-8.
pub fn real_dir(path: &Path) -> Option<String> {
    let path = path.is_absolute().then(|| path.canonicalize().ok())??;
    let is_dir = path.is_dir();
    path.into_os_string().into_string().ok().filter(|_| is_dir)
}

/// The last component of a project's path, for people.
pub fn project_name(project: &str) -> &str {
    let name = Path::new(project)
        .file_name()
        .and_then(|name| name.to_str());
    name.unwrap_or(project)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_existing_directories_are_projects() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        let link = path.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(project_dir(&link).as_deref(), path.to_str());
        for none in [Path::new("/"), Path::new("relative"), &path.join("missing")] {
            assert_eq!(project_dir(none), None, "{}", none.display());
        }
        std::fs::write(path.join("file"), "").unwrap();
        assert_eq!(real_dir(&path.join("file")), None);
    }

    #[tokio::test]
    async fn directory_from_roots_is_shared_by_clones() {
        let project = Project::of_roots();
        let clone = project.clone();
        assert!(clone.is_open());
        project.settle(async { Some("/a".into()) }).await;
        project.settle(async { panic!("asked again") }).await;
        assert_eq!(clone.path().map(|path| &**path), Some("/a"));
        assert!(!clone.is_open());
        let known = Project::known("/c".into());
        known.settle(async { panic!("asked") }).await;
        assert_eq!(known.path().map(|path| &**path), Some("/c"));
    }

    #[tokio::test]
    async fn client_is_asked_again_after_a_change() {
        let project = Project::of_roots();
        let asked = AtomicU64::new(0);
        let none = || async {
            asked.fetch_add(1, Relaxed);
            tokio::task::yield_now().await;
            None
        };
        tokio::join!(project.settle(none()), project.settle(none()));
        project.settle(none()).await;
        assert_eq!(asked.load(Relaxed), 1);
        // A change while the client answers.
        project.roots_changed();
        let changing = async {
            project.roots_changed();
            none().await
        };
        project.settle(changing).await;
        project.settle(async { Some("/a".into()) }).await;
        assert_eq!(project.path().map(|path| &**path), Some("/a"));
    }

    #[test]
    fn project_name_is_the_end_of_its_path() {
        assert_eq!(project_name("/a/b c"), "b c");
        assert_eq!(project_name("/"), "/");
    }
}
