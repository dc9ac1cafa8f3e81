//! Bodies of HTTP responses.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Body as AxumBody;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::tape::Player;

/// The body of a response.
pub(crate) enum Answer {
    Whole(Option<Bytes>),
    Events(Player),
    Page(AxumBody),
}

impl Answer {
    pub(crate) const fn empty() -> Self {
        Self::Whole(None)
    }
}

/// A body that may go on for ever, bound to something that ends.
struct Until<F> {
    body: AxumBody,
    end: Pin<Box<F>>,
}

/// Ends a body of unknown length at that time at the latest. Others are as they were.
pub(crate) fn until(body: AxumBody, end: impl Future<Output = ()> + Send + 'static) -> AxumBody {
    if body.size_hint().exact().is_some() {
        return body;
    }
    let end = Box::pin(end);
    AxumBody::new(Until { body, end })
}

impl<F: Future<Output = ()>> Body for Until<F> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(cx)
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
            Self::Events(player) => player
                .poll_next(cx)
                .map(|next| next.map(|event| Ok(Frame::data(event)))),
            Self::Page(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Events(_) => false,
            Self::Page(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Events(_) => SizeHint::default(),
            Self::Page(body) => body.size_hint(),
        }
    }
}
