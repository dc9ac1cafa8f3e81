//! Handles of long results and of tasks in random worlds: each belongs to the realm that got it.

use super::{handles::altered, *};

/// The handles that a caller has got.
struct Owned {
    caller: Caller,
    /// The server that has the task.
    at: usize,
    /// The server's own ID of the task.
    own: String,
    task: String,
    /// The ID of a long result, and a word in it.
    result: String,
    word: String,
}

/// The methods about a task.
const METHODS: [&str; 4] = ["tasks/get", "tasks/result", "tasks/cancel", "tasks/update"];
/// The views that have `read_result`.
const READING: [Look; 3] = [Look::Configured, Look::Search, Look::Direct];

/// Lets a caller get handles, if it sees a tool.
async fn own(world: &World, caller: Caller, dice: &mut Dice) -> Option<Owned> {
    let shown = world.shown_tools(&caller, Look::Direct);
    if shown.is_empty() {
        return None;
    }
    let (server, tool) = *dice.pick(&shown);
    let is_it = |other: &Server| other.name == server.name;
    let at = world.servers.iter().position(is_it).unwrap();
    let word = dice.item();
    let text = format!("{word} ").repeat(2 * RESULT_BYTES / word.len());
    let long = json!({ "content": [{ "type": "text", "text": text }] });
    server.stage.set_result(&tool.own, &long.to_string());
    let revision = *dice.pick(&REVISIONS);
    let look = *dice.pick(&READING);
    let mut client = open(world, &caller, look, (transport(&caller, dice), revision)).await;
    let arguments = json!({ "note": "n" });
    let call = if world.is_menu(&caller, look) {
        let name = format!("{}:{}", server.name, tool.shown());
        let call = json!({ "name": name, "arguments": arguments });
        json!({ "name": "call_tool", "arguments": call })
    } else {
        let name = format!("{}__{}", server.name, tool.shown());
        json!({ "name": name, "arguments": arguments })
    };
    let cut = text_of(&client.ask("tools/call", call).await["result"]);
    let (_, call) = cut
        .split_once("read_result ")
        .unwrap_or_else(|| panic!("{cut}"));
    let call: Value = serde_json::from_str(call.split_inclusive('}').next().unwrap()).unwrap();
    let own = dice.item();
    let task = json!({ "task": { "taskId": own, "status": "working" } });
    server.stage.set_result(&tool.own, &task.to_string());
    let place = (transport(&caller, dice), "2025-11-25");
    let mut client = open(world, &caller, Look::One(at), place).await;
    let call_of_task = json!({ "name": tool.shown(), "arguments": arguments, "task": {} });
    let begun = client.ask("tools/call", call_of_task).await;
    let task = begun["result"]["task"]["taskId"].as_str();
    let task = task.unwrap_or_else(|| panic!("{begun}")).to_owned();
    server.set_result(tool);
    let result = call["id"].as_str().unwrap().to_owned();
    Some(Owned {
        caller,
        at,
        own,
        task,
        result,
        word,
    })
}

/// A transport that a caller can use.
fn transport(caller: &Caller, dice: &mut Dice) -> Transport {
    *dice.pick(&TRANSPORTS[usize::from(caller.token.is_some())..])
}

