//! The driver: one task per connection. It passes events to the machine and carries out its
//! actions; it makes no decisions.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustc_hash::FxHashMap;
use switchboard_machine::{
    Action, Call, CallError, Event, Inbound, Machine, Moment, Reply, SendOutcome, State, Telemetry,
};
use switchboard_wire::{ErrorObject, Id, Notification, Raw, Request, code, method};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, Sleep},
};

use crate::{
    handlers::{Answering, Asked, Handlers, LogMessage, Violation},
    telemetry,
    throttle::{BURST, EVERY, Missed, Throttle},
    transport::{Connect, Connecting, Transport, TransportEvent},
};

/// A call on its way to the driver.
pub(crate) struct Submission {
    pub(crate) id: u64,
    pub(crate) call: Call,
    pub(crate) caller: Caller,
}

/// The channels to a caller.
pub(crate) struct Caller {
    pub(crate) reply: oneshot::Sender<Result<Reply, CallError>>,
    /// Receives the progress and log messages of the call, if the caller wants them. If it does not
    /// read them, the newest are dropped.
    pub(crate) told: Option<mpsc::Sender<Told>>,
    /// The caller's identifier for the call.
    pub(crate) tag: Option<u64>,
}

/// A progress or log message of a call.
pub(crate) enum Told {
    Progress(Raw),
    Log(LogMessage),
}

/// A message about a request of the server, for the task that responds to them.
pub(crate) enum ServerRequest {
    Received {
        epoch: u64,
        id: Id,
        answering: Answering,
    },
    /// The server no longer waits for a response.
    Cancelled { id: Id },
}

/// Messages that need no admission, because each belongs to something that was admitted before.
pub(crate) enum Control {
    CallerGone(u64),
    Cancel {
        id: u64,
        reason: Option<Arc<str>>,
    },
    Answer {
        epoch: u64,
        id: Id,
        answer: Result<Raw, ErrorObject>,
    },
    Restart,
    Stop(oneshot::Sender<()>),
    /// The last handle of a user is gone.
    Abandoned,
}

pub(crate) struct Driver {
    pub(crate) machine: Machine,
    pub(crate) connect: Arc<dyn Connect>,
    pub(crate) calls: mpsc::Receiver<Submission>,
    pub(crate) control: mpsc::UnboundedReceiver<Control>,
    pub(crate) outlets: Outlets,
    pub(crate) state: watch::Sender<State>,
    pub(crate) counters: Arc<switchboard_machine::Counters>,
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) started: Instant,
}

/// The channels for the messages of the server, by kind. All are bounded: a message that does not
/// fit is dropped and counted, and a request is also answered with an error.
pub(crate) struct Outlets {
    pub(crate) notifications: mpsc::Sender<Notification>,
    pub(crate) requests: mpsc::Sender<ServerRequest>,
    /// Receives the acknowledgement of a listen stream.
    pub(crate) acknowledged: mpsc::Sender<Notification>,
}

/// The work found in one pass of the loop.
enum Turn {
    Calls,
    Control(Control),
    Opened(Result<Box<dyn Transport>, switchboard_machine::Down>),
    Transport(TransportEvent),
    Tick,
}

enum Link {
    None,
    Opening {
        epoch: u64,
        connecting: Connecting,
    },
    Up {
        epoch: u64,
        armed: bool,
        transport: Box<dyn Transport>,
    },
}

/// The most calls accepted before the transport is polled again: enough to fill one write.
const CALLS_PER_TURN: usize = 64;

