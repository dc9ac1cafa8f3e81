//! The built-in memory among the servers. Builds without the feature `memory` have none.

#[cfg(not(feature = "memory"))]
#[path = "memory/absent.rs"]
mod host;
#[cfg(feature = "memory")]
mod host;

use switchboard_catalog::Snapshot;
use switchboard_client::Raw;
use switchboard_config::{Config, Memory, Server, Transport};

pub use host::Host;

/// The configuration with the memory among its servers, if it is wanted and this build has it.
pub fn included(config: Config) -> Config {
    if cfg!(feature = "memory") {
        config.with_memory()
    } else {
        config
    }
}

/// Whether a server is the built-in memory.
pub fn is_built_in(server: &Server) -> bool {
    matches!(server.transport, Transport::BuiltIn)
}

/// The definitions that merged views list of a server in place of all its tools, if it has such.
pub(crate) fn compact(server: &Server) -> Option<&'static [Raw]> {
    (is_built_in(server) && server.compact)
        .then(host::compact)
        .flatten()
}

/// What the built-in memory is called, if it is among the servers.
pub fn among(config: &Config) -> Option<&'static str> {
    let server = config.servers.get(Memory::NAME)?;
    is_built_in(server).then_some(Memory::NAME)
}

/// The memory's definitions, if it is among the servers.
pub(crate) fn snapshot(config: &Config, fingerprint: fn(&Server) -> String) -> Option<Snapshot> {
    host::snapshot(config.servers.get(among(config)?)?, fingerprint)
}
