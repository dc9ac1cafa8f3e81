//! Bodies of answers: a document, or events as they come.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::{
    Response, StatusCode,
    body::{Body, Bytes, Frame},
    header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue},
};
use tokio::sync::{mpsc, oneshot};

pub(crate) enum Reply {
    Whole(Option<Bytes>),
    Events {
        events: mpsc::Receiver<Bytes>,
        /// Dropped with the body, so that whoever writes learns that nobody reads.
        _reading: Option<oneshot::Sender<()>>,
    },
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events { events, .. } => {
                let next = events.poll_recv(context);
                next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }
}

pub(crate) fn status(status: StatusCode) -> Response<Reply> {
    let mut response = Response::new(Reply::Whole(None));
    *response.status_mut() = status;
    response
}

pub(crate) fn json(code: StatusCode, text: String) -> Response<Reply> {
    let mut response = status(code);
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    *response.body_mut() = Reply::Whole(Some(text.into()));
    response
}

/// A stream of events; `reading` is dropped when the client has gone.
pub(crate) fn events(
    events: mpsc::Receiver<Bytes>,
    reading: Option<oneshot::Sender<()>>,
) -> Response<Reply> {
    let mut response = Response::new(Reply::Events {
        events,
        _reading: reading,
    });
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