impl Driver {
    pub(crate) async fn run(self) {
        let Self {
            machine,
            connect,
            mut calls,
            mut control,
            outlets,
            state,
            counters,
            handlers,
            started,
        } = self;
        let mut hands = Hands {
            machine,
            connect,
            outlets,
            state,
            counters,
            handlers,
            violations: Throttle::new(BURST, EVERY),
            started,
            link: Link::None,
            callers: FxHashMap::default(),
            stop_waiters: Vec::new(),
            exited: false,
        };
        let mut batch = Vec::new();
        let mut timer = Timer::default();
        // Calls and frames take turns, so that neither a flood of calls nor a flood of frames can
        // starve the other.
        let mut link_first = false;
        loop {
            hands.carry_out();
            if hands.exited {
                break;
            }
            // A time that is too far away to be represented never comes.
            let due = [hands.machine.next_timeout(), hands.violations.due()];
            let due = due
                .into_iter()
                .flatten()
                .min()
                .and_then(|due| started.checked_add(due.since_start()));
            let turn = poll_fn(|cx| {
                if let Poll::Ready(Some(control)) = control.poll_recv(cx) {
                    return Poll::Ready(Turn::Control(control));
                }
                if let Poll::Ready(()) = timer.poll(cx, due) {
                    return Poll::Ready(Turn::Tick);
                }
                if link_first && let Poll::Ready(turn) = hands.poll_link(cx) {
                    return Poll::Ready(turn);
                }
                if let Poll::Ready(1..) = calls.poll_recv_many(cx, &mut batch, CALLS_PER_TURN) {
                    return Poll::Ready(Turn::Calls);
                }
                hands.poll_link(cx)
            })
            .await;
            link_first = matches!(turn, Turn::Calls);
            match turn {
                Turn::Calls => {
                    for submission in batch.drain(..) {
                        hands.submit(submission);
                    }
                }
                Turn::Control(control) => {
                    // The call that the message refers to may still be in the queue.
                    while let Ok(submission) = calls.try_recv() {
                        hands.submit(submission);
                    }
                    hands.control(control);
                }
                Turn::Opened(result) => hands.opened(result),
                Turn::Transport(event) => hands.transport(event),
                Turn::Tick => hands.event(Event::Tick),
            }
            hands.sum_up(Throttle::summary);
        }
        hands.sum_up(Throttle::take);
        // Calls that arrive now, or arrived during the shutdown, are rejected by the closed queue.
        calls.close();
        while let Ok(submission) = calls.try_recv() {
            let _ = submission
                .caller
                .reply
                .send(Err(CallError::Shutdown { sent: false }));
        }
    }
}

/// The state of the driver, and the place where actions are carried out.
struct Hands {
    machine: Machine,
    connect: Arc<dyn Connect>,
    outlets: Outlets,
    state: watch::Sender<State>,
    counters: Arc<switchboard_machine::Counters>,
    handlers: Arc<Handlers>,
    /// Limits the reports of violations.
    violations: Throttle,
    started: Instant,
    link: Link,
    callers: FxHashMap<u64, (Caller, tracing::Span)>,
    stop_waiters: Vec<oneshot::Sender<()>>,
    exited: bool,
}

impl Hands {
    fn event(&mut self, event: Event) {
        let now = Moment::after_start(self.started.elapsed());
        self.machine.handle(now, event);
    }

    fn submit(&mut self, Submission { id, call, caller }: Submission) {
        // The caller left before its call arrived here, so there is no one to reply to.
        if !caller.reply.is_closed() {
            let span = telemetry::request_span(id, &call.method);
            self.callers.insert(id, (caller, span));
            self.event(Event::Call { id, call });
            self.carry_out();
        }
    }

    fn control(&mut self, control: Control) {
        match control {
            Control::CallerGone(id) => {
                self.callers.remove(&id);
                self.event(Event::CallerGone { id });
            }
            Control::Cancel { id, reason } => self.event(Event::Cancel { id, reason }),
            Control::Answer { epoch, id, answer } => {
                self.event(Event::Answer { epoch, id, answer });
            }
            Control::Restart => self.event(Event::Restart),
            Control::Abandoned => self.event(Event::Stop),
            Control::Stop(waiter) => {
                self.stop_waiters.push(waiter);
                self.event(Event::Stop);
            }
        }
    }

