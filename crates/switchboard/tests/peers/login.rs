//! Signing in to servers of others: one behind `oidc-provider`, and the example of the official TypeScript SDK.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use switchboard_test_support::{
    Home, Serve, Tools,
    provider::{Provider, browse, run},
    until,
};

/// Starts an MCP server that requires a sign-in, and adds it to the configuration as `notes`.
pub(crate) fn provider(tools: &Tools, home: &Home, lifetime: u32) -> Provider {
    let provider = Provider::start(tools, lifetime);
    home.set_servers(json!({ "notes": { "url": provider.url() } }));
    provider
}

/// Signs in from the command line.
pub(crate) fn sign_in(tools: &Tools, home: &Home) {
    sign_in_with(tools, home.command(&LOGIN));
}

/// The command, which prints the address.
pub(crate) const LOGIN: [&str; 3] = ["login", "notes", "--no-browser"];

/// Signs in with this command.
pub(crate) fn sign_in_with(tools: &Tools, command: Command) {
    let login = Login::with(command);
    let seen = browse(tools, &login.url, "yes");
    assert!(seen.status.success(), "{seen:?}");
    let done = login.finish();
    assert!(done.is_ok, "{}", done.told);
}

/// `switchboard login notes`, waiting for the user.
pub(crate) struct Login {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
    pub(crate) url: String,
}

pub(crate) struct Done {
    pub(crate) is_ok: bool,
    pub(crate) told: String,
}

impl Login {
    pub(crate) fn start(home: &Home) -> Self {
        Self::with(home.command(&LOGIN))
    }

    pub(crate) fn with(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut login = Self {
            input: child.stdin.take().unwrap(),
            errors: BufReader::new(child.stderr.take().unwrap()),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            url: String::new(),
        };
        login.url = login.line();
        login
    }

    /// The next line of its output: the address, then the code, if there is one.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Pastes a line.
    fn paste(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// Reads what it tells the user, up to a line with this text.
    fn until_told(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            let read = self.errors.read_line(&mut line).unwrap();
            assert_ne!(read, 0, "it ended without {text:?}");
        }
    }

    pub(crate) fn finish(mut self) -> Done {
        let mut told = String::new();
        while self.errors.read_line(&mut told).unwrap() > 0 {}
        let status = self.child.wait().unwrap();
        drop(self.input);
        Done {
            is_ok: status.success(),
            told,
        }
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Calls the tool of the server from the command line.
pub(crate) fn add(home: &Home) -> Output {
    home.run(&["call", "notes:add", "a=1", "b=2"])
}

#[test]
fn user_signs_in_from_the_command_line() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home, 3_600);
    let serve = home.serve();
    serve.until_state("notes", "needs sign-in");
    let server = serve.server("notes");
    assert_eq!(
        server["action"], "run `switchboard login notes`",
        "{server}"
    );
    let refused = add(&home);
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("server `notes` needs a sign-in"), "{told}");
    assert!(told.contains("`switchboard login notes`"), "{told}");

    let login = Login::start(&home);
    assert!(login.url.starts_with(provider.origin()), "{}", login.url);
    let seen = browse(&tools, &login.url, "yes");
    assert!(text(&seen.stdout).contains("Signed in"), "{seen:?}");
    let done = login.finish();
    assert!(done.is_ok, "{}", done.told);
    let at = format!("signed in to `notes` at {}/oidc", provider.origin());
    assert!(done.told.contains(&at), "{}", done.told);
    assert!(
        done.told.contains("`notes` is ready: 1 tool"),
        "{}",
        done.told
    );

    let called = add(&home);
    assert_eq!(text(&called.stdout), "3 for ada\n", "{called:?}");
    let listed = home.run(&["auth", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let login = &listed["logins"][0];
    assert_eq!(login["state"], "signed in", "{listed}");
    assert_eq!(login["issuer"], format!("{}/oidc", provider.origin()));
    assert_eq!(login["isRenewed"], true, "{listed}");
    // After a restart, the user need not do anything.
    serve.stop();
    let serve = home.serve();
    assert_eq!(text(&add(&home).stdout), "3 for ada\n");
    assert_eq!(provider.book()["codes"], 1);
    assert_no_token(&home, &provider, serve.pid());
}

/// No token is in a file, in an argument, or in the environment of a process.
pub(crate) fn assert_no_token(home: &Home, provider: &Provider, pid: i32) {
    let book = provider.book();
    let tokens: Vec<_> = book["tokens"].as_array().unwrap().clone();
    assert!(!tokens.is_empty(), "{book}");
    let mut texts = Vec::new();
    read_all(&home.path(""), &mut texts);
    let pids = home.people().into_iter().map(|person| person.pid);
    for pid in pids.chain([pid]) {
        for file in ["cmdline", "environ"] {
            let path = PathBuf::from(format!("/proc/{pid}/{file}"));
            texts.push((path.clone(), fs::read(&path).unwrap_or_default()));
        }
    }
    assert!(texts.len() > 5, "{} files", texts.len());
    for token in &tokens {
        let token = token.as_str().unwrap().as_bytes();
        for (path, text) in &texts {
            let has_token = text.windows(token.len()).any(|part| part == token);
            assert!(!has_token, "a token is in {}", path.display());
        }
    }
}

fn read_all(directory: &Path, texts: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            read_all(&path, texts);
        } else if kind.is_file() {
            texts.push((path.clone(), fs::read(&path).unwrap_or_default()));
        }
    }
}

