//! The directories in which the processes of a server run, if their entry names no other.

use std::{path::PathBuf, sync::Arc};

use sha2::{Digest as _, Sha256};
use switchboard_base::caller::Realm;
use switchboard_config::{Home, HomeError, Server};
use switchboard_text::hex;

use crate::identity::{HASH_BYTES, identity};

/// The directory of an instance: processes that run at the same time never have the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StateDir {
    /// That of the instance of all callers.
    Shared,
    /// That of the callers in a project.
    Project(Arc<str>),
    /// One of several for the clients of a realm, by its number. A later client of the realm may find it again, but
    /// no other realm does.
    Client { realm: Realm, place: usize },
}

impl StateDir {
    /// Its path.
    pub(crate) fn path(&self, name: &str, server: &Server, home: &Home) -> PathBuf {
        home.server_dir(name, &self.hash(name, server))
    }

    /// Creates it.
    pub(crate) fn create(
        &self,
        name: &str,
        server: &Server,
        home: &Home,
    ) -> Result<PathBuf, HomeError> {
        home.create_server_dir(name, &self.hash(name, server))
    }

    fn hash(&self, name: &str, server: &Server) -> String {
        let identity = identity(server);
        let whose = match self {
            Self::Shared => None,
            Self::Project(project) => Some(format!("project {project}")),
            Self::Client { realm, place } => Some(format!("client {realm} {place}")),
        };
        let mut words = vec![name, &identity];
        words.extend(whose.as_deref());
        // JSON, so that two different lists never have the same spelling.
        let words = serde_json::to_string(&words).unwrap_or_default();
        hex::encode(&Sha256::digest(words)[..HASH_BYTES])
    }
}

#[cfg(test)]
mod tests {
    use switchboard_base::caller::Principal;

    use super::*;

    #[test]
    fn directories_of_different_callers_differ() {
        let config = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
        let config = switchboard_config::parse(config, "it").unwrap();
        let server = &config.servers["a"];
        let client = |principal: Principal, place| StateDir::Client {
            realm: principal.into(),
            place,
        };
        let all = [
            StateDir::Shared,
            StateDir::Project("/a".into()),
            StateDir::Project("/b".into()),
            client(Principal::Owner, 1),
            client(Principal::Owner, 2),
            client(Principal::Anyone, 1),
        ];
        let hashes: std::collections::BTreeSet<_> =
            all.iter().map(|dir| dir.hash("a", server)).collect();
        assert_eq!(hashes.len(), all.len());
    }
}
