//! `switchboard console`: a link that opens the console in a browser.

use std::{
    io,
    process::{Command, Stdio},
};

use clap::Args;
use serde::Deserialize;
use switchboard_config::Home;

use crate::{failure::Failure, link::Link, print};

/// Print a link that opens the gateway's console in a browser.
///
/// The link is good once, and for a day. It is as good as a key: hand it to nobody.
#[derive(Debug, Args)]
pub(crate) struct Console {
    /// Open it in the browser, too
    #[arg(long)]
    open: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What opens an address on this system.
const OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

pub(crate) fn run(home: &Home, args: &Console) -> Result<(), Failure> {
    let link = Link::need(home)?.post("/api/v1/console/link", None)?;
    let url = link
        .get("url")
        .and_then(|url| String::deserialize(url).ok());
    let url = url.ok_or_else(|| Failure::new("the gateway's answer is not understood"))?;
    if args.json {
        print::json(&link)?;
    } else {
        print::data(&format!("{url}\n"))?;
    }
    if args.open {
        open(&url).map_err(|error| {
            Failure::new(format!("cannot open a browser with `{OPENER}`: {error}"))
                .hint("copy the link into the browser")
        })?;
    }
    Ok(())
}

fn open(url: &str) -> io::Result<()> {
    let status = Command::new(OPENER)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("it ended with {status}")))
    }
}
