//! Runs a program of random steps, and checks the rules after each.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, Weak, atomic::Ordering::Relaxed},
    time::Duration,
};

use proptest::{prelude::*, sample::Index};
use serde_json::json;
use switchboard_base::{
    backchannel::{self, Backchannel},
    caller::{Caller, Principal},
    error::Error,
    notifications::NotificationQueue,
    project::{Project, real_dir},
};
use switchboard_client::Reason;
use switchboard_config::Config;
use switchboard_store::Store;
use tokio::{
    task::{JoinHandle, yield_now},
    time::{sleep, timeout},
};

use super::{
    CLIENTS, PROJECTS,
    fake_servers::{Asks, FakeServer, FakeServers, Work},
    rig::{Above, carry, deps},
};
use crate::{
    instance::Instance,
    instances::InUse as _,
    supervisor::Supervisor,
    upstream::{Lease, Upstream},
};

const NAME: &str = "s";

type Checked = Result<(), TestCaseError>;

/// The entry of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    All,
    Project,
    ProjectUnnamed,
    Client,
    ClientInProject,
    Auto,
}

/// The settings of the server that change while it runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) most: usize,
    pub(super) idle_stop: Option<u64>,
    /// A server with another version is started in another way.
    pub(super) version: u64,
    pub(super) is_enabled: bool,
}

impl Entry {
    fn config(self, settings: Settings) -> Config {
        let (command, share) = match self {
            Self::All => ("/fake", "all"),
            Self::Project => ("/fake${project}", "auto"),
            Self::ProjectUnnamed => ("/fake", "project"),
            Self::Client => ("/fake/${client}", "client"),
            Self::ClientInProject => ("/fake/${client}${project}", "client"),
            Self::Auto => ("/fake", "auto"),
        };
        let server = json!({
            "command": command,
            "share": share,
            "enabled": settings.is_enabled,
            "maxInstances": settings.most,
            "idleStopSeconds": settings.idle_stop.unwrap_or(0),
            "maxInFlight": 2,
            "initTimeoutMs": 10_000 + settings.version,
        });
        let config = json!({"mcpServers": {NAME: server}});
        switchboard_config::parse(&config.to_string(), "test").unwrap()
    }
}

/// A client, and the directory that it works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Who {
    pub(super) client: u8,
    pub(super) project: Option<u8>,
}

/// The client whose project is known from its roots.
const ROOTED: u8 = 2;
/// The client whose token can be revoked.
pub(super) const TOKEN: u8 = 3;

impl Who {
    fn principal(self) -> Principal {
        let token = |id: &str| Principal::Token(serde_json::from_value(json!(id)).unwrap());
        match self.client {
            0..=ROOTED => Principal::Owner,
            TOKEN => token("0123456789abcdef"),
            4 => token("fedcba9876543210"),
            _ => Principal::Anyone,
        }
    }

    fn name(self) -> String {
        format!("client-{}", self.client)
    }
}

/// The callers that must share a process, and have it for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    All,
    Project(u8),
    Client(u8, Option<u8>),
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A call that waits before it is sent, such as for an approver. Times are in milliseconds.
    Call {
        who: Who,
        waits: u64,
        works: u64,
        asks: Asks,
    },
    /// A client announces that its roots have changed.
    Announce(Who),
    /// Servers that are started from now on list the roots, or do not.
    ListRoots(bool),
    /// A client withdraws one of its calls.
    Cancel(Index),
    /// One of the processes crashes.
    Crash(Index),
    /// The next processes crash when they are started.
    Break(usize),
    Leave(u8),
    /// A token ends.
    Revoke,
    /// The user restarts the server, and stops waiting for it after this time.
    Restart(Option<u64>),
    RestartOne(Index),
    Wait(u64),
    Limit(usize),
    IdleStop(Option<u64>),
    /// The time that processes take to exit.
    ExitTakes(u64),
    /// The entry changes, so that the server has to be started again.
    Replace,
    Disable,
    Enable,
}

/// The longest time that processes take to exit, in milliseconds.
pub(super) const EXIT_MAX: u64 = 9_000;

