//! `switchboard login`, `logout` and `auth`: signing in to servers with OAuth.

use std::{
    env,
    io::{self, BufRead as _},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;
use serde_json::json;
use switchboard_config::Home;
use switchboard_rest::logins::{Login as Shown, LoginPage, LoginProgress, Logins};
use switchboard_terminal::{
    error::Error,
    print::{self, Table},
    visible::visible_line,
};
use switchboard_wire::Raw;

use super::{
    console::OPENER,
    learning, programs,
    progress::Progress,
    servers,
    times::{local, since, span},
};
use crate::{link::Link, place::Place};

/// The longest time for an opener to fail. Some run as long as the browser.
const OPENING: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Sign in to a server with OAuth.
///
/// Opens the page of the server's provider in a browser, and waits until you have finished there. The gateway keeps the
/// tokens, encrypted, and renews them, so that all clients stay signed in.
///
/// If the browser runs on another machine, it ends at an address that it cannot open, which begins with
/// `http://127.0.0.1`. Copy that address from the browser, and paste it here. With the grant `device_code` in the entry of
/// the server, you enter a code in a browser on any device instead.
#[derive(Debug, Args)]
pub struct Login {
    /// Name of the server
    name: String,
    /// Do not open a browser
    #[arg(long)]
    no_browser: bool,
}

/// Sign out of a server.
///
/// Revokes the tokens at the provider, if it supports that, and removes them from this machine.
#[derive(Debug, Args)]
pub struct Logout {
    /// Name of the server
    name: String,
}

/// List the sign-ins to servers.
#[derive(Debug, Args)]
pub struct Auth {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the servers that you can sign in to, and the state of each sign-in
    #[command(after_long_help = "\
Examples:
  switchboard auth list
  switchboard auth list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs `login`.
pub fn login(home: &Home, place: &Place, args: &Login) -> Result<(), Error> {
    learning::with_gateway(home, place, |link| {
        let signed_in = sign_in(link, args)?;
        tell(&signed_in);
        learning::restarted(home, link, &args.name)
    })
}

/// Runs `logout`.
pub fn logout(home: &Home, place: &Place, args: &Logout) -> Result<(), Error> {
    learning::with_gateway(home, place, |link| {
        let path = format!("{}/logout", servers::address(&args.name));
        let login: Shown = parsed(&link.post_and_wait(&path, "")?)?;
        print::say(&format!("signed out of `{}`", login.server));
        Ok(())
    })
}

/// Runs `auth`.
pub fn auth(home: &Home, place: &Place, args: &Auth) -> Result<(), Error> {
    let What::List { json } = args.what;
    learning::with_gateway(home, place, |link| {
        let answer: Raw = link.get("/api/v1/logins")?;
        if json {
            return print::json_raw(&answer);
        }
        let Logins { logins } = parsed(answer.as_str())?;
        if logins.is_empty() {
            print::say("there are no servers that you can sign in to");
            return Ok(());
        }
        let mut table = Table::new(&["SERVER", "SIGN-IN", "TOKEN", "PROVIDER", "NOTE"]);
        for login in logins {
            table.row([
                login.server.clone(),
                login.state.to_string(),
                token(&login),
                visible_line(login.issuer.as_deref().unwrap_or_default()),
                visible_line(login.reason.as_deref().unwrap_or_default()),
            ]);
        }
        table.print()
    })
}

/// Signs in: prints the page, and waits until the user has finished there.
fn sign_in(link: &Arc<Link>, args: &Login) -> Result<Shown, Error> {
    let address = format!("{}/login", servers::address(&args.name));
    let mut progress = Progress::new();
    progress.show("asking the server how to sign in…");
    let page = link.post_and_wait(&address, "");
    progress.clear();
    let page: LoginPage = parsed(&page?)?;
    let Some(url) = page.url.as_deref() else {
        let progress: LoginProgress = link.get(&address)?;
        return Ok(progress.login);
    };
    let url = visible_line(url);
    let complete = page.complete_url.as_deref().map(visible_line);
    let is_opened = !args.no_browser && open(complete.as_deref().unwrap_or(&url));
    let code = page.code.as_deref().map(visible_line);
    print::say(match (is_opened, &code) {
        (true, None) => "sign in on the page that was opened in your browser, which is:",
        (false, None) => "open this page in a browser, and sign in there:",
        (true, Some(_)) => {
            "sign in with this code on the page that was opened in your browser, which is:"
        }
        (false, Some(_)) => "open this page in a browser on any device, and enter this code:",
    });
    print::data(&format!("{url}\n"))?;
    if let Some(code) = code {
        print::data(&format!("{code}\n"))?;
        explain_code(&page);
    } else {
        print::hint(
            "if the browser ends at an address that it cannot open, paste that address here",
        );
        let (reader, to) = (Arc::clone(link), address.clone());
        // It ends with the program: a terminal may never have another line.
        thread::spawn(move || read_callbacks(&reader, &to));
    }
    let began = Instant::now();
    loop {
        let state: LoginProgress = link.get(&address)?;
        if state.is_done && state.login.state == "signed in" {
            return Ok(state.login);
        }
        if state.is_done {
            return Err(match state.login.reason {
                Some(reason) => Error::new(format!("not signed in: {reason}")),
                None => Error::new("the sign-in was cancelled")
                    .hint("start it again; the configuration of the server may have changed"),
            });
        }
        let seconds = began.elapsed().as_secs();
        progress.show(&format!("waiting for you to sign in… {seconds} s"));
    }
}

/// Tells how long the code is valid, and what the page has to name: a server can pass on the code of another provider.
fn explain_code(page: &LoginPage) {
    let provider = page.provider.as_deref().map(visible_line);
    let provider = provider.unwrap_or_default();
    if let Some(host) = &page.other_host {
        let host = visible_line(host);
        print::warn(&format!(
            "the page is at `{host}`, another host than `{provider}`: enter the code only if that is the provider's"
        ));
    }
    let until = page.expires_at.as_deref();
    let left = until.and_then(|until| since(until, jiff::Timestamp::now()));
    let valid = left.map_or_else(String::new, |passed| {
        format!("the code is valid for {}; ", span(-passed))
    });
    print::hint(&format!(
        "{valid}agree only if the page names `{provider}`, and the application that you expect"
    ));
}

/// Passes on the addresses that the user pastes.
fn read_callbacks(link: &Link, address: &str) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let body = json!({ "url": line });
        if let Err(failure) = link.post(&format!("{address}/callback"), Some(&body)) {
            print::complain(&failure);
        }
    }
}

