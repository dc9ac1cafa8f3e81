//! The gateway's task that listens to one guard, and takes over its work if it is killed.

use std::{
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::ExitStatus,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    process::Child,
    sync::{mpsc, oneshot, watch},
    task::spawn_blocking,
    time::{sleep_until, timeout},
};

use crate::{
    container::{ENGINE_TIME, Named},
    containment::{Counted, OnStep},
    control::{Lines, NotStarted, Order, Report},
    handle::{State, killed},
    instance::Marker,
    orphans::Orphans,
    process::Identity,
    records,
    report::{Ended, Rung, Step},
};

/// Listens to one guard until nothing is left of its server.
pub(crate) struct GuardMonitor {
    pub(crate) name: String,
    pub(crate) control: UnixStream,
    pub(crate) child: Child,
    /// `None` when all senders are gone.
    pub(crate) orders: Option<mpsc::UnboundedReceiver<Order>>,
    pub(crate) kills: watch::Receiver<usize>,
    pub(crate) state: watch::Sender<State>,
    pub(crate) started: Option<oneshot::Sender<Result<(), NotStarted>>>,
    pub(crate) on_step: OnStep,
    /// The guard was ordered to stop the server.
    pub(crate) stopping: bool,
    /// Deadline for the guard to carry out its last order. After that, the guard is killed.
    pub(crate) patience: Option<Instant>,
    pub(crate) guard: Option<Identity>,
    pub(crate) leader: Option<Identity>,
    pub(crate) records: PathBuf,
    pub(crate) marker: Marker,
    pub(crate) container: Option<Named>,
    /// Counts the server as not gone.
    pub(crate) _counted: Counted,
}

impl GuardMonitor {
    pub(crate) async fn run(mut self, commission: Vec<u8>) {
        self.patience = Some(Instant::now() + START_TIME);
        // If the guard has died, the socket closes. If it does not read, it is useless and is killed.
        if timeout(START_TIME, self.control.write_all(&commission))
            .await
            .is_err()
        {
            let _ = self.child.start_kill();
        }
        let mut lines = Lines::default();
        let mut buffer = [0; 1024];
        loop {
            let order = async {
                match &mut self.orders {
                    Some(orders) => orders.recv().await,
                    None => std::future::pending().await,
                }
            };
            let impatient = async {
                match self.patience {
                    Some(until) => sleep_until(until.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                read = self.control.read(&mut buffer) => {
                    let Ok(read @ 1..) = read else { break };
                    lines.push(&buffer[..read]);
                    while let Some(line) = lines.next_line() {
                        if let Some(report) = Report::parse(&line) {
                            self.take_note(report);
                        }
                    }
                }
                order = order => match order {
                    Some(order) => self.order(order).await,
                    None => self.orders = None,
                },
                // The sender outlives this task, which counts as one of its servers.
                _ = self.kills.changed() => self.order(Order::Kill).await,
                () = impatient => {
                    self.patience = None;
                    let _ = self.child.start_kill();
                }
            }
        }
        if self.state.borrow().ended.is_none() {
            self.guard_lost().await;
        }
        // The guard has sent its last report and is about to exit.
        if timeout(GUARD_EXIT, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }

    async fn order(&mut self, order: Order) {
        if !self.stopping && order != Order::Kill && self.state.borrow().exit.is_none() {
            self.step(&Step::Stopping);
        }
        self.stopping = true;
        let mut time = match order {
            Order::Stop(ladder) => ladder.close.saturating_add(ladder.term),
            Order::Kill => Duration::ZERO,
        };
        time = time.saturating_add(PATIENCE);
        if self.container.is_some() {
            time = time.saturating_add(2 * ENGINE_TIME);
        }
        let until = Instant::now() + time.min(LONGEST);
        self.patience = Some(self.patience.map_or(until, |known| known.min(until)));
        let _ = self.control.write_all(order.line().as_bytes()).await;
    }

    fn take_note(&mut self, report: Report) {
        match report {
            Report::Started { pid, leader } => {
                self.leader = leader;
                if !self.stopping {
                    self.patience = None;
                }
                self.state.send_modify(|state| state.pid = pid);
                self.step(&Step::Started(pid));
                if let Some(started) = self.started.take() {
                    let _ = started.send(Ok(()));
                }
            }
            Report::Failed(failed) => {
                if let Some(started) = self.started.take() {
                    let _ = started.send(Err(failed));
                }
                self.end(Rung::Own, Duration::ZERO);
            }
            Report::Exited(status) => self.exited(ExitStatus::from_raw(status)),
            Report::SentTerm(count) => self.step(&Step::SentTerm(count)),
            Report::SentKill(count) => self.step(&Step::SentKill(count)),
            Report::StoppingContainer => self.step(&Step::StoppingContainer),
            Report::KillingContainer => self.step(&Step::KillingContainer),
            Report::Unrecorded(why) => self.step(&Step::Unrecorded(why)),
            Report::Gone { rung, took } => {
                // The server may exit because its input was closed, before the guard reads the order.
                let rung = match rung {
                    Rung::Own if self.stopping => Rung::Close,
                    rung => rung,
                };
                self.end(rung, took);
                self.step(&Step::Gone(Ended { rung, took }));
            }
        }
    }

    fn exited(&self, status: ExitStatus) {
        self.state.send_modify(|state| state.exit = Some(status));
        self.step(&Step::Exited(status));
    }

    fn end(&self, rung: Rung, took: Duration) {
        self.state.send_modify(|state| {
            state.exit.get_or_insert_with(killed);
            state.ended = Some(Ended { rung, took });
        });
    }

    /// Ends the rest of the server after the guard was killed.
    async fn guard_lost(&mut self) {
        let since = Instant::now();
        self.step(&Step::GuardLost);
        let _ = self.child.kill().await;
        if let Some(guard) = self.guard {
            self.end_orphans(Orphans {
                marker: self.marker.clone(),
                guard,
                leader: self.leader,
                container: self.container.as_ref().map(|it| it.name.clone()),
            })
            .await;
        }
        records::remove(&self.records, &self.marker.token);
        if self.state.borrow().exit.is_none() {
            self.exited(killed());
        }
        let took = since.elapsed();
        self.end(Rung::Kill, took);
        self.step(&Step::Gone(Ended {
            rung: Rung::Kill,
            took,
        }));
    }

    async fn end_orphans(&mut self, orphans: Orphans) {
        loop {
            let orphans = orphans.clone();
            let container = self.container.take();
            let ended = spawn_blocking(move || orphans.end(container.as_ref(), ORPHANS_TIME));
            let outcome = ended.await.unwrap_or_default();
            if outcome.ended > 0 {
                self.step(&Step::SentKill(outcome.ended));
            }
            if outcome.left == 0 {
                return;
            }
        }
    }

    fn step(&self, step: &Step) {
        (self.on_step)(&self.name, step);
    }
}

/// Time that a guard may take beyond the time of the ladder.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest time for an order, so that no sum of times overflows.
const LONGEST: Duration = Duration::from_hours(48);
/// Time for a guard to exit after its last report.
const GUARD_EXIT: Duration = Duration::from_secs(1);
/// Time for a guard to start a server. It is generous for the sake of machines that swap.
const START_TIME: Duration = Duration::from_secs(30);
/// Time for the remaining processes of a server to die before they are searched for again.
const ORPHANS_TIME: Duration = Duration::from_secs(5);
