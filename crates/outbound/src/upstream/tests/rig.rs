//! The parts around the servers: dependencies, the layer above, and the path of a call.

use std::{
    ffi::OsString,
    path::Path,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use switchboard_base::{audit::Audit, caller::Caller, error::Error, events::Events};
use switchboard_catalog::Kind;
use switchboard_client::{Asked, Client, Era, Raw};
use switchboard_config::{Config, Environment, Home};
use switchboard_contain::Containment;
use switchboard_store::Store;
use switchboard_wire::method;
use tokio::{
    sync::oneshot,
    time::{sleep, sleep_until, timeout_at},
};

use super::fake_servers::{FakeServers, TOOL, Work};
use crate::{
    cache::Reads,
    clock,
    deps::{Answering, Deps, Handler, HandlerSlot, Source},
    first_contact::FirstContact,
    instance::Admission,
    instances::Key,
    live::Live,
    live_catalog::LiveCatalog,
    logs::Logs,
    questions::{Owner, Question, Questions, UnderWay, unanswerable},
    sign_in::SignIns,
    start_throttle::StartThrottle,
    supervisor::Supervisor,
    upstream::{Lease, SharingReason, Upstream},
};

/// The dependencies of a gateway with this home, whose processes are fake servers.
pub(super) fn deps(home: &Path, config: Config, servers: FakeServers, store: Store) -> Arc<Deps> {
    let home = Arc::new(Home::locate(Some(home), None).unwrap());
    home.create().unwrap();
    let environment = Environment::new(Vec::<(OsString, OsString)>::new(), None);
    let containment = Containment::new(home.groups(), "test".parse().unwrap());
    Arc::new(Deps {
        sign_ins: SignIns::new(&home, &environment, "test".into()),
        environment: Arc::new(environment),
        containment: containment.unwrap(),
        fake_servers: Some(servers),
        logs: Arc::new(Logs::new(Arc::clone(&home))),
        metrics: Arc::default(),
        events: Events::default(),
        audit: Arc::new(Audit::start(store)),
        start_throttle: StartThrottle::default(),
        first_contact: Arc::new(FirstContact::open(home.first_contact())),
        live_catalog: Arc::new(LiveCatalog::open(&home, &config)),
        reads: Reads::default(),
        subscription_budget: Arc::default(),
        memory: None,
        config: Arc::new(ArcSwap::from_pointee(config)),
        handler: HandlerSlot::default(),
        home,
    })
}

/// The layer above: puts the questions of servers to the clients of their calls.
#[derive(Debug)]
pub(super) struct Above {
    supervisor: Weak<Supervisor>,
    /// The calls that servers asked about, each with the call whose client was asked.
    pub(super) asked: Mutex<Vec<(u64, u64)>>,
    /// The clients whose roots servers have got, with the positions of these servers.
    pub(super) told_roots: Mutex<Vec<(usize, Caller)>>,
    /// A server has asked something.
    pub(super) has_asked: AtomicBool,
}

impl Above {
    pub(super) fn new(supervisor: &Arc<Supervisor>) -> Arc<Self> {
        Arc::new(Self {
            supervisor: Arc::downgrade(supervisor),
            asked: Mutex::default(),
            told_roots: Mutex::default(),
            has_asked: AtomicBool::new(false),
        })
    }

    /// Answers a question that this call has received.
    fn reply(&self, question: Question, receiver: u64) {
        let params = question.params.as_ref();
        let message = params.and_then(|params| params.member("message")?.to_text());
        let asker = message.unwrap().parse().unwrap();
        self.asked.lock().push((asker, receiver));
        let answer = Raw::object([("action", Raw::string("accept"))]);
        let _ = question.reply.send(Ok(answer));
    }

    /// The client whose roots a server gets.
    async fn whose_roots(&self, asking: &Asking) -> Option<Caller> {
        let Asking {
            server,
            questions,
            key,
            asked,
            under_way,
        } = asking;
        let located = questions.locate(asked, under_way).await;
        let upstream = self.supervisor.upgrade().and_then(|all| all.get(server))?;
        let may_get = |client: &Caller, is_of_call| match key {
            Some(key) => key.serves(client),
            None => upstream.may_get_roots(questions, client, is_of_call),
        };
        let client = match located.owner {
            Owner::Call(call) => Some(call.caller.clone()).filter(|client| may_get(client, true)),
            Owner::Several => {
                upstream.has_asked(None);
                None
            }
            Owner::Nobody => {
                let known = questions.roots().map(|(client, _)| client);
                known.filter(|client| {
                    if under_way.may_concern(client) {
                        return may_get(client, false);
                    }
                    upstream.has_asked(None);
                    false
                })
            }
        };
        if upstream.sharing().1 == SharingReason::AsksBack {
            self.has_asked.store(true, Relaxed);
        }
        client
    }
}

/// A request of a server.
struct Asking {
    server: Arc<str>,
    questions: Arc<Questions>,
    key: Option<Key>,
    asked: Asked,
    under_way: UnderWay,
}

impl Handler for Above {
    fn configured(&self, _: &Config) {}

    fn answer(self: Arc<Self>, from: Source<'_>, asked: Asked, under_way: UnderWay) -> Answering {
        let (server, questions) = (Arc::clone(from.server), Arc::clone(from.questions));
        if asked.method == method::ROOTS_LIST {
            let asking = Asking {
                server,
                questions,
                key: from.key.cloned(),
                asked,
                under_way,
            };
            return Box::pin(async move {
                let client = self.whose_roots(&asking).await;
                let client = client.ok_or_else(|| unanswerable(method::ROOTS_LIST))?;
                let params = asking.asked.params;
                let position = params.and_then(|params| params.member("position")?.to_text());
                let position = position.unwrap().parse().unwrap();
                self.told_roots.lock().push((position, client));
                Ok(Raw::object([("roots", Raw::array([]))]))
            });
        }
        Box::pin(async move {
            let located = questions.locate(&asked, &under_way).await;
            let upstream = self.supervisor.upgrade().and_then(|all| all.get(&server));
            let note = |caller: Option<&Caller>| {
                if let Some(upstream) = &upstream {
                    self.has_asked.store(true, Relaxed);
                    upstream.has_asked(caller);
                }
            };
            let Owner::Call(owner) = located.owner else {
                note(None);
                return Err(unanswerable(&asked.method));
            };
            note(Some(&owner.caller).filter(|_| located.is_of_one));
            let (reply, answer) = oneshot::channel();
            owner.ask(Question {
                method: asked.method.clone(),
                params: asked.params,
                name: asked.name,
                to_person: None,
                is_sure: located.is_sure,
                count: Arc::clone(owner.count()),
                is_taken: Arc::default(),
                reply,
            });
            let gone = |_| Err(unanswerable(&asked.method));
            answer.await.unwrap_or_else(gone)
        })
    }

    fn notified(&self, _: Source<'_>, _: &str, _: Option<&Raw>) {}
}

/// Carries a call to the instance that it has got, after an approver has taken `waits` to decide.
pub(super) async fn carry(
    above: Arc<Above>,
    upstream: Arc<Upstream>,
    instance: Lease,
    caller: Caller,
    waits: Duration,
    work: Work,
) -> Result<(), Error> {
    sleep(waits).await;
    let deadline = clock::now() + upstream.request_timeout();
    let overdue = || Error::TimedOut {
        server: Arc::clone(&upstream.name),
        after: upstream.request_timeout(),
    };
    let mut lost: Option<Arc<Live>> = None;
    loop {
        let acquiring = instance.limiter.acquire(caller.key);
        let acquiring = acquiring.map_err(|full| Error::Busy {
            server: Arc::clone(&upstream.name),
            waiting: full.waiting,
        })?;
        let permit = timeout_at(deadline.into(), acquiring).await;
        let permit = permit.map_err(|_| overdue())?;
        let is_lost = |live: &Arc<Live>| lost.as_ref().is_some_and(|lost| Arc::ptr_eq(lost, live));
        let Some(live) = instance.live().filter(|live| !is_lost(live)) else {
            drop(permit);
            let era = Some(Era::Legacy);
            instance.ready(deadline, lost.as_ref(), era).await?;
            continue;
        };
        let items = [Some((Kind::Tool, TOOL.into())), None, None];
        match instance.admit(&live, &items, deadline).await? {
            Admission::Yes => {}
            Admission::Ended => {
                lost = Some(live);
                continue;
            }
            Admission::Elsewhere => unreachable!("there is one connection"),
        }
        instance.questions.note(&caller);
        let capabilities = Raw::object([("elicitation", Raw::empty_object())]);
        let tool = TOOL.into();
        let questions = instance.questions.open(&caller, Some(&tool), capabilities);
        let sending = send(live.client(), work, questions.tag());
        let mut sending = std::pin::pin!(sending);
        let sent = loop {
            tokio::select! {
                biased;
                sent = &mut sending => break sent,
                question = questions.next() => above.reply(question, work.call),
                () = sleep_until(deadline.into()) => return Err(overdue()),
            }
        };
        drop(permit);
        match sent {
            Ok(_) | Err(switchboard_client::Error::Server(_)) => {
                questions.set_answered();
                return Ok(());
            }
            Err(switchboard_client::Error::Call(error)) if error.is_unsent() => {
                lost = Some(Arc::clone(&live));
            }
            Err(error) => return Err(Error::of(&upstream.name, error)),
        }
    }
}

async fn send(client: &Client, work: Work, tag: u64) -> Result<Raw, switchboard_client::Error> {
    let arguments = Raw::parse(serde_json::to_string(&work).unwrap()).unwrap();
    let params = Raw::object([("name", Raw::string(TOOL)), ("arguments", arguments)]);
    let call = client.request(method::TOOLS_CALL, Some(params));
    call.no_timeout().fail_fast().tag(tag).await
}
