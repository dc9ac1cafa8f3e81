//! What every task of the transport has at hand: the way to the server, and the way back.

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

/// How long saying goodbye may take.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

/// What a task tells the transport.
#[derive(Debug)]
pub(super) enum Report {
    /// Something for the connection.
    Event(TransportEvent),
    /// A frame that came on the stream of no request, and the requests it answers all the same.
    Frame { frame: Bytes, answered: Vec<u64> },
    /// The server has opened a session of this name.
    Session(HeaderValue),
    /// The server speaks the older transport. The message is yet to be sent.
    Fallback(Box<Opened>, Outgoing),
}

/// The transport is gone: nobody listens.
#[derive(Debug)]
pub(super) struct Deaf;

#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) standing: Standing,
    pub(super) reports: mpsc::Sender<Report>,
}

impl Peer {
    /// Reports, and waits until there is room for it.
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

    /// The session that was named is not known any more.
    pub(super) async fn session_gone(&self) -> Result<(), Deaf> {
        self.down(DownKind::Closed, "session expired").await
    }

    /// Asks for a stream of events, from the one after `last` on.
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

    /// Ends the session. The server may not care, and need not.
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
        tracing::debug!(target: "switchboard::transport", server = self.endpoint.address(), status, "session ended");
    }
}

/// Whether asking again later may get another answer.
pub(super) fn is_transient(status: StatusCode) -> bool {
    match status {
        StatusCode::NOT_IMPLEMENTED => false,
        // "Conflict" is what a server says that has not noticed yet that the last stream ended.
        StatusCode::REQUEST_TIMEOUT
        | StatusCode::CONFLICT
        | StatusCode::TOO_EARLY
        | StatusCode::TOO_MANY_REQUESTS => true,
        status => status.is_server_error(),
    }
}
