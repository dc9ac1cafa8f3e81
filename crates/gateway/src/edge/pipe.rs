//! A client on a pipe: one message a line, as over stdio.
//!
//! The same serves a client on this process's own standard input and output, and one that has joined
//! over the gateway's socket.

use std::{collections::HashMap, io, pin::pin, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use switchboard_client::{ErrorObject, Id, Raw};
use switchboard_wire::{
    Era, Frame, Message, Notification, Request, Splitter, code, encode, limits, meta, method,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::timeout,
};

use super::{Shown, client_key, era_of, nameless, progress_to, progress_token, withdrawn};
use crate::{
    call::Caller,
    desk::{self, Inquiry, View},
    gateway::Gateway,
};

/// Requests of one client under way; then its pipe is not read until one is answered.
const IN_FLIGHT_MAX: usize = 256;
/// Messages that wait to be written; then those who answer wait as well.
const OUTGOING_DEPTH: usize = 256;
/// So much is written at a time.
const WRITE_BYTES: usize = 64 * 1024;
const READ_BYTES: usize = 16 * 1024;
/// A client that has closed its end is still given the answers that come within this time.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Serves a client until it leaves.
pub(crate) async fn serve(
    gateway: Arc<Gateway>,
    view: View,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    let (outgoing, messages) = mpsc::channel(OUTGOING_DEPTH);
    let writing = tokio::spawn(write(writer, messages));
    let conversation = Conversation {
        caller: Caller {
            key: client_key(),
            client: nameless(),
        },
        initialized: false,
        in_flight: HashMap::new(),
        tasks: JoinSet::new(),
        gateway,
        view,
        outgoing,
    };
    let result = conversation.run(reader).await;
    // All senders are gone: what they left is written, if somebody reads it.
    let _ = timeout(LAST_ANSWERS, writing).await;
    result
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<Bytes>,
) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    while let Some(message) = messages.recv().await {
        buffer.extend_from_slice(&message);
        buffer.extend_from_slice(b"\n");
        // What waits goes along: one write for many small answers.
        while buffer.len() < WRITE_BYTES
            && let Ok(message) = messages.try_recv()
        {
            buffer.extend_from_slice(&message);
            buffer.extend_from_slice(b"\n");
        }
        writer.write_all(&buffer).await?;
        writer.flush().await?;
        buffer.clear();
        if buffer.capacity() > 4 * WRITE_BYTES {
            buffer = BytesMut::new();
        }
    }
    Ok(())
}

struct Conversation {
    gateway: Arc<Gateway>,
    view: View,
    caller: Caller,
    initialized: bool,
    /// Requests that can be withdrawn. Those that have ended are swept when there are many.
    in_flight: HashMap<Id, oneshot::Sender<()>>,
    tasks: JoinSet<()>,
    outgoing: mpsc::Sender<Bytes>,
}

impl Conversation {
    async fn run(mut self, mut reader: impl AsyncRead + Unpin) -> io::Result<()> {
        let mut splitter = Splitter::new(limits::FRAME_BYTES);
        let mut changes = self.gateway.context().shelf.changes();
        let mut shown = Shown::now(self.gateway.context(), &self.view);
        let gateway = Arc::clone(&self.gateway);
        let mut stopped = pin!(gateway.stopped());
        let result = loop {
            match splitter.next_frame() {
                Some(Ok(frame)) => {
                    self.frame(frame).await;
                    continue;
                }
                Some(Err(too_large)) => {
                    let message = format!("a message is longer than {} bytes", too_large.limit);
                    let error = ErrorObject::new(code::INVALID_REQUEST, message);
                    self.say(encode::error(None, &error)).await;
                    continue;
                }
                None => {}
            }
            let buffer = splitter.buffer();
            buffer.reserve(READ_BYTES);
            tokio::select! {
                read = reader.read_buf(buffer) => match read {
                    Ok(0) => break Ok(()),
                    Ok(_) => {}
                    Err(error) => break Err(error),
                },
                changed = changes.changed() => {
                    if changed.is_err() {
                        break Ok(());
                    }
                    let now = Shown::now(self.gateway.context(), &self.view);
                    // A client that has not opened yet asks for the lists anyway.
                    if self.initialized {
                        for change in now.changes_since(shown) {
                            self.say(change).await;
                        }
                    }
                    shown = now;
                }
                Some(_) = self.tasks.join_next(), if !self.tasks.is_empty() => {}
                () = &mut stopped => break Ok(()),
            }
        };
        let last = async { while self.tasks.join_next().await.is_some() {} };
        let _ = timeout(LAST_ANSWERS, last).await;
        result
    }

