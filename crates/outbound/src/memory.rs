//! The built-in memory server. Builds without the feature `memory` do not have it.

#[cfg(not(feature = "memory"))]
#[path = "memory/absent.rs"]
mod host;
#[cfg(feature = "memory")]
mod host;

use switchboard_catalog::Snapshot;
use switchboard_client::Raw;
use switchboard_config::{Config, Memory, Server, Transport};

pub use host::Host;

/// Adds the memory to the servers of a configuration, if it is enabled and this build has it.
pub fn included(config: Config) -> Config {
    if cfg!(feature = "memory") {
        config.with_memory()
    } else {
        config
    }
}

/// Tests if a server is the built-in memory.
pub fn is_built_in(server: &Server) -> bool {
    matches!(server.transport, Transport::BuiltIn)
}

/// The definitions that merged views list instead of all tools of a server, if it has such a list.
pub(crate) fn compact(server: &Server) -> Option<&'static [Raw]> {
    (is_built_in(server) && server.compact)
        .then(host::compact)
        .flatten()
}

/// Tests if a tool of the memory is confined to a namespace that it is given.
pub fn takes_namespace(tool: &str) -> bool {
    host::takes_namespace(tool)
}

/// The name of the built-in memory, if it is one of the servers.
pub fn among(config: &Config) -> Option<&'static str> {
    let server = config.servers.get(Memory::NAME)?;
    is_built_in(server).then_some(Memory::NAME)
}

/// The snapshot of the memory's definitions, if it is one of the servers.
pub(crate) fn snapshot(config: &Config, fingerprint: fn(&Server) -> String) -> Option<Snapshot> {
    host::snapshot(config.servers.get(among(config)?)?, fingerprint)
}