/// A step may be followed by this pause: everything that is due is done. A smaller one is a number of turns.
pub(super) const SETTLE: u8 = u8::MAX;

#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) entry: Entry,
    pub(super) settings: Settings,
    pub(super) steps: Vec<(Step, u8)>,
}

/// A call that was made.
#[derive(Debug)]
struct Call {
    who: Who,
    key: Key,
    /// The instance that it got.
    id: Arc<str>,
}

/// A call that has not ended.
struct Running {
    call: u64,
    client: u8,
    instance: Arc<Instance>,
    task: JoinHandle<Result<(), Error>>,
}

/// An instance that does not serve all callers.
#[derive(Debug)]
struct Own {
    key: Key,
    /// The limit of the number of instances when it was created.
    most: usize,
    /// Its directory, among those for clients of a principal.
    place: usize,
}

pub(super) struct World {
    projects: Vec<Arc<str>>,
    /// The project of the client that names roots.
    rooted: Project,
    entry: Entry,
    settings: Settings,
    supervisor: Arc<Supervisor>,
    above: Arc<Above>,
    servers: FakeServers,
    calls: BTreeMap<u64, Call>,
    running: Vec<Running>,
    /// All instances that single callers have had, by number.
    own: BTreeMap<u64, Own>,
    instances: Vec<Weak<Instance>>,
    /// Nothing has happened that makes calls fail.
    is_calm: bool,
    /// The connections of the clients.
    asks: [Arc<backchannel::Asks>; CLIENTS as usize],
    /// The number of processes whose start was checked.
    checked: usize,
}

impl World {
    pub(super) async fn run(program: Program) -> Checked {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_after(dir.path().join("audit.db"), Duration::from_hours(1));
        let checked = Self::play(program, dir.path(), store.clone()).await;
        // Its thread would create the file again.
        store.close();
        store.closed().await;
        checked
    }

    async fn play(program: Program, dir: &Path, store: Store) -> Checked {
        let mut world = Self::new(program.entry, program.settings, dir, store).await;
        for (step, pause) in program.steps {
            world.step(step).await?;
            if pause == SETTLE {
                settle().await;
            }
            for _ in 0..pause % SETTLE {
                yield_now().await;
            }
            world.harvest().await?;
            world.check()?;
        }
        world.finish().await
    }

    async fn new(entry: Entry, settings: Settings, dir: &Path, store: Store) -> Self {
        let project = |number: u8| -> Arc<str> {
            let path = dir.join(format!("p{number}"));
            std::fs::create_dir(&path).unwrap();
            real_dir(&path).unwrap().into()
        };
        let projects: Vec<_> = (0..PROJECTS).map(project).collect();
        let rooted = Project::of_roots();
        let root = Arc::clone(&projects[0]);
        rooted.settle(async { Some(root) }).await;
        let servers = FakeServers::default();
        let config = entry.config(settings);
        let deps = deps(&dir.join("home"), config, servers.clone(), store);
        let supervisor = Arc::new(Supervisor::new(Arc::clone(&deps)));
        let above = Above::new(&supervisor);
        let handler = Arc::downgrade(&above);
        deps.set_handler(handler);
        supervisor.start();
        Self {
            projects,
            rooted,
            entry,
            settings,
            supervisor,
            above,
            servers,
            calls: BTreeMap::new(),
            running: Vec::new(),
            own: BTreeMap::new(),
            instances: Vec::new(),
            is_calm: true,
            asks: Default::default(),
            checked: 0,
        }
    }

    fn upstream(&self) -> Arc<Upstream> {
        self.supervisor.get(NAME).unwrap()
    }

    fn caller(&self, who: Who) -> Caller {
        // Clients of different principals may have the same number.
        let number = u64::from(who.client % 3);
        let project = match (who.client, who.project) {
            (ROOTED, _) => self.rooted.clone(),
            (_, Some(project)) => Project::known(Arc::clone(&self.projects[usize::from(project)])),
            (_, None) => Project::default(),
        };
        Caller {
            project,
            ..Caller::new(number, who.name().into(), who.principal())
        }
    }

