//! A minimal multiplexer, with which many callers share the pipes: a task hands each response to its caller.
//! No deadlines, no cancellation, no states, no checks.

use std::{
    collections::HashMap,
    io::{Error, ErrorKind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{
    bare::{self, Bare},
    load::Load,
};
use crate::Result;

struct Ask {
    id: u64,
    answer: oneshot::Sender<Bytes>,
}

/// The most calls that are written together.
const TOGETHER: usize = 64;

/// Keeps up the load, and returns the number of calls.
pub(super) async fn run(bare: Bare, load: Arc<Load>) -> Result<(Bare, u32)> {
    let (asks, receiver) = mpsc::channel(1_024);
    let pump = tokio::spawn(pump(bare, receiver));
    let ids = Arc::new(AtomicU64::new(100_000));
    let mut callers = JoinSet::new();
    for _ in 0..load.in_flight {
        callers.spawn(call(asks.clone(), Arc::clone(&ids), Arc::clone(&load)));
    }
    drop(asks);
    let mut calls = 0;
    while let Some(made) = callers.join_next().await {
        calls += made??;
    }
    Ok((pump.await??, calls))
}

async fn call(asks: mpsc::Sender<Ask>, ids: Arc<AtomicU64>, load: Arc<Load>) -> Result<u32> {
    let mut calls = 0;
    while load.more() {
        let (answer, answered) = oneshot::channel();
        let id = ids.fetch_add(1, Relaxed);
        asks.try_send(Ask { id, answer })?;
        drop(std::hint::black_box(answered.await?));
        calls += 1;
    }
    Ok(calls)
}

/// Writes calls and reads responses, until all callers are gone and no response is outstanding.
async fn pump(mut bare: Bare, mut asks: mpsc::Receiver<Ask>) -> std::io::Result<Bare> {
    let mut waiting: HashMap<u64, oneshot::Sender<Bytes>> = HashMap::new();
    let mut batch = Vec::with_capacity(TOGETHER);
    let mut out = Vec::new();
    let mut read = Vec::with_capacity(64 * 1024);
    let mut open = true;
    while open || !waiting.is_empty() {
        tokio::select! {
            biased;
            taken = asks.recv_many(&mut batch, TOGETHER), if open => {
                open = taken > 0;
                for Ask { id, answer } in batch.drain(..) {
                    bare::write_line(&mut out, id);
                    waiting.insert(id, answer);
                }
                bare.stdin.write_all(&out).await?;
                out.clear();
            }
            count = bare.stdout.read_buf(&mut read) => {
                if count? == 0 {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                let mut rest = &read[..];
                while let Some(end) = memchr::memchr(b'\n', rest) {
                    let id = id_of(rest).ok_or_else(|| Error::from(ErrorKind::InvalidData))?;
                    if let Some(answer) = waiting.remove(&id) {
                        let _ = answer.send(Bytes::copy_from_slice(&rest[..end]));
                    }
                    rest = &rest[end + 1..];
                }
                let done = read.len() - rest.len();
                read.drain(..done);
                read.reserve(64 * 1024);
            }
        }
    }
    Ok(bare)
}

fn id_of(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(super::echo::REQUEST)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}