#[test]
fn user_on_another_machine_pastes_the_address() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let _provider = provider(&tools, &home, 3_600);
    // Without a gateway, the command starts one for as long as it runs.
    let mut login = Login::start(&home);
    for wrong in [
        "nonsense",
        "http://127.0.0.1:1/callback?code=x&state=forged",
        "http://127.0.0.1:1/callback",
    ] {
        login.paste(wrong);
        login.until_told("does not belong to this sign-in");
    }
    let seen = browse(&tools, &login.url, "copy");
    let address = text(&seen.stdout);
    assert!(address.starts_with("http://127.0.0.1:"), "{seen:?}");
    login.paste(address.trim());
    let done = login.finish();
    assert!(done.is_ok, "{}", done.told);
    let _serve = home.serve();
    assert_eq!(text(&add(&home).stdout), "3 for ada\n");
    home.until_nobody("after the command");
}

#[test]
fn user_who_denies_consent_is_told() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let _provider = provider(&tools, &home, 3_600);
    let serve = home.serve();
    let login = Login::start(&home);
    let seen = browse(&tools, &login.url, "no");
    assert!(text(&seen.stdout).contains("Not signed in"), "{seen:?}");
    let done = login.finish();
    assert!(!done.is_ok, "{}", done.told);
    assert!(done.told.contains("access was denied"), "{}", done.told);
    assert!(done.told.contains("Ada said no"), "{}", done.told);
    serve.until_state("notes", "needs sign-in");
    // Another attempt works.
    sign_in(&tools, &home);
    serve.until_state("notes", "ready");
}

/// A client whose user opens pages.
pub(crate) struct Opener {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Opener {
    /// Starts a client on this SDK, which calls the tool of the server.
    pub(crate) fn start(tools: &Tools, sdk: &str, serve: &Serve<'_>, token: &str) -> Self {
        Self::answering(tools, sdk, serve, token, "accept")
    }

    /// The same with another answer of the user.
    fn answering(tools: &Tools, sdk: &str, serve: &Serve<'_>, token: &str, answer: &str) -> Self {
        let url = format!("http://{}/mcp/direct", serve.address);
        let script = include_str!("scripts/opener.mjs");
        let mut child = run(tools, script, &[sdk, &url, token, answer]);
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// The next message: an address to open, or the outcome.
    pub(crate) fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut errors = String::new();
            let stderr = self.child.stderr.as_mut().unwrap();
            stderr.read_to_string(&mut errors).unwrap();
            panic!("{line}{errors}")
        })
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn client_of_2025_opens_the_page() {
    client_opens_the_page("sdk");
}

#[test]
fn client_of_2026_opens_the_page() {
    client_opens_the_page("client");
}

/// A client that can have pages opened gets the one of the provider, if it is the owner's.
#[track_caller]
fn client_opens_the_page(sdk: &str) {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home, 3_600);
    let serve = home.serve();
    become_known(&tools, &home, &serve);
    let created = home.run(&["token", "create", "guest", "--server", "notes"]);
    assert!(created.status.success(), "{created:?}");
    let mut guest = Opener::start(&tools, sdk, &serve, text(&created.stdout).trim());
    let refused = guest.next();
    let told = refused.to_string();
    assert!(told.contains("needs a sign-in"), "{refused}");