    /// The callers that a caller has to share a process with; `None` if it cannot use the server.
    fn key(&self, who: Who) -> Option<Key> {
        let given = who.project.filter(|_| who.client != ROOTED);
        let known = if who.client == ROOTED { Some(0) } else { given };
        match self.entry {
            Entry::All => Some(Key::All),
            Entry::Auto if !self.is_split() => Some(Key::All),
            Entry::Project | Entry::ProjectUnnamed => known.map(Key::Project),
            Entry::ClientInProject => Some(Key::Client(who.client, Some(known?))),
            // A project that is known from roots only makes no difference.
            Entry::Client | Entry::Auto => Some(Key::Client(who.client, given)),
        }
    }

    /// Tests if each client has its own process because the server has asked one of them something.
    fn is_split(&self) -> bool {
        self.entry == Entry::Auto && self.above.has_asked.load(Relaxed)
    }

    /// The command that the process of a caller was started with.
    fn program(&self, who: Who) -> String {
        let caller = self.caller(who);
        let project = caller.project().map(|project| &**project);
        let project = project.unwrap_or_default();
        match self.entry {
            Entry::All | Entry::ProjectUnnamed | Entry::Auto => "/fake".to_owned(),
            Entry::Project => format!("/fake{project}"),
            Entry::Client => format!("/fake/{}", who.name()),
            Entry::ClientInProject => format!("/fake/{}{project}", who.name()),
        }
    }

    async fn step(&mut self, step: Step) -> Checked {
        match step {
            Step::Call {
                who,
                waits,
                works,
                asks,
            } => self.call(who, waits, works, asks).map(|_| ())?,
            Step::Announce(who) => {
                // Others are not asked for roots.
                if who.principal() == Principal::Owner {
                    let (upstream, caller) = (self.upstream(), self.caller(who));
                    let backchannel = self.backchannel(who.client);
                    tokio::spawn(async move { upstream.roots_changed(&caller, backchannel).await });
                }
            }
            Step::ListRoots(list_roots) => self.servers.set_list_roots(list_roots),
            Step::Cancel(index) => {
                if !self.running.is_empty() {
                    let withdrawn = self.running.remove(index.index(self.running.len()));
                    withdrawn.task.abort();
                }
            }
            Step::Crash(index) => {
                self.is_calm = false;
                let running = self.servers.running();
                if !running.is_empty() {
                    index.get(&running).crash();
                }
            }
            Step::Break(servers) => {
                self.is_calm = false;
                self.servers.break_next(servers);
            }
            Step::Leave(client) => self.leave(client),
            Step::Revoke => {
                let who = Who {
                    client: TOKEN,
                    project: None,
                };
                self.abandon(|client| client == TOKEN);
                self.supervisor.principal_left(who.principal());
            }
            Step::Restart(cut) => {
                self.is_calm = false;
                let upstream = self.upstream();
                let cut = cut.map_or(Duration::MAX, Duration::from_millis);
                tokio::spawn(timeout(cut, async move { upstream.restart().await }));
            }
            Step::RestartOne(index) => {
                self.is_calm = false;
                let own = self.upstream().own_instances();
                if !own.is_empty() {
                    let instance = Arc::clone(&index.get(&own).1);
                    tokio::spawn(async move { instance.restart().await });
                }
            }
            Step::Wait(milliseconds) => {
                sleep(Duration::from_millis(milliseconds)).await;
                if !self.settings.is_enabled && milliseconds > 2 * EXIT_MAX {
                    prop_assert_eq!(names(&self.servers.running()), Vec::<String>::new());
                }
            }
            Step::Limit(most) => {
                self.settings.most = most;
                self.apply().await;
            }
            Step::IdleStop(seconds) => {
                self.settings.idle_stop = seconds;
                self.apply().await;
            }
            Step::ExitTakes(milliseconds) => {
                let time = Duration::from_millis(milliseconds);
                self.servers.set_exit_takes(time);
            }
            Step::Replace => {
                self.is_calm = false;
                self.settings.version += 1;
                self.apply().await;
            }
            Step::Disable | Step::Enable => {
                self.is_calm = false;
                self.settings.is_enabled = matches!(step, Step::Enable);
                self.apply().await;
            }
        }
        Ok(())
    }