fn tell(login: &Shown) {
    let issuer = login.issuer.as_deref().map(visible_line);
    let at = issuer.map_or_else(String::new, |issuer| format!(" at {issuer}"));
    print::say(&format!("signed in to `{}`{at}", login.server));
    if !login.scopes.is_empty() {
        print::say(&format!(
            "scopes: {}",
            visible_line(&login.scopes.join(" "))
        ));
    }
    let token = token(login);
    if !token.is_empty() {
        print::say(&format!("token: {token}"));
    }
}

/// The lifetime of the access token.
fn token(login: &Shown) -> String {
    let left = login.expires_at.as_deref().map(|expires| {
        let left = since(expires, jiff::Timestamp::now()).map(|passed| -passed);
        match left {
            Some(left) if left > 0 => format!("expires in {}", span(left)),
            Some(_) => "expired".to_owned(),
            None => format!("expires {}", local(expires)),
        }
    });
    match (left, login.is_renewed) {
        (Some(left), true) => format!("{left}, renewed automatically"),
        (Some(left), false) => left,
        (None, _) => String::new(),
    }
}

/// Opens a page in the browser of the user, if there is one on this machine. The address is not secret.
fn open(url: &str) -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_remote = is_set("SSH_CONNECTION") || is_set("SSH_TTY");
    let has_screen = cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    if is_remote || !has_screen || !url.starts_with("http") {
        return false;
    }
    let environment = programs::environment();
    let path = environment.get("PATH").unwrap_or_default();
    let Some(opener) = programs::find(OPENER.as_ref(), path) else {
        return false;
    };
    let opening = Command::new(opener)
        .arg(url)
        // The opener searches PATH for browsers.
        .env("PATH", path)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C ends the command, not the browser.
        .process_group(0)
        .spawn();
    let Ok(mut opening) = opening else {
        return false;
    };
    let until = Instant::now() + OPENING;
    while Instant::now() < until {
        match opening.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => thread::sleep(LOOK_AGAIN),
            Err(_) => return false,
        }
    }
    true
}

fn parsed<T: DeserializeOwned>(answer: &str) -> Result<T, Error> {
    let answer = serde_json::from_str(answer);
    answer.map_err(|error| Error::new(format!("cannot parse the gateway's response: {error}")))
}
