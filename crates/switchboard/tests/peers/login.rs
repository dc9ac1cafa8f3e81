//! Signing in to servers of others: one behind `oidc-provider`, and the example of the official TypeScript SDK.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use switchboard_test_support::{Home, Serve, Tools, http::Http, processes, until};

use crate::tours::furnish;

/// A server that requires a sign-in.
struct Provider {
    tools: Tools,
    place: PathBuf,
    origin: String,
    child: Child,
}

impl Provider {
    /// Starts an MCP server behind `oidc-provider`, and adds it to the configuration as `notes`.
    fn start(tools: Tools, home: &Home, lifetime: u32) -> Self {
        let place = home.path("peers");
        furnish(&place, &tools);
        let said = place.join("said");
        let child = Command::new(tools.node())
            .arg(place.join("oidc_server.mjs"))
            .arg(lifetime.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&said).unwrap())
            .spawn()
            .unwrap();
        let origin = until("the server says where it is", || {
            let said = fs::read_to_string(&said).unwrap_or_default();
            let (_, rest) = said.split_once("listening on ")?;
            rest.split_once('\n').map(|(origin, _)| origin.to_owned())
        });
        home.set_servers(json!({ "notes": { "url": format!("{origin}/mcp") } }));
        Self {
            tools,
            place,
            origin,
            child,
        }
    }

    /// The counts of the authorization server.
    fn book(&self) -> Value {
        let address = self.origin.strip_prefix("http://").unwrap();
        let mut http = Http::connect(address.parse().unwrap(), "none");
        http.get("/book").json()
    }

    /// A user who gives consent in a browser (`yes`), denies it (`no`), or gives it and copies the last address (`copy`).
    fn browse(&self, url: &str, answer: &str) -> Output {
        let mut browser = Command::new(self.tools.node());
        let browser = browser.arg(self.place.join("browser.mjs"));
        browser.args([url, answer]).output().unwrap()
    }

    /// Signs in from the command line.
    fn sign_in(&self, home: &Home) {
        let login = Login::start(home);
        let seen = self.browse(&login.url, "yes");
        assert!(seen.status.success(), "{seen:?}");
        let done = login.finish();
        assert!(done.is_ok, "{}", done.told);
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `switchboard login notes`, waiting for the user.
struct Login {
    child: Child,
    input: ChildStdin,
    _output: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
    url: String,
}

struct Done {
    is_ok: bool,
    told: String,
}

impl Login {
    fn start(home: &Home) -> Self {
        let mut command = home.command(&["login", "notes", "--no-browser"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        output.read_line(&mut url).unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            errors: BufReader::new(child.stderr.take().unwrap()),
            _output: output,
            child,
            url: url.trim().to_owned(),
        }
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

    fn finish(mut self) -> Done {
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

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Calls the tool of the server from the command line.
fn add(home: &Home) -> Output {
    home.run(&["call", "notes:add", "a=1", "b=2"])
}

#[test]
fn user_signs_in_from_the_command_line() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = Provider::start(tools, &home, 3_600);
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
    assert!(login.url.starts_with(&provider.origin), "{}", login.url);
    let seen = provider.browse(&login.url, "yes");
    assert!(text(&seen.stdout).contains("Signed in"), "{seen:?}");
    let done = login.finish();
    assert!(done.is_ok, "{}", done.told);
    let at = format!("signed in to `notes` at {}/oidc", provider.origin);
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
    assert_eq!(login["issuer"], format!("{}/oidc", provider.origin));
    assert_eq!(login["isRenewed"], true, "{listed}");
    // After a restart, the user need not do anything.
    serve.stop();
    let serve = home.serve();
    assert_eq!(text(&add(&home).stdout), "3 for ada\n");
    assert_eq!(provider.book()["codes"], 1);
    assert_no_token(&home, &provider, &serve);
}

/// No token is in a file, in an argument, or in the environment of a process.
fn assert_no_token(home: &Home, provider: &Provider, serve: &Serve<'_>) {
    let book = provider.book();
    let tokens: Vec<_> = book["tokens"].as_array().unwrap().clone();
    assert!(!tokens.is_empty(), "{book}");
    let mut texts = Vec::new();
    read_all(&home.path(""), &mut texts);
    let pids = home.people().into_iter().map(|person| person.pid);
    for pid in pids.chain([serve.pid()]) {
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
    let provider = Provider::start(tools, &home, 3_600);
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
    let seen = provider.browse(&login.url, "copy");
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
    let provider = Provider::start(tools, &home, 3_600);
    let serve = home.serve();
    let login = Login::start(&home);
    let seen = provider.browse(&login.url, "no");
    assert!(text(&seen.stdout).contains("Not signed in"), "{seen:?}");
    let done = login.finish();
    assert!(!done.is_ok, "{}", done.told);
    assert!(done.told.contains("access was denied"), "{}", done.told);
    assert!(done.told.contains("Ada said no"), "{}", done.told);
    serve.until_state("notes", "needs sign-in");
    // Another attempt works.
    provider.sign_in(&home);
    serve.until_state("notes", "ready");
}

#[test]
fn user_signs_out() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = Provider::start(tools, &home, 3_600);
    let serve = home.serve();
    provider.sign_in(&home);
    serve.until_state("notes", "ready");
    let done = home.run(&["logout", "notes"]);
    assert_eq!(text(&done.stderr), "signed out of `notes`\n", "{done:?}");
    serve.until_state("notes", "needs sign-in");
    assert_eq!(provider.book()["revoked"], 1, "{}", provider.book());
    let listed = home.run(&["auth", "list"]);
    assert!(text(&listed.stdout).contains("needs sign-in"), "{listed:?}");
}

#[test]
fn revoked_sign_in_asks_for_another() {
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = Provider::start(tools, &home, 3_600);
    let serve = home.serve();
    provider.sign_in(&home);
    serve.until_state("notes", "ready");
    let address = provider.origin.strip_prefix("http://").unwrap();
    let mut http = Http::connect(address.parse().unwrap(), "none");
    assert_eq!(http.ask("POST", "/revoke-all", &[], b"").status, 200);
    let refused = add(&home);
    let told = text(&refused.stderr);
    assert!(told.contains("server `notes` needs a sign-in"), "{told}");
    serve.until_state("notes", "needs sign-in");
    provider.sign_in(&home);
    assert_eq!(text(&add(&home).stdout), "3 for ada\n");
}

#[test]
fn tokens_are_renewed_while_many_clients_call() {
    const CLIENTS: usize = 20;
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = Provider::start(tools, &home, 2);
    let serve = home.serve();
    provider.sign_in(&home);
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
fn gateway_killed_at_any_time_stays_signed_in() {
    const KILLS: u32 = 12;
    let Some(tools) = Tools::peers() else { return };
    let home = Home::new(json!({}));
    let provider = Provider::start(tools, &home, 1);
    {
        let serve = home.serve();
        provider.sign_in(&home);
        serve.stop();
    }
    let mut lost = 0;
    for kill in 0..KILLS {
        let serve = home.serve();
        let mut client = serve.client();
        // Tokens expire while calls are made, so the kill hits every part of a renewal in time.
        let until = Instant::now() + Duration::from_millis(600 + u64::from(kill) * 137 % 900);
        while Instant::now() < until {
            let outcome = client.call("notes__add", json!({ "a": 1, "b": 2 }));
            lost += u32::from(outcome.is_err());
        }
        processes::kill(serve.pid());
        drop(serve);
    }
    let _serve = home.serve();
    let book = provider.book();
    assert_eq!(text(&add(&home).stdout), "3 for ada\n", "{book}");
    assert_eq!((lost, &book["codes"]), (0, &json!(1)), "{book}");
    assert!(book["refreshes"].as_u64() >= Some(6), "{book}");
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
    let place = home.path("peers");
    furnish(&place, &tools);
    home.set_servers(json!({ "notes": { "url": format!("http://localhost:{port}/mcp") } }));
    let serve = home.serve();
    serve.until_state("notes", "needs sign-in");
    let login = Login::start(&home);
    let mut browser = Command::new(tools.node());
    let seen = browser
        .arg(place.join("browser.mjs"))
        .args([&login.url, "yes"]);
    let seen = seen.output().unwrap();
    assert!(text(&seen.stdout).contains("Signed in"), "{seen:?}");
    let done = login.finish();
    assert!(done.is_ok, "{}", done.told);
    let called = home.run(&["call", "notes:greet", "name=Ada"]);
    assert!(text(&called.stdout).contains("Hello, Ada"), "{called:?}");
    server.kill().unwrap();
    server.wait().unwrap();
}