    async fn frame(&mut self, frame: Bytes) {
        match Frame::parse(frame) {
            Ok(Frame::Single(message)) => self.message(message).await,
            Ok(Frame::Batch(messages)) => {
                // Each is answered on a line of its own, which every client that sends batches reads.
                for message in messages {
                    match message {
                        Ok(message) => self.message(message).await,
                        Err(error) => self.refuse(None, error.code(), &error.to_string()).await,
                    }
                }
            }
            Err(error) => self.refuse(None, error.code(), &error.to_string()).await,
        }
    }

    async fn message(&mut self, message: Message) {
        match message {
            Message::Request(request) => self.request(request).await,
            Message::Notification(notification) => self.notification(&notification),
            // The gateway asks its clients nothing, so that no answer is waited for.
            Message::Response(_) => {}
        }
    }

    fn notification(&mut self, notification: &Notification) {
        if notification.method == method::INITIALIZED {
            self.initialized = true;
        }
        if let Some(id) = withdrawn(notification)
            && let Some(cancel) = self.in_flight.remove(&id)
        {
            let _ = cancel.send(());
        }
    }

    async fn request(&mut self, request: Request) {
        if request.method == method::INITIALIZE {
            let params = request.params.as_ref();
            let info = params.and_then(|params| params.member("clientInfo"));
            self.caller.client = desk::client_name(info);
            self.initialized = true;
            let revision = desk::negotiate(params);
            let answer = desk::initialize(&self.gateway, &self.view, revision);
            return self.say(reply(&request.id, answer)).await;
        }
        let era = era_of(request.frame(), request.params.as_ref());
        if era == Era::Modern && self.caller.client == nameless() {
            let meta = request
                .params
                .as_ref()
                .and_then(|params| params.member(meta::META));
            self.caller.client =
                desk::client_name(meta.and_then(|meta| meta.member(meta::CLIENT_INFO)));
        }
        let same = self.in_flight.get(&request.id);
        if same.is_some_and(|cancel| !cancel.is_closed()) {
            let message = "a request of this id is still under way";
            return self
                .refuse(Some(&request.id), code::INVALID_REQUEST, message)
                .await;
        }
        // Held back by not reading: the client's own pipe fills up.
        while self.tasks.len() >= IN_FLIGHT_MAX {
            self.tasks.join_next().await;
        }
        if self.in_flight.len() >= 2 * IN_FLIGHT_MAX {
            self.in_flight.retain(|_, cancel| !cancel.is_closed());
        }
        let (cancel, cancelled) = oneshot::channel();
        self.in_flight.insert(request.id.clone(), cancel);
        let outgoing = self.outgoing.clone();
        let progress = progress_token(&request).map(|token| {
            let outgoing = outgoing.clone();
            // A client that does not read its progress misses some; nobody waits for it.
            progress_to(token, move |message| drop(outgoing.try_send(message)))
        });
        let answer = answer(
            Arc::clone(&self.gateway),
            self.view.clone(),
            self.caller.clone(),
            era,
            request,
            progress,
        );
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                message = answer => drop(outgoing.send(message).await),
                // Withdrawn: there is no answer. (An error means that nobody can withdraw it any more.)
                Ok(()) = cancelled => {}
            }
        });
    }

    async fn refuse(&mut self, id: Option<&Id>, code: i64, message: &str) {
        let error = ErrorObject::new(code, message);
        self.say(encode::error(id, &error)).await;
    }

    async fn say(&mut self, message: Bytes) {
        // An error means that the client does not read any more; its end is noticed elsewhere.
        let _ = self.outgoing.send(message).await;
    }
}

/// Answers a request: the message to send.
async fn answer(
    gateway: Arc<Gateway>,
    view: View,
    caller: Caller,
    era: Era,
    request: Request,
    progress: Option<crate::call::Progress>,
) -> Bytes {
    let inquiry = Inquiry {
        era,
        method: request.method,
        params: request.params,
        progress,
    };
    let answer = desk::answer(&gateway, &view, &caller, inquiry).await;
    reply(&request.id, answer)
}

fn reply(id: &Id, answer: Result<Raw, ErrorObject>) -> Bytes {
    match answer {
        Ok(result) => encode::result(id, &result),
        Err(error) => encode::error(Some(id), &error),
    }
}
