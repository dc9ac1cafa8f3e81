//! Waits for servers that have never been listed: when a client lists, and when the last client leaves.

use std::time::Duration;

use switchboard_base::caller::Caller;
use tokio::{
    sync::watch,
    time::{timeout, timeout_at},
};

use super::Supervisor;
use crate::{clock, start_throttle::StartThrottle, upstream::Lease};

/// Time for which servers that were never listed are still started after the last client has left.
const LAST_STARTS: Duration = Duration::from_secs(10);
/// Time to wait for the started servers after that. Each also has its own limit.
const LAST_LESSONS: Duration = Duration::from_mins(2);

impl Supervisor {
    /// Waits briefly for servers that have never been listed and that the client sees, once for each.
    pub async fn delay_list(&self, caller: &Caller, sees: impl Fn(&str) -> bool) {
        let upstreams = self.all();
        let deps = &self.deps;
        let now = clock::now();
        let seen = upstreams.values().filter(|upstream| sees(&upstream.name));
        let new = seen.filter_map(|upstream| upstream.new_instance(caller));
        let waits = new.filter_map(|instance| {
            let contact = &deps.first_contact;
            let until = contact.list_waits(&instance.name, &instance.settings(), now)?;
            Some((instance, until))
        });
        let waits: Vec<_> = waits.collect();
        if waits.is_empty() {
            return;
        }
        deps.first_contact.save_soon(deps.config.load_full());
        deps.start_throttle.hurry();
        for (instance, until) in waits {
            // For a server that takes longer, clients are notified of a changed list.
            let _ = timeout_at(until.into(), instance.met()).await;
        }
    }

    /// Called when the last client has left. Waits for servers that were never listed and have not failed:
    /// briefly for all of them, and longer for the ones that have been started by then. The
    /// [throttle](crate::start_throttle) is paused afterwards.
    pub async fn last_lessons(&self) {
        let deps = &self.deps;
        let contact = &deps.first_contact;
        let upstreams = self.all();
        let shared = upstreams.values().map(|upstream| upstream.shared());
        let new = shared.filter(|instance| {
            instance.is_new() && !contact.has_failed(&instance.name, &instance.settings())
        });
        let new: Vec<_> = new.collect();
        if new.is_empty() {
            return deps.start_throttle.pause();
        }
        let servers = new.len();
        tracing::info!(
            servers,
            "The last client has disconnected; listing new servers before the gateway stops."
        );
        deps.start_throttle.hurry();
        let _ = timeout(LAST_STARTS, all_met(&new)).await;
        deps.start_throttle.pause();
        let begun = new.into_iter().filter(|instance| instance.is_being_met());
        let begun: Vec<_> = begun.collect();
        if timeout(LAST_LESSONS, all_met(&begun)).await.is_ok() {
            return;
        }
        for instance in begun.iter().filter(|instance| instance.is_new()) {
            contact.fail(&instance.name, &instance.settings());
        }
    }

    /// Called when the gateway stops. Servers that were started but not listed go last next time, so that a
    /// few slow ones do not keep short-lived clients from seeing the rest.
    pub fn cut_off(&self) {
        let deps = &self.deps;
        let contact = &deps.first_contact;
        for upstream in self.all().values() {
            let instance = upstream.shared();
            if instance.is_being_met() {
                contact.interrupt(&instance.name, &instance.settings());
            }
        }
        contact.save_soon(deps.config.load_full());
    }
}

/// Waits until there is no client and `last_lessons` has completed without being interrupted by
/// a client or a new configuration. No server is started from then on.
pub async fn until_deserted<Lessons: Future<Output = ()>>(
    mut clients: watch::Receiver<usize>,
    mut applied: watch::Receiver<()>,
    start_throttle: &StartThrottle,
    last_lessons: impl Fn() -> Lessons,
) {
    loop {
        // An error means that the gateway is gone.
        let _ = clients.wait_for(|clients| *clients == 0).await;
        applied.mark_unchanged();
        tokio::select! {
            biased;
            _ = clients.wait_for(|clients| *clients > 0) => {}
            _ = applied.changed() => {}
            () = last_lessons() => return,
        }
        start_throttle.resume();
    }
}

async fn all_met(instances: &[Lease]) {
    for instance in instances {
        instance.met().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn late_client_or_configuration_resumes_starts() {
        let start_throttle = StartThrottle::default();
        let (clients, applied) = (watch::Sender::new(1), watch::Sender::new(()));
        let lessons = std::cell::Cell::new(0);
        let last_lessons = || {
            lessons.set(lessons.get() + 1);
            start_throttle.pause();
            tokio::time::sleep(LAST_LESSONS)
        };
        let (heard, told) = (clients.subscribe(), applied.subscribe());
        let deserted = until_deserted(heard, told, &start_throttle, last_lessons);
        let mut deserted = std::pin::pin!(deserted);
        let mut is_over = async || timeout(LAST_STARTS, &mut deserted).await.is_ok();
        let is_paused = async || {
            timeout(LAST_STARTS, start_throttle.open(|| ()))
                .await
                .is_err()
        };
        applied.send_replace(());
        assert!(!is_over().await && lessons.get() == 0);
        clients.send_replace(0);
        assert!(!is_over().await && is_paused().await);
        clients.send_replace(1);
        assert!(!is_over().await && !is_paused().await);
        clients.send_replace(0);
        assert!(!is_over().await && is_paused().await && lessons.get() == 2);
        applied.send_replace(());
        assert!(!is_over().await && lessons.get() == 3);
        deserted.await;
        assert!(is_paused().await);
    }
}