    fn poll_link(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        match &mut self.link {
            Link::None => Poll::Pending,
            Link::Opening { connecting, .. } => connecting.as_mut().poll(cx).map(Turn::Opened),
            Link::Up { armed: false, .. } => Poll::Pending,
            Link::Up { transport, .. } => transport.poll_event(cx).map(Turn::Transport),
        }
    }

    fn opened(&mut self, result: Result<Box<dyn Transport>, switchboard_machine::Down>) {
        let Link::Opening { epoch, .. } = self.link else {
            return;
        };
        match result {
            Ok(transport) => {
                self.link = Link::Up {
                    epoch,
                    armed: false,
                    transport,
                };
                self.event(Event::TransportUp { epoch });
            }
            Err(down) => {
                self.link = Link::None;
                self.event(Event::TransportDown { epoch, down });
            }
        }
    }

    fn transport(&mut self, event: TransportEvent) {
        let Link::Up { epoch, armed, .. } = &mut self.link else {
            return;
        };
        let epoch = *epoch;
        let event = match event {
            TransportEvent::Frame { frame, via } => {
                *armed = false;
                Event::Frame { epoch, frame, via }
            }
            TransportEvent::FrameTooLarge { limit } => Event::FrameTooLarge { epoch, limit },
            TransportEvent::RequestFailed { id, failure } => {
                Event::RequestFailed { epoch, id, failure }
            }
            TransportEvent::Down(down) => {
                self.link = Link::None;
                Event::TransportDown { epoch, down }
            }
        };
        self.event(event);
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.machine.poll_action() {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Open { epoch } => {
                let connecting = self.connect.connect();
                self.link = Link::Opening { epoch, connecting };
            }
            Action::Close { epoch } => self.close(epoch),
            Action::Send { ticket, outgoing } => {
                let outcome = match &mut self.link {
                    Link::Up { transport, .. } => transport.send(outgoing),
                    Link::None | Link::Opening { .. } => SendOutcome::Closed,
                };
                self.event(Event::SendResult { ticket, outcome });
            }
            Action::Arm { epoch: armed_epoch } => {
                if let Link::Up { epoch, armed, .. } = &mut self.link {
                    *armed = *epoch == armed_epoch;
                }
            }
            Action::Negotiated { session, .. } => {
                if let Link::Up { transport, .. } = &mut self.link {
                    transport.negotiated(&session);
                }
            }
            Action::Reply { id, outcome } => {
                if let Some((caller, _)) = self.callers.remove(&id) {
                    let _ = caller.reply.send(outcome);
                }
            }
            Action::Progress { id, params } => self.tell(id, Told::Progress(params)),
            Action::Log {
                id,
                params,
                is_named,
            } => self.tell(id, Told::Log(LogMessage { params, is_named })),
            Action::Deliver(inbound) => self.deliver(inbound),
            Action::State(state) => {
                self.state.send_replace(state);
            }
            Action::Emit(what) => self.record(&what),
            Action::Stopped(_) => {
                for waiter in self.stop_waiters.drain(..) {
                    let _ = waiter.send(());
                }
            }
            Action::Exit => self.exited = true,
        }
    }

    fn tell(&self, id: u64, told: Told) {
        let caller = self.callers.get(&id);
        if let Some(sender) = caller.and_then(|(caller, _)| caller.told.as_ref())
            && sender.try_send(told).is_err()
        {
            self.counters.dropped.add();
        }
    }

    fn deliver(&mut self, inbound: Inbound) {
        let outlets = &self.outlets;
        let delivered = match inbound {
            Inbound::Notification { notification, .. }
                if notification.method == method::LISTEN_ACKNOWLEDGED =>
            {
                outlets.acknowledged.try_send(notification).is_ok()
            }
            Inbound::Notification { notification, .. } => {
                outlets.notifications.try_send(notification).is_ok()
            }
            Inbound::Request {
                epoch,
                request,
                via,
            } => return self.ask(epoch, request, via),
            Inbound::RequestCancelled { id } => outlets
                .requests
                .try_send(ServerRequest::Cancelled { id })
                .is_ok(),
        };
        if !delivered {
            self.counters.dropped.add();
        }
    }

