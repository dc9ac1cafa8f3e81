//! The instances of a server under random clients, failures and settings.
//!
//! Only the clock and the processes are not real: time is virtual, and [fake servers](fake_servers) run in this
//! process. The clients do what `core` does for a call.

pub(crate) mod fake_servers;
mod rig;
mod world;

use std::{sync::Arc, time::Duration};

use proptest::{prelude::*, sample::Index};
use switchboard_base::caller::{Caller, Principal};
use switchboard_config::Sharing;
use switchboard_store::Store;
use tempfile::TempDir;
use tokio::runtime::Builder;

use self::{
    fake_servers::{Asks, FakeServers},
    world::{EXIT_MAX, Entry, Program, SETTLE, Settings, Step, TOKEN, Who, World},
};
use crate::{supervisor::Supervisor, upstream::Upstream};

const CLIENTS: u8 = 6;
const PROJECTS: u8 = 3;

fn who() -> impl Strategy<Value = Who> {
    let project = prop::option::weighted(0.8, 0..PROJECTS);
    (0..CLIENTS, project).prop_map(|(client, project)| Who { client, project })
}

/// A step of one of these callers, so that they meet.
fn step(cast: Vec<Who>) -> impl Strategy<Value = Step> {
    let announce = prop::sample::select(cast.clone()).prop_map(Step::Announce);
    let index = any::<Index>;
    let clients: Vec<_> = cast.iter().map(|who| who.client).collect();
    let soon = || prop_oneof![2 => Just(0_u64), 2 => 0..200_u64, 2 => 0..90_000_u64];
    let call = (
        prop::sample::select(cast),
        soon(),
        soon(),
        prop_oneof![5 => Just(Asks::Nothing), 3 => Just(Asks::User), 2 => Just(Asks::Roots)],
    );
    let call = call.prop_map(|(who, waits, works, asks)| Step::Call {
        who,
        waits,
        works,
        asks,
    });
    let cut = prop::option::of(prop_oneof![Just(0), 0..3_000_u64]);
    prop_oneof![
        14 => call,
        2 => announce,
        1 => any::<bool>().prop_map(Step::ListRoots),
        2 => index().prop_map(Step::Cancel),
        2 => index().prop_map(Step::Crash),
        1 => (1..8_usize).prop_map(Step::Break),
        2 => prop::sample::select(clients).prop_map(Step::Leave),
        1 => Just(Step::Revoke),
        1 => cut.prop_map(Step::Restart),
        1 => index().prop_map(Step::RestartOne),
        6 => (0..30_000_u64).prop_map(Step::Wait),
        2 => (0..400_000_u64).prop_map(Step::Wait),
        1 => (1..5_usize).prop_map(Step::Limit),
        1 => prop::option::of(1..120_u64).prop_map(Step::IdleStop),
        1 => (0..EXIT_MAX).prop_map(Step::ExitTakes),
        1 => Just(Step::Replace),
        1 => Just(Step::Disable),
        1 => Just(Step::Enable),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    let entry = prop_oneof![
        1 => Just(Entry::All),
        2 => Just(Entry::Project),
        1 => Just(Entry::ProjectUnnamed),
        2 => Just(Entry::Client),
        2 => Just(Entry::ClientInProject),
        3 => Just(Entry::Auto),
    ];
    let settings = (1..5_usize, prop::option::weighted(0.8, 1..120_u64));
    let pause = || prop_oneof![2 => Just(0), 2 => 1..12_u8, 3 => Just(SETTLE)];
    let cast = prop::collection::vec(who(), 1..6);
    let steps = cast.prop_flat_map(move |cast| prop::collection::vec((step(cast), pause()), 1..50));
    (entry, settings, steps).prop_map(|(entry, (most, idle_stop), steps)| Program {
        entry,
        settings: Settings {
            most,
            idle_stop,
            version: 0,
            is_enabled: true,
        },
        steps,
    })
}

fn run(program: Program) -> Result<(), TestCaseError> {
    let mut runtime = Builder::new_current_thread();
    // Work on other threads is done in the order in which it was begun.
    runtime
        .enable_all()
        .start_paused(true)
        .max_blocking_threads(1);
    runtime.build().unwrap().block_on(World::run(program))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn processes_serve_their_own_key_and_end(program in program()) {
        run(program)?;
    }
}

/// Runs steps, each until nothing is left to do at its time.
fn run_steps(entry: Entry, most: usize, idle_stop: Option<u64>, steps: &[Step]) {
    let settings = Settings {
        most,
        idle_stop,
        version: 0,
        is_enabled: true,
    };
    let steps = steps.iter().map(|step| (step.clone(), SETTLE)).collect();
    run(Program {
        entry,
        settings,
        steps,
    })
    .unwrap();
}

/// A call of a client of the owner in a project.
const fn call(client: u8, project: u8) -> Step {
    Step::Call {
        who: Who {
            client,
            project: Some(project),
        },
        waits: 0,
        works: 0,
        asks: Asks::Nothing,
    }
}

/// A call that waits and works, in milliseconds, and makes the server ask something.
const fn asking(client: u8, waits: u64, works: u64) -> Step {
    Step::Call {
        who: Who {
            client,
            project: None,
        },
        waits,
        works,
        asks: Asks::User,
    }
}

#[test]
fn kept_process_serves_no_waiting_call() {
    // The second client waits for an approver while the server asks the first one.
    let steps = [
        asking(1, 20_000, 0),
        asking(0, 0, 0),
        Step::Wait(5_000),
        asking(0, 0, 0),
    ];
    run_steps(Entry::Auto, 4, None, &steps);
}

#[test]
fn kept_process_gets_no_earlier_announced_roots() {
    let who = |client| Who {
        client,
        project: None,
    };
    let token = |asks| Step::Call {
        who: who(TOKEN),
        waits: 0,
        works: 0,
        asks,
    };
    // The server does not run when the first client announces roots, and lists them when it runs again for the other.
    let steps = [
        Step::Wait(60_000),
        Step::Announce(who(0)),
        token(Asks::Roots),
        Step::Wait(60_000),
        Step::ListRoots(true),
        token(Asks::Nothing),
    ];
    run_steps(Entry::Auto, 4, Some(1), &steps);
}

#[test]
fn abandoned_process_of_split_server_ends() {
    // The question could belong to either call.
    let steps = [asking(0, 0, 1_000), asking(1, 0, 20_000)];
    run_steps(Entry::Auto, 4, None, &steps);
}

#[test]
fn successor_waits_for_idle_stop_in_progress() {
    let steps = [
        Step::ExitTakes(5_000),
        call(0, 0),
        Step::Wait(12_000),
        call(0, 1),
    ];
    run_steps(Entry::Project, 1, Some(10), &steps);
}

#[test]
fn successor_waits_for_replaced_process_of_its_project() {
    let steps = [
        Step::ExitTakes(5_000),
        call(0, 0),
        Step::Wait(1_000),
        call(0, 1),
        Step::Wait(1_000),
        call(0, 2),
        // The process that makes room for the successor ends before the former one of its project.
        Step::ExitTakes(100),
        call(0, 0),
    ];
    run_steps(Entry::Project, 2, None, &steps);
}

#[test]
fn interrupted_restart_ends_the_processes() {
    let steps = [
        Step::ExitTakes(5_000),
        call(0, 0),
        Step::Wait(1_000),
        Step::Restart(Some(0)),
    ];
    run_steps(Entry::Project, 2, None, &steps);
}

#[test]
fn changed_server_waits_for_clients_that_left() {
    let steps = [
        Step::ExitTakes(5_000),
        call(0, 0),
        Step::Wait(1_000),
        Step::Leave(0),
        Step::Replace,
        call(0, 0),
    ];
    run_steps(Entry::Client, 2, None, &steps);
}

/// A server with this entry.
fn upstream(dir: &TempDir, entry: &str) -> Arc<Upstream> {
    let config = format!(r#"{{"mcpServers": {{"s": {entry}}}}}"#);
    let config = switchboard_config::parse(&config, "test").unwrap();
    let store = Store::open_after(dir.path().join("audit.db"), Duration::from_hours(1));
    let deps = rig::deps(dir.path(), config, FakeServers::default(), store);
    let supervisor = Supervisor::new(deps);
    supervisor.start();
    supervisor.get("s").unwrap()
}

#[tokio::test]
async fn process_of_a_waiting_message_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let upstream = upstream(&dir, r#"{"command": "/fake"}"#);
    let [one, two] = [1, 2].map(|number| Caller::new(number, "c".into(), Principal::Owner));
    upstream.instance(&one).unwrap();
    let its = upstream.expected(&two).unwrap();
    upstream.has_asked(Some(&one));
    assert!(!Arc::ptr_eq(&upstream.instance(&one).unwrap(), &its));
    assert!(upstream.expected(&two).is_none());
    upstream.stop().await;
}

/// A call that has begun, but has not reached the former process, goes to the next one.
#[tokio::test]
async fn new_process_has_no_former_users() {
    let dir = tempfile::tempdir().unwrap();
    let upstream = upstream(&dir, r#"{"command": "/fake"}"#);
    let [one, two] = [1, 2].map(|number| Caller::new(number, "c".into(), Principal::Owner));
    let is_only_user = |caller: &Caller| upstream.shared().questions.is_only_user(caller);
    let call = upstream.instance(&one).unwrap();
    upstream.restart().await;
    assert!(is_only_user(&one) && !is_only_user(&two));
    drop(call);
    upstream.shared().questions.note(&one);
    assert!(upstream.shared().questions.is_for_owner(Principal::Anyone));
    upstream.restart().await;
    let questions = Arc::clone(&upstream.shared().questions);
    assert!(!questions.is_for_owner(Principal::Anyone));
    assert!(is_only_user(&two) && !is_only_user(&one));
    upstream.stop().await;
}

/// A remote server serves all clients over one connection, and is never split.
#[tokio::test]
async fn remote_server_gets_roots_of_its_only_user() {
    let dir = tempfile::tempdir().unwrap();
    let upstream = upstream(&dir, r#"{"url": "http://127.0.0.1:9/"}"#);
    let [one, two] = [1, 2].map(|number| Caller::new(number, "c".into(), Principal::Owner));
    let questions = Arc::clone(&upstream.shared().questions);
    assert!(upstream.may_get_roots(&questions, &one, false));
    assert!(!upstream.may_get_roots(&questions, &two, false));
    // In its own call.
    assert!(upstream.may_get_roots(&questions, &two, true));
    upstream.instance(&two).unwrap();
    assert!(!upstream.may_get_roots(&questions, &one, false));
    assert_eq!(upstream.sharing().0, Sharing::All);
    upstream.stop().await;
}
