//! The context of every task of the transport: the way to the server, and the way back.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use reqwest::{
    Method, Response, StatusCode,
    header::{ACCEPT, HeaderMap, HeaderValue},
};
use switchboard_wire::header;
use tokio::{sync::mpsc, time::timeout};

use super::{
    super::{Down, DownKind, Outgoing, TransportEvent, sse::Opened},
    Endpoint, RequestError,
    headers::{EVENTS, Standing},
};

/// Time limit for ending the session.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

/// A report of a task to the transport.
#[derive(Debug)]
pub(super) enum Report {
    /// An event for the connection.
    Event(TransportEvent),
    /// A frame that arrived outside the stream of a request, and the requests that it nevertheless
    /// answers.
    Frame { frame: Bytes, answered: Vec<u64> },
    /// The server has opened a session with this id.
    Session(HeaderValue),
    /// The server uses the older transport. The message has not been sent yet.
    Fallback(Box<Opened>, Outgoing),
}

/// The error when the transport is gone and reports are no longer received.
#[derive(Debug)]
pub(super) struct Deaf;

#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) standing: Standing,
    pub(super) reports: mpsc::Sender<Report>,
}

impl Peer {
    /// Sends a report, and waits until there is room for it.
    pub(super) async fn report(&self, report: Report) -> Result<(), Deaf> {
        self.reports.send(report).await.map_err(|_| Deaf)
    }

    pub(super) async fn event(&self, event: TransportEvent) -> Result<(), Deaf> {
        self.report(Report::Event(event)).await
    }

    pub(super) async fn down(&self, kind: DownKind, message: &str) -> Result<(), Deaf> {
        let down = Down {
            kind,
            message: message.into(),
            said: None,
        };
        self.event(TransportEvent::Down(down)).await
    }

    /// Reports that the server no longer knows the session.
    pub(super) async fn session_gone(&self) -> Result<(), Deaf> {
        self.down(DownKind::Closed, "session expired").await
    }

    /// Requests an event stream, starting after the event `last`.
    pub(super) async fn get(&self, last: Option<&HeaderValue>) -> Result<Response, RequestError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(EVENTS));
        if let Some(last) = last {
            headers.insert(header::LAST_EVENT_ID, last.clone());
        }
        self.standing.add_to(&mut headers);
        let url = self.endpoint.url();
        self.endpoint
            .request(Method::GET, url, headers, Bytes::new())
            .await
    }

    /// Ends the session. The server may ignore that.
    pub(super) async fn farewell(self) {
        let mut headers = HeaderMap::new();
        self.standing.add_to(&mut headers);
        let url = self.endpoint.url();
        let request = self
            .endpoint
            .request(Method::DELETE, url, headers, Bytes::new());
        let done = timeout(FAREWELL_TIMEOUT, request).await;
        let status = done
            .ok()
            .and_then(Result::ok)
            .map(|response| response.status().as_u16());
        tracing::debug!(target: "switchboard::transport", server = self.endpoint.address(), status, "Session ended.");
    }
}

/// Returns `true` if the same request may succeed later.
pub(super) fn is_transient(status: StatusCode) -> bool {
    match status {
        StatusCode::NOT_IMPLEMENTED => false,
        // A server responds with "Conflict" if it has not noticed yet that the last stream has
        // ended.
        StatusCode::REQUEST_TIMEOUT
        | StatusCode::CONFLICT
        | StatusCode::TOO_EARLY
        | StatusCode::TOO_MANY_REQUESTS => true,
        status => status.is_server_error(),
    }
}
