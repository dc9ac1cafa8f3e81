//! The memory of an idle connection.
//!
//! Each kind is opened in a fresh process: memory that was freed before would be reused and not be counted.

use std::{future::poll_fn, io::Write, process::Command, sync::Arc};

use bytes::Bytes;
use switchboard_client::{
    Client, Era, Raw,
    memory::{Memory, ServerEnd},
    transport::{Connect, Outgoing, OutgoingKind, Transport, TransportEvent},
};
use switchboard_wire::{Frame, Id, Message, encode, method};
use tokio::{runtime::Handle, sync::mpsc};

use super::{Flavour, HOLD, load, system};
use crate::{Result, report::Table};

/// The depth of the queues of a memory transport. They grow only as they fill.
const DEPTH: usize = 64;

const CONNECTIONS: &str = "connections";
const TRANSPORTS: &str = "transports";
const STDIO: &str = "stdio";

/// The cost of one connection.
#[derive(Debug, Clone, Copy)]
struct Weight {
    kib: Option<f64>,
    tasks: f64,
}

pub(super) fn table(memory: usize, stdio: usize) -> Result<Table> {
    let whole = ask(CONNECTIONS, memory)?;
    let transport = ask(TRANSPORTS, memory)?;
    let client = Weight {
        kib: whole
            .kib
            .zip(transport.kib)
            .map(|(whole, part)| whole - part),
        tasks: whole.tasks - transport.tasks,
    };
    let rows = [
        ("over memory, with the server's end", memory, whole),
        ("of that, transport and server's end", memory, transport),
        ("of that, the client itself", memory, client),
        (
            "over stdio after one call, this side",
            stdio,
            ask(STDIO, stdio)?,
        ),
    ];
    let row = |(what, count, weight): (&str, usize, Weight)| {
        vec![
            what.into(),
            count.into(),
            weight.kib.into(),
            weight.tasks.into(),
        ]
    };
    Ok(Table {
        title: "An idle connection",
        columns: vec!["what", "opened", "KiB each", "tasks each"],
        rows: rows.map(row).to_vec(),
    })
}

fn ask(what: &str, count: usize) -> Result<Weight> {
    let output = Command::new(std::env::current_exe()?)
        .args([HOLD, what, &count.to_string()])
        .output()?;
    let said = String::from_utf8(output.stdout)?;
    let mut words = said.split_whitespace();
    let mut next = || {
        words
            .next()
            .ok_or("the process that holds connections failed")
    };
    Ok(Weight {
        kib: next()?.parse().ok(),
        tasks: next()?.parse()?,
    })
}

/// Opens `count` of them, and prints the cost of each.
pub(crate) fn hold(what: &str, count: u32) -> Result<()> {
    Flavour::Current.runtime()?.block_on(async {
        // One first: one-time setup does not count as the cost of a connection.
        let first = open(what).await?;
        settle().await;
        let memory = system::resident_kib();
        let tasks = Handle::current().metrics().num_alive_tasks();
        let mut held = Vec::new();
        for _ in 0..count {
            held.push(open(what).await?);
        }
        settle().await;
        let each = |all: u32| f64::from(all) / f64::from(count);
        let kib = memory
            .zip(system::resident_kib())
            .map(|(from, to)| each(to.saturating_sub(from)).to_string());
        let tasks = Handle::current().metrics().num_alive_tasks() - tasks;
        let kib = kib.as_deref().unwrap_or("-");
        writeln!(std::io::stdout(), "{kib} {}", each(u32::try_from(tasks)?))?;
        drop((first, held));
        Ok(())
    })
}

/// A held object, with everything that keeps it open.
#[expect(dead_code, reason = "held for their memory")]
enum Held {
    Connection(Client, ServerEnd, mpsc::Receiver<ServerEnd>),
    Transport(
        Box<dyn Transport>,
        ServerEnd,
        Memory,
        mpsc::Receiver<ServerEnd>,
    ),
    Stdio(Client),
}

async fn open(what: &str) -> Result<Held> {
    let (memory, mut servers) = Memory::new(DEPTH);
    match what {
        CONNECTIONS => {
            let client = Client::builder("bench", "0")
                .known_era(Era::Legacy)
                .connect(memory);
            let mut end = servers.recv().await.ok_or("the client is gone")?;
            greet(&mut end).await?;
            client.ready().await?;
            Ok(Held::Connection(client, end, servers))
        }
        TRANSPORTS => {
            let mut transport = memory
                .connect()
                .await
                .map_err(|down| down.message.to_string())?;
            let mut end = servers.recv().await.ok_or("the transport is gone")?;
            // The same frames as with a client, so that the queues have the same size.
            for message in [
                encode::request(&Id::from(1), method::INITIALIZE, None),
                encode::notification(method::INITIALIZED, None),
            ] {
                transport.send(outgoing(message));
            }
            greet(&mut end).await?;
            let event = poll_fn(|cx| transport.poll_event(cx)).await;
            if !matches!(event, TransportEvent::Frame { .. }) {
                return Err("no frame arrived".into());
            }
            Ok(Held::Transport(transport, end, memory, servers))
        }
        STDIO => {
            let client = load::connect().await?;
            client.request(load::METHOD, None).await?;
            Ok(Held::Stdio(client))
        }
        _ => Err("unknown kind".into()),
    }
}

/// Performs the server's part of the handshake.
async fn greet(end: &mut ServerEnd) -> Result<()> {
    let frame = end.frames.recv().await.ok_or("the client is gone")?;
    let Frame::Single(Message::Request(request)) = Frame::parse(frame)? else {
        return Err("the client does not begin with a request".into());
    };
    let welcome = Raw::parse(super::echo::WELCOME)?;
    end.client
        .send(encode::result(&request.id, &welcome))
        .await?;
    end.frames.recv().await.ok_or("the client is gone")?;
    Ok(())
}

fn outgoing(frame: Bytes) -> Outgoing {
    Outgoing {
        frame,
        kind: OutgoingKind::Answer,
        headers: Arc::from([]),
    }
}

/// Lets every task run until it is idle.
async fn settle() {
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
}
