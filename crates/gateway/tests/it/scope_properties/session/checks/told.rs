//! Messages that belong to no request: clients of each revision and transport hear of changes that they see, and of
//! no others.
//!
//! In each round, something changes. Once a client that sees everything has heard of it, each server logs something
//! and says that its resource has changed, one after another. A client that has heard of the last of these that it
//! sees has also heard of the change, or never will; and what it hears too late, it hears in the wrong round.

use super::*;

const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
pub(super) const UPDATED: &str = "notifications/resources/updated";

/// A change of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// The owner gives a tool another description.
    Override {
        tool: usize,
    },
    /// The server gives a tool another description.
    Tool {
        tool: usize,
    },
    Prompt,
    Resource,
    Template,
    /// The server sends a message of its extension.
    Extension,
}

impl Event {
    fn kind(self) -> &'static str {
        match self {
            Event::Override { .. } | Event::Tool { .. } => "tools",
            Event::Prompt => "prompts",
            Event::Resource | Event::Template => "resources",
            Event::Extension => "extension",
        }
    }

    fn tool(self) -> Option<usize> {
        match self {
            Event::Override { tool } | Event::Tool { tool } => Some(tool),
            _ => None,
        }
    }
}

/// The message of a server's extension.
fn message_of(server: &Server) -> String {
    format!("notifications/{}/changed", server.extra[0])
}

/// Lets a server change something, and says so in its name.
async fn cause(server: &mut Server, event: Event, dice: &mut Dice) {
    let method = match event {
        Event::Override { tool } => {
            server.tools[tool].new_about = Some(dice.item());
            return;
        }
        Event::Tool { tool } => {
            server.tools[tool].about = dice.item();
            server.set_tools();
            LIST_CHANGED
        }
        Event::Prompt => {
            server.prompt[1] = dice.item();
            server.set_prompts();
            PROMPTS_CHANGED
        }
        Event::Resource => {
            server.resource[1] = dice.item();
            server.set_resources();
            RESOURCES_CHANGED
        }
        Event::Template => {
            server.template[1] = dice.item();
            server.set_templates();
            RESOURCES_CHANGED
        }
        Event::Extension => &message_of(server),
    };
    server.stage.tell(method).await;
}

/// A client that hears of changes.
struct Listener {
    caller: Caller,
    look: Look,
    transport: Transport,
    revision: &'static str,
    ear: Ear,
    heard: BTreeSet<String>,
}

/// The name of a message here.
fn short(said: &Value) -> String {
    let text_at = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let text = |key: &str| text_at(&said["params"][key]);
    match said["method"].as_str().unwrap_or_default() {
        LIST_CHANGED => "tools".to_owned(),
        PROMPTS_CHANGED => "prompts".to_owned(),
        RESOURCES_CHANGED => "resources".to_owned(),
        LOG => format!("log {}", text("data")),
        UPDATED => format!("updated {}", text("uri")),
        _ => text_at(&said["method"]),
    }
}

/// The address of a resource in a view.
fn address(world: &World, look: Look, at: usize) -> String {
    let server = &world.servers[at];
    match look {
        Look::One(_) => server.uri(),
        _ => format!("switchboard://{}/{}", server.name, server.uri()),
    }
}

impl Listener {
    async fn open(
        world: &World,
        caller: Caller,
        (look, transport): (Look, Transport),
        revision: &'static str,
    ) -> Self {
        let door = door(world, &caller, look, transport, revision);
        let (mut client, _) = Client::open(&world.rig, &door).await;
        let shown = world.shown_servers(&caller, look);
        let all = (0..world.servers.len()).filter(|at| look == Look::One(*at) || !is_one(look));
        let uris: Vec<_> = all.map(|at| (at, address(world, look, at))).collect();
        let seen: Vec<_> = shown.iter().map(|at| address(world, look, *at)).collect();
        let ear = if revision == MODERN {
            let wanted: Vec<_> = uris.iter().map(|(_, uri)| uri).collect();
            let wanted = json!({
                "toolsListChanged": true, "promptsListChanged": true,
                "resourcesListChanged": true, "resourceSubscriptions": wanted,
                "com.example/x": true,
            });
            let listen = Some(json!({ "notifications": wanted }));
            let mut ear = client.into_ear(listen).await;
            let opened = ear.next().await;
            let honoured = &opened["params"]["notifications"]["resourceSubscriptions"];
            let none = json!([]);
            let honoured = if honoured.is_null() { &none } else { honoured };
            assert_eq!(*honoured, json!(seen), "{opened}");
            ear
        } else {
            client
                .ask("logging/setLevel", json!({ "level": "debug" }))
                .await;
            for (at, uri) in uris {
                let params = json!({ "uri": uri });
                let answer = client.ask("resources/subscribe", params).await;
                let is_fine = answer["result"].is_object();
                assert_eq!(is_fine, shown.contains(&at), "{answer}");
            }
            client.into_ear(None).await
        };
        Self {
            caller,
            look,
            transport,
            revision,
            ear,
            heard: BTreeSet::new(),
        }
    }

