//! Changes of the configuration and ends of tokens while clients are connected: each sees only its new scope.

use super::*;

/// A client that stays while the world changes.
struct Live {
    /// The position of its caller.
    of: usize,
    look: Look,
    transport: Transport,
    revision: &'static str,
    client: Client,
}

/// Changes a profile. Returns what has changed.
fn edit(profile: &mut Profile, servers: &[Server], dice: &mut Dice) -> &'static str {
    let has = |name: &str| {
        let listed = profile.servers.as_ref();
        listed.is_none_or(|all| all.iter().any(|pattern| matches(pattern, name)))
    };
    let names = servers.iter().map(|server| &*server.name).chain([MEMORY]);
    let mut included: Vec<String> = names.filter(|name| has(name)).map(str::to_owned).collect();
    match dice.below(6) {
        0 | 1 if included.len() > 1 => {
            included.swap_remove(dice.below(included.len()));
            profile.servers = Some(included);
            "profile loses a server"
        }
        2 => {
            let all = servers.iter().map(|server| server.name.clone());
            profile.servers = Some(all.collect());
            "profile gets all servers"
        }
        3 => {
            profile.tools = Filter {
                allow: None,
                deny: vec![pattern(dice, servers), pattern(dice, servers)],
            };
            "profile loses other tools"
        }
        4 => {
            let other = match profile.view {
                Some("search") => "direct",
                _ => "search",
            };
            profile.view = Some(other);
            "profile gets another view"
        }
        _ => {
            profile.namespace = match profile.namespace {
                Some(_) => None,
                None => Some(dice.word(ITEM_LETTERS)),
            };
            "profile gets another part of the memory"
        }
    }
}

/// Renames, hides or shows a tool of a server. Returns what has changed.
fn rename(server: &mut Server, dice: &mut Dice) -> &'static str {
    let few = server.tools.len().min(6);
    let hidden = server.tools.iter().position(|tool| tool.hidden);
    if let Some(tool) = hidden.filter(|_| dice.percent(30)) {
        server.tools[tool].hidden = false;
        return "tool gets shown";
    }
    let tool = &mut server.tools[dice.below(few)];
    if dice.percent(30) {
        tool.hidden = true;
        return "tool gets hidden";
    }
    tool.former.extend(tool.new_name.replace(dice.item()));
    tool.new_about = Some(dice.item());
    "tool gets renamed"
}

/// Applies the configuration, and waits until the owner sees all of it.
async fn apply(world: &World) {
    let config = config(&world.servers, &world.profiles);
    world.rig.reconfigure(&config).await;
    ready(&world.rig, &world.servers).await;
    for one in &world.servers {
        let offered = one.tools.iter().filter(|tool| one.offers(tool));
        let offered: BTreeSet<_> = offered.map(|tool| tool.shown().to_owned()).collect();
        let mut owner = Pipe::open(&world.rig, server(&one.name)).await;
        let is_applied = async || BTreeSet::from_iter(owner.tools().await) == offered;
        until("the overrides apply", is_applied).await;
    }
}

impl Live {
    /// Clients of a caller in each view. The transports and revisions differ from caller to caller.
    async fn of(
        world: &World,
        (of, caller): (usize, &Caller),
        coverage: &mut Coverage,
    ) -> Vec<Self> {
        let mut all = Vec::new();
        let looks = [Look::Configured, Look::Search, Look::Direct].into_iter();
        let shown = world.shown_servers(caller, Look::Direct);
        let looks = looks.chain(shown.into_iter().map(Look::One));
        let transports = &TRANSPORTS[usize::from(caller.token.is_some())..];
        for (row, look) in looks.enumerate() {
            let step = usize::try_from(world.seed).unwrap() + of + row;
            let transport = transports[step % transports.len()];
            let revision = REVISIONS[step % REVISIONS.len()];
            let place = (look, transport);
            let session = Session::open(world, caller, place, revision, coverage).await;
            let client = session.client;
            all.push(Self {
                of,
                look,
                transport,
                revision,
                client,
            });
        }
        all
    }

    /// Checks that it sees what its caller sees now, and nothing else.
    async fn check(
        self,
        (world, callers): (&World, &[Caller]),
        dice: &mut Dice,
        reached: &mut Reached,
        coverage: &mut Coverage,
    ) -> Self {
        let Self {
            of,
            look,
            transport,
            revision,
            client,
        } = self;
        let caller = &callers[of];
        let place = (look, transport);
        let mut session = Session::of(client, world, caller, place, revision, coverage);
        session.is_old = true;
        if !world.has_profile(caller) {
            let is_in_address = caller.is_addressed && transport == Transport::Http;
            let error = if is_in_address {
                NO_SUCH_PROFILE
            } else {
                NO_PROFILE
            };
            session.check_nothing(error).await;
        } else if world.shown_servers(caller, look).is_empty() && session.is_one() {
            session.check_nothing(NO_SERVER).await;
        } else {
            session.check_all(dice, reached).await;
        }
        Self {
            client: session.client,
            ..self
        }
    }
}

/// The error for all requests of a client that has lost its profile.
const NO_PROFILE: &str = "the profile of this connection no longer exists; ask the user to add it to `profiles` in the configuration, or to connect to another address";
/// The same over Streamable HTTP, if the profile is in the address of each request.
const NO_SUCH_PROFILE: &str =
    "there is no profile `NAME`; `profiles` in the configuration lists the profiles";
/// The same for the server of its address, be it hidden from the client or gone.
const NO_SERVER: &str = "there is no server `NAME`";

