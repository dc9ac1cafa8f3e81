//! `switchboard console`: a link that opens the console in a browser.

use std::{
    io,
    process::{Command, Stdio},
};

use clap::Args;
use serde::de::DeserializeOwned;
use switchboard_config::Home;
use switchboard_rest::console::{self as rest, Sessions, SignedOut};
use switchboard_terminal::{
    error::Error,
    print::{self, Table},
};
use switchboard_wire::Raw;

use super::{programs, times::local, words::count};
use crate::link::Link;

/// Print a link that opens the console in a browser.
///
/// The link works once and expires after 24 hours. Anyone who has it can sign in: keep it to yourself.
#[allow(clippy::struct_excessive_bools)] // Each is an option of its own.
#[derive(Debug, Args)]
pub struct Console {
    /// Also open the link in the browser, through a private file that redirects to it
    #[arg(long)]
    open: bool,
    /// List the browsers that are signed in
    #[arg(long, conflicts_with_all = ["open", "sign_out_all"])]
    sessions: bool,
    /// Sign out every browser
    #[arg(long, conflicts_with = "open")]
    sign_out_all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The address of a console is a name under `localhost`.
const BROWSERS: &str =
    "open the link in Chromium, Chrome, Edge or Firefox (or use `switchboard approvals`)";

/// The program that opens a file or an address on this system.
pub(super) const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Runs the command.
pub fn run(home: &Home, args: &Console) -> Result<(), Error> {
    if args.sessions {
        return sessions(&Link::need(home)?, args.json);
    }
    if args.sign_out_all {
        let body = serde_json::json!({ "all": true });
        let link = Link::need(home)?;
        let ended: Raw = link.send("/api/v1/console/sign-out", &body.to_string())?;
        if args.json {
            return print::json_raw(&ended);
        }
        let SignedOut { ended } = understood(&ended)?;
        let browsers = count(ended, "browser", "browsers");
        print::say(&format!("signed out {browsers}"));
        return Ok(());
    }
    let link: Raw = Link::need(home)?.send("/api/v1/console/link", "")?;
    let rest::Link { url } = understood(&link)?;
    if args.json {
        print::json_raw(&link)?;
    } else {
        print::data(&format!("{url}\n"))?;
        print::hint(BROWSERS);
    }
    if args.open {
        open(home, &url).map_err(|error| {
            Error::new(format!("cannot open a browser with `{OPENER}`: {error}"))
                .hint("copy the link into a browser")
        })?;
    }
    Ok(())
}

fn sessions(link: &Link, json: bool) -> Result<(), Error> {
    let answer: Raw = link.get("/api/v1/console/sessions")?;
    if json {
        return print::json_raw(&answer);
    }
    let Sessions { sessions } = understood(&answer)?;
    if sessions.is_empty() {
        print::say("no browser is signed in");
        return Ok(());
    }
    let mut table = Table::new(&["SESSION", "SIGNED IN", "LAST USED", "EXPIRES"]);
    for session in sessions {
        table.row([
            session.id,
            local(&session.signed_in_at),
            local(&session.used_at),
            local(&session.expires_at),
        ]);
    }
    table.print()
}

fn understood<T: DeserializeOwned>(answer: &Raw) -> Result<T, Error> {
    let answer = answer.read_owned();
    answer.map_err(|error| Error::new(format!("cannot parse the gateway's response: {error}")))
}

/// Opens a link through a private file that redirects to it: every user of the machine can read the arguments
/// of a program, and the first one to use the link is signed in. The file does not redirect a browser that
/// may look up the name in the network, because the answer may be the address of another machine.
fn open(home: &Home, url: &str) -> io::Result<()> {
    let page = format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>Switchboard</title>\n\
         <p>Open the link that <code>switchboard console</code> prints in Chromium, Chrome, Edge or Firefox: this browser \
         may look up its name on the network.</p>\n\
         <script>if (/(Chrome|Chromium|Firefox)\\//.test(navigator.userAgent)) location.replace(\"{url}\")</script>\n"
    );
    let environment = programs::environment();
    let path = environment.get("PATH").unwrap_or_default();
    let opener = programs::find(OPENER.as_ref(), path)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it is not in PATH"))?;
    let file = home.run().join("console.html");
    switchboard_files::write_private(&file, page.as_bytes())?;
    let status = Command::new(opener)
        .arg(file)
        // The opener searches PATH for browsers.
        .env("PATH", path)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("it failed with {status}")))
    }
}