    /// Waits for a message.
    async fn until(&mut self, what: &str) {
        while !self.heard.contains(what) {
            let said = self.ear.next().await;
            self.heard.insert(short(&said));
        }
    }

    /// Waits for the end of its stream. All that it may still hear is that lists have changed.
    async fn end(self) {
        let about = format!("{:?} {:?} {}", self.look, self.transport, self.revision);
        let told = self.ear.end().await;
        // A response has no name.
        let is_change = |said: &String| ["tools", "prompts", "resources", ""].contains(&&**said);
        let told: Vec<_> = told.iter().map(short).collect();
        assert!(told.iter().all(is_change), "{about}: {told:?}");
    }

    fn is_everything(&self) -> bool {
        self.caller.profile.is_none() && self.caller.servers.is_none()
    }

    /// Tests if its profile leaves out no tool, as far as the gateway knows.
    fn sees_all(&self, world: &World) -> bool {
        let tools = world.profile(&self.caller).map(|profile| &profile.tools);
        tools.is_none_or(|tools| tools.allow.is_none() && tools.deny.is_empty())
    }

    fn sees_server(&self, world: &World, at: usize) -> bool {
        world.sees_server(&self.caller, &world.servers[at].name)
    }

    /// Tests if its caller has anything to do with what an event is about.
    fn is_in_scope(&self, world: &World, at: usize, event: Event) -> bool {
        let server = &world.servers[at];
        let sees = |tool: usize| world.sees_tool(&self.caller, server, &server.tools[tool]);
        self.sees_server(world, at) && event.tool().is_none_or(sees)
    }

    /// Tests if it has to hear of an event.
    fn hears(&self, world: &World, at: usize, event: Event) -> bool {
        let (caller, server) = (&self.caller, &world.servers[at]);
        let is_one = self.look == Look::One(at);
        match event {
            // A client that sees all of a server hears of every change that it announces.
            Event::Tool { .. } if is_one && self.is_everything() => return true,
            // An override replaces the description.
            Event::Tool { tool } if server.tools[tool].new_about.is_some() => return false,
            // It may be about a tool that the profile leaves out.
            Event::Extension if !is_one || !self.sees_all(world) => return false,
            _ => {}
        }
        let is_menu = event.tool().is_some() && world.is_menu(caller, self.look);
        let in_view = world.shown_servers(caller, self.look).contains(&at);
        in_view && !is_menu && self.is_in_scope(world, at, event)
    }

    /// The messages that it has to hear in a round.
    fn expected(&self, world: &World, round: &Round) -> BTreeSet<String> {
        let mut expected = BTreeSet::new();
        if self.hears(world, round.at, round.event) {
            expected.insert(round.name(world));
        }
        for at in world.shown_servers(&self.caller, self.look) {
            expected.insert(format!("updated {}", address(world, self.look, at)));
        }
        expected
    }