    async fn apply(&self) {
        let config = self.entry.config(self.settings);
        self.supervisor.apply(config, None, None).await;
    }

    /// Reaches a client until it leaves.
    fn backchannel(&self, client: u8) -> Backchannel {
        let asks = Some(Arc::clone(&self.asks[usize::from(client)]));
        Backchannel::new(Arc::<NotificationQueue>::default(), asks, Reason::default())
    }

    /// Makes a call. Returns `false` if there is no instance for it.
    fn call(
        &mut self,
        who: Who,
        waits: u64,
        works: u64,
        asks: Asks,
    ) -> Result<bool, TestCaseError> {
        let (upstream, caller) = (self.upstream(), self.caller(who));
        let key = self.key(who);
        let existing = upstream.existing(&caller);
        let instance = match upstream.instance(&caller) {
            Ok(instance) => instance,
            Err(Error::NoProject { .. }) => {
                prop_assert_eq!(key, None);
                return Ok(false);
            }
            Err(Error::TooManyInstances { .. }) => {
                prop_assert!(existing.is_none());
                let own = upstream.own_instances();
                let in_use = own.iter().filter(|(_, own)| own.idle_since().is_none());
                let is_full = in_use.count() >= self.settings.most;
                prop_assert!(is_full || who.principal() != Principal::Owner);
                return Ok(false);
            }
            Err(Error::Disabled { .. }) => {
                prop_assert!(!self.settings.is_enabled);
                return Ok(false);
            }
            Err(error) => return Err(TestCaseError::fail(format!("no instance: {error:?}"))),
        };
        prop_assert!(key.is_some());
        let key = key.unwrap();
        if let Some(existing) = existing {
            prop_assert!(Arc::ptr_eq(&existing, &instance));
        }
        self.note(&upstream, key, &instance)?;
        if instance.key().is_some() && who.principal() == Principal::Owner {
            let backchannel = self.backchannel(who.client);
            instance.questions.set_roots(&caller, backchannel);
        }
        let call = u64::try_from(self.calls.len()).unwrap();
        let id = Arc::clone(&instance.id);
        self.calls.insert(call, Call { who, key, id });
        let work = Work {
            call,
            milliseconds: works,
            asks,
        };
        let (above, waits) = (Arc::clone(&self.above), Duration::from_millis(waits));
        self.running.push(Running {
            call,
            client: who.client,
            instance: Arc::clone(&instance),
            task: tokio::spawn(carry(above, upstream, instance, caller, waits, work)),
        });
        Ok(true)
    }

    /// Records the instance that a caller got. No other caller has ever had it.
    fn note(&mut self, upstream: &Upstream, key: Key, instance: &Lease) -> Checked {
        let Some(number) = number_of(&instance.id) else {
            let is_for_all = key == Key::All;
            prop_assert!(is_for_all || self.entry == Entry::Auto, "{key:?} shares");
            return Ok(());
        };
        let own = upstream.own.lock();
        let entry = own.instances.iter().find(|entry| entry.number == number);
        let place = entry.map(|entry| entry.place);
        prop_assert!(place.is_some(), "{} is not known", instance.id);
        let place = place.unwrap_or_default();
        if let Some(known) = self.own.get(&number) {
            prop_assert_eq!(known.key, key);
            prop_assert_eq!(known.place, place);
            return Ok(());
        }
        let known = own.instances.iter().count();
        prop_assert!(known <= self.settings.most, "{known} instances");
        let most = self.settings.most;
        self.own.insert(number, Own { key, most, place });
        self.instances.push(Arc::downgrade(instance));
        Ok(())
    }

    fn leave(&mut self, client: u8) {
        self.abandon(|other| other == client);
        std::mem::take(&mut self.asks[usize::from(client)]).close();
        let who = Who {
            client,
            project: None,
        };
        self.supervisor.client_left(&self.caller(who));
    }