async fn open(
    world: &World,
    caller: &Caller,
    look: Look,
    (transport, revision): (Transport, &'static str),
) -> Client {
    let door = door(world, caller, look, transport, revision);
    Client::open(&world.rig, &door).await.0
}

/// Lets the servers answer requests about tasks, and list those of all callers.
fn serve_tasks(world: &World, all: &[Owned]) {
    for (at, server) in world.servers.iter().enumerate() {
        let of_server = all.iter().filter(|owned| owned.at == at);
        let tasks = of_server.map(|owned| json!({ "taskId": owned.own, "status": "working" }));
        let tasks: Vec<_> = tasks.collect();
        let one = json!({ "taskId": "any", "status": "working" });
        for (method, result) in [
            ("tasks/list", json!({ "tasks": tasks })),
            ("tasks/get", one.clone()),
            ("tasks/cancel", one),
        ] {
            server
                .stage
                .set_answer(method, &format!("\"result\":{result}"));
        }
    }
}

/// A number below `end`, and some others. With all of them, the tests would take too long.
fn some(number: usize, end: usize, dice: &mut Dice) -> Vec<usize> {
    let mut others: Vec<_> = (0..end).filter(|other| *other != number).collect();
    dice.shuffle(&mut others);
    others.truncate(3);
    others.push(number);
    others
}

/// Lets one caller read its long result and those of others, in a view with `read_result`.
async fn check_results(
    world: &World,
    (number, all): (usize, &[Owned]),
    (look, place): (Look, (Transport, &'static str)),
    dice: &mut Dice,
    coverage: &mut Coverage,
) {
    let caller = &all[number].caller;
    let mut client = open(world, caller, look, place).await;
    let is_menu = world.is_menu(caller, look);
    let name = if is_menu {
        "read_result"
    } else {
        "switchboard__read_result"
    };
    let read = json!({ "name": name, "arguments": { "id": "NAME" } });
    let missing = altered(&all[number].result);
    let of_missing = client.answer("tools/call", &read, &missing).await;
    for owner in some(number, all.len(), dice) {
        let owned = &all[owner];
        let found = client.answer("tools/call", &read, &owned.result).await;
        let (_, revision) = place;
        let about = format!("seed {}, {look:?}, {revision}: {found}", world.seed);
        assert_eq!(of_missing["result"]["isError"], true, "{about}");
        if owner == number {
            assert!(text_of(&found["result"]).contains(&owned.word), "{about}");
        } else {
            assert_eq!(found, of_missing, "{about}");
        }
        let whose = if owner == number { "own" } else { "foreign" };
        coverage.note(format!("{whose} result, {}, {revision}", look.name()));
    }
}

/// Lets one caller use its task and those of others, in a view.
async fn check_tasks(
    world: &World,
    (number, all): (usize, &[Owned]),
    (look, place): (Look, (Transport, &'static str)),
    dice: &mut Dice,
    coverage: &mut Coverage,
) {
    let (_, revision) = place;
    let caller = &all[number].caller;
    let mut client = open(world, caller, look, place).await;
    let shown = world.shown_servers(caller, look);
    let owners = some(number, all.len(), dice);
    for method in METHODS {
        let of = json!({ "taskId": "NAME", "inputResponses": {} });
        let missing = altered(&all[number].task);
        let of_missing = client.answer(method, &of, &missing).await;
        for owner in &owners {
            let owned = &all[*owner];
            let is_theirs = *owner == number && shown.contains(&owned.at);
            let about = format!("seed {}, {look:?}, {revision}, {method}", world.seed);
            if is_theirs {
                // Clients of 2026-07-28 have no tasks at servers of 2025-11-25.
                if method == "tasks/get" && revision != MODERN {
                    let got = client.answer(method, &of, &owned.task).await;
                    assert!(got["result"].is_object(), "{about}: {got}");
                    coverage.note(format!("own task, {}, {revision}", look.name()));
                }
                continue;
            }
            let found = client.answer(method, &of, &owned.task).await;
            assert_eq!(found, of_missing, "{about}");
            assert!(found["error"].is_object(), "{about}: {found}");
            coverage.note(format!("foreign {method}, {}, {revision}", look.name()));
        }
    }
    if let Look::One(at) = look
        && revision != MODERN
    {
        let listed = client.ask("tasks/list", json!({})).await;
        let tasks = listed["result"]["tasks"].as_array().unwrap().iter();
        let tasks: Vec<_> = tasks.map(|task| task["taskId"].as_str().unwrap()).collect();
        let own = Some(&all[number]).filter(|owned| owned.at == at);
        assert_eq!(tasks.len(), usize::from(own.is_some()), "{listed}");
        coverage.note_if(own.is_some(), "own task in a list");
        coverage.note_if(own.is_none(), "list of tasks of others");
    }
}

/// Lets every caller use the handles of all.
async fn check(world: &World, all: &[Owned], dice: &mut Dice, coverage: &mut Coverage) {
    for (number, owned) in all.iter().enumerate() {
        let caller = &owned.caller;
        if !world.has_profile(caller) {
            continue;
        }
        let start = usize::try_from(world.seed).unwrap() + number;
        for (row, look) in READING.into_iter().enumerate() {
            let place = (transport(caller, dice), REVISIONS[(start + row) % 5]);
            let (of, view) = ((number, all), (look, place));
            check_results(world, of, view, dice, coverage).await;
        }
        let shown = world.shown_servers(caller, Look::Direct);
        let one = shown.iter().map(|at| Look::One(*at));
        for (row, look) in one.chain([*dice.pick(&READING)]).enumerate() {
            let place = (transport(caller, dice), REVISIONS[(start + row) % 5]);
            let (of, view) = ((number, all), (look, place));
            check_tasks(world, of, view, dice, coverage).await;
        }
    }
}

/// Checks that the servers were asked about tasks only by the callers that have them.
fn check_asked(world: &World, all: &[Owned]) {
    for (at, server) in world.servers.iter().enumerate() {
        for line in server.stage.asked() {
            let (method, params) = line.split_once(' ').unwrap();
            if !METHODS.contains(&method) {
                continue;
            }
            assert_eq!(method, "tasks/get", "seed {}: {line}", world.seed);
            let is_it = |owned: &Owned| owned.at == at && params.contains(&owned.own);
            assert!(all.iter().any(is_it), "seed {}: {line}", world.seed);
        }
    }
}

/// The callers: the owner, with and without a profile, and tokens. Two tokens, and a token and the owner, have the
/// same scope.
async fn callers(world: &World, dice: &mut Dice) -> Vec<Caller> {
    let mut callers = vec![Caller::everything(None)];
    callers.extend((0..world.profiles.len()).map(Caller::under));
    for number in 0..3 {
        callers.push(world.token_caller(dice, number).await);
    }
    for (name, profile) in [("twin", 0), ("other", 0)] {
        let held = Some(&*world.profiles[profile].name);
        callers.push(Caller {
            token: Some(token(&world.rig, name, held, &[]).await),
            is_held: true,
            is_addressed: false,
            ..Caller::under(profile)
        });
    }
    callers
}

#[tokio::test]
async fn handles_of_random_realms_look_missing() {
    let mut coverage = Coverage::default();
    for seed in seeds(400..403) {
        let mut dice = Dice::new(seed);
        let mut world = World::new(seed, &mut dice, false).await;
        let mut all = Vec::new();
        for caller in callers(&world, &mut dice).await {
            all.extend(own(&world, caller, &mut dice).await);
        }
        serve_tasks(&world, &all);
        check(&world, &all, &mut dice, &mut coverage).await;
        // The profiles lose the servers with the tasks of some callers.
        for at in 0..world.profiles.len() {
            let lost = all.iter().find(|owned| owned.caller.profile == Some(at));
            let lost = lost.map(|owned| &world.servers[owned.at].name);
            let others = world.servers.iter().map(|server| &server.name);
            let others = others.filter(|name| Some(*name) != lost).cloned();
            world.profiles[at].servers = Some(others.collect());
        }
        let config = config(&world.servers, &world.profiles);
        world.rig.reconfigure(&config).await;
        for owned in &all {
            let has_lost = !world.sees_server(&owned.caller, &world.servers[owned.at].name);
            coverage.note_if(has_lost, "task at a lost server");
        }
        check(&world, &all, &mut dice, &mut coverage).await;
        check_asked(&world, &all);
        world.rig.stop().await;
    }
    let mut wanted = vec!["task at a lost server".to_owned()];
    for revision in REVISIONS {
        for look in ["configured", "search", "direct"] {
            let whose = ["own", "foreign"];
            wanted.extend(whose.map(|whose| format!("{whose} result, {look}, {revision}")));
        }
        let foreign = METHODS.map(|method| format!("foreign {method}, one, {revision}"));
        wanted.extend(foreign);
        if revision != MODERN {
            wanted.push(format!("own task, one, {revision}"));
        }
    }
    for look in ["configured", "search", "direct"] {
        let methods = METHODS.iter();
        wanted.extend(methods.map(|method| format!("foreign {method}, {look}, {MODERN}")));
    }
    let lists = ["own task in a list", "list of tasks of others"];
    wanted.extend(lists.map(str::to_owned));
    coverage.require(wanted);
}