    /// The messages that it may hear in any round: a log that belongs to no call may be kept from it, and is if its
    /// profile leaves out tools.
    fn logs<'a>(&self, world: &World, logs: &'a [String]) -> impl Iterator<Item = String> + 'a {
        let shown = world.shown_servers(&self.caller, self.look);
        // In 2026-07-28, only calls have logs.
        let may_hear = self.revision != MODERN && self.sees_all(world);
        let shown = shown.into_iter().filter(move |_| may_hear);
        shown.map(|at| format!("log {}", logs[at]))
    }

    /// Checks what it has heard in a round.
    async fn check(&mut self, world: &World, round: &Round, coverage: &mut Coverage) {
        let expected = self.expected(world, round);
        for what in &expected {
            self.until(what).await;
        }
        let mut heard = std::mem::take(&mut self.heard);
        for log in self.logs(world, &round.logs) {
            heard.remove(&log);
        }
        if self.is_everything() && is_one(self.look) {
            // It hears of each change that is announced and of each that is found.
            let is_change = |what: &str| ["tools", "prompts", "resources"].contains(&what);
            heard.retain(|what| expected.contains(what) || !is_change(what));
        }
        let Self {
            look,
            transport,
            revision,
            ..
        } = &*self;
        let (profile, servers) = (self.caller.profile, &self.caller.servers);
        assert_eq!(
            heard, expected,
            "seed {}, {look:?}, {revision}, {transport:?}, profile {profile:?}, servers {servers:?}, server {} {:?}",
            world.seed, round.at, round.event
        );
        let mut note = |told: &str, kind: &str| {
            coverage.note(format!("{told} {kind}, {revision}, {transport:?}"));
        };
        if self.hears(world, round.at, round.event) {
            note("told", round.event.kind());
        } else if !self.is_in_scope(world, round.at, round.event) {
            note("withheld", round.event.kind());
        }
        for at in 0..world.servers.len() {
            let is_told = self.sees_server(world, at);
            if is_told && !world.shown_servers(&self.caller, *look).contains(&at) {
                continue;
            }
            let told = if is_told { "told" } else { "withheld" };
            note(told, "updated");
            if *revision != MODERN {
                note(told, "log");
            }
        }
    }
}

fn is_one(look: Look) -> bool {
    matches!(look, Look::One(_))
}

/// A change of a server, and what all servers log after it.
struct Round {
    at: usize,
    event: Event,
    logs: Vec<String>,
}

impl Round {
    /// The name of the message about it.
    fn name(&self, world: &World) -> String {
        match self.event {
            Event::Extension => message_of(&world.servers[self.at]),
            event => event.kind().to_owned(),
        }
    }
}

/// The changes of all rounds, each with the server. The gateway fetches the lists of a server less and less often,
/// so that each server announces few changes, and not in a row.
fn events(dice: &mut Dice, servers: &[Server]) -> Vec<(usize, Event)> {
    let mut all = Vec::new();
    for number in 0..5 {
        for (at, server) in servers.iter().enumerate() {
            let few = server.tools.len().min(6);
            let tool = dice.below(few);
            let event = match number {
                0 => Event::Tool { tool: 0 },
                1 => Event::Prompt,
                2 => Event::Resource,
                3 => Event::Template,
                _ => Event::Tool { tool },
            };
            all.push((at, event));
            let offered = (0..few).filter(|tool| server.offers(&server.tools[*tool]));
            if let Some(tool) = offered.clone().nth(number) {
                all.push((at, Event::Override { tool }));
            }
            if number == 0 {
                all.push((at, Event::Extension));
            }
        }
    }
    all
}

/// Clients of all callers, in each view, over each transport, of the latest revision and of another one.
async fn listeners(world: &World, callers: Vec<Caller>) -> Vec<Listener> {
    let mut listeners = Vec::new();
    let mut row = usize::try_from(world.seed % 4).unwrap();
    for caller in callers {
        let shown = world.shown_servers(&caller, Look::Direct);
        let one = shown.first().map(|at| Look::One(*at));
        let looks = [Look::Configured, Look::Direct, Look::Search];
        let transports = &TRANSPORTS[usize::from(caller.token.is_some())..];
        for look in looks.into_iter().chain(one) {
            for (column, transport) in transports.iter().enumerate() {
                for revision in [REVISIONS[(row + column) % 4], MODERN] {
                    let caller = caller.clone();
                    let place = (look, *transport);
                    listeners.push(Listener::open(world, caller, place, revision).await);
                }
            }
            row += 1;
        }
        // Else each revision would be used in the same view by all callers.
        row += 1;
    }
    listeners
}

/// Clients that see everything: in the view of each server, and in that of all.
async fn witnesses(world: &World, everything: &Caller) -> Vec<Listener> {
    let transport = match everything.token {
        Some(_) => Transport::Sse,
        None => Transport::Pipe,
    };
    let mut witnesses = Vec::new();
    let looks = (0..world.servers.len()).map(Look::One);
    for look in looks.chain([Look::Direct]) {
        let place = (look, transport);
        let witness = Listener::open(world, everything.clone(), place, REVISIONS[3]);
        witnesses.push(witness.await);
    }
    witnesses
}

