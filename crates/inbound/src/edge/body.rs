//! Bodies of HTTP requests and responses.

use std::{
    pin::{Pin, pin},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::{Context, Poll},
};

use axum::body::Body as AxumBody;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError};
use hyper::body::{Body, Frame, SizeHint};
use switchboard_wire::limits;

use super::event_stream::Replay;

/// The body of a response.
pub(crate) enum Answer {
    Whole(Option<Bytes>),
    Events(Replay),
    Page(AxumBody),
    Until(Box<Until>),
}

impl Answer {
    pub(crate) const fn empty() -> Self {
        Self::Whole(None)
    }
}

/// The reason why the body of a request was not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    TooLong,
    Broken,
    Late,
    /// Too many other bodies are being read.
    Crowded,
}

impl Unread {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "it is called with what reading has"
    )]
    pub(crate) fn of(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        if error.is::<LengthLimitError>() {
            Self::TooLong
        } else {
            Self::Broken
        }
    }
}

/// Bytes of partially received bodies from clients without a token.
pub(crate) static UNFINISHED: AtomicUsize = AtomicUsize::new(0);
/// The same for clients with tokens that the owner created.
pub(crate) static UNFINISHED_OF_TOKENS: AtomicUsize = AtomicUsize::new(0);
/// The most bytes of each.
const UNFINISHED_BYTES: usize = 4 * limits::FRAME_BYTES;
/// The number of bytes at the start of each body that are not counted.
const FREE_BYTES: usize = 64 * 1024;

/// The counted bytes of one body while it is being read.
struct Unfinished<'a> {
    all: &'a AtomicUsize,
    bytes: usize,
}

impl Unfinished<'_> {
    /// Counts more bytes. Returns `false` if there are too many.
    fn grow(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.all.fetch_add(bytes, Relaxed) + bytes <= UNFINISHED_BYTES
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Relaxed);
    }
}

/// Reads the body of a request from a client that shares the budget `all` with others.
pub(crate) async fn read_counted<B>(body: B, all: &AtomicUsize) -> Result<Bytes, Unread>
where
    B: Body<Data = Bytes, Error = Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = pin!(body);
    let mut unfinished = Unfinished { all, bytes: 0 };
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(Unread::of)?.into_data() else {
            continue;
        };
        if first.is_empty() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&first);
        }
        rest.extend_from_slice(&data);
        let counted = rest.len().saturating_sub(FREE_BYTES);
        if counted > unfinished.bytes && !unfinished.grow(counted - unfinished.bytes) {
            return Err(Unread::Crowded);
        }
    }
    Ok(if rest.is_empty() {
        first
    } else {
        rest.freeze()
    })
}

/// A body that may be endless, bound to a future that ends it.
pub(crate) struct Until {
    body: Answer,
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Until {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, <Answer as Body>::Error>>> {
        if self.end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }
}

impl Answer {
    /// Ends a body of unknown length when `end` completes. Other bodies are returned unchanged.
    pub(crate) fn until<T>(self, end: impl Future<Output = T> + Send + 'static) -> Self {
        if self.size_hint().exact().is_some() {
            return self;
        }
        let end = Box::pin(async move { drop(end.await) });
        Self::Until(Box::new(Until { body: self, end }))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(replay) => replay
                .poll_next(cx)
                .map(|next| next.map(|event| Ok(Frame::data(event)))),
            Self::Page(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Until(until) => until.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Events(_) | Self::Until(_) => false,
            Self::Page(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Events(_) | Self::Until(_) => SizeHint::default(),
            Self::Page(body) => body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;

    use super::*;

    fn parts(
        count: usize,
    ) -> impl Body<Data = Bytes, Error = Box<dyn std::error::Error + Send + Sync>> {
        let part = || Ok(Frame::data(Bytes::from(vec![b'x'; FREE_BYTES])));
        StreamBody::new(stream::iter((0..count).map(move |_| part())))
    }

    #[tokio::test]
    async fn bodies_without_token_share_one_budget() {
        let all = AtomicUsize::new(0);
        let whole = read_counted(parts(3), &all).await.unwrap();
        assert_eq!(whole.len(), 3 * FREE_BYTES);
        assert_eq!(all.load(Relaxed), 0);
        let others = AtomicUsize::new(UNFINISHED_BYTES);
        let long = read_counted(parts(2), &others).await;
        assert_eq!(long, Err(Unread::Crowded));
        assert_eq!(others.load(Relaxed), UNFINISHED_BYTES);
        // Short bodies need none of the budget.
        assert!(read_counted(parts(1), &others).await.is_ok());
    }
}
