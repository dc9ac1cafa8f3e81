//! Random profiles, tokens and overrides: lists and requests.

mod carried;
mod changes;
mod handles;
mod memory;
mod namespaces;
mod noticed;
mod realms;
mod tasks;
mod told;
mod twins;

use super::{client::TRANSPORTS, *};

/// Checks that addresses of hidden servers and profiles look like those of missing ones.
async fn check_addresses(world: &World, caller: &Caller, dice: &mut Dice, coverage: &mut Coverage) {
    let token = caller.token.as_deref().unwrap_or(TOKEN);
    let root = world.address(caller);
    let servers = world.servers.iter().map(|server| &*server.name);
    let hidden = servers
        .chain([MEMORY])
        .filter(|name| !world.sees_server(caller, name));
    let mut pairs: Vec<_> = hidden
        .map(|name| (format!("{root}/s/"), name.to_owned()))
        .collect();
    coverage.note_if(!pairs.is_empty(), "address of a hidden server");
    let no_servers = Vec::new();
    let servers = caller.servers.as_ref().unwrap_or(&no_servers);
    for (at, profile) in world.profiles.iter().enumerate() {
        let why = match caller.is_held {
            true if Some(at) != caller.profile => "address of another profile",
            false if !world.shares_server(at, servers) => "address of a profile of other servers",
            _ => continue,
        };
        pairs.push(("/mcp/p/".to_owned(), profile.name.clone()));
        coverage.note(why);
    }
    let mut web = Web::new(&world.rig, token, &root, MODERN).await;
    for (start, hidden) in pairs {
        let missing = dice.word(hidden.len());
        for revision in REVISIONS {
            let mut answers = Vec::new();
            for name in [&hidden, &missing] {
                let answer = web.greet(&format!("{start}{name}"), revision).await;
                let mut told = response(&answer);
                told.as_object_mut().unwrap().remove("id");
                answers.push(told.to_string().replace(name, "NAME"));
                let is_refusal = told["error"].is_object() || answer.status != 200;
                assert!(is_refusal, "{answer:?}");
            }
            assert_eq!(answers[0], answers[1], "seed {} {start}", world.seed);
        }
    }
}

/// Counts what a caller shows of the world.
fn note_caller(world: &World, caller: &Caller, coverage: &mut Coverage) {
    let shown = world.shown_tools(caller, Look::Direct).len();
    let tools = world.servers.iter().map(|server| server.tools.len());
    let is_part = 0 < shown && shown < tools.sum();
    coverage.note_if(is_part, "caller that sees some tools");
    let has_namespace = world.is_confined(caller) && !world.memory_of(caller).is_empty();
    coverage.note_if(has_namespace, "namespace with a memory");
    coverage.note_if(caller.is_held, "token held to a profile");
    let is_held = caller.servers.is_some();
    coverage.note_if(is_held, "token held to servers");
    let is_both = is_held && caller.profile.is_some();
    coverage.note_if(is_both, "token held to servers, under a profile");
    let view = world.profile(caller).and_then(|profile| profile.view);
    let menu = if world.is_menu(caller, Look::Configured) {
        "menu"
    } else {
        "list"
    };
    coverage.note(format!("{} is a {menu}", view.unwrap_or("auto")));
    let long = world.servers[0].tools.len() > 40;
    let is_short = long && menu == "list" && matches!(view, None | Some("auto"));
    coverage.note_if(is_short, "list of a part of many tools");
}

