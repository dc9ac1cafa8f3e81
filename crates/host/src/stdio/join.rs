//! Relays a client's pipe to the running gateway.
//!
//! That gateway may be another client's `switchboard stdio`, and leave with that client. Then this
//! process connects to the next gateway or becomes it, and repeats the handshake of the client.
//! Requests in flight are answered with an error; nothing else is lost.

use std::{cell::RefCell, convert::Infallible, io, pin::pin, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use switchboard_config::{Config, Home};
use switchboard_gateway::{Gateway, PIPE_PATH, PIPE_PROJECT, PIPE_UPGRADE};
use switchboard_terminal::error::{Context as _, Error};
use switchboard_text::percent;
use switchboard_wire::{ErrorObject, Raw, Splitter, code, encode, limits, method, put_line};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    net::UnixStream,
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    Client, Hosted,
    handover::Handover,
    no_profile,
    pipes::{self, Reader, Writer},
};
use crate::runtime::Lock;

/// The longest time to wait for a process that is about to become the gateway, or to stop being it.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);
/// The longest time that a running gateway takes to answer. One that takes longer hangs.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);
/// Pause before the gateway is asked again for a resource that it was not ready for.
const REPEAT_PAUSE: Duration = Duration::from_secs(1);
/// The most bytes of the head of the gateway's response.
const HEAD_MAX: usize = 4 * 1024;
const READ_BYTES: usize = 16 * 1024;
const LOCAL_BYTES: usize = 64 * 1024;
/// The error code for requests whose gateway left.
const GATEWAY_LEFT: i64 = -32004;

pub(super) async fn pause() {
    sleep(PAUSE).await;
}

/// A connection to a gateway.
pub(super) struct Link {
    reader: Reader,
    writer: Writer,
    /// Bytes that were read after the head of the response.
    rest: BytesMut,
    /// The gateway, if it is in this process.
    hosted: Option<Host>,
}

impl Link {
    /// The two ends, for a caller that talks to the gateway itself.
    pub(super) fn into_ends(self) -> (Reader, Writer) {
        let rest = io::Cursor::new(self.rest);
        (Box::new(rest.chain(self.reader)), self.writer)
    }
}

/// A gateway in this process. It is served beside the relay, and holds the lock until it is gone.
struct Host {
    gateway: Arc<Gateway>,
    gone: JoinHandle<()>,
}

/// Connects to the running gateway, if there is one and it answers. The error is that it does not have the
/// client's profile.
pub(super) async fn connect(home: &Home, client: &Client) -> Result<Option<Link>, Error> {
    let asking = timeout(ANSWER_PATIENCE, ask(home, client));
    asking.await.ok().flatten().transpose()
}

async fn ask(home: &Home, client: &Client) -> Option<Result<Link, Error>> {
    let mut stream = UnixStream::connect(home.socket()).await.ok()?;
    let place = client.endpoint.place();
    let project = client.project();
    // A header permits few characters.
    let project = project.map(|folder| percent::encode(&folder, b"/-._~"));
    let project = project.unwrap_or_default();
    let ask = format!(
        "GET {PIPE_PATH}{place} HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: {PIPE_UPGRADE}\r\n{PIPE_PROJECT}: {project}\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).await.ok()?;
    let mut rest = BytesMut::new();
    let end = loop {
        if let Some(end) = rest.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if rest.len() > HEAD_MAX || stream.read_buf(&mut rest).await.ok()? == 0 {
            return None;
        }
    };
    let head = rest.split_to(end);
    if let Some(profile) = &client.endpoint.profile
        && head.starts_with(b"HTTP/1.1 404 ")
    {
        return Some(Err(no_profile(profile)));
    }
    if !head.starts_with(b"HTTP/1.1 101 ") {
        return None;
    }
    let (reader, writer) = stream.into_split();
    Some(Ok(Link {
        reader: Box::new(reader),
        writer: Box::new(writer),
        rest,
        hosted: None,
    }))
}

/// Relays messages between the client and the gateway until the client leaves.
pub(super) async fn relay(home: Home, client: Client, link: Link) -> Result<(), Error> {
    let (reader, writer) = pipes::open();
    let mut relay = Relay {
        incoming: Splitter::new(limits::FRAME_BYTES),
        reader,
        writer,
        memory: RefCell::new(Handover::new()?),
    };
    let mut link = Some(link);
    loop {
        let current = match link.take() {
            Some(link) => link,
            None => next_gateway(&home, &client).await?,
        };
        match relay.carry(current).await {
            Ended::ClientLeft(None) => return Ok(()),
            Ended::ClientLeft(Some(host)) => {
                // Connected clients keep the gateway running for as long as they need it, and so do
                // servers that are being listed for the first time.
                tokio::select! {
                    () = host.gateway.deserted() => host.gateway.stop().await,
                    () = host.gateway.stopped() => {}
                }
                let _ = host.gone.await;
                return Ok(());
            }
            // The gateway in this process was stopped, and this process stops with it.
            Ended::GatewayLeft(Some(host)) => {
                let _ = host.gone.await;
                return Ok(());
            }
            Ended::GatewayLeft(None) => {
                tracing::warn!("The gateway stopped; connecting to the next one.");
                relay.answer_lost().await?;
            }
        }
    }
}

/// Connects to the next gateway, or becomes it.
async fn next_gateway(home: &Home, client: &Client) -> Result<Link, Error> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(link) = connect(home, client).await? {
            return Ok(link);
        }
        home.create()?;
        if let Ok(lock) = Lock::take(home)? {
            return host(home.clone(), client.clone(), lock);
        }
        pause().await;
    }
    Err(
        Error::new("the gateway stopped, and the next one does not respond")
            .hint("restart the client"),
    )
}

