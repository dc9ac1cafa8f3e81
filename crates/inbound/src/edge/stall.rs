//! Closes connections whose client does not read.

use std::{
    io::{self, IoSlice},
    os::fd::{AsFd, BorrowedFd},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// The longest time without progress while there are bytes for the client to read.
const STUCK: Duration = Duration::from_secs(30);

/// The decision to close a stalled connection. Connections are closed unless they are kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct StallPolicy(Arc<AtomicBool>);

impl StallPolicy {
    /// Keeps the connection open however long it stalls.
    pub(crate) fn keep(&self) {
        self.0.store(true, Relaxed);
    }

    fn is_endless(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// A connection that is closed when there are bytes for the client to read and none are read.
#[derive(Debug)]
pub(crate) struct StallGuard<S> {
    stream: S,
    patience: StallPolicy,
    /// Runs while there are bytes to read and the other side does not read them.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S> StallGuard<S> {
    pub(crate) const fn new(stream: S, patience: StallPolicy) -> Self {
        Self {
            stream,
            patience,
            stuck: None,
        }
    }

    fn judge<T>(
        &mut self,
        cx: &mut Context<'_>,
        moved: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if moved.is_ready() {
            self.stuck = None;
        } else if !self.patience.is_endless() {
            let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(STUCK)));
            if stuck.as_mut().poll(cx).is_ready() {
                let error = io::Error::new(io::ErrorKind::TimedOut, "the peer does not read");
                return Poll::Ready(Err(error));
            }
        }
        moved
    }
}

impl<S: AsFd> AsFd for StallGuard<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let moved = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, moved)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let moved = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.judge(cx, moved)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        time::{Instant, timeout},
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connection_without_a_reader_is_closed() {
        let (near, mut far) = duplex(4);
        let mut near = StallGuard::new(near, StallPolicy::default());
        near.write_all(b"full").await.unwrap();
        let started = Instant::now();
        let error = near.write_all(b"more").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed().as_secs(), STUCK.as_secs());
        far.read_u8().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn kept_connection_waits_for_its_reader() {
        let (near, _far) = duplex(4);
        let patience = StallPolicy::default();
        patience.keep();
        let mut near = StallGuard::new(near, patience);
        near.write_all(b"full").await.unwrap();
        let long = Duration::from_hours(1);
        timeout(long, near.write_all(b"more")).await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn slow_reader_keeps_its_connection() {
        let (near, mut far) = duplex(1);
        let mut near = StallGuard::new(near, StallPolicy::default());
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            for _ in 0..10 {
                sleep(Duration::from_secs(29)).await;
                read.push(far.read_u8().await.unwrap());
            }
            read
        });
        near.write_all(b"0123456789").await.unwrap();
        assert_eq!(reading.await.unwrap(), b"0123456789");
    }
}
