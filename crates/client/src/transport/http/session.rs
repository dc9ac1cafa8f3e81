//! The transport: it passes messages to tasks and collects their reports.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use switchboard_wire::{Era, method};
use tokio::{
    runtime::Handle,
    sync::{mpsc, watch},
    task::{AbortHandle, JoinError, JoinSet},
    time::timeout,
};

use super::{
    super::{
        Outgoing, OutgoingKind, SendOutcome, Session, Transport, TransportEvent, closed,
        sse::SseTransport,
    },
    Endpoint,
    headers::{Modern, Standing},
    listen::listen,
    peer::{Peer, Report},
    post::{Gate, Post},
};

/// The most reports that wait to be polled before every stream is held. Few, because each may
/// be a frame of the maximum size.
const REPORTS: usize = 16;
/// The most messages without a response in flight. They do not count as requests: a server that
/// waits for our response must get it, regardless of the number of open requests.
const MESSAGES: usize = 256;
/// Time for which closing waits for the server to end the session. If the process exits, the
/// request is lost.
const FAREWELL_WAIT: Duration = Duration::from_millis(30);

pub(super) struct HttpTransport {
    peer: Peer,
    reports: mpsc::Receiver<Report>,
    /// Every POST. A POST of a request returns its id.
    posts: JoinSet<Option<u64>>,
    requests: HashMap<u64, InFlight>,
    in_flight_max: usize,
    /// The gate that later messages must wait for.
    gate: Option<Gate>,
    listener: JoinSet<()>,
    phase: Phase,
}

struct InFlight {
    task: AbortHandle,
    modern: bool,
}

enum Phase {
    Open,
    /// The server turned out to use the older transport.
    Fallback(Box<SseTransport>),
    /// The accepted messages are being sent.
    Closing,
    /// The session is being ended.
    Farewell(Pin<Box<dyn Future<Output = ()> + Send>>),
    Ended,
}

impl HttpTransport {
    pub(super) fn new(endpoint: Arc<Endpoint>, in_flight_max: usize) -> Self {
        let (sender, reports) = mpsc::channel(REPORTS);
        Self {
            peer: Peer {
                endpoint,
                standing: Standing::default(),
                reports: sender,
            },
            reports,
            posts: JoinSet::new(),
            requests: HashMap::new(),
            in_flight_max,
            gate: None,
            listener: JoinSet::new(),
            phase: Phase::Open,
        }
    }

    fn request(&mut self, id: u64, outgoing: Outgoing) -> SendOutcome {
        if self.requests.len() >= self.in_flight_max {
            return SendOutcome::Busy;
        }
        let modern = Modern::read(&outgoing);
        let is_modern = modern.is_some();
        let post = self.post(outgoing, modern);
        let in_flight = InFlight {
            task: self.posts.spawn(post.request(id)),
            modern: is_modern,
        };
        self.requests.insert(id, in_flight);
        SendOutcome::Accepted
    }

    fn message(&mut self, outgoing: Outgoing) -> SendOutcome {
        if self.is_full_of_messages() {
            return SendOutcome::Busy;
        }
        let confirms = matches!(&outgoing.kind, OutgoingKind::Notification { method } if method == method::INITIALIZED);
        let post = self.post(outgoing, None);
        if confirms {
            let (confirming, confirmed) = watch::channel(());
            let (hold, gate) = watch::channel(());
            self.listener
                .spawn(listen(self.peer.clone(), confirmed, hold));
            self.gate = Some(gate);
            self.posts.spawn(post.confirm(confirming));
        } else {
            self.posts.spawn(post.message());
        }
        SendOutcome::Accepted
    }

    /// Cancels a request. If it is not in flight, its response has arrived, and there is nothing to
    /// cancel.
    fn cancel(&mut self, id: u64, outgoing: Outgoing) -> SendOutcome {
        let Some(in_flight) = self.requests.get(&id) else {
            return SendOutcome::Accepted;
        };
        if in_flight.modern {
            in_flight.task.abort();
            self.requests.remove(&id);
            return SendOutcome::Accepted;
        }
        if self.is_full_of_messages() {
            return SendOutcome::Busy;
        }
        let request = in_flight.task.clone();
        let post = self.post(outgoing, None);
        self.posts.spawn(async move {
            post.message().await;
            // The server has been notified, or does not respond. The rest of its response is not
            // needed.
            request.abort();
            None
        });
        SendOutcome::Accepted
    }

    fn post(&mut self, outgoing: Outgoing, modern: Option<Modern>) -> Post {
        // This only ever fails: the gate is open once the sender is gone.
        if self
            .gate
            .as_ref()
            .is_some_and(|gate| gate.has_changed().is_err())
        {
            self.gate = None;
        }
        Post {
            peer: self.peer.clone(),
            outgoing,
            modern,
            gate: self.gate.clone(),
        }
    }

    fn is_full_of_messages(&self) -> bool {
        self.posts.len().saturating_sub(self.requests.len()) >= MESSAGES
    }