fn host(home: Home, client: Client, lock: Lock) -> Result<Link, Error> {
    let config = Config::load(home.config_file())?;
    client.check_profile(&config)?;
    let hosted = Hosted::start(home, config, &client, lock)?;
    let (here, there): (DuplexStream, DuplexStream) = tokio::io::duplex(LOCAL_BYTES);
    let gateway = Arc::clone(&hosted.gateway);
    tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(there);
        // A pipe in memory does not fail.
        let project = client.project();
        let served = gateway.serve_pipe(client.endpoint, project, reader, writer);
        let _ = served.await;
    });
    let (reader, writer) = tokio::io::split(here);
    let host = Host {
        gateway: Arc::clone(&hosted.gateway),
        gone: tokio::spawn(hosted.until_stopped()),
    };
    Ok(Link {
        reader: Box::new(reader),
        writer: Box::new(writer),
        rest: BytesMut::new(),
        hosted: Some(host),
    })
}

enum Ended {
    ClientLeft(Option<Host>),
    GatewayLeft(Option<Host>),
}

/// The side that ended one direction.
enum Over {
    Client,
    Gateway,
}

struct Relay {
    reader: Reader,
    writer: Writer,
    incoming: Splitter,
    memory: RefCell<Handover>,
}

impl Relay {
    /// Relays both directions concurrently. If one waited for the other, they could deadlock.
    async fn carry(&mut self, link: Link) -> Ended {
        let Link {
            reader,
            mut writer,
            rest,
            hosted,
        } = link;
        let opening = self.memory.borrow_mut().opening();
        if let Some(opening) = opening
            && writer.write_all(&opening).await.is_err()
        {
            return Ended::GatewayLeft(hosted);
        }
        // Errors of this process itself for the client. They are rare.
        let (complaints, complained) = mpsc::channel(1);
        // Requests to repeat to the gateway.
        let (repeats, repeated) = mpsc::channel(1);
        let refused = Notify::new();
        let up = up(
            &mut self.reader,
            &mut self.incoming,
            writer,
            &self.memory,
            complaints,
            repeated,
        );
        let writer = &mut self.writer;
        let down = down(reader, rest, writer, &self.memory, complained, &refused);
        let repeating = repeat(&self.memory, &refused, repeats);
        let (mut up, mut down, mut repeating) = (pin!(up), pin!(down), pin!(repeating));
        let over = tokio::select! {
            never = &mut repeating => match never {},
            over = &mut up => match over {
                // The closed pipe notifies the gateway. Forward its last responses.
                Over::Client => {
                    down.await;
                    Over::Client
                }
                Over::Gateway => down.await,
            },
            over = &mut down => over,
        };
        match over {
            Over::Client => Ended::ClientLeft(hosted),
            Over::Gateway => Ended::GatewayLeft(hosted),
        }
    }

