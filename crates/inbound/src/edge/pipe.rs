//! A client on a pipe: one message per line, as over stdio.
//!
//! It serves the client on this process's own standard input and output, and clients that connect
//! over the gateway's socket.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use bytes::{Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use switchboard_base::{backchannel::Sink, caller::Realm, project::Project, view::View};
use switchboard_client::ErrorObject;
use switchboard_core::core::Core;
use switchboard_wire::{Splitter, code, limits, put_line};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{Notify, mpsc},
    time::{sleep, timeout},
};

use super::conversation::{Conversation, LAST_ANSWERS, LOOK, Source, Writer};

/// The unwritten bytes beyond which responses wait.
const ANSWERS_BYTES: usize = 4 * 1024 * 1024;
/// The unwritten bytes beyond which notifications are dropped.
const NEWS_BYTES: usize = 16 * 1024 * 1024;
/// The bytes that are collected for one write.
const WRITE_BYTES: usize = 64 * 1024;
const READ_BYTES: usize = 16 * 1024;

/// Serves a client until it leaves.
pub(crate) async fn serve(
    core: Arc<Core>,
    realm: Realm,
    view: View,
    project: Project,
    reader: impl AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    is_gone: impl Fn() -> bool + Send,
) -> io::Result<()> {
    // Bounded by bytes instead of messages: notifications stop at `NEWS_BYTES`, and responses, one
    // for each request in flight, wait at `ANSWERS_BYTES`. No message is empty.
    let (messages, written) = mpsc::unbounded_channel();
    let waiting = Arc::new(Waiting::default());
    let writing = tokio::spawn(write(writer, written, Arc::clone(&waiting)));
    let sink = Arc::new(Outgoing { messages, waiting });
    let mut lines = Lines {
        reader,
        splitter: Splitter::new(limits::FRAME_BYTES),
        broken: None,
        is_gone,
    };
    let conversation = Conversation::new(core, view, realm, sink);
    let conversation = conversation.working_in(project);
    conversation.run(&mut lines).await;
    // All senders are gone. Give the client time to read the rest.
    let _ = timeout(LAST_ANSWERS, writing).await;
    lines.broken.map_or(Ok(()), Err)
}

/// Detects that a connection is closed in both directions, even if bytes are unread.
#[derive(Debug)]
pub(crate) struct Hangup(Option<OwnedFd>);

impl Hangup {
    pub(crate) fn of(stream: &impl AsFd) -> Self {
        // Without a descriptor of its own, the end is noticed later, by a read.
        Self(stream.as_fd().try_clone_to_owned().ok())
    }

    pub(crate) fn is_there(&self) -> bool {
        let Some(stream) = &self.0 else {
            return false;
        };
        let mut polled = [PollFd::new(stream, PollFlags::empty())];
        poll(&mut polled, Some(&Timespec::default())).is_ok()
            && polled[0].revents().contains(PollFlags::HUP)
    }
}

/// The client's lines.
struct Lines<R, G> {
    reader: R,
    splitter: Splitter,
    broken: Option<io::Error>,
    /// Returns `true` if the client has closed both directions.
    is_gone: G,
}

impl<R: AsyncRead + Unpin + Send, G: Fn() -> bool + Send> Source for &mut Lines<R, G> {
    async fn gone(&mut self) {
        while !(self.is_gone)() {
            sleep(LOOK).await;
        }
    }

    async fn next(&mut self) -> Option<Result<Bytes, ErrorObject>> {
        loop {
            match self.splitter.next_frame() {
                Some(Ok(frame)) => return Some(Ok(frame)),
                Some(Err(too_large)) => {
                    let message = format!("a message is longer than {} bytes", too_large.limit);
                    return Some(Err(ErrorObject::new(code::INVALID_REQUEST, message)));
                }
                None => {}
            }
            let Lines {
                reader, splitter, ..
            } = &mut **self;
            let buffer = splitter.buffer();
            buffer.reserve(READ_BYTES);
            match reader.read_buf(buffer).await {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => {
                    self.broken = Some(error);
                    return None;
                }
            }
        }
    }
}

/// The writing half of the client's pipe.
struct Outgoing {
    messages: mpsc::UnboundedSender<Bytes>,
    waiting: Arc<Waiting>,
}

/// The bytes that wait to be written.
#[derive(Default)]
struct Waiting {
    bytes: AtomicUsize,
    less: Notify,
}

impl Outgoing {
    fn send(&self, message: Bytes) -> bool {
        self.waiting.bytes.fetch_add(message.len(), Relaxed);
        // An error means that the client has stopped reading; its end is noticed elsewhere.
        self.messages.send(message).is_ok()
    }
}

impl Sink for Outgoing {
    fn put(&self, message: Bytes) -> bool {
        self.waiting.bytes.load(Relaxed) <= NEWS_BYTES && self.send(message)
    }
}

impl Writer for Outgoing {
    async fn say(&self, message: Bytes) {
        self.room().await;
        self.send(message);
    }

    fn is_full(&self) -> bool {
        self.waiting.bytes.load(Relaxed) > ANSWERS_BYTES && !self.messages.is_closed()
    }

    async fn room(&self) {
        loop {
            // Created before the check, so that a later change is not missed.
            let less = self.waiting.less.notified();
            if !self.is_full() {
                return;
            }
            tokio::select! {
                () = less => {}
                () = self.messages.closed() => {}
            }
        }
    }
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut messages: mpsc::UnboundedReceiver<Bytes>,
    waiting: Arc<Waiting>,
) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    while let Some(message) = messages.recv().await {
        let mut taken = message.len();
        put_line(&mut buffer, &message);
        // Waiting messages are added: one write for many small responses.
        while buffer.len() < WRITE_BYTES
            && let Ok(message) = messages.try_recv()
        {
            taken += message.len();
            put_line(&mut buffer, &message);
        }
        writer.write_all(&buffer).await?;
        writer.flush().await?;
        waiting.bytes.fetch_sub(taken, Relaxed);
        waiting.less.notify_waiters();
        buffer.clear();
        if buffer.capacity() > 4 * WRITE_BYTES {
            buffer = BytesMut::new();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixStream;

    use super::*;

    #[tokio::test]
    async fn hangup_is_detected_with_unread_bytes() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let hangup = Hangup::of(&near);
        far.write_all(b"unread").await.unwrap();
        assert!(!hangup.is_there());
        // A client that has closed its sending end may still wait for responses.
        far.shutdown().await.unwrap();
        assert!(!hangup.is_there());
        drop(far);
        assert!(hangup.is_there());
    }
}