    let mut owner = Opener::start(&tools, sdk, &serve, &serve.token());
    let asked = owner.next();
    let url = asked["url"].as_str().unwrap_or_else(|| panic!("{asked}"));
    assert!(url.starts_with(provider.origin()), "{asked}");
    let message = asked["message"].as_str().unwrap();
    assert!(message.contains("Sign in to notes"), "{asked}");
    // All calls that need the sign-in get the same page.
    let mut other = Opener::start(&tools, sdk, &serve, &serve.token());
    assert_eq!(other.next()["url"], url);
    let seen = browse(&tools, url, "yes");
    assert!(text(&seen.stdout).contains("Signed in"), "{seen:?}");
    assert_eq!(owner.next(), json!({ "text": "3 for ada" }));
    assert_eq!(other.next(), json!({ "text": "3 for ada" }));
}

/// Signs in and out, so that the tools of the server are known.
fn become_known(tools: &Tools, home: &Home, serve: &Serve<'_>) {
    sign_in(tools, home);
    serve.until_state("notes", "ready");
    assert!(home.run(&["logout", "notes"]).status.success());
    serve.until_state("notes", "needs sign-in");
}

#[test]
fn user_may_decline_to_open_the_page() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let _provider = provider(&tools, &home, 3_600);
    let serve = home.serve();
    become_known(&tools, &home, &serve);
    let mut owner = Opener::answering(&tools, "client", &serve, &serve.token(), "decline");
    assert!(owner.next()["url"].is_string());
    let refused = owner.next();
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains("the user declined"), "{refused}");
}

#[test]
fn edited_call_survives_the_sign_in() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = Provider::start(&tools, 3_600);
    home.set_config(json!({
        "approvals": { "rules": ["ask notes:*"] },
        "mcpServers": { "notes": { "url": provider.url() } },
    }));
    let serve = home.serve();
    become_known(&tools, &home, &serve);
    let mut owner = Opener::start(&tools, "client", &serve, &serve.token());
    let mut http = serve.http();
    let id = until("the call waits for an approver", || {
        let pending = http.get("/api/v1/approvals?status=pending").json();
        pending["approvals"][0]["id"].as_str().map(str::to_owned)
    });
    let path = format!("/api/v1/approvals/{id}/approve");
    let edits = json!({ "edits": { "arguments": { "a": 40, "b": 2 } } }).to_string();
    let headers = [("Content-Type", "application/json")];
    let approved = http.ask("POST", &path, &headers, edits.as_bytes());
    assert_eq!(approved.status, 200, "{}", approved.text());
    let asked = owner.next();
    let url = asked["url"].as_str().unwrap_or_else(|| panic!("{asked}"));
    let seen = browse(&tools, url, "yes");
    assert!(text(&seen.stdout).contains("Signed in"), "{seen:?}");
    assert_eq!(owner.next(), json!({ "text": "42 for ada" }));
}

#[test]
fn user_signs_out() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home, 3_600);
    let serve = home.serve();
    sign_in(&tools, &home);
    serve.until_state("notes", "ready");
    let done = home.run(&["logout", "notes"]);
    assert_eq!(text(&done.stderr), "signed out of `notes`\n", "{done:?}");
    serve.until_state("notes", "needs sign-in");
    assert_eq!(provider.book()["revoked"], 1, "{}", provider.book());
    let listed = home.run(&["auth", "list"]);
    assert!(text(&listed.stdout).contains("needs sign-in"), "{listed:?}");
}

#[test]
fn user_signs_out_of_a_disabled_server() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home, 3_600);
    let _serve = home.serve();
    sign_in(&tools, &home);
    assert!(home.run(&["disable", "notes"]).status.success());
    let done = home.run(&["logout", "notes"]);
    assert_eq!(text(&done.stderr), "signed out of `notes`\n", "{done:?}");
    assert_eq!(provider.book()["revoked"], 1, "{}", provider.book());
}

