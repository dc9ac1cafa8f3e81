//! The directories that clients work in.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

/// The directory that a client works in, if it is known: an absolute path without symbolic links.
#[derive(Debug, Clone, Default)]
pub struct Project {
    given: Option<Arc<str>>,
    /// Shared by the clones, so that the client is asked once.
    from_roots: Option<Arc<OnceLock<Arc<str>>>>,
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
        let found = || self.from_roots.as_ref().and_then(|found| found.get());
        self.given.as_ref().or_else(found)
    }

    /// Tests if the client has to be asked for its roots.
    pub fn is_open(&self) -> bool {
        self.path().is_none() && self.from_roots.is_some()
    }

    /// Sets the directory, once.
    pub fn settle(&self, path: Arc<str>) {
        if let Some(found) = &self.from_roots {
            // Another request may have asked at the same time.
            let _ = found.set(path);
        }
    }
}

/// The directory that a program works in, if that is a project: not the home directory or one above it, in which
/// programs run that are started from a menu.
pub fn project_dir(path: &Path) -> Option<String> {
    let home = std::env::home_dir().and_then(|home| real_dir(&home));
    let path = real_dir(path)?;
    let is_above = |home: &String| Path::new(home).starts_with(&path);
    (path != "/" && !home.as_ref().is_some_and(is_above)).then_some(path)
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

    #[test]
    fn directory_from_roots_is_shared_by_clones() {
        let project = Project::of_roots();
        let clone = project.clone();
        assert!(clone.is_open());
        project.settle("/a".into());
        project.settle("/b".into());
        assert_eq!(clone.path().map(|path| &**path), Some("/a"));
        assert!(!clone.is_open());
        let known = Project::known("/c".into());
        known.settle("/d".into());
        assert_eq!(known.path().map(|path| &**path), Some("/c"));
    }

    #[test]
    fn project_name_is_the_end_of_its_path() {
        assert_eq!(project_name("/a/b c"), "b c");
        assert_eq!(project_name("/"), "/");
    }
}