/// Requests for everything that a server has.
fn requests(session: &Session<'_>, server: &Server) -> Vec<(String, Value)> {
    let prompt = session.named(&server.name, &server.prompt[0]);
    let uri = session.addressed(&server.name, &server.uri());
    let template = session.addressed(&server.name, &server.uri_template());
    let lists = ["tools", "prompts", "resources", "resources/templates"];
    let lists = lists.map(|list| (format!("{list}/list"), json!({})));
    let mut requests = Vec::from(lists);
    let mut add = |method: &str, params| requests.push((method.to_owned(), params));
    add("prompts/get", json!({ "name": prompt }));
    add("resources/read", json!({ "uri": uri }));
    let argument = json!({ "name": "note", "value": ASTRAY });
    for of in [
        json!({ "type": "ref/prompt", "name": prompt }),
        json!({ "type": "ref/resource", "uri": template }),
    ] {
        let params = json!({ "ref": of, "argument": argument });
        add("completion/complete", params);
    }
    if session.revision != MODERN {
        add("resources/subscribe", json!({ "uri": uri }));
    }
    let tools = server.tools.iter().take(4).map(Tool::shown);
    let own = ["get_status", "switchboard__get_status", "retrieve_tools"];
    for tool in tools.chain(own) {
        let arguments = json!({ "query": ASTRAY, "note": ASTRAY });
        let params = json!({ "name": tool, "arguments": arguments });
        add("tools/call", params);
    }
    requests
}

impl Session<'_> {
    /// Checks that every request gets this error, with a name from the address in place of `NAME`.
    async fn check_nothing(&mut self, error: &str) {
        let server = match self.look {
            Look::One(at) => &self.world.servers[at],
            _ => &self.world.servers[0],
        };
        let own = match self.world.profile(self.caller) {
            Some(profile) if error == NO_SUCH_PROFILE => &profile.name,
            _ => &server.name,
        };
        let is_change = |said: &Value| said["method"].as_str().unwrap().ends_with("list_changed");
        for (method, params) in requests(self, server) {
            let answer = self.client.ask(&method, params).await;
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            let message = message.replace(own, "NAME");
            assert_eq!(message, error, "{} {method} {answer}", self.about());
            let heard = self.client.heard();
            assert!(heard.iter().all(is_change), "{} {heard:?}", self.about());
        }
        self.note("nothing", error.split(';').next().unwrap());
    }
}

/// Callers of all kinds: the owner under each profile, and tokens.
async fn callers(world: &World, dice: &mut Dice) -> Vec<Caller> {
    let mut callers: Vec<_> = (0..world.profiles.len()).map(Caller::under).collect();
    for number in 0..3 {
        callers.push(world.token_caller(dice, number).await);
    }
    callers
}

/// Lets all clients check what they see.
async fn check(
    clients: Vec<Live>,
    world: (&World, &[Caller]),
    dice: &mut Dice,
    reached: &mut Reached,
    coverage: &mut Coverage,
) -> Vec<Live> {
    let mut checked = Vec::new();
    for client in clients {
        checked.push(client.check(world, dice, reached, coverage).await);
    }
    checked
}

/// Revokes the token of a caller. Returns the clients of the others.
async fn revoke(
    mut clients: Vec<Live>,
    (world, of, token): (&World, usize, usize),
    coverage: &mut Coverage,
) -> Vec<Live> {
    let path = format!("/api/v1/tokens/t{token}");
    let answer = world.rig.ask("DELETE", &path, None).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    let (ended, others) = clients.into_iter().partition(|client| client.of == of);
    clients = others;
    for Live {
        client, transport, ..
    } in ended
    {
        let last = client.end().await;
        let forbidden = world.forbidden(&Caller::nothing(), Look::Direct);
        let found = forbidden.iter().find(|word| last.contains(**word));
        assert_eq!(found, None, "seed {}: {last}", world.seed);
        coverage.note(format!("end of a token, {transport:?}"));
    }
    clients
}

#[tokio::test]
async fn connected_clients_follow_changes_of_their_scope() {
    let mut coverage = Coverage::default();
    for seed in seeds(500..503) {
        let mut dice = Dice::new(seed);
        let mut world = World::new(seed, &mut dice, true).await;
        let mut reached = Reached::default();
        let callers = callers(&world, &mut dice).await;
        let mut clients = Vec::new();
        for caller in callers.iter().enumerate() {
            clients.extend(Live::of(&world, caller, &mut coverage).await);
        }
        for round in 0..5 {
            for at in 0..world.profiles.len() {
                coverage.note(edit(&mut world.profiles[at], &world.servers, &mut dice));
            }
            let at = dice.below(world.servers.len());
            coverage.note(rename(&mut world.servers[at], &mut dice));
            world.profiles[0].is_gone = round == 3;
            apply(&world).await;
            if round == 2 {
                let token = dice.below(3);
                let of = (&world, callers.len() - 3 + token, token);
                clients = revoke(clients, of, &mut coverage).await;
            }
            let of = (&world, &*callers);
            clients = check(clients, of, &mut dice, &mut reached, &mut coverage).await;
        }
        reached.check(&world);
        world.rig.stop().await;
    }
    let mut wanted: Vec<_> = EDITS.map(str::to_owned).into();
    wanted.push("former name of a tool".to_owned());
    let ends = TRANSPORTS[1..].iter();
    wanted.extend(ends.map(|it| format!("end of a token, {it:?}")));
    coverage.require(wanted);
}

/// The changes that have to be reached.
const EDITS: [&str; 8] = [
    "profile loses a server",
    "profile gets all servers",
    "profile loses other tools",
    "profile gets another view",
    "profile gets another part of the memory",
    "tool gets hidden",
    "tool gets shown",
    "tool gets renamed",
];
