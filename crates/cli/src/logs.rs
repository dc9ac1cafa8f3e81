//! `switchboard logs`: the standard error of a server, and the gateway's notes about it.

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::{Value, json};
use switchboard_base::log_marks::is_of;
use switchboard_config::{EditError, Home};
use switchboard_terminal::{error::Error, print};

use super::{
    config_file::{ConfigFile, cannot},
    servers::{address, parts},
};
use crate::link::{Link, no_gateway};

/// The most bytes of a file that are read, from its end.
const TAIL_BYTES: u64 = 8 * 1024 * 1024;

/// Show the log of a server.
///
/// The log contains the standard error of the server and the gateway's messages about it.
#[derive(Debug, Args)]
pub struct Logs {
    /// Name of the server, as shown by `switchboard list`; NAME/NUMBER for one of its instances
    name: String,
    /// Keep printing new lines
    #[arg(long, short)]
    follow: bool,
    /// Number of lines to show from the end
    #[arg(long = "lines", short = 'n', value_name = "N", default_value_t = 100)]
    lines: usize,
    /// Print JSON
    #[arg(long, conflicts_with = "follow")]
    json: bool,
}

/// Runs the command.
pub fn run(home: &Home, args: &Logs) -> Result<(), Error> {
    let (name, instance) = parts(&args.name)?;
    let link = Link::find(home)?;
    let mut path = format!("{}/logs?lines={}", address(name), args.lines);
    if let Some(number) = instance {
        let _ = write!(path, "&instance={number}");
    }
    if let (Some(link), true) = (&link, args.follow) {
        return link.follow(&format!("{path}&follow=true"), |line| {
            print::text(&format!("{line}\n"))
        });
    }
    let lines = match &link {
        Some(link) => from_gateway(link, &path)?,
        None => from_file(home, name, instance, args.lines)?,
    };
    if args.json {
        return print::json(&json!({"lines": lines}));
    }
    let mut text = lines.join("\n");
    if !lines.is_empty() {
        text.push('\n');
    }
    print::text(&text)?;
    if args.follow {
        return Err(no_gateway(home).hint("start one with `switchboard serve` to follow the log"));
    }
    Ok(())
}

fn from_gateway(link: &Link, path: &str) -> Result<Vec<String>, Error> {
    let answer: Value = link.get(path)?;
    let lines = answer.get("lines").and_then(Value::as_array);
    let lines = lines.into_iter().flatten().filter_map(Value::as_str);
    Ok(lines.map(str::to_owned).collect())
}

fn from_file(
    home: &Home,
    name: &str,
    instance: Option<u64>,
    count: usize,
) -> Result<Vec<String>, Error> {
    let is_wanted = |line: &str| instance.is_none_or(|number| is_of(line, number));
    let file = home.log_of(name);
    let Some(mut lines) = tail(&file, count, &is_wanted)? else {
        let config = ConfigFile::read(home)?.config()?;
        if config.servers.contains_key(name) {
            return Ok(Vec::new());
        }
        let known = config.servers.keys().map(String::as_str);
        return Err(EditError::missing(name, known).into());
    };
    if lines.len() < count {
        let before = PathBuf::from(format!("{}.1", file.display()));
        let mut all = tail(&before, count - lines.len(), &is_wanted)?.unwrap_or_default();
        all.append(&mut lines);
        lines = all;
    }
    Ok(lines)
}

/// The last lines of a file that are wanted, if it exists.
fn tail(
    path: &Path,
    count: usize,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<Option<Vec<String>>, Error> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = match read() {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot("read", path, &error)),
    };
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().filter(|line| is_wanted(line)).collect();
    let from = lines.len().saturating_sub(count);
    Ok(Some(
        lines[from..].iter().map(|&line| line.to_owned()).collect(),
    ))
}
