//! Turns: the same load on every subject, one after the other, repeatedly, so that other activity on the
//! machine affects all of them alike.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use super::{
    Plan,
    direct::Pipe,
    http::Connection,
    subject::{self, Subject},
};
use crate::{Result, stats::percentile};

/// Number of connections of the load.
pub(super) const CONNECTIONS: usize = 32;

/// The results of one turn of one subject.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Turn {
    /// Latencies in microseconds, one call at a time.
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) calls_per_second: f64,
    /// Latency in microseconds, under load.
    pub(super) load_p99: f64,
    /// CPU time per call in microseconds, one at a time and under load.
    pub(super) cpu_sequential: f64,
    pub(super) cpu: f64,
    /// Memory in MB, before and after the load.
    pub(super) before: f64,
    pub(super) after: f64,
    /// Memory in MB of the processes that supervise servers.
    pub(super) guards: f64,
}

/// A way to the echo server.
pub(super) enum Lane {
    Direct(Pipe),
    Through(Through),
}

/// A subject with its connections.
pub(super) struct Through {
    subject: Subject,
    connections: Vec<Connection>,
    before: f64,
}

impl Lane {
    pub(super) async fn direct() -> Result<Self> {
        Ok(Self::Direct(Pipe::open(&subject::echo(1)?).await?))
    }

    pub(super) async fn through(mut subject: Subject) -> Result<Self> {
        let mut connections = vec![subject.ready().await?];
        let (before, _) = subject.resident()?;
        for number in 1..CONNECTIONS as u64 {
            connections.push(Connection::open(&subject.door, number).await?);
        }
        Ok(Self::Through(Through {
            subject,
            connections,
            before,
        }))
    }

    async fn turn(&mut self, sequential: usize, load: usize) -> Result<Turn> {
        match self {
            Self::Direct(pipe) => direct_turn(pipe, sequential, load).await,
            Self::Through(through) => through.turn(sequential, load).await,
        }
    }

    fn close(self) -> Result<()> {
        match self {
            Self::Direct(_) => Ok(()),
            Self::Through(through) => {
                drop(through.connections);
                through.subject.stop()
            }
        }
    }
}

/// Lets the lanes take turns, and returns their results, lane by lane. The first one changes every time, so
/// that no lane always runs after the same other.
pub(super) async fn race(plan: &Plan, mut lanes: Vec<Lane>) -> Result<Vec<Vec<Turn>>> {
    let mut found = vec![Vec::new(); lanes.len()];
    for lane in &mut lanes {
        lane.turn(plan.warm_up, plan.warm_up).await?;
    }
    for round in 0..plan.turns {
        for turn in 0..lanes.len() {
            let which = (round + turn) % lanes.len();
            found[which].push(lanes[which].turn(plan.sequential, plan.load).await?);
        }
    }
    for lane in lanes {
        lane.close()?;
    }
    Ok(found)
}

async fn direct_turn(pipe: &mut Pipe, sequential: usize, load: usize) -> Result<Turn> {
    let (p50, p99) = middle_and_worst(pipe.run(1, sequential).await?);
    let begin = Instant::now();
    let taken = pipe.run(CONNECTIONS, load).await?;
    let calls_per_second = rate(load, begin.elapsed());
    let (_, load_p99) = middle_and_worst(taken);
    Ok(Turn {
        p50,
        p99,
        calls_per_second,
        load_p99,
        ..Turn::default()
    })
}

impl Through {
    async fn turn(&mut self, sequential: usize, load: usize) -> Result<Turn> {
        let start = self.subject.cpu_time()?;
        let mut taken = Vec::with_capacity(sequential);
        if let Some(first) = self.connections.first_mut() {
            for _ in 0..sequential {
                taken.push(first.call().await?);
            }
        }
        let between = self.subject.cpu_time()?;
        let (p50, p99) = middle_and_worst(taken);
        let begin = Instant::now();
        let taken = self.load(load).await?;
        let elapsed = begin.elapsed();
        let end = self.subject.cpu_time()?;
        let (_, load_p99) = middle_and_worst(taken);
        let (after, guards) = self.subject.resident()?;
        Ok(Turn {
            p50,
            p99,
            calls_per_second: rate(load, elapsed),
            load_p99,
            cpu_sequential: a_call(between.saturating_sub(start), sequential),
            cpu: a_call(end.saturating_sub(between), load),
            before: self.before,
            after,
            guards,
        })
    }

    /// Makes `calls` calls on all connections at once. Returns the duration of each.
    async fn load(&mut self, calls: usize) -> Result<Vec<Duration>> {
        let left = Arc::new(AtomicUsize::new(calls));
        let mut work = Vec::new();
        for mut connection in self.connections.drain(..) {
            let left = Arc::clone(&left);
            work.push(tokio::spawn(async move {
                let mut taken = Vec::new();
                let next = || left.try_update(Relaxed, Relaxed, |left| left.checked_sub(1));
                while next().is_ok() {
                    taken.push(connection.call().await?);
                }
                Result::Ok((connection, taken))
            }));
        }
        let mut taken = Vec::with_capacity(calls);
        for work in work {
            let (connection, some) = work.await??;
            self.connections.push(connection);
            taken.extend(some);
        }
        Ok(taken)
    }
}

/// The median and the 99th percentile, in microseconds.
fn middle_and_worst(mut taken: Vec<Duration>) -> (f64, f64) {
    taken.sort_unstable();
    let micros = |percent| percentile(&taken, percent).as_secs_f64() * 1e6;
    (micros(50), micros(99))
}

#[expect(clippy::cast_precision_loss)] // The number of calls is far below the limit.
fn rate(calls: usize, elapsed: Duration) -> f64 {
    calls as f64 / elapsed.as_secs_f64()
}

/// Microseconds per call.
#[expect(clippy::cast_precision_loss)]
fn a_call(total: Duration, calls: usize) -> f64 {
    total.as_secs_f64() * 1e6 / calls as f64
}