/// Lets a caller do what it may, and what it may not, in each view and revision of every second pair. `turn` selects
/// the transports.
async fn wander(
    world: &World,
    (caller, turn): (&Caller, usize),
    dice: &mut Dice,
    reached: &mut Reached,
    coverage: &mut Coverage,
) {
    check_addresses(world, caller, dice, coverage).await;
    note_caller(world, caller, coverage);
    let mut looks = vec![Look::Configured, Look::Search, Look::Direct];
    let shown = world.shown_servers(caller, Look::Direct);
    if !shown.is_empty() {
        looks.push(Look::One(*dice.pick(&shown)));
    }
    // A pipe takes no token.
    let transports = &TRANSPORTS[usize::from(caller.token.is_some())..];
    for (row, look) in looks.into_iter().enumerate() {
        for (column, revision) in REVISIONS.into_iter().enumerate() {
            let step = row + column;
            if usize::try_from(world.seed % 2).unwrap() == step % 2 {
                continue;
            }
            let transport = transports[(turn + step) % transports.len()];
            let place = (look, transport);
            let mut session = Session::open(world, caller, place, revision, coverage).await;
            session.check_all(dice, reached).await;
        }
    }
}

/// The counters of all that has to be reached with each kind of caller.
fn wanted(transports: &[Transport]) -> Vec<String> {
    let mut wanted = Vec::new();
    for revision in REVISIONS {
        for look in ["configured", "search", "direct", "one"] {
            let views = transports.iter();
            wanted.extend(views.map(|it| format!("{look} view, {revision}, {it:?}")));
        }
        for method in [
            "tools/call",
            "call_tool",
            "describe_tool",
            "retrieve_tools",
            "prompts/get",
            "ref/prompt",
            "ref/resource",
            "resources/read",
            "resources/subscribe",
            "resources/unsubscribe",
            "extension",
        ] {
            if revision != MODERN || !method.ends_with("subscribe") {
                wanted.extend(["visible", "hidden"].map(|it| format!("{it} {method}, {revision}")));
            }
        }
        let searches = ["search within", "place in a search"];
        wanted.extend(searches.map(|it| format!("hidden {it}, {revision}")));
        wanted.extend(["confined", "free"].map(|it| format!("{it} memory, {revision}")));
    }
    let others = [
        "caller that sees some tools",
        "namespace with a memory",
        "call of a renamed tool",
        "call of a tool by the name of another",
        "call with a fixed argument",
        "call without a hidden argument",
        "held tool",
        "tool of a hidden server",
        "old name of a tool",
        "tool whose name another one has",
        "tool that a profile leaves out",
        "tool that an override hides",
        "tool that its server's entry leaves out",
        "tool of the memory",
        "address of a hidden server",
        "auto is a menu",
        "auto is a list",
        "list of a part of many tools",
        "search is a menu",
        "direct is a list",
    ];
    wanted.extend(others.map(str::to_owned));
    wanted
}

#[tokio::test]
async fn profiles_show_exactly_what_they_include() {
    let mut coverage = Coverage::default();
    for seed in seeds(0..WORLDS) {
        let mut dice = Dice::new(seed);
        let world = World::new(seed, &mut dice, true).await;
        let mut reached = Reached::default();
        for profile in 0..world.profiles.len() {
            let caller = Caller::under(profile);
            let caller = (&caller, profile);
            wander(&world, caller, &mut dice, &mut reached, &mut coverage).await;
        }
        reached.check(&world);
        world.rig.stop().await;
    }
    coverage.require(wanted(&TRANSPORTS));
}

#[tokio::test]
async fn tokens_show_exactly_what_they_are_held_to() {
    let mut coverage = Coverage::default();
    for seed in seeds(100..100 + WORLDS) {
        let mut dice = Dice::new(seed);
        let world = World::new(seed, &mut dice, true).await;
        let mut reached = Reached::default();
        for number in 0..3 {
            let caller = world.token_caller(&mut dice, number).await;
            let caller = (&caller, number);
            wander(&world, caller, &mut dice, &mut reached, &mut coverage).await;
        }
        reached.check(&world);
        world.rig.stop().await;
    }
    let held = [
        "token held to a profile",
        "token held to servers",
        "token held to servers, under a profile",
        "address of another profile",
        "address of a profile of other servers",
    ];
    let held = held.map(str::to_owned).into_iter();
    coverage.require(wanted(&TRANSPORTS[1..]).into_iter().chain(held));
}

/// The worlds of each kind of caller.
const WORLDS: u64 = 5;