    /// Withdraws the calls of clients.
    fn abandon(&mut self, is_gone: impl Fn(u8) -> bool) {
        let is_gone = |running: &mut Running| is_gone(running.client);
        for withdrawn in self.running.extract_if(.., is_gone) {
            withdrawn.task.abort();
        }
    }

    /// Collects the results of calls that have ended.
    async fn harvest(&mut self) -> Checked {
        let ended = |running: &mut Running| running.task.is_finished();
        let ended: Vec<_> = self.running.extract_if(.., ended).collect();
        for ended in ended {
            match ended.task.await.unwrap() {
                Ok(()) => {
                    let id = &self.calls[&ended.call].id;
                    let all = self.servers.all();
                    let mut its = all.iter().filter(|server| *server.instance == **id);
                    prop_assert!(its.any(|server| server.calls().contains(&ended.call)));
                }
                Err(Error::TimedOut { .. } | Error::Busy { .. }) => {}
                Err(error) => prop_assert!(!self.is_calm, "call {}: {error:?}", ended.call),
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Checked {
        let all = self.servers.all();
        for server in &all {
            self.check_calls(server)?;
        }
        for server in &all[self.checked..] {
            let beside = server.beside.iter().map(|at| &all[*at]);
            self.check_start(server, &beside.collect::<Vec<_>>())?;
        }
        self.checked = all.len();
        for (asker, receiver) in self.above.asked.lock().iter() {
            let (asker, receiver) = (&self.calls[asker], &self.calls[receiver]);
            if let Key::Client(..) = asker.key {
                prop_assert_eq!(
                    asker.who.client,
                    receiver.who.client,
                    "asked another client"
                );
            }
        }
        for (position, client) in self.above.told_roots.lock().iter() {
            self.check_roots(&all[*position], client)?;
        }
        let upstream = self.upstream();
        let own = upstream.own_instances();
        let own: Vec<_> = own.into_iter().map(|(_, instance)| instance).collect();
        for running in &self.running {
            let instance = &running.instance;
            let is_known = own.iter().any(|own| Arc::ptr_eq(own, instance));
            let is_shared = Arc::ptr_eq(&upstream.shared(), instance);
            // A changed entry ends all instances.
            let is_kept = is_known || is_shared || !self.is_calm;
            prop_assert!(is_kept, "{} was stopped", instance.id);
        }
        Ok(())
    }

    /// Checks that only callers with one key have used a process.
    fn check_calls(&self, server: &FakeServer) -> Checked {
        let calls = server.calls();
        let calls: Vec<_> = calls.iter().map(|call| &self.calls[call]).collect();
        for call in &calls {
            prop_assert_eq!(&*call.id, server.instance.as_str());
            let program = self.program(call.who);
            prop_assert_eq!(program.as_str(), server.program.as_str());
        }
        let keys: BTreeSet<_> = calls.iter().map(|call| call.key).collect();
        if number_of(&server.instance).is_some() {
            prop_assert!(keys.len() <= 1, "{} served {keys:?}", server.instance);
            return Ok(());
        }
        // A server that asks leaves its process to the client that it has asked, if no other has used it.
        let mut keepers = keys.iter().filter_map(|key| match key {
            Key::Client(client, _) => Some(*client),
            Key::All | Key::Project(_) => None,
        });
        if let Some(keeper) = keepers.next() {
            let is_its = calls.iter().all(|call| call.who.client == keeper);
            prop_assert!(is_its, "{calls:?} of {keeper} in {}", server.instance);
        }
        Ok(())
    }

    /// Checks that no other client has used the process that has got the roots of this one.
    fn check_roots(&self, server: &FakeServer, client: &Caller) -> Checked {
        prop_assert!(self.entry != Entry::All, "{} got roots", server.instance);
        let is_of_project = matches!(self.entry, Entry::Project | Entry::ProjectUnnamed);
        for call in server.calls() {
            let user = self.caller(self.calls[&call].who);
            let is_its = if is_of_project {
                user.project() == client.project()
            } else {
                let identity = |one: &Caller| (one.realm, one.person, one.project.given().cloned());
                identity(&user) == identity(client)
            };
            let server = &server.instance;
            prop_assert!(
                is_its,
                "{server} got roots of {client:?} and served {user:?}"
            );
        }
        Ok(())
    }

    /// Checks the start of a process beside others.
    fn check_start(&self, server: &FakeServer, beside: &[&Arc<FakeServer>]) -> Checked {
        let others = beside.iter().map(|other| other.instance.as_str());
        let others: BTreeSet<_> = others.filter(|other| *other != server.instance).collect();
        let Some(number) = number_of(&server.instance) else {
            return Ok(());
        };
        let own = &self.own[&number];
        let others = others.into_iter().filter_map(number_of);
        let others: Vec<_> = others.map(|number| (number, &self.own[&number])).collect();
        for (other_number, other) in &others {
            let is_same_place = match (own.key, other.key) {
                (Key::Project(own), Key::Project(other)) => own == other,
                (Key::Client(client, _), Key::Client(other_client, _)) => {
                    let project = None;
                    let principal = |client| Who { client, project }.principal();
                    own.place == other.place && principal(client) == principal(other_client)
                }
                _ => false,
            };
            prop_assert!(
                !is_same_place,
                "{number} and {other_number} have one directory"
            );
        }
        let all = || others.iter().copied().chain([(number, own)]);
        let newest = all().max_by_key(|(number, _)| *number);
        let most = newest.map_or(0, |(_, own)| own.most);
        prop_assert!(all().count() <= most, "{:?} run", all().collect::<Vec<_>>());
        Ok(())
    }

    /// Ends all activity, and checks that nothing is left.
    async fn finish(mut self) -> Checked {
        self.servers.break_next(0);
        self.step(Step::Enable).await?;
        // All calls end, and failed servers are tried again.
        sleep(Duration::from_hours(2)).await;
        self.harvest().await?;
        prop_assert!(self.running.is_empty());
        let known = self.upstream().own_instances().len();
        prop_assert_eq!(self.upstream().own.lock().instances.count(), known);
        self.is_calm = true;
        for project in 0..PROJECTS {
            let who = Who {
                client: 0,
                project: Some(project),
            };
            prop_assert!(
                self.call(who, 0, 0, Asks::Nothing)?,
                "no instance for {who:?}"
            );
            sleep(Duration::from_secs(30)).await;
            self.harvest().await?;
            self.check()?;
        }
        prop_assert!(self.running.is_empty());
        if let Some(seconds) = self.settings.idle_stop {
            sleep(Duration::from_secs(seconds + 30)).await;
            prop_assert_eq!(names(&self.servers.running()), Vec::<String>::new());
        }
        for client in 0..CLIENTS {
            self.leave(client);
        }
        sleep(Duration::from_secs(30)).await;
        let upstream = self.upstream();
        let is_by_client = matches!(self.entry, Entry::Client | Entry::ClientInProject);
        if is_by_client || self.is_split() {
            prop_assert_eq!(names(&self.servers.running()), Vec::<String>::new());
            prop_assert_eq!(upstream.own_instances().len(), 0);
        }
        upstream.stop().await;
        prop_assert_eq!(names(&self.servers.running()), Vec::<String>::new());
        prop_assert_eq!(upstream.own.lock().instances.count(), 0);
        drop(upstream);
        drop(self.supervisor);
        settle().await;
        let left = self.instances.iter().filter_map(Weak::upgrade);
        let left: Vec<_> = left.map(|left| Arc::clone(&left.id)).collect();
        prop_assert!(left.is_empty(), "{left:?}");
        Ok(())
    }
}

/// Waits until nothing is left to do at this time.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

/// The number of an instance that does not serve all callers.
fn number_of(instance: &str) -> Option<u64> {
    let (_, number) = instance.split_once('/')?;
    Some(number.parse().unwrap())
}

fn names(servers: &[Arc<FakeServer>]) -> Vec<String> {
    let names = servers.iter().map(|server| server.instance.clone());
    names.collect()
}