/// Lets each server log something and say that its resource has changed.
async fn speak(world: &World, witnesses: &mut [Listener], logs: &[String], dice: &mut Dice) {
    let mut order: Vec<_> = (0..world.servers.len()).collect();
    dice.shuffle(&mut order);
    for at in order {
        let (server, witness) = (&world.servers[at], &mut witnesses[at]);
        let log = json!({ "level": "warning", "data": logs[at] });
        server.stage.tell_with(LOG, log).await;
        let uri = server.uri();
        let updated = json!({ "uri": uri });
        server.stage.tell_with(UPDATED, updated).await;
        witness.until(&format!("updated {uri}")).await;
    }
}

/// Lets a profile lose a server, and checks that its clients hear no more of that.
async fn lose(
    world: &mut World,
    profile: usize,
    (witnesses, listeners): (&mut [Listener], &mut [Listener]),
    dice: &mut Dice,
    coverage: &mut Coverage,
) {
    let shown = |world: &World, look: Look, listener: &Listener| {
        world.shown_servers(&listener.caller, look)
    };
    let before: Vec<_> = listeners
        .iter()
        .map(|it| [it.look, Look::Direct].map(|look| shown(world, look, it)))
        .collect();
    let all = world.shown_servers(&Caller::under(profile), Look::Direct);
    if all.is_empty() {
        return;
    }
    let lost = *dice.pick(&all);
    let names = world.servers.iter().map(|server| &*server.name);
    let kept = names.chain([MEMORY]).filter(|name| {
        *name != world.servers[lost].name && world.sees_server(&Caller::under(profile), name)
    });
    world.profiles[profile].servers = Some(kept.map(str::to_owned).collect());
    let config = config(&world.servers, &world.profiles);
    world.rig.reconfigure(&config).await;
    let logs: Vec<_> = world.servers.iter().map(|_| dice.item()).collect();
    speak(world, witnesses, &logs, dice).await;
    for (listener, [in_view, in_scope]) in listeners.iter_mut().zip(before) {
        let now = shown(world, listener.look, listener);
        let has_lost = now != in_view;
        let mut expected: BTreeSet<_> = now
            .iter()
            .map(|at| format!("updated {}", address(world, listener.look, *at)))
            .collect();
        if has_lost {
            expected.extend(["prompts", "resources"].map(str::to_owned));
        }
        for what in &expected {
            listener.until(what).await;
        }
        let mut allowed = expected;
        allowed.extend(listener.logs(world, &logs));
        if in_scope != shown(world, Look::Direct, listener) {
            allowed.extend(["tools", "prompts", "resources"].map(str::to_owned));
        }
        let heard = std::mem::take(&mut listener.heard);
        let strange: Vec<_> = heard.difference(&allowed).collect();
        let Listener {
            look,
            transport,
            revision,
            ..
        } = &*listener;
        assert_eq!(
            strange,
            Vec::<&String>::new(),
            "seed {}, {look:?}, {revision}, {transport:?}",
            world.seed
        );
        coverage.note_if(has_lost, &format!("lost server, {revision}, {transport:?}"));
    }
}

/// Revokes the tokens of some callers, and checks that their streams end.
async fn revoke(
    world: &World,
    witnesses: &mut [Listener],
    listeners: Vec<Listener>,
    dice: &mut Dice,
    coverage: &mut Coverage,
) {
    for number in 0..3 {
        let path = format!("/api/v1/tokens/t{number}");
        let answer = world.rig.ask("DELETE", &path, None).await;
        assert_eq!(answer.status, 204, "{answer:?}");
    }
    let logs: Vec<_> = world.servers.iter().map(|_| dice.item()).collect();
    speak(world, witnesses, &logs, dice).await;
    for listener in listeners {
        let what = format!(
            "end of a stream, {}, {:?}",
            listener.revision, listener.transport
        );
        coverage.note(what);
        listener.end().await;
    }
}

