//! Keeps a number of calls in flight, over the library or over the bare pipes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::json;
use switchboard_client::{
    Client, Era, Raw,
    stdio::{Command, Stdio},
};
use tokio::task::JoinSet;

use super::{SERVE, Way, bare::Bare, mux, system};
use crate::Result;

/// The request of every call.
pub(super) const METHOD: &str = "tools/call";
pub(super) const TOOL: &str = "echo";
pub(super) const MESSAGE: &str = "the quick brown fox";

/// The number of calls in flight, and when to stop.
pub(super) struct Load {
    pub(super) in_flight: usize,
    until: Until,
    latencies: Option<Mutex<Vec<u64>>>,
}

enum Until {
    Stopped(AtomicBool),
    /// The number of remaining calls.
    Calls(AtomicU64),
}

impl Load {
    pub(super) fn until_stopped(in_flight: usize) -> Arc<Self> {
        Arc::new(Self {
            in_flight,
            until: Until::Stopped(AtomicBool::new(false)),
            latencies: None,
        })
    }

    pub(super) fn of_calls(in_flight: usize, calls: u64) -> Arc<Self> {
        Arc::new(Self {
            in_flight,
            until: Until::Calls(AtomicU64::new(calls)),
            latencies: None,
        })
    }

    /// The same load, with the latency of each call recorded.
    pub(super) fn with_latencies(self: Arc<Self>) -> Arc<Self> {
        Arc::new(Self {
            in_flight: self.in_flight,
            until: Until::Stopped(AtomicBool::new(false)),
            latencies: Some(Mutex::default()),
        })
    }

    pub(super) fn stop(&self) {
        if let Until::Stopped(stopped) = &self.until {
            stopped.store(true, Relaxed);
        }
    }

    /// Tests if there is one more call to make.
    pub(super) fn more(&self) -> bool {
        match &self.until {
            Until::Stopped(stopped) => !stopped.load(Relaxed),
            Until::Calls(left) => left
                .try_update(Relaxed, Relaxed, |left| left.checked_sub(1))
                .is_ok(),
        }
    }
}

/// The calls made in a period of time.
pub(super) struct Window {
    calls: u32,
    elapsed: Duration,
    cpu: Option<Duration>,
    /// Latencies in nanoseconds.
    pub(super) latencies: Vec<u64>,
}

impl Window {
    /// Calls per second.
    pub(super) fn rate(&self) -> f64 {
        f64::from(self.calls) / self.elapsed.as_secs_f64()
    }

    /// CPU time of this process, in microseconds per call.
    pub(super) fn cpu_micros(&self) -> Option<f64> {
        self.cpu
            .map(|cpu| cpu.as_secs_f64() * 1e6 / f64::from(self.calls.max(1)))
    }
}

/// A client and bare pipes, each with its own child.
pub(super) struct Lines {
    bare: Option<Bare>,
    client: Client,
}

impl Lines {
    pub(super) async fn open() -> Result<Self> {
        Ok(Self {
            bare: Some(Bare::open()?),
            client: connect().await?,
        })
    }

    pub(super) async fn run(&mut self, way: Way, load: Arc<Load>) -> Result<Window> {
        let cpu = system::cpu_time();
        let start = Instant::now();
        let calls = match way {
            Way::Bare | Way::Mux => {
                let bare = self.bare.take().ok_or("the bare pipes broke before")?;
                let (bare, calls) = match way {
                    Way::Mux => mux::run(bare, Arc::clone(&load)).await?,
                    // In a task, as the others are.
                    _ => tokio::spawn(bare.run(Arc::clone(&load))).await??,
                };
                self.bare = Some(bare);
                calls
            }
            Way::Raw | Way::Typed => {
                let mut callers = JoinSet::new();
                for _ in 0..load.in_flight {
                    callers.spawn(call(self.client.clone(), way, Arc::clone(&load)));
                }
                let mut calls = 0;
                while let Some(made) = callers.join_next().await {
                    calls += made??;
                }
                calls
            }
        };
        let elapsed = start.elapsed();
        let latencies = load.latencies.as_ref().map(|latencies| {
            let mut latencies = latencies.lock();
            std::mem::take(&mut *latencies)
        });
        Ok(Window {
            calls,
            elapsed,
            cpu: cpu
                .zip(system::cpu_time())
                .map(|(from, to)| to.saturating_sub(from)),
            latencies: latencies.unwrap_or_default(),
        })
    }

    pub(super) async fn close(self) {
        self.client.stop().await;
    }
}

/// A connected client whose server is this program.
pub(super) async fn connect() -> Result<Client> {
    let server = Command::new(std::env::current_exe()?).arg(SERVE);
    let client = Client::builder("bench", "0")
        .known_era(Era::Legacy)
        .connect(Stdio::new(server));
    client.ready().await?;
    Ok(client)
}

/// Makes one call after another, and returns their number.
async fn call(client: Client, way: Way, load: Arc<Load>) -> Result<u32> {
    let params = Raw::object([
        ("name", Raw::string(TOOL)),
        (
            "arguments",
            Raw::object([("message", Raw::string(MESSAGE))]),
        ),
    ]);
    let mut latencies = Vec::new();
    let mut calls = 0;
    while load.more() {
        let start = load.latencies.is_some().then(Instant::now);
        match way {
            Way::Typed => {
                let result = client.call_tool(TOOL, json!({"message": MESSAGE})).await?;
                drop(std::hint::black_box(result));
            }
            Way::Raw | Way::Bare | Way::Mux => {
                let result = client.request(METHOD, params.clone()).await?;
                drop(std::hint::black_box(result));
            }
        }
        if let Some(start) = start {
            latencies.push(u64::try_from(start.elapsed().as_nanos())?);
        }
        calls += 1;
    }
    if let Some(all) = &load.latencies {
        all.lock().append(&mut latencies);
    }
    Ok(calls)
}
