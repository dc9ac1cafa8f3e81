//! The administration of the gateway: REST, the pages of the console, and notifications of waiting requests.

use std::sync::Arc;

use switchboard_core::core::Core;
use switchboard_inbound::inbound::Inbound;

use crate::{notify, tally};

/// The administrative interface of the gateway.
#[derive(Debug)]
pub struct Admin {
    pub(crate) core: Arc<Core>,
    pub(crate) inbound: Arc<Inbound>,
}

impl Admin {
    /// Starts to describe the core to agents, and to tell people what waits for them.
    pub fn start(core: Arc<Core>, inbound: Arc<Inbound>) -> Arc<Self> {
        let admin = Arc::new(Self { core, inbound });
        let status = Arc::downgrade(&admin);
        admin.core.set_status(status);
        notify::start(&admin.core, &admin.inbound);
        tokio::spawn(tally::run(Arc::downgrade(&admin.core)));
        admin
    }
}
