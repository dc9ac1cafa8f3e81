//! Keeps the set of servers in line with the configuration.
//!
//! A change of the configuration becomes a plan that touches only the differences: a server that is started
//! in a different way is restarted, a server with other limits gets the new limits, and all others are
//! unaffected.

mod learning;

pub use self::learning::until_deserted;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use switchboard_base::{
    audit::{Actor, Reservation},
    caller::{Caller, Principal},
};
use switchboard_config::{Config, Server};
use tokio::{sync::Mutex, task::JoinSet, time::timeout};

use crate::{changes, deps::Deps, start_approval, upstream::Upstream};

/// All servers by name.
pub type Upstreams = BTreeMap<String, Arc<Upstream>>;

/// The servers, kept in line with the configuration.
#[derive(Debug)]
pub struct Supervisor {
    deps: Arc<Deps>,
    upstreams: ArcSwap<Upstreams>,
    /// Held while a plan is carried out, one at a time. Calls never wait for it.
    reconciling: Mutex<Phase>,
}

#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Running,
    Stopping,
}

/// The effect of a new configuration on one server.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Add,
    Remove,
    /// It is started in a different way: the old process has to exit first.
    Replace,
    /// The same process with other limits.
    Tune,
    /// No change.
    Keep,
}

impl Change {
    fn of(old: Option<&Server>, new: Option<&Server>) -> Self {
        match (old, new) {
            (None, Some(_)) => Self::Add,
            (Some(_), None) => Self::Remove,
            (Some(old), Some(new)) if old == new => Self::Keep,
            (Some(old), Some(new)) if is_same_process(old, new) => Self::Tune,
            (Some(_), Some(_)) => Self::Replace,
            (None, None) => Self::Keep,
        }
    }
}

/// Tests if a running server can keep running: every field that determines how it is started and ended is the
/// same.
fn is_same_process(old: &Server, new: &Server) -> bool {
    // Destructured, so that a new field has to be considered here.
    let Server {
        enabled: _,
        transport,
        revision,
        share,
        max_instances: _,
        start: _,
        idle_stop: _,
        request_timeout: _,
        init_timeout,
        close_timeout,
        term_timeout,
        max_in_flight,
        max_queued: _,
        tools: _,
        overrides: _,
        compact: _,
        trust: _,
        max_result_bytes: _,
        max_result_tokens: _,
        approve: _,
        hold: _,
        approved_file: _,
        malformed: _,
    } = old;
    *transport == new.transport
        && *revision == new.revision
        && *share == new.share
        && *init_timeout == new.init_timeout
        && *close_timeout == new.close_timeout
        && *term_timeout == new.term_timeout
        && *max_in_flight == new.max_in_flight
}

impl Supervisor {
    /// Creates a supervisor without servers.
    pub fn new(deps: Arc<Deps>) -> Self {
        Self {
            deps,
            upstreams: ArcSwap::default(),
            reconciling: Mutex::new(Phase::Running),
        }
    }

    /// The dependencies that the servers share.
    pub fn deps(&self) -> &Arc<Deps> {
        &self.deps
    }

    /// Starts the servers of the configuration.
    pub fn start(&self) {
        let config = self.deps.config.load_full();
        let upstreams = config
            .servers
            .iter()
            .map(|(name, server)| (name.clone(), start(&self.deps, name, server, None)))
            .collect();
        self.upstreams.store(Arc::new(upstreams));
    }

    /// All servers, by name.
    pub fn all(&self) -> Arc<Upstreams> {
        self.upstreams.load_full()
    }

    /// Stops the instances of a client that has left.
    pub fn client_left(&self, caller: &Caller) {
        for upstream in self.upstreams.load().values() {
            upstream.left(|key| key.is_of(caller));
        }
    }

    /// Stops the instances of all clients of a principal that may no longer use the gateway.
    pub fn principal_left(&self, principal: Principal) {
        for upstream in self.upstreams.load().values() {
            upstream.left(|key| key.principal() == Some(principal));
        }
    }

    /// The server of this name.
    pub fn get(&self, name: &str) -> Option<Arc<Upstream>> {
        self.upstreams.load().get(name).cloned()
    }