    /// Removes the tasks that have ended.
    fn reap(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(joined)) = self.posts.poll_join_next(cx) {
            self.forget(joined);
        }
    }

    fn forget(&mut self, joined: Result<Option<u64>, JoinError>) {
        match joined {
            Ok(Some(id)) => drop(self.requests.remove(&id)),
            Ok(None) => {}
            Err(error) => self
                .requests
                .retain(|_, in_flight| in_flight.task.id() != error.id()),
        }
    }

    /// Stops everything.
    fn end(&mut self) {
        self.posts.abort_all();
        self.listener.abort_all();
        self.requests.clear();
        self.phase = Phase::Ended;
    }

    /// Ends the session, if there is one. The request continues in the background.
    fn farewell(&mut self) -> Option<impl Future<Output = ()> + Send + use<>> {
        self.peer.standing.session.as_ref()?;
        let runtime = Handle::try_current().ok()?;
        let peer = self.peer.clone();
        self.peer.standing.session = None;
        let farewell = runtime.spawn(peer.farewell());
        Some(async move { drop(timeout(FAREWELL_WAIT, farewell).await) })
    }

    fn poll_report(&mut self, cx: &mut Context<'_>) -> Poll<TransportEvent> {
        // The transport holds a sender itself, so the channel never closes.
        while let Some(report) = ready!(self.reports.poll_recv(cx)) {
            match report {
                Report::Session(session) => self.peer.standing.session = Some(session),
                Report::Frame { frame, answered } => {
                    for id in answered {
                        if let Some(in_flight) = self.requests.remove(&id) {
                            in_flight.task.abort();
                        }
                    }
                    return Poll::Ready(TransportEvent::Frame { frame, via: None });
                }
                Report::Fallback(opened, outgoing) => {
                    let mut sse = SseTransport::new(*opened);
                    sse.send(outgoing);
                    let event = sse.poll_event(cx);
                    self.phase = Phase::Fallback(Box::new(sse));
                    return event;
                }
                Report::Event(event) => {
                    if let TransportEvent::Down(_) = event {
                        // The session is gone, or cannot be reached.
                        self.peer.standing.session = None;
                        self.end();
                    }
                    return Poll::Ready(event);
                }
            }
        }
        Poll::Pending
    }
}

impl Transport for HttpTransport {
    fn send(&mut self, outgoing: Outgoing) -> SendOutcome {
        match &mut self.phase {
            Phase::Open => {}
            Phase::Fallback(sse) => return sse.send(outgoing),
            Phase::Closing | Phase::Farewell(_) | Phase::Ended => return SendOutcome::Closed,
        }
        while let Some(joined) = self.posts.try_join_next() {
            self.forget(joined);
        }
        match outgoing.kind {
            OutgoingKind::Request { id, .. } => self.request(id, outgoing),
            OutgoingKind::Cancel { id } => self.cancel(id, outgoing),
            OutgoingKind::Notification { .. } | OutgoingKind::Answer => self.message(outgoing),
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<TransportEvent> {
        loop {
            match &mut self.phase {
                Phase::Fallback(sse) => return sse.poll_event(cx),
                Phase::Ended => return Poll::Pending,
                Phase::Open => {
                    self.reap(cx);
                    return self.poll_report(cx);
                }
                Phase::Closing => {
                    self.reap(cx);
                    if !self.posts.is_empty() {
                        return Poll::Pending;
                    }
                    match self.farewell() {
                        Some(farewell) => self.phase = Phase::Farewell(Box::pin(farewell)),
                        None => break,
                    }
                }
                Phase::Farewell(farewell) => {
                    ready!(farewell.as_mut().poll(cx));
                    break;
                }
            }
        }
        self.end();
        Poll::Ready(TransportEvent::Down(closed("closed")))
    }

    fn negotiated(&mut self, session: &Session) {
        if let Phase::Fallback(sse) = &mut self.phase {
            sse.negotiated(session);
            return;
        }
        self.peer.standing.revision = Some(session.revision);
        if session.revision.era() == Era::Legacy {
            // The probe, if the server has not responded to it: a response would no longer count.
            self.requests.retain(|_, in_flight| {
                if in_flight.modern {
                    in_flight.task.abort();
                }
                !in_flight.modern
            });
        }
    }

    fn close(&mut self) {
        match &mut self.phase {
            Phase::Fallback(sse) => sse.close(),
            Phase::Open => {
                // Responses are no longer needed. Messages without a response are still sent.
                for (_, in_flight) in self.requests.drain() {
                    in_flight.task.abort();
                }
                self.listener.abort_all();
                // Reports are not needed either: a task that has one must not wait for room.
                self.reports.close();
                self.phase = Phase::Closing;
            }
            Phase::Closing | Phase::Farewell(_) | Phase::Ended => {}
        }
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        // The request continues in the background.
        drop(self.farewell());
    }
}
