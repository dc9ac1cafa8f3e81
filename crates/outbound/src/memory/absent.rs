//! The memory in a build without it: a host that cannot exist.

use std::sync::Arc;

use switchboard_catalog::Snapshot;
use switchboard_client::{Raw, memory::Memory as Connector};
use switchboard_config::{Config, Server};
use switchboard_store::{Store, StoreError, memory::Salvaged};

use crate::model::Models;

/// A memory that cannot exist.
#[derive(Debug)]
pub enum Host {}

impl Host {
    /// Returns `None`: this build has no memory.
    pub fn new(_: Store, _: &Config, _: Arc<Models>) -> Option<Self> {
        None
    }

    pub(crate) fn connector(&self) -> Connector {
        match *self {}
    }

    /// Cannot be called.
    #[expect(clippy::unused_async, reason = "the same interface as with the memory")]
    pub async fn repair(&self, _: bool) -> Result<Salvaged, StoreError> {
        match *self {}
    }

    /// Cannot be called.
    pub fn problem(&self) -> Option<(Arc<str>, Arc<str>)> {
        match *self {}
    }

    /// Cannot be called.
    pub fn set(&self, _: &Config) {
        match *self {}
    }
}

pub(super) fn compact() -> Option<&'static [Raw]> {
    None
}

pub(super) fn takes_namespace(_: &str) -> bool {
    false
}

pub(super) fn snapshot(_: &Server, _: fn(&Server) -> String) -> Option<Snapshot> {
    None
}