    /// Applies a configuration to the servers, and records the changes in the audit log, in `room` if there
    /// is any.
    pub async fn apply(&self, config: Config, actor: Option<&Actor>, room: Option<Reservation>) {
        let phase = self.reconciling.lock().await;
        if *phase == Phase::Stopping {
            return;
        }
        let old = self.deps.config.swap(Arc::new(config));
        let new = self.deps.config.load_full();
        let events = changes::events(&old, &new, actor);
        match room {
            Some(room) => room.record(events),
            None => events
                .into_iter()
                .for_each(|event| self.deps.audit.record(event)),
        }
        let current = self.upstreams.load_full();
        // Together with the profiles and rules, which may refer to overrides.
        for (name, server) in &new.servers {
            let is_tuned = Change::of(old.servers.get(name), Some(server)) == Change::Tune;
            if let Some(upstream) = current.get(name).filter(|_| is_tuned) {
                upstream.settle(Arc::new(server.clone()));
            }
        }
        // Before any server that the rules apply to can be called.
        if let Some(handler) = self.deps.handler() {
            handler.configured(&new);
        }
        self.deps.sign_ins.retain(&new);
        let mut next = Upstreams::clone(&current);
        let mut tuning = Vec::new();
        let names = old.servers.keys().chain(new.servers.keys());
        for name in names.collect::<std::collections::BTreeSet<_>>() {
            let wanted = new.servers.get(name);
            let change = Change::of(old.servers.get(name), wanted);
            if change != Change::Keep {
                tracing::info!(server = %name, change = ?change, "Applying a configuration change.");
            }
            match (change, wanted) {
                (Change::Add, Some(server)) => {
                    next.insert(name.clone(), start(&self.deps, name, server, None));
                }
                (Change::Tune, Some(server)) => {
                    if let Some(upstream) = current.get(name) {
                        tuning.push((Arc::clone(upstream), Arc::new(server.clone())));
                    }
                }
                (Change::Replace, Some(server)) => {
                    let old = next.remove(name);
                    next.insert(name.clone(), start(&self.deps, name, server, old));
                }
                (Change::Remove, _) => {
                    self.deps.live_catalog.remove(name);
                    if let Some(old) = next.remove(name) {
                        // It gets the full time of its settings, in the background.
                        tokio::spawn(async move { old.stop().await });
                    }
                }
                _ => {}
            }
        }
        self.upstreams.store(Arc::new(next));
        let held = |config: &Config| config.servers.values().any(start_approval::may_wait);
        if held(&old) || held(&new) {
            self.deps.live_catalog.ask_again();
        }
        for (upstream, server) in tuning {
            upstream.tune().await;
            self.deps
                .live_catalog
                .refilter(&upstream.name, &server)
                .await;
        }
        if old.listen_address() != new.listen_address() {
            tracing::warn!("The change to `listen` takes effect when the gateway is restarted.");
        }
    }

    /// Stops all servers concurrently within this total time, then kills the rest. `hurry` ends the wait
    /// early.
    pub async fn stop(&self, total: Duration, hurry: impl Future<Output = ()>) {
        let upstreams = self.upstreams.load_full();
        let mut leaving = JoinSet::new();
        for upstream in upstreams.values() {
            let upstream = Arc::clone(upstream);
            leaving.spawn(async move { upstream.stop().await });
        }
        let left = async {
            // From here on no configuration adds servers; one that is being applied may have.
            *self.reconciling.lock().await = Phase::Stopping;
            for upstream in self.upstreams.load_full().values() {
                let upstream = Arc::clone(upstream);
                leaving.spawn(async move { upstream.stop().await });
            }
            while leaving.join_next().await.is_some() {}
            // A server that crashed or was stopped before may still be exiting.
            self.deps.containment.all_gone().await;
        };
        let in_time = tokio::select! {
            in_time = timeout(total, left) => in_time.is_ok(),
            () = hurry => false,
        };
        if in_time {
            return;
        }
        tracing::warn!("Killing the servers that have not exited in time.");
        self.deps.containment.kill_all();
        let left = self.deps.containment.all_gone();
        if timeout(KILL_PATIENCE, left).await.is_err() {
            tracing::error!("Some servers could not be killed.");
        }
    }
}

/// Time for the kernel to end killed processes, and for engines to remove containers.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

fn start(
    deps: &Arc<Deps>,
    name: &str,
    server: &Server,
    predecessor: Option<Arc<Upstream>>,
) -> Arc<Upstream> {
    if let Some(malformed) = &server.malformed {
        tracing::error!(server = %name, problem = %malformed, "Cannot start this server until its entry is corrected.");
    }
    let server = Arc::new(server.clone());
    let offers = deps.live_catalog.expect(name, &server);
    Upstream::start(name, server, deps, offers.as_deref(), predecessor)
}

#[cfg(test)]
mod tests {
    use switchboard_config::{CommandLine, Transport};

    use super::*;

    fn server() -> Server {
        Server::new(Transport::Command(CommandLine {
            command: "a".to_owned(),
            ..CommandLine::default()
        }))
    }

    #[test]
    fn change_touches_only_what_differs() {
        let old = server();
        let mut tuned = server();
        tuned.request_timeout = Duration::from_secs(1);
        let mut replaced = server();
        replaced.transport = Transport::Command(CommandLine {
            command: "a".to_owned(),
            args: vec!["-v".to_owned()],
            ..CommandLine::default()
        });
        assert_eq!(Change::of(Some(&old), Some(&server())), Change::Keep);
        assert_eq!(Change::of(Some(&old), Some(&tuned)), Change::Tune);
        assert_eq!(Change::of(Some(&old), Some(&replaced)), Change::Replace);
        assert_eq!(Change::of(Some(&old), None), Change::Remove);
        assert_eq!(Change::of(None, Some(&old)), Change::Add);
    }
}
