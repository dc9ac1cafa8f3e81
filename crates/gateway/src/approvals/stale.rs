//! Requests for trust from an earlier run of the gateway, whose server or definitions are gone.
//!
//! Such a request has no deadline. Without this it would wait for ever, and an approval of it would do nothing.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use switchboard_approvals::Kind;
use switchboard_store::{StoreError, Which};
use tokio::{sync::watch, time::sleep};

use super::{
    driver,
    trust::{self, AGAIN, TOGETHER},
};
use crate::{gateway::Gateway, pace::AFTER_FIRST_ANSWERS};

/// Withdraws them, now and whenever something else is held, until none is left.
pub(super) fn start(gateway: &Arc<Gateway>) {
    let held = gateway.context().shelf.held_changes();
    tokio::spawn(run(Arc::downgrade(gateway), held));
}

async fn run(gateway: Weak<Gateway>, mut held: watch::Receiver<u64>) {
    sleep(AFTER_FIRST_ANSWERS).await;
    loop {
        held.borrow_and_update();
        let Some(gateway) = gateway.upgrade() else {
            return;
        };
        let left = withdraw(&gateway).await;
        drop(gateway);
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

/// Withdraws every request that is stale; says how many are not.
async fn withdraw(gateway: &Arc<Gateway>) -> Result<usize, StoreError> {
    let context = gateway.context();
    if !context.approvals.wait_until_ready(Duration::ZERO).await {
        return Err(StoreError::Busy);
    }
    let which = Which {
        open: Some(true),
        kind: Some(Kind::Trust.as_str().into()),
        limit: switchboard_store::ROWS_PER_ANSWER,
        ..Which::default()
    };
    let rows = context.store.approvals(which).await?;
    let (all, looking) = (rows.len(), Arc::clone(gateway));
    let looking = tokio::task::spawn_blocking(move || {
        let records = rows.iter().filter_map(driver::parsed);
        let stale = records.filter(|record| {
            let ask = &record.ask;
            trust::is_stale(&looking, &ask.server, &ask.request)
        });
        stale.map(|record| record.id).collect::<Vec<_>>()
    });
    let stale = looking.await.unwrap_or_default();
    let left = all - stale.len();
    for id in stale {
        context.approvals.withdraw(id).await;
    }
    Ok(left)
}
