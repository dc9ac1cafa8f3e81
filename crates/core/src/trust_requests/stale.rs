//! Withdraws trust requests of an earlier run whose server or definitions are gone.
//!
//! Such a request has no deadline. It would stay open for ever, and approving it would have no
//! effect.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use switchboard_approvals::Kind;
use switchboard_outbound::start_throttle::AFTER_FIRST_ANSWERS;
use switchboard_store::{StoreError, Which};
use tokio::{sync::watch, time::sleep};

use super::{AGAIN, TOGETHER};
use crate::{approvals::driver, core::Core};

/// Withdraws them, now and whenever the held definitions change, until none is left.
pub(super) fn start(core: &Arc<Core>) {
    let held = core.live_catalog.held_changes();
    tokio::spawn(run(Arc::downgrade(core), held));
}

async fn run(core: Weak<Core>, mut held: watch::Receiver<u64>) {
    sleep(AFTER_FIRST_ANSWERS).await;
    loop {
        held.borrow_and_update();
        let Some(core) = core.upgrade() else {
            return;
        };
        let left = withdraw(&core).await;
        drop(core);
        match left {
            Ok(0) => return,
            Ok(_) => {
                if held.changed().await.is_err() {
                    return;
                }
                sleep(TOGETHER).await;
            }
            Err(StoreError::Closed) => return,
            Err(_) => sleep(AGAIN).await,
        }
    }
}

/// Withdraws every stale request. Returns the number of the remaining ones.
async fn withdraw(core: &Arc<Core>) -> Result<usize, StoreError> {
    if !core.approvals.wait_until_ready(Duration::ZERO).await {
        return Err(StoreError::Busy);
    }
    let which = Which {
        open: Some(true),
        kind: Some(Kind::Trust.as_str().into()),
        limit: switchboard_store::ROWS_PER_ANSWER,
        ..Which::default()
    };
    let rows = core.store.approvals(which).await?;
    let (all, looking) = (rows.len(), Arc::clone(core));
    let looking = tokio::task::spawn_blocking(move || {
        let records = rows.iter().filter_map(driver::parsed);
        let stale = records.filter(|record| {
            let ask = &record.ask;
            super::is_stale(&looking, &ask.server, &ask.request)
        });
        stale.map(|record| record.id).collect::<Vec<_>>()
    });
    let stale = looking.await.unwrap_or_default();
    let left = all - stale.len();
    for id in stale {
        core.approvals.withdraw(id).await;
    }
    Ok(left)
}