#[test]
fn new_secret_is_used_by_next_sign_in() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = Provider::start(&tools, 3_600);
    let set = |value: &str| {
        let mut command = home.command(&["secret", "set", "resource"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(value.as_bytes())
            .unwrap();
        assert!(child.wait().unwrap().success());
    };
    set("not a resource");
    let oauth = json!({ "resource": "${secret:resource}" });
    home.set_servers(json!({ "notes": { "url": provider.url(), "oauth": oauth } }));
    let serve = home.serve();
    serve.until_state("notes", "needs sign-in");
    let login = Login::start(&home);
    browse(&tools, &login.url, "yes");
    let done = login.finish();
    assert!(!done.is_ok, "{}", done.told);
    set(&provider.url());
    sign_in(&tools, &home);
    assert_eq!(text(&add(&home).stdout), "3 for ada\n");
}

#[test]
fn outage_of_the_provider_ends_no_sign_in() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = Provider::start(&tools, 1);
    home.set_servers(json!({ "notes": { "url": provider.url(), "start": "eager" } }));
    let serve = home.serve();
    sign_in(&tools, &home);
    serve.until_state("notes", "ready");
    provider.toggle("isDown");
    let told = until("the token has expired", || {
        let done = add(&home);
        (!done.status.success()).then(|| text(&done.stderr))
    });
    assert!(
        told.contains("the sign-in to server `notes` cannot be renewed"),
        "{told}"
    );
    assert!(told.contains("HTTP 503"), "{told}");
    serve.stop();
    // It starts while the provider is down.
    let serve = home.serve();
    serve.until_state("notes", "retrying");
    provider.toggle("isDown");
    serve.until_state("notes", "ready");
    assert_eq!(text(&add(&home).stdout), "3 for ada\n");
    assert_eq!(provider.book()["codes"], 1);
}

#[test]
fn server_that_refuses_all_tokens_is_reported() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = Provider::start(&tools, 3_600);
    home.set_servers(json!({ "notes": { "url": provider.url(), "start": "eager" } }));
    let serve = home.serve();
    sign_in(&tools, &home);
    serve.until_state("notes", "ready");
    serve.stop();
    provider.toggle("refusesAll");
    let serve = home.serve();
    serve.until_state("notes", "needs sign-in");
    let reason = serve.reason("notes");
    assert!(reason.contains("refuses the token"), "{reason}");
    let told = text(&add(&home).stderr);
    assert!(told.contains("server `notes` needs a sign-in"), "{told}");
    provider.toggle("refusesAll");
    sign_in(&tools, &home);
    assert_eq!(text(&add(&home).stdout), "3 for ada\n");
}

#[test]
fn revoked_sign_in_asks_for_another() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home, 3_600);
    let serve = home.serve();
    sign_in(&tools, &home);
    serve.until_state("notes", "ready");
    provider.revoke_all();
    let refused = add(&home);
    let told = text(&refused.stderr);
    assert!(told.contains("server `notes` needs a sign-in"), "{told}");
    serve.until_state("notes", "needs sign-in");
    sign_in(&tools, &home);
    assert_eq!(text(&add(&home).stdout), "3 for ada\n");
}

#[test]
fn tokens_are_renewed_while_many_clients_call() {
    const CLIENTS: usize = 20;
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = provider(&tools, &home, 2);
    let serve = home.serve();
    sign_in(&tools, &home);
    serve.until_state("notes", "ready");
    let end = Instant::now() + Duration::from_secs(8);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = serve.client();
                while Instant::now() < end {
                    let outcome = client.call("notes__add", json!({ "a": 1, "b": 2 }));
                    assert_eq!(outcome, Ok("3 for ada".to_owned()));
                }
            });
        }
    });
    let book = provider.book();
    assert!(book["refreshes"].as_u64() >= Some(3), "{book}");
    assert_eq!(
        (&book["reused"], &book["codes"]),
        (&json!(0), &json!(1)),
        "{book}"
    );
}

#[test]
fn typescript_example_accepts_the_sign_in() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    // The example prints no ports, so they are chosen here.
    let [port, auth] = [(), ()].map(|()| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    });
    let example = "@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js";
    let mut server = Command::new(tools.node())
        .arg(tools.node_modules().join(example))
        .args(["--oauth", "--oauth-strict"])
        .env("MCP_PORT", port.to_string())
        .env("MCP_AUTH_PORT", auth.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the example listens", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
            && std::net::TcpStream::connect(("127.0.0.1", auth)).is_ok()
    });
    home.set_servers(json!({ "notes": { "url": format!("http://localhost:{port}/mcp") } }));
    let serve = home.serve();
    serve.until_state("notes", "needs sign-in");
    let login = Login::start(&home);
    let seen = browse(&tools, &login.url, "yes");
    assert!(text(&seen.stdout).contains("Signed in"), "{seen:?}");
    let done = login.finish();
    assert!(done.is_ok, "{}", done.told);
    let called = home.run(&["call", "notes:greet", "name=Ada"]);
    assert!(text(&called.stdout).contains("Hello, Ada"), "{called:?}");
    server.kill().unwrap();
    server.wait().unwrap();
}