/// Lets everything change in a world, and checks what each client hears.
async fn announce(
    mut world: World,
    (callers, everything): (Vec<Caller>, Caller),
    dice: &mut Dice,
    coverage: &mut Coverage,
) {
    let mut witnesses = witnesses(&world, &everything).await;
    let mut listeners = listeners(&world, callers).await;
    for (at, event) in events(dice, &world.servers) {
        let logs = world.servers.iter().map(|_| dice.item()).collect();
        let round = Round { at, event, logs };
        cause(&mut world.servers[at], event, dice).await;
        if let Event::Override { .. } = event {
            let config = config(&world.servers, &world.profiles);
            world.rig.reconfigure(&config).await;
        }
        let of_all = witnesses.last_mut().unwrap();
        if of_all.hears(&world, at, event) {
            of_all.until(event.kind()).await;
        } else {
            witnesses[at].until(&round.name(&world)).await;
        }
        speak(&world, &mut witnesses, &round.logs, dice).await;
        for listener in listeners.iter_mut().chain(&mut witnesses) {
            listener.check(&world, &round, coverage).await;
        }
    }
    for profile in 0..world.profiles.len() {
        let all = (&mut *witnesses, &mut *listeners);
        lose(&mut world, profile, all, dice, coverage).await;
    }
    if everything.token.is_some() {
        revoke(&world, &mut witnesses, listeners, dice, coverage).await;
        world.rig.stop().await;
        return;
    }
    world.rig.stop().await;
    for listener in listeners {
        listener.end().await;
    }
}

/// The counters of all that has to be reached with each kind of caller.
fn wanted_of(transports: &[Transport]) -> impl Iterator<Item = String> {
    let kinds = [
        "tools",
        "prompts",
        "resources",
        "extension",
        "updated",
        "log",
    ];
    let kinds = kinds
        .into_iter()
        .flat_map(|kind| ["told", "withheld"].map(|told| (told, kind)));
    // Another test has the rules for logs that belong to no call.
    let kinds = kinds.filter(|kind| *kind != ("told", "log"));
    kinds.flat_map(move |(told, kind)| {
        let revisions = REVISIONS.into_iter();
        let revisions = revisions.filter(move |revision| kind != "log" || *revision != MODERN);
        // Few callers see all of a server in its own view, in which extensions are heard of.
        let is_rare = (told, kind) == ("told", "extension");
        let revisions = revisions.filter(move |revision| !is_rare || *revision == MODERN);
        revisions.flat_map(move |revision| {
            let all = transports.iter();
            all.map(move |transport| format!("{told} {kind}, {revision}, {transport:?}"))
        })
    })
}

/// The counters of something for each revision and transport.
fn wanted_with(what: &'static str, transports: &[Transport]) -> impl Iterator<Item = String> {
    let all = transports.iter();
    all.flat_map(move |transport| {
        REVISIONS.map(|revision| format!("{what}, {revision}, {transport:?}"))
    })
}

#[tokio::test]
async fn changes_outside_a_profile_are_not_told() {
    let mut coverage = Coverage::default();
    for seed in seeds(200..203) {
        let mut dice = Dice::new(seed);
        let world = World::new(seed, &mut dice, false).await;
        let callers = (0..world.profiles.len()).map(Caller::under).collect();
        let callers = (callers, Caller::everything(None));
        announce(world, callers, &mut dice, &mut coverage).await;
    }
    let lost = wanted_with("lost server", &TRANSPORTS);
    coverage.require(wanted_of(&TRANSPORTS).chain(lost));
}

/// The owner does nothing here: what a server says after a request of the owner may be about that.
#[tokio::test]
async fn changes_outside_a_token_are_not_told() {
    let mut coverage = Coverage::default();
    for seed in seeds(300..303) {
        let mut dice = Dice::new(seed);
        let world = World::new(seed, &mut dice, false).await;
        let mut callers = Vec::new();
        for number in 0..3 {
            callers.push(world.token_caller(&mut dice, number).await);
        }
        let everything = token(&world.rig, "everything", None, &[]).await;
        let callers = (callers, Caller::everything(Some(everything)));
        announce(world, callers, &mut dice, &mut coverage).await;
    }
    let transports = &TRANSPORTS[1..];
    let lost = wanted_with("lost server", transports);
    let ends = wanted_with("end of a stream", transports);
    coverage.require(wanted_of(transports).chain(lost).chain(ends));
}