    /// Passes on a request of the server, or rejects it if the queue is full.
    fn ask(&mut self, epoch: u64, request: Request, via: Option<u64>) {
        let caller = via.and_then(|id| self.callers.get(&id));
        let asked = Asked {
            method: request.method,
            params: request.params,
            tag: caller.and_then(|(caller, _)| caller.tag),
            of_request: via.is_some(),
            name: request.id.raw().to_text(),
        };
        let id = request.id.clone();
        let answering = self.handlers.take_in(asked);
        let received = ServerRequest::Received {
            epoch,
            id,
            answering,
        };
        if self.outlets.requests.try_send(received).is_ok() {
            return;
        }
        self.counters.dropped.add();
        self.event(Event::Answer {
            epoch,
            id: request.id,
            answer: Err(ErrorObject::new(code::INTERNAL, "the client is busy")),
        });
    }

    /// Reports the violations that were only counted.
    fn sum_up(&mut self, take: impl FnOnce(&mut Throttle, Moment) -> Option<Missed>) {
        if self.violations.due().is_none() {
            return;
        }
        let now = Moment::after_start(self.started.elapsed());
        if let Some(Missed { events, bytes }) = take(&mut self.violations, now) {
            self.violated(&Violation::More {
                count: events,
                bytes,
            });
        }
    }

    fn violated(&self, what: &Violation<'_>) {
        telemetry::violation(what);
        self.handlers.violated(what);
    }

    fn record(&mut self, what: &Telemetry) {
        if let Telemetry::Violation { reason, frame } = what {
            let now = Moment::after_start(self.started.elapsed());
            let bytes = frame.as_ref().map_or(0, |frame| frame.len() as u64);
            if self.violations.admit(now, bytes) {
                let frame = frame.as_deref();
                self.violated(&Violation::Frame { reason, frame });
            }
            return;
        }
        let span = match what {
            Telemetry::CallStarted { id, .. }
            | Telemetry::CallAnswered { id, .. }
            | Telemetry::CallFailed { id, .. } => self.callers.get(id).map(|(_, span)| span),
            _ => None,
        };
        match span {
            Some(span) => span.in_scope(|| telemetry::emit(what)),
            None => telemetry::emit(what),
        }
    }

    fn close(&mut self, closing: u64) {
        match &mut self.link {
            Link::Up {
                epoch,
                armed,
                transport,
            } if *epoch == closing => {
                transport.close();
                // While the connection is shutting down, the transport is polled until it has
                // closed. In all other cases, there is no need to wait for that.
                if matches!(*self.state.borrow(), State::Closing) {
                    *armed = true;
                } else {
                    self.link = Link::None;
                }
            }
            Link::Opening { epoch, .. } if *epoch == closing => self.link = Link::None,
            Link::None | Link::Opening { .. } | Link::Up { .. } => {}
        }
    }
}

/// The timer of the task, which is reset only if it has to fire earlier than it would.
#[derive(Default)]
struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    /// Ready when `due` has passed. May also be ready earlier, which does no harm.
    fn poll(&mut self, cx: &mut Context<'_>, due: Option<Instant>) -> Poll<()> {
        let Some(due) = due else {
            return Poll::Pending;
        };
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if sleep.deadline() > due || sleep.is_elapsed() {
            sleep.as_mut().reset(due);
        }
        // The clock is checked in addition to the timer: a task that always has other work may
        // never be woken by it.
        if due <= Instant::now() {
            return Poll::Ready(());
        }
        sleep.as_mut().poll(cx)
    }
}