    /// Answers the requests that the gateway left open, and cancels its questions.
    async fn answer_lost(&mut self) -> Result<(), Error> {
        let message = "the gateway stopped during the call, which may have completed; try again";
        let error = ErrorObject::new(GATEWAY_LEFT, message);
        let lost = self.memory.borrow_mut().lost();
        let withdrawn = lost.questions.iter().map(|id| {
            let params = Raw::object([("requestId", id.raw().clone())]);
            encode::notification(method::CANCELLED, Some(&params))
        });
        let requests = lost.requests.iter();
        let failed = requests.map(|id| encode::error(Some(id), &error));
        for message in withdrawn.chain(failed) {
            say(&mut self.writer, &message)
                .await
                .context("cannot write to the client")?;
        }
        Ok(())
    }
}

/// Relays from the client to the gateway.
async fn up(
    reader: &mut Reader,
    incoming: &mut Splitter,
    mut writer: Writer,
    memory: &RefCell<Handover>,
    complaints: mpsc::Sender<Bytes>,
    mut repeated: mpsc::Receiver<Bytes>,
) -> Over {
    let mut lines = BytesMut::new();
    loop {
        lines.clear();
        while let Some(frame) = incoming.next_frame() {
            match frame {
                Ok(frame) => {
                    if let Some(frame) = memory.borrow_mut().client_says(frame) {
                        put_line(&mut lines, &frame);
                    }
                }
                Err(too_large) => {
                    let message = format!("a message is longer than {} bytes", too_large.limit);
                    let error = ErrorObject::new(code::INVALID_REQUEST, message);
                    // An error means that the client does not read any more.
                    let _ = complaints.send(encode::error(None, &error)).await;
                }
            }
        }
        if !lines.is_empty() && writer.write_all(&lines).await.is_err() {
            return Over::Gateway;
        }
        incoming.buffer().reserve(READ_BYTES);
        let read = tokio::select! {
            read = reader.read_buf(incoming.buffer()) => read,
            Some(again) = repeated.recv() => {
                if writer.write_all(&again).await.is_err() {
                    return Over::Gateway;
                }
                continue;
            }
        };
        if read.is_err() || read.is_ok_and(|read| read == 0) {
            let _ = writer.shutdown().await;
            return Over::Client;
        }
    }
}

/// Relays from the gateway to the client.
async fn down(
    mut reader: Reader,
    rest: BytesMut,
    writer: &mut Writer,
    memory: &RefCell<Handover>,
    mut complaints: mpsc::Receiver<Bytes>,
    refused: &Notify,
) -> Over {
    // The gateway enforces the limit, but adds to messages, so there is extra room.
    let mut outgoing = Splitter::new(2 * limits::FRAME_BYTES);
    outgoing.push(&rest);
    let mut lines = BytesMut::new();
    loop {
        lines.clear();
        while let Some(Ok(frame)) = outgoing.next_frame() {
            if memory.borrow_mut().gateway_says(&frame) {
                put_line(&mut lines, &frame);
            }
        }
        if memory.borrow().has_refused() {
            refused.notify_one();
        }
        if !lines.is_empty()
            && (writer.write_all(&lines).await.is_err() || writer.flush().await.is_err())
        {
            return Over::Client;
        }
        outgoing.buffer().reserve(READ_BYTES);
        tokio::select! {
            read = reader.read_buf(outgoing.buffer()) => match read {
                Ok(1..) => {}
                _ => return Over::Gateway,
            },
            Some(complaint) = complaints.recv() => {
                if say(writer, &complaint).await.is_err() {
                    return Over::Client;
                }
            }
        }
    }
}

/// Repeats the requests that the gateway was not ready for.
async fn repeat(
    memory: &RefCell<Handover>,
    refused: &Notify,
    repeats: mpsc::Sender<Bytes>,
) -> Infallible {
    loop {
        refused.notified().await;
        sleep(REPEAT_PAUSE).await;
        let again = memory.borrow_mut().again();
        if let Some(again) = again {
            // An error means that the connection to the gateway has ended.
            let _ = repeats.send(again).await;
        }
    }
}

async fn say(writer: &mut Writer, frame: &[u8]) -> io::Result<()> {
    writer.write_all(frame).await?;
    writer.write_all(b"\n").await?;
    writer.flush().await
}
